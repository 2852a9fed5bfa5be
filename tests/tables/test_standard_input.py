"""Standard input as a table: copied once into a private file, and read as often as a question needs."""

import gzip
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect import Ledger
from dpselect.errors import InvalidValue, RequestConflict
from tests.tables.looking import counts

CSV = b"who,code\n1,a\n1,b\n2,a\n"


def parquet():
    sink = io.BytesIO()
    pq.write_table(pa.table({"who": [1, 1, 2], "code": ["a", "b", "a"]}), sink)
    return sink.getvalue()


@pytest.fixture
def pipe(monkeypatch):
    """A function that pipes bytes into this process."""

    def piped(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return piped


@pytest.mark.parametrize("content", [CSV, gzip.compress(CSV), parquet()], ids=["CSV", "compressed", "Parquet"])
def test_what_is_piped_in_is_a_table(content, pipe):
    pipe(content)
    table = dpselect.open_table("-", person="who")
    for _ in range(3):
        assert counts(table, "code", ["a", "b"]) == [2, 1]
    assert counts(dpselect.open_table("-"), "code", ["a", "b"]) == [2, 1]  # the same copy
    pipe(b"code\nb\n")
    assert counts(dpselect.open_table("-"), "code", ["a", "b"]) == [0, 1]


def test_notation_and_where_apply(pipe):
    pipe("who;cost;city\n1;2,5;Köln\n2;3,5;Köln\n".encode("latin-1"))
    table = dpselect.open_table("-", encoding="latin-1", decimal=",", where="cost > 3")
    assert counts(table, "city", ["Köln"]) == [1]


def test_a_request_knows_what_was_piped_in(pipe, tmp_path):
    ledger, asked = Ledger(tmp_path / "ledger", budget=9), {"candidates": ["a", "b"], "epsilon": 1, "request_id": "r"}
    for _ in range(2):
        pipe(CSV)
        dpselect.open_table("-", ledger=ledger).mode("code", **asked)
    assert len(ledger.entries()) == 1
    pipe(CSV + b"3,b\n")
    with pytest.raises(RequestConflict):
        dpselect.open_table("-", ledger=ledger).mode("code", **asked)


def test_a_terminal_and_nothing_are_refused(monkeypatch, pipe):
    terminal = io.TextIOWrapper(io.BytesIO(CSV))
    terminal.isatty = lambda: True
    closed = io.TextIOWrapper(io.BytesIO(CSV))
    closed.close()
    for stream in (terminal, closed, None, io.StringIO("a\n")):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(InvalidValue, match="source is -, which is standard input, and nothing is piped into it"):
            dpselect.open_table("-")
    pipe(b"")
    with pytest.raises(InvalidValue, match=r"standard-input\.csv: the first line must be a header"):
        dpselect.open_table("-")
    pipe(CSV)
    with pytest.raises(InvalidValue, match="table is for databases"):
        dpselect.open_table("-", table="visits")


def test_a_file_of_that_name_has_a_path(tmp_path, monkeypatch, pipe):
    pipe(CSV)
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"code": ["b"]}), tmp_path / "-")
    assert counts(dpselect.open_table("./-"), "code", ["a", "b"]) == [0, 1]
    assert counts(dpselect.open_table(Path("-").absolute()), "code", ["a", "b"]) == [0, 1]
    assert counts(dpselect.open_table("-"), "code", ["a", "b"]) == [2, 1]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_the_copy_is_private_and_gone_at_the_end():
    code = (
        "import dpselect\n"
        "table = dpselect.open_table('-')\n"
        "table.mode('code', candidates=['a', 'b'], epsilon=1)\n"
        "print(table._engine._source.files[0])\n"
        "import os; info = os.stat(table._engine._source.files[0]); print(oct(info.st_mode), info.st_size)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=CSV, capture_output=True, check=True)
    path, mode, size = done.stdout.decode().split()
    assert (stat.S_IMODE(int(mode, 8)), int(size)) == (0o600, len(CSV))
    assert not Path(path).exists()
    assert not Path(path).parent.parent.exists()


def test_the_command_line_takes_a_pipe():
    asked = ["--column", "code", "--candidates", "a,b", "--epsilon", "50", "--group-by", "who", "--groups", "1,2"]
    command = [sys.executable, "-m", "dpselect", "mode", "-", *asked]
    done = subprocess.run(command, input=CSV * 50, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"2" in done.stdout
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"the first line must be a header" in done.stderr


def test_spark_is_told_what_to_do(pipe):
    pipe(CSV)
    with pytest.raises(InvalidValue, match="leave engine out, or save it where Spark can read it"):
        dpselect.open_table("-", engine="spark")
