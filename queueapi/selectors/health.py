"""Whether the parts that nobody sees are at work: what a monitor asks, and who was woken by it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.utils import timezone

from queueapi import runtime
from queueapi.choices import OperationState
from queueapi.config import config
from queueapi.models import Operation
from queueapi.selectors.freshness import Freshness, pipeline_freshness
from queueapi.selectors.services import living
from queuecore.errors import QueueError

# A worker takes an operation up within a second, or a sweeper sends it again after fifteen.
_WAITS_AT_MOST: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class PartHealth:
    """`why` is what is wrong and what to do; empty: nothing is."""

    name: str
    why: str

    @property
    def status(self) -> str:
        return "degraded" if self.why else "ok"


@dataclass(frozen=True, slots=True)
class Health:
    parts: tuple[PartHealth, ...]

    @property
    def status(self) -> str:
        return "degraded" if any(part.why for part in self.parts) else "ok"


def health() -> Health:
    """As it is now; the provider is asked, the rest is known to the database."""
    return Health(tuple(PartHealth(name, why()) for name, why in _PARTS.items()))


def _why_no_provider() -> str:
    try:
        runtime.provider().admin().topic_names()
    except QueueError as error:
        return f"{config().queue.type} does not answer: {error.message}"
    return ""


def _why_no_consumers() -> str:
    return "" if living().exists() else "no consumer host has a lease: messages wait; start one"


def _why_no_tasks() -> str:
    before = timezone.now() - _WAITS_AT_MOST
    wanted = Operation.objects.filter(state=OperationState.PENDING, paused_at=None, due_at=None)
    waiting = wanted.filter(created_at__lt=before).count()
    return f"{waiting:,} operations wait for a worker for over a minute; look at the tasks workers" if waiting else ""


def _why_no_figures() -> str:
    found = pipeline_freshness()
    if found.error:
        return f"the pipeline failed: {found.error}"
    if not found.is_known:
        return "the pipeline has computed nothing yet"
    if found.is_stale:
        return (
            f"figures are of {found.as_of:%Y-%m-%d %H:%M:%S} UTC: {_late(found)}; look at the spark and tasks workers"
        )
    return ""


def _late(found: Freshness) -> str:
    if found.is_pipeline_behind:
        return "the pipeline is behind"
    if found.is_pipeline_running:
        return "no offsets are sampled"
    return "the pipeline does not run, or its run takes long"


_PARTS: Final[dict[str, Callable[[], str]]] = {
    "provider": _why_no_provider,
    "consumers": _why_no_consumers,
    "tasks": _why_no_tasks,
    "figures": _why_no_figures,
}
