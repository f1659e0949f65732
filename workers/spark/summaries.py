"""What the pipeline makes of events: one line for each table that it fills."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db.models import Max
from django.utils import timezone
from pyspark.sql import DataFrame

from queueapi.config import Config
from queueapi.models import PartitionHeat, Queue
from queuecore.topics import ProviderPartition, payload_partition
from workers.spark.frames import Frames
from workers.spark.parts import PARTS
from workers.spark.schemas import CONSUMED_SAMPLES, OFFSET_SAMPLES, REQUEST_SAMPLES, SENT_SAMPLES, Kind
from workers.spark.sinks import (
    LAG_CURRENT,
    LAG_HISTORY,
    LETTER_TREND,
    PARTITION_HEAT,
    PROCESSING_HISTORY,
    QUEUE_SKEW,
    REQUEST_CURRENT,
    REQUEST_HISTORY,
    TENANT_USAGE,
    Row,
    Sink,
)
from workers.spark.transforms.heat import HeatOptions, heat_counts, partition_heat, queue_skew
from workers.spark.transforms.lag import LagFiles, current_lag, lag, lag_history
from workers.spark.transforms.minutes import together
from workers.spark.transforms.options import Extent, LagOptions
from workers.spark.transforms.processing import letter_trend, processing_minutes
from workers.spark.transforms.requests import request_current, request_minutes
from workers.spark.transforms.samples import SampleFiles
from workers.spark.transforms.usage import tenant_usage

# How far transforms look back.
WINDOW_S: Final = 600
# Of a batch of a longer time the present is judged by its end.
_LONG_S: Final = 3 * WINDOW_S
# Each task opens all files. Samples of offsets are so many that a task has but one part of them; reports are not.
_REPORT_TASKS: Final = 8
_HEAT_EVERY: Final = timedelta(minutes=1)

Make = Callable[[Frames, Config], DataFrame]


@dataclass(frozen=True, slots=True)
class Summary:
    """
    kinds       of events that it is made of: without any of these there is nothing to make
    make        the rows, whose columns are the table's
    is_history  whether its rows are of stretches of time, so that back-fill can make them anew
    is_due      whether it is to be made now: what changes slowly, and costs much, is left out of most runs
    """

    name: str
    kinds: tuple[Kind, ...]
    make: Make
    sink: Sink
    is_history: bool = False
    is_due: Callable[[], bool] = lambda: True


def make_all(
    summaries: tuple[Summary, ...], frames: Frames, installation: Config
) -> Iterator[tuple[Summary, list[Row]]]:
    """The rows of each that there is something to make of. Through Arrow, which keeps the times' zone."""
    try:
        for summary in summaries:
            if any(map(frames.has, summary.kinds)) and summary.is_due():
                yield summary, summary.make(frames, installation).toArrow().to_pylist()
    finally:
        frames.release()


def _current_lag(frames: Frames, installation: Config) -> DataFrame:
    return current_lag(_lag(frames, installation))


def _lag_history(frames: Frames, installation: Config) -> DataFrame:
    return lag_history(_lag(frames, installation))


def _lag(frames: Frames, installation: Config) -> DataFrame:
    """Both are made of it: samples are most of all events, so they are looked at once."""

    def make() -> DataFrame:
        minutes = frames.minutes(OFFSET_SAMPLES)
        extent = Extent(since_us=minutes.start * 60_000_000, is_long=len(minutes) * 60 > _LONG_S)
        return lag(frames.spread(PARTS, PARTS), _lag_files(frames), _lag_options(installation), extent)

    return frames.kept("lag", make)


def _request_current(frames: Frames, _: Config) -> DataFrame:
    return request_current(_requests(frames))


def _request_minutes(frames: Frames, _: Config) -> DataFrame:
    return request_minutes(_requests(frames))


def _requests(frames: Frames) -> DataFrame:
    """To tell each from all others takes longer than what is made of them."""
    return frames.kept("requests", lambda: together(frames.batch(REQUEST_SAMPLES), frames.window(REQUEST_SAMPLES)))


def _processing_minutes(frames: Frames, _: Config) -> DataFrame:
    """Of the time before a minute it has nothing."""
    files = SampleFiles(frames.batch_files(CONSUMED_SAMPLES), frames.minute_files(CONSUMED_SAMPLES))
    return processing_minutes(_reports(frames), files)


def _letter_trend(frames: Frames, _: Config) -> DataFrame:
    return letter_trend(_reports(frames), _to_add(frames, CONSUMED_SAMPLES))


def _partition_heat(frames: Frames, installation: Config) -> DataFrame:
    return partition_heat(_heat_counts(frames), _heat_options(installation))


def _queue_skew(frames: Frames, installation: Config) -> DataFrame:
    return queue_skew(_heat_counts(frames), _heat_options(installation))


def _heat_counts(frames: Frames) -> DataFrame:
    def make() -> DataFrame:
        return heat_counts(_reports(frames), _with_window(frames, CONSUMED_SAMPLES))

    return frames.kept("heat", make)


def _tenant_usage(frames: Frames, _: Config) -> DataFrame:
    consumed, sent = (_to_add(frames, kind) for kind in (CONSUMED_SAMPLES, SENT_SAMPLES))
    return tenant_usage(_reports(frames), consumed, sent, named_letter_topics())


def _reports(frames: Frames) -> DataFrame:
    return frames.spread(PARTS, _REPORT_TASKS)


def _with_window(frames: Frames, kind: Kind) -> SampleFiles:
    return SampleFiles(frames.batch_files(kind), frames.window_files(kind))


def _to_add(frames: Frames, kind: Kind) -> SampleFiles:
    """Without what an earlier batch has added: one that was delivered twice is of one minute, and may be in two."""
    return SampleFiles(frames.batch_files(kind), counted=frames.minute_files(kind))


def _lag_files(frames: Frames) -> LagFiles:
    """With what consumers did in the minutes that lag is judged of: they report less often than offsets are sampled."""
    work = frames.window_files(CONSUMED_SAMPLES, of=OFFSET_SAMPLES)
    consumed = SampleFiles(frames.batch_files(CONSUMED_SAMPLES), work)
    return LagFiles(_with_window(frames, OFFSET_SAMPLES), consumed)


def _lag_options(installation: Config) -> LagOptions:
    """Rates of a time that holds two samples and the last run's, whatever the intervals are."""
    longest_s = max(installation.sample_interval_s, installation.pipeline_interval_s)
    return LagOptions(window_s=WINDOW_S, rate_window_s=max(30, 3 * longest_s))


def _heat_is_old() -> bool:
    """What a clock that is ahead says is not counted: everybody's would wait for it."""
    now = timezone.now()
    newest = PartitionHeat.objects.filter(as_of__lte=now).aggregate(newest=Max("as_of"))["newest"]
    return newest is None or now - newest >= _HEAT_EVERY


def named_letter_topics() -> set[str]:
    """Topics of dead letters, and of their payloads, whose names queues were given."""
    named = Queue.objects.exclude(dlq_topic="").values_list("dlq_topic", flat=True).order_by().distinct()
    return {name for topic in named for name in (topic, payload_partition(ProviderPartition(topic, 0)).full_topic_name)}


def _heat_options(installation: Config) -> HeatOptions:
    partitions = {str(queue): number for queue, number in Queue.objects.values_list("id", "partitions").order_by()}
    return HeatOptions(partitions=partitions, hash_function=installation.queue.partitions.hash_function_name)


SUMMARIES: Final = (
    Summary("current lag", (OFFSET_SAMPLES,), _current_lag, LAG_CURRENT),
    Summary("history of lag", (OFFSET_SAMPLES,), _lag_history, LAG_HISTORY, is_history=True),
    Summary("current requests", (REQUEST_SAMPLES,), _request_current, REQUEST_CURRENT),
    Summary("history of requests", (REQUEST_SAMPLES,), _request_minutes, REQUEST_HISTORY, is_history=True),
    Summary("history of processing", (CONSUMED_SAMPLES,), _processing_minutes, PROCESSING_HISTORY, is_history=True),
    Summary("trend of letters", (CONSUMED_SAMPLES,), _letter_trend, LETTER_TREND, is_history=True),
    Summary("heat of partitions", (CONSUMED_SAMPLES,), _partition_heat, PARTITION_HEAT, is_due=_heat_is_old),
    Summary("skew of queues", (CONSUMED_SAMPLES,), _queue_skew, QUEUE_SKEW, is_due=_heat_is_old),
    Summary("usage of tenants", (CONSUMED_SAMPLES, SENT_SAMPLES), _tenant_usage, TENANT_USAGE, is_history=True),
)
