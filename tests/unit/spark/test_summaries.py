"""Which summaries a run makes, and what it tells them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pyarrow as pa
import pytest
from django.utils import timezone

from queueapi.config import Config
from queueapi.models import PartitionHeat, Queue, Tenant
from queuecore.config.queue_tree import PartitionSettings, QueueSettings
from workers.spark import summaries
from workers.spark.frames import Frames
from workers.spark.schemas import CONSUMED_SAMPLES, OFFSET_SAMPLES, Kind
from workers.spark.sinks import QUEUE_SKEW
from workers.spark.summaries import SUMMARIES, Summary, make_all


class OfConsumers:
    """Frames of a batch that has consumers' reports alone; each is made to a table of one row."""

    def __init__(self) -> None:
        self.is_released = False

    def has(self, kind: Kind) -> bool:
        return kind == CONSUMED_SAMPLES

    def release(self) -> None:
        self.is_released = True

    def toArrow(self) -> pa.Table:  # noqa: N802 - as Spark calls it
        return pa.table({"messages": [1]})


def summary(name: str, *kinds: Kind, is_due: Callable[[], bool] = lambda: True) -> Summary:
    return Summary(name, kinds, lambda frames, _: cast(Any, frames), QUEUE_SKEW, is_due=is_due)


def test_made_is_what_is_due_and_has_events() -> None:
    frames = OfConsumers()
    asked = (
        summary("of one of its kinds", OFFSET_SAMPLES, CONSUMED_SAMPLES),
        summary("of no event", OFFSET_SAMPLES),
        summary("not due", CONSUMED_SAMPLES, is_due=lambda: False),
    )
    made = [(one.name, rows) for one, rows in make_all(asked, cast(Frames, frames), Config())]
    assert made == [("of one of its kinds", [{"messages": 1}])]
    assert frames.is_released


@pytest.fixture
def queue(db: None) -> Queue:
    tenant = Tenant.objects.create(name="Acme")
    return Queue.objects.create(tenant=tenant, name="Main", topic="tb_main", handler="count", partitions=12)


def left_out() -> set[str]:
    return {one.name for one in SUMMARIES if not one.is_due()}


def test_heat_is_made_once_a_minute(queue: Queue) -> None:
    """By the newest row, whichever queue's it is."""
    assert left_out() == set(), "there is none"
    for partition, minutes in enumerate((60, 1)):
        as_of = timezone.now() - timedelta(minutes=minutes)
        PartitionHeat.objects.create(queue=queue, partition=partition, messages=1, share=0.5, as_of=as_of)
        assert left_out() == set()
    PartitionHeat.objects.filter(partition=1).update(as_of=timezone.now() - timedelta(seconds=30))
    assert left_out() == {"heat of partitions", "skew of queues"}


@pytest.mark.parametrize(("sampled_s", "run_s", "rates_s"), [(5, 10, 30), (10, 5, 30), (20, 10, 60), (5, 20, 60)])
def test_rates_are_of_three_samples_or_runs(sampled_s: int, run_s: int, rates_s: int) -> None:
    installation = replace(Config(), sample_interval_s=sampled_s, pipeline_interval_s=run_s)
    options = summaries._lag_options(installation)
    assert (options.window_s, options.rate_window_s) == (600, rates_s)


def test_heat_is_of_the_partitions_and_the_hash_there_are(queue: Queue) -> None:
    partitions = PartitionSettings(hash_function_name="sha256")
    options = summaries._heat_options(replace(Config(), queue=QueueSettings(partitions=partitions)))
    assert (options.partitions, options.hash_function) == ({str(queue.id): 12}, "sha256")
