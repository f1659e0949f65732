"""The index of dead letters on the embedded stack: entering them, and looking at a million."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from queuecore.deadletter.envelope import FailureStory, to_letter
from queuecore.messages import TENANT_ID, Record
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.processes import run_together
from tests.benchmarks.workload import check_count

ENTERED = 50_000
LETTERS = 1_000_000

_QUEUES = 5
_TENANTS = 50
_ERRORS = 40
_AT_ONCE = 5_000
_NEWEST = datetime(2026, 1, 1, tzinfo=UTC)
_NEWEST_MS = int(_NEWEST.timestamp() * 1000)
_STACK_TRACE = "Traceback (most recent call last):\n" + '  File "handlers.py", line 7, in handle\n    work()\n' * 10


@contextmanager
def benchmarks(folder: Path) -> Iterator[Sequence[Benchmark]]:
    folder.mkdir(parents=True)
    run_together([partial(_filling, folder)])
    yield [
        Benchmark(
            subject=Measurement("letters entered", partial(_measure_entering, "index_letters")),
            peers=(Peer("objects saved in bulk, and nothing counted", partial(_measure_entering, "bulk_create"), 1.0),),
            unit="letters/s",
            goal=20_000,
        ),
        *(
            Benchmark(
                subject=Measurement(f"a million: {name}", partial(_measure_looking, folder, name)),
                peers=(Peer("counting them all", partial(_measure_looking, folder, "counting them all")),),
                unit="ms",
                goal=100,
                better="lower",
            )
            for name in ("slowest list", "slowest count", "groups")
        ),
    ]


def _measure_entering(how: str, folder: Path) -> float:
    [outcome] = run_together([partial(_entering, folder, how)])
    check_count(how, outcome.result, ENTERED)
    return ENTERED / (outcome.ended - outcome.started)


def _measure_looking(data: Path, what: str, _folder: Path) -> float:
    [outcome] = run_together([partial(_looking, data, what)])
    slowest_ms: float = outcome.result
    return slowest_ms


@contextmanager
def _entering(folder: Path, how: str) -> Iterator[Callable[[], int]]:
    """An empty installation, and letters as they come from their topics. The work is to enter them; how many."""
    queues, tenants = _installation(folder)
    packs = [
        [_letter(queues, tenants, number) for number in range(first, first + _AT_ONCE)]
        for first in range(0, ENTERED, _AT_ONCE)
    ]
    enter = {"index_letters": _index, "bulk_create": _save}[how]

    def work() -> int:
        for pack in packs:
            enter(pack)
        return _models().DeadLetter.objects.count()

    yield work


@contextmanager
def _filling(folder: Path) -> Iterator[Callable[[], int]]:
    """The work is to fill the tables with a million letters, without the bodies that no list reads."""
    queues, tenants = _installation(folder)

    def work() -> int:
        from django.db import transaction

        from queueapi.actions.letter_recount import recount_letters
        from queueapi.bulk import insert_rows

        groups = _groups(queues)
        for first in range(0, LETTERS, _AT_ONCE):
            rows = [_row(queues, tenants, groups, number) for number in range(first, first + _AT_ONCE)]
            with transaction.atomic():
                insert_rows(_models().DeadLetter, rows)
        recount_letters(mend=True)
        return LETTERS

    yield work


@contextmanager
def _looking(folder: Path, what: str) -> Iterator[Callable[[], float]]:
    """The work is to look at a million letters; how many milliseconds the slowest look of several took."""
    _open(folder)
    looks = _looks()[what]

    def work() -> float:
        return max(min(_took_ms(look) for _ in range(3)) for look in looks)

    yield work


def _looks() -> dict[str, list[Callable[[], object]]]:
    from queueapi.selectors.dead_letters import count_letters, letters_for_lists
    from queueapi.selectors.letter_groups import groups_for_lists, largest_open_groups, tenants_hit

    filters, models = _filters(), _models()
    return {
        "slowest list": [
            lambda wanted=wanted: list(letters_for_lists(wanted).order_by("-failed_at", "-id")[:25])
            for wanted in filters
        ],
        "slowest count": [lambda wanted=wanted: count_letters(wanted) for wanted in filters],
        "groups": [
            largest_open_groups,
            lambda: list(groups_for_lists()[:50]),
            lambda: tenants_hit(models.DeadLetterGroup.objects.order_by("-letters")[0]),
        ],
        "counting them all": [lambda: models.DeadLetter.objects.filter(state="open").count()],
    }


def _filters() -> list[Any]:
    """What people look for: what there is much of, little of and nothing of."""
    from queueapi.choices import LetterState
    from queueapi.selectors.letter_filter import LetterFilter

    models = _models()
    queue, tenant, group = (
        kind.objects.order_by("pk")[1].pk for kind in (models.Queue, models.Tenant, models.DeadLetterGroup)
    )
    recently = {"since": _NEWEST - timedelta(hours=2), "until": _NEWEST - timedelta(hours=1)}
    asked: list[dict[str, Any]] = [
        *({}, {"queue": queue}, {"tenant": tenant}, {"group": group}, {"queue": queue, "tenant": tenant}),
        *({"fingerprint": f"{1:016}"}, {"exception_class": "demo.Error1"}, recently, {"queue": queue, **recently}),
        *({"text": "too hot"}, {"text": "no such text"}, {"text": "no such text", "queue": queue}, {"reason": "none"}),
    ]
    states: tuple[LetterState | None, ...] = (None, LetterState.OPEN, LetterState.DISCARDED)
    return [LetterFilter(**one, state=state) for one in asked for state in states]


def _took_ms(look: Callable[[], object]) -> float:
    started = time.perf_counter()
    look()
    return (time.perf_counter() - started) * 1000


def _installation(folder: Path) -> tuple[list[UUID], list[UUID]]:
    """A new one in this folder. Its queues and tenants."""
    _open(folder)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    models = _models()
    tenants = [models.Tenant.objects.create(name=f"Tenant {number}") for number in range(_TENANTS)]
    queues = [
        models.Queue.objects.create(tenant=tenants[0], name=f"Queue{number}", topic=f"queue{number}", handler="log")
        for number in range(_QUEUES)
    ]
    return [queue.pk for queue in queues], [tenant.pk for tenant in tenants]


def _open(folder: Path) -> None:
    os.environ |= {"SWITCHYARD_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "console.settings"}
    import django

    django.setup()


def _models() -> Any:
    from queueapi import models

    return models


def _index(records: Sequence[Record]) -> None:
    from queueapi import runtime
    from queueapi.actions.letter_index import index_letters

    index_letters(records, runtime.provider().reader())


def _save(records: Sequence[Record]) -> None:
    """The obvious way: an object for each row."""
    from queueapi.actions.letter_rows import to_rows

    models = _models()
    rows = [to_rows(record, None) for record in records]  # type: ignore[arg-type]
    group, _ = models.DeadLetterGroup.objects.get_or_create(
        queue_id=rows[0].queue_id, fingerprint="", defaults={"first_seen": _NEWEST, "last_seen": _NEWEST}
    )
    models.DeadLetter.objects.bulk_create(
        models.DeadLetter(**row.letter, queue_id=row.queue_id, tenant_id=row.tenant_id, group=group) for row in rows
    )
    models.DeadLetterBody.objects.bulk_create(models.DeadLetterBody(**row.body) for row in rows)


def _letter(queues: Sequence[UUID], tenants: Sequence[UUID], number: int) -> Record:
    """One letter of the topic, as a queue that fails often has them."""
    tenant, at_ms = tenants[number * 7 % _TENANTS], _NEWEST_MS + number
    story = FailureStory(
        topic="queue0.0", partition=0, offset=number, timestamp_ms=at_ms, queue_id=str(queues[0]), group="group",
        handler="log", reason="retries_exhausted", exception_class="demo.Error", stack_trace=_STACK_TRACE,
        exception_message=f"sensor {number} is too hot", attempts=4, first_failed_at_ms=at_ms, failed_at_ms=at_ms,
        fingerprint=f"{number % _ERRORS:016}", tenant_id=str(tenant), service_id="worker-1",
    )  # fmt: skip
    headers = {TENANT_ID: str(tenant).encode(), "producerId": b"sensor"}
    message = to_letter(Record("queue0.0", 0, number, at_ms, UUID(int=number), headers, b"." * 100), story)
    return Record("queue0.dlq", 0, number, at_ms, message.key, message.headers, message.data)


def _groups(queues: Sequence[UUID]) -> list[Any]:
    groups = [
        {"queue_id": queue, "fingerprint": f"{error:016}", "exception_class": f"demo.Error{error}"}
        for queue in queues
        for error in range(_ERRORS)
    ]
    manager = _models().DeadLetterGroup.objects
    return [manager.create(first_seen=_NEWEST, last_seen=_NEWEST, exception_message="hot", **group) for group in groups]


def _row(queues: Sequence[UUID], tenants: Sequence[UUID], groups: Sequence[Any], number: int) -> dict[str, Any]:
    group = groups[number * 31 % len(groups)]
    at = _NEWEST - timedelta(milliseconds=20 * (LETTERS - number))
    return {
        "id": UUID(int=number), "queue_id": group.queue_id, "tenant_id": tenants[number * 7 % _TENANTS],
        "group_id": group.pk, "state_changed_at": at, "letter_topic": "queue0.dlq", "letter_partition": 0,
        "letter_offset": number, "topic": "queue0.0", "partition": 0, "offset": number, "sent_at": at,
        "key": UUID(int=number * 2**64), "handler": "log", "consumer_group": "group",
        "reason": "retries_exhausted", "exception_class": group.exception_class, "fingerprint": group.fingerprint,
        "exception_message": f"sensor {number} is too hot", "attempts": 4, "first_failed_at": at, "failed_at": at,
    }  # fmt: skip
