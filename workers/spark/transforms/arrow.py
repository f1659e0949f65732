"""Rows to plain Python and back, in Arrow's batches."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import PythonEvalType, vectorized_udf  # type: ignore[attr-defined]
from pyspark.sql.pandas.types import from_arrow_schema

Parts = Callable[[set[int]], Iterator[pa.RecordBatch]]
Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: Batches, schema: pa.Schema) -> DataFrame:
    """`DataFrame.mapInArrow`, which asks for pandas and does not use it. We do without: this is its body, less that
    question. The function is sent to Spark's Python processes, which must be able to import it."""
    udf = vectorized_udf(function, from_arrow_schema(schema), PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = udf(*(frame[name] for name in frame.columns))
    java_frame = frame._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001 - so does its original
    return DataFrame(java_frame, frame.sparkSession)


def map_parts(parts: DataFrame, function: Parts, schema: pa.Schema) -> DataFrame:
    """What the function makes of parts, whose numbers the frame has: each task has some, and reads what they hold."""
    return map_in_arrow(parts, partial(_of_parts, function), schema)


def _of_parts(function: Parts, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return function({number for batch in batches for number in batch.column(0).to_pylist()})
