"""What rules look at: of what each metric is, its unit, and how a value is told."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queueapi.choices import AlertMetric


class SubjectKind(StrEnum):
    """Of what there can be an alert."""

    QUEUE = "queue"
    REQUESTS = "requests"
    CLUSTER = "cluster"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class Metric:
    """`sentence` tells a value, as `{value}`, of `{name}`."""

    kind: SubjectKind
    unit: str
    sentence: str


METRICS: Final = {
    AlertMetric.LAG_MESSAGES: Metric(SubjectKind.QUEUE, "messages", "{value} messages wait in queue {name}"),
    AlertMetric.LAG_SECONDS: Metric(SubjectKind.QUEUE, "s", "queue {name} is {value} s behind"),
    AlertMetric.STALLED_PARTITIONS: Metric(
        SubjectKind.QUEUE, "partitions", "{value} of queue {name}'s partitions stop or stall"
    ),
    AlertMetric.ERROR_RATE: Metric(SubjectKind.QUEUE, "%", "{value} % of attempts in queue {name} fail"),
    AlertMetric.NEW_LETTERS: Metric(
        SubjectKind.QUEUE, "letters in an hour", "{value} dead letters of queue {name} came within an hour"
    ),
    AlertMetric.OPEN_LETTERS: Metric(SubjectKind.QUEUE, "letters", "{value} dead letters of queue {name} are open"),
    AlertMetric.PENDING_REQUESTS: Metric(
        SubjectKind.REQUESTS, "requests", "{value} requests to {name} wait for their answers"
    ),
    AlertMetric.REQUEST_TIMEOUTS: Metric(
        SubjectKind.REQUESTS, "requests in a minute", "{value} requests to {name} timed out within a minute"
    ),
    AlertMetric.RESPONSE_LAG: Metric(
        SubjectKind.REQUESTS, "ms", "one in a hundred answers of {name} takes {value} ms or longer"
    ),
    AlertMetric.LEASE_LOSSES: Metric(
        SubjectKind.CLUSTER, "instances", "{value} service instances lost their lease within an hour, and are not back"
    ),
    AlertMetric.PIPELINE_LATE: Metric(
        SubjectKind.PIPELINE, "s", "the figures are {value} s old: alerts that depend on them neither fire nor resolve"
    ),
}


def told(metric: AlertMetric, value: float, name: str, detail: str = "") -> str:
    """One sentence. `detail` says more, such as who is the worst."""
    sentence = METRICS[metric].sentence.format(value=number(value), name=name)
    return f"{sentence}: {detail}" if detail else sentence


def number(value: float) -> str:
    """As people read it: no more digits than matter."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
