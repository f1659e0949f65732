"""Events of some parts, read by Spark's Python processes themselves: what is wanted there does not go through Java."""

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from workers.spark.parts import read_parts
from workers.spark.schemas import Kind
from workers.spark.store import Stretch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventFiles:
    """Files of one kind of event. What is stored counts where it is of these stretches of time; of a batch, which has
    none, all does."""

    paths: tuple[str, ...]
    stretches: tuple[Stretch, ...] = ()

    @property
    def are_stored(self) -> bool:
        return bool(self.stretches)


NO_FILES: Final = EventFiles(())


def read_part_files(files: EventFiles, kind: Kind, columns: Collection[str], parts: Collection[int]) -> pa.Table:
    """Rows with these columns, the time and the place. What is stored and cannot be read is left out, with a line in
    the log: it must not stop what is new, and a batch can be staged again."""
    schema = _schema(kind, columns)
    return pa.concat_tables([schema.empty_table(), *(rows for _, rows in _pieces(files, kind, schema, parts))])


def part_pieces(
    files: EventFiles, kind: Kind, columns: Collection[str], parts: Collection[int]
) -> Iterator[tuple[int, pa.Table]]:
    """The same piece by piece, each with its file's number."""
    return _pieces(files, kind, _schema(kind, columns), parts)


def _schema(kind: Kind, columns: Collection[str]) -> pa.Schema:
    return kind.chosen(("at", *kind.place, *columns))


def _pieces(files: EventFiles, kind: Kind, schema: pa.Schema, parts: Collection[int]) -> Iterator[tuple[int, pa.Table]]:
    for number, path in enumerate(files.paths):
        try:
            for rows in read_parts(path, parts, kind.place, schema):
                yield number, rows.filter(_is_within(rows["at"], files.stretches)) if files.are_stored else rows
        except (pa.ArrowException, OSError) as error:
            if not files.are_stored:
                raise
            logger.error("%s cannot be read (%s); its events are in summaries alone", path, error)


def _is_within(at: pa.ChunkedArray, stretches: tuple[Stretch, ...]) -> pa.ChunkedArray:
    at_us = at.cast(pa.int64())
    within = (
        pc.and_(pc.greater_equal(at_us, one.start_ms * 1000), pc.less(at_us, one.end_ms * 1000)) for one in stretches
    )
    return reduce(pc.or_, within)
