"""Where DuckDB reads the rows of a table: files, data frames, Arrow tables, or another DuckDB relation."""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from dpselect.errors import EngineFailure, InvalidType, InvalidValue, withheld
from dpselect.tables import lines, sql
from dpselect.tables.files import Format, files_of
from dpselect.tables.frames import FrameColumns, ParquetColumns, columns_of
from dpselect.tables.kinds import Column

_FRAME = "dpselect_rows"
_UNREADABLE = "the table cannot be opened: check that it is what it says it is"
_KINDS = "give a path, a DuckDB relation, a pandas or polars DataFrame, or an Arrow table"


class Source(Protocol):
    """Rows, as a query with named parameters."""

    query: str
    parameters: dict[str, Any]

    def is_untyped(self, column: str) -> bool:
        """Return whether the source knows no type of this column, and gives it as text."""
        ...

    def readings(self, names: Sequence[str]) -> "Sequence[Source]":
        """Return the rows for a question about these columns: ways to read them, each for where the one before fails.

        No value of a row makes the last one fail.
        """
        ...

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Make the rows reachable for the next statement; only their types if `empty`."""
        ...


class Files:
    """CSV or Parquet files with one schema."""

    def __init__(self, source: str) -> None:
        format_, paths = files_of(source)
        self._format, self._by_arrow = format_, None
        self.parameters: dict[str, Any] = {"paths": [_literal(path) for path in paths]}
        if format_ is Format.CSV:
            self.query = lines.rows(*common_header(paths))
        else:
            self.query = "SELECT * FROM read_parquet($paths)"
            _check_parquet(paths)
            self._by_arrow = ParquetColumns(paths)

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - all or none
        """Return whether the files are CSV."""
        return self._format is Format.CSV

    def readings(self, names: Sequence[str]) -> Sequence[Source]:
        """Return the files themselves, and what Arrow reads of them where DuckDB fails on values of these types."""
        if self._by_arrow is None or not self._by_arrow.can_read(names):
            return [self]
        by_arrow = Frame(self._by_arrow, names)
        return [by_arrow] if self._by_arrow.must_read(names) else [self, by_arrow]

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Nothing is to be done: paths are bound."""


class Frame:
    """Columns of a data frame, or of something else that Arrow carries."""

    query = f"SELECT * FROM {_FRAME}"

    def __init__(self, columns: FrameColumns, names: Sequence[str] = ()) -> None:
        self._columns, self._names = columns, names
        self.parameters: dict[str, Any] = {}

    def is_untyped(self, column: str) -> bool:
        """Return whether this is a column of Python objects."""
        return self._columns.is_untyped(column)

    def readings(self, names: Sequence[str]) -> Sequence[Source]:
        """Return the frame with no more than these columns converted."""
        return [Frame(self._columns, names)]

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Register the columns of this question, or the types of all."""
        connection.register(_FRAME, self._columns.described() if empty else self._columns.scanned(self._names))


class Relation:
    """A relation of the user's own connection; its rows stream through Arrow."""

    names: Sequence[Any] = ()

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def is_untyped(self, name: str) -> bool:  # noqa: ARG002 - all columns have types
        """Return False."""
        return False

    def described(self) -> Any:
        """Return an Arrow table without rows."""
        return self._relation.limit(0).to_arrow_table()

    def scanned(self, names: Sequence[str]) -> Any:  # noqa: ARG002 - all columns
        """Return a new stream, which can be read once and must be read to its end."""
        return self._relation.to_arrow_reader()


def source_of(source: Any) -> Source:
    """The rows of whatever the user gave."""
    if isinstance(source, (str, Path)):
        return Files(str(source))
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Frame(Relation(source))
    if isinstance(source, pa.RecordBatchReader):
        raise InvalidType("source is a stream that can be read only once: read it into a table first")
    if any(hasattr(type(source), attribute) for attribute in ("columns", "schema", "__arrow_c_stream__")):
        return Frame(withheld(lambda: columns_of(source), EngineFailure(_UNREADABLE)))
    raise InvalidType(f"source must be a table, got {type(source).__name__}: {_KINDS}")


def connect() -> duckdb.DuckDBPyConnection:
    """A private connection in memory that never reaches for the network or for variables of the caller."""
    return duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            # A pandas column of Python objects is text, whatever its first rows hold.
            "pandas_analyze_sample": 0,
        }
    )


def schema(source: Source, connection: duckdb.DuckDBPyConnection) -> Mapping[str, Column]:
    """The columns with their types, without reading a row."""

    def describe() -> list[Any]:
        source.attach(connection, empty=True)
        return connection.execute(f"DESCRIBE {source.query}", source.parameters).fetchall()

    # What the engine or the user's own relation raises may quote a value.
    described = withheld(describe, EngineFailure(_UNREADABLE))
    return {name: sql.column(name, type_, source.is_untyped(name)) for name, type_, *_ in described}


def _literal(path: Path) -> str:
    """The path for DuckDB, which reads patterns: a file named t[1].csv is not t1.csv."""
    return glob.escape(str(path))


def common_header(paths: list[Path]) -> tuple[str, list[str]]:
    """The header that all of the CSV files have."""
    first = lines.header(paths[0])
    for path in paths[1:]:
        if lines.header(path) != first:
            raise InvalidValue(f"{path}: its header is not that of {paths[0]}: give files with the same columns")
    return first


def _check_parquet(paths: list[Path]) -> None:
    connection, first = connect(), None
    for path in paths:
        described = _described(connection, path)
        if first is not None and described != first:
            raise InvalidValue(f"{path}: its columns are not those of {paths[0]}: give files with the same columns")
        first = described


def _described(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Any]:
    statement, parameters = "DESCRIBE SELECT * FROM read_parquet($path)", {"path": _literal(path)}
    cut = InvalidValue(f"{path}: this is not a complete Parquet file: give a CSV or Parquet file")
    return withheld(lambda: connection.execute(statement, parameters).fetchall(), cut, duckdb.Error)
