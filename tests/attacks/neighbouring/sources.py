"""How a table of rows is handed to `open_table`: frames, a relation, databases, and files in every arrangement.

The schema is public and the same for all neighbours, so every frame and file is written with explicit types. The
arrangement of the files is public too: a row says in which file it stands. Files may be reachable by a second name (a
link, a linked folder, a compressed copy): that adds no row to the table.
"""

import csv
import datetime
import functools
import gzip
import io
import os
import sqlite3
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from dpselect.tables.files import resolved
from tests.attacks.neighbouring.values import Type

ALIASES = ("hard link", "symbolic link", "linked folder", "compressed copy")
NAMED_BY = ("pattern", "folder", "recursive pattern", "overlapping pattern")


@dataclass(frozen=True)
class Column:
    """A column with what its rows may hold, and the cluster from which public lists are drawn."""

    name: str
    type: Type
    cluster: tuple[Any, ...]
    values: tuple[Any, ...]

    @property
    def categories(self) -> list[str]:
        """Return the public categories, of a column that has them."""
        return sorted(set(self.values))


@dataclass(frozen=True)
class Row:
    """A value for each column, and the number of the file in which the row stands."""

    values: tuple[Any, ...]
    file: int = 0


@dataclass(frozen=True)
class Layout:
    """How many files there are, how they are named in `open_table`, and by which second name one can be reached."""

    files: int = 1
    named_by: str = "pattern"
    alias: str | None = None
    notation: Mapping[str, str] = field(default_factory=dict)  # of CSV files: arguments of `open_table`


class NotWritten(Exception):
    """A library could not write the table that was made up."""


@dataclass(frozen=True)
class Source:
    """A kind of source; `is_typed` if its columns have types of their own."""

    name: str
    is_typed: bool
    write: Callable[[Sequence[Column], Sequence[Row], Path, Layout], Any]
    has_files: bool = False
    odd: tuple[Any, ...] = ()  # what its columns may hold, whatever their type
    lacks: Callable[[Type], bool] = lambda type_: type_.sql is not None or type_.arrow == pa.float16()
    keep: bool | None = None  # in memory, of `open_table`

    def has(self, type_: Type) -> bool:
        """Return whether columns of this source can have a type about which questions can be asked."""
        return self.is_typed == (type_.arrow is not None) and not self.lacks(type_)


def arrow_table(columns: Sequence[Column], rows: Sequence[Row]) -> pa.Table:
    """The rows in the types of their columns."""
    arrays = [_array(column, [row.values[i] for row in rows]) for i, column in enumerate(columns)]
    return pa.table(arrays, [column.name for column in columns])


def _array(column: Column, values: list[Any]) -> pa.Array:
    if column.type.has_categories:
        places = [None if value is None else column.categories.index(value) for value in values]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(column.categories, pa.string()))
    return pa.array(values, pa.string() if column.type.arrow is None else column.type.arrow)


# Frames. What makes no difference here is left out: they are values in memory.


def _arrow(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> pa.Table:
    return arrow_table(columns, rows)


def _pandas_of_arrow(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> pd.DataFrame:
    table = arrow_table(columns, rows)
    return pd.DataFrame(
        {name: pd.Series(table[name], dtype=pd.ArrowDtype(table[name].type)) for name in table.column_names}
    )


def _pandas_of_numpy(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> pd.DataFrame:
    """Those types of NumPy that have a missing value, and categories: an integer would become a float."""
    series = {}
    for column, array in zip(columns, arrow_table(columns, rows).columns, strict=True):
        if column.type.has_categories:
            series[column.name] = pd.Series(array.to_pylist(), dtype=pd.CategoricalDtype(column.categories))
        elif pa.types.is_floating(array.type) or pa.types.is_timestamp(array.type):
            series[column.name] = array.to_pandas()
        elif column.type.name == "plain numbers":
            series[column.name] = pd.Series(array.to_pylist(), dtype="Int64")
        else:
            raise TypeError(f"NumPy has no missing {array.type}")
    return pd.DataFrame(series)


def _objects(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> pd.DataFrame:
    content = {column.name: [row.values[i] for row in rows] for i, column in enumerate(columns)}
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in content.items()})


def _polars(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(arrow_table(columns, rows)))
    enums = {
        c.name: pl.col(c.name).cast(pl.String).cast(pl.Enum(c.categories)) for c in columns if c.type.has_categories
    }
    return frame.with_columns(**enums)


class _Unwritable:
    """An object of which no text can be made."""

    def __str__(self) -> str:
        raise ValueError

    __repr__ = object.__repr__


_ODD = (
    _Unwritable(),
    "\ud800",
    b"bytes",
    7,
    1.5,
    True,
    float("nan"),
    Decimal("1.50"),
    datetime.date(2024, 2, 29),
    (1, 2),
)


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def _relation(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> Any:
    return _connection().from_arrow(arrow_table(columns, rows)).project(", ".join(map(_in_duckdb, columns)))


def _in_duckdb(column: Column) -> str:
    type_ = column.type.sql
    if column.type.has_categories:
        texts = ", ".join("'" + text.replace("'", "''") + "'" for text in column.categories)
        type_ = f"ENUM({texts})"
    return column.name if type_ is None else f"CAST({column.name} AS {type_}) AS {column.name}"


# Databases in files.


def _duckdb_file(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> Any:
    path = folder / "rows.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.register("content", arrow_table(columns, rows))
        connection.execute(f"CREATE TABLE visits AS SELECT {', '.join(map(_in_duckdb, columns))} FROM content")
    return resolved(path, "visits")


def _sqlite_file(
    columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout, *, encoding: str = "UTF-8"
) -> Any:
    path, names = folder / "rows.db", [f'"{column.name}"' for column in columns]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute(f"CREATE TABLE visits ({', '.join(names)})")
        connection.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * len(names))})", [r.values for r in rows])
        connection.commit()
    return resolved(path, "visits")


_ODD_IN_SQLITE = (b"\xff\x00", b"bytes", 7, 7.0, 1.5, True, "a\x00b", 2**62, 2.0**62, float("inf"))


# Files.


def _csv(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout, *, ending: str = "csv") -> str:
    for number, own in _by_file(rows, layout):
        _write_text(folder / f"part-{number}.{ending}", _lines(columns, own, layout.notation))
    if layout.alias == "compressed copy":
        _write_text(folder / f"part-0.{ending}.gz", _lines(columns, [row for row in rows if row.file == 0], {}))
    return _named(folder, layout, ending)


def _lines(columns: Sequence[Column], rows: Sequence[Row], notation: Mapping[str, str]) -> bytes:
    text, delimiter = io.StringIO(), notation.get("delimiter", ",")
    writer = csv.writer(text, lineterminator="\n", delimiter="\t" if delimiter == "tab" else delimiter)
    writer.writerow([column.name for column in columns])
    writer.writerows([_noted(value, notation) for value in row.values] for row in rows)
    return text.getvalue().encode(notation.get("encoding", "utf-8"), "replace")


def _noted(value: Any, notation: Mapping[str, str]) -> str:
    text = "" if value is None else str(value)
    with suppress(ValueError):
        return datetime.datetime.fromisoformat(text).strftime(notation["dates"]) if "dates" in notation else text
    return text.replace(".", notation.get("decimal", ".")) if len(text) % 3 else text  # some keep a point


def _write_text(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)


def _parquet(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> str:
    for number, own in _by_file(rows, layout):
        pq.write_table(arrow_table(columns, own), folder / f"part-{number}.parquet")
    return _named(folder, layout, "parquet")


def _hive(columns: Sequence[Column], rows: Sequence[Row], folder: Path, layout: Layout) -> str:
    """A folder for each value of the second column; one of them is always there, for people who are not."""
    [who, group, *others] = columns
    plain = [who, *others]
    for value in [None, *dict.fromkeys(row.values[1] for row in rows if row.values[1] is not None)]:
        own = [Row((row.values[0], *row.values[2:])) for row in rows if row.values[1] == value]
        name = "__HIVE_DEFAULT_PARTITION__" if value is None else urllib.parse.quote(str(value), safe="")
        (folder / f"{group.name}={name}").mkdir()
        pq.write_table(arrow_table(plain, own), folder / f"{group.name}={name}" / "0.parquet")
    return str(folder)


def _by_file(rows: Sequence[Row], layout: Layout) -> list[tuple[int, list[Row]]]:
    return [(number, [row for row in rows if row.file % layout.files == number]) for number in range(layout.files)]


def _named(folder: Path, layout: Layout, ending: str) -> str:
    """The name of all files, after one of them has got its second name."""
    first = folder / f"part-0.{ending}"
    if layout.alias == "hard link":
        os.link(first, folder / f"part-alias.{ending}")
    elif layout.alias == "symbolic link":
        (folder / f"part-alias.{ending}").symlink_to(first)
    elif layout.alias == "linked folder":
        (folder / "more").symlink_to(folder, target_is_directory=True)
    patterns = {
        "folder": "",
        "pattern": f"part-*.{ending}*",
        "recursive pattern": f"**/*.{ending}*",
        "overlapping pattern": f"**/**/*.{ending}*",
    }
    return str(folder / patterns[layout.named_by])


def _lacks_in_numpy(type_: Type) -> bool:
    """Whole numbers, flags and dates that are missing become something else in NumPy, and text is an object."""
    return not (pa.types.is_floating(type_.arrow) or pa.types.is_timestamp(type_.arrow) or type_.has_categories)


SOURCES = [
    Source("Arrow", True, _arrow),
    Source("pandas of NumPy", True, _pandas_of_numpy, lacks=_lacks_in_numpy),
    Source("pandas of Arrow", True, _pandas_of_arrow),
    Source("pandas objects", False, _objects, odd=_ODD),
    Source("polars", True, _polars),
    Source("DuckDB relation", True, _relation, lacks=lambda type_: type_.arrow == pa.float16()),
    Source("DuckDB file", True, _duckdb_file, lacks=lambda type_: type_.arrow == pa.float16()),
    Source("SQLite", False, _sqlite_file, odd=_ODD_IN_SQLITE),
    Source("SQLite in UTF-16", False, functools.partial(_sqlite_file, encoding="UTF-16le"), odd=_ODD_IN_SQLITE),
    Source("Parquet", True, _parquet, has_files=True, lacks=lambda type_: type_.sql is not None),
    Source("Parquet in hive folders", False, _hive),
    Source("CSV", False, _csv, has_files=True),  # read at the first question, and kept from the second on
    Source("CSV kept in memory", False, _csv, has_files=True, keep=True),
    Source("compressed CSV", False, functools.partial(_csv, ending="csv.gz"), has_files=True),
]
