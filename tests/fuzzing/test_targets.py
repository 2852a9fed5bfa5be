"""The targets of `make fuzz` hold on some random bytes and on what the fuzzer found, without atheris."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fuzz.batches import Batched
from fuzz.targets import TARGETS, candidate_list, command_line, scores_file, table_lines

# Bytes that matter to CSV are frequent.
DATA = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [
                *(b",", b'"', b'""', b"\n", b"\r\n", b"\r", b"a", b"b", b"1", b"2", b" ", b";", b"\xff", b"\x1f"),
                *(b"\x00", b"\xef\xbb\xbf", "ä".encode(), b"score", b"1e400", b"-0.5", b"nan", b"\\", b"'"),
            ]
        ),
        max_size=30,
    ).map(b"".join),
)
FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


@given(DATA)
@settings(max_examples=300)
@example(b"\x01score\n1\n")
def test_scores_file(data):
    scores_file(data)


@given(DATA)
@settings(max_examples=300)
@example(b"&\n-")  # a line break in a list was a traceback
def test_candidate_list(data):
    candidate_list(data)


@given(DATA)
@FEW
@example(b'1,a\n2,"a"\n3,"a\n4,b"\n5,a\xff\n6,b')
@example(b",\x1f")  # what follows a unit separator is not read; the line is
@example(b'1,a\x1f\xff"\n2,b\x1f,,\n\x1f3,c\n4,"c\x1f"')
def test_table_lines(data):
    table_lines(data)


@given(st.binary(max_size=60))
@FEW
def test_command_line(data):
    command_line(data)


def test_no_folder_is_left(tmp_path):
    """Neither by the import nor by a target that writes files. All targets are tested above."""
    assert set(TARGETS) == {"scores_file", "candidate_list", "table_lines", "command_line"}
    program = "import fuzz.targets as t, pathlib, sys; n = len(list(pathlib.Path(sys.argv[1]).iterdir()))\n"
    program += "for run in t.TARGETS.values():\n    run(b'1,a')\nprint(n, t._folder().parent)"
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", str(tmp_path)]
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_count_is_noticed(monkeypatch):
    """The power check of table_lines: a reader that lets a quotation mark run on is caught."""
    monkeypatch.setattr("fuzz.targets._row", lambda line: ["1", "a"])
    with pytest.raises(AssertionError):
        table_lines(b"1,a\n2,b\n")


def test_a_batch_names_the_input_that_is_wrong():
    seen = []

    def target(data):
        seen.append(data)
        assert b"3" not in data

    batched = Batched(3, target)
    for data in (b"1", b"2", b"4", b"5", b"3"):
        batched(data)
    assert seen == [b"1\n2\n4"]
    with pytest.raises(AssertionError, match="wrong for b'3'"):
        batched(b"6")


def test_a_batch_that_is_wrong_as_a_whole_is_shown_as_a_whole():
    def target(data):
        assert data.count(b"\n") < 1

    batched = Batched(2, target)
    batched(b"1")
    with pytest.raises(AssertionError, match=r"together: \[b'1', b'2'"):
        batched(b"2")
