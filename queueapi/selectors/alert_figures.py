"""What alert rules look at, read from the summaries: a few queries, however many queues and partitions there are."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, Sum

from queueapi.alerting.metrics import SubjectKind, number
from queueapi.alerting.values import Figures, Observation, Subject
from queueapi.choices import CONSUMED_QUEUE_STATES, AlertMetric, LagStatus
from queueapi.cluster.models import ServiceInstance
from queueapi.models import (
    DeadLetterGroup,
    DeadLetterTrend,
    LagCurrent,
    Pause,
    PipelineStanding,
    ProcessingMinute,
    Queue,
    RequestCurrent,
    Tenant,
)
from queueapi.models.pause import SYSTEM_ACTOR
from queueapi.models.queue import full_queue_name
from queueapi.selectors.freshness import STALE_AFTER, Freshness, pipeline_freshness
from queuecore.topics import SYSTEM_TENANT

ERROR_WINDOW: Final = timedelta(minutes=5)
# Of fewer attempts no rate is told: one that failed of two is no half.
LEAST_ATTEMPTS: Final = 20
LOSSES_REMEMBERED: Final = timedelta(hours=1)
# Of a new installation: Spark's Java starts and compiles before there is a first figure, which on a busy machine takes
# minutes, and what came meanwhile is in the next run.
FIRST_RUNS_TAKE: Final = timedelta(minutes=5)

_HOUR: Final = timedelta(hours=1)
_STUCK: Final = (LagStatus.STOP, LagStatus.STALL)
_LONGEST_DETAIL: Final = 400
_NAMED: Final = 3


def figures_for(metrics: Collection[AlertMetric], now: datetime) -> dict[AlertMetric, Figures]:
    """Of these metrics all that is known now."""
    reading = _Reading(now)
    return {metric: reading.figures(_READ[metric](reading)) for metric in metrics}


def reported_for(metric: AlertMetric, now: datetime) -> "Reported | Figures":
    """The same of one metric; where it is of queues, without saying more of them than their values."""
    return _READ[metric](_Reading(now))


class Told(NamedTuple):
    """What is known of a subject, as `Observation` has it. Without a value nothing is; without a time it is of now."""

    value: float | None
    detail: str = ""
    as_of: datetime | None = None
    is_at_least: bool = False


@dataclass(frozen=True, slots=True)
class Reported:
    """Of a metric's queues what is told. `rest` is what is told of all others: they have nothing of it, and are still
    there. None: nothing is."""

    as_of: datetime | None
    told: Mapping[UUID, Told]
    rest: Told | None = None


class _Lag(NamedTuple):
    """Of a queue's partitions, those that are sampled: one without a leader may not be for hours. `missing` are the
    others."""

    queue: UUID
    messages: int | None
    seconds: float | None
    oldest: datetime | None
    missing: int


@dataclass
class _Reading:
    """What is read once, and used by several metrics."""

    now: datetime

    @property
    def fresh_since(self) -> datetime:
        return self.now - STALE_AFTER

    @cached_property
    def freshness(self) -> Freshness:
        return pipeline_freshness()

    @cached_property
    def subjects(self) -> dict[UUID, Subject]:
        rows = Queue.objects.order_by().values_list("id", "name", "tenant_id", "tenant__name")
        return {pk: _subject(pk, full_queue_name(name, tenant, owner), tenant) for pk, name, tenant, owner in rows}

    @cached_property
    def lag(self) -> list[_Lag]:
        """Those that are not sampled are read first: one that is again meanwhile is missing once too often, and what
        is known is the least there is."""
        rows = LagCurrent.objects.order_by().values("queue_id")
        stale = rows.filter(as_of__lt=self.fresh_since).annotate(missing=Count("*"))
        missing = dict(stale.values_list("queue_id", "missing"))
        fresh = rows.filter(as_of__gte=self.fresh_since).annotate(
            messages=Sum("lag_messages"), seconds=Max("lag_seconds"), oldest=Min("as_of")
        )
        found = [
            _Lag(queue, messages, seconds, oldest, missing.pop(queue, 0))
            for queue, messages, seconds, oldest in fresh.values_list("queue_id", "messages", "seconds", "oldest")
        ]
        return found + [_Lag(queue, None, None, None, count) for queue, count in missing.items()]

    @cached_property
    def lag_as_of(self) -> datetime | None:
        newest: datetime | None = LagCurrent.objects.aggregate(newest=Max("as_of"))["newest"]
        return newest

    @cached_property
    def requests(self) -> dict[str, list[RequestCurrent]]:
        """By topic. Of an instance that is silent while others are heard of, nobody asks any more. An instance whose
        clock is ahead makes no others silent."""
        by_topic: dict[str, list[RequestCurrent]] = {}
        as_of = self.freshness.as_of
        newest = None if as_of is None else min(as_of, self.now)
        for row in RequestCurrent.objects.defer("lag_buckets", "age_buckets"):
            if newest is None or newest - row.as_of <= STALE_AFTER:
                by_topic.setdefault(row.request_topic, []).append(row)
        return by_topic

    def figures(self, found: "Reported | Figures") -> Figures:
        if isinstance(found, Figures):
            return found
        told = ((subject, found.told.get(queue, found.rest)) for queue, subject in self.subjects.items())
        made = (self.observed(subject, one) for subject, one in told if one is not None)
        return Figures(found.as_of, {one.subject.key: one for one in made})

    def of_lag(self, value_of: Callable[[_Lag], float | None], said: Mapping[UUID, str]) -> Reported:
        """What is known of the partitions that are sampled is the least there is of all."""
        told = {}
        for row in self.lag:
            unsampled = f"{row.missing:,} of its partitions are not sampled" if row.missing else ""
            detail = "; ".join(filter(None, (said.get(row.queue, ""), unsampled))) if said or unsampled else ""
            value = None if row.oldest is None else value_of(row)
            told[row.queue] = Told(value, detail, row.oldest, row.missing > 0)
        return Reported(self.lag_as_of, told)

    def observed(self, subject: Subject, told: Told) -> Observation:
        value, detail, as_of, is_at_least = told
        return Observation(subject, value or 0, as_of or self.now, detail, value is not None, is_at_least)

    def alone(self, kind: SubjectKind, name: str, value: float, detail: str = "") -> Figures:
        one = Observation(Subject(kind, name), value, self.now, detail[:_LONGEST_DETAIL])
        return Figures(self.now, {one.subject.key: one})


def _subject(queue: UUID, name: str, tenant: UUID) -> Subject:
    return Subject(SubjectKind.QUEUE, name, str(queue), None if tenant == SYSTEM_TENANT else tenant)


def _lag_messages(reading: _Reading) -> Reported:
    return reading.of_lag(lambda row: row.messages, {})


def _lag_seconds(reading: _Reading) -> Reported:
    """Where nothing waits, nobody is behind."""
    return reading.of_lag(lambda row: row.seconds if row.messages else 0.0, {})


def _stalled_partitions(reading: _Reading) -> Reported:
    """With what is said of the first of them. What stands still because somebody wants it to is none of them."""
    paused = Pause.objects.filter(queue=OuterRef("queue"), tenant=None).exclude(paused_by=SYSTEM_ACTOR)
    wanted = Exists(paused.filter(Q(partition=None) | Q(partition=OuterRef("partition"))))
    stuck = LagCurrent.objects.filter(
        ~wanted, status__in=_STUCK, as_of__gte=reading.fresh_since, queue__state__in=CONSUMED_QUEUE_STATES
    )
    said = list(stuck.order_by("-partition").values_list("queue_id", "reason"))
    counts = Counter(queue for queue, _ in said)
    return reading.of_lag(lambda row: counts[row.queue], dict(said))


def _error_rate(reading: _Reading) -> Reported:
    """Of all attempts those that failed, whatever became of their messages. None that failed is no rate of few."""
    rows = (
        ProcessingMinute.objects.filter(at__gte=reading.now - ERROR_WINDOW)
        .order_by()
        .values("queue_id")
        .annotate(handled=Sum("handled"), errors=Sum(F("failed") + F("timed_out")))
    )
    told = {row["queue_id"]: _rate(row["errors"], row["handled"] + row["errors"]) for row in rows}
    return Reported(reading.freshness.as_of, told, Told(0))


def _rate(errors: int, attempts: int) -> Told:
    if not errors:
        return Told(0)
    rate = 100 * errors / attempts if attempts >= LEAST_ATTEMPTS else None
    return Told(rate, f"{errors:,} of {attempts:,} attempts within {ERROR_WINDOW.seconds // 60} min")


def _new_letters(reading: _Reading) -> Reported:
    """Of the last sixty minutes: of the hour before, what part of it still counts."""
    hour = reading.now.replace(minute=0, second=0, microsecond=0)
    rows = (
        DeadLetterTrend.objects.filter(at__gte=hour - _HOUR)
        .order_by()
        .values("queue_id")
        .annotate(before=Sum("letters", filter=Q(at__lt=hour)), since=Sum("letters", filter=Q(at__gte=hour)))
    )
    part = 1 - (reading.now - hour) / _HOUR
    told = {row["queue_id"]: Told((row["since"] or 0) + round((row["before"] or 0) * part)) for row in rows}
    return Reported(reading.freshness.as_of, told, Told(0))


def _kinds_of_errors(count: int) -> str:
    return "one kind of error" if count == 1 else f"{count:,} kinds of errors"


def _open_letters(reading: _Reading) -> Reported:
    groups = DeadLetterGroup.objects.filter(open_letters__gt=0).order_by().values("queue_id")
    rows = groups.annotate(letters=Sum("open_letters"), errors=Count("pk"))
    told = {row["queue_id"]: Told(row["letters"], _kinds_of_errors(row["errors"])) for row in rows}
    return Reported(reading.now, told, Told(0))


def _pending_requests(reading: _Reading) -> Figures:
    return _of_topics(reading, _most_pending)


def _request_timeouts(reading: _Reading) -> Figures:
    return _of_topics(reading, lambda rows: Told(sum(row.timed_out for row in rows), f"{len(rows)} instances ask"))


def _response_lag(reading: _Reading) -> Figures:
    return _of_topics(reading, _slowest)


def _most_pending(rows: list[RequestCurrent]) -> Told:
    """Each instance has its own limit."""
    worst = max(rows, key=lambda row: row.pending)
    return Told(worst.pending, f"those of {worst.service_id}, of at most {worst.pending_limit:,}")


def _slowest(rows: list[RequestCurrent]) -> Told:
    """Who asks and hears nothing at all waits for longer than anybody knows."""
    worst = max(rows, key=lambda row: row.lag_p99_ms or 0)
    unanswered = any(row.lag_p99_ms is None and (row.pending or row.timed_out) for row in rows)
    return Told(worst.lag_p99_ms or 0, f"those to {worst.service_id}", is_at_least=unanswered)


def _of_topics(reading: _Reading, told_of: Callable[[list[RequestCurrent]], Told]) -> Figures:
    found = {}
    for topic, rows in reading.requests.items():
        subject = Subject(SubjectKind.REQUESTS, topic, topic)
        told = told_of(rows)._replace(as_of=min(row.as_of for row in rows))
        found[subject.key] = reading.observed(subject, told)
    return Figures(reading.freshness.as_of, found)


def _lease_losses(reading: _Reading) -> Figures:
    lost = ServiceInstance.objects.filter(is_lost=True, gone_at__gte=reading.now - LOSSES_REMEMBERED)
    names = list(lost.order_by("-gone_at").values_list("service_id", flat=True))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return reading.alone(SubjectKind.CLUSTER, "the cluster", len(names), ", ".join(names[:_NAMED]) + more)


def _pipeline_late(reading: _Reading) -> Figures:
    """How old the figures are, or since when there could have been some. Where the installation is new, none are late
    yet, unless runs fail."""
    standing = PipelineStanding.objects.first()
    installed_at = _installed_at()
    if installed_at is None:
        return Figures(reading.now)
    is_failing = standing is not None and standing.failed_runs > 0
    if not is_failing and timedelta(0) <= reading.now - installed_at < FIRST_RUNS_TAKE:
        return Figures(reading.now)
    succeeded_at = None if standing is None else standing.succeeded_at
    known = [at for at in (reading.freshness.as_of, reading.lag_as_of, succeeded_at) if at is not None]
    age_s = max(0.0, (reading.now - min(known, default=installed_at)).total_seconds())
    detail = "; ".join(_said_of_late(standing, is_late=age_s > STALE_AFTER.total_seconds()))
    return reading.alone(SubjectKind.PIPELINE, "the pipeline", ceil(age_s), detail)


def _said_of_late(standing: PipelineStanding | None, *, is_late: bool) -> Iterator[str]:
    """Nothing where all is well: that an alert is over is told with it."""
    if is_late:
        yield "alerts that depend on them neither fire nor resolve"
    if standing is None:
        yield "the pipeline never ran; see whether its worker does"
    elif standing.error:
        runs = "run" if standing.failed_runs == 1 else f"{number(standing.failed_runs)} runs"
        yield f"the last {runs} failed, {standing.error}"
    elif is_late:
        yield "see whether its worker runs, and samples come"


def _installed_at() -> datetime | None:
    return Tenant.objects.filter(pk=SYSTEM_TENANT).values_list("created_at", flat=True).first()


_READ: Final[Mapping[AlertMetric, Callable[[_Reading], Reported | Figures]]] = {
    AlertMetric.LAG_MESSAGES: _lag_messages,
    AlertMetric.LAG_SECONDS: _lag_seconds,
    AlertMetric.STALLED_PARTITIONS: _stalled_partitions,
    AlertMetric.ERROR_RATE: _error_rate,
    AlertMetric.NEW_LETTERS: _new_letters,
    AlertMetric.OPEN_LETTERS: _open_letters,
    AlertMetric.PENDING_REQUESTS: _pending_requests,
    AlertMetric.REQUEST_TIMEOUTS: _request_timeouts,
    AlertMetric.RESPONSE_LAG: _response_lag,
    AlertMetric.LEASE_LOSSES: _lease_losses,
    AlertMetric.PIPELINE_LATE: _pipeline_late,
}
