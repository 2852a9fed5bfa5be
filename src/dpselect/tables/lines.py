"""CSV files, line by line: one line is one row, and what is wrong with a line concerns that line only.

A reader that lets a quotation mark run on into the next lines would let one odd field remove the rows of everybody
behind it, and no sensitivity could bound that. So a value in quotation marks may hold delimiters and doubled quotation
marks, but no line break. Lines that are not UTF-8, have another number of fields than the header or a quotation mark
out of place, or have 65,536 bytes or more, are left out; what follows a unit separator (a control character) in a
line is not read, and not counted. All columns are text: a type guessed from the rows would depend on them.

A line that is left out should not be seen by the time it takes, either. So its length is tested first, then by one
automaton that it is well-formed and has as many fields as the header; only then is it taken apart.
"""

import csv
import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from dpselect.errors import InvalidValue, withheld
from dpselect.tables.files import shown
from dpselect.tables.sql import identifier

_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1_000_000
_SEPARATOR = "\x1f"
LONGEST_LINE = 65_536
# Where DuckDB gives up a line. It counts the blank lines before a line as part of it, so that this must be far beyond
# the longest row: else the blank lines of one would hide the row of another.
LONGEST_READ = 2_000_000
# RE2, the regular expressions of DuckDB, counts no further.
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
    outside = "".join(line.split('"')[::2])  # of quotation marks
    delimiter = max(_DELIMITERS, key=outside.count)
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        names = []
    _check_names(names, path)
    return delimiter, names


def _check_names(names: Sequence[str], path: Path) -> None:
    # Names that look like data are not shown: a file without a header would give away its first row.
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
    """A query for the rows of CSV files, whose paths are bound to its parameter.

    Names of folders are columns as well (`folders`, by what they are called) if a `join` behind the `option` has them.
    """
    # With this new_line, each carriage return and each line feed ends a line, wherever it stands, and what is empty
    # between two of them is no row. DuckDB's own guess at CRLF would drop the row behind a doubled carriage return.
    whole = (
        "read_csv($paths, auto_detect = false, columns = {'line': 'VARCHAR'}, header = false, skip = 1,"
        f" delim = '{_SEPARATOR}', quote = '', escape = '', new_line = '\\n',"
        f" strict_mode = false, ignore_errors = true, hive_partitioning = false, max_line_size = {LONGEST_READ}"
        f"{option}){join}"
    )
    return rows_of(whole, delimiter, names, [*names, *(folders or {})], folders)


def rows_of(
    whole: str, delimiter: str, names: Sequence[str], wanted: Sequence[str], others: Mapping[str, str] | None = None
) -> str:
    """A query for some columns of the rows that are in the column `line` of a table.

    The table may have `others`, which are taken as they are: what the user calls them, and what the table does.
    """
    carried = others or {}
    plain = f"WHEN NOT contains(line, '\"') THEN string_split(line, '{delimiter}')"
    quoted = f"WHEN {_is_well_formed(delimiter, len(names))} THEN {_unquoted(delimiter)}"
    split = f"CASE WHEN strlen(line) >= {LONGEST_LINE} THEN NULL {plain} {quoted} END"
    values = {**{name: f"nullif(fields[{i + 1}], '')" for i, name in enumerate(names)}, **carried}
    columns = ", ".join(f"{values[name]} AS {identifier(name)}" for name in wanted)
    # A list that is unnested at once. Without it DuckDB pushes conditions below, and splits each line several times.
    once = ", ".join([f"unnest([{split}]) AS fields", *carried.values()])
    return f"SELECT {columns} FROM (SELECT {once} FROM {whole}) WHERE len(fields) = {len(names)}"


def _is_well_formed(delimiter: str, number: int) -> str:
    """So many fields, each free of quotation marks, or enclosed in them with those inside doubled."""
    others = number - 1
    repeats = f"{{{others}}}" if others <= _MOST_REPEATS else "*"
    return f"regexp_full_match(line, '{_field(delimiter)}(?:{_escaped(delimiter)}{_field(delimiter)}){repeats}')"


def _field(delimiter: str) -> str:
    # Texts between quotation marks follow each other: the end of one and the start of the next are a doubled mark.
    return f'(?:(?:"[^"]*")+|[^"{_escaped(delimiter)}]*)'


def _escaped(delimiter: str) -> str:
    return "\\|" if delimiter == "|" else delimiter


def _unquoted(delimiter: str) -> str:
    """The fields of a well-formed line: each is behind a delimiter, once there is one before the first."""
    # The pattern has no group that must be traced, which makes it fast on long lines.
    fields = f"regexp_extract_all('{delimiter}' || line, '{_escaped(delimiter)}{_field(delimiter)}')"
    inside = "replace(field[3:-2], '\"\"', '\"')"
    return (
        f"list_transform({fields}, lambda field:"
        f" CASE WHEN starts_with(field, '{delimiter}\"') THEN {inside} ELSE field[2:] END)"
    )
