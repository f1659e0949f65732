"""Samples by parts: each is read with its part, once, however its file was written."""

import logging
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.spark.frames import Row, consumed, offsets, sent
from workers.spark.part_files import NO_FILES, EventFiles, read_part_files
from workers.spark.parts import PARTS, parts_of
from workers.spark.schemas import CONSUMED_SAMPLES, OFFSET_SAMPLES, SENT_SAMPLES, Kind
from workers.spark.store import Stretch
from workers.spark.writing import GROUP_ROWS, EventWriter

Place = tuple[str, int, int]


def table(count: int) -> pa.Table:
    """Of seven queues with a hundred partitions."""
    some = [
        offsets(number, number, partition=number % 100, queue_id=str(UUID(int=number % 7, version=4)))
        for number in range(700)
    ]
    rows = pa.Table.from_pylist(some, OFFSET_SAMPLES.arrow)
    return pa.concat_tables([rows] * (count // len(some) + 1)).slice(0, count).combine_chunks()


def write(path: Path, *tables: pa.Table) -> EventFiles:
    writer = EventWriter(path, OFFSET_SAMPLES)
    for one in tables:
        writer.add(one)
    writer.close()
    return EventFiles((str(path),))


def places(rows: pa.Table) -> list[Place]:
    return sorted(zip(*(rows[name].to_pylist() for name in ("queue_id", "partition", "end_offset")), strict=True))


@pytest.mark.parametrize("sizes", [(10,), (GROUP_ROWS,), (GROUP_ROWS, 10)], ids=["few", "many", "many and few"])
def test_all_parts_together_are_the_file(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    tables = [table(size) for size in sizes]
    files = write(tmp_path / "one.parquet", *tables)
    parts = [read_part_files(files, OFFSET_SAMPLES, ["end_offset"], {part}) for part in range(PARTS)]
    assert places(pa.concat_tables(parts)) == places(pa.concat_tables(tables))
    for number, part in enumerate(parts):
        assert set(parts_of(part, OFFSET_SAMPLES.place).to_pylist()) <= {number}


def test_a_large_file_is_read_by_groups_of_rows_that_have_one_part_each(tmp_path: Path) -> None:
    files = write(tmp_path / "one.parquet", table(GROUP_ROWS))
    with pq.ParquetFile(files.paths[0]) as file:
        groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
    assert len(groups) > 1
    assert all(len(set(parts_of(group, OFFSET_SAMPLES.place).to_pylist())) == 1 for group in groups)


def test_neighbours_are_together_and_a_large_queue_is_not() -> None:
    parts = parts_of(
        pa.table({"queue_id": ["q"] * 640, "partition": list(range(640))}), OFFSET_SAMPLES.place
    ).to_pylist()
    assert len(set(parts[:16])) == 1
    assert set(parts) == set(range(PARTS))


def test_of_what_is_stored_only_its_time_counts(tmp_path: Path) -> None:
    files = write(tmp_path / "one.parquet", table(20))
    first_ms = int(table(1)["at"][0].as_py().timestamp() * 1000)
    stored = EventFiles(
        files.paths, (Stretch(first_ms, first_ms + 3_000), Stretch(first_ms + 9_000, first_ms + 10_000))
    )
    found = read_part_files(stored, OFFSET_SAMPLES, ["end_offset"], range(PARTS))
    assert sorted(found["end_offset"].to_pylist()) == [0, 1, 2, 9]


def test_what_is_stored_and_came_to_harm_is_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    harmed = tmp_path / "harmed.parquet"
    harmed.write_bytes(b"PAR1 neither rows nor a footer PAR1")
    whole = write(tmp_path / "one.parquet", table(5))
    paths = (str(harmed), *whole.paths)
    with caplog.at_level(logging.ERROR):
        found = read_part_files(EventFiles(paths, (Stretch(0, 1 << 45),)), OFFSET_SAMPLES, (), range(PARTS))
    assert found.num_rows == 5
    assert "harmed.parquet cannot be read" in caplog.text
    with pytest.raises(pa.ArrowException):
        read_part_files(EventFiles(paths), OFFSET_SAMPLES, (), range(PARTS))


@pytest.mark.parametrize(
    ("kind", "make"), [(CONSUMED_SAMPLES, consumed), (SENT_SAMPLES, sent)], ids=["consumed", "sent"]
)
@pytest.mark.parametrize("count", [100, 80_000])
def test_reports_are_read_by_parts_however_they_are_stored(
    tmp_path: Path, kind: Kind, make: Callable[..., Row], count: int
) -> None:
    some = pa.Table.from_pylist([make(number, partition=number) for number in range(100)], kind.arrow)
    writer = EventWriter(path := tmp_path / "one.parquet", kind)
    writer.add(pa.concat_tables([some] * (count // 100)))
    writer.close()
    with pq.ParquetFile(path) as file:
        assert (file.num_row_groups > 1) == (count > 100)
    found = [read_part_files(EventFiles((str(path),)), kind, (), {part}) for part in range(PARTS)]
    assert sorted(pa.concat_tables(found)["partition"].to_pylist()) == sorted(list(range(100)) * (count // 100))


def test_no_files() -> None:
    assert read_part_files(NO_FILES, OFFSET_SAMPLES, ["topic"], {0}).num_rows == 0
