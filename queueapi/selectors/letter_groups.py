"""Groups of letters: what fails most, whom it hits, what became of the last replay."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, DeadLetterTally, Replay, Tenant

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
    """What became of a group's letters in the last replay that had some of them. Those whose message was dropped are
    open again, and count as neither."""

    replay: Replay
    letters: int
    succeeded: int
    failed: int


def groups_for_lists() -> QuerySet[DeadLetterGroup]:
    """Each with how many tenants have letters of it, as `tenants`; those that name none count as one."""
    tallies = DeadLetterTally.objects.filter(group=OuterRef("pk"), letters__gt=0).order_by().values("group")
    tenants = Subquery(tallies.annotate(number=Count("tenant_id", distinct=True)).values("number"))
    return DeadLetterGroup.objects.select_related("queue__tenant").annotate(tenants=Coalesce(tenants, 0))


def largest_open_groups(most: int = GROUPS_SHOWN) -> list[DeadLetterGroup]:
    """The errors most open letters have, most letters first."""
    groups = groups_for_lists().filter(open_letters__gt=0)
    return list(groups.order_by("-open_letters", "-last_seen")[:most])


def tenants_hit(group: DeadLetterGroup) -> list[TenantHit]:
    """Who has letters of this group, most first."""
    tallies = DeadLetterTally.objects.filter(group=group, letters__gt=0).order_by().values_list("tenant_id")
    counted = tallies.annotate(number=Sum("letters"), still_open=Sum("letters", filter=Q(state=LetterState.OPEN)))
    most: list[tuple[UUID, int, int | None]] = list(counted.order_by("-number")[:TENANTS_SHOWN])
    tenants = Tenant.objects.in_bulk([tenant for tenant, *_ in most])
    return [TenantHit(tenants.get(tenant), number, still_open or 0) for tenant, number, still_open in most]


def last_replay(group: DeadLetterGroup) -> ReplayOutcome | None:
    """None where its letters were never replayed. As quick for a million letters as an index is read."""
    members = DeadLetter.objects.filter(group=group)
    # No EXISTS: PostgreSQL may make that a join with all members, instead of a look into the index for each replay.
    had_one = Subquery(members.filter(replay=OuterRef("pk")).order_by().values("state")[:1])
    replays = Replay.objects.alias(had_one=had_one).filter(had_one__isnull=False).select_related("operation")
    newest = replays.order_by("-operation__created_at").first()
    if newest is None:
        return None
    counted = members.filter(replay=newest).order_by().values_list("state").annotate(number=Count("*"))
    numbers: dict[str, int] = dict(counted)
    return ReplayOutcome(
        newest,
        letters=sum(numbers.values()),
        succeeded=numbers.get(LetterState.REPLAYED, 0),
        failed=numbers.get(LetterState.FAILED_AGAIN, 0),
    )
