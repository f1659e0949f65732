"""Plans of changes that the database alone sees: the action is carried out, read from the audit, and undone.

So a plan cannot say anything else than what the action does, nor allow what it refuses. Only for actions that do what
leaves the database in `transaction.on_commit`, as all of them should: that commit never comes.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from django.db import transaction
from django.db.models.signals import post_save

from queueapi.change_plans import NOTHING, Change, ChangePlan
from queueapi.cluster.databases import cluster_database
from queueapi.models import AuditEntry, IsolationRequest, Queue
from queueapi.selectors.isolation import isolated_queues
from queueapi.selectors.queue_plans import why_not_returning
from queueapi.selectors.queue_warnings import queue_warnings


class _Undone(Exception):
    """Ends the transaction."""


def rehearse(change: Callable[[], object]) -> ChangePlan:
    """What it would do now. What it refuses is raised."""
    plan = ChangePlan(NOTHING)
    try:
        with transaction.atomic(), transaction.atomic(using=cluster_database()), _audited() as entries:
            change()
            if entries:
                plan = ChangePlan(_summary(entries), tuple(_changes(entries)), tuple(_warnings(entries)))
            raise _Undone
    except _Undone:
        return plan


@contextmanager
def _audited() -> Iterator[list[AuditEntry]]:
    """What this thread writes to the audit meanwhile: others' entries are none of this plan's."""
    entries: list[AuditEntry] = []
    here = get_ident()

    def note(instance: AuditEntry, **_: Any) -> None:
        if get_ident() == here:
            entries.append(instance)

    post_save.connect(note, sender=AuditEntry, weak=False)
    try:
        yield entries
    finally:
        post_save.disconnect(note, sender=AuditEntry)


def _summary(entries: Iterable[AuditEntry]) -> str:
    return "; ".join(f"{entry.action.replace('_', ' ')} {_thing(entry)}" for entry in entries)


def _changes(entries: Iterable[AuditEntry]) -> Iterator[Change]:
    for entry in entries:
        before, after = entry.before or {}, entry.after or {}
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        for name in names:
            yield Change(f"{_thing(entry)}: {name}", before.get(name), after.get(name))
        if not names:
            yield Change(_thing(entry), None, None)


def _warnings(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        if entry.object_type == "queue" and entry.action in ("create", "change"):
            yield from queue_warnings(Queue.objects.get(pk=entry.object_id), entry.after or {})
        if entry.object_type == "isolation_request" and entry.action == "return":
            for queue in isolated_queues(IsolationRequest.objects.get(pk=entry.object_id)):
                yield from (f"it {why}" for why in why_not_returning(queue))


def _thing(entry: AuditEntry) -> str:
    return f"{entry.object_type} {entry.object_id}"
