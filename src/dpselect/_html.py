"""Small HTML tables, for objects that a notebook shows.

Every text is escaped here and nowhere else: names of groups and values come from users and from data. There are no
colours, so that a table looks right on a light and on a dark page, and no mathematics: a notebook would read the text
between two dollar signs as a formula, if the classes of the outermost element did not forbid it.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

_MOST_ROWS = 200
_LONGEST = 300  # characters of a cell
_OPENING = '<div class="tex2jax_ignore mathjax_ignore">'
_LEFT, _RIGHT = ' style="text-align: left"', ' style="text-align: right"'


def cell_text(value: Any) -> str:
    """A value as the text of a cell. Text that a reader could not see or tell apart is quoted, as by `repr`.

    >>> cell_text("flu"), cell_text(" flu"), cell_text(("north", 2024))
    ('flu', "' flu'", 'north, 2024')
    """
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
    """A table with a line of heads. Of more than 200 rows, it says how many are left out.

    Args:
        heads: the heads of the columns.
        rows: the cells of each row.
        caption: a title above the table.
        spans: heads above the heads, each with the number of its columns.
        is_numeric: whether all columns except the first have numbers, which are aligned on the right.

    Returns:
        The HTML, with every text escaped.

    >>> table(["who"], [["<b>"]])
    '<table><thead><tr><th scope="col" style="text-align: left">who</th></tr></thead>\
<tbody><tr><td style="text-align: left">&lt;b&gt;</td></tr></tbody></table>'
    """
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
    """A table of names and values, one row for each.

    >>> facts({"spent": "epsilon 0.1"})
    '<table><tbody><tr><th scope="row" style="text-align: left">spent</th>\
<td style="text-align: left">epsilon 0.1</td></tr></tbody></table>'
    """
    rows = [
        [f'<th scope="row"{_LEFT}>{_line(name)}</th>', f"<td{_LEFT}>{_cell(value)}</td>"]
        for name, value in named.items()
    ]
    return f"<table>{_caption(caption)}<tbody>{''.join(map(_row, rows))}</tbody></table>"


def paragraph(text: str) -> str:
    """A sentence or several, of any length.

    >>> paragraph("1 < 2")
    '<p>1 &lt; 2</p>'
    """
    return f"<p>{escape(text)}</p>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: Any) -> str:
    return escape(cell_text(value))


def _line(text: str) -> str:
    """A title of ours, which may have line breaks for the command line."""
    return escape(" ".join(text.split()))


def _caption(text: str) -> str:
    return f'<caption style="caption-side: top; text-align: left">{_line(text)}</caption>' if text else ""
