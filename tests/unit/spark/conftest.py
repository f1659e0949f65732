"""One Spark for all tests: it takes seconds to start. A test of another module may have ended it."""

from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.services import require_or_skip
from tests.unit.spark.frames import Files, Row
from workers.spark.part_files import EventFiles
from workers.spark.parts import PARTS
from workers.spark.schemas import Kind
from workers.spark.session import missing_java, spark_session


@pytest.fixture
def spark() -> SparkSession:
    if problem := missing_java():
        require_or_skip(problem)
    return spark_session()


@pytest.fixture
def parts(spark: SparkSession) -> DataFrame:
    """All of them, for two tasks."""
    return spark.range(0, PARTS, 1, 2)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Files of these rows."""

    def write(kind: Kind, found: Iterable[Row]) -> EventFiles:
        path = tmp_path / f"{uuid4().hex}.parquet"
        pq.write_table(pa.Table.from_pylist(list(found), kind.arrow), path)
        return EventFiles((str(path),))

    return write
