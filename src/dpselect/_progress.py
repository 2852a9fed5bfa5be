"""Show the progress of long work: a bar on a terminal or in a notebook, after one second, and nothing elsewhere.

A bar shows how far public work has come: runs, epsilons, or the bytes of a table that were read. What depends on the
data, such as the number of runs of `tune`, has no bar.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Protocol, TypeVar

_SILENT_SECONDS = 1.0
_STEP_SECONDS = 0.1

_Item = TypeVar("_Item")
Watch = Callable[[float | None], None]  # called with the fraction that is done, from 0 to 1, or None if it is unknown


class _Bar(Protocol):
    """A bar that is seen."""

    def show(self, done: float | None) -> None:
        """Show the fraction that is done, or that work goes on."""
        ...

    def close(self) -> None:
        """Remove the bar."""
        ...


class _OnTerminal:
    """A bar on standard error."""

    def __init__(self, what: str) -> None:
        # rich is slow to import, and only long work needs it.
        from rich.console import Console  # noqa: PLC0415 - as above
        from rich.progress import Progress  # noqa: PLC0415 - as above

        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(what, total=None)
        self._progress.start()

    def show(self, done: float | None) -> None:
        if done is not None:
            self._progress.update(self._task, total=1.0, completed=done)

    def close(self) -> None:
        self._progress.stop()


class _InNotebook:
    """A bar below a cell."""

    def __init__(self, what: str) -> None:
        shown: Any = import_module("IPython.display")  # it is there if a notebook runs
        self._what, self._html = what, shown.HTML
        self._handle = shown.display(self._drawn(None), display_id=True)

    def _drawn(self, done: float | None) -> Any:
        reached = "" if done is None else f' value="{done:.3f}"'
        return self._html(f"{self._what} <progress{reached}></progress>")

    def show(self, done: float | None) -> None:
        self._handle.update(self._drawn(done))

    def close(self) -> None:
        self._handle.update(self._html(""))


def _place() -> Callable[[str], _Bar] | None:
    """Where somebody looks: at a terminal, at a notebook, or nowhere."""
    with suppress(Exception):  # standard error may be closed, or anything that has `write`
        if sys.stderr.isatty():
            return _OnTerminal
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return _InNotebook if hasattr(shell, "kernel") else None


@contextmanager
def progress(what: str) -> Iterator[Watch]:
    """Yield a function that takes the fraction of the work that is done, and shows it if somebody looks."""
    place, started, shown = _place(), time.monotonic(), 0.0
    bar: _Bar | None = None

    def watch(done: float | None) -> None:
        nonlocal bar, shown
        now = time.monotonic()
        if place is None or now - started < _SILENT_SECONDS or now - shown < _STEP_SECONDS:
            return
        bar, shown = place(what) if bar is None else bar, now
        bar.show(done)

    try:
        yield watch
    finally:
        if bar is not None:
            bar.close()


def tracked(items: Sequence[_Item], what: str) -> Iterator[_Item]:
    """Yield the items, and show how many of them are done.

    >>> list(tracked([1, 2, 3], "Counting"))
    [1, 2, 3]
    """
    with progress(what) as watch:
        for done, item in enumerate(items):
            watch(done / len(items))
            yield item


@contextmanager
def polled(done: Callable[[], float | None], what: str) -> Iterator[None]:
    """Show the progress of the body, which does not report it: `done` is asked for the fraction, by another thread."""
    if _place() is None:
        yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_poll, args=(done, what, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _poll(done: Callable[[], float | None], what: str, ended: threading.Event) -> None:
    with suppress(Exception), progress(what) as watch:  # a bar that fails must not disturb the work
        while not ended.wait(_STEP_SECONDS):
            watch(done())
