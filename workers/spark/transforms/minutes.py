"""Minutes of which a batch has something, each made anew from what came before the batch, too.

So a row takes the place of the one before, and a batch that is repeated changes nothing.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType


def together(samples: DataFrame, window: DataFrame, *, is_once: bool = False) -> DataFrame:
    """Batch and window, each sample once, with whether it `is_new`."""
    all_of_it = samples.withColumn("is_new", f.lit(True)).unionByName(window.withColumn("is_new", f.lit(False)))
    return once(all_of_it, is_once=is_once)


def once(samples: DataFrame, *, is_once: bool = False) -> DataFrame:
    """Without what was delivered twice: samples of one service and moment that are alike in all their numbers. Who
    knows that there are none says so: to look for them moves every sample, with its lists, and sorts it."""
    if is_once:
        return samples
    lists = {field.name for field in samples.schema if isinstance(field.dataType, ArrayType)}
    flags = {"is_new"}.intersection(samples.columns)
    alike = [name for name in samples.columns if name not in lists | flags]
    return samples.groupBy(*alike).agg(
        *(f.max(name).alias(name) for name in flags),
        *(f.first(name).alias(name) for name in lists),
    )


def are_once(samples: DataFrame, identity: Sequence[str]) -> bool:
    """Whether no two of the samples are alike in these columns. Told by hashes: two that are not alike may have the
    same, and so it may be said wrongly that there are some, and never that there are none."""
    hashes = samples.select(f.xxhash64(*identity).alias("hash")).groupBy("hash").count()
    return hashes.where("count > 1").isEmpty()


def touched(minutes: DataFrame) -> DataFrame:
    """Those of which the batch has something. The window has all that is stored of these, however late a sample is."""
    return minutes.where("is_new").drop("is_new")
