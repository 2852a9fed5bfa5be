"""What a user sees besides text: HTML tables in a notebook, CSV files that are safe to open, progress bars.

**HTML.** Every text is escaped here and nowhere else: names of groups and values come from users and from data. There
are no colours, so that a table looks right on a light and on a dark page, and no mathematics: a notebook would read the
text between two dollar signs as a formula, if the classes of the outermost element did not forbid it.

**CSV.** No text in a file is read as a formula by a spreadsheet.

**Progress.** A bar shows how far public work has come: runs, epsilons, or the bytes of a table that were read. What
depends on the data, such as the number of runs of `tune`, has no bar.
"""

import csv
import io
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from html import escape
from importlib import import_module
from itertools import islice
from numbers import Number
from typing import Any, TypeVar

_MOST_ROWS = 200
_LONGEST = 300  # characters of a cell
_OPENING = '<div class="tex2jax_ignore mathjax_ignore">'
_LEFT, _RIGHT = ' style="text-align: left"', ' style="text-align: right"'


def cell_text(value: Any) -> str:
    """A value as the text of a cell. Text that a reader could not see or tell apart is quoted, as by `repr`."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell_text, value))
    text = str(value)
    if not text or text != text.strip() or not text.isprintable():
        text = repr(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def page(*parts: str) -> str:
    """One piece of HTML of several tables and paragraphs, for `_repr_html_`."""
    return f"{_OPENING}{''.join(parts)}</div>"


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    spans: Sequence[tuple[str, int]] = (),
    is_numeric: bool = False,
) -> str:
    """A table with a line of heads. Of more than 200 rows, it says how many are left out."""
    listed = iter(rows)
    shown = list(islice(listed, _MOST_ROWS))
    left_out = sum(1 for _ in listed)
    styles = [_LEFT, *[_RIGHT if is_numeric else _LEFT] * (len(heads) - 1)]
    above = [f'<th colspan="{width}" scope="colgroup"{_LEFT}>{_line(text)}</th>' for text, width in spans]
    below = [f'<th scope="col"{style}>{_line(head)}</th>' for head, style in zip(heads, styles, strict=True)]
    body = [[f"<td{style}>{_cell(cell)}</td>" for cell, style in zip(row, styles, strict=True)] for row in shown]
    top = "".join(map(_row, filter(None, [above, below])))
    more = paragraph(f"and {left_out:,} more rows") if left_out else ""
    return f"<table>{_caption(caption)}<thead>{top}</thead><tbody>{''.join(map(_row, body))}</tbody></table>{more}"


def facts(named: Mapping[str, Any], *, caption: str = "") -> str:
    """A table of names and values, one row for each."""
    rows = [
        [f'<th scope="row"{_LEFT}>{_line(name)}</th>', f"<td{_LEFT}>{_cell(value)}</td>"]
        for name, value in named.items()
    ]
    return f"<table>{_caption(caption)}<tbody>{''.join(map(_row, rows))}</tbody></table>"


def paragraph(text: str) -> str:
    """A sentence or several, of any length."""
    return f"<p>{escape(text)}</p>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: Any) -> str:
    return escape(cell_text(value))


def _line(text: str) -> str:
    return escape(" ".join(text.split()))


def _caption(text: str) -> str:
    return f'<caption style="caption-side: top; text-align: left">{_line(text)}</caption>' if text else ""


# The characters that begin a formula in Excel, LibreOffice or Google Sheets, also in full width (East Asian keyboards),
# and those that may begin a new cell.
_BEGINS_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n")
_QUOTES = "'\"`\u2018\u2019\u201c\u201d\uff07\uff02"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]], end: str = "\r\n") -> str:
    """A table as CSV. Numbers are written as they are; a text that could be a formula gets an apostrophe in front."""
    return "".join(_csv_line([_csv_cell(value) for value in row]) + end for row in (header, *rows))


def _csv_line(cells: list[Any]) -> str:
    # Python quotes a line break in a cell only if it is part of `lineterminator`, so that is CR LF.
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n")


def _csv_cell(value: Any) -> Any:
    if value is None or isinstance(value, Number):
        return value
    text = str(value)
    return f"'{text}" if _may_be_formula(text) else text


def _may_be_formula(text: str) -> bool:
    # Some programs drop quotes, spaces and invisible characters in front of a formula.
    for sign in text:
        if sign in _BEGINS_FORMULA:
            return True
        if not (sign in _QUOTES or sign.isspace() or unicodedata.category(sign) in ("Cc", "Cf")):
            return False
    return False


_SILENT_SECONDS = 1.0
_STEP_SECONDS = 0.1

_Item = TypeVar("_Item")
Watch = Callable[[float | None], None]  # called with the fraction that is done, from 0 to 1, or None if it is unknown


@contextmanager
def _on_terminal(what: str) -> Iterator[Watch]:
    # rich is slow to import, and only long work needs it.
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.progress import Progress  # noqa: PLC0415 - as above

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done: None if done is None else bar.update(task, total=1.0, completed=done)


@contextmanager
def _in_notebook(what: str) -> Iterator[Watch]:
    # Without the widgets that rich needs there.
    shown: Any = import_module("IPython.display")  # it is there if a notebook runs
    handle = shown.display(shown.HTML(f"{what} <progress></progress>"), display_id=True)

    def show(done: float | None) -> None:
        reached = "" if done is None else f' value="{done:.3f}"'
        handle.update(shown.HTML(f"{what} <progress{reached}></progress>"))

    try:
        yield show
    finally:
        handle.update(shown.HTML(""))


def _bar() -> Callable[[str], AbstractContextManager[Watch]] | None:
    with suppress(Exception):  # standard error may be closed, or anything that has `write`
        if sys.stderr.isatty():
            return _on_terminal
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return _in_notebook if shell is not None and hasattr(shell(), "kernel") else None


@contextmanager
def progress(what: str) -> Iterator[Watch]:
    """Yield a function that takes the fraction of the work that is done, and shows it after a second of work."""
    bar, started, shown_at = _bar(), time.monotonic(), 0.0
    show: Watch | None = None

    def watch(done: float | None) -> None:
        nonlocal show, shown_at
        now = time.monotonic()
        if bar is None or now - started < _SILENT_SECONDS or now - shown_at < _STEP_SECONDS:
            return
        show, shown_at = show or stack.enter_context(bar(what)), now
        show(done)

    with ExitStack() as stack:
        yield watch


def tracked(items: Sequence[_Item], what: str) -> Iterator[_Item]:
    """Yield the items, and show how many of them are done."""
    with progress(what) as watch:
        for done, item in enumerate(items):
            watch(done / len(items))
            yield item


@contextmanager
def polled(done: Callable[[], float | None], what: str) -> Iterator[None]:
    """Show the progress of the body, which does not report it: `done` is asked for the fraction, by another thread."""
    if _bar() is None:
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
