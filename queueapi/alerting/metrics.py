"""What rules look at: of what each metric is, its unit, and how a value is told."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queueapi.choices import AlertMetric

# The first word of a unit that counts things.
_PLURAL: Final = re.compile(r"^(\w{2,})s\b")
_ONE: Final = r"\1"


class SubjectKind(StrEnum):
    """Of what there can be an alert."""

    QUEUE = "queue"
    REQUESTS = "requests"
    CLUSTER = "cluster"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class Metric:
    """`sentence` tells a value, as `{value}`, of `{name}`; `of_one` tells 1, where that reads otherwise."""

    kind: SubjectKind
    unit: str
    sentence: str
    of_one: str = ""


METRICS: Final = {
    AlertMetric.LAG_MESSAGES: Metric(
        SubjectKind.QUEUE, "messages", "{value} messages wait in queue {name}", "1 message waits in queue {name}"
    ),
    AlertMetric.LAG_SECONDS: Metric(SubjectKind.QUEUE, "s", "queue {name} is {value} s behind"),
    AlertMetric.STALLED_PARTITIONS: Metric(
        SubjectKind.QUEUE,
        "partitions",
        "{value} of queue {name}'s partitions stop or stall",
        "1 of queue {name}'s partitions stops or stalls",
    ),
    AlertMetric.ERROR_RATE: Metric(SubjectKind.QUEUE, "%", "{value} % of attempts in queue {name} fail"),
    AlertMetric.NEW_LETTERS: Metric(
        SubjectKind.QUEUE,
        "letters in an hour",
        "{value} dead letters of queue {name} came within an hour",
        "1 dead letter of queue {name} came within an hour",
    ),
    AlertMetric.OPEN_LETTERS: Metric(
        SubjectKind.QUEUE,
        "letters",
        "{value} dead letters of queue {name} are open",
        "1 dead letter of queue {name} is open",
    ),
    AlertMetric.PENDING_REQUESTS: Metric(
        SubjectKind.REQUESTS,
        "requests",
        "{value} requests to {name} wait for their answers",
        "1 request to {name} waits for its answer",
    ),
    AlertMetric.REQUEST_TIMEOUTS: Metric(
        SubjectKind.REQUESTS,
        "requests in a minute",
        "{value} requests to {name} timed out within a minute",
        "1 request to {name} timed out within a minute",
    ),
    AlertMetric.RESPONSE_LAG: Metric(
        SubjectKind.REQUESTS, "ms", "one in a hundred answers of {name} takes {value} ms or longer"
    ),
    AlertMetric.LEASE_LOSSES: Metric(
        SubjectKind.CLUSTER,
        "instances",
        "{value} service instances lost their lease within an hour, and are not back",
        "1 service instance lost its lease within an hour, and is not back",
    ),
    AlertMetric.PIPELINE_LATE: Metric(SubjectKind.PIPELINE, "s", "the figures are {value} s old"),
}


def told(metric: AlertMetric, value: float, name: str, detail: str = "") -> str:
    """One sentence. `detail` says more, such as who is the worst."""
    words = METRICS[metric]
    sentence = (words.of_one if value == 1 and words.of_one else words.sentence).format(value=number(value), name=name)
    return f"{sentence}: {detail}" if detail else sentence


def measure(value: float, metric: AlertMetric) -> str:
    """A value in its unit: 1 letter, 2 letters."""
    unit = METRICS[metric].unit
    return f"{number(value)} {_PLURAL.sub(_ONE, unit) if value == 1 else unit}"


def number(value: float) -> str:
    """As people read it: no more digits than matter."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
