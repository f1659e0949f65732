"""Where events come from: the installation's provider, through a source of ours."""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from queueapi.config import Config
from workers.spark.options import KEPT_MS, STAGE, START, source_options
from workers.spark.reports import Offsets
from workers.spark.source import FORMAT, MetricsSource

_DAY_MS = 86_400_000


def event_source(installation: Config) -> str:
    """What reads the events, and whose offsets its checkpoint has: it begins with the provider's name."""
    return installation.queue.type


def staged_events(spark: SparkSession, installation: Config, known: Offsets, stage: Path) -> DataFrame:
    """The stream of reports on events that are not known yet, whose files are in `stage` then."""
    spark.dataSource.register(MetricsSource)
    options = source_options(installation) | {
        START: json.dumps(known),
        STAGE: str(stage),
        KEPT_MS: str(installation.event_retention_days * _DAY_MS),
    }
    return spark.readStream.format(FORMAT).options(**options).load()
