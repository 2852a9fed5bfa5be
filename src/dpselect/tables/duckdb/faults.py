"""Malformed lines of CSV files, counted for each reason.

DuckDB says what is wrong with the lines that it returns. What its reader drops by itself (lines that are not UTF-8, and
lines beyond its limit) is counted from the bytes of the files.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb

from dpselect.tables.checks import Reason
from dpselect.tables.duckdb import lines
from dpselect.tables.duckdb.files import CSVFiles
from dpselect.tables.duckdb.source import Source

_BLOCK = 4_000_000
_SEPARATOR = b"\x1f"


def faults_of_lines(source: Source, cursor: duckdb.DuckDBPyConnection) -> dict[Reason, int]:
    """How many lines of CSV files are malformed, for each reason."""
    if not isinstance(source, CSVFiles):
        return {}
    delimiter, names = source.header
    query = f"SELECT {lines.line_fault(delimiter, len(names))} AS fault, count(*)"
    found = dict(
        cursor.execute(
            f"{query} FROM {lines.lines()} WHERE line IS NOT NULL GROUP BY fault", lines.bound(source.files)
        ).fetchall()
    )
    total, encoding, empty = map(sum, zip(*(_lines_of_file(path) for path in source.files), strict=True))
    # What DuckDB did not return and is not UTF-8's fault is beyond its limit. A line that begins with the separator is
    # read as an empty one.
    beyond = total - sum(found.values()) - encoding - empty
    return {
        Reason.ENCODING: encoding,
        Reason.LONG: found.get("long", 0) + beyond,
        Reason.QUOTES: found.get("quotes", 0),
        Reason.FIELDS: found.get("fields", 0) + empty,
    }


def _lines_of_file(path: Path) -> tuple[int, int, int]:
    """How many lines after the header are not blank, are not UTF-8, and begin with the separator."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    total = encoding = empty = 0
    with opener(path, "rb") as file:
        file.readline()
        for block in _blocks(cast("BinaryIO", file)):
            lines = [line for line in block.replace(b"\r", b"\n").split(b"\n") if line]
            total += len(lines)
            if not _is_utf8(block):
                encoding += sum(not _is_utf8(line.partition(_SEPARATOR)[0]) for line in lines if _is_readable(line))
            if _SEPARATOR in block:
                empty += sum(line.startswith(_SEPARATOR) for line in lines if _is_readable(line))
    return total, encoding, empty


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, in blocks. Of a line that is too long for DuckDB, only the beginning."""
    rest = b""
    while block := file.read(_BLOCK):
        whole = rest + block
        end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
        yield whole[:end]
        rest = whole[end:][: lines.LONGEST_READ + 1]
    yield rest


def _is_readable(line: bytes) -> bool:
    return len(line) <= lines.LONGEST_READ


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
