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

# What is read, and summed up, at once: some times as much is in memory meanwhile, however much there is.
PIECE_BYTES: Final = 32 * 1024 * 1024

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


def read_parts(path: str, wanted: Collection[int], place: Sequence[str], schema: pa.Schema) -> Iterator[pa.Table]:
    """What a file of events has of these parts, as groups of rows that are read together: of some PIECE_BYTES, or one.
    The place is among the columns. ArrowException or OSError where it cannot be read."""
    with pq.ParquetFile(path) as file:
        known = (file.metadata.metadata or {}).get(_FOOTER)
        of_groups = range(file.num_row_groups) if known is None else json.loads(known)
        groups = [number for number, part in enumerate(of_groups) if known is None or part in wanted]
        leaves = list(_leaves(file.schema, schema))
        for some in _together(file.metadata, groups):
            rows = file.read_row_groups(some, columns=leaves, use_threads=False).select(schema.names).cast(schema)
            if known is None:
                rows = rows.filter(pc.is_in(parts_of(rows, place), value_set=pa.array(list(wanted), pa.int64())))
            yield rows


def _together(metadata: pq.FileMetaData, groups: list[int]) -> Iterator[list[int]]:
    gathered, size = list[int](), 0
    for group in groups:
        more = metadata.row_group(group).total_byte_size
        if gathered and size + more > PIECE_BYTES:
            yield gathered
            gathered, size = [], 0
        gathered.append(group)
        size += more
    if gathered:
        yield gathered


def _leaves(stored: pq.ParquetSchema, schema: pa.Schema) -> Iterator[str]:
    """Where a file has what is wanted: columns, and of lists of structures the members."""
    for number in range(len(stored)):
        path: str = stored.column(number).path
        name, *within = path.split(".")
        if name in schema.names:
            kind = schema.field(name).type
            is_of_structures = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
            if not is_of_structures or within[-1] in kind.value_type.names:
                yield path
