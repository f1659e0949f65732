"""What Django's `check` says about an installation's settings: shown by every command that starts something."""

from typing import Any

from django.core import checks

from queueapi.config import Config, config
from queueapi.handlers import handler_problems
from queuecore.config.fields import Leaf, leaves

_QUEUE_BY_QUEUE = "Configure the queue itself in the control plane; queuecore.queue_factory obeys the setting."
_ONE_MEMBER = (
    "Each partition's consumer is the only member of its group and keeps to the classic protocol, so that a new owner "
    "displaces the one before; the indexer of dead letters and programs that share a group obey the setting."
)

# Keys that a file of ThingsBoard's may set, and that this installation's queues do not obey, with what to do instead:
# queues are configured one by one, in the control plane. The rule engine's are what a new installation's `Main` begins
# with.
_NOT_OBEYED = {
    "queue.prefix": _QUEUE_BY_QUEUE,
    "queue.group_id_style": _QUEUE_BY_QUEUE,
    "queue.core.": _QUEUE_BY_QUEUE,
    "queue.edge.": _QUEUE_BY_QUEUE,
    "queue.vc.": _QUEUE_BY_QUEUE,
    "queue.edqs.": _QUEUE_BY_QUEUE,
    "queue.tasks.": _QUEUE_BY_QUEUE,
    "queue.partitions.use_internal_partition": _QUEUE_BY_QUEUE,
    "queue.kafka.group.protocol": _ONE_MEMBER,
}


@checks.register()
def check_queue_settings(app_configs: Any, **_: Any) -> list[checks.CheckMessage]:  # noqa: ARG001
    """A warning for each setting that was changed and changes nothing."""
    return [
        checks.Warning(
            f"{leaf.variable} ({leaf.key}) is {value!r}, which has no effect on an installation's queues.",
            hint=hint,
            id="queueapi.W001",
        )
        for leaf, value, hint in _changed(config())
    ]


@checks.register()
def check_handlers(app_configs: Any, **_: Any) -> list[checks.CheckMessage]:  # noqa: ARG001
    """An error for each module of handlers that cannot be loaded."""
    return [
        checks.Error(
            f"The handlers of {module} cannot be loaded: {reason}",
            hint="Mend the module, or take it out of SWITCHYARD_HANDLERS.",
            id="queueapi.E001",
        )
        for module, reason in handler_problems().items()
    ]


def _changed(settings: Config) -> list[tuple[Leaf, Any, str]]:
    values = {leaf.key: _value(settings, leaf) for leaf in leaves(Config)}
    found = []
    for leaf in leaves(Config):
        value, general = values[leaf.key], values.get(leaf.metadata["falls_back_to"], leaf.default)
        hint = next((hint for key, hint in _NOT_OBEYED.items() if leaf.key.startswith(key)), None)
        # One that only follows a more general setting was not changed itself.
        if hint is not None and value not in (leaf.default, general):
            found.append((leaf, value, hint))
    return found


def _value(settings: Config, leaf: Leaf) -> Any:
    value: Any = settings
    for name in leaf.names:
        value = getattr(value, name)
    return value
