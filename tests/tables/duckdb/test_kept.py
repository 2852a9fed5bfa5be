"""Rows of CSV files in memory: they are those of the files as they are now, and nobody but the table has them."""

import gzip
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app
from dpselect.errors import EngineFailure, InvalidValue
from dpselect.tables import files
from dpselect.tables.duckdb import files as kept
from tests.tables.duckdb.test_lines import CANDIDATES
from tests.tables.looking import counts, places

LINES = b'who,code,cost\n1,x,10\n1,"x",20\n2,y,30\n3,z"q,40\n3,"z",50\n'


def written(path, data=LINES, seconds=1):
    """The file, last written so many seconds after the beginning of 1970."""
    path.write_bytes(data)
    os.utime(path, (seconds, seconds))
    return path


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    """Rows of files that were changed just before are kept too."""
    monkeypatch.setattr(files, "_TICK", 0)


@pytest.fixture
def reads(monkeypatch):
    """How often files were read, as a list with an element for each time."""
    found = []
    for kind in (kept.CSVFiles, kept.ParquetFiles):

        def counted(self, cursor, names, kind=kind, rows=kind.rows):
            if names is not None:
                found.append(self.files)
            return rows(self, cursor, names)

        monkeypatch.setattr(kind, "rows", counted)
    quick = kept.ParquetFiles.quick
    monkeypatch.setattr(kept.ParquetFiles, "quick", lambda self, names: found.append(self.files) or quick(self, names))
    return found


def asked(table):
    """Three questions about different columns."""
    return counts(table, "code", CANDIDATES), places(table, "cost", 0, 100), counts(table, "who", [1, 2, 3])


ANSWERS = ([2, 1, 1], [(10, False, 1), (20, False, 1), (30, False, 1), (50, False, 1)], [2, 1, 1])


@pytest.mark.parametrize(("keep", "times"), [(True, 1), (None, 2), (False, 3)])
def test_several_questions_read_a_file_once(keep, times, reads, tmp_path):
    table = dpselect.open_table(written(tmp_path / "t.csv"), keep=keep)
    assert asked(table) == ANSWERS
    assert len(reads) == times
    assert asked(table) == ANSWERS
    assert len(reads) == (6 if keep is False else times)


CHANGES = {
    "longer": lambda path: written(path, LINES + b"4,x,1\n"),
    "the same size and another time": lambda path: written(path, LINES.replace(b"2,y,30", b"2,x,30"), 2),
    "the same size and time": lambda path: written(path, LINES.replace(b"2,y,30", b"2,x,30")),
    "another file of the same size and time": lambda path: os.replace(
        written(path.with_name("new"), LINES.replace(b"2,y,30", b"2,x,30")), path
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("keep", [True, None])
def test_a_file_that_has_changed_is_read_again(change, keep, reads, tmp_path):
    path = written(tmp_path / "t.csv")
    table = dpselect.open_table(path, keep=keep)
    for _ in range(3):
        assert counts(table, "code", CANDIDATES) == [2, 1, 1]
    before = len(reads)
    CHANGES[change](path)
    after = [3, 1, 1] if change == "longer" else [3, 0, 1]
    for _ in range(3):
        assert counts(table, "code", CANDIDATES) == after
    assert len(reads) == 2 * before
    assert number_of_tables(table) == 1


HEADERS = {
    "another order": b"code,who,cost",
    "another name": b"who,diagnosis,cost",
    "more columns": b"who,code,cost,more",
    "another delimiter": b"who;code;cost",
    "none": b"1,2,3",
    "not UTF-8": b"\xff,code,cost",
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("asked_before", [0, 2])
@pytest.mark.parametrize("keep", [True, None, False])
def test_a_header_that_has_changed_is_an_error(header, asked_before, keep, tmp_path):
    """Values are found by their places in a line, so that another column would take the place of the person."""
    path = written(tmp_path / "t.csv")
    table = dpselect.open_table(path, keep=keep, person="who")
    for _ in range(asked_before):
        table.mode("code", candidates=CANDIDATES, epsilon=1)
    written(path, LINES.replace(LINES.split(b"\n")[0], HEADERS[header]), 2)
    with pytest.raises(InvalidValue, match="its header is another one: open it again"):
        table.mode("code", candidates=CANDIDATES, epsilon=1)


def number_of_tables(table):
    return table._engine._connection.cursor().execute("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0]


def test_a_file_that_is_gone_is_an_error_as_without(tmp_path):
    path = written(tmp_path / "t.csv")
    table = dpselect.open_table(path, keep=True)
    assert counts(table, "code", CANDIDATES) == [2, 1, 1]
    path.unlink()
    for _ in range(2):
        with pytest.raises(EngineFailure):
            counts(table, "code", CANDIDATES)
    written(path)
    assert counts(table, "code", CANDIDATES) == [2, 1, 1]


def test_a_file_that_changes_while_it_is_read_is_not_kept(monkeypatch, reads, tmp_path):
    path = written(tmp_path / "t.csv")

    class Changed(kept.KeptRows):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            written(path, LINES + b"4,x,1\n", 2)

    table = dpselect.open_table(path, keep=True)
    with monkeypatch.context() as patched:
        patched.setattr(kept, "KeptRows", Changed)
        assert counts(table, "code", CANDIDATES) == [3, 1, 1]
    assert number_of_tables(table) == 0
    assert counts(table, "code", CANDIDATES) == [3, 1, 1]
    assert number_of_tables(table) == 1
    assert len(reads) == 3


@pytest.mark.parametrize("write", [Path.write_bytes, written])
def test_a_file_that_has_just_been_changed_is_not_kept(write, monkeypatch, reads, tmp_path):
    """It may be changed once more in the same tick of the clock, also by a copy that has the time of its original."""
    monkeypatch.setattr(files, "_TICK", 3600 * 10**9)
    write(tmp_path / "t.csv", LINES)
    table = dpselect.open_table(tmp_path / "t.csv", keep=True)
    assert asked(table) == ANSWERS
    assert len(reads) == 3
    monkeypatch.setattr(files, "_TICK", 0)
    assert asked(table) == ANSWERS
    assert len(reads) == 4


def test_files_that_are_too_large_are_read_for_every_question(monkeypatch, reads, tmp_path):
    """By their size, which is the same for all rows of that size."""
    table = dpselect.open_table(written(tmp_path / "t.csv"), keep=True)
    connection = table._engine._connection
    [(memory,)] = connection.execute("SELECT parse_formatted_bytes(current_setting('memory_limit'))").fetchall()
    monkeypatch.setattr(kept, "_SHARE", memory // len(LINES) + 1)
    assert asked(table) == ANSWERS
    assert len(reads) == 3
    monkeypatch.setattr(kept, "_SHARE", memory // len(LINES))
    assert asked(table) == ANSWERS
    assert len(reads) == 4


def test_a_lack_of_memory_is_no_error(monkeypatch, reads, tmp_path):
    tries = []

    def fail(*arguments):
        tries.append(arguments)
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(kept, "KeptRows", fail)
    assert asked(dpselect.open_table(written(tmp_path / "t.csv"), keep=True)) == ANSWERS
    assert (len(tries), len(reads)) == (1, 3)


def test_what_is_compressed_or_quick_to_read_is_not_kept(reads, tmp_path):
    compressed = written(tmp_path / "t.csv.gz", gzip.compress(LINES))
    pq.write_table(pa.table({"code": ["x", "x", "y", "z"]}), tmp_path / "t.parquet")
    os.utime(tmp_path / "t.parquet", (1, 1))
    for path in (compressed, tmp_path / "t.parquet"):
        table = dpselect.open_table(path, keep=True)
        for _ in range(3):
            assert counts(table, "code", CANDIDATES) == [2, 1, 1]
        assert number_of_tables(table) == 0
    assert len(reads) == 6


@pytest.mark.parametrize(("columns", "times"), [(kept._MOST_COLUMNS, 1), (kept._MOST_COLUMNS + 1, 3)])
def test_very_wide_files_are_not_kept(columns, times, reads, tmp_path):
    """A plan for all their columns would take far longer than one for a few; the header alone decides."""
    names = ",".join(["code", *(f"c{number}" for number in range(1, columns))])
    rows = "".join(f"{code}{',1' * (columns - 1)}\n" for code in "xxyz")
    table = dpselect.open_table(written(tmp_path / "t.csv", f"{names}\n{rows}".encode()), keep=True)
    for _ in range(3):
        assert counts(table, "code", CANDIDATES) == [2, 1, 1]
    assert len(reads) == times


def test_threads_share_the_rows_and_do_not_wait_for_each_other(reads, tmp_path):
    table = dpselect.open_table(written(tmp_path / "t.csv"), keep=True)
    start = threading.Barrier(8)

    def ask(_):
        start.wait()
        return [asked(table) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [[ANSWERS] * 5] * 8
    assert number_of_tables(table) == 1
    with table._engine._keeper._lock:  # as in a process that was forked while another thread had it
        before = len(reads)
        assert asked(table) == ANSWERS
        assert len(reads) == before + 3


def test_rows_go_with_the_table_and_are_not_pickled(tmp_path):
    table = dpselect.open_table(written(tmp_path / "t.csv"), keep=True)
    asked(table)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(table)
    connection = table._engine._connection.cursor()
    tables = "SELECT count(*) FROM duckdb_tables()"
    assert connection.execute(tables).fetchall() == [(1,)]
    del table
    assert connection.execute(tables).fetchall() == [(0,)]


PROGRAM = """
import os, sys
from pathlib import Path
import dpselect
from dpselect.tables import files

files._TICK = 0
table = dpselect.open_table("t.csv", person="who", keep=True)
for _ in range(3):
    table.mode("code", candidates=["x", "y"], epsilon=1)
assert table._engine._keeper._rows is not None
print(*sorted(str(path.relative_to(os.environ["TMPDIR"])) for path in Path(os.environ["TMPDIR"]).rglob("*")), sep="\\n")
"""


def test_nothing_is_on_the_disk(tmp_path):
    """Only the folder into which DuckDB would spill, with the mark that says that it is ours."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "working").mkdir()
    rows = b"".join(b"PERSON%d,x\n" % number for number in range(50_000))
    written(tmp_path / "working" / "t.csv", b"who,code\n" + rows)
    source = str(Path(dpselect.__file__).parents[1])
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": source}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path / "working", capture_output=True, text=True, check=True
    )
    folder, mark = done.stdout.split()
    assert mark == f"{folder}/.dpselect"
    assert [path.name for path in (tmp_path / "working").iterdir()] == ["t.csv"]


def test_a_command_that_finds_groups_first_reads_a_file_once(reads, tmp_path):
    rows = b"".join(b"%d,%s,10\n" % (number, b"xy"[number % 2 :][:1]) for number in range(400))
    path = written(tmp_path / "t.csv", b"who,code,cost\n" + rows)
    options = ["--lower", "0", "--upper", "100", "--epsilon", "1", "--person", "who"]
    groups = ["--group-by", "code", "--groups", "found:1,1e-9"]
    done = CliRunner().invoke(app, ["median", str(path), "--column", "cost", *options, *groups])
    assert done.exit_code == 0, done.output
    assert len(reads) == 1
