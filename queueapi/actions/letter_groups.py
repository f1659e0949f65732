"""Groups of letters with one error: made with their first letter, gone with their last."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from queueapi.bulk import adapter_of, execute_many, table_of
from queueapi.models import DeadLetterGroup

# A queue's id and a fingerprint.
GroupKey = tuple[UUID, str]


def enter_groups(letters: Iterable[Mapping[str, Any]]) -> dict[GroupKey, int]:
    """The ids of these rows' groups, made where they are new. The first letter's error stands for all."""
    first: dict[GroupKey, Mapping[str, Any]] = {}
    for letter in letters:
        first.setdefault((letter["queue_id"], letter["fingerprint"]), letter)
    found = _find(first)
    if missing := [_group(letter) for key, letter in first.items() if key not in found]:
        DeadLetterGroup.objects.bulk_create(missing, ignore_conflicts=True)
        found = _find(first)
    return found


def note_seen(letters: Iterable[Mapping[str, Any]]) -> None:
    """Widen the times in which their groups were seen. Call it after their letters were counted, which locks them."""
    seen: dict[int, tuple[datetime, datetime]] = {}
    for letter in letters:
        at = letter["failed_at"]
        first, last = seen.get(letter["group_id"], (at, at))
        seen[letter["group_id"]] = min(first, at), max(last, at)
    adapt = adapter_of(DeadLetterGroup, "last_seen")
    execute_many(
        f"update {table_of(DeadLetterGroup)} "  # noqa: S608
        "set first_seen = case when %s < first_seen then %s else first_seen end, "
        "last_seen = case when %s > last_seen then %s else last_seen end where id = %s",
        [(*[adapt(first)] * 2, *[adapt(last)] * 2, group) for group, (first, last) in sorted(seen.items())],
    )


def _find(keys: Iterable[GroupKey]) -> dict[GroupKey, int]:
    wanted = set(keys)
    groups = DeadLetterGroup.objects.filter(
        queue_id__in={queue for queue, _print in wanted}, fingerprint__in={print_of for _queue, print_of in wanted}
    )
    found = {(queue, print_of): pk for pk, queue, print_of in groups.values_list("id", "queue_id", "fingerprint")}
    return {key: pk for key, pk in found.items() if key in wanted}


def _group(letter: Mapping[str, Any]) -> DeadLetterGroup:
    return DeadLetterGroup(
        queue_id=letter["queue_id"],
        fingerprint=letter["fingerprint"],
        exception_class=letter["exception_class"],
        exception_message=letter["exception_message"],
        first_seen=letter["failed_at"],
        last_seen=letter["failed_at"],
    )
