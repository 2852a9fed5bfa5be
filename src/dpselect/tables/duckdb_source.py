"""Where DuckDB reads the rows of a table: files, data frames, Arrow tables, or another DuckDB relation."""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from dpselect.errors import DPSelectError, EngineFailure, InvalidType, InvalidValue
from dpselect.tables import lines, sql
from dpselect.tables.files import Format, files_of
from dpselect.tables.kinds import Column

_FRAME = "dpselect_rows"
_KINDS = "give a path, a DuckDB relation, a pandas or polars DataFrame, or an Arrow table"


class Source(Protocol):
    """Rows, as a query with named parameters."""

    query: str
    parameters: dict[str, Any]
    files: Sequence[Path]  # empty if the rows are not in files

    def is_untyped(self, column: str) -> bool:
        """Return whether the source knows no type of this column, and gives it as text."""
        ...

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Make the rows reachable for the next statement; only their types if `empty`."""
        ...


class Files:
    """CSV or Parquet files with one schema."""

    def __init__(self, source: str) -> None:
        format_, paths = files_of(source)
        self._format = format_
        self.files: Sequence[Path] = paths
        self.parameters: dict[str, Any] = {"paths": [_literal(path) for path in paths]}
        if format_ is Format.CSV:
            self.query = lines.rows(*common_header(paths))
        else:
            self.query = "SELECT * FROM read_parquet($paths)"
            _check_parquet(paths)

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - all or none
        """Return whether the files are CSV."""
        return self._format is Format.CSV

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Nothing is to be done: paths are bound."""


class Frame:
    """A data frame, an Arrow table, or whatever else DuckDB scans in place."""

    query = f"SELECT * FROM {_FRAME}"
    files: Sequence[Path] = ()

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.parameters: dict[str, Any] = {}

    def is_untyped(self, column: str) -> bool:
        """Return whether this is a pandas column of Python objects."""
        return hasattr(self._frame, "iloc") and str(self._frame.dtypes[column]) == "object"

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:  # noqa: ARG002
        """Register the frame."""
        connection.register(_FRAME, self._frame)


class Relation(Frame):
    """A relation of the user's own connection; its rows stream through Arrow."""

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Register a new stream, which can be read once and must be read to its end."""
        rows = self._frame.limit(0).to_arrow_table() if empty else self._frame.to_arrow_reader()
        connection.register(_FRAME, rows)


def source_of(source: Any) -> Source:
    """The rows of whatever the user gave."""
    if isinstance(source, (str, Path)):
        return Files(str(source))
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Relation(source)
    if isinstance(source, pa.RecordBatchReader):
        raise InvalidType("source is a stream that can be read only once: read it into a table first")
    if any(hasattr(type(source), attribute) for attribute in ("columns", "schema", "__arrow_c_stream__")):
        return Frame(source)
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
    try:
        source.attach(connection, empty=True)
        described = connection.execute(f"DESCRIBE {source.query}", source.parameters).fetchall()
    except DPSelectError:
        raise
    except Exception:  # whatever the engine or the user's own relation raises may quote a value
        raise EngineFailure("the table cannot be opened: check that it is what it says it is") from None
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
        try:
            described = connection.execute(
                "DESCRIBE SELECT * FROM read_parquet($path)", {"path": _literal(path)}
            ).fetchall()
        except duckdb.Error:
            raise InvalidValue(f"{path}: this is not a complete Parquet file: give a CSV or Parquet file") from None
        if first is not None and described != first:
            raise InvalidValue(f"{path}: its columns are not those of {paths[0]}: give files with the same columns")
        first = described
