"""A large installation in database files: made once by statements for many rows, and kept for the next run."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.benchmarks.processes import run_together

# A quick look: BENCH_REST_SCALE=0.01.
SCALE: Final = float(os.environ.get("BENCH_REST_SCALE", 1))
SMALL: Final = 0.001

TENANTS: Final = 1_000
QUEUES: Final = 10_000
PARTITIONS: Final = 10
LETTERS: Final = 1_000_000
ENTRIES: Final = 1_000_000
# What nobody said how many there are of: people, tokens, operations, replays, rebalances.
OTHERS: Final = 10_000
SERVICES: Final = 100

_AT_ONCE: Final = 5_000
_NEWEST: Final = datetime(2026, 1, 1, tzinfo=UTC)


def installation(folder: Path, scale: float) -> Path:
    """The data folder of one of this size; a folder that is there is whole."""
    data = folder / f"rest-{scale:g}"
    if not data.exists():
        making = folder / f"rest-{scale:g}.making"
        shutil.rmtree(making, ignore_errors=True)
        run_together([partial(_making, making, scale)])
        making.rename(data)
    return data


def open_django(data: Path) -> None:
    """In a process of its own."""
    os.environ |= {"SWITCHYARD_DATA_DIR": str(data), "DJANGO_SETTINGS_MODULE": "console.settings"}
    import django

    django.setup()


@contextmanager
def _making(data: Path, scale: float) -> Iterator[Callable[[], None]]:
    data.mkdir(parents=True)
    open_django(data)

    def work() -> None:
        from queueapi.bootstrap import bootstrap

        bootstrap("correct horse battery")
        _fill(lambda count: max(3, round(count * scale)))
        _end()

    yield work


def _end() -> None:
    from django.db import connections

    from queueapi.runtime import close_provider

    close_provider()
    for connection in connections.all():
        with connection.cursor() as cursor:
            cursor.execute("analyze")
    connections.close_all()


def _fill(many: Callable[[int], int]) -> None:
    from queueapi import models
    from queueapi.cluster import models as cluster

    tenants, queues, others = _ids(many(TENANTS)), _ids(many(QUEUES)), _ids(many(OTHERS))
    _save(models.Tenant, ({"id": one, "name": f"Tenant {number}"} for number, one in enumerate(tenants)))
    _save(models.Queue, (_queue(one, number, tenants) for number, one in enumerate(queues)))
    paused = {"reason": "billing is away", "paused_by": "ada"}
    _save(models.Pause, ({"queue_id": one, **paused} for one in queues[::10]))
    _save(models.LagCurrent, (_lag(one, number) for one in queues for number in range(PARTITIONS)))
    _save(cluster.Partition, (_partition(*one) for one in enumerate(_topics(len(queues)))))
    _save(cluster.ServiceInstance, map(_service, range(SERVICES)))
    _save(cluster.Rebalance, map(_rebalance, others))
    _people(len(others), tenants)
    _save(models.Operation, (_operation(one, tenants) for one in others))
    _save(models.Replay, ({"id": one, "operation_id": one, "is_collected": True} for one in others))
    _save(models.QuarantinedLetter, (_quarantined(one.int, queues) for one in others))
    _save(models.DeadLetterGroup, (_group(number, one) for number, one in enumerate(queues)))
    groups = list(models.DeadLetterGroup.objects.order_by("pk"))
    _insert(models.DeadLetter, many(LETTERS), lambda number: _letter(number, groups, tenants))
    _insert(models.AuditEntry, many(ENTRIES), lambda number: _entry(number, tenants))
    _replay_items(others[0])


def _save(model: Any, rows: Iterable[dict[str, Any]]) -> None:
    """Few enough for an object of each."""
    model.objects.bulk_create((model(**row) for row in rows), batch_size=_AT_ONCE)


def _insert(model: Any, count: int, row: Callable[[int], dict[str, Any]]) -> None:
    from django.db import transaction

    from queueapi.bulk import insert_rows

    for first in range(0, count, _AT_ONCE):
        with transaction.atomic():
            insert_rows(model, [row(number) for number in range(first, min(first + _AT_ONCE, count))])


def _ids(count: int) -> list[UUID]:
    return [UUID(int=number + 1) for number in range(count)]


def _before(number: int) -> datetime:
    return _NEWEST - timedelta(milliseconds=20 * number)


def _queue(queue: UUID, number: int, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {
        "id": queue, "tenant_id": tenants[number % len(tenants)], "name": f"Queue{number}", "topic": f"queue{number}",
        "handler": "log", "partitions": PARTITIONS,
    }  # fmt: skip


def _topics(queues: int) -> Iterator[str]:
    return (f"queue{queue}.{number}" for queue in range(queues) for number in range(PARTITIONS))


def _lag(queue: UUID, number: int) -> dict[str, Any]:
    return {
        "queue_id": queue, "partition": number, "topic": f"queue{queue.int - 1}.{number}", "consumer_group": "c",
        "end_offset": 2, "lag_messages": 1, "as_of": _NEWEST,
    }  # fmt: skip


def _partition(number: int, name: str) -> dict[str, Any]:
    service = f"service-{number % SERVICES}"
    return {
        "name": name, "service_type": "TB_RULE_ENGINE", "queue": name.split(".")[0], "number": number % PARTITIONS,
        "tenant": UUID(int=number), "owner": service, "target": service, "epoch": number + 1,
    }  # fmt: skip


def _service(number: int) -> dict[str, Any]:
    times = dict.fromkeys(("started_at", "heartbeat_at", "lease_expires_at"), _NEWEST)
    return {
        "service_id": f"service-{number}", "incarnation": "1", "service_types": [], "host": "h", "pid": 1, **times,
    }  # fmt: skip


def _rebalance(one: UUID) -> dict[str, Any]:
    at = _before(one.int)
    return {"id": one, "state": "done", "cause": "manual", "reason": "disk", "created_at": at, "finished_at": at}


def _operation(one: UUID, tenants: Sequence[UUID]) -> dict[str, Any]:
    tenant = tenants[one.int % len(tenants)]
    return {"id": one, "kind": "replay", "summary": "Replay", "total": 1, "tenant_id": tenant}


def _quarantined(number: int, queues: Sequence[UUID]) -> dict[str, Any]:
    place = {"letter_topic": "queue0.dlq", "letter_partition": 0, "letter_offset": number}
    return {"queue_id": queues[number % len(queues)], "error": "no story", **place}


def _group(number: int, queue: UUID) -> dict[str, Any]:
    return {
        "queue_id": queue, "fingerprint": f"{number:016}", "exception_class": "demo.Error", "exception_message": "hot",
        "first_seen": _before(number), "last_seen": _before(number), "letters": 100, "open_letters": number % 100,
    }  # fmt: skip


def _letter(number: int, groups: Sequence[Any], tenants: Sequence[UUID]) -> dict[str, Any]:
    group, at = groups[number * 31 % len(groups)], _before(number)
    return {
        "id": UUID(int=number + 1), "queue_id": group.queue_id, "tenant_id": tenants[number * 7 % len(tenants)],
        "group_id": group.pk, "state_changed_at": at, "letter_topic": "queue0.dlq", "letter_partition": 0,
        "letter_offset": number, "topic": "queue0.0", "partition": 0, "offset": number, "sent_at": at,
        "key": UUID(int=number * 2**64), "handler": "log", "consumer_group": "group",
        "reason": "retries_exhausted", "exception_class": "demo.Error", "fingerprint": group.fingerprint,
        "exception_message": f"sensor {number} is too hot", "attempts": 4, "first_failed_at": at, "failed_at": at,
    }  # fmt: skip


def _entry(number: int, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {
        "at": _before(number), "actor_name": f"person-{number % 100}", "tenant_id": tenants[number % len(tenants)],
        "action": "change", "object_type": "queue", "object_id": str(UUID(int=number)),
        "before": {"retries": number % 7}, "after": {"retries": number % 11},
    }  # fmt: skip


def _people(count: int, tenants: Sequence[UUID]) -> None:
    from django.contrib.auth.models import User

    from queueapi import models

    _save(User, ({"username": f"person-{number}"} for number in range(count)))
    users = list(User.objects.filter(username__startswith="person-").order_by("pk").values_list("pk", flat=True))
    role = {"role": "tenant_viewer"}
    _save(models.Account, ({"user_id": one, "tenant_id": tenants[one % len(tenants)], **role} for one in users))
    _save(
        models.ApiToken,
        (
            {
                "name": "deploy", "prefix": f"swy_{one:08x}", "digest": "", "scopes": ["queues:read"],
                "created_by_id": one, "tenant_id": tenants[one % len(tenants)], **role,
            }
            for one in users
        ),
    )  # fmt: skip


def _replay_items(replay: UUID) -> None:
    """The newest replay has ten thousand, or all letters there are."""
    from queueapi import models

    letters = models.DeadLetter.objects.order_by("-failed_at").values_list("pk", flat=True)[:10_000]
    rows = ({"replay_id": replay, "letter_id": one, "sequence": number} for number, one in enumerate(letters))
    _save(models.ReplayItem, rows)
