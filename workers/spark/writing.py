"""Parquet files of events, written in groups of rows that compress well and fit into memory."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from workers.spark.durable import sync_file
from workers.spark.parts import footer, split
from workers.spark.schemas import OFFSET_SAMPLES, TEXT, Kind

# Rows that are written at once, or what fits into memory of those with long lists.
GROUP_ROWS: Final = 100_000
GROUP_BYTES: Final = 64 * 1024 * 1024
# From this size on they are written by parts: less is read as a whole by whoever wants a part of it.
PARTED_BYTES: Final = 4 * 1024 * 1024


class EventWriter:
    """One file. What is added waits until it is a group's worth. Where that is much, it is written by parts."""

    def __init__(self, path: Path, kind: Kind) -> None:
        self.rows = 0
        self._path = path
        self._writer = pq.ParquetWriter(path, kind.arrow, **_options(kind))
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._place = kind.place
        self._parts: list[int] = []

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        self._waiting_bytes += table.nbytes
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._write()

    def close(self) -> None:
        """The file is whole, and on disk. By who wrote it, as others may be on other machines."""
        if self._waiting:
            self._write()
        if self._parts:
            self._writer.add_key_value_metadata(footer(self._parts))
        self._writer.close()
        sync_file(self._path)

    def _write(self) -> None:
        rows = pa.concat_tables(self._waiting).combine_chunks()
        # Of a file that has begun by parts, all is written so.
        if self._place and (self._parts or (not self.rows and rows.nbytes >= PARTED_BYTES)):
            for part, of_part in split(rows, self._place):
                self._writer.write_table(of_part, row_group_size=len(of_part))
                self._parts.append(part)
        else:
            self._writer.write_table(rows, row_group_size=GROUP_ROWS * 2)
        self.rows += self._waiting_rows
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0


def _options(kind: Kind) -> dict[str, Any]:
    """Nobody asks for extremes of columns, and numbers hardly ever repeat. Reports have many short columns: to set up a
    better compression for each takes longer than all else."""
    texts = [field.name for field in kind.arrow if field.type == TEXT]
    compression = "zstd" if kind is OFFSET_SAMPLES else "snappy"
    return {"compression": compression, "use_dictionary": ["at", *texts], "write_statistics": False}
