"""Queues as publishing asks for them: for every message or batch, so by statements that are written once.

Django would put them together anew each time, which takes longer than the database needs to answer.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from queueapi.bulk import table_of
from queueapi.choices import ROUTED_QUEUE_STATES, QueueState
from queueapi.models import Queue
from queueapi.models.queue import PARTITION_FIELDS
from queuecore.topics import SYSTEM_TENANT

_COLUMNS: Final = ("id", "tenant_id", "name", "topic", "service_type", *PARTITION_FIELDS, "state", "max_backlog")


def is_there(queue_id: UUID) -> bool:
    """Whether what is stored in it now will be handled: nobody has deleted it."""
    return bool(_ask(_there_statement(), [_adapted(queue_id), QueueState.DELETING.value]))


def find_active_queue(named: str, tenant_id: UUID | None) -> Queue | None:
    """What people of this tenant, or of the system, mean by an id or a name: their own, then the system's. With the
    fields that publishing needs, for who only reads it. None where there is none such, or it is not active."""
    try:
        by, value = "id", _adapted(UUID(named))
    except ValueError:
        by, value = "name", named
    owners = _owners(by, tenant_id)
    rows = _ask(_finding_statement(by, len(owners)), [value, *map(_adapted, owners)])
    queues = sorted(map(_queue, rows), key=lambda queue: queue.tenant_id == SYSTEM_TENANT)
    return queues[0] if queues and queues[0].state == QueueState.ACTIVE else None


def find_own_queue(name: str, tenant_id: UUID) -> Queue | None:
    """The tenant's own one that takes messages, with the fields that publishing needs, for who only reads it."""
    rows = _ask(_finding_statement("name", 1), [name, _adapted(tenant_id)])
    return next((queue for row in rows if (queue := _queue(row)).state in ROUTED_QUEUE_STATES), None)


def _owners(by: str, tenant_id: UUID | None) -> Sequence[UUID]:
    """Whose queues are looked through; none at all: everyone's."""
    if tenant_id is not None:
        return (tenant_id, SYSTEM_TENANT)
    return () if by == "id" else (SYSTEM_TENANT,)


@cache
def _there_statement() -> str:
    return f'SELECT 1 AS "a" FROM {table_of(Queue)} WHERE id = %s AND state <> %s'  # noqa: S608


@cache
def _finding_statement(by: str, owners: int) -> str:
    # By the index that keeps names unique.
    found = "id = %s" if by == "id" else "lower(name) = lower(%s)"
    of = f" AND tenant_id IN ({', '.join(['%s'] * owners)})" if owners else ""
    return f"SELECT {', '.join(_COLUMNS)} FROM {table_of(Queue)} WHERE {found}{of}"  # noqa: S608


def _ask(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _adapted(value: UUID) -> UUID | str:
    """As the database keeps it."""
    return value if connections[DEFAULT_DB_ALIAS].features.has_native_uuid_field else value.hex


@lru_cache(1_000)
def _queue(row: tuple[Any, ...]) -> Queue:
    """The same for the same row: of all that a message costs here, to make it anew each time would be a sixth."""
    given = dict(zip(_COLUMNS, row, strict=True))
    return Queue(**given | {name: _uuid(given[name]) for name in ("id", "tenant_id")})


def _uuid(value: UUID | str) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)
