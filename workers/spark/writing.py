"""Parquet files of events, written in groups of rows that compress well and fit into memory."""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from workers.spark.durable import sync_file
from workers.spark.parts import footer, split
from workers.spark.schemas import OFFSET_SAMPLES

# Rows that are written at once.
GROUP_ROWS: Final = 100_000


class EventWriter:
    """One file. What is added waits until it is a group's worth. Samples of offsets, which are most of all events, are
    written by parts where there are many."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._path = path
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._parts: list[int] | None = [] if schema.equals(OFFSET_SAMPLES.arrow) else None

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= GROUP_ROWS:
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
        # One small file is read as a whole by whoever wants a part of it; of one that has begun by parts all is.
        if self._parts is None or (not self._parts and self._waiting_rows < GROUP_ROWS):
            self._writer.write_table(rows, row_group_size=GROUP_ROWS * 2)
        else:
            for part, of_part in split(rows):
                self._writer.write_table(of_part, row_group_size=len(of_part))
                self._parts.append(part)
        self.rows += self._waiting_rows
        self._waiting, self._waiting_rows = [], 0
