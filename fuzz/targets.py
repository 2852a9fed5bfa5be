"""What is fuzzed, and what must hold: each target takes bytes and raises an AssertionError (or worse) if it does not.

A reader may refuse what it reads, with an error of its own that is one line. It may not fail in any other way, and what
it accepts must be what an independent reader finds.
"""

import atexit
import contextlib
import csv
import io
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

from duckdb import DuckDBPyConnection

from dpselect.cli import main
from dpselect.cli.questions import public_list
from dpselect.errors import DPSelectError
from dpselect.questions.rows import Individuals
from dpselect.score_files import read_scores
from dpselect.tables.candidates import Values
from dpselect.tables.duckdb.engine import DuckDBEngine
from dpselect.tables.duckdb.files import csv_lines, rows_of
from dpselect.tables.duckdb.source import connect
from dpselect.tables.kinds import Column, Kind, public_span

_LETTERS = "abc"
_ROWS = rows_of(csv_lines(), ",", ["person", "letter"], ["person", "letter"], {})


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Let errors of dpselect pass, if they are one short line."""
    message = ""
    try:
        yield
    except DPSelectError as error:
        message = str(error)
    assert len(message) < 5_000, "a long message"
    assert len(message.splitlines()) <= 1, "a message of several lines"


@cache
def _folder() -> Path:
    """One folder for all runs, made when it is first used and removed when Python ends."""
    folder = tempfile.mkdtemp(prefix="dpselect-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _file(data: bytes, name: str) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def scores_file(data: bytes) -> None:
    """A CSV file of scores: refused, or read at its exact decimal values."""
    named = bool(data[:1] and data[0] % 2)
    path = _file(data[1:], "scores.csv")
    with one_line_errors():
        found = read_scores(str(path), column="score" if named else None)
        assert found.scores
        assert found.labels is None or (len(found.labels) == len(found.scores) and all(found.labels))
        text = data[1:].decode("utf-8-sig")
        fields = [field.strip() for row in csv.reader(io.StringIO(text, newline=""), strict=True) for field in row]
        for score in found.scores:
            assert isinstance(score, (int, Decimal))
            assert Fraction(score) in {_number(field) for field in fields}


def _number(field: str) -> Fraction | None:
    try:
        return Fraction(Decimal(field))
    except (ArithmeticError, ValueError, OverflowError):
        return None


def candidate_list(data: bytes) -> None:
    """A list of candidates, on the command line or in a file, for a column of any kind; the ends of a range."""
    kinds = list(Kind)
    kind = kinds[data[0] % len(kinds)] if data else Kind.TEXT
    decimal = {"digits": 2, "precision": 9} if kind is Kind.DECIMAL else {}
    column = Column("c", kind.value, kind, untyped=kind is Kind.TEXT, **decimal)
    path = _file(data[1:], "candidates.txt")
    text = data[1:].decode("utf-8", errors="replace")
    with one_line_errors():
        assert public_list(str(path), column, "--candidates", "table.csv")
    with one_line_errors():
        assert public_list(text, column, "--candidates", "table.csv")
    for lower, upper, step in ((text, None, None), (None, text, None), (None, None, text), (text, text, text)):
        with one_line_errors():
            grid = public_span(lower, upper, step, column)
            assert grid.value(0) <= grid.value(grid.size - 1) <= grid.ends[1]


def table_lines(data: bytes) -> None:
    """A CSV file with a good header and any lines: DuckDB reads and counts what a reader of single lines does."""
    path = _file(b"person,letter\n" + data, "rows.csv")
    expected = table_rows(data)
    assert _connection().execute(_ROWS, {"paths": [str(path)]}).fetchall() == [
        (who or None, letter or None) for who, letter in expected
    ]
    engine = _engine(path)
    column, person = engine.columns["letter"], engine.columns["person"]
    candidates = Values(Kind.TEXT, tuple(_LETTERS))
    [by_row] = engine.counts(column, candidates, Individuals(None))
    assert by_row.tolist() == [sum(letter == row[1] for row in expected) for letter in _LETTERS]
    [by_person] = engine.counts(column, candidates, Individuals(person))
    people = Counter(letter for who, letter in {(who, letter) for who, letter in expected if who})
    assert by_person.tolist() == [people[letter] for letter in _LETTERS]


def table_rows(data: bytes) -> list[list[str]]:
    """The rows of a CSV file of two columns, read line by line."""
    return [row for row in map(_row, _lines(data)) if row is not None]


@cache
def _connection() -> DuckDBPyConnection:
    return connect()


@cache
def _engine(path: Path) -> DuckDBEngine:
    """One engine for all runs: it reads the file anew for each question."""
    return DuckDBEngine(str(path))


def _lines(data: bytes) -> list[bytes]:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def _row(line: bytes) -> list[str] | None:
    """The two fields of a line, up to a unit separator; None if the line is left out."""
    try:
        text = line.partition(b"\x1f")[0].decode()
    except UnicodeDecodeError:
        return None
    fields, rest = [], text
    while True:
        field, separator, rest = _field(rest)
        if field is None:
            return None
        fields.append(field)
        if not separator:
            return fields if len(fields) == 2 else None


def _field(text: str) -> tuple[str | None, str, str]:
    """The first field, the comma behind it if there is one, and the rest; None for a quotation mark out of place."""
    if not text.startswith('"'):
        field, separator, rest = text.partition(",")
        return (None if '"' in field else field), separator, rest
    end = 1
    while end < len(text):
        if text[end] != '"':
            end += 1
        elif text[end : end + 2] == '""':
            end += 2
        else:
            break
    if end >= len(text) or text[end + 1 : end + 2] not in ("", ","):
        return None, "", ""
    return text[1:end].replace('""', '"'), text[end + 1 : end + 2], text[end + 2 :]


_COMMANDS = (
    *("select", "mode", "top", "median", "quantile", "plan", "compare", "audit", "no-such-command"),
    *("ledger show", "ledger verify", "ledger export", "ledger receipt"),
)
_OPTIONS = (
    *("--epsilon", "--sensitivity", "--monotonic", "--mechanism", "--column", "--label", "--json", "--candidates"),
    *("--error", "--scores", "--points", "--lower", "--upper", "--step", "--level", "-k", "--person"),
    *(
        "--neighbours",
        "--group-by",
        "--groups",
        "--max-groups",
        "--engine",
        "--runs",
        "--false-alarm",
        "--callable",
        "--inputs",
    ),
)
_SECRET = 48151623
_VALUES = ("1", "0.1", "1/3", "1e-3", "0.01:1", "a,b", "0", "-1", "nan", "x", "", "1e400", "score", "letter", "person")


def command_line(data: bytes) -> None:
    """Any words on the command line end with an answer or an error, never with a traceback, and no score is shown."""
    rows = f"person,letter,score\n1,a,{_SECRET}3\n2,b,{_SECRET}4\n".encode()
    paths = (
        _file(rows, "good.csv"),
        _file(f"a,{_SECRET}3\nb,${_SECRET}4\n".encode(), "bare.csv"),
        _file(data, "any.csv"),
    )
    known = (*_OPTIONS, *_VALUES, *map(str, paths))
    octets = iter(data)
    words = _COMMANDS[next(octets, 0) % len(_COMMANDS)].split()
    for octet in octets:
        if octet >= 240:
            words.append(data[:8].decode("utf-8", errors="replace").replace("\x00", ""))
        else:
            words.append(known[octet % len(known)])
        if len(words) > 14:
            break
    if words[0] == "audit" and "--runs" not in words:
        words += ["--runs", "100"]
    code, error = _run(words)
    assert code in range(7), code  # each is a documented kind of failure; a traceback is none of them
    assert "Traceback" not in error
    assert str(_SECRET) not in error


def _run(words: list[str]) -> tuple[object, str]:
    out, err = io.StringIO(), io.StringIO()
    saved, sys.argv = sys.argv, ["dpselect", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as leaving:
        return leaving.code or 0, err.getvalue()
    finally:
        sys.argv = saved
    return 0, err.getvalue()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "scores_file": scores_file,
    "candidate_list": candidate_list,
    "table_lines": table_lines,
    "command_line": command_line,
}
