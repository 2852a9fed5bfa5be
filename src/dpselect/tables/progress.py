"""A progress bar on standard error while an engine counts, if somebody is watching."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SILENT_SECONDS = 1.0
_STEP_SECONDS = 0.1


@contextmanager
def shown_progress(percent: Callable[[], float]) -> Iterator[None]:
    """Show a bar while the body runs, after a second of silence. `percent` tells how far it is, or less than zero."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(percent, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(percent: Callable[[], float], done: threading.Event) -> None:
    if done.wait(_SILENT_SECONDS):
        return
    # rich is slow to import, and rarely needed here.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Counting", total=None)
        while not done.wait(_STEP_SECONDS):
            reached = percent()
            if reached >= 0:
                progress.update(task, total=100, completed=reached)
