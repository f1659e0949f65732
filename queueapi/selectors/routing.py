"""The latest routing version, and who goes by which."""

from dataclasses import dataclass
from datetime import datetime

from queueapi.cluster.routing_models import RoutingAcknowledgement, RoutingVersion
from queueapi.cluster.routing_rows import living_producers


@dataclass(frozen=True, slots=True)
class RoutingStanding:
    """Version 0: none was published."""

    version: int
    published_at: datetime | None
    producers: tuple[RoutingAcknowledgement, ...]

    @property
    def lagging(self) -> tuple[str, ...]:
        """Who has yet to acknowledge the latest version."""
        return tuple(one.producer_id for one in self.producers if one.version < self.version)


def routing_standing() -> RoutingStanding:
    latest = RoutingVersion.objects.order_by("-version").values_list("version", "published_at").first()
    version, published_at = latest or (0, None)
    return RoutingStanding(version, published_at, tuple(living_producers().order_by("producer_id")))
