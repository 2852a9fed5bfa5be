"""The rows about values that nobody listed: a mode by a rule, and values found in the data, beside DuckDB alone."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.bars import Bar, Figures, at_most_times, no_bar
from benchmarks.case import Case
from benchmarks.stopwatch import Call, Effort, interleaved_medians, timed
from benchmarks.tables import folder
from dpselect import every
from dpselect.tables import open_table

_MANY_ROWS, _FEW_ROWS = 10**7, 10**6
_EPSILON, _DELTA = 1, "1e-9"


def cases() -> Iterator[Case]:
    """All rows about values that nobody listed."""
    rule, listed = "mode of every int64", "mode of the seen values, listed"
    for values in (10**3, 10**5):
        size = f"10^6 rows, 10^{len(str(values)) - 1} values"
        ours, theirs = partial(_mode_by_rule, values), partial(_mode_by_list, values)
        yield _case(rule, listed, size, at_most_times(1.5), ours, theirs)
        yield _case("mode with a delta", listed, size, no_bar(), partial(_mode_found, values), theirs)
    size = "10^7 rows, 10^6 values"
    yield _case("values", "GROUP BY in DuckDB", size, at_most_times(2), _values, _grouped)
    yield _case("values of people", "COUNT DISTINCT in DuckDB", size, no_bar(), _values_of_people, _grouped_people)


def _case(  # noqa: PLR0913, PLR0917 - the cells of a row
    what: str, against: str, n: str, bar: Bar, ours: Callable[[], Call], theirs: Callable[[], Call]
) -> Case:
    def figures(effort: Effort) -> Figures:
        return Figures(*interleaved_medians([timed(ours()), timed(theirs())], effort))

    return Case(what, against, bar, figures, str(_EPSILON), n, dtype="Parquet")


@cache
def _items(rows: int, values: int) -> str:
    """A Parquet file with this many rows: a person, and one of about so many whole numbers, with a long tail."""
    path = Path(folder().name) / f"items-{rows}-{values}.parquet"
    share = "(hash(i, {}) / 18446744073709551616.0)"
    columns = (
        f"CAST({share.format(1)} * {rows // 5} AS INTEGER) AS person",
        f"CAST(floor(pow({share.format(2)}, 1.5) * {values}) AS BIGINT) * 1000003 AS item",
    )
    duckdb.connect().execute(f"COPY (SELECT {', '.join(columns)} FROM range({rows}) AS r(i)) TO '{path}'")
    return str(path)


def _mode_by_rule(values: int) -> Call:
    return partial(open_table(_items(_FEW_ROWS, values)).mode, "item", candidates=every("int64"), epsilon=_EPSILON)


def _mode_found(values: int) -> Call:
    return partial(open_table(_items(_FEW_ROWS, values)).mode, "item", epsilon=_EPSILON, delta=_DELTA)


def _mode_by_list(values: int) -> Call:
    """The list is read from the data, as no user may do: it is as long as the rule's list of counts."""
    path = _items(_FEW_ROWS, values)
    seen: pa.Table = duckdb.connect().sql(f"SELECT DISTINCT item FROM '{path}'").to_arrow_table()
    return partial(open_table(path).mode, "item", candidates=seen["item"], epsilon=_EPSILON)


def _values() -> Call:
    return partial(open_table(_items(_MANY_ROWS, 10**6)).values, "item", epsilon=_EPSILON, delta=_DELTA)


def _values_of_people() -> Call:
    table = open_table(_items(_MANY_ROWS, 10**6), person="person")
    return partial(table.values, "item", epsilon=_EPSILON, delta=_DELTA)


def _grouped() -> Call:
    return _statement("count(*)")


def _grouped_people() -> Call:
    return _statement("count(DISTINCT person)")


def _statement(counted: str) -> Call:
    query = f"SELECT item, {counted} FROM '{_items(_MANY_ROWS, 10**6)}' GROUP BY item"
    connection = duckdb.connect()
    return lambda: connection.sql(query).to_arrow_table()
