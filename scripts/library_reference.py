"""`python -m scripts.library_reference`: the reference of `queuecore`'s public surface, as Markdown, made from it."""

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any, NamedTuple

import queuecore

INTRODUCTION = """\
# `queuecore`

Made by `make reference` from the docstrings; change it there.

What `import queuecore` offers; nothing else is promised to stay as it is. [How to use the
library](../howto/use-the-library.md) tells it as a story.
"""

SECTIONS: dict[str, list[str]] = {
    "Queues": ["open_queues", "Queues", "Subscription", "SubscriptionCounts", "Delivery"],
    "Handlers": [
        *("MessageHandler", "DeliveryContext", "handler", "find_handler", "RegisteredHandler", "SECRET_OPTION"),
    ],
    "Strategies": [
        *("submit_strategy", "SubmitStrategyType", "SubmitStrategy"),
        *("processing_strategy", "ProcessingStrategyType", "ProcessingStrategy"),
    ],
    "Dead letters": ["DeadLetter", "FailureStory", "DeadLetterPolicy", "OnLimit"],
    "Requests": [
        *("RequestTemplate", "ResponseTemplate", "RequestTopics", "ResponseFuture", "Request", "RequestHandler"),
        *("RequestOptions", "ResponseOptions", "RequestCounts", "ResponseCounts", "collect_seldom"),
    ],
    "Messages": ["QueueMessage", "Record", "RecordMetadata", "UNKNOWN_OFFSET", "encode", "decode"],
    "Providers": [
        *("open_provider", "ProducerOptions", "ConsumerOptions", "KafkaOptions", "KafkaSecurity", "Provider"),
        *("Capabilities", "QueueProducer"),
        *("QueueConsumer", "AssignmentListener", "QueueReader", "TransactionalProducer", "Transaction", "QueueAdmin"),
        *("TopicSpec", "TopicDescription", "PartitionDescription", "GroupDescription", "send", "send_and_wait"),
        *("MemoryProvider", "MemoryStorage"),
    ],
    "Topics and routing": [
        *("TopicPartitionInfo", "ProviderPartition", "ServiceType"),
        *("Router", "RoutingTable", "RoutedQueue", "QueueKey", "SYSTEM_TENANT", "hash_function"),
        *("notification_topic", "response_topic"),
    ],
    "Services of the platform": [
        *("queue_factory", "Deployment", "Channel", "ServiceQueueFactory", "CoreQueueFactory"),
        *("RuleEngineQueueFactory", "VersionControlQueueFactory", "TransportQueueFactory", "EdqsQueueFactory"),
        *("MonolithQueueFactory", "QueueSettings", "queue_settings"),
    ],
}

# Plain classes that users make themselves.
_CONSTRUCTED = ("Queues", "Router", "MemoryProvider", "MemoryStorage", "RequestTemplate", "ResponseTemplate")
# What cannot say itself what it is.
NOTES = {
    "SYSTEM_TENANT": "`13814000-1dd2-11b2-8080-808080808080`: its queues are for all who have none of their own.",
    "SECRET_OPTION": "Metadata of an option's field, whose value is never shown again.",
    "RequestHandler": "What answers requests: a function, or an `async def`, from a `Request` to its answer, which is "
    "bytes, a message of Protocol Buffers, a `QueueMessage`, or nothing.",
    "UNKNOWN_OFFSET": "`-1`: the offset of a message that nobody acknowledged, with `acks=0`.",
    "QueueSettings": "The `queue:` tree. [Every setting](settings.md) is described on its own page.",
}
# What a tuple with attributes has for them. Those of a named tuple are in its signature already.
_TUPLE_ITEM = type(vars(queuecore.Record)["offset"])
_MAX_LINE = 100
_MODULES = re.compile(r"\b(?:queuecore|collections|typing|uuid|pathlib|concurrent|google)(?:\.\w+)*\.(?=\w)")
_ROW = re.compile(r"([\w-]+)  +(\S.*)")


class Member(NamedTuple):
    name: str
    signature: str
    doc: str


def reference() -> str:
    named = {name for names in SECTIONS.values() for name in names}
    parts = [INTRODUCTION]
    for title, names in SECTIONS.items():
        parts += [f"\n## {title}\n", *(_section(name) for name in names)]
    return "".join([*parts, _errors(sorted(set(queuecore.__all__) - named))])


def _section(name: str) -> str:
    thing = getattr(queuecore, name)
    parts = [f"\n### `{name}`\n\n"]
    if name in NOTES:
        return f"{parts[0]}{NOTES[name]}\n"
    if inspect.isfunction(thing) or is_dataclass(thing) or hasattr(thing, "_fields") or name in _CONSTRUCTED:
        parts.append(f"```python\n{_signature(name, thing, wrap=True)}\n```\n\n")
    parts.append(_prose(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing) and (members := list(_members(thing))):
        parts.append("\n**Members**\n\n")
        parts += [
            f"- `{one.signature}`" + (f"  \n  {_member_prose(one.doc)}" if one.doc else "") + "\n" for one in members
        ]
    return "".join(parts)


def _members(thing: type) -> Iterator[Member]:
    """What the class itself has to offer, in the order it is written."""
    if issubclass(thing, enum.Enum):
        yield from (Member(one.name, f"{one.name} = {_value(one.value)}", "") for one in thing)
    for name, value in vars(thing).items():
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(value, property):
            shown = _annotation(inspect.signature(_function(value.fget)).return_annotation)
            yield Member(name, f"{name}: {shown}", value.fget.__doc__ or "")
        elif isinstance(value, _TUPLE_ITEM) and not hasattr(thing, "_fields"):
            yield Member(name, f"{name}: {_annotation(inspect.get_annotations(thing)[name])}", "")
        elif isinstance(value, classmethod):
            yield Member(name, _signature(name, value.__func__), value.__func__.__doc__ or "")
        elif inspect.isfunction(value):
            yield Member(name, _signature(name, value), value.__doc__ or "")


def _function(getter: Callable[..., Any] | None) -> Callable[..., Any]:
    if getter is None:
        raise TypeError("a property without a getter")
    return getter


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_value(one) for one in value) + ")"
    return f'"{value}"'


def _signature(name: str, thing: Callable[..., Any], *, wrap: bool = False) -> str:
    signature = inspect.signature(thing)
    parameters = list(_parameters(signature))
    shown = ", ".join(parameters)
    if wrap and len(name) + len(shown) > _MAX_LINE:
        shown = "".join(f"\n    {one}," for one in parameters) + "\n"
    returned = signature.return_annotation
    is_class = inspect.isclass(thing)
    arrow = "" if is_class or returned is inspect.Signature.empty else f" -> {_annotation(returned)}"
    return f"{name}({shown}){arrow}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    is_keyword_only = False
    for one in signature.parameters.values():
        if one.name in {"self", "cls"} or one.name.startswith("_"):
            continue
        if one.kind is one.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            yield "*"
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        stars = "**" if one.kind is one.VAR_KEYWORD else ""
        yield f"{stars}{one.name}: {_annotation(one.annotation)}{default}"


def _default(value: object) -> str:
    is_nameless = type(value).__repr__ is object.__repr__
    if is_nameless or (is_dataclass(value) and not isinstance(value, type)):
        return f"{type(value).__name__}(…)"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _annotation(annotation: object) -> str:
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    # Types that are written as text, and type variables, as everyone reads them.
    return re.sub(r'"(\w+\[\w+\])"', r"\1", _MODULES.sub("", shown).replace("'", '"')).replace("~", "")


def _prose(doc: str) -> str:
    return "\n".join(_block(block) for block in doc.split("\n\n"))


def _block(block: str) -> str:
    lines = block.split("\n")
    if all(line.startswith("    ") for line in lines):
        return "```python\n" + "\n".join(line[4:] for line in lines) + "\n```\n"
    if not all(_ROW.match(line) or line.startswith("  ") for line in lines):
        return block + "\n"
    rows: list[str] = []
    for line in lines:
        if row := _ROW.match(line):
            rows.append(f"- `{row[1]}`: {row[2]}")
        else:
            rows[-1] += f" {line.strip()}"
    return "\n".join(rows) + "\n"


def _member_prose(doc: str) -> str:
    """One paragraph, but for rows, which are a list of their own in it."""
    text = ""
    for block in inspect.cleandoc(doc).split("\n\n"):
        shown = _block(block)
        if shown.startswith("- `"):
            text += "".join(f"\n  {row}" for row in shown.splitlines()) + "\n\n  "
        else:
            text += ("" if text.endswith("  ") or not text else " ") + _flat(block)
    return text.rstrip()


def _flat(doc: str) -> str:
    return " ".join(doc.split())


def _errors(names: list[str]) -> str:
    rows = ["| Error | `code` | Again later? | Meaning |", "|---|---|---|---|"]
    for name in names:
        error = getattr(queuecore, name)
        again = "yes" if error.retryable else "no"
        rows.append(f"| `{name}` | `{error.code}` | {again} | {_flat(error.__doc__ or '')} |")
    text = "All are a `QueueError`: `code` is for machines, the message for people, `retryable` says whether the same\n"
    return f"\n## Errors\n\n{text}may work later.\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
