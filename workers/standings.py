"""How consumers are, in figures and in a word."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from queueapi.choices import ConsumerState
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.counting import OTHER_TENANTS, ConsumptionCounts, TimeBudget

_NO_SECONDS = asdict(TimeBudget())


class Gauge:
    """What one consumption did between two looks at it. For one thread."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._before: tuple[float, int, dict[str, float]] | None = None

    def reset(self) -> None:
        """The next look is at another consumption."""
        self._before = None

    def read(self, counts: ConsumptionCounts, budget: TimeBudget) -> tuple[float | None, dict[str, float]]:
        """Messages handled in each second since the last look, and what these seconds went to. None at the first look,
        and where the counts fell: then they are another consumption's."""
        now, spent = self._clock.monotonic(), asdict(budget)
        before, self._before = self._before, (now, counts.handled, spent)
        if before is None or now <= before[0] or counts.handled < before[1] or _fell(before[2], spent):
            return None, _shares(spent)
        at, handled, spent_before = before
        return (counts.handled - handled) / (now - at), _shares(
            {name: seconds - spent_before[name] for name, seconds in spent.items()}
        )


def _fell(before: dict[str, float], now: dict[str, float]) -> bool:
    return any(now[name] < seconds for name, seconds in before.items())


def _shares(spent: dict[str, float]) -> dict[str, float]:
    """Of one second. The reading thread tells after each of its steps, so that the sum is not quite what passed."""
    total = sum(spent.values())
    return {name: round(seconds / total, 4) for name, seconds in spent.items()} if total > 0 else dict(_NO_SECONDS)


def told_tenants(counts: Mapping[str, ConsumptionCounts]) -> dict[str, dict[str, int]]:
    """What was counted for each tenant, under its id, without what never happened. Headers may name anything as their
    tenant: what is no id is counted with the others."""
    told: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for tenant, counted in counts.items():
        told[_tenant_id(tenant)].update(asdict(counted))
    return {tenant: dict(+counted) for tenant, counted in told.items()}


def _tenant_id(named: str) -> str:
    try:
        return named and str(UUID(named))
    except ValueError:
        return OTHER_TENANTS


class StateSince:
    """A state, with the reason, and since when it is so. For one thread."""

    def __init__(self) -> None:
        self.state = ConsumerState.WAITING
        self.reason = ""
        self.since: datetime = timezone.now()

    def become(self, state: ConsumerState, reason: str = "") -> None:
        if state != self.state:
            self.since = timezone.now()
        self.state, self.reason = state, reason
