"""The one Spark session of the tests, and the mark that keeps all of them in one process."""

import functools
import os
import shutil
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

MARKS = [
    # With `--dist loadgroup`, one process runs all of them: one Java machine is enough.
    pytest.mark.xdist_group("spark"),
    # Older PySpark leaves its sockets to the garbage collection.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
    # Small questions: what Spark does to be fast on large ones costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def session():
    """A local session of two cores whose tasks may be tried four times; skip where Spark cannot start."""
    found = started()
    if found is None:
        pytest.skip("Spark needs Java 17 or newer, which is not found here")
    return found


@functools.cache
def started():
    """The session, or None where Spark cannot start."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java" if home is None else f"{home}/bin/java") is None:
        return None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = Path(__file__).parents[1]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "src")])  # workers import what the tests send
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError:
        return None
