"""A large installation in database files: made once by statements for many rows, and kept for the next run."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.benchmarks import rest_row_kinds as kinds
from tests.benchmarks.processes import run_together
from tests.benchmarks.rest_bulk import as_usual, earlier, insert, multiply, quickly, save
from tests.benchmarks.rest_provider import fill_provider

# A quick look: BENCH_REST_SCALE=0.01.
SCALE: Final = float(os.environ.get("BENCH_REST_SCALE", 1))
SMALL: Final = 0.001

TENANTS: Final = 1_000
QUEUES: Final = 10_000
LETTERS: Final = 1_000_000
ENTRIES: Final = 1_000_000
# What nobody said how many there are of: people, tokens, operations, replays, rebalances, alerts and silences.
OTHERS: Final = 10_000
# Of what people write by hand: profiles, message types, rules, channels.
WRITTEN: Final = 1_000
# Of usage.
DAYS: Final = 90

MADE: Final = "made"


def installation(folder: Path, scale: float) -> Path:
    """The data folder of one of this size; one that was made by an older version of this code is made anew."""
    data, version = folder / f"rest-{scale:g}", _version()
    made = data / MADE
    if not made.exists() or made.read_text() != version:
        shutil.rmtree(data, ignore_errors=True)
        run_together([partial(_making, data, scale)])
        made.write_text(version)
    return data


def open_django(data: Path) -> None:
    """In a process of its own."""
    os.environ |= {"SWITCHYARD_DATA_DIR": str(data), "DJANGO_SETTINGS_MODULE": "console.settings"}
    import django

    django.setup()


def _version() -> str:
    """Of what makes the rows."""
    from hashlib import sha256

    own = sorted(Path(__file__).parent.glob("rest_*.py"))
    return sha256(b"".join(one.read_bytes() for one in own if one.stem != "rest_lists")).hexdigest()


@contextmanager
def _making(data: Path, scale: float) -> Iterator[Callable[[], None]]:
    data.mkdir(parents=True)
    open_django(data)

    def work() -> None:
        from queueapi.bootstrap import bootstrap

        bootstrap("correct horse battery")
        quickly()
        _fill(data, lambda count: max(3, round(count * scale)))
        as_usual()

    yield work


def _fill(data: Path, many: Callable[[int], int]) -> None:
    from queueapi import models
    from queueapi.cluster import models as cluster
    from queuecore.topics import SYSTEM_TENANT

    tenants, queues, others = kinds.ids(many(TENANTS)), kinds.ids(many(QUEUES)), kinds.ids(many(OTHERS))
    written = kinds.ids(many(WRITTEN))
    save(models.TenantProfile, ({"id": one, "name": f"Profile {one.int}"} for one in written))
    save(models.Tenant, ({"id": one, "name": f"Tenant {number}"} for number, one in enumerate(tenants)))
    save(models.Queue, (kinds.queue(one, number, tenants) for number, one in enumerate(queues)))
    paused = {"reason": "billing is away", "paused_by": "ada"}
    save(models.Pause, ({"queue_id": one, **paused} for one in queues[::10]))
    rows = list(models.Queue.objects.exclude(tenant_id=SYSTEM_TENANT).order_by("pk"))
    insert(models.LagCurrent, (kinds.lag(queue, info) for queue in rows for info in queue.partition_infos()))
    insert(models.RequestCurrent, (kinds.requests(number, "as_of") for number in range(kinds.SERVICES)))
    insert(models.RequestStats, (kinds.requests(number, "at") for number in range(len(others))))
    insert(models.TenantUsageDay, (kinds.usage(one, day) for one in tenants for day in range(DAYS)))
    places = (info for queue in rows for info in queue.partition_infos())
    save(cluster.Partition, (kinds.partition(*one) for one in enumerate(places)))
    save(cluster.ServiceInstance, map(kinds.service, range(kinds.SERVICES)))
    save(cluster.Rebalance, map(kinds.rebalance, others))
    save(models.ConsumerStanding, (kinds.consumer(queues[0], number) for number in range(kinds.SERVICES)))
    _people(len(others), tenants)
    save(models.IsolationRequest, (kinds.isolation(one, tenants) for one in others))
    save(models.IsolationComment, ({"request_id": one, "author_name": "ada", "text": "why?"} for one in others))
    save(models.MessageType, ({"id": one, "name": f"order{one.int}", "message": "shop.Order"} for one in written))
    save(models.MessageTypeTopic, ({"topic": f"orders{one.int}", "message_type_id": one} for one in written))
    save(models.Operation, (kinds.operation(one, tenants) for one in others))
    save(models.Replay, ({"id": one, "operation_id": one, "is_collected": True} for one in others))
    save(models.QuarantinedLetter, (kinds.quarantined(one.int, queues) for one in others))
    save(models.DeadLetterGroup, (kinds.group(number, one) for number, one in enumerate(queues)))
    _alerts(others, written, queues)
    _letters(many(LETTERS), tenants)
    _entries(many(ENTRIES), tenants)
    _replay_items(others[0])
    fill_provider(data, rows)


def _letters(count: int, tenants: Sequence[UUID]) -> None:
    from queueapi import models

    groups = list(models.DeadLetterGroup.objects.order_by("pk"))
    times = ("state_changed_at", "sent_at", "first_failed_at", "failed_at")
    changed = {
        "id": "printf('%%032x', {number} + 1)",
        "key": "printf('%%016x', {number}) || '0000000000000000'",
        "letter_offset": "{number}",
        "offset": "{number}",
        **{name: earlier(name, kinds.STEP_MS) for name in times},
    }
    multiply(models.DeadLetter, count, QUEUES, lambda number: kinds.letter(number, groups, tenants), changed)


def _entries(count: int, tenants: Sequence[UUID]) -> None:
    from queueapi.models import AuditEntry

    object_id = "'00000000-0000-0000-0000-' || printf('%%012x', {number})"
    changed = {"at": earlier("at", kinds.STEP_MS), "object_id": object_id}
    multiply(AuditEntry, count, QUEUES, lambda number: kinds.entry(number, tenants), changed)


def _alerts(others: Sequence[UUID], written: Sequence[UUID], queues: Sequence[UUID]) -> None:
    from queueapi import models

    save(models.AlertChannel, map(kinds.channel, written))
    save(models.AlertRule, (kinds.rule(one, queues) for one in written))
    save(models.AlertRule.channels.through, ({"alertrule_id": one, "alertchannel_id": one} for one in written))
    save(models.Alert, (kinds.alert(one, written, queues) for one in others))
    save(models.AlertDelivery, (kinds.delivery(one, written[0]) for one in others))
    told = {"channel_id": written[0], "kind": "fired", "told": {}}
    save(models.AlertNotice, ({"delivery_id": one, "alert_id": one, **told} for one in others))
    save(models.Silence, (kinds.silence(one, queues) for one in others))


def _people(count: int, tenants: Sequence[UUID]) -> None:
    from django.contrib.auth.models import User

    from queueapi import models

    save(User, ({"username": f"person-{number}"} for number in range(count)))
    users = list(User.objects.filter(username__startswith="person-").order_by("pk").values_list("pk", flat=True))
    save(models.Account, (kinds.account(one, tenants) for one in users))
    save(models.ApiToken, (kinds.token(one, tenants) for one in users))


def _replay_items(replay: UUID) -> None:
    """The newest replay has ten thousand, or all letters there are."""
    from queueapi import models

    letters = models.DeadLetter.objects.order_by("-failed_at").values_list("pk", flat=True)[:10_000]
    rows: Iterator[dict[str, Any]] = (
        {"replay_id": replay, "letter_id": one, "sequence": number} for number, one in enumerate(letters)
    )
    save(models.ReplayItem, rows)
