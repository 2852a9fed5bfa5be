"""The public schemas of Parquet files, and a way to read their texts that no row makes fail.

DuckDB fails on a text that is not UTF-8, unless it replaces each wrong byte with a question mark, or leaves it out. The
two results are equal exactly if the text is valid: the first is as long as the text, and the second is shorter if
anything is left out. So the files are read twice, the rows are joined, and a text that is not valid is missing.

DuckDB also fails on timestamps in milliseconds that do not fit into microseconds. Only Arrow can read such a column.
"""

import glob
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb

from dpselect._validate import withheld
from dpselect.errors import InvalidValue
from dpselect.tables.duckdb.values import identifier
from dpselect.tables.files import shown

_ROW = "file_row_number"  # DuckDB's own name, which cannot be changed
# Timestamps of finer units. All others count as coarse.
_FINE = "type = 'INT96' OR converted_type = 'TIMESTAMP_MICROS' OR contains(logical_type, 'MILLIS=<null>')"


def literal(path: Path) -> str:
    """The path, escaped for DuckDB, which expands patterns: a file named t[1].csv is not t1.csv."""
    return glob.escape(str(path))


def common_columns(paths: Sequence[Path], connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The names of the columns that all Parquet files have, with the same types, and these types."""
    first = _columns(paths[0], connection)
    for path in paths[1:]:
        if _columns(path, connection) != first:
            same = "give files with the same columns"
            raise InvalidValue(f"{shown(path)}: its columns differ from those of {shown(paths[0])}: {same}")
    return {name: type_ for name, type_, *_ in first}


def _columns(path: Path, connection: duckdb.DuckDBPyConnection) -> list[tuple[str, ...]]:
    query = "DESCRIBE SELECT * FROM read_parquet($path, hive_partitioning = false)"
    return _read(path, connection, query)


def _read(path: Path, connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, ...]]:
    cut = InvalidValue(f"{shown(path)}: this is not a complete Parquet file: give a CSV or Parquet file")
    return withheld(lambda: connection.execute(query, {"path": literal(path)}).fetchall(), cut, duckdb.Error)


def coarse_columns(
    paths: Sequence[Path], types: Mapping[str, str], connection: duckdb.DuckDBPyConnection
) -> frozenset[str]:
    """The columns of timestamps that some file holds in milliseconds. It follows from the schemas alone.

    A field of a struct that has the name of a column counts as that column. Then the column may be refused needlessly.
    """
    query = f"SELECT name FROM parquet_schema($path) WHERE NOT coalesce({_FINE}, false)"
    other = {name for path in paths for (name,) in _read(path, connection, query)}
    return frozenset(name for name in other if types.get(name, "") in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"))


def can_number_rows(names: Iterable[str]) -> bool:
    """Whether no column has the name that DuckDB gives to the numbers of rows."""
    return _ROW not in {name.lower() for name in names}


def valid_texts(texts: Sequence[str], others: Mapping[str, str], file: str, join: str) -> str:
    """A query for columns of Parquet files whose paths are bound to `$paths`. A text that is not UTF-8 is missing.

    Args:
        texts: the names of the columns of text.
        others: the names and expressions of the other columns.
        file: a name for the path of each row's file, which is no column.
        join: what follows the first scan, and supplies columns by `file`.
    """
    options = f"hive_partitioning = false, filename = '{file}', {_ROW} = true"
    replaced, shortened = (
        f"read_parquet($paths, {options}, utf8_validation = '{how}')" for how in ("replace", "ignore")
    )
    again = "".join(f", {identifier(name)} AS {file}_text{i}" for i, name in enumerate(texts))
    valid = (
        f"CASE WHEN {identifier(name)} = {file}_text{i} THEN {identifier(name)} END AS {identifier(name)}"
        for i, name in enumerate(texts)
    )
    columns = ", ".join([*valid, *(f"{value} AS {identifier(name)}" for name, value in others.items())])
    second = f"(SELECT {file}, {_ROW}{again} FROM {shortened})"
    return f"SELECT {columns} FROM {replaced}{join} JOIN {second} USING ({file}, {_ROW})"
