"""Starting Spark, and what it says where it cannot."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from queueapi.config import Config
from workers.spark import session
from workers.spark.errors import SparkUnavailable
from workers.spark.session import missing_java, spark_session, spark_settings


def test_a_missing_java_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(session, "_open", None)
    with pytest.raises(SparkUnavailable) as caught:
        spark_session()
    assert f"there is none under JAVA_HOME ({tmp_path})" in caught.value.message
    assert "install Java 17 or newer" in caught.value.message


def test_java_is_looked_for_in_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "none in PATH" in (missing_java() or "")


def test_spark_keeps_to_the_data_folder_and_to_loopback(tmp_path: Path) -> None:
    settings = spark_settings(Config(data_dir=tmp_path))
    for name in ("spark.local.dir", "spark.sql.warehouse.dir"):
        assert settings[name].startswith(str(tmp_path))
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"


def test_executors_elsewhere_can_reach_the_driver(tmp_path: Path) -> None:
    installation = replace(Config(data_dir=tmp_path), spark_master="spark://spark.internal:7077")
    assert "spark.driver.host" not in spark_settings(installation)


def test_a_jvm_is_replaced_after_many_uses(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session._open is not None
    assert session._open.usable
    monkeypatch.setattr(session._open, "uses", session.USES_PER_JVM)
    assert not session._open.usable


def test_the_session_suits_what_there_is_to_do(spark: SparkSession) -> None:
    usual = spark_settings(Config())["spark.sql.shuffle.partitions"]
    session.suit(spark, session.MUCH)
    assert int(spark.conf.get("spark.sql.shuffle.partitions") or 0) > int(usual)
    session.suit(spark, session.MUCH - 1)
    assert spark.conf.get("spark.sql.shuffle.partitions") == usual
