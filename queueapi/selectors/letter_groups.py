"""Groups of letters: what fails most, whom it hits, what became of the last replay."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum

from queueapi.choices import LetterState, ReplayItemState
from queueapi.models import DeadLetterGroup, DeadLetterTally, Replay, ReplayItem, Tenant

GROUPS_SHOWN: Final = 12
TENANTS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class TenantHit:
    """A tenant with letters of a group; None: letters that name no tenant."""

    tenant: Tenant | None
    letters: int
    open_letters: int


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What became of a group's letters in the last replay that had some of them."""

    replay: Replay
    letters: int
    succeeded: int
    failed: int


def groups_for_lists() -> QuerySet[DeadLetterGroup]:
    return DeadLetterGroup.objects.select_related("queue__tenant")


def largest_open_groups() -> list[DeadLetterGroup]:
    """The errors most open letters have, most letters first."""
    groups = groups_for_lists().filter(open_letters__gt=0)
    return list(groups.order_by("-open_letters", "-last_seen")[:GROUPS_SHOWN])


def tenants_hit(group: DeadLetterGroup) -> list[TenantHit]:
    """Who has letters of this group, most first."""
    tallies = DeadLetterTally.objects.filter(group=group, letters__gt=0).order_by().values_list("tenant_id")
    counted = tallies.annotate(number=Sum("letters"), still_open=Sum("letters", filter=Q(state=LetterState.OPEN)))
    most: list[tuple[UUID, int, int | None]] = list(counted.order_by("-number")[:TENANTS_SHOWN])
    tenants = Tenant.objects.in_bulk([tenant for tenant, *_ in most])
    return [TenantHit(tenants.get(tenant), number, still_open or 0) for tenant, number, still_open in most]


def last_replay(group: DeadLetterGroup) -> ReplayOutcome | None:
    """None where its letters were never replayed."""
    items = ReplayItem.objects.filter(letter__group=group)
    newest = items.order_by("-pk").select_related("replay__operation").first()
    if newest is None:
        return None
    outcome = items.filter(replay=newest.replay).aggregate(
        letters=Count("pk"),
        succeeded=Count("pk", filter=Q(state=ReplayItemState.SUCCEEDED)),
        failed=Count("pk", filter=Q(state=ReplayItemState.FAILED)),
    )
    return ReplayOutcome(newest.replay, **outcome)
