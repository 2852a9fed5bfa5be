"""The rows about questions to tables, beside the same counting in DuckDB alone and the same question to peers."""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.bars import Bar, Figures, at_most_times, no_bar
from benchmarks.case import Case
from benchmarks.contestant import NotAvailable
from benchmarks.stopwatch import Call, Effort, interleaved_medians, timed
from dpselect.tables import open_table

_ROWS, _FEW_ROWS, _PEOPLE, _CODES = 10**7, 10**6, 2 * 10**6, 10**5
_MOST_CENTS = 10**12
_FEW_CANDIDATES = 1_000
_EPSILON = 1

# Lines that an onlooker should not see by the time that a question takes. All but the last are left out.
_LONG = 65_000
_ODD_LINES = {
    "a stray quotation mark": 'a"b',
    "64 kB of quotation marks": '"' * _LONG,
    "64 kB of empty fields": '"",' * (_LONG // 3),
    "64 kB of delimiters": "," * _LONG,
    "64 kB of letters": "z" * _LONG,
    "1.9 MB of quotation marks": '"' * 1_900_000,
    "30 MB of quotation marks": '"' * 30_000_000,
    "a value of 32,000 quotation marks": '1,"' + '"' * _LONG + '"',
}


def cases() -> Iterator[Case]:
    """All rows about tables."""
    yield _case(
        "mode of people", "COUNT DISTINCT in DuckDB", "10^7 rows, 10^5 codes", at_most_times(1.3), _mode, _count_people
    )
    yield _case("mode of rows", "COUNT in DuckDB", "10^7 rows, 10^5 codes", no_bar(), _mode_of_rows, _count_rows)
    size = "10^6 rows, 10^12 values"
    yield _case("median of rows", "sort and group in DuckDB", size, at_most_times(2), _median, _sorted_groups)
    yield _case("median of people", "sort and group in DuckDB", size, no_bar(), _median_of_people, _sorted_groups)
    yield _case("median of floats", "sort and group in DuckDB", size, no_bar(), _median_of_floats, _sorted_floats)
    yield _case("median of rows", "diffprivlib median", size, no_bar(), _median, _diffprivlib_median)
    yield _case("median of rows", "OpenDP (Polars), 10^3 values", size, no_bar(), _median, _opendp_median)
    yield from _csv_cases()
    yield from _reading_cases()
    for name, line in _ODD_LINES.items():
        yield _odd_line_case(name, line)
    few = "10^6 rows, 10^3 codes"
    yield _case(
        "mode of rows, objects of pandas", "of Arrow", few, no_bar(), _mode_of_objects, _mode_of_arrow, "memory"
    )


def _csv_cases() -> Iterator[Case]:
    """Questions on a CSV file beside DuckDB's own reader, and several questions on one table."""
    size, bar = "10^7 rows, 10^5 codes", at_most_times(1.5)
    people, rows = "COUNT DISTINCT by read_csv", "COUNT by read_csv"
    yield _case(
        "mode of people", people, size, bar, _csv_mode_of_people, partial(_read_csv, _ROWS, _PEOPLE_OF_CODES), "CSV"
    )
    yield _case("mode of rows", rows, size, bar, _csv_mode_of_rows, partial(_read_csv, _ROWS, _ROWS_OF_CODES), "CSV")
    size, against = "10^6 rows, 10^12 values", "sort and group by read_csv"
    yield _case("median of rows", against, size, bar, _csv_median, partial(_read_csv, _FEW_ROWS, _SORTED_CENTS), "CSV")
    size, floats = "10^6 rows, 10^5 values", partial(_read_csv, _FEW_ROWS, _SORTED_AMOUNTS)
    yield _case("median of numbers of 16 digits", against, size, no_bar(), _csv_median_of_amounts, floats, "CSV")
    size = "10^6 rows, 10^5 codes"
    kept, once = _csv_question_on_kept_rows, _csv_question_on_file
    yield _case("mode of rows, kept in memory", "from the file", size, at_most_times(0.6), kept, once, "CSV")
    reading = partial(_csv_three_questions, keep=False)
    yield _case(
        "three questions", "reading the file each time", size, at_most_times(0.8), _csv_three_questions, reading, "CSV"
    )


_PART = "amount < 500 AND contains(code, '7')"
_FEWER = "left(code, 6)"
_FEW_CODES = [f"code{number}" for number in range(100)]


def _reading_cases() -> Iterator[Case]:
    """A filter and a derived column beside the same in DuckDB alone, a decimal comma, and a check before the charge."""
    size = "10^7 rows, 100 codes"
    for dtype, path in (("Parquet", visits), ("CSV", visits_in_csv)):
        for name, view, selected, rest in (
            ("where", {"where": _PART}, "code", f"WHERE {_PART}"),
            ("derive", {"derive": {"few": _FEWER}}, _FEWER, ""),
        ):
            ours = partial(_mode_of_view, path, "few" if "derive" in view else "code", view)
            theirs = partial(_count_of_view, path, selected, rest)
            yield _case(f"mode of rows, {name}", "the same in DuckDB", size, at_most_times(1.2), ours, theirs, dtype)
    size = "10^6 rows, 10^5 values"
    plain = partial(_median_of_notation, ".")
    comma = partial(_median_of_notation, ",")
    yield _case("median, decimal commas", "decimal points", size, at_most_times(1.5), comma, plain, "CSV")
    size = "10^6 rows, 10^12 values"
    for dtype, path in (("Parquet", visits), ("CSV", visits_in_csv)):
        ours, theirs = (partial(_median_with_check, path, check) for check in ("stop", "off"))
        yield _case("median, checked before the charge", "not checked", size, no_bar(), ours, theirs, dtype)


def _mode_of_view(path: Callable[[int], str], column: str, view: dict[str, Any]) -> Call:
    table = open_table(path(_ROWS), keep=False, **view)
    return partial(table.mode, column, candidates=_FEW_CODES, epsilon=_EPSILON)


def _count_of_view(path: Callable[[int], str], selected: str, rest: str) -> Call:
    rows = f"SELECT {selected} AS value FROM '{path(_ROWS)}' {rest}"
    connection = duckdb.connect()
    return lambda: connection.sql(f"SELECT value, count(*) FROM ({rows}) GROUP BY value").to_arrow_table()


def _median_of_notation(mark: str) -> Call:
    table = open_table(amounts_in_csv(mark), keep=False, decimal=mark)
    return partial(table.median, "amount", lower=0, upper=1000, step="0.01", epsilon=_EPSILON)


def _median_with_check(path: Callable[[int], str], check: str) -> Call:
    table = open_table(path(_FEW_ROWS), keep=False, check=check)
    return partial(table.median, "cents", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


def _case(  # noqa: PLR0913, PLR0917 - the cells of a row
    what: str,
    against: str,
    n: str,
    bar: Bar,
    ours: Callable[[], Call],
    theirs: Callable[[], Call],
    dtype: str = "Parquet",
) -> Case:
    def figures(effort: Effort) -> Figures:
        return Figures(*interleaved_medians([timed(ours()), timed(theirs())], effort))

    return Case(what, against, bar, figures, str(_EPSILON), n, dtype=dtype)


def _odd_line_case(name: str, line: str) -> Case:
    """A question to a small CSV file with one more line, beside the same without it."""

    def asked(last: str) -> Call:
        path = Path(folder().name) / f"{name if last else 'plain'}.csv"
        path.write_text("person,code\n" + "".join(f"{i},{i % 50}\n" for i in range(2_000)) + last, encoding="utf-8")
        table = open_table(path, person="person", keep=False)
        return partial(table.mode, "code", candidates=["1", "2"], epsilon=_EPSILON)

    def figures(effort: Effort) -> Figures:
        return Figures(*interleaved_medians([timed(asked(f"{line}\n")), timed(asked(""))], effort))

    # Of a line that is longer than all others together, the bytes are still read.
    bar = no_bar() if len(line) > 10**7 else at_most_times(1.5)
    return Case(f"mode, with {name}", "without that line", bar, figures, str(_EPSILON), "2,000 lines", dtype="CSV")


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is gone when the program ends."""
    return tempfile.TemporaryDirectory()


@cache
def visits(rows: int) -> str:
    """A Parquet file with this many rows: a person, a code with a long tail, cents and a float."""
    path = Path(folder().name) / f"{rows}.parquet"
    share = "(hash(i, {}) / 18446744073709551616.0)"
    columns = (
        f"CAST({share.format(1)} * {_PEOPLE} AS INTEGER) AS person",
        f"'code' || CAST(floor(pow({share.format(2)}, 2) * {_CODES}) AS INTEGER) AS code",
        f"CAST({share.format(3)} * {_MOST_CENTS} AS BIGINT) AS cents",
        f"{share.format(4)} * 1000 AS amount",
    )
    duckdb.connect().execute(f"COPY (SELECT {', '.join(columns)} FROM range({rows}) AS r(i)) TO '{path}'")
    return str(path)


@cache
def visits_in_csv(rows: int) -> str:
    """The same in a CSV file that was written two seconds ago: rows of a newer one are not kept."""
    path = Path(folder().name) / f"{rows}.csv"
    duckdb.connect().execute(f"COPY (FROM '{visits(rows)}') TO '{path}'")
    time.sleep(2.1)
    return str(path)


@cache
def amounts_in_csv(mark: str) -> str:
    """A code and an amount with two digits, separated by semicolons."""
    path = Path(folder().name) / f"amounts{mark}.csv"
    amount = f"replace(printf('%.2f', amount), '.', '{mark}') AS amount"
    query = f"SELECT code, {amount} FROM '{visits(_FEW_ROWS)}'"
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' (DELIMITER ';', QUOTE '')")
    return str(path)


_PEOPLE_OF_CODES = ("code, count(DISTINCT person)", "GROUP BY code")
_ROWS_OF_CODES = ("code, count(*)", "GROUP BY code")
_SORTED_CENTS = ("cents, count(*)", "GROUP BY cents ORDER BY cents")
_SORTED_AMOUNTS = ("amount, count(*)", "GROUP BY amount ORDER BY amount")


def _read_csv(rows: int, statement: tuple[str, str]) -> Call:
    selected, rest = statement
    query = f"SELECT {selected} FROM read_csv('{visits_in_csv(rows)}') {rest}"
    connection = duckdb.connect()
    return lambda: connection.sql(query).to_arrow_table()


def _csv_mode_of_people() -> Call:
    table = open_table(visits_in_csv(_ROWS), person="person", keep=False)
    return partial(table.mode, "code", candidates=_codes(), epsilon=_EPSILON)


def _csv_mode_of_rows() -> Call:
    table = open_table(visits_in_csv(_ROWS), keep=False)
    return partial(table.mode, "code", candidates=_codes(), epsilon=_EPSILON)


def _csv_median() -> Call:
    table = open_table(visits_in_csv(_FEW_ROWS), keep=False)
    return partial(table.median, "cents", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


def _csv_median_of_amounts() -> Call:
    table = open_table(visits_in_csv(_FEW_ROWS), keep=False)
    return partial(table.median, "amount", lower=0, upper=1000, step="0.01", epsilon=_EPSILON)


def _csv_question_on_kept_rows() -> Call:
    table = open_table(visits_in_csv(_FEW_ROWS), keep=True)
    return partial(table.mode, "code", candidates=_codes(), epsilon=_EPSILON)  # the first call does not count


def _csv_question_on_file() -> Call:
    table = open_table(visits_in_csv(_FEW_ROWS), keep=False)
    return partial(table.mode, "code", candidates=_codes(), epsilon=_EPSILON)


def _csv_three_questions(*, keep: bool = True) -> Call:
    codes = _codes()

    def ask() -> None:
        table = open_table(visits_in_csv(_FEW_ROWS), keep=keep)
        table.mode("code", candidates=codes, epsilon=_EPSILON)
        table.median("amount", lower=0, upper=1000, step="0.01", epsilon=_EPSILON)
        table.mode("person", candidates=range(_FEW_CANDIDATES), epsilon=_EPSILON)

    return ask


def _codes() -> list[str]:
    return [f"code{number}" for number in range(_CODES)]


def _mode() -> Call:
    table = open_table(visits(_ROWS), person="person")
    return partial(table.mode, "code", candidates=_codes(), epsilon=_EPSILON)


def _mode_of_rows() -> Call:
    return partial(open_table(visits(_ROWS)).mode, "code", candidates=_codes(), epsilon=_EPSILON)


def _mode_of_arrow() -> Call:
    return partial(open_table(_few_codes()).mode, "code", candidates=_codes()[:_FEW_CANDIDATES], epsilon=_EPSILON)


def _mode_of_objects() -> Call:
    """From a pandas column of Python objects, which is converted for each question."""
    frame = _few_codes().to_pandas().astype(object)
    return partial(open_table(frame).mode, "code", candidates=_codes()[:_FEW_CANDIDATES], epsilon=_EPSILON)


@cache
def _few_codes() -> pa.Table:
    numbers = np.random.default_rng(1).integers(0, _FEW_CANDIDATES, _FEW_ROWS)
    return pa.table({"code": pa.array(_codes()[:_FEW_CANDIDATES]).take(pa.array(numbers))})


def _statement(rows: int, selected: str, rest: str) -> Call:
    query = f"SELECT {selected} FROM '{visits(rows)}' {rest}"
    connection = duckdb.connect()
    return lambda: connection.sql(query).to_arrow_table()


def _count_people() -> Call:
    return _statement(_ROWS, "code, count(DISTINCT person)", "GROUP BY code")


def _count_rows() -> Call:
    return _statement(_ROWS, "code, count(*)", "GROUP BY code")


def _sorted_groups() -> Call:
    return _statement(_FEW_ROWS, "cents, count(*)", "GROUP BY cents ORDER BY cents")


def _sorted_floats() -> Call:
    return _statement(_FEW_ROWS, "amount, count(*)", "GROUP BY amount ORDER BY amount")


def _median() -> Call:
    table = open_table(visits(_FEW_ROWS))
    return partial(table.median, "cents", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


def _median_of_people() -> Call:
    table = open_table(visits(_FEW_ROWS), person="person")
    return partial(table.median, "cents", lower=0, upper=_MOST_CENTS, epsilon=_EPSILON)


def _median_of_floats() -> Call:
    table = open_table(visits(_FEW_ROWS))
    return partial(table.median, "amount", lower=0, upper=1000, step=0.000001, epsilon=_EPSILON)


def _cents() -> np.ndarray:
    return duckdb.connect().sql(f"SELECT cents FROM '{visits(_FEW_ROWS)}'").fetchnumpy()["cents"]


def _diffprivlib_median() -> Call:
    """From an array in memory; it chooses among intervals of reals between the values."""
    try:
        from diffprivlib.tools import median  # noqa: PLC0415
    except ImportError:
        raise NotAvailable("diffprivlib is not installed") from None
    return partial(median, _cents(), epsilon=float(_EPSILON), bounds=(0, _MOST_CENTS))


def _opendp_median() -> Call:
    """Scans the same file; candidates are an explicit list, here a thousand instead of 10**12."""
    try:
        import opendp.prelude as dp  # noqa: PLC0415
        import polars as pl  # noqa: PLC0415

        dp.enable_features("contrib")
        rows = pl.scan_parquet(visits(_FEW_ROWS)).select("cents")
        candidates = np.linspace(0, _MOST_CENTS, _FEW_CANDIDATES + 1).astype(int).tolist()
        margins = [dp.polars.Margin(max_length=_FEW_ROWS)]
    except (ImportError, AttributeError):
        raise NotAvailable("OpenDP with Polars is not installed") from None

    def release() -> object:
        unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=float(_EPSILON))
        context = dp.Context.compositor(
            data=rows, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=margins
        )
        return context.query().select(pl.col("cents").fill_null(0).dp.median(candidates)).release().collect()

    return release
