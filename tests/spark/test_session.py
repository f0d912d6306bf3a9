from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lumos.core.settings import RawSettings
from lumos.spark.java import cache_folder
from lumos.spark.session import spark_session
from lumos.spark.settings import SparkSettings
from lumos.spark.start_failures import SparkUnavailableError
from spark_jobs import run_job, run_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_of_the_process_is_shared_and_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = SparkSettings(conf=RawSettings({"spark.sql.shuffle.partitions": 3}))

    with spark_session(settings, environment={}, cache_dir=tmp_path) as session:
        assert "PYSPARK_SUBMIT_ARGS" not in os.environ, "programs started meanwhile are not touched"
        assert session.sparkContext is spark.sparkContext
        assert session.conf.get("spark.sql.shuffle.partitions") == "3"
        assert session.range(5).count() == 5

    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.range(5).count() == 5


def test_a_process_that_runs_spark_elsewhere_says_so(spark: SparkSession, tmp_path: Path) -> None:
    settings = SparkSettings(master="yarn")

    with (
        pytest.raises(SparkUnavailableError, match="already runs Spark on local"),
        spark_session(settings, environment={}, cache_dir=tmp_path),
    ):
        pass


@pytest.mark.spark
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"master": "nonsense"}, "nonsense"),
        ({"conf": {"spark.driver.extraJavaOptions": "-Xmx1g"}}, "max heap"),
        ({"conf": {"spark.driver.extraJavaOptions": "-XX:MaxHeapFreeRatio=x"}}, "MaxHeapFreeRatio"),
    ],
)
def test_a_spark_that_does_not_start_is_one_line_without_a_java_trace(
    settings: dict[str, object], reason: str, tmp_path: Path
) -> None:
    answer = run_job("levers", cache=tmp_path, **settings)

    error = answer["error"]
    assert isinstance(error, dict)
    assert error["code"] == "LUM-130"
    assert error["message"].startswith("Spark did not start on ")
    assert reason in error["message"]
    assert "\n" not in error["message"]
    assert answer["environment_is_restored"] is True


@pytest.mark.spark
def test_a_process_can_start_spark_again_with_other_options() -> None:
    key = "spark.hadoop.fs.s3a.secret.key"
    settings: list[dict[str, object]] = [
        {"master": "local[1]", "conf": {key: "k#y = \\ é"}},
        {"master": "local[2]"},
    ]

    first, second = run_jobs("levers", settings, cache=cache_folder(os.environ))

    assert (first["master"], second["master"]) == ("local[1]", "local[2]")
    assert first["jvm"] != second["jvm"]
    assert first["options"] == {key: "k#y = \\ é"}
    assert second["options"] == {}
    assert "k#y" not in str(first["command_line"]), "every user can read a command line"
    assert second["environment_is_restored"] is True
