"""Nothing opens a socket at run time: an audit hook of the interpreter would stop it."""

import subprocess
import sys

import pytest

from dpselect import errors, open_table

PROGRAM = """
import sys

seen = []


def refuse(event, arguments):
    if event.startswith("socket."):
        seen.append(event)
        raise RuntimeError(f"the network is used: {event}")


sys.addaudithook(refuse)
import pathlib

import dpselect
from dpselect.cli import main

if {probe}:
    import socket
    socket.create_connection(("127.0.0.1", 9))

mechanism = dpselect.PermuteAndFlip(1)
assert mechanism.select([0, 0, 10**6]) == 2
mechanism.select_rows([[0, 1], [1, 0]])
mechanism.simulate([0, 1], 10)
dpselect.analysis.compare([0, 1], [1])
dpselect.audit.audit(mechanism, 1, runs=100)
folder = pathlib.Path({folder!r})
(folder / "rows.csv").write_text("person,letter,size\\n1,a,3\\n2,b,4\\n3,a,5\\n")
(folder / "scores.csv").write_text("a,1\\nb,2\\n")
mode = ["mode", "--column", "letter", "--candidates", "a,b", "--epsilon", "1", "--person", "person"]
rows, scores, ledger = (str(folder / name) for name in ("rows.csv", "scores.csv", "spent.ledger"))
for words in (
    ["select", scores, "--epsilon", "1"],
    [*mode, rows],
    [*mode, rows, "--ledger", ledger, "--budget", "3"],
    ["ledger", "show", ledger, "--delta", "1e-6"],
    ["ledger", "verify", ledger],
    ["ledger", "export", ledger],
    ["median", rows, "--column", "size", "--lower", "0", "--upper", "9", "--epsilon", "1"],
    ["plan", "select", "--candidates", "100", "--epsilon", "1"],
    ["compare", scores, "--epsilon", "0.1,1"],
    ["audit", "--mechanism", "exponential", "--epsilon", "1", "--runs", "100", "--rows"],
):
    sys.argv = ["dpselect", *words]
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code, words
assert not seen
print("done")
"""


@pytest.mark.parametrize("probe", [False, True])
def test_no_socket_is_opened_and_the_hook_would_notice(tmp_path, probe):
    program = PROGRAM.replace("{folder!r}", repr(str(tmp_path))).replace("{probe}", str(probe))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("done\n") is not probe, done.stderr
    assert ("the network is used" in done.stderr) is probe


@pytest.mark.parametrize("source", ["https://example.com/rows.csv", "s3://bucket/rows.parquet"])
def test_addresses_are_no_files(source):
    with pytest.raises(errors.InvalidValue, match="no such file"):
        open_table(source)


def test_duckdb_may_not_fetch_extensions(tmp_path):
    """DuckDB opens sockets below Python, where no hook sees them: it is told not to fetch anything."""
    (tmp_path / "rows.csv").write_text("a\n1\n")
    connection = open_table(tmp_path / "rows.csv")._engine._connection
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
        assert connection.execute(f"SELECT current_setting('{setting}')").fetchall() == [(False,)]
