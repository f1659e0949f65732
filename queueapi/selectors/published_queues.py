"""Queues as publishing asks for them: for every message or batch, so by statements that are written once.

Django would put them together anew each time, which takes longer than the database needs to answer.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.db import connections, router

from queueapi.bulk import adapter_of, table_of
from queueapi.choices import QueueState
from queueapi.models import Queue
from queuecore.topics import SYSTEM_TENANT

_COLUMNS: Final = ("id", "tenant_id", "name", "topic", "service_type", "partitions", "state", "max_backlog")


def is_there(queue_id: UUID) -> bool:
    """Whether what is stored in it now will be handled: nobody has deleted it."""
    return bool(_ask(_there_statement(), [adapter_of(Queue, "id")(queue_id), QueueState.DELETING.value]))


def find_active_queue(named: str, tenant_id: UUID | None) -> Queue | None:
    """What people of this tenant, or of the system, mean by an id or a name: their own, then the system's. With the
    fields that publishing needs. None where there is none such, or it is not active."""
    adapt = adapter_of(Queue, "tenant_id")
    try:
        by, value = "id", adapt(UUID(named))
    except ValueError:
        by, value = "name", named
    owners = _owners(by, tenant_id)
    rows = _ask(_finding_statement(by, len(owners)), [value, *map(adapt, owners)])
    queues = sorted((_queue(row) for row in rows), key=lambda queue: queue.tenant_id == SYSTEM_TENANT)
    return queues[0] if queues and queues[0].state == QueueState.ACTIVE else None


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
    with connections[router.db_for_read(Queue)].cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _queue(row: Sequence[Any]) -> Queue:
    given = dict(zip(_COLUMNS, row, strict=True))
    return Queue(**given | {name: _uuid(given[name]) for name in ("id", "tenant_id")})


def _uuid(value: UUID | str) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)
