"""Partitions of queues by parts: what is made of all samples of a partition is made part by part, at the same time.

Samples are stored by parts already, so that who makes a part reads what it has and nothing else, and no sample has to
be moved. Neighbours are of one part: what is summed up for a queue becomes few rows where they are together.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Final
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARTS: Final = 32

_NEIGHBOURS: Final = 16
# In a file's footer: the part of each of its groups of rows.
_FOOTER: Final = b"parts"


def parts_of(rows: pa.Table, place: Sequence[str]) -> pa.Array:
    """The part of each row: the same whoever asks. `place` are the columns with a name and a partition's number."""
    name, partition = place
    names = rows[name].combine_chunks().dictionary_encode()
    first = pa.array([crc32(one.encode()) for one in names.dictionary.to_pylist()], pa.int64()).take(names.indices)
    number = pc.add(first, pc.divide(rows[partition].combine_chunks().cast(pa.int64()), _NEIGHBOURS))
    return pc.subtract(number, pc.multiply(pc.divide(number, PARTS), PARTS))


def split(rows: pa.Table, place: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """What the rows have of each part."""
    parts = parts_of(rows, place)
    order = pc.sort_indices(parts)
    ordered = rows.take(order)
    counts = pc.value_counts(parts.take(order))
    start = 0
    for part, count in zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True):
        yield part, ordered.slice(start, count)
        start += count


def footer(parts: list[int]) -> dict[bytes, bytes]:
    return {_FOOTER: json.dumps(parts).encode()}


def read_parts(path: str, columns: list[str], wanted: Collection[int], place: Sequence[str]) -> pa.Table:
    """What a file of events has of these parts; the place is among the columns. ArrowException or OSError where it
    cannot be read."""
    with pq.ParquetFile(path) as file:
        known = (file.metadata.metadata or {}).get(_FOOTER)
        if known is not None:
            groups = [number for number, part in enumerate(json.loads(known)) if part in wanted]
            return file.read_row_groups(groups, columns=columns, use_threads=False)
        rows = file.read(columns=columns, use_threads=False)
    return rows.filter(pc.is_in(parts_of(rows, place), value_set=pa.array(list(wanted), pa.int64())))
