"""What `import queuecore` offers: these names, described, and light to import."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import queuecore
from queuecore import errors
from scripts.library_reference import NOTES, SECTIONS, reference

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs" / "reference" / "queuecore.md"


def _is_error(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, queuecore.QueueError)


SURFACE = {
    "queues": {
        *("open_queues", "Queues", "Subscription", "SubscriptionCounts", "Delivery"),
        *("SubmitStrategy", "SubmitStrategyType", "submit_strategy"),
        *("ProcessingStrategy", "ProcessingStrategyType", "processing_strategy"),
        *("MessageHandler", "DeliveryContext", "DeadLetter", "FailureStory", "DeadLetterPolicy", "OnLimit"),
        *("handler", "find_handler", "RegisteredHandler", "SECRET_OPTION"),
    },
    "messages": {
        "QueueMessage",
        "Record",
        "RecordMetadata",
        "encode",
        "decode",
        "send",
        "send_and_wait",
        "UNKNOWN_OFFSET",
    },
    "topics and routing": {
        *("TopicPartitionInfo", "ProviderPartition", "ServiceType"),
        *("Router", "RoutingTable", "RoutedQueue", "QueueKey", "hash_function"),
        *("SYSTEM_TENANT", "notification_topic", "response_topic"),
    },
    "providers": {
        *("open_provider", "Provider", "Capabilities", "ProducerOptions", "ConsumerOptions"),
        *("KafkaOptions", "KafkaSecurity"),
        *("QueueProducer", "QueueConsumer", "QueueReader", "QueueAdmin", "AssignmentListener"),
        *("TransactionalProducer", "Transaction", "MemoryProvider", "MemoryStorage"),
        *("TopicSpec", "TopicDescription", "PartitionDescription", "GroupDescription"),
    },
    "factories": {
        *("queue_factory", "Deployment", "Channel", "ServiceQueueFactory", "MonolithQueueFactory"),
        *("CoreQueueFactory", "RuleEngineQueueFactory", "VersionControlQueueFactory"),
        *("TransportQueueFactory", "EdqsQueueFactory", "QueueSettings", "queue_settings"),
    },
    "requests": {
        *("RequestTemplate", "ResponseTemplate", "RequestTopics", "RequestOptions", "ResponseOptions"),
        *("Request", "RequestHandler", "ResponseFuture", "RequestCounts", "ResponseCounts", "collect_seldom"),
    },
    "errors": {name for name, thing in vars(errors).items() if _is_error(thing)},
}
# Imported only when they are asked for.
LATER = {"QueueSettings", "queue_settings"}


def test_the_surface_is_this_and_nothing_else() -> None:
    wanted = sorted(name for names in SURFACE.values() for name in names)
    assert sorted(queuecore.__all__) == wanted
    visible = {name: thing for name, thing in vars(queuecore).items() if not name.startswith("_")}
    at_once = [name for name in wanted if name not in LATER]
    assert sorted(name for name, thing in visible.items() if not isinstance(thing, ModuleType)) == at_once
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        queuecore.nothing  # noqa: B018


def test_what_is_internal_is_not_shown() -> None:
    assert not hasattr(queuecore.Subscription, "has_unseen_error")
    assert not hasattr(queuecore.DeliveryContext, "outbox")


def test_the_reference_says_what_the_code_does() -> None:
    """Signatures and promises change on purpose, or not at all."""
    assert REFERENCE.read_text() == reference(), "docs/reference/queuecore.md is out of date; run `make reference`"


def test_the_reference_shows_everything_a_record_has() -> None:
    section = reference().partition("### `Record`\n")[2].partition("\n### ")[0]
    shown = {line.split("`")[1].partition(":")[0] for line in section.splitlines() if line.startswith("- `")}
    public = {name for name in vars(queuecore.Record) if not name.startswith("_")}
    assert shown == public >= {"offset", "timestamp_ms", "data", "topic", "partition", "key", "headers"}


def test_the_reference_has_every_name_once() -> None:
    named = [name for names in SECTIONS.values() for name in names]
    assert len(named) == len(set(named))
    assert set(queuecore.__all__) - set(named) == SURFACE["errors"]


@pytest.mark.parametrize("name", queuecore.__all__)
def test_every_name_is_described(name: str) -> None:
    thing = getattr(queuecore, name)
    if name in NOTES:
        return
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert doc
    assert not doc.startswith(f"{name}("), "that is what dataclasses say of themselves"


@pytest.mark.parametrize("kind", [queuecore.Queues, queuecore.Subscription, queuecore.DeliveryContext])
def test_every_method_of_the_facade_is_described(kind: type) -> None:
    public = {name: member for name, member in vars(kind).items() if not name.startswith("_")}
    described = {
        name for name, member in public.items() if (member.fget if isinstance(member, property) else member).__doc__
    }
    fields = set(getattr(kind, "__slots__", ()))
    assert described | fields == public.keys() | fields


def modules_after(program: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after this."""
    told = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return {name.partition(".")[0] for name in json.loads(told.stdout)}


def test_importing_it_is_light() -> None:
    heavy = {"confluent_kafka", "kafka", "django", "celery", "pyspark", "yaml", "sqlite3", "lz4", "zstandard", "pytest"}
    assert not modules_after("import queuecore") & heavy


def test_a_provider_brings_its_library_only_when_it_is_opened() -> None:
    memory = modules_after("import queuecore; queuecore.open_provider('in-memory').close()")
    kafka = modules_after("import queuecore; queuecore.open_provider('kafka', servers='x:1').close()")
    libraries = {"confluent_kafka", "kafka"}
    assert (memory & libraries, kafka & libraries) == (set(), libraries)


def test_memory_is_bounded_as_wanted() -> None:
    with queuecore.open_queues("in-memory", capacity=1, when_full="reject") as queues:
        queues.create("orders")
        queues.publish("orders", None, b"1").result(10)
        with pytest.raises(queuecore.PartitionFull):
            queues.publish("orders", None, b"2").result(10)
    with pytest.raises(queuecore.ConfigurationError, match="when_full is 'rejct'"):
        queuecore.open_provider("in-memory", when_full="rejct")  # type: ignore[arg-type]
    with pytest.raises(queuecore.ConfigurationError, match="for the provider in-memory, not for log"):
        queuecore.open_provider("log", folder="nowhere", capacity=5)
