"""Samples as tables of Arrow's, for transforms that sum up what some parts have before Spark sees any of it: reports of
consumers and producers have lists, which cost Java more than all else together.

There may be a day of them, with sixty tenants each, so that they are looked at piece by piece. What is in memory at one
time is bounded: a piece, some times over; of each sample of a part some 50 bytes, by which one that was delivered twice
is found; and the sums.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.numbers import numbers
from workers.spark.part_files import NO_FILES, EventFiles, part_pieces, read_part_files
from workers.spark.parts import PIECE_BYTES
from workers.spark.schemas import Kind

AT: Final = pa.timestamp("us", tz="UTC")
MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

# Where files are larger than that together, a task looks at one of its parts after the other. Of less it looks at all
# at once: small files have no parts, and would be read again for each.
MUCH_BYTES: Final = 64 * 1024 * 1024
# Sums of fewer rows are not worth grouping before there are more.
_FEW_ROWS: Final = 10_000
# No file has more rows, and there are no more files of samples.
_ROWS, _FILES = 1 << 40, 1 << 20
_NONE: Final = pa.array([], pa.int64())


@dataclass(frozen=True, slots=True)
class SampleFiles:
    """Where samples of one kind are.

    batch    those of the batch
    window   what is stored of the time that they are judged with, and counts as well
    counted  what is stored and was counted before: who finds it in the batch again leaves it out
    """

    batch: EventFiles
    window: EventFiles = NO_FILES
    counted: EventFiles = NO_FILES


NO_SAMPLES: Final = SampleFiles(NO_FILES)


def read_all(files: SampleFiles, kind: Kind, columns: Sequence[str], parts: Collection[int]) -> pa.Table:
    """What batch and window have of these parts, with whether it `is_new`."""
    both = ((files.batch, True), (files.window, False))
    return pa.concat_tables([_told(read_part_files(one, kind, columns, parts), is_new) for one, is_new in both])


def read_once(files: SampleFiles, kind: Kind, columns: Sequence[str], parts: Collection[int]) -> Iterator[pa.Table]:
    """The same piece by piece, each sample once. One that was delivered twice is alike in all that is no list. It is of
    one part, as its place is. Hardly ever is there one, and most are told apart by little, which is read first."""
    for some in _rounds(files, parts):
        repeated = _repeated(files, kind, some)
        both = ((1, files.batch, True), (2, files.window, False))
        tables = (
            _told(rows, is_new)
            for rank, one, is_new in both
            for rows in _without(_numbered(one, rank, kind, columns, some), repeated)
        )
        yield from _gathered(tables)


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


def summed(tables: Iterable[pa.Table], schema: pa.Schema, keys: Sequence[str], **how: str) -> Iterator[pa.RecordBatch]:
    """`grouped`, of the rows of all tables. What comes is grouped with what there is whenever it has become more than
    that: so neither does it pile up, nor is a sum made anew for each table."""
    sums, waiting, count = schema.empty_table(), list[pa.Table](), 0
    for table in tables:
        waiting.append(table.select(schema.names).cast(schema))
        count += table.num_rows
        if count > max(sums.num_rows, _FEW_ROWS):
            sums = grouped(pa.concat_tables([sums, *waiting]), keys, **how).select(schema.names)
            waiting, count = [], 0
    yield from as_batches(grouped(pa.concat_tables([sums, *waiting]), keys, **how), schema)


def since(rows: pa.Table, unit_us: int) -> pa.ChunkedArray:
    """When the minute, hour or day of each sample began."""
    at_us = rows["at"].cast(pa.int64())
    return pc.multiply(pc.divide(at_us, unit_us), unit_us).cast(AT)


def as_batches(rows: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = rows.select(schema.names).cast(schema).combine_chunks().to_batches()
    return batches


def _rounds(files: SampleFiles, parts: Collection[int]) -> Iterable[Collection[int]]:
    """Parts that are looked at together."""
    paths = (Path(path) for one in (files.counted, files.batch, files.window) for path in one.paths)
    is_much = sum(path.stat().st_size for path in paths if path.exists()) > MUCH_BYTES
    return [[part] for part in parts] if is_much else [parts]


def _repeated(files: SampleFiles, kind: Kind, parts: Collection[int]) -> pa.Array:
    """The numbers of the rows that there are before. What was counted comes first, and then what is new."""
    rows = list(_of_all(files, kind, kind.identity, parts))
    suspects = _of_several(_joined(rows), kind.identity) if rows else _NONE
    if not len(suspects):
        return suspects
    singles = _of_all(files, kind, kind.single, parts)
    found = _joined([rows.filter(pc.is_in(rows["row"], value_set=suspects)) for rows in singles])
    firsts = _groups(found, kind.single, ("row", "min"))["row_min"].combine_chunks()
    return found["row"].combine_chunks().filter(pc.invert(pc.is_in(found["row"], value_set=firsts)).combine_chunks())


def _of_several(rows: pa.Table, keys: Sequence[str]) -> pa.Array:
    """The numbers of those whose keys others have as well."""
    if _groups(rows, keys).num_rows == rows.num_rows:
        return _NONE
    groups = _groups(rows, keys, ("row", "count"), ("row", "list")).combine_chunks()
    return groups["row_list"].combine_chunks().filter(pc.greater(groups["row_count"], 1).combine_chunks()).flatten()


def _of_all(files: SampleFiles, kind: Kind, columns: Sequence[str], parts: Collection[int]) -> Iterator[pa.Table]:
    for rank, one in enumerate((files.counted, files.batch, files.window)):
        yield from _numbered(one, rank, kind, columns, parts)


def _numbered(
    files: EventFiles, rank: int, kind: Kind, columns: Sequence[str], parts: Collection[int]
) -> Iterator[pa.Table]:
    """With a number for each row, which it has whenever it is read. One of a lower rank has a lower number."""
    known = Counter[int]()
    for file, rows in part_pieces(files, kind, columns, parts):
        first = (rank * _FILES + file) * _ROWS + known[file]
        known[file] += rows.num_rows
        yield rows.append_column("row", pc.add(numbers(rows.num_rows), first))


def _without(tables: Iterable[pa.Table], repeated: pa.Array) -> Iterator[pa.Table]:
    for rows in tables:
        kept = rows.filter(pc.invert(pc.is_in(rows["row"], value_set=repeated))) if len(repeated) else rows
        yield kept.drop_columns("row")


def _told(rows: pa.Table, is_new: bool) -> pa.Table:
    return rows.append_column("is_new", pa.repeat(is_new, rows.num_rows))


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """As many together as a piece has: there are small files."""
    gathered, size = list[pa.Table](), 0
    for table in tables:
        if gathered and size + table.nbytes > PIECE_BYTES:
            yield _joined(gathered)
            gathered, size = [], 0
        if table.num_rows:
            gathered.append(table)
            size += table.nbytes
    if gathered:
        yield _joined(gathered)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()


def _groups(rows: pa.Table, keys: Sequence[str], *how: tuple[str, str]) -> pa.Table:
    return rows.group_by(list(keys), use_threads=False).aggregate(list(how))
