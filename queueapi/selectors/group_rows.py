"""Groups of letters as lists show them: how they come, whom they hit, what became of the last replay. A few queries,
however many groups and letters there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from queueapi.models import DeadLetter, DeadLetterGroup, DeadLetterTrend, Replay

TREND_HOURS: Final = 24
# Among the newest so many replays a group's last one is looked for.
REPLAYS_SEARCHED: Final = 100

_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """trend        how many letters came in each of the last hours, the oldest first
    tenants      how many have letters of it; those that name none count as one
    last_replay  None where none of the newest replays had any of its letters
    """

    group: DeadLetterGroup
    trend: list[int]
    tenants: int
    last_replay: Replay | None


def group_rows(groups: Sequence[DeadLetterGroup], *, with_replays: bool = True) -> list[GroupRow]:
    """In their order. They are from `groups_for_lists`."""
    trends = _trends(groups)
    replays = _last_replays(groups) if with_replays else {}
    return [GroupRow(one, trends[one.pk], getattr(one, "tenants", 0), replays.get(one.pk)) for one in groups]


def _trends(groups: Sequence[DeadLetterGroup]) -> dict[int, list[int]]:
    """By group. An hour of which nothing is known had none: the pipeline writes what came."""
    if not groups:
        return {}
    begin = _begin()
    ids = {(one.queue_id, one.fingerprint): one.pk for one in groups}
    trends = {one.pk: [0] * TREND_HOURS for one in groups}
    queues, prints = {one.queue_id for one in groups}, {one.fingerprint for one in groups}
    rows = DeadLetterTrend.objects.filter(queue__in=queues, fingerprint__in=prints, at__gte=begin).order_by()
    for queue, fingerprint, at, letters in rows.values_list("queue_id", "fingerprint", "at", "letters"):
        group, hour = ids.get((queue, fingerprint)), (at - begin) // _HOUR
        if group is not None and hour < TREND_HOURS:
            trends[group][hour] += letters
    return trends


def _begin() -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0) - (TREND_HOURS - 1) * _HOUR


def _last_replays(groups: Sequence[DeadLetterGroup]) -> dict[int, Replay]:
    """Which it is, a look into the index for each group and replay tells, however many letters they have."""
    newest = list(Replay.objects.select_related("operation").order_by("-operation__created_at")[:REPLAYS_SEARCHED])
    if not newest or not groups:
        return {}
    members = DeadLetter.objects.filter(group=OuterRef(OuterRef("pk")), replay=OuterRef("pk")).order_by()
    had_one = Subquery(members.values("state")[:1])
    replays = Replay.objects.filter(pk__in=[one.pk for one in newest]).alias(had_one=had_one)
    last = replays.filter(had_one__isnull=False).order_by("-operation__created_at").values("pk")[:1]
    found = DeadLetterGroup.objects.filter(pk__in=[one.pk for one in groups]).annotate(last=Subquery(last))
    known = {one.pk: one for one in newest}
    return {group: known[replay] for group, replay in found.order_by().values_list("pk", "last") if replay}
