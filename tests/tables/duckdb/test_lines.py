"""CSV lines: what is wrong with a line concerns that line only, wherever it stands and however lines end."""

import gzip
import random
import re
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpselect
from dpselect.errors import InvalidValue
from dpselect.tables import Reason
from dpselect.tables.duckdb import files
from dpselect.tables.duckdb.source import connect
from dpselect.tables.spark import workers as csv_lines
from tests.tables.looking import counts, places

CANDIDATES = ["x", "y", "z"]
GOOD = [b"x,1", b"y,2", b"z,3", b"x,4"]
# Each is left out, and takes nothing with it.
MALFORMED = {
    "too few fields": b"x",
    "too many fields": b"x,1,2",
    "stray quotation mark": b'x"q,1',
    "quotation mark after a blank": b' "x",1',
    "text after the quotation": b'"x"q,1',
    "unterminated": b'"x,1',
    "unterminated at the end": b'x,"1',
    "one quotation mark": b'"',
    "three quotation marks": b'""",1',
    "not UTF-8": b"x\xff,1",
    "cut UTF-8": b"x,\xe2\x82",
    "surrogate": b"x,\xed\xa0\x80",
    "NUL": b"\x00",
    "unit separator": b"x\x1f,1",
    "blank": b"",
    "blanks": b"   ",
    "carriage return": b"\r",
    "carriage returns": b"\r\r\r",
    "broken by a carriage return": b"x\rq",
    "end of file": b"\x1a",
    "comment": b"#",
    "long": b"x," + b"q" * 3_000_000 + b",",
    "long and quoted": b'x,"' + b"q" * 3_000_000,
    "longer than a buffer": b"x," + b"q" * 33_000_000 + b",",
    "as long as no row may be": b"x," + b"q" * (files.LONGEST_LINE - 2),
    "as long, in quotation marks": b'x,"' + b"q" * (files.LONGEST_LINE - 4) + b'"',
    "as long, before a unit separator": b"x," + b"q" * (files.LONGEST_LINE - 2) + b"\x1f",
    "long quotation marks": b'"' * (files.LONGEST_LINE - 1),
    "long empty fields": b'"",' * 20_000,
    "long delimiters": b"," * (files.LONGEST_LINE - 1),
}
ENDS = {"LF": b"\n", "CRLF": b"\r\n"}


def opened(path, data):
    path.write_bytes(data)
    return dpselect.open_table(path)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_line_takes_nothing_with_it(kind, end, tmp_path):
    data = ENDS[end].join([b"a,b", *GOOD[:2], MALFORMED[kind], *GOOD[2:]])
    assert counts(opened(tmp_path / "t.csv", data), "a", CANDIDATES) == [2, 1, 1]


@pytest.fixture(scope="module")
def rows_of(tmp_path_factory):
    """The rows of a file with the columns a and b, as the engine sees them."""
    connection, path = connect(), tmp_path_factory.mktemp("lines") / "t.csv"

    def read(data):
        path.write_bytes(data)
        return connection.execute(
            files.rows_of(files.csv_lines(), ",", ["a", "b"], ["a", "b"], {}), {"paths": [str(path)]}
        ).fetchall()

    return read


@pytest.fixture(scope="module")
def rows_of_workers(tmp_path_factory):
    """The same as Spark's workers see them, in ranges of a few bytes."""
    path = tmp_path_factory.mktemp("lines") / "t.csv"

    def read(data):
        path.write_bytes(data)
        ranges = tuple(csv_lines.ranges_of([path], max(13, len(data) // 40)))
        reader = csv_lines.LineReader(ranges, ",", ("a", "b"), ("a", "b"))
        numbers = pa.record_batch({"id": range(len(ranges))})
        return [tuple(row.values()) for batch in reader(iter([numbers])) for row in batch.to_pylist()]

    return read


@pytest.mark.parametrize("place", [0, 4])
def test_not_even_first_or_last(place, rows_of):
    """Before or after the good lines, with and without an end."""
    good = [tuple(line.decode().split(",")) for line in GOOD]
    for line in MALFORMED.values():
        for last in (b"", b"\n", b"\r\n"):
            data = b"\n".join([b"a,b", *GOOD[:place], line, *GOOD[place:]]) + last
            assert rows_of(data) == good


PIECES = [
    b"x",
    b"y",
    b",",
    b",",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'""',
    b'"x"',
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b" ",
    b"\x1f",
]


def fields_of(line, delimiter=","):
    """A line by the rules of RFC 4180, written plainly; None if it breaks them."""
    fields, rest, mark = [], line, re.escape(delimiter)
    field = re.compile(rf'"((?:[^"]|"")*)"(?={mark}|\Z)|([^"{mark}]*)(?={mark}|\Z)', re.DOTALL)
    while True:
        match = field.match(rest)
        if match is None:
            return None
        quoted, plain = match.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        if match.end() == len(rest):
            return fields
        rest = rest[match.end() + 1 :]


def fault(line, number=2):
    """Why a line is left out; None if it is a row."""
    head = line.partition(b"\x1f")[0]
    if len(line) > files.LONGEST_READ:
        return Reason.LONG
    try:
        text = head.decode()
    except UnicodeDecodeError:
        return Reason.ENCODING
    if len(head) >= files.LONGEST_LINE:
        return Reason.LONG
    fields = fields_of(text)
    if fields is None:
        return Reason.QUOTES
    return None if head and len(fields) == number else Reason.FIELDS


def model(data):
    """Rows of two columns; what follows a unit separator in a line is not read."""
    good = [line for line in re.split(rb"[\r\n]", data)[1:] if fault(line) is None]
    return [tuple(field or None for field in fields_of(line.partition(b"\x1f")[0].decode())) for line in good]


@settings(max_examples=150)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40), first=st.sampled_from([b"\n", b"\r\n"]))
def test_any_bytes_are_read_as_the_rules_say(pieces, first, rows_of):
    data = b"a,b" + first + b"".join(pieces)
    assert rows_of(data) == model(data)


@settings(max_examples=40)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40), first=st.sampled_from([b"\n", b"\r\n"]))
def test_any_bytes_are_read_alike_by_workers(pieces, first, rows_of_workers):
    data = b"a,b" + first + b"".join(pieces)
    assert rows_of_workers(data) == model(data)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    texts=st.lists(st.lists(st.sampled_from([*'ab",;|\t"é ', '""', ',"', '",']), max_size=14), max_size=6),
    delimiter=st.sampled_from(",;\t|"),
    number=st.integers(1, 5),
)
def test_lines_of_any_number_of_fields_are_split_as_the_rules_say(texts, delimiter, number):
    names = [f"c{i}" for i in range(number)]
    written = ["".join(text) for text in texts]
    split = [fields_of(line, delimiter) for line in written]
    expected = [tuple(field or None for field in fields) for fields in split if fields and len(fields) == number]
    assert split_by_engine(written, delimiter, names) == expected


def split_by_engine(written, delimiter, names):
    connection = connect()
    connection.register("lines", pa.table({"line": pa.array(written, pa.string())}))
    return connection.execute(files.rows_of("lines", delimiter, names, names, {})).fetchall()


@pytest.mark.parametrize("number", [2, 3, 999, 1_001, 1_002, 1_500])
def test_wide_lines_have_all_of_their_fields(number):
    """Also beyond what the engine's regular expressions count."""
    names = [f"c{i}" for i in range(number)]
    fields = ['"a""b,"' if i % 3 == 1 else f"v{i}" for i in range(number)]
    wrong = [fields[1:], [*fields, "v"], ['"x', *fields[1:]], [*fields[:-1], 'y"']]
    found = split_by_engine([",".join(each) for each in (fields, *wrong)], ",", names)
    assert found == [tuple('a"b,' if i % 3 == 1 else f"v{i}" for i in range(number))]


# The field that is long may be the first one, too.
FIRST_FIELDS = [(b"", b""), (b'"', b'",1')]


@pytest.mark.parametrize("mark", [b"q", b"\xc3\xa9", b'"', b'""', b",", b'"",', b"\x1f", b"\r", b"\xff"])
@pytest.mark.parametrize(
    "around", [(b"x,", b""), (b'x,"', b'"'), *(pytest.param(each, marks=pytest.mark.slow) for each in FIRST_FIELDS)]
)
def test_lines_near_the_longest_are_read_as_the_rules_say(mark, around, rows_of, rows_of_workers):
    start, end = around
    for size in range(files.LONGEST_LINE - 2, files.LONGEST_LINE + 2):
        times, rest = divmod(size - len(start + end), len(mark))
        data = b"\n".join([b"a,b", *GOOD, start + mark * times + b"q" * rest + end, *GOOD])
        assert rows_of(data) == model(data)
        if size in (files.LONGEST_LINE - 1, files.LONGEST_LINE):
            assert rows_of_workers(data) == model(data)


@pytest.mark.parametrize("blank", [b"\n", b"\r", b"\r\n"])
def test_blank_lines_do_not_hide_the_row_behind_them(blank, rows_of, rows_of_workers):
    """The engine counts them as part of that line, up to a limit of its own."""
    data = b"a,b\nx,1\n" + blank * 100_000 + b"y," + b"q" * (files.LONGEST_LINE - 3) + b"\nz,3"
    assert [a for a, _ in rows_of(data)] == ["x", "y", "z"]
    assert rows_of_workers(data) == rows_of(data)


def test_a_long_line_is_left_out_before_it_is_looked_at():
    """The query tests the length itself, and does not rely on the reader of the file."""
    kept, left_out = ("x," + "q" * (size - 2) for size in (files.LONGEST_LINE - 1, files.LONGEST_LINE))
    assert [len(row[1]) for row in split_by_engine([left_out, kept], ",", ["a", "b"])] == [len(kept) - 2]
    query = files.rows_of("lines", ",", ["a", "b"], ["a", "b"], {})
    costly = [query.index(function) for function in ("regexp_", "string_split", "list_transform", "contains")]
    assert query.index(f"strlen(line) >= {files.LONGEST_LINE}") < min(costly)


@pytest.mark.parametrize("size", range(1, 12))
def test_ranges_of_every_size_share_the_lines(size, monkeypatch, tmp_path):
    """Wherever the ranges and the blocks of reading end, every line is in one range."""
    monkeypatch.setattr(csv_lines, "_BLOCK", 5)
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"\r\n".join([*GOOD, b"", b"long line", b"q"]) + b"\r\rz,9")
    found = [
        line
        for part in csv_lines.ranges_of([tmp_path / "t.csv"], size)
        for block in csv_lines.lines_in(part)
        for line in block
    ]
    assert found == [*GOOD, b"long line", b"q", b"z,9"]


def test_empty_fields_are_missing_values(tmp_path):
    table = opened(tmp_path / "t.csv", b'a,b\n,1\n"",1\nx,""\n"x",\n')
    assert counts(table, "a", ["", "x"]) == [0, 2]
    assert places(table, "b", 0, 5) == [(1, False, 2)]


HEADERS = {
    "nothing": b"",
    "an empty line": b"\nx,1\n",
    "no name at all": b",\nx,1\n",
    "unterminated": b'"a,b\nx,1\n',
    "not UTF-8": b"a\xff,b\nx,1\n",
    "a number": b"x,12\ny,13\n",
    "twice the same": b"a,A\nx,1\n",
    "carriage returns only": b"a,b\rx,1\r",
    "control characters": b"a\x01,b\nx,1\n",
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_bad_header_is_an_error_that_names_the_file_and_shows_no_data(kind, tmp_path):
    with pytest.raises(InvalidValue, match=r"t\.csv: ") as caught:
        opened(tmp_path / "t.csv", HEADERS[kind])
    assert not {"x,", "12", "13"} & {str(caught.value).replace(str(tmp_path), "")}


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_delimiters_come_from_the_header(delimiter, tmp_path):
    rows = [["a", "b, c; d"], ["x", "1"], ['"x, y; z|\t"', '"1"'], ["y", '"2']]
    rows[0][1] = f'"{rows[0][1]}"'
    data = "\n".join(delimiter.join(row) for row in rows).encode()
    table = opened(tmp_path / "t.txt", data)
    assert list(table.columns) == ["a", "b, c; d"]
    assert counts(table, "a", ["x", "x, y; z|\t", "y"]) == [1, 1, 0]


# Checks count each malformed line once, for the right reason.


def expected(data):
    return Counter(fault(line) for line in re.split(rb"[\r\n]", data)[1:] if line)


def found(path):
    """The number of rows that were read, and of lines that were left out for each reason."""
    check = dpselect.open_table(path).check("b")
    read = check.counted + check.left_out.get(Reason.MISSING, 0)
    of_lines = {reason: number for reason, number in check.left_out.items() if reason is not Reason.MISSING}
    return Counter({None: read, **of_lines})


SHORT = {name: line for name, line in MALFORMED.items() if len(line) < 100_000}


@pytest.mark.parametrize("bad", [SHORT, pytest.param(MALFORMED, marks=pytest.mark.slow)], ids=["short", "all"])
def test_each_malformed_line_has_its_reason(bad, tmp_path):
    """All of them in one file, in the middle of good lines, and also compressed."""
    for end in ENDS.values():
        data = end.join([b"a,b", *(line for one in bad.values() for line in (one, *GOOD))])
        (tmp_path / "t.csv").write_bytes(data)
        assert found(tmp_path / "t.csv") == expected(data)
    assert set(expected(data)) == {None, Reason.ENCODING, Reason.LONG, Reason.QUOTES, Reason.FIELDS}
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(data, 1))
    assert found(tmp_path / "t.csv.gz") == expected(data)


def test_a_line_beyond_the_limit_of_the_reader_is_too_long(tmp_path):
    data = b"a,b\nx,1\nx," + b"q" * (files.LONGEST_READ + 9) + b"\nx\xff,1\ny,2"
    (tmp_path / "t.csv").write_bytes(data)
    assert found(tmp_path / "t.csv") == expected(data) == {None: 2, Reason.LONG: 1, Reason.ENCODING: 1}


def test_many_random_lines(tmp_path):
    """Thousands of short lines of all sorts, fresh each time."""
    data = b"a,b\n" + b"".join(random.choices([*PIECES, b"\n"], k=20_000))
    (tmp_path / "t.csv").write_bytes(data)
    assert found(tmp_path / "t.csv") == expected(data)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=60), first=st.sampled_from([b"\n", b"\r\n"]))
def test_any_bytes_are_counted_as_the_rules_say(pieces, first, tmp_path):
    data = b"a,b" + first + b"".join(pieces)
    (tmp_path / "t.csv").write_bytes(data)
    assert +found(tmp_path / "t.csv") == +expected(data)


def test_blocks_of_a_file_are_cut_between_lines(tmp_path, monkeypatch):
    """Also if a line is longer than a block, and if a file ends without a line end."""
    written = [b"x,1", b"x\xff,1", b"\x1fx", b"", b"y" * 50, b"\xc3\xa9,1", b"z\xc3,2", b"x,1"]
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"\r\n".join(written))
    for size in range(1, 70):
        monkeypatch.setattr(files, "_BLOCK", size)
        assert files._lines_of_file(tmp_path / "t.csv") == (7, 2, 1)


def test_folders(tmp_path):
    """The lines of all files together, with columns from the names of folders."""
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        (folder / "part.csv").write_bytes(b"a,b\nx,1\nx\nx\xff,1\n\ny,\n")
    check = dpselect.open_table(tmp_path).group_by("year", groups=["2023", "2025"]).check("b", lower=0, upper=9)
    assert (check.rows, check.counted) == (8, 1)
    assert check.left_out == {Reason.ENCODING: 2, Reason.FIELDS: 2, Reason.GROUP: 2, Reason.MISSING: 1}


@pytest.mark.parametrize(("delimiter", "number"), [(",", 1), (",", 3), (";", 3), ("\t", 3), ("|", 3), ("|", 1_200)])
def test_delimiters_and_wide_files(delimiter, number, tmp_path):
    names, row = [f"c{i}" for i in range(number)], ["1"] * number
    written = [names, row, [*row, "1"], ['"1"', *row[1:]], ['"1', *row[1:]], ['"1"', *row]]
    (tmp_path / "t.csv").write_text("".join(delimiter.join(line) + "\n" for line in written))
    check = dpselect.open_table(tmp_path / "t.csv").check("c0", lower=0, upper=9)
    assert (check.rows, check.counted, check.left_out) == (5, 2, {Reason.QUOTES: 1, Reason.FIELDS: 2})
