"""What rules look at, as it is read from the summaries."""

from datetime import UTC, datetime, timedelta

import pytest

from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import AlertMetric, LagStatus, QueueState
from queueapi.cluster.models import ServiceInstance
from queueapi.models import (
    DeadLetterTrend,
    LagCurrent,
    Pause,
    PipelineRun,
    PipelineStanding,
    ProcessingMinute,
    Queue,
    RequestCurrent,
    Tenant,
)
from queueapi.models.pause import SYSTEM_ACTOR
from queueapi.selectors.alert_figures import figures_for
from tests.databases import all_queries
from tests.letters import make_letters

NOW = datetime(2026, 3, 14, 9, 15, tzinfo=UTC)
FRESH = NOW - timedelta(seconds=5)

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Queue:
    return _queue("Main", ensure_system_tenant())


@pytest.fixture(autouse=True)
def _pipeline_ran() -> None:
    PipelineRun.objects.create(
        query="q", batch_id=1, events=1, newest_event_at=FRESH, started_at=FRESH, finished_at=FRESH
    )


def _queue(name: str, tenant: Tenant) -> Queue:
    return Queue.objects.create(tenant=tenant, name=name, topic=name.lower(), handler="log")


def _lag(queue: Queue, partition: int, messages: int, **told) -> None:
    given = {"topic": f"{queue.topic}.{partition}", "consumer_group": "c", "end_offset": messages, "as_of": FRESH}
    LagCurrent.objects.create(queue=queue, partition=partition, lag_messages=messages, **{**given, **told})


def _instance(service_id: str, **told) -> None:
    given = {"incarnation": "1", "service_types": ["TB_RULE_ENGINE"], "host": "h", "pid": 1, "started_at": FRESH}
    times = {"heartbeat_at": FRESH, "lease_expires_at": FRESH}
    ServiceInstance.objects.create(service_id=service_id, **{**given, **times, **told})


def read(metric: AlertMetric):
    return figures_for([metric], NOW)[metric]


def only(metric: AlertMetric):
    [observation] = read(metric).observations.values()
    return observation


def test_a_queue_lags_by_all_its_partitions_and_as_far_as_the_worst(queue) -> None:
    _lag(queue, 0, 100, lag_seconds=4.0)
    _lag(queue, 1, 200, lag_seconds=9.0)
    messages, seconds = only(AlertMetric.LAG_MESSAGES), only(AlertMetric.LAG_SECONDS)
    assert (messages.value, seconds.value) == (300, 9.0)
    assert (messages.subject.name, messages.subject.tenant_id, messages.subject.id) == ("Main", None, str(queue.id))
    assert (messages.as_of, messages.is_at_least, read(AlertMetric.LAG_MESSAGES).as_of) == (FRESH, False, FRESH)


def test_what_the_sampled_partitions_have_is_the_least_that_a_queue_has(queue) -> None:
    _lag(queue, 0, 100, lag_seconds=4.0, status=LagStatus.STOP, reason="STOP: no commit for 4 min")
    _lag(queue, 1, 200, lag_seconds=9.0, as_of=NOW - timedelta(minutes=9), status=LagStatus.STALL)
    found = [only(metric) for metric in (AlertMetric.LAG_MESSAGES, AlertMetric.LAG_SECONDS)]
    assert [(one.value, one.as_of, one.is_at_least) for one in found] == [(100, FRESH, True), (4.0, FRESH, True)]
    assert found[0].detail == "1 of its partitions are not sampled"
    stalled = only(AlertMetric.STALLED_PARTITIONS)
    assert (stalled.value, stalled.is_at_least) == (1, True)
    assert stalled.detail == "STOP: no commit for 4 min; 1 of its partitions are not sampled"


def test_of_a_queue_that_is_not_sampled_at_all_nothing_is_known(queue) -> None:
    _lag(queue, 0, 200, as_of=NOW - timedelta(minutes=9))
    for metric in (AlertMetric.LAG_MESSAGES, AlertMetric.LAG_SECONDS, AlertMetric.STALLED_PARTITIONS):
        assert not only(metric).is_known


def test_seconds_that_samples_do_not_tell_are_not_known_but_where_nothing_waits(queue) -> None:
    _lag(queue, 0, 5)
    assert not only(AlertMetric.LAG_SECONDS).is_known
    LagCurrent.objects.update(lag_messages=0)
    assert (only(AlertMetric.LAG_SECONDS).is_known, only(AlertMetric.LAG_SECONDS).value) == (True, 0)


def test_partitions_that_stop_or_stall_are_counted_with_what_is_said_of_the_first(queue) -> None:
    said = ("", "STOP: no commit for 4 min", "STALL: commits, and does not go on")
    for number, (status, reason) in enumerate(
        zip((LagStatus.WARN, LagStatus.STOP, LagStatus.STALL), said, strict=True)
    ):
        _lag(queue, number, 9, status=status, reason=reason)
    assert (only(AlertMetric.STALLED_PARTITIONS).value, only(AlertMetric.STALLED_PARTITIONS).detail) == (2, said[1])


@pytest.mark.parametrize(
    ("pause", "left"),
    [
        ({"paused_by": "ada"}, 0),
        ({"paused_by": "ada", "partition": 1}, 1),
        ({"paused_by": "ada", "partition": 7}, 2),
        ({"paused_by": SYSTEM_ACTOR}, 2),
        ({"paused_by": SYSTEM_ACTOR, "partition": 1}, 2),
    ],
)
def test_what_somebody_paused_does_not_stop_by_itself(queue, pause, left) -> None:
    for partition in (0, 1):
        _lag(queue, partition, 9, status=LagStatus.STOP)
    Pause.objects.create(queue=queue, reason="an upgrade", **pause)
    assert only(AlertMetric.STALLED_PARTITIONS).value == left


def test_a_queue_that_nobody_is_to_consume_yet_does_not_stop(queue) -> None:
    _lag(queue, 0, 9, status=LagStatus.STOP)
    Queue.objects.update(state=QueueState.HANDING_OVER)
    assert (only(AlertMetric.STALLED_PARTITIONS).value, only(AlertMetric.STALLED_PARTITIONS).detail) == (0, "")


def test_a_tenants_own_queue_is_the_tenants() -> None:
    tenant = create_tenant(SYSTEM, "Greenhouse")
    _lag(_queue("Own", tenant), 0, 1)
    assert only(AlertMetric.LAG_MESSAGES).subject.tenant_id == tenant.id


def test_the_error_rate_is_of_attempts_in_the_last_minutes(queue) -> None:
    told = {"queue": queue, "handled": 28, "failed": 10, "timed_out": 2, "dead_lettered": 3, "dropped": 1}
    ProcessingMinute.objects.create(at=NOW - timedelta(minutes=2), **told)
    ProcessingMinute.objects.create(at=NOW - timedelta(minutes=9), queue=queue, handled=1000)
    assert only(AlertMetric.ERROR_RATE).value == 100 * 12 / 40
    assert only(AlertMetric.ERROR_RATE).detail == "12 of 40 attempts within 5 min"


def test_of_a_few_attempts_no_rate_is_told(queue) -> None:
    minute = ProcessingMinute.objects.create(at=NOW - timedelta(minutes=2), queue=queue, handled=18, failed=1)
    assert not only(AlertMetric.ERROR_RATE).is_known, "and the queue is not gone"
    ProcessingMinute.objects.filter(pk=minute.pk).update(failed=0)
    assert (only(AlertMetric.ERROR_RATE).is_known, only(AlertMetric.ERROR_RATE).value) == (True, 0)


@pytest.mark.parametrize("metric", [AlertMetric.ERROR_RATE, AlertMetric.NEW_LETTERS, AlertMetric.OPEN_LETTERS])
def test_a_queue_without_any_of_it_has_none_and_is_there(queue, metric) -> None:
    assert (only(metric).is_known, only(metric).value) == (True, 0)


def test_who_asks_and_hears_nothing_may_wait_for_longer_than_those_who_hear() -> None:
    told = {"request_topic": "js.requests", "as_of": FRESH}
    RequestCurrent.objects.create(service_id="a", lag_p99_ms=20.0, **told)
    idle = RequestCurrent.objects.create(service_id="b", **told)
    assert not only(AlertMetric.RESPONSE_LAG).is_at_least
    RequestCurrent.objects.filter(pk=idle.pk).update(pending=7)
    found = only(AlertMetric.RESPONSE_LAG)
    assert (found.value, found.is_at_least) == (20.0, True)
    RequestCurrent.objects.update(lag_p99_ms=None)
    assert (only(AlertMetric.RESPONSE_LAG).value, only(AlertMetric.RESPONSE_LAG).is_at_least) == (0, True)


def test_new_letters_are_of_the_last_sixty_minutes(queue) -> None:
    for hours, letters in ((0, 10), (1, 40), (2, 1000)):
        at = NOW.replace(minute=0) - timedelta(hours=hours)
        DeadLetterTrend.objects.create(queue=queue, fingerprint="a", at=at, letters=letters)
    assert only(AlertMetric.NEW_LETTERS).value == 10 + 30, "a quarter of the hour before is more than an hour ago"


def test_open_letters_are_always_known(queue) -> None:
    make_letters(queue, 3)
    PipelineRun.objects.all().delete()
    assert (only(AlertMetric.OPEN_LETTERS).value, read(AlertMetric.OPEN_LETTERS).as_of) == (3, NOW)


def test_requests_of_the_worst_instance_and_timeouts_of_all() -> None:
    for service, pending, timed_out, p99 in (("a", 9000, 60, 10.0), ("b", 10, 50, 7000.0)):
        figures = {"pending": pending, "pending_limit": 10_000, "timed_out": timed_out, "lag_p99_ms": p99}
        RequestCurrent.objects.create(service_id=service, request_topic="js.requests", as_of=FRESH, **figures)
    metrics = (AlertMetric.PENDING_REQUESTS, AlertMetric.REQUEST_TIMEOUTS, AlertMetric.RESPONSE_LAG)
    assert [only(metric).value for metric in metrics] == [9000, 110, 7000.0]
    assert only(AlertMetric.PENDING_REQUESTS).detail == "those of a, of at most 10,000"
    assert only(AlertMetric.PENDING_REQUESTS).subject.key == "requests:js.requests"


def test_an_instance_that_has_fallen_silent_while_others_are_heard_of_asks_nothing_more() -> None:
    RequestCurrent.objects.create(
        service_id="a", request_topic="js.requests", pending=9000, as_of=FRESH - timedelta(minutes=5)
    )
    assert read(AlertMetric.PENDING_REQUESTS).observations == {}
    PipelineRun.objects.update(newest_event_at=FRESH - timedelta(minutes=5))
    assert only(AlertMetric.PENDING_REQUESTS).value == 9000, "nobody is heard of: that tells nothing of this one"


def test_an_instance_whose_clock_is_ahead_makes_no_others_silent() -> None:
    told = {"request_topic": "js.requests", "pending_limit": 10_000}
    RequestCurrent.objects.create(service_id="a", pending=9000, as_of=FRESH, **told)
    ahead = NOW + timedelta(seconds=61)
    RequestCurrent.objects.create(service_id="b", pending=1, as_of=ahead, **told)
    PipelineRun.objects.update(newest_event_at=ahead)
    assert only(AlertMetric.PENDING_REQUESTS).value == 9000


def test_instances_that_lost_their_lease_lately_and_are_not_back() -> None:
    _instance("there")
    _instance("left", gone_at=FRESH)
    _instance("lost", gone_at=FRESH, is_lost=True)
    _instance("forgotten", gone_at=NOW - timedelta(hours=2), is_lost=True)
    assert (only(AlertMetric.LEASE_LOSSES).value, only(AlertMetric.LEASE_LOSSES).detail) == (1, "lost")


def _installed(ago: timedelta) -> None:
    Tenant.objects.filter(pk=ensure_system_tenant().pk).update(created_at=NOW - ago)


def test_the_pipeline_is_as_late_as_its_figures_are_old() -> None:
    _installed(timedelta(days=9))
    assert only(AlertMetric.PIPELINE_LATE).value == 5
    long_ago = NOW - timedelta(minutes=10)
    PipelineStanding.objects.create(ran_at=NOW, succeeded_at=long_ago, error="Java is missing", failed_runs=4)
    assert only(AlertMetric.PIPELINE_LATE).value == 600
    assert only(AlertMetric.PIPELINE_LATE).detail == (
        "alerts that depend on them neither fire nor resolve; the last 4 runs failed, Java is missing"
    )


def test_of_figures_that_are_new_nothing_is_said_that_holds_for_old_ones() -> None:
    """An alert that is over is told with what is known then."""
    _installed(timedelta(days=9))
    standing = PipelineStanding.objects.create(ran_at=NOW, succeeded_at=NOW)
    assert only(AlertMetric.PIPELINE_LATE).detail == ""
    PipelineRun.objects.update(newest_event_at=NOW - timedelta(seconds=61), finished_at=FRESH)
    assert only(AlertMetric.PIPELINE_LATE).detail == (
        "alerts that depend on them neither fire nor resolve; see whether its worker runs, and samples come"
    )
    PipelineRun.objects.update(newest_event_at=FRESH)
    PipelineStanding.objects.filter(pk=standing.pk).update(error="Java is missing", failed_runs=1)
    assert only(AlertMetric.PIPELINE_LATE).detail == "the last run failed, Java is missing"


def test_a_pipeline_that_never_ran_is_late_since_the_installation_was_made() -> None:
    PipelineRun.objects.all().delete()
    _installed(timedelta(minutes=5))
    assert (only(AlertMetric.PIPELINE_LATE).value, only(AlertMetric.PIPELINE_LATE).detail) == (
        300,
        "alerts that depend on them neither fire nor resolve; the pipeline never ran; see whether its worker does",
    )


def test_the_first_runs_of_an_installation_may_take_their_time() -> None:
    _installed(timedelta(seconds=299))
    PipelineRun.objects.update(newest_event_at=NOW - timedelta(seconds=200), finished_at=FRESH)
    assert read(AlertMetric.PIPELINE_LATE).observations == {}, "what came during the first run is in the second"
    PipelineRun.objects.all().delete()
    assert read(AlertMetric.PIPELINE_LATE).observations == {}, "the first is under way"


def test_first_runs_that_fail_are_told_at_once() -> None:
    _installed(timedelta(seconds=61))
    PipelineRun.objects.all().delete()
    PipelineStanding.objects.create(ran_at=NOW, error="Java is missing", failed_runs=1)
    assert only(AlertMetric.PIPELINE_LATE).value == 61


def test_it_asks_as_often_however_many_queues_there_are() -> None:
    asked = []
    for count in (2, 9):
        for number in range(count):
            _lag(_queue(f"Q{count}-{number}", ensure_system_tenant()), 0, 5, status=LagStatus.STOP)
        with all_queries() as queries:
            figures_for(list(AlertMetric), NOW)
        asked.append(len(queries))
    assert asked[0] == asked[1]
