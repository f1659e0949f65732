"""Lag, from frames to frames: now, and by the minute, hour and day. The rules are tested without Spark."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from queueapi.models import LagCurrent, LagMinute
from tests.unit.spark.frames import QUEUE, START, Files, Row, at, consumed, offsets, rows
from workers.spark.schemas import CONSUMED_SAMPLES, OFFSET_SAMPLES
from workers.spark.transforms.lag import LagFiles, current_lag, lag, lag_history
from workers.spark.transforms.options import Extent
from workers.spark.transforms.samples import SampleFiles

Known = Callable[..., DataFrame]
Current = Callable[..., dict[tuple[str, int], Row]]
History = Callable[..., list[Row]]


def columns(model: type[Any], *without: str) -> set[str]:
    names = {one.attname for one in model._meta.concrete_fields}
    return names - {"id", *without}


@pytest.fixture
def known(parts: DataFrame, files: Files) -> Known:
    """What is known of lag where there are files of these rows."""

    def of(samples: Iterable[Row], window: Iterable[Row] = (), work: Iterable[Row] = (), **more: Any) -> DataFrame:
        known = SampleFiles(files(OFFSET_SAMPLES, samples), files(OFFSET_SAMPLES, window))
        told = LagFiles(known, SampleFiles(files(CONSUMED_SAMPLES, work)))
        return lag(parts, told, **more)

    return of


@pytest.fixture
def current(known: Known) -> Current:
    def summarise(*samples: Row, **more: Any) -> dict[tuple[str, int], Row]:
        found = rows(current_lag(known(samples, **more)))
        assert len({(row["queue_id"], row["partition"]) for row in found}) == len(found), "twice the same partition"
        return {(row["queue_id"], row["partition"]): row for row in found}

    return summarise


@pytest.fixture
def history(known: Known) -> History:
    def summarise(*samples: Row, **more: Any) -> list[Row]:
        return sorted(rows(lag_history(known(samples, **more))), key=lambda row: (row["queue_id"], row["at"]))

    return summarise


def test_of_a_long_time_only_the_end_counts(known: Known) -> None:
    """A backlog of two hours: the same rows as of all that is in it, of those that fell silent early, too."""
    steady = [offsets(second, 10 * second, 9 * second) for second in range(0, 7_200, 30)]
    stopped = [offsets(second, 5 * second, 100, partition=1, topic="tb_main.1") for second in range(0, 7_200, 30)]
    silent = [offsets(second, 7, 7, partition=2, topic="tb_main.2") for second in range(0, 600, 30)]
    work = [consumed(second, partition=1) for second in range(0, 7_200, 60)]

    def found(**more: Any) -> list[Row]:
        made = current_lag(known([*steady, *stopped, *silent], [offsets(-5, 0, 0)], work, **more))
        return sorted(rows(made), key=lambda row: row["partition"])

    expected = found()
    assert found(extent=Extent(is_long=True)) == expected
    assert len(expected) == 3


class TestCurrent:
    def test_a_row_of_the_table(self, current: Current) -> None:
        """All partitions at once: they come back apart, each from its own samples in any order, some of them twice."""
        first, second, third = offsets(0, 100, 40), offsets(5, 150, 60), offsets(10, 200, 80)
        calm = [offsets(second, 7, 7, partition=1, topic="tb_main.1") for second in (0, 5, 10)]
        found = current(third, *calm, second, third, window=(first, second))
        assert set(found) == {(QUEUE, 0), (QUEUE, 1)}
        row = found[QUEUE, 0]
        assert set(row) == columns(LagCurrent, "status_since")
        assert row == {
            "queue_id": QUEUE,
            "partition": 0,
            "topic": "tb_main.0",
            "consumer_group": "main-consumer-0",
            "end_offset": 200,
            "committed_offset": 80,
            "lag_messages": 120,
            "lag_seconds": pytest.approx(12.0),
            "produced_per_s": pytest.approx(10.0),
            "consumed_per_s": pytest.approx(4.0),
            "trend_per_s": pytest.approx(6.0),
            "drain_eta_s": None,
            "oldest_age_s": pytest.approx(11.9),
            "status": "ok",
            "reason": "OK: 120 waiting, 12 s behind",
            "as_of": at(10),
        }
        assert (found[QUEUE, 1]["status"], found[QUEUE, 1]["drain_eta_s"]) == ("ok", 0.0)

    def test_edges(self, current: Current) -> None:
        """One partition for each, in one frame: what a batch may hold beside each other."""
        nobody = {number: {"partition": number, "topic": f"t.{number}", "group": f"g-{number}"} for number in range(10)}
        window = (
            offsets(0, 100, 40, **nobody[1]),
            offsets(600, 200, 80, **nobody[2]),
            offsets(0, 10, 10, **nobody[3]),
            offsets(590, 500, 400, **nobody[5]),
            offsets(590, 500, 400, **nobody[6], service_id="other"),
            offsets(595, 500, 450, **nobody[8]),
        )
        samples = (
            offsets(600, 100, 40, **nobody[0]),
            offsets(601, 300, 80, **nobody[1]),
            offsets(590, 150, 60, **nobody[2]),
            offsets(600, 100, None, beginning_offset=30, **nobody[4]),
            offsets(600, 20, 400, **nobody[5]),
            offsets(595, 480, 390, **nobody[6]),
            offsets(600, 510, 410, **nobody[6]),
            offsets(600, 9, 3, **nobody[7]),
            offsets(600, 500, 100, **nobody[8]),
        )
        found = {partition: row for (_, partition), row in current(*samples, window=window).items()}
        assert set(found) == {0, 1, 2, 4, 5, 6, 7, 8}, "3 has no new samples, as after its topic was deleted"
        seen = {number: (row["lag_messages"], row["produced_per_s"], row["status"]) for number, row in found.items()}
        assert seen[0] == (60, None, "ok"), "one sample only"
        assert seen[1] == (220, None, "ok"), "what is long past is no rate"
        assert (found[2]["as_of"], seen[2][0]) == (at(600), 120), "what came late changes nothing"
        assert seen[4] == (70, None, "ok"), "no commits yet"
        assert seen[5] == (0, None, "ok"), "the topic was made anew, and the commit is beyond its end"
        assert seen[6] == (100, 1.0, "ok"), "a clock that is behind"
        assert seen[7] == (6, None, "ok"), "a partition that has just come"
        assert seen[8] == (400, 0.0, "rewind"), "a group that was reset"

    def test_who_tries_in_vain_is_told_from_who_is_gone(self, current: Current) -> None:
        stuck = [offsets(second, 500, 100, partition=partition) for second in range(0, 301, 20) for partition in (0, 1)]
        work = tuple(consumed(second, failed=3, packs=1) for second in range(0, 301, 10))
        found = current(*stuck, work=work)
        assert found[QUEUE, 0]["reason"] == (
            "STALL: at work, and no further for 5 min or longer; 36 of the last 36 attempts failed; 400 waiting"
        )
        assert found[QUEUE, 1]["reason"] == "STOP: no commit for 5 min or longer; 400 waiting"

    def test_nothing_new(self, current: Current) -> None:
        assert current(window=(offsets(0, 1, 1),)) == {}


class TestHistory:
    def test_a_minute_has_the_most_that_all_partitions_had_at_once(self, history: History) -> None:
        both = [
            offsets(second, end, committed, partition=partition)
            for second, standings in ((0, ((10, 0), (0, 0))), (20, ((10, 10), (30, 5))), (40, ((60, 60), (30, 30))))
            for partition, (end, committed) in enumerate(standings)
        ]
        (row,) = history(*both)
        assert set(row) == columns(LagMinute)
        assert row == {
            "queue_id": QUEUE,
            "at": START,
            "lag_messages": 25,
            "lag_seconds": pytest.approx(20 * 25 / 30),
            "produced": 50 + 30,
            "consumed": 60 + 30,
            "status": "ok",
            "samples": 6,
        }

    def test_is_made_whole_from_batch_and_window(self, history: History) -> None:
        """However the minute was cut into batches, and however often one is repeated."""
        samples = [offsets(second, second * 10, second * 5) for second in range(0, 120, 10)]
        whole = history(*samples)
        assert [row["at"] for row in whole] == [START, START + timedelta(minutes=1)]
        assert history(*samples[8:], window=tuple(samples[:8])) == whole[1:]
        assert history(*samples[8:], window=tuple(samples)) == whole[1:]
        assert [row["produced"] for row in whole] == [500, 600], "from the last sample of the minute before"

    def test_the_worst_status(self, history: History) -> None:
        samples = [offsets(second, 500, 100) for second in range(0, 300, 10)]
        calm = [offsets(second, 5, 5, partition=1) for second in range(0, 300, 10)]
        assert [row["status"] for row in history(*samples, *calm)] == ["ok", "ok", "stop", "stop", "stop"]

    def test_offsets_that_went_back_are_no_messages(self, history: History) -> None:
        (row,) = history(offsets(0, 500, 400), offsets(10, 20, 10), offsets(20, 30, 5), offsets(30, 30, 8))
        assert (row["produced"], row["consumed"]) == (10, 3)
