"""Bars for long work: on a terminal and in a notebook, after a second, and nowhere else."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from dpselect import _show
from dpselect._show import polled, progress, tracked


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What each bar was told."""
    made: list[list[Any]] = []

    @contextmanager
    def bar(what: str) -> Iterator[Callable[[float | None], None]]:
        made.append(told := [what])
        try:
            yield told.append
        finally:
            told.append("closed")

    monkeypatch.setattr(_show, "_bar", lambda: bar)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    time = SimpleNamespace(now=100.0)
    monkeypatch.setattr(_show.time, "monotonic", lambda: time.now)

    def pass_(seconds: float) -> None:
        time.now += seconds

    return pass_


def test_only_long_work_has_a_bar_which_goes_away(bars: list[list[Any]], clock: Callable[[float], None]) -> None:
    with progress("Working") as watch:
        clock(0.9)
        watch(0.5)
    assert bars == []
    with progress("Working") as watch:
        clock(1.5)
        watch(0.25)
        watch(0.26)  # too soon after the one before
        clock(0.2)
        watch(None)
    assert bars == [["Working", 0.25, None, "closed"]]
    with suppress(KeyError), progress("Failing") as watch:
        clock(2)
        watch(0.5)
        raise KeyError
    assert bars[1:] == [["Failing", 0.5, "closed"]]


def test_items_are_counted(bars: list[list[Any]], clock: Callable[[float], None]) -> None:
    seen = []
    for item in tracked([1, 2, 3, 4], "Working"):
        clock(1)
        seen.append(item)
    assert seen == [1, 2, 3, 4]
    assert bars[0] == ["Working", 0.25, 0.5, 0.75, "closed"]


@pytest.mark.parametrize("fails", [False, True])
def test_another_thread_asks(bars: list[list[Any]], fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is told does not disturb the work if it fails."""
    monkeypatch.setattr(_show, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(_show, "_STEP_SECONDS", 0.001)
    asked = _show.threading.Event()

    def done() -> float:
        if fails or (len(bars) and len(bars[0]) > 2):
            asked.set()
        return 1 / 0 if fails else 0.5

    with polled(done, "Counting"):
        assert asked.wait(30)
    if not fails:
        assert bars[0][:2] == ["Counting", 0.5]
        assert bars[0][-1] == "closed"


def test_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, io.StringIO(), closed, SimpleNamespace(write=print, flush=print)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert _show._bar() is None
    with polled(lambda: 1 / 0, "never asked"):
        pass


def test_a_bar_on_a_terminal() -> None:
    pty = pytest.importorskip("pty", reason="needs a terminal that a program can make")
    reader, writer = pty.openpty()
    code = "import time; from dpselect._show import tracked\nfor _ in tracked(range(13), 'Waiting'): time.sleep(0.1)"
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", code], stderr=writer, env=environment, timeout=60, check=True)
    os.set_blocking(reader, False)  # a missing bar must fail the test, not hang it
    shown = os.read(reader, 10_000)
    os.close(writer)
    os.close(reader)
    assert b"Waiting" in shown


@pytest.mark.slow
def test_a_bar_in_a_notebook() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra docs")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra docs")
    pytest.importorskip("ipykernel", reason="needs the extra docs")
    code = (
        "import dpselect.audit, IPython.display, time\nfrom dpselect import _show\n_show._SILENT_SECONDS = 0\n"
        "seen, own = [], IPython.display.HTML\n"
        "IPython.display.HTML = lambda text: (seen.append(text), own(text))[1]\n"
        "dpselect.audit.audit(lambda scores: time.sleep(0.0002), epsilon=1, runs=200)\n"
        "print(sum('value' in text for text in seen) > 3, seen[-1] == '')"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    outputs = notebook.cells[0].outputs
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert "".join(output.get("text", "") for output in outputs) == "True True\n"
