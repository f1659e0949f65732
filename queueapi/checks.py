"""What Django's `check` says about an installation's settings: shown by every command that starts something."""

from typing import Any

from django.core import checks

from queueapi.config import Config, config
from queuecore.config.fields import Leaf, leaves

# Keys that a file of ThingsBoard's may set, and that this installation does not obey yet: its queues are configured one
# by one, in the control plane.
_NOT_OBEYED = (
    "queue.prefix",
    "queue.group_id_style",
    "queue.pack-processing-timeout",
    "queue.core.",
    "queue.rule-engine.",
    "queue.edge.",
    "queue.vc.",
    "queue.edqs.",
    "queue.tasks.",
    "queue.partitions.count",
    "queue.partitions.use_internal_partition",
)


@checks.register()
def check_queue_settings(app_configs: Any, **_: Any) -> list[checks.CheckMessage]:  # noqa: ARG001
    """A warning for each setting that was changed and changes nothing."""
    return [
        checks.Warning(
            f"{leaf.variable} ({leaf.key}) is {value!r}, which has no effect in an installation yet.",
            hint="Configure the queue itself in the control plane; queuecore.queue_factory obeys the setting.",
            id="queueapi.W001",
        )
        for leaf, value in _changed(config())
    ]


def _changed(settings: Config) -> list[tuple[Leaf, Any]]:
    found = []
    for leaf in leaves(Config):
        value: Any = settings
        for name in leaf.names:
            value = getattr(value, name)
        if leaf.key.startswith(_NOT_OBEYED) and value != leaf.default:
            found.append((leaf, value))
    return found
