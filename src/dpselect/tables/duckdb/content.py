"""A digest of the data that a question reads. With it, a ledger recognises a retry on the same data.

For files, all bytes are read. For frames and relations, only columns of the question, the person and the groups: the
rows are treated as a multiset, so neither their order nor the number of threads matters. A row becomes
one text, in which every field is preceded by its length. The digest has the number of rows, and the sums of both halves
of the MD5 of every text. That does not stop somebody who forges rows with the same sums; they would gain an answer
that was already released.

A digest is a function of private data, and as secret as the rows. It goes to the ledger, which keeps a salted hash.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from dpselect.tables.duckdb.source import Query, Source, read
from dpselect.tables.duckdb.values import identifier, value_of
from dpselect.tables.kinds import Column, Kind


def of_files(paths: Iterable[Path]) -> str:
    """The digest of files in any order: their bytes, and names of folders such as year=2024, which are columns."""
    return _digest(["files", sorted(_of_file(path) for path in paths)])


def _of_file(path: Path) -> list[str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [digest, *(part for part in path.absolute().parts[:-1] if "=" in part)]


def of_source(source: Source, connection: duckdb.DuckDBPyConnection, columns: Sequence[Column]) -> str:
    """The digest of the rows that DuckDB reads."""
    if source.files:
        return of_files(source.files)
    texts = " || ".join(_field(_text(column)) for column in columns)
    sums = ", ".join(f"CAST(sum(md5_number_{half}(row_text)) AS VARCHAR)" for half in ("lower", "upper"))

    cursor = connection.cursor()

    def add_up(rows: Query) -> list[Any]:
        query = f"SELECT count(*), {sums} FROM (SELECT {texts} AS row_text FROM ({rows.text}))"
        return cursor.execute(query, rows.parameters).fetchall()

    return of_sums(columns, read(source, cursor, [column.name for column in columns], add_up))


def of_sums(columns: Sequence[Column], found: Sequence[Sequence[Any]]) -> str:
    """The digest of rows, from their number and sums."""
    [numbers] = found
    return _digest(["rows", [column.kind.name for column in columns], [str(number) for number in numbers]])


def _text(column: Column) -> str:
    # The expression cannot fail on any row, and does not depend on a time zone.
    if column.kind not in (Kind.TIMESTAMP, Kind.ZONED):
        return f"TRY_CAST({identifier(column.name)} AS VARCHAR)"
    moment = value_of(column, column.kind)
    type_ = "TIMESTAMPTZ" if column.kind is Kind.ZONED else "TIMESTAMP"
    return (
        f"CASE WHEN isfinite({moment}) THEN CAST(epoch_us({moment}) AS VARCHAR)"
        f" WHEN {moment} = CAST('infinity' AS {type_}) THEN '+' WHEN {moment} IS NOT NULL THEN '-' END"
    )


def _field(text: str) -> str:
    return f"CASE WHEN {text} IS NULL THEN '-' ELSE concat(strlen({text}), ':', {text}) END"


def _digest(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()
