"""The ways messages take between the services of the platform, and who may use which.

Who reads a channel is said by its topic in the catalogue; who sends to it, here.
"""

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from queuecore.topics import CALCULATED_FIELD_STATES, CALCULATED_FIELDS, EDGE_QUEUE, MAIN_QUEUE, ServiceType

if TYPE_CHECKING:
    from queuecore.catalogue import CatalogueEntry
    from queuecore.config.queue_tree import QueueSettings

_CORE: Final = ServiceType.TB_CORE
_RULE_ENGINE: Final = ServiceType.TB_RULE_ENGINE
_EDQS: Final = ServiceType.EDQS


class Channel(Enum):
    """A topic of the catalogue: by the service type and the queue it is for, or, of a family, by its name."""

    CORE = (_CORE, MAIN_QUEUE)
    CORE_NOTIFICATIONS = "{core}.notifications"
    RULE_ENGINE = (_RULE_ENGINE, MAIN_QUEUE)
    RULE_ENGINE_NOTIFICATIONS = "{rule_engine}.notifications"
    TRANSPORT_NOTIFICATIONS = "tb_transport.notifications"
    TRANSPORT_API_REQUESTS = (_CORE, "TransportApiRequests")
    TRANSPORT_API_RESPONSES = "tb_transport.api.responses"
    EDGE = (_CORE, EDGE_QUEUE)
    EDGE_NOTIFICATIONS = "{edge}.notifications"
    EDGE_EVENTS = "{core}.edge.notifications"
    USAGE_STATS = (_CORE, "UsageStats")
    OTA_PACKAGES = (_CORE, "OtaPackages")
    HOUSEKEEPER = (_CORE, "Housekeeper")
    HOUSEKEEPER_REPROCESSING = (_CORE, "HousekeeperReprocessing")
    VERSION_CONTROL = (ServiceType.TB_VC_EXECUTOR, MAIN_QUEUE)
    CALCULATED_FIELDS = (_RULE_ENGINE, CALCULATED_FIELDS)
    CALCULATED_FIELD_STATES = (_RULE_ENGINE, CALCULATED_FIELD_STATES)
    JS_REQUESTS = (ServiceType.JS_EXECUTOR, MAIN_QUEUE)
    JS_RESPONSES = "js_eval.responses"
    EDQS_EVENTS = (_EDQS, "Events")
    EDQS_STATE = (_EDQS, "State")
    EDQS_REQUESTS = (_EDQS, "Requests")
    EDQS_RESPONSES = "edqs.responses"
    JOB_STATS = (_CORE, "JobStats")
    TASKS = "tasks"

    def entry(self, settings: "QueueSettings") -> "CatalogueEntry":
        """Its entry in the catalogue of these settings."""
        entries = _entries(settings)
        if isinstance(self.value, tuple):
            return next(one for one in entries if one.queue and (one.read_by[0], one.queue) == self.value)
        bases = {"core": settings.core.topic, "rule_engine": settings.rule_engine.topic, "edge": settings.edge.topic}
        topic = self.value.format_map(bases)
        return next(one for one in entries if one.topic == topic)


@lru_cache(maxsize=8)
def _entries(settings: "QueueSettings") -> "tuple[CatalogueEntry, ...]":
    # With the settings comes a YAML reader, which nobody needs who only wants to know the channels' names.
    from queuecore.catalogue import catalogue

    return catalogue(settings)


# What every service of the platform tells the others.
_EVERYBODY: Final = frozenset(
    {Channel.CORE, Channel.CORE_NOTIFICATIONS, Channel.RULE_ENGINE, Channel.USAGE_STATS, Channel.HOUSEKEEPER}
)

SENDS: Final[Mapping[ServiceType, frozenset[Channel]]] = {
    ServiceType.TB_CORE: _EVERYBODY
    | {
        *(Channel.RULE_ENGINE_NOTIFICATIONS, Channel.TRANSPORT_NOTIFICATIONS, Channel.TRANSPORT_API_RESPONSES),
        *(Channel.EDGE, Channel.EDGE_NOTIFICATIONS, Channel.EDGE_EVENTS, Channel.OTA_PACKAGES),
        *(Channel.HOUSEKEEPER_REPROCESSING, Channel.VERSION_CONTROL, Channel.CALCULATED_FIELDS, Channel.JS_REQUESTS),
        *(Channel.EDQS_EVENTS, Channel.EDQS_REQUESTS, Channel.TASKS),
    },
    ServiceType.TB_RULE_ENGINE: _EVERYBODY
    | {
        *(Channel.RULE_ENGINE_NOTIFICATIONS, Channel.TRANSPORT_NOTIFICATIONS, Channel.EDGE, Channel.EDGE_NOTIFICATIONS),
        *(Channel.OTA_PACKAGES, Channel.CALCULATED_FIELDS, Channel.CALCULATED_FIELD_STATES, Channel.JS_REQUESTS),
        Channel.EDQS_EVENTS,
    },
    ServiceType.TB_TRANSPORT: _EVERYBODY | {Channel.TRANSPORT_API_REQUESTS},
    ServiceType.TB_VC_EXECUTOR: frozenset({Channel.CORE_NOTIFICATIONS, Channel.USAGE_STATS, Channel.HOUSEKEEPER}),
    ServiceType.EDQS: frozenset({Channel.EDQS_EVENTS, Channel.EDQS_STATE, Channel.EDQS_RESPONSES}),
}
