"""The Spark session (the user's own or a local one), and messages that say what to install if something is missing."""

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dpselect._messages import install_command
from dpselect._version import __version__
from dpselect.errors import EngineFailure, MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_JAVA = (
    "engine 'spark' could not start Spark, which needs Java 17 or newer: install it (Debian: apt install"
    " openjdk-17-jre-headless) or point JAVA_HOME to it; or create a session for your cluster first"
)
_REMEDY = (
    "before the session starts, point PYSPARK_PYTHON to a Python that has dpselect, pyspark, pandas and pyarrow"
    " (on this machine: PYSPARK_PYTHON={python}), or ship a packed environment to a cluster (docs/scale.md, Workers)"
)
_PROBES = 4
_checked: set[str] = set()


def check_pyspark() -> None:
    """Raise an error if PySpark or PyArrow is missing."""
    try:
        import pyarrow  # noqa: F401, PLC0415 - whether it can be imported is the question
        import pyspark.sql  # noqa: F401, PLC0415 - as above
    except ImportError:
        remedy = install_command("pandas", "pyarrow", "pyspark")
        raise MissingExtra(f"engine 'spark' needs PySpark 4, pandas and PyArrow: {remedy}") from None


def session() -> "SparkSession":
    """The active session, or a new one, which is local unless the environment names a cluster."""
    check_pyspark()
    from pyspark.errors import PySparkException  # noqa: PLC0415 - imported when used
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # The workers of a local session run this Python, which has dpselect.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    shown = str(sys.stderr.isatty()).lower()
    try:
        return SparkSession.builder.config("spark.ui.showConsoleProgress", shown).getOrCreate()
    except (PySparkException, OSError):
        raise MissingExtra(_NO_JAVA) from None


def check_workers(session: "SparkSession") -> None:
    """Raise an error if the workers' Python cannot run this dpselect. Found later, it would cost a charge."""
    # One job without data runs per session. Because no data are read, Spark's own message may be shown.
    from pyspark.errors import PythonException  # noqa: PLC0415 - imported when used

    name = _name(session)
    if name in _checked:
        return
    needed = f"engine 'spark' needs dpselect {__version__} in the Python of Spark's workers"
    remedy = _REMEDY.format(python=sys.executable)
    try:
        found = session.range(0, _PROBES, 1, _PROBES).mapInArrow(_probe(), "version string").toArrow()
    except PythonException as error:
        raise MissingExtra(f"{needed}, which cannot run it: {remedy}") from error
    except Exception as error:
        raise EngineFailure(f"{needed}, but a first job without data failed there: {remedy}") from error
    for version in set(found["version"].to_pylist()) - {__version__}:
        raise MissingExtra(f"{needed}, which has {version or 'none that can be imported'}: {remedy}")
    _checked.add(name)


def _name(session: "SparkSession") -> str:
    # A Connect session has a name of its own; others belong to their application.
    own = getattr(session, "session_id", None)
    return str(session.sparkContext.applicationId if own is None else own)


def _probe() -> Callable[[Iterator[Any]], Iterator[Any]]:
    # An inner function is sent as code; a function of this module would be sent as a name in dpselect.

    def version(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - in the worker

        try:
            import dpselect.tables.spark.workers  # noqa: PLC0415 - needs pyspark, an extra

            found = dpselect.__version__  # the worker's, not ours
        except ImportError:
            found = ""
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"version": pa.array([found] * batch.num_rows, pa.string())})

    return version
