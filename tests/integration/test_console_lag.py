"""The console tells how far queues are behind, why, and how they were."""

import csv
import io
import re
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queues import change_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import LagStatus, RebalanceState, Role
from queueapi.cluster.models import Partition, Rebalance
from queueapi.models import (
    LagCurrent,
    LagMinute,
    Pause,
    PipelineRun,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    Queue,
    RequestCurrent,
    RequestHour,
    RequestStats,
)
from queueapi.selectors.lag import queue_lags
from queueapi.selectors.queue_partitions import lag_of, partitions_of
from queueapi.selectors.queue_rows import worst_queues
from tests.letters import make_letter
from tests.people import person

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"
# Of the database that tests run on; what is asked of the cluster's comes on top of it.
MOST_QUERIES = 15
STOPPED = "STOP: no commit for 4 min; commits came every 5 s"


def ago(**length: float) -> datetime:
    return timezone.now() - timedelta(**length)


def make_queue(name: str, **fields: Any) -> Queue:
    return Queue.objects.create(
        **{"tenant": ensure_system_tenant(), "name": name, "topic": name.lower(), "handler": "log", **fields}
    )


def make_lag(queue: Queue, lag: int, *, partition: int = 0, **fields: Any) -> LagCurrent:
    told = {"topic": f"{queue.topic}.{partition}", "consumer_group": "g", "end_offset": 10_000, "as_of": ago(seconds=3)}
    figures = {"lag_seconds": lag / 10, "produced_per_s": 5.0, "consumed_per_s": 4.0, "trend_per_s": 1.0}
    return LagCurrent.objects.create(
        queue=queue, partition=partition, lag_messages=lag, **{**told, **figures, "reason": "OK: it keeps up", **fields}
    )


def make_run() -> PipelineRun:
    at = ago(seconds=6)
    return PipelineRun.objects.create(
        query="lag", batch_id=1, events=5, newest_event_at=at, started_at=at, finished_at=at
    )


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


def text_of(response: HttpResponse) -> str:
    """What a person reads, on one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


# The list


@pytest.fixture
def three(browser: Client) -> dict[str, Queue]:
    """One that is well, one that stopped, one of which nothing is known."""
    queues = {name: make_queue(name, partitions=2) for name in ("Well", "Stopped", "New")}
    make_lag(queues["Well"], 20, drain_eta_s=90.0)
    make_lag(queues["Stopped"], 900, status=LagStatus.STOP, reason=STOPPED, status_since=ago(minutes=4))
    make_lag(queues["Stopped"], 100, partition=1, status=LagStatus.WARN, reason="WARN: it falls behind")
    make_run()
    return queues


def listed(browser: Client, **asked: str) -> list[str]:
    page = browser.get(reverse("queues"), asked).content.decode()
    return re.findall(r'id="queue-[^"]+" href="[^"]+">([^<]+)</a>', page)


def test_each_queue_has_a_status_with_its_reason(browser, three) -> None:
    shown = text_of(browser.get(reverse("queues")))
    assert "No commit for 4 min; commits came every 5 s" in shown
    assert "no sample yet" in shown
    assert re.search(r"Stopped No commit .* STOP .* 1,000 1 min 30 s 10\.0/s 8\.0/s growing 2 0", shown)
    assert re.search(r"Well System OK .* 20 2 s 5\.0/s 4\.0/s in 1 min 30 s 2 0", shown)


@pytest.mark.parametrize("status", [LagStatus.OK, LagStatus.WARN])
def test_growing_stands_out_where_it_is_trouble(browser, status) -> None:
    make_lag(make_queue("Orders"), 2, status=status, trend_per_s=0.1)
    page = browser.get(reverse("queues")).content.decode()
    assert ">growing<" in page
    assert ('<span class="text-warn">growing<' in page) == (status == LagStatus.WARN)


def test_queues_are_narrowed_to_a_status_as_a_whole(browser, three) -> None:
    assert listed(browser, status="stop") == ["Stopped"]
    assert listed(browser, status="warn") == []
    assert listed(browser, status="ok") == ["Well"]
    tabs = text_of(browser.get(reverse("queues"), {"status": "stop"}))
    assert "All 3 OK 1 WARN 0 STOP 1 STALL 0 REWIND 0" in tabs


def test_queues_are_sorted_by_what_is_measured(browser, three) -> None:
    assert listed(browser, sort="-status") == ["Stopped", "Well", "New"]
    assert listed(browser, sort="-seconds") == ["Stopped", "Well", "New"]
    assert listed(browser, sort="lag") == ["Well", "Stopped", "New"]
    assert listed(browser, sort="-produced")[0] == "Stopped"
    assert set(listed(browser, sort="-letters")) == {"New", "Stopped", "Well"}


def test_queues_are_narrowed_to_those_paused(browser, three) -> None:
    pause_queue(SYSTEM, three["Well"], partition=1, reason="poison")
    assert listed(browser, state="paused") == ["Well"]
    assert listed(browser, state="draining") == []
    assert "Partly paused" in text_of(browser.get(reverse("queues")))


def test_old_figures_accuse_nobody(browser) -> None:
    make_lag(make_queue("Old"), 900, status=LagStatus.STOP, reason=STOPPED, as_of=ago(minutes=5))
    shown = text_of(browser.get(reverse("queues")))
    assert "Not known now" in shown
    assert "No commit for 4 min" not in shown


@pytest.fixture
def silent(three) -> None:
    """No more samples of the queue that is well, nor of the partition that stopped."""
    gone = LagCurrent.objects.filter(queue=three["Well"]) | LagCurrent.objects.filter(status=LagStatus.STOP)
    gone.update(as_of=ago(minutes=5))


def test_queues_are_counted_by_partitions_that_are_sampled(browser, three, silent) -> None:
    shown = text_of(browser.get(reverse("queues")))
    assert "All 3 OK 0 WARN 1 STOP 0 STALL 0 REWIND 0" in shown
    assert re.search(r"Stopped It falls behind .* WARN .* 100 10 s 5\.0/s", shown)
    assert re.search(r"Well System Not known now 20 2 s", shown)
    assert (listed(browser, status="stop"), listed(browser, status="ok")) == ([], [])
    assert listed(browser, status="warn") == ["Stopped"]
    assert listed(browser, sort="-lag")[0] == "Stopped"


def test_the_overview_adds_up_what_is_sampled(browser, three, silent) -> None:
    shown = text_of(browser.get(reverse("overview")))
    assert "100 messages worst in Stopped : 10 s behind" in shown
    assert "Stopped: WARN: it falls behind." in shown
    assert [row.lag.queue.name for row in browser.get(reverse("overview")).context["seen"].queues] == ["Stopped"]


def test_a_queues_page_says_what_its_lag_is_without(browser, three, silent) -> None:
    stopped = text_of(browser.get(reverse("queue", args=[three["Stopped"].pk])))
    assert "WARN It falls behind ." in stopped
    assert re.search(r"100 messages as of [^;]+; without 1 partition that is not sampled", stopped)
    assert re.search(r"0 Not known now nobody", stopped)
    well = text_of(browser.get(reverse("queue", args=[three["Well"].pk])))
    assert "was 20 messages 5 min ago" in well


def test_the_list_as_csv_keeps_its_filters(browser, three) -> None:
    three["Stopped"].pauses.create(reason="x", paused_by="ada", partition=1)
    Queue.objects.filter(pk=three["Well"].pk).update(name="=1+1")
    answer = browser.get(reverse("export_queues"))
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert {row["queue"] for row in rows} == {"'=1+1", "New", "Stopped"}
    [stopped] = [row for row in rows if row["queue"] == "Stopped"]
    assert (stopped["status"], stopped["lag_messages"], stopped["paused"]) == ("stop", "1000", "partition 1")
    assert stopped["reason"] == "no commit for 4 min; commits came every 5 s"
    narrowed = b"".join(browser.get(reverse("export_queues"), {"status": "stop"}).streaming_content).decode()
    assert len(narrowed.splitlines()) == 2


# Pausing several


def test_several_queues_are_paused_after_the_plan(browser, three) -> None:
    chosen = [str(three[name].pk) for name in ("Well", "New")]
    pause_queue(SYSTEM, three["New"], reason="before")
    plan = text_of(browser.post(reverse("pause_queues"), {"queue": chosen, "back": "?sort=-lag"}))
    assert "1 queue would be paused" in plan
    assert "Left out, as paused already: New." in plan
    assert Pause.objects.count() == 1

    typed = {"queue": chosen, "confirm": "yes", "back": "?sort=-lag", "reason": "moving billing"}
    assert browser.post(reverse("pause_queues"), typed).headers["Location"] == f"{reverse('queues')}?sort=-lag"
    assert three["Well"].pauses.get().reason == "moving billing"
    assert three["New"].pauses.get().reason == "before"


def test_a_pause_needs_a_reason(browser, three) -> None:
    typed = {"queue": [str(three["Well"].pk)], "confirm": "yes", "reason": " "}
    assert "This field is required." in text_of(browser.post(reverse("pause_queues"), typed))
    assert not Pause.objects.exists()


def test_several_queues_are_resumed_and_what_holds_on_is_told(browser, three) -> None:
    pause_queue(SYSTEM, three["Well"], reason="x")
    pause_queue(SYSTEM, three["Well"], partition=1, reason="poison")
    chosen = [str(three["Well"].pk), str(three["New"].pk), "nonsense", str(uuid4())]
    plan = text_of(browser.post(reverse("resume_queues"), {"queue": chosen}))
    assert "1 queue would be resumed" in plan
    assert "1 pause of a tenant or a partition holds on" in plan
    assert "1 queue is no longer there." in plan
    browser.post(reverse("resume_queues"), {"queue": chosen, "confirm": "yes"})
    assert [pause.partition for pause in Pause.objects.all()] == [1]
    assert "Nothing would be resumed" in text_of(browser.post(reverse("resume_queues"), {"queue": chosen}))


def test_who_only_looks_pauses_nothing(client, three) -> None:
    client.force_login(person("eve", Role.AUDITOR))
    for name in ("pause_queues", "resume_queues"):
        answer = client.post(reverse(name), {"queue": [str(three["Well"].pk)], "confirm": "yes", "reason": "x"})
        assert answer.status_code == 403
    assert not Pause.objects.exists()


# The overview


def test_the_overview_names_the_worst_with_reason_and_way_there(browser, three) -> None:
    for minute in range(5):
        LagMinute.objects.create(queue=three["Stopped"], at=this_minute() - timedelta(minutes=minute), lag_messages=700)
    answer = browser.get(reverse("overview"))
    page, shown = answer.content.decode(), text_of(answer)
    assert shown.index("Stopped") < shown.index("Well")
    assert "Stopped: STOP for 4 min: no commit for 4 min; commits came every 5 s." in shown
    assert page.count(f'href="{reverse("queue", args=[three["Stopped"].pk])}#why"') >= 2
    assert "worst in Stopped : 1 min 30 s behind" in shown
    assert 'aria-label="Last hour: 700 to 700 messages, now 700"' in page
    assert "All 3 queues" in shown


def test_the_overview_says_whose_queue_is_in_trouble_and_since_when(browser) -> None:
    own = make_queue("Main", tenant=create_tenant(SYSTEM, "Acme"))
    make_lag(own, 900, status=LagStatus.STOP, reason=STOPPED, status_since=ago(minutes=4))
    make_lag(make_queue("Main", topic="shared"), 5)
    make_run()
    pause_queue(SYSTEM, own, reason="billing is away")
    for _ in range(2):
        make_letter(own, failed_at=ago(hours=3))
    make_letter(own, failed_at=ago(minutes=2), fingerprint="another", exception_class="zoo.NoSuchAnimal")
    shown = text_of(browser.get(reverse("overview")))
    assert "Main of Acme: STOP for 4 min: no commit for 4 min; commits came every 5 s." in shown
    assert "Main of Acme: everything was paused by" in shown
    assert "worst in Main of Acme : 1 min 30 s behind" in shown
    ages = "the oldest from 3 h ago, the newest from 2 min ago"
    assert f"3 open dead letters wait for a decision, {ages}: 2 with OutOfRange in Main of Acme, of 1 tenant." in shown
    assert re.search(r"Main of Acme No commit .* STOP : no commit .* 4 min ago 1 min 30 s 900", shown)


def test_trouble_comes_before_any_lag_and_what_nobody_knows_last() -> None:
    queues = {name: make_queue(name, partitions=2) for name in ("Well", "Troubled", "Worse", "Unknown", "Empty")}
    make_lag(queues["Unknown"], 5, lag_seconds=None)
    make_lag(queues["Well"], 9_000)
    make_lag(queues["Troubled"], 10, status=LagStatus.WARN)
    make_lag(queues["Troubled"], 10, partition=1, status=LagStatus.STALL, lag_seconds=None)
    make_lag(queues["Worse"], 20, status=LagStatus.WARN)
    make_lag(queues["Empty"], 0, status=LagStatus.STOP)
    assert [queue.name for queue in worst_queues(9)] == ["Worse", "Troubled", "Well", "Unknown"]
    assert [queue.name for queue in worst_queues(2)] == ["Worse", "Troubled"]


def test_the_worst_queues_are_found_by_one_query(django_assert_num_queries) -> None:
    make_lag(make_queue("Well"), 20)
    with django_assert_num_queries(1):
        worst_queues(9)


def test_the_overview_tells_that_nothing_waits(browser) -> None:
    make_lag(make_queue("Idle"), 0)
    make_run()
    assert "Nothing waits" in text_of(browser.get(reverse("overview")))


def test_of_old_figures_nothing_is_concluded(browser) -> None:
    make_lag(make_queue("Idle"), 0, as_of=ago(minutes=5))
    PipelineRun.objects.update(newest_event_at=make_run().newest_event_at - timedelta(minutes=5))
    shown = text_of(browser.get(reverse("overview")))
    assert "What waits is not known now: the figures are old." in shown
    assert "Nothing waits" not in shown


def test_the_overview_tells_of_requests_beyond_their_limits(browser, three) -> None:
    make_requests(pending=9_000, timed_out=3, lag_p99_ms=80.0)
    shown = text_of(browser.get(reverse("overview")))
    assert "Requests between services: 9,000 are pending. See which" in shown
    assert "9,000 pending 3 timed out in a minute" in shown


# A queue's page


def this_minute() -> datetime:
    return timezone.now().replace(second=0, microsecond=0)


def test_what_waits_in_one_partition_is_not_told_of_the_whole_queue(browser, three) -> None:
    queue = three["Well"]
    make_lag(queue, 1, partition=1, reason="OK: 1 waiting, 2 s behind", lag_seconds=9.0)
    told = "1 waiting, 2 s behind in partition 1"
    assert f"{told}, which does worst." in text_of(browser.get(reverse("queue", args=[queue.pk])))
    assert told in text_of(browser.get(reverse("overview")))


def test_a_queue_says_why_it_is_so_since_when_and_where(browser, three) -> None:
    queue = three["Stopped"]
    name = queue.partition_info(1).full_topic_name
    Partition.objects.create(
        name=name, service_type="TB_RULE_ENGINE", queue=queue.name, number=1, tenant=queue.tenant_id,
        owner="host-7", epoch=3,
    )  # fmt: skip
    shown = text_of(browser.get(reverse("queue", args=[queue.pk])))
    assert "No commit for 4 min; commits came every 5 s in partition 0, which does worst." in shown
    assert re.search(r"Since [-\d]+ [:\d]+ UTC \( 4 min ago \)", shown)
    assert re.search(r"0 STOP .* nobody 10,000 nothing yet 900 1 min 30 s", shown)
    assert re.search(r"1 WARN .* host-7 10,000 nothing yet 100 10 s", shown)


def test_of_very_many_partitions_the_worst_are_shown(browser) -> None:
    queue = make_queue("Wide", partitions=120)
    for partition in range(120):
        make_lag(queue, partition, partition=partition)
    shown = text_of(browser.get(reverse("queue", args=[queue.pk])))
    assert "100 of 120, those that do worst" in shown


def test_figures_of_loaded_rows_are_those_that_the_database_adds_up(three) -> None:
    for queue in three.values():
        [asked] = queue_lags([queue])
        computed = lag_of(queue, list(LagCurrent.objects.filter(queue=queue)))
        for name in ("lag_messages", "lag_seconds", "produced_per_s", "drain_eta_s", "as_of", "worst", "status"):
            assert getattr(computed, name) == getattr(asked, name), name


def test_they_are_so_where_some_partitions_are_not_sampled_any_more(three, silent) -> None:
    for queue in three.values():
        [asked], shown = queue_lags([queue]), partitions_of(queue).lag
        for name in ("lag_messages", "partitions", "as_of", "worst", "status"):
            assert getattr(shown, name) == getattr(asked, name), name


def test_charts_are_drawn_with_rebalances_marked(browser, three) -> None:
    queue, now = three["Stopped"], this_minute()
    for minute, lag in ((3, 10), (2, 4_000), (1, 20)):
        at = now - timedelta(minutes=minute)
        LagMinute.objects.create(queue=queue, at=at, lag_messages=lag, lag_seconds=lag / 2, produced=600, consumed=300)
        ProcessingMinute.objects.create(
            queue=queue, at=at, p50_ms=1.5, p95_ms=20.0, p99_ms=90.0, failed=lag, timed_out=1, dead_lettered=2
        )
    moved = queue.partition_info(0).full_topic_name
    for names, why in (([moved], "host-2 joined"), (["elsewhere"], "host-3 joined")):
        Rebalance.objects.create(
            state=RebalanceState.DONE, cause="membership", reason=why, created_at=now - timedelta(minutes=2),
            started_at=now - timedelta(minutes=2), finished_at=now, moves=1,
            listed=[[name, "a", "b"] for name in names],
        )  # fmt: skip
    answer = browser.get(reverse("queue_charts", args=[queue.pk]))
    page, shown = answer.content.decode(), text_of(answer)
    assert "Lag: at most 4,000 at" in page
    assert "Produced 10.0/s, Consumed 5.0/s" in page
    assert "p50 2 ms, p95 20 ms, p99 90 ms" in page
    assert "Failed: at most 4,000/min" in page
    assert "Failed 20/min, Timed out 1/min, Tried again 0/min, Dead-lettered 2/min" in page
    assert page.count('class="mark"') == 5
    assert page.count(">UTC</span>") == page.count('class="plot-times"') > 0
    assert "1 rebalance of its partitions" in shown
    assert "Host-2 joined" in shown
    assert "Host-3 joined" not in shown
    assert "<html" not in page


@pytest.mark.parametrize("asked", ["1h", "6h", "24h", "7d", "custom"])
def test_charts_of_nothing_say_so(browser, three, asked) -> None:
    shown = text_of(browser.get(reverse("queue_charts", args=[three["New"].pk]), {"range": asked}))
    assert shown.count("Nothing is known of this time.") == 5
    assert ("Choose a time that begins before it ends" in shown) == (asked == "custom")


def test_charts_of_a_month_are_made_of_hours_and_days(browser, three) -> None:
    queue, now = three["Well"], timezone.now()
    for days in (20, 25):
        at = now.replace(minute=0, second=0, microsecond=0) - timedelta(days=days)
        told = {"p50_ms": 2.0, "p95_ms": 20.0, "p99_ms": 90.0 + days, "failed": 600}
        ProcessingHour.objects.create(queue=queue, at=at, **told)
        ProcessingDay.objects.create(queue=queue, at=at.replace(hour=0), **{**told, "p99_ms": 70.0, "failed": 2_880})

    def page(days: int) -> str:
        asked = {"range": "custom", "from": (now - timedelta(days=days)).isoformat(), "to": now.isoformat()}
        return browser.get(reverse("queue_charts", args=[queue.pk]), asked).content.decode()

    month = page(30)
    assert "Processing time of packs, in the slowest hours" in month
    assert "p99: at most 115 ms" in month
    assert "Failed: at most 2.5/min" in month, "600 in one hour of four"
    quarter_of_a_year = page(180)
    assert "Processing time of packs</h3>" in quarter_of_a_year
    assert "p99: at most 70 ms" in quarter_of_a_year
    assert "Failed: at most 2/min" in quarter_of_a_year


def test_a_page_asks_for_the_charts_of_its_address(browser, three) -> None:
    page = browser.get(reverse("queue", args=[three["New"].pk]), {"range": "6h"}).content.decode()
    assert f'hx-get="{reverse("queue_charts", args=[three["New"].pk])}?range=6h"' in page


# Configuration


def test_the_configuration_has_its_history_and_pictures(browser) -> None:
    queue = make_queue("Main", submit_strategy="BATCH", processing_strategy="RETRY_ALL")
    change_queue(SYSTEM, queue, retries=7, label=HOSTILE[:5])
    answer = browser.get(reverse("queue_configuration", args=[queue.pk]))
    shown = text_of(answer)
    assert re.search(r"Change by system .* retries 3 7", shown)
    assert "BATCH and RETRY_ALL" in shown
    assert answer.content.decode().count("this queue's") == 2


# Pending requests


def make_requests(**fields: Any) -> RequestCurrent:
    told = {
        "service_id": "core-1",
        "request_topic": "tb_transport.api",
        "pending_limit": 10_000,
        "as_of": ago(seconds=4),
    }
    figures = {"sent": 500, "answered": 490, "lag_p50_ms": 12.0, "lag_p95_ms": 80.0, "lag_p99_ms": 6_200.0}
    buckets = [0, 0, 0, 400, 0, 0, 80, 0, 0, 0, 0, 0, 10, 0, 0, 0]
    return RequestCurrent.objects.create(**{**told, **figures, "lag_buckets": buckets, **fields})


def test_without_requests_it_says_what_would_be_here(browser) -> None:
    assert "No service has asked another yet" in text_of(browser.get(reverse("pending_requests")))


def test_requests_are_shown_with_their_limits(browser) -> None:
    make_requests(pending=12, oldest_pending_ms=900, timed_out=150, orphans=2)
    RequestStats.objects.create(service_id="core-1", request_topic="t", at=this_minute(), pending=12, timed_out=150)
    make_run()
    answer = browser.get(reverse("pending_requests"))
    page, shown = answer.content.decode(), text_of(answer)
    assert "12 requests limit 8,000; oldest 900 ms; 1 service" in shown
    assert "150 a minute limit 100; 500 sent, 490 answered" in shown
    assert "6.2 s limit 5 s" in shown
    assert re.search(r"up to 10 ms 400 .* up to 10 s \(beyond the limit\) 10", shown)
    assert "over 60 s" not in shown
    assert "tb_transport.api core-1 12 of 10,000 900 ms 12 ms 80 ms 6.2 s 150 2 500" in shown
    assert "Timed out: at most 150" in page
    assert "Limit: at most 100" in page


def test_requests_of_a_week_are_drawn_of_hours(browser) -> None:
    make_requests()
    hour = ago(days=3).replace(minute=0, second=0, microsecond=0)
    for service in ("core-1", "core-2"):
        figures = {"pending": 40, "timed_out": 900, "lag_p99_ms": 700.0}
        RequestHour.objects.create(service_id=service, request_topic="t", at=hour, **figures)
    page = browser.get(reverse("pending_requests"), {"range": "7d"}).content.decode()
    assert 'id="range-7d" href="?range=7d" aria-current="true"' in page
    assert "Timed out a minute, on average" in page
    assert "Timed out: at most 30 " in page
    assert "Pending: at most 80 " in page
    assert "p99: at most 700 ms" in page


def test_a_time_of_requests_that_cannot_be_is_told(browser) -> None:
    make_requests()
    asked = {"range": "custom", "from": "2024-01-01T00:00", "to": "9999-12-31T23:59-12:00"}
    page = browser.get(reverse("pending_requests"), asked).content.decode()
    assert "Choose a time that begins before it ends" in page


def test_pending_requests_are_counted_by_how_long_they_wait(browser) -> None:
    make_requests(pending=12, age_buckets=[0] * 8 + [9] + [0] * 6 + [3])
    shown = text_of(browser.get(reverse("pending_requests")))
    assert re.search(r"Waits Share Pending up to 500 ms 9 .* over 1 min \(beyond the limit\) 3", shown)
    assert "does not tell how long" not in shown


def test_requests_of_which_nobody_tells_how_long_they_wait_are_told_as_such(browser) -> None:
    make_requests(pending=12, age_buckets=[0] * 8 + [12] + [0] * 7)
    make_requests(pending=7, service_id="older")
    shown = text_of(browser.get(reverse("pending_requests")))
    assert "up to 500 ms 12 7 requests wait at services of a version that does not tell how long." in shown
    RequestCurrent.objects.update(pending=0, age_buckets=[])
    assert "No request waits for its answer." in text_of(browser.get(reverse("pending_requests")))


def test_requests_are_searched_and_sorted(browser) -> None:
    for number in range(3):
        make_requests(service_id=f"core-{number}", pending=number, timed_out=9 - number)
    shown = text_of(browser.get(reverse("pending_requests"), {"sort": "-timeouts"}))
    assert shown.index("core-0") < shown.index("core-1") < shown.index("core-2")
    found = text_of(browser.get(reverse("pending_requests"), {"q": "core-2"}))
    assert "core-2" in found
    assert "core-1" not in found


# Who may, and how much is asked


@pytest.mark.parametrize("role", Role)
def test_roles_see_what_they_may(client, three, role) -> None:
    tenant = create_tenant(SYSTEM, "Greenhouse") if role.is_of_tenant else None
    client.force_login(person("ada", role, tenant))
    pk = three["Well"].pk
    urls = [
        *(reverse(name, args=[pk]) for name in ("queue_consumers", "queue_configuration")),
        reverse("pending_requests"),
        reverse("export_queues"),
    ]
    assert {client.get(url).status_code for url in urls} == {403 if role.is_of_tenant else 200}
    # One that all share: how it gets on concerns whoever uses it.
    shared = [reverse(name, args=[pk]) for name in ("queue", "queue_charts")]
    assert {client.get(url).status_code for url in shared} == {200}


def fill(rows: int) -> None:
    tenant = create_tenant(SYSTEM, f"Tenant {uuid4()}")
    for _ in range(rows):
        queue = make_queue(f"Q{uuid4().hex}", tenant=tenant)
        make_lag(queue, 10, status=LagStatus.WARN)
        make_requests(service_id=str(uuid4()))
        pause_queue(SYSTEM, queue, partition=0, reason="x")


@pytest.mark.parametrize("name", ["queues", "overview", "pending_requests"])
def test_lists_ask_as_often_for_many_rows_as_for_few(browser, django_assert_max_num_queries, name) -> None:
    make_run()
    asked = []
    for rows in (2, 30):
        fill(rows)
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            assert browser.get(reverse(name), {"sort": "-status"}).status_code == 200
        asked.append(len(queries))
    # Where enough are in trouble, the overview looks for no others.
    assert asked[1] <= asked[0]


@pytest.mark.parametrize("name", ["queue", "queue_charts", "queue_consumers", "queue_configuration"])
def test_parts_of_a_queue_ask_a_bounded_number_of_times(browser, three, django_assert_max_num_queries, name) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        assert browser.get(reverse(name, args=[three["Stopped"].pk])).status_code == 200


def test_hostile_text_stays_text(browser) -> None:
    queue = make_queue("Main")
    make_lag(queue, 5, status=LagStatus.STALL, reason=HOSTILE)
    make_requests(service_id=HOSTILE, request_topic=HOSTILE)
    for url in (reverse("overview"), reverse("queues"), reverse("queue", args=[queue.pk]), reverse("pending_requests")):
        assert HOSTILE not in browser.get(url).content.decode(), url
