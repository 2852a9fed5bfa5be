"""DuckDB's SQL for the values of a column and for the lines of a CSV file. None of it can fail on a row.

A value that does not fit is NULL: an expression that raised an error on some rows would reveal that they exist. User
strings appear only as quoted identifiers; everything else is bound or registered.

One line of a CSV file is one row, and a malformed line affects only itself. A reader that lets a quoted
value continue on the next lines would let one odd field remove the rows of everybody after it, and no sensitivity could
bound that. So a value in quotation marks may hold delimiters and doubled quotation marks, but no line break. Lines that
are not UTF-8, have another number of fields than the header or a quotation mark out of place, or have 65,536 bytes or
more, are left out; what follows a unit separator (a control character) in a line is not read, and not counted. All
columns are text: a type guessed from the rows would depend on them.

The time should not reveal lines that are left out, either. So the length is tested first, then one regular expression
tests that the line is well-formed and has as many fields as the header; only then is it split.
"""

import csv
import glob
import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpselect._validate import withheld
from dpselect.errors import InvalidValue
from dpselect.tables.duckdb.values import identifier
from dpselect.tables.files import shown

_DELIMITERS = ",;\t|"


_LONGEST_HEADER = 1_000_000


_SEPARATOR = "\x1f"


LONGEST_LINE = 65_536


# DuckDB skips lines longer than this. It counts preceding blank lines as part of a line, so this must be far beyond
# the longest row: otherwise the blank lines of one person could hide the row of another.
LONGEST_READ = 2_000_000


# The limit of repetitions in RE2, DuckDB's regular expressions.
_MOST_REPEATS = 1_000


def header(path: Path) -> tuple[str, list[str]]:
    """The delimiter and the column names of a CSV file, both from its first line, which is public."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open

    def first_line() -> str:
        with opener(path, "rb") as file:
            return file.readline(_LONGEST_HEADER).decode("utf-8-sig").rstrip("\r\n")

    remedy = "save it as CSV in UTF-8, or as Parquet"
    unreadable = InvalidValue(f"{shown(path)}: this is not a CSV file in UTF-8: {remedy}")
    line = withheld(first_line, unreadable, (UnicodeDecodeError, EOFError, OSError, zlib.error))
    outside = "".join(line.split('"')[::2])  # outside quotation marks
    delimiter = max(_DELIMITERS, key=outside.count)
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        names = []
    _check_names(names, path)
    return delimiter, names


def _check_names(names: Sequence[str], path: Path) -> None:
    # Names that look like data are not shown: a file without a header would reveal its first row.
    if not all(name.strip() and name.isprintable() for name in names) or not names:
        raise InvalidValue(f"{shown(path)}: the first line must be a header with a name for each column: add one")
    if any(_is_number(name) for name in names):
        raise InvalidValue(f"{shown(path)}: the first line holds numbers, not names of columns: add a header line")
    if len({name.lower() for name in names}) != len(names):
        same = "two columns have the same name (upper and lower case are the same)"
        raise InvalidValue(f"{shown(path)}: {same}: rename one")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def rows(
    delimiter: str, names: Sequence[str], option: str = "", join: str = "", folders: Mapping[str, str] | None = None
) -> str:
    """A query for the rows of CSV files, whose paths are bound to its parameter."""
    # Folder names become columns, too (`folders`, by name), if a `join` after the `option` supplies them.
    return rows_of(lines(option, join), delimiter, names, [*names, *(folders or {})], folders)


def bound(paths: Sequence[Path]) -> dict[str, Any]:
    """The parameter of files, escaped for DuckDB, which expands patterns: a file named t[1].csv is not t1.csv."""
    return {"paths": [glob.escape(str(path)) for path in paths]}


def lines(option: str = "", join: str = "") -> str:
    """A table with the lines of CSV files after their headers, in its column `line`."""
    # With this new_line, every carriage return and every line feed ends a line, and an empty line
    # between two of them is not a row. DuckDB's own guess at CRLF would drop the row after a doubled carriage return.
    return (
        "read_csv($paths, auto_detect = false, columns = {'line': 'VARCHAR'}, header = false, skip = 1,"
        f" delim = '{_SEPARATOR}', quote = '', escape = '', new_line = '\\n',"
        f" strict_mode = false, ignore_errors = true, hive_partitioning = false, max_line_size = {LONGEST_READ}"
        f"{option}){join}"
    )


def rows_of(
    whole: str, delimiter: str, names: Sequence[str], wanted: Sequence[str], others: Mapping[str, str] | None = None
) -> str:
    """A query for some columns of the rows that are in the column `line` of a table."""
    # The table may have `others`, which are passed through: a mapping from the user's names to the table's names.
    carried = others or {}
    plain = f"WHEN NOT contains(line, '\"') THEN string_split(line, '{delimiter}')"
    quoted = f"WHEN {_is_well_formed(delimiter, len(names))} THEN {_unquoted(delimiter)}"
    split = f"CASE WHEN strlen(line) >= {LONGEST_LINE} THEN NULL {plain} {quoted} END"
    values = {**{name: f"nullif(fields[{i + 1}], '')" for i, name in enumerate(names)}, **carried}
    columns = ", ".join(f"{values[name]} AS {identifier(name)}" for name in wanted)
    fields = ", ".join([f"{split} AS fields", *carried.values()])
    return f"SELECT {columns} FROM (SELECT {fields} FROM {whole}) WHERE len(fields) = {len(names)}"


def line_fault(delimiter: str, number: int) -> str:
    """Why a line that was read is left out: 'long', 'quotes' or 'fields'; NULL if it has this many fields."""
    plain = f"WHEN NOT contains(line, '\"') THEN len(string_split(line, '{delimiter}'))"
    fields = f"CASE {plain} ELSE len({_unquoted(delimiter)}) END"
    return (
        f"CASE WHEN strlen(line) >= {LONGEST_LINE} THEN 'long'"
        f" WHEN contains(line, '\"') AND NOT {_is_well_formed(delimiter)} THEN 'quotes'"
        f" WHEN {fields} <> {number} THEN 'fields' END"
    )


def _is_well_formed(delimiter: str, number: int | None = None) -> str:
    # Each field has no quotation marks, or is enclosed in them with inner ones doubled.
    repeats = "*" if number is None or number - 1 > _MOST_REPEATS else f"{{{number - 1}}}"
    return f"regexp_full_match(line, '{_field(delimiter)}(?:{_escaped(delimiter)}{_field(delimiter)}){repeats}')"


def _field(delimiter: str) -> str:
    # Texts between quotation marks follow each other: the end of one and the start of the next are a doubled mark.
    return f'(?:(?:"[^"]*")+|[^"{_escaped(delimiter)}]*)'


def _escaped(delimiter: str) -> str:
    return "\\|" if delimiter == "|" else delimiter


def _unquoted(delimiter: str) -> str:
    # With a delimiter put before the first, each field follows a delimiter.
    # The pattern has no capture group, which makes it fast on long lines.
    fields = f"regexp_extract_all('{delimiter}' || line, '{_escaped(delimiter)}{_field(delimiter)}')"
    inside = "replace(field[3:-2], '\"\"', '\"')"
    return (
        f"list_transform({fields}, lambda field:"
        f" CASE WHEN starts_with(field, '{delimiter}\"') THEN {inside} ELSE field[2:] END)"
    )
