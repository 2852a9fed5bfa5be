"""The SQL of every question, as DuckDB gets it: for columns with types, and for text as in a CSV file."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import dpselect
from dpselect.errors import DPSelectError
from dpselect.tables.duckdb.engine import DuckDBEngine
from tests.golden.charges import GROUPS, QUESTIONS, RANGE, ROWS

TYPES: dict[str, Any] = {
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp, zoned": pa.timestamp("ns", "UTC"),
    "boolean": pa.bool_(),
}
DAYS: dict[str, Any] = {"lower": "2026-01-01", "upper": "2026-01-31"}


class _Seen(BaseException):
    """The statement is known, so nothing need be counted."""


def lines() -> Iterator[str]:
    """The golden lines: a question, and its statement."""
    for person, (grouped, groups) in product((None, "who"), GROUPS.items()):
        table = dpselect.open_table(ROWS, person=person)
        if person is None and groups is not None and groups.get("max_groups", 1) > 1:
            continue
        asked = table if groups is None else table.group_by(**groups)
        for name, (method, arguments, options) in QUESTIONS.items():
            yield from _statement(f"{name}{grouped} of {person or 'rows'}", asked, method, arguments, options)
    for name, type_ in TYPES.items():
        yield from _of_column(name, dpselect.open_table(pa.table({"x": pa.array([None], type_)})))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_text("x\n")
        table = dpselect.open_table(path)
        for name in TYPES:
            yield from _of_list(f"{name} in text", table)
        yield from _of_column("text", table)


def _of_column(name: str, table: Any) -> Iterator[str]:
    """The questions about a column of a type: a list, domains, values and quantiles."""
    yield from _of_list(name, table)
    for kind, options in (("int8", {}), ("int64", {}), ("float64", {}), ("date", {}), ("text", {"max_bytes": 9})):
        rule = dpselect.every(kind, **options)
        yield from _statement(f"mode of {rule} in {name}", table, "mode", ("x",), {"candidates": rule})
    yield from _statement(f"values of {name}", table, "values", ("x",), {"delta": "1e-6"})
    for ends in (RANGE, DAYS, {"range": "log"}):
        yield from _statement(f"median of {name}, {ends}", table, "median", ("x",), ends)


def _of_list(name: str, table: Any) -> Iterator[str]:
    listed = {"candidates": [_value(name)], "other": "other"}
    yield from _statement(f"mode of {name}", table, "mode", ("x",), listed)


def _value(name: str) -> Any:
    day = datetime.datetime(2026, 1, 31)
    values = {"float": 0.5, "decimal": Decimal("0.25"), "date": day.date(), "boolean": True, "timestamp": day}
    if name.startswith("timestamp, zoned in text"):
        return day
    if name.startswith("timestamp, zoned"):
        return day.replace(tzinfo=datetime.UTC)
    return next((value for start, value in values.items() if name.startswith(start)), 5)


def _statement(name: str, table: Any, method: str, arguments: Any, options: Any) -> Iterator[str]:
    seen: list[str] = []

    def found(_: Any, statement: Any, *_arguments: Any, **_options: Any) -> Any:
        seen.append(statement("SELECT * FROM source"))
        raise _Seen

    try:
        with patch.object(DuckDBEngine, "_found", found):
            getattr(table, method)(*arguments, **options, epsilon=1)
    except (_Seen, DPSelectError) as error:  # an engine's error is withheld
        yield f"{name}\n    {seen[0] if seen else f'refused: {error}'}"
    else:
        yield f"{name}\n    nothing is counted"
