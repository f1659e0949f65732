"""One Spark for all tests: it takes seconds to start."""

import pytest
from pyspark.sql import SparkSession

from tests.services import require_or_skip
from workers.spark.session import missing_java, spark_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    if problem := missing_java():
        require_or_skip(problem)
    return spark_session()
