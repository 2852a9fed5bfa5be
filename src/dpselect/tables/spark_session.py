"""The Spark session: the user's own, or a local one; and what to install where there is none."""

import os
import sys
from typing import TYPE_CHECKING

from dpselect.errors import MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_PYSPARK = "engine 'spark' needs PySpark 4: pip install 'dpselect[spark]'"
_NO_JAVA = (
    "engine 'spark' could not start Spark, which needs Java 17 or newer: install it (Debian: apt install"
    " openjdk-17-jre-headless) or point JAVA_HOME to it; or make a session that reaches your cluster first"
)


def check_pyspark() -> None:
    """Refuse to go on without PySpark."""
    try:
        import pyspark.sql  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtra(_NO_PYSPARK) from None


def session() -> "SparkSession":
    """The active session; else a new one, which is local unless the environment says where the cluster is."""
    check_pyspark()
    from pyspark.errors import PySparkException  # noqa: PLC0415 - imported when used
    from pyspark.sql import SparkSession  # noqa: PLC0415

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # A local session's workers run this very Python, which has dpselect.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    shown = str(sys.stderr.isatty()).lower()
    try:
        return SparkSession.builder.config("spark.ui.showConsoleProgress", shown).getOrCreate()
    except (PySparkException, OSError):
        raise MissingExtra(_NO_JAVA) from None
