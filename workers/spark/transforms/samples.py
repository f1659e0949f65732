"""Samples as tables of Arrow's, for transforms that sum up what some parts have before Spark sees any of it: reports of
consumers and producers have lists, which cost Java more than all else together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.numbers import numbers
from workers.spark.part_files import NO_FILES, EventFiles, read_part_files
from workers.spark.schemas import Kind

AT: Final = pa.timestamp("us", tz="UTC")
MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US


@dataclass(frozen=True, slots=True)
class SampleFiles:
    """Where samples of one kind are: those of the batch, and what is stored of the time that they are judged with."""

    batch: EventFiles
    window: EventFiles = NO_FILES


def read_once(files: SampleFiles, kind: Kind, columns: Sequence[str], parts: Collection[int]) -> pa.Table:
    """What these parts have, with whether it `is_new`; each sample once. One that was delivered twice is alike in all
    that is no list. It is of one part, as its place is. Hardly ever is there one: most are told apart by little."""
    rows = _read(files, kind, (*kind.identity, *columns), parts)
    if _groups(rows, kind.identity).num_rows == rows.num_rows:
        return rows
    rows = _read(files, kind, (*kind.single, *columns), parts)
    firsts = _groups(rows.append_column("row", numbers(rows.num_rows)), kind.single, ("row", "min"))
    return rows.take(firsts["row_min"]).combine_chunks()


def exploded(rows: pa.Table, column: str, *kept: str) -> pa.Table:
    """A row for each element of a list of structures, with its members, and these columns of the row that has it."""
    lists = rows[column].combine_chunks()
    elements, parents = lists.flatten(), pc.list_parent_indices(lists)
    members = {member.name: elements.field(index) for index, member in enumerate(lists.type.value_type)}
    return pa.table({**{name: rows[name].take(parents) for name in kept}, **members})


def grouped(rows: pa.Table, keys: Sequence[str], **how: str) -> pa.Table:
    """The rows with the same keys as one; of the other columns what `how` says of each: `sum` or `max`."""
    found = _groups(rows, keys, *how.items())
    columns = {key: found[key] for key in keys} | {name: found[f"{name}_{which}"] for name, which in how.items()}
    return pa.table(columns)


def since(rows: pa.Table, unit_us: int) -> pa.ChunkedArray:
    """When the minute, hour or day of each sample began."""
    at_us = rows["at"].cast(pa.int64())
    return pc.multiply(pc.divide(at_us, unit_us), unit_us).cast(AT)


def as_batches(rows: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = rows.select(schema.names).cast(schema).combine_chunks().to_batches()
    return batches


def _read(files: SampleFiles, kind: Kind, columns: Sequence[str], parts: Collection[int]) -> pa.Table:
    """New ones first: of two that are alike, the first is kept."""
    both = [
        rows.append_column("is_new", pa.repeat(is_new, rows.num_rows))
        for is_new, rows in (
            (True, read_part_files(files.batch, kind, columns, parts)),
            (False, read_part_files(files.window, kind, columns, parts)),
        )
    ]
    return pa.concat_tables(both).combine_chunks()


def _groups(rows: pa.Table, keys: Sequence[str], *how: tuple[str, str]) -> pa.Table:
    return rows.group_by(list(keys), use_threads=False).aggregate(list(how))
