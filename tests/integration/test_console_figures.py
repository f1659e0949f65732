"""The pipeline's page, a queue's heat, how long requests wait, the map of partitions, and what the audit tells."""

import re
from datetime import UTC, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from console.move_flows import MOST_PAIRS, draw_moves
from console.partition_maps import MOST_COLUMNS, draw_map
from console.request_charts import time_bars
from console.request_limits import RequestLimits
from queueapi.actions.actor import SYSTEM
from queueapi.actions.pipeline import record_pipeline_failure, record_pipeline_success
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.cluster.models import Partition, ServiceInstance
from queueapi.models import AuditEntry, IsolationRequest, Operation, PartitionHeat, PipelineRun, Queue, QueueSkew
from queueapi.selectors.partition_map import OwnedCell, PartitionMap, QueueOwners, partition_map
from queuecore.cluster.services import Move
from tests.alerts import make_alert
from tests.letters import make_letter
from tests.stored_events import store_events
from workers.spark.errors import PipelineFailed

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Queue:
    tenant = ensure_system_tenant()
    return Queue.objects.create(tenant=tenant, name="Main", topic="main", handler="log", partitions=4)


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_pipeline_tells_its_runs_and_how_far_it_is_behind(admin_client) -> None:
    assert "It has not run yet" in text(admin_client.get(reverse("pipeline")))
    now = timezone.now()
    times = {
        "started_at": now - timedelta(seconds=4),
        "finished_at": now,
        "newest_event_at": now - timedelta(seconds=9),
    }
    PipelineRun.objects.create(query="events", batch_id=7, events=1_200, rows=340, **times)
    record_pipeline_success(now, 4.0, 25)
    page = text(admin_client.get(reverse("pipeline")))
    for told in ("1,200", "340", "4 s", "9 s", "25"):
        assert told in page
    assert reverse("pipeline") in text(admin_client.get(reverse("overview")))


def test_the_pipeline_tells_why_it_failed(admin_client) -> None:
    record_pipeline_failure(timezone.now(), 1.0, PipelineFailed("the disk is full; make room"))
    page = text(admin_client.get(reverse("pipeline")))
    assert "the disk is full; make room" in page
    assert "pipeline_failed" in page


@pytest.mark.parametrize("page", ["usage", "tenant", "dead_letter_groups", "dead_letters", "alerts", "alert"])
def test_pages_of_what_the_pipeline_counts_say_how_old_that_is(admin_client, queue, page) -> None:
    letter, alert, tenant = make_letter(queue), make_alert(queue), create_tenant(SYSTEM, "Greenhouse")
    named = {"tenant": tenant.pk, "alert": alert.pk}
    address = reverse(page, args=[named[page]] if page in named else [])
    at = timezone.now() - timedelta(minutes=4)
    PipelineRun.objects.create(query="events", batch_id=1, events=1, newest_event_at=at, started_at=at, finished_at=at)
    assert "Figures are 4 min old: the pipeline does not run" in text(
        admin_client.get(address, {"group": letter.group_id} if page == "dead_letters" else {})
    )


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ({"first": "2000-01-01"}, "kept no more"),
        ({"first": "2100-01-01"}, "yet to come"),
        ({"first": "x"}, "valid date"),
    ],
)
def test_days_that_cannot_be_made_anew_are_refused(admin_client, days, told) -> None:
    assert told in text(admin_client.get(reverse("backfill"), days))
    assert told in text(admin_client.post(reverse("backfill"), days))
    assert not Operation.objects.exists()


def test_heat_shows_hot_partitions_entities_tenants_and_what_would_help(admin_client, queue) -> None:
    assert "Nothing was counted yet" in text(admin_client.get(reverse("queue_heat", args=[queue.pk])))
    tenant, now = create_tenant(SYSTEM, "Noisy"), timezone.now()
    named = {"tenant_id": str(tenant.pk), "messages": 70}
    for number, share in enumerate((0.7, 0.1, 0.1, 0.1)):
        PartitionHeat.objects.create(
            queue=queue, partition=number, messages=int(share * 100), share=share, is_hot=share > 0.5, as_of=now,
            entities=[{"key": "sensor-1", "is_uuid": False, **named}] if share > 0.5 else [],
            tenants=[named] if share > 0.5 else [],
        )  # fmt: skip
    QueueSkew.objects.create(queue=queue, skew=2.8, entities_seen=12, as_of=now)
    answer = admin_client.get(reverse("queue_heat", args=[queue.pk]))
    assert [cell.level for cell in answer.context["heat"].cells] == [5, 1, 1, 1]
    page = text(answer)
    for told in ("2.80", "sensor-1", "Noisy", "0: 70 %"):
        assert told in page


def test_what_would_change_the_heat_is_compared_with_what_the_same_entities_do_now(admin_client, queue) -> None:
    """By what the fullest partition has of their messages: twice as many partitions under one hot entity help nobody,
    however uneven they are."""
    even_more, one_entity, present, worse = (
        {"partitions": 8, "hash_function": "murmur3_128", "skew": 1.6, "moved": 0.5},
        {"partitions": 8, "hash_function": "sha256", "skew": 4.0, "moved": 0.5},
        {"partitions": 4, "hash_function": "murmur3_128", "skew": 2.0, "moved": 0.0},
        {"partitions": 4, "hash_function": "fnv1a", "skew": 2.7, "moved": 0.8},
    )
    skew = QueueSkew.objects.create(queue=queue, skew=3.5, entities_seen=12, as_of=timezone.now())

    def verdicts(*what_if: dict[str, Any]) -> list[tuple[float, bool, bool | None]]:
        QueueSkew.objects.filter(pk=skew.pk).update(what_if=list(what_if))
        found = admin_client.get(reverse("queue_heat", args=[queue.pk])).context["heat"].what_if
        return [(one.fullest, one.is_present, one.is_better) for one in found]

    assert verdicts(even_more, one_entity, present, worse) == [
        (0.2, False, True),
        (0.5, False, False),
        (0.5, True, False),
        (0.675, False, False),
    ]
    page = admin_client.get(reverse("queue_heat", args=[queue.pk])).content.decode()
    told = re.findall(r">(better|now|no better)</span>", page)
    assert told == ["better", "no better", "now", "no better"]
    # Computed before the queue was resized.
    assert verdicts(even_more, worse) == [(0.2, False, None), (0.675, False, None)]


def test_how_long_requests_wait_is_counted_by_their_age() -> None:
    limits = RequestLimits(pending=8_000, timed_out=100, lag_ms=5_000)
    bars = time_bars([0] * 5 + [4, 0, 0, 12] + [0] * 3 + [3] + [0] * 3, limits)
    assert [(bar.label, bar.count, bar.is_beyond) for bar in bars if bar.count] == [
        ("up to 50 ms", 4, False),
        ("up to 500 ms", 12, False),
        ("up to 10 s", 3, True),
    ]
    assert [bar.share for bar in bars if bar.count] == [4 / 12, 1, 3 / 12]
    assert (len(bars), time_bars([0] * 16, limits)) == (8, [])


def own(queue: Queue, number: int, owner: str | None, target: str | None) -> None:
    name = queue.partition_info(number).full_topic_name
    told = {"service_type": queue.service_type, "queue": queue.name, "tenant": queue.tenant_id}
    epoch = number + 1 if owner else 0
    Partition.objects.create(name=name, number=number, owner=owner, target=target, epoch=epoch, **told)


def test_the_map_shows_who_has_what_moves_and_is_nobodys(admin_client, queue) -> None:
    for number, owners in enumerate((("a", "a"), ("a", "a"), ("b", "a"), (None, "b"))):
        own(queue, number, *owners)
    for name in ("a", "b"):
        _service(name)
    seen = partition_map([queue])
    assert seen.owners == ["a", "b", None]
    assert seen.queues[0].owners == {"a": OwnedCell(2, 0), "b": OwnedCell(1, 1), None: OwnedCell(1, 1)}
    page = text(admin_client.get(reverse("partition_map")))
    assert "Main: a has 2 of 4 partitions" in page
    assert "Main: b has 1 of 4 partitions, 1 of them on their way to another" in page
    assert "Main: nobody has 1 of 4 partitions" in page
    for owner, partitions in (("a", 2), ("b", 1), ("-", 1)):
        asked = f"{reverse('partitions')}?queue={queue.pk}&owner={owner}"
        assert asked.replace("&", "&amp;") in page
        assert admin_client.get(asked).context["page"].paginator.count == partitions


def test_the_map_tells_queues_of_one_name_apart(admin_client, queue) -> None:
    acme = create_tenant(SYSTEM, "Acme")
    theirs = Queue.objects.create(tenant=acme, name="Main", topic="main", handler="log", partitions=4)
    for epoch, whose in enumerate((queue, queue, theirs)):
        own(whose, epoch, "a", "a")
    page = text(admin_client.get(reverse("partition_map")))
    assert "Main: a has 2 of 4 partitions" in page
    assert "Main of Acme: a has 1 of 4 partitions" in page
    for asked, partitions in (({"queue": queue.pk}, 2), ({"queue": theirs.pk}, 1), ({"tenant": acme.pk}, 1), ({}, 3)):
        shown = admin_client.get(reverse("partitions"), asked).context["page"]
        assert shown.paginator.count == partitions, asked
    assert "Several tenants have a queue of that name" in text(
        admin_client.get(reverse("partitions"), {"queue": "Main"})
    )


def _service(name: str) -> None:
    now = timezone.now()
    times = {"started_at": now, "heartbeat_at": now, "lease_expires_at": now + timedelta(hours=1)}
    ServiceInstance.objects.create(service_id=name, incarnation="1", service_types=[], host="h", pid=1, **times)


def test_of_very_many_services_the_last_are_drawn_as_one(queue) -> None:
    owners: list[str | None] = [f"service-{number:03}" for number in range(MOST_COLUMNS + 30)]
    drawn = draw_map(PartitionMap([QueueOwners(queue, {owner: OwnedCell(1) for owner in owners})], owners))
    assert drawn.left_out == 30
    assert len(drawn.columns) == len(drawn.cells) == MOST_COLUMNS + 1
    assert "others has 30 of 4 partitions" in drawn.cells[-1].told


def test_moves_are_drawn_by_who_gives_and_who_gets() -> None:
    assert draw_moves([]) is None
    moves = [Move(f"p.{number}", "a", "b" if number % 3 else "c") for number in range(6)]
    flow = draw_moves(moves)
    assert flow is not None
    assert [place.text for place in flow.sources] == ["a gives 6"]
    assert [place.text for place in flow.targets] == ["b gets 4", "c gets 2"]
    assert [line.width for line in flow.lines] == ["14.0", "7.0"]
    placed = draw_moves(moves, {"c": 1})
    assert placed is not None
    assert [place.text for place in placed.sources] == ["nobody's: 1", "a gives 6"]
    assert placed.lines[-1].told == "1 partition that nobody has goes to c"
    many = draw_moves([Move(f"p.{number}", f"s{number}", "b") for number in range(MOST_PAIRS + 5)])
    assert many is not None
    assert many.left_out == 5


def test_the_audit_tells_what_changed_and_finds_it(admin_client) -> None:
    for number, name in enumerate(("ada", "grace")):
        AuditEntry.objects.create(
            actor_name=name, action="change", object_type="queue", object_id=f"q-{number}",
            before={"retries": 3, "handler": "log"}, after={"retries": number + 4, "handler": "log"},
        )  # fmt: skip

    def found(**asked: str) -> list[str]:
        rows = admin_client.get(reverse("audit"), asked).context["page"].object_list
        return [row.entry.actor_name for row in rows if row.entry.action == "change"]

    assert found() == ["grace", "ada"]
    assert found(actor="ada") == found(actor="AD") == found(target="q-0") == ["ada"]
    assert found(q='"retries": 5') == ["grace"]
    assert found(since="2100-01-01T00:00") == []
    [change] = admin_client.get(reverse("audit"), {"actor": "ada"}).context["page"].object_list[0].changes
    assert (change.what, change.before, change.after) == ("retries", "3", "4")


def test_the_audit_calls_what_has_no_name_by_what_it_is_of(admin_client, installation) -> None:
    letter = make_letter(installation.queue)
    replay = start_replay(SYSTEM, [letter.pk])
    request = IsolationRequest.objects.create(
        tenant=installation.tenant, queues=[{"name": "Telemetry"}], reason="bursts", requested_by_name="ada"
    )
    for kind, pk in (
        ("dead_letter", letter.pk),
        ("dead_letter_group", letter.group_id),
        ("isolation_request", request.pk),
        ("replay", replay.pk),
    ):
        AuditEntry.objects.create(actor_name="ada", action="note", object_type=kind, object_id=str(pk))
    page = text(admin_client.get(reverse("audit"), {"actor": "ada"}))
    for pk, name in (
        (letter.pk, letter.exception_class),
        (letter.group_id, letter.exception_class),
        (request.pk, installation.tenant.name),
        (replay.pk, replay.operation.summary),
    ):
        assert f'title="{pk}">{name}<' in page
    assert f'href="{reverse("dead_letter", args=[letter.pk])}"' in page
    assert f'href="{reverse("dead_letters")}?group={letter.group_id}"' in page
    assert f'href="{reverse("operation", args=[replay.operation_id])}"' in page


def test_the_audit_names_what_values_only_have_the_id_of(admin_client, queue) -> None:
    told = {"actor_name": "ada", "action": "change", "object_type": "alert_rule", "object_id": str(uuid4())}
    gone = str(uuid4())
    AuditEntry.objects.create(**told, before={"tenant": gone}, after={"tenant": str(queue.tenant_id)})
    [audited] = admin_client.get(reverse("audit"), {"actor": "ada"}).context["page"].object_list
    [change] = audited.changes
    assert (change.before, change.after) == (gone, f"{queue.tenant.name} ({queue.tenant_id})")


@pytest.mark.parametrize("kind", ["silence", "token", "rebalance"])
def test_the_audit_leads_to_what_is_told_in_a_list(admin_client, kind) -> None:
    AuditEntry.objects.create(actor_name="ada", action="create", object_type=kind, object_id=str(uuid4()))
    page = text(admin_client.get(reverse("audit"), {"actor": "ada"}))
    assert f'<td><span class="quiet">{kind}</span> <a href="{reverse(kind + "s")}' in page


def test_days_are_made_anew_by_their_plan(admin_client, installation) -> None:
    day = timezone.now().astimezone(UTC).date()
    store_events(day, 5)
    page = text(admin_client.get(reverse("backfill"), {"first": day.isoformat()}))
    assert f"Make summaries anew of {day}" in page
    assert "made anew of 5 events in 1 files" in page
    started = admin_client.post(reverse("backfill"), {"first": day.isoformat(), "last": day.isoformat()})
    operation = Operation.objects.get(kind="backfill")
    assert started.headers["Location"] == reverse("operation", args=[operation.pk])
    assert operation.params == {"first": day.isoformat(), "last": day.isoformat()}
    assert reverse("operation", args=[operation.pk]) in text(admin_client.get(reverse("pipeline")))
