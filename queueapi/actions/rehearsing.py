"""Plans of changes that the database alone sees: the action is carried out, read from the audit, and undone.

So a plan cannot say anything else than what the action does, nor allow what it refuses. Only for actions that do what
leaves the database in `transaction.on_commit`, as all of them should: that commit never comes.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final

from django.db import transaction
from django.db.models import Manager
from django.db.models.signals import post_save

from queueapi.change_plans import NOTHING, Change, ChangePlan
from queueapi.cluster.databases import cluster_database
from queueapi.models import AuditEntry, IsolationRequest, Queue, Tenant
from queueapi.models.tenant_profile import TenantProfile
from queueapi.selectors.isolation import isolated_queues
from queueapi.selectors.queue_plans import why_not_returning
from queueapi.selectors.queue_warnings import queue_warnings

# What the audit tells of by an id alone.
_NAMED: Final[dict[str, Manager[Any]]] = {
    "queue": Queue.objects,
    "tenant": Tenant.objects,
    "tenant_profile": TenantProfile.objects,
}


class _Undone(Exception):
    """Ends the transaction."""


def rehearse(change: Callable[[], object]) -> ChangePlan:
    """What it would do now. What it refuses is raised."""
    plan = ChangePlan(NOTHING)
    try:
        with transaction.atomic(), transaction.atomic(using=cluster_database()), _audited() as entries:
            change()
            if entries:
                things = _Things(entries)
                plan = ChangePlan(
                    _summary(entries, things), tuple(_changes(entries, things)), tuple(_warnings(entries))
                )
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


def _summary(entries: Iterable[AuditEntry], things: "_Things") -> str:
    return "; ".join(
        f"{entry.action.removesuffix('_operation').replace('_', ' ')} {things.name(entry)}" for entry in entries
    )


def _changes(entries: Iterable[AuditEntry], things: "_Things") -> Iterator[Change]:
    for entry in entries:
        before, after = entry.before or {}, entry.after or {}
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        for name in names:
            yield Change(f"{things.name(entry)}: {name}", before.get(name), after.get(name))
        if not names:
            yield Change(things.name(entry), None, None)


def _warnings(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        if entry.object_type == "queue" and entry.action in ("create", "change"):
            yield from queue_warnings(Queue.objects.get(pk=entry.object_id), entry.after or {})
        if entry.object_type == "isolation_request" and entry.action == "return":
            for queue in isolated_queues(IsolationRequest.objects.get(pk=entry.object_id)):
                yield from (f"it {why}" for why in why_not_returning(queue))


class _Things:
    """What entries are about, by their names where they have any: the id of what is only planned is nobody's."""

    def __init__(self, entries: Iterable[AuditEntry]) -> None:
        nameless: dict[str, set[str]] = {}
        for entry in entries:
            if entry.object_type in _NAMED and not _told_name(entry):
                nameless.setdefault(entry.object_type, set()).add(entry.object_id)
        self._names = {
            (kind, str(row.pk)): str(row) for kind, ids in nameless.items() for row in _NAMED[kind].filter(pk__in=ids)
        }

    def name(self, entry: AuditEntry) -> str:
        known = _told_name(entry) or self._names.get((entry.object_type, entry.object_id), entry.object_id)
        return f"{entry.object_type} {known}"


def _told_name(entry: AuditEntry) -> str:
    """An operation is known by what it does."""
    told = {**(entry.before or {}), **(entry.after or {})}
    return str(told.get("kind" if entry.object_type == "operation" else "name") or "")
