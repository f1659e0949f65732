"""What the pipeline computed and hosts counted, as Prometheus reads it: written piece by piece, as there may be
a hundred thousand partitions."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Literal

from django.db.models import Max, QuerySet, Sum
from django.utils import timezone

from queueapi.models import LagCurrent, StaleCommits
from queueapi.selectors.lag import still_sampled
from queueapi.selectors.pipeline_standing import PipelineState
from queuecore.metrics.names import (
    CONSUMER_LAG,
    CONSUMER_LAG_SECONDS,
    PIPELINE_AGE,
    PIPELINE_BACKLOG,
    PIPELINE_FAILED_RUNS,
    STALE_REFUSED,
    MetricName,
)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LagBy = Literal["partition", "queue"]

_AT_ONCE: Final = 2_000
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def lag_metrics(rows: QuerySet[LagCurrent], by: LagBy) -> Iterator[bytes]:
    """Of each partition that is sampled, or of each queue. One query; the lines of the second metric are kept, as
    bytes, until those of the first are through: Prometheus wants them one after the other."""
    yield _head(CONSUMER_LAG)
    kept: list[bytes] = []
    found = _found(rows.filter(still_sampled()), by).iterator(chunk_size=_AT_ONCE)
    while batch := [(_labels(labels), messages, seconds) for *labels, messages, seconds in islice(found, _AT_ONCE)]:
        yield "".join(f"{CONSUMER_LAG.name}{labels} {messages}\n" for labels, messages, _ in batch).encode()
        known = ((labels, seconds) for labels, _, seconds in batch if seconds is not None)
        kept.append("".join(f"{CONSUMER_LAG_SECONDS.name}{labels} {seconds}\n" for labels, seconds in known).encode())
    yield _head(CONSUMER_LAG_SECONDS)
    # A piece that is empty would be the end of a stream.
    yield from filter(None, kept)


def pipeline_metrics(state: PipelineState) -> Iterator[bytes]:
    """How fresh all that is. What is not known is not told: `absent()` finds it."""
    as_of, standing = state.freshness.as_of, state.standing
    if as_of is not None:
        yield _one(PIPELINE_AGE, max(0.0, (timezone.now() - as_of).total_seconds()))
    if standing is not None:
        yield _one(PIPELINE_FAILED_RUNS, standing.failed_runs)
        if standing.backlog_events is not None:
            yield _one(PIPELINE_BACKLOG, standing.backlog_events)


def stale_metrics() -> Iterator[bytes]:
    """Commits of consumers that had lost their partition, of each queue that had any."""
    rows = StaleCommits.objects.order_by("pk").values_list("queue__name", "queue__tenant__name", "refused")
    lines = [f"{STALE_REFUSED.series[0]}{_labels(list(labels))} {refused}\n" for *labels, refused in rows]
    if lines:
        yield _head(STALE_REFUSED) + "".join(lines).encode()


def _found(rows: QuerySet[LagCurrent], by: LagBy) -> QuerySet[Any, Any]:
    """Labels, messages, seconds. Queues may have a group for each partition, and are told without."""
    named = ("queue__name", "queue__tenant__name")
    if by == "queue":
        queues = rows.order_by().values_list(*named)
        return queues.annotate(messages=Sum("lag_messages"), seconds=Max("lag_seconds"))
    return rows.order_by().values_list(*named, "consumer_group", "partition", "lag_messages", "lag_seconds")


def _labels(values: list[Any]) -> str:
    named = zip(CONSUMER_LAG.labels, values, strict=False)
    return "{" + ",".join(f'{name}="{str(value).translate(_ESCAPED)}"' for name, value in named) + "}"


def _head(metric: MetricName) -> bytes:
    name = metric.series[0]
    return f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n".encode()


def _one(metric: MetricName, value: float) -> bytes:
    return _head(metric) + f"{metric.name} {value}\n".encode()
