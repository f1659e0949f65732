"""Minutes of which a batch has something, each made anew from what came before the batch, too.

So a row takes the place of the one before, and a batch that is repeated changes nothing.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType


def together(samples: DataFrame, window: DataFrame) -> DataFrame:
    """Batch and window, each sample once, with whether it `is_new`. One that was delivered twice is alike in all its
    numbers."""
    known = samples.withColumn("is_new", f.lit(True)).unionByName(window.withColumn("is_new", f.lit(False)))
    lists = {field.name for field in known.schema if isinstance(field.dataType, ArrayType)}
    alike = [name for name in known.columns if name not in lists | {"is_new"}]
    return known.groupBy(*alike).agg(f.max("is_new").alias("is_new"), *(f.first(name).alias(name) for name in lists))


def touched(minutes: DataFrame) -> DataFrame:
    """Those of which the batch has something. The window has all that is stored of these, however late a sample is."""
    return minutes.where("is_new").drop("is_new")
