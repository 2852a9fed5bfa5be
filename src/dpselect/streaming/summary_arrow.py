"""Write summaries as Arrow record batches of one row, exactly, and read them back.

All columns are text: Arrow has no unbounded integers. Integers are written in hexadecimal, which takes linear time
and has no limit on digits. The schema is the same for every summary, so many batches can be stacked into one table.
The row holds the secrets of the summary: treat it like the data.
"""

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._messages import install_command
from dpselect._numbers import LONGEST
from dpselect._validate import attempted, withheld
from dpselect.errors import InvalidType, InvalidValue, MissingExtra
from dpselect.mechanisms.parameters import MECHANISMS, Parameters
from dpselect.selection.arrivals import DEPTH, Arrival
from dpselect.streaming.labels import Unlabelled
from dpselect.streaming.part import Part

if TYPE_CHECKING:
    import pyarrow as pa

PUBLIC = ("epsilon", "sensitivity", "monotonic", "score_range", "steady")
SECRET = ("maximum", "exponent", "heads", "prefix", "depth", "head", "candidates", "label_kind", "label")
COLUMNS = (*PUBLIC, *SECRET)

Cells = dict[str, str | None]

_NO_SUMMARY = "the row is not a summary: give a batch from Summary.to_arrow"
# What follows a backslash in the texts of `ascii`.
_ESCAPE = re.compile(r"\\(x..|u....|U........|.)", re.DOTALL)
_MOMENT = re.compile(r"(?:datetime64|timedelta64)(?:\[[0-9]{0,10}[a-zA-Z]+\])?", re.ASCII)


def _integer(text: str) -> int:
    number = int(text, 16)
    if f"{number:x}" != text:  # int also accepts 1_0 and digits of other scripts
        raise ValueError
    return number


def _quotient(number: Fraction) -> str:
    return f"{number.numerator:x}/{number.denominator:x}"


def _fraction(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(_integer(numerator), _integer(denominator))


def _number(text: str) -> Fraction:
    """A parameter or a score of limited length."""
    if len(text) > LONGEST:
        raise ValueError
    return _fraction(text)


def _flag(text: str) -> bool:
    return {"True": True, "False": False}[text]


def _text(written: str) -> str:
    """The text that `ascii` wrote. What it did not write need not be refused here: `_read` writes the label again.

    Python's own reader would parse any expression, in memory and depth that the length of a text does not bound.
    """
    return _ESCAPE.sub(_unescaped, written[1:-1])


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else {"n": "\n", "r": "\r", "t": "\t"}.get(code, code)


def _bytes(written: str) -> bytes:
    return _text(written[1:]).encode("latin-1")


def _counted(moment: Any) -> str:
    """A NumPy datetime or timedelta: its type with the unit, and the number of units."""
    return f"{moment.dtype.name} {int(moment.view(np.int64)):x}"


def _moment(text: str) -> Any:
    name, count = text.split(" ")
    if not _MOMENT.fullmatch(name):  # NumPy would parse the description of any type
        raise ValueError
    return np.array([_integer(count)], np.int64).view(name)[0]


# How labels are written and read, by exact type: the types of `labels.WRITABLE`.
_LABELS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    type(None): (str, {"None": None}.__getitem__),
    bool: (str, _flag),
    str: (ascii, _text),  # ascii escapes what UTF-8 cannot encode
    bytes: (ascii, _bytes),
    int: (lambda label: f"{label:x}", _integer),
    float: (float.hex, float.fromhex),
    Fraction: (_quotient, _fraction),
    Decimal: (str, Decimal),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    **dict.fromkeys((np.datetime64, np.timedelta64), (_counted, _moment)),
}
_TYPE = {type_.__name__: type_ for type_ in _LABELS}


_PARAMETERS: dict[str, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    **dict.fromkeys(PUBLIC, (_quotient, _number)),
    **dict.fromkeys(("monotonic", "steady"), (str, _flag)),
}


def cells_of(mechanism: Parameters, part: Part | None, steady: bool) -> Cells:
    """The cells of a summary's row."""
    stated = {"epsilon": mechanism.epsilon, **mechanism.claim.arguments(), "steady": steady}
    public: Cells = {name: _PARAMETERS[name][0](stated[name]) if name in stated else None for name in PUBLIC}
    if part is None:
        return {**public, **dict.fromkeys(SECRET)}
    arrival, (kind, label) = part.arrival, _written(part)
    counts = {"heads": arrival.size, "prefix": arrival.prefix, "depth": arrival.depth}
    counts |= {"head": part.head, "candidates": part.candidates}
    written: Cells = {name: f"{count:x}" for name, count in counts.items()}
    numbers = {"maximum": _quotient(part.maximum), "exponent": _quotient(arrival.exponent)}
    return {**public, **written, **numbers, "label_kind": kind, "label": label}


def read_cells(cells: Cells) -> tuple[Parameters, Part | None, bool]:
    """The mechanism, the part and the option `steady` of the summary with these cells."""
    found = attempted(lambda: _summary(cells))  # an error may quote a cell
    if found is None:
        raise InvalidValue(_NO_SUMMARY)
    return found


def _summary(cells: Cells) -> tuple[Parameters, Part | None, bool]:
    stated = {name: _PARAMETERS[name][1](text) for name in PUBLIC if (text := cells[name]) is not None}
    steady = stated.pop("steady")
    return MECHANISMS["permute-and-flip"](**stated), None if cells["exponent"] is None else _part(cells), steady


def record_batch(cells: Cells) -> "pa.RecordBatch":
    """A record batch of one row."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and a summary that is not written needs no Arrow
    except ImportError:
        raise MissingExtra(f"to_arrow needs PyArrow: {install_command('pyarrow')}") from None
    return pa.record_batch([pa.array([cells[name]], pa.string()) for name in COLUMNS], list(COLUMNS))


def cells_of_batch(batch: Any) -> Cells:
    """The cells of a record batch (or table) of one row."""
    if not (hasattr(batch, "to_pylist") and hasattr(batch, "num_rows")):
        raise InvalidType(f"batch must be an Arrow record batch or table, got {type(batch).__name__}")
    if batch.num_rows != 1:
        raise InvalidValue("batch must have one row, like that of Summary.to_arrow: slice it, and merge the summaries")
    cells: Cells = withheld(lambda: batch.to_pylist()[0], InvalidValue(_NO_SUMMARY))  # Arrow does not check its bytes
    return cells


def _part(cells: Cells) -> Part:
    heads, prefix, depth, head, candidates = (
        _integer(cells[name] or "") for name in ("heads", "prefix", "depth", "head", "candidates")
    )
    if not (DEPTH <= depth <= LONGEST and 0 <= prefix < 1 << depth):
        raise ValueError
    if not (0 < heads <= candidates and 0 <= head < candidates):
        raise ValueError
    label = _read(cells["label_kind"], cells["label"] or "")
    maximum, exponent = (_number(cells[name] or "") for name in ("maximum", "exponent"))
    return Part(Arrival(exponent, heads, prefix, depth), maximum, head, label, candidates)


def _written(part: Part) -> tuple[str | None, str | None]:
    """The kind and the text of the label. Refused for all labels or none: an error reveals nothing about the head."""
    if not part.writable:
        raise InvalidType(
            "all labels must be text, numbers, dates or bytes to be written to Arrow:"
            " give such labels (dates of pandas as a NumPy array), or pickle the summary"
        )
    if part.label is Unlabelled.POSITION:
        return None, None
    return type(part.label).__name__, _LABELS[type(part.label)][0](part.label)


def _read(kind: str | None, text: str) -> Any:
    """The label of this kind with this text; refused unless it is written as exactly this text."""
    if kind is None:
        return Unlabelled.POSITION
    write, read = _LABELS[_TYPE[kind]]
    label = read(text)
    if type(label) is not _TYPE[kind] or write(label) != text:
        raise ValueError
    return label
