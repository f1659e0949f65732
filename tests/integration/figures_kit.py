"""What the pipeline would have computed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.models import LagCurrent, PipelineRun, PipelineStanding, Queue, Tenant

NOON: Final = datetime(2026, 3, 14, 12, tzinfo=UTC)


@dataclass(frozen=True)
class World:
    """A queue that tenants share, and two tenants with one of their own each, of the same name. No topics are behind
    them: figures are read from the database alone."""

    tenant: Tenant
    other: Tenant
    shared: Queue
    own: Queue
    foreign: Queue


def two_tenants() -> World:
    tenants = create_tenant(SYSTEM, "Greenhouse"), create_tenant(SYSTEM, "Foundry")
    shared = Queue.objects.create(tenant=ensure_system_tenant(), name="Telemetry", topic="telemetry", handler="log")
    own = (Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log") for tenant in tenants)
    return World(*tenants, shared, *own)


def lag(queue: Queue, partition: int = 0, **told: Any) -> LagCurrent:
    """One message behind, and well, unless told otherwise."""
    figures = {"topic": f"{queue.topic}.{partition}", "consumer_group": "g", "end_offset": 2, "as_of": NOON}
    return LagCurrent.objects.create(queue=queue, partition=partition, **{"lag_messages": 1, **figures, **told})


def ran(at: datetime, **standing: Any) -> PipelineRun:
    """The pipeline, on events up to a second before."""
    PipelineStanding.objects.create(**{"ran_at": at, "succeeded_at": at, "took_s": 2.5, **standing})
    return PipelineRun.objects.create(
        query="summaries",
        batch_id=7,
        events=120,
        newest_event_at=at - timedelta(seconds=1),
        started_at=at,
        finished_at=at,
    )
