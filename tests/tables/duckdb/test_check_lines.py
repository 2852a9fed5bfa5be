"""Checks of CSV files count each malformed line once, for the right reason: against the rules, written plainly."""

import gzip
import random
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpselect
from dpselect.tables import Reason
from dpselect.tables.duckdb import files
from tests.tables.duckdb.test_lines import ENDS, GOOD, MALFORMED, PIECES, fields_of


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


def expected(data):
    return Counter(fault(line) for line in re.split(rb"[\r\n]", data)[1:] if line)


def found(path):
    """The number of rows that were read, and of lines that were left out for each reason."""
    check = dpselect.open_table(path).check("b")
    read = check.counted + check.left_out.get(Reason.MISSING, 0)
    lines = {reason: number for reason, number in check.left_out.items() if reason is not Reason.MISSING}
    return Counter({None: read, **lines})


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
    lines = [b"x,1", b"x\xff,1", b"\x1fx", b"", b"y" * 50, b"\xc3\xa9,1", b"z\xc3,2", b"x,1"]
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"\r\n".join(lines))
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
    lines = [names, row, [*row, "1"], ['"1"', *row[1:]], ['"1', *row[1:]], ['"1"', *row]]
    (tmp_path / "t.csv").write_text("".join(delimiter.join(line) + "\n" for line in lines))
    check = dpselect.open_table(tmp_path / "t.csv").check("c0", lower=0, upper=9)
    assert (check.rows, check.counted, check.left_out) == (5, 2, {Reason.QUOTES: 1, Reason.FIELDS: 2})
