"""The rows about size: streams longer than memory, files of 10^8 rows in DuckDB and in Spark."""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks import units
from benchmarks.bars import Bar, Figures, at_most, at_most_times, no_bar
from benchmarks.case import Case
from benchmarks.contestant import NotAvailable
from benchmarks.scores import Data
from benchmarks.stopwatch import Call, Effort, interleaved_medians, timed, timed_on_the_processor
from dpselect import PermuteAndFlip
from dpselect.tables import open_table

_BLOCK = 2**20
_MECHANISM = PermuteAndFlip(epsilon=1)
_CODES = 10**5
_ROUNDS = 3  # of what takes long
_ROUNDS_OF_QUERIES = 9  # of those on 10^7 rows: Spark is not warm after one, and its times vary by a fifth
_MOST_MEGABYTES = 300


def cases() -> Iterator[Case]:
    """All rows about size."""
    for exponent in range(5, 9):
        yield _cost(10**exponent)
    yield _stream(10**9)
    for exponent in (7, 8):
        size = 10**exponent
        yield _table("mode of rows, DuckDB", "COUNT in DuckDB", size, no_bar(), _mode_in_duckdb, _count_in_duckdb)
        # The fixed price of a Spark job weighs on the smaller file.
        bar = at_most_times(1.2 if exponent == 8 else 1.3)
        yield _table(
            "mode of rows, Spark local[2]", "groupBy-count in Spark", size, bar, _mode_in_spark, _count_in_spark
        )
    yield Case(
        "summary, bytes to the driver", "", no_bar(), _bytes_of_a_partition, "1", "a partition", show=units.bytes_of
    )


def _few(effort: Effort, rounds: int = _ROUNDS) -> Effort:
    return replace(effort, seconds=0.0, rounds=min(rounds, effort.rounds), longest=math.inf)


def _cost(n: int) -> Case:
    """A stream of so many candidates: the cost for each should not depend on n."""

    def figures(effort: Effort) -> Figures:
        block = Data(min(n, _BLOCK)).scores()
        blocks = [block] * (n // block.size) + [block[: n % block.size]]

        def feed() -> None:
            _MECHANISM.summary().feed(blocks)

        def largest() -> None:
            for part in blocks:
                part.max(initial=0)

        return Figures(
            *interleaved_medians([timed_on_the_processor(feed), timed_on_the_processor(largest)], _few(effort))
        )

    return Case("summary of a stream, CPU", "max of a stream", no_bar(), figures, "1", units.power_of_ten(n), rows=n)


_STREAM = """
import re, sys, time
import numpy as np
from dpselect import PermuteAndFlip

n, block = int(sys.argv[1]), 2**20
generator, summary = np.random.default_rng(1), PermuteAndFlip(1).summary()
started, seen, told = time.monotonic(), 0, 0.0
while seen < n:
    scores = generator.integers(0, 10**6, min(block, n - seen))
    summary.update(scores)
    seen += scores.size
    if time.monotonic() - told > 10:
        told = time.monotonic()
        print(f"  {seen:,} of {n:,} candidates after {told - started:.0f} s", file=sys.stderr, flush=True)
assert summary.candidates == n
# Not resource.getrusage, whose peak begins with that of the process that started this one.
print(1024 * int(re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1]))
"""


def _stream(n: int) -> Case:
    """The peak memory of a process that generates and sees so many candidates."""

    def figures(_: Effort) -> Figures:
        done = subprocess.run([sys.executable, "-c", _STREAM, str(n)], stdout=subprocess.PIPE, check=True, text=True)
        return Figures(float(done.stdout))

    bar = at_most(_MOST_MEGABYTES * 1e6, units.megabytes)
    name = "summary of a generated stream, peak RSS"
    return Case(name, "", bar, figures, "1", units.power_of_ten(n), show=units.megabytes, rows=n)


def _table(  # noqa: PLR0913, PLR0917 - the cells of a row
    what: str, against: str, rows: int, bar: Bar, ours: Callable[[str], Call], theirs: Callable[[str], Call]
) -> Case:
    def figures(effort: Effort) -> Figures:
        path = _file(rows)
        rounds = _ROUNDS_OF_QUERIES if rows <= 10**7 else _ROUNDS
        return Figures(*interleaved_medians([timed(ours(path)), timed(theirs(path))], _few(effort, rounds)))

    n = f"{units.power_of_ten(rows)} rows, {units.power_of_ten(_CODES)} codes"
    return Case(what, against, bar, figures, "1", n, dtype="Parquet", rows=rows)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def _file(rows: int) -> str:
    """A Parquet file of codes with a long tail."""
    path = Path(_folder().name) / f"{rows}.parquet"
    code = f"'code' || CAST(floor(pow(hash(i) / 18446744073709551616.0, 2) * {_CODES}) AS INTEGER) AS code"
    print(f"  writing {rows:,} rows", file=sys.stderr, flush=True)
    duckdb.connect().execute(f"COPY (SELECT {code} FROM range({rows}) AS r(i)) TO '{path}'")
    return str(path)


def _codes() -> list[str]:
    return [f"code{number}" for number in range(_CODES)]


def _mode_in_duckdb(path: str) -> Call:
    return partial(open_table(path).mode, "code", candidates=_codes(), epsilon=1)


def _count_in_duckdb(path: str) -> Call:
    connection = duckdb.connect()
    return lambda: connection.sql(f"SELECT code, count(*) FROM '{path}' GROUP BY code").to_arrow_table()


@cache
def _spark() -> Any:
    """A session of two cores."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise NotAvailable("not installed: python -m pip install -e '.[bench]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "driver.memory": "4g", "log.level": "ERROR"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    try:
        return builder.getOrCreate()
    except Exception:
        raise NotAvailable("Spark needs Java 17 or newer") from None


def _mode_in_spark(path: str) -> Call:
    _spark()
    return partial(open_table(path, engine="spark").mode, "code", candidates=_codes(), epsilon=1)


def _count_in_spark(path: str) -> Call:
    return lambda: _spark().read.parquet(path).groupBy("code").count().toArrow()


def _bytes_of_a_partition(_: Effort) -> Figures:
    """What one partition of a long stream sends: its row as a message of Arrow."""
    summary = _MECHANISM.summary()
    summary.feed(np.random.default_rng(1).poisson(1e6, 10**6) for _ in range(10))
    return Figures(summary.to_arrow().serialize().size)
