"""Parquet files of events, written in groups of rows that compress well and fit into memory."""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from workers.spark.durable import sync_file

# Rows that are written at once.
GROUP_ROWS: Final = 100_000


class EventWriter:
    """One file. What is added waits until it is a group's worth."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._path = path
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= GROUP_ROWS:
            self._write()

    def close(self) -> None:
        """The file is whole, and on disk. By who wrote it, as others may be on other machines."""
        if self._waiting:
            self._write()
        self._writer.close()
        sync_file(self._path)

    def _write(self) -> None:
        self._writer.write_table(pa.concat_tables(self._waiting).combine_chunks(), row_group_size=GROUP_ROWS * 2)
        self.rows += self._waiting_rows
        self._waiting, self._waiting_rows = [], 0
