"""Labels of candidates, and their exact text. Only the drawn label is read; nothing else may depend on which it was.

So the labels of a block are checked before anything is drawn, and reading one never fails: a timestamp that Python's
datetime cannot hold exactly is returned as NumPy's. Whether an Arrow row can hold the labels is decided for the whole
block, too, by the types of its labels; an unknown type does not fit.

Integers are written in hexadecimal, which takes linear time and has no limit on digits.
"""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._numbers import LONGEST
from dpselect.errors import InvalidType, InvalidValue

# These exact types: a subclass would not come back as the same type.
WRITABLE = frozenset(
    {type(None), str, bool, int, float, Fraction, Decimal, datetime.datetime, datetime.date, bytes}
    | {np.datetime64, np.timedelta64}
)
_ARROW_WRITABLE = (
    *("null", "boolean", "integer", "floating", "decimal", "date", "timestamp", "string", "large_string"),
    *("string_view", "binary", "large_binary", "binary_view", "fixed_size_binary"),
)
_NOT_ARROW = ("Object", "Int128", "UInt128")  # polars types that Arrow lacks
_KINDS = "give a list, NumPy array of one dimension, pandas or polars Series or Arrow array, one label per candidate"


class Unlabelled(Enum):
    """The label of a candidate without a label. It is not None, which may be a label, and it survives pickling."""

    POSITION = "position"


@dataclass(frozen=True, repr=False)
class Labels:
    """The labels of a block: `at` reads one by position, `writable` says whether an Arrow row can hold them all."""

    at: Callable[[int], Any]
    writable: bool


_UNLABELLED = Labels(lambda _: Unlabelled.POSITION, writable=True)


def labels_of(labels: Any, size: int) -> Labels:
    """The labels of a block of this many candidates. Without labels, each candidate is labelled with its position."""
    if labels is None:
        return _UNLABELLED
    read = _labels(labels)
    if len(labels) != size:
        raise InvalidValue("labels must be as long as scores: give one label for each candidate")
    return read


def _labels(labels: Any) -> Labels:
    if isinstance(labels, range):
        return Labels(labels.__getitem__, writable=True)
    if isinstance(labels, (list, tuple)):
        return Labels(lambda position: _python(labels[position]), _all_writable(labels))
    if isinstance(labels, np.ndarray):
        return _from_array(labels)
    if _is(labels, "pandas", "Index"):
        labels = labels.to_series()
    if _is(labels, "pandas", "Series"):
        return Labels(lambda position: _python(labels.array[position]), _pandas_writable(labels))
    if _is(labels, "polars", "Series"):
        return _labels(labels.to_list() if str(labels.dtype) in _NOT_ARROW else labels.to_arrow())
    if _is(labels, "pyarrow", "Array") or _is(labels, "pyarrow", "ChunkedArray"):
        return Labels(lambda position: _from_arrow(labels[position]), _arrow_writable(labels.type))
    raise InvalidType(f"labels must be a sequence of labels, got {type(labels).__name__}: {_KINDS}")


def _is(labels: Any, package: str, name: str) -> bool:
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in type(labels).__mro__)


def _python(label: Any) -> Any:
    # A label that outlives its block. NumPy scalars become Python's, except timestamps, which may be finer.
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        return label.item()
    return None if _is_missing(type(label)) else label


def _is_missing(type_: type) -> bool:
    # Whether this is the type of pandas' NA, which becomes None as a label.
    return type_.__name__ == "NAType"


def _all_writable(labels: Any) -> bool:
    return all(
        t in WRITABLE or _is_missing(t) or (np.generic in t.__mro__ and _dtype_writable(np.dtype(t)))
        for t in set(map(type, labels))
    )


def _dtype_writable(dtype: np.dtype[Any]) -> bool:
    # Whether all scalars of a type are writable. A float wider than Python's has no Python value.
    return dtype.kind in "biuSUmM" or (dtype.kind == "f" and dtype.itemsize <= 8)


def _from_array(labels: Any) -> Labels:
    if labels.ndim != 1:
        raise InvalidType(f"labels must be one-dimensional, got {labels.ndim} dimensions: {_KINDS}")
    writable = _all_writable(labels) if labels.dtype.kind in "OT" else _dtype_writable(labels.dtype)
    hidden = np.ma.getmask(labels)
    if hidden is np.ma.nomask:
        return Labels(lambda position: _python(labels[position]), writable)
    return Labels(lambda position: None if hidden[position] else _python(labels.data[position]), writable)


def _pandas_writable(labels: Any) -> bool:
    # Whether these types are writable. A Timestamp is not: its time zone and unit would be lost.
    dtype = labels.dtype
    if str(dtype) == "category":
        return _pandas_writable(dtype.categories)
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        return _all_writable(labels.array)
    texts = ("str", "string", "string[pyarrow]", "large_string[pyarrow]")
    return str(dtype) in texts or (dtype.kind in "biuf" and getattr(dtype, "itemsize", 8) <= 8)


def _arrow_writable(type_: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - an array of Arrow comes with it

    if pa.types.is_dictionary(type_):
        return _arrow_writable(type_.value_type)
    if pa.types.is_timestamp(type_) and type_.unit == "ns" and type_.tz is not None:
        return False  # a pandas Timestamp
    return any(getattr(pa.types, f"is_{name}")(type_) for name in _ARROW_WRITABLE)


def _from_arrow(scalar: Any) -> Any:
    # The exact value: a NumPy timestamp if Python's cannot hold it, and the raw bytes of a text that is not UTF-8.
    import pyarrow as pa  # noqa: PLC0415 - only for Arrow

    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(scalar.type):
        return _from_arrow(scalar.value)
    if getattr(scalar.type, "unit", "") == "ns" and getattr(scalar.type, "tz", None) is None:
        return _moment(scalar)
    try:
        return _python(scalar.as_py())
    except Exception:  # an error would reveal what was drawn
        if pa.types.is_temporal(scalar.type):
            return _moment(scalar)
        return scalar.as_buffer().to_pybytes() if hasattr(scalar, "as_buffer") else scalar


def _moment(scalar: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - only for Arrow

    unit: Any = getattr(scalar.type, "unit", "D" if pa.types.is_date32(scalar.type) else "ms")
    since_epoch = pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type)
    return np.datetime64(scalar.value, unit) if since_epoch else np.timedelta64(scalar.value, unit)


# Their text.

# What follows a backslash in the texts of `ascii`.
_ESCAPE = re.compile(r"\\(x..|u....|U........|.)", re.DOTALL)
_MOMENT = re.compile(r"(?:datetime64|timedelta64)(?:\[[0-9]{0,10}[a-zA-Z]+\])?", re.ASCII)


def integer(text: str) -> int:
    """The integer that was written in hexadecimal."""
    number = int(text, 16)
    if f"{number:x}" != text:  # int also accepts 1_0 and digits of other scripts
        raise ValueError
    return number


def quotient(number: Fraction) -> str:
    """The text of a fraction."""
    return f"{number.numerator:x}/{number.denominator:x}"


def _fraction(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(integer(numerator), integer(denominator))


def number(text: str) -> Fraction:
    """A parameter or a score of limited length."""
    if len(text) > LONGEST:
        raise ValueError
    return _fraction(text)


def flag(text: str) -> bool:
    """True or False, from its text."""
    return {"True": True, "False": False}[text]


def _text(written: str) -> str:
    # The text that `ascii` wrote. What it did not write need not be refused here: `_read` writes the label again.
    # Python's own reader would parse any expression, in memory and depth that the length of a text does not bound.
    return _ESCAPE.sub(_unescaped, written[1:-1])


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else {"n": "\n", "r": "\r", "t": "\t"}.get(code, code)


def _bytes(written: str) -> bytes:
    return _text(written[1:]).encode("latin-1")


def _counted(moment: Any) -> str:
    return f"{moment.dtype.name} {int(moment.view(np.int64)):x}"


def _moment_of(text: str) -> Any:
    name, count = text.split(" ")
    if not _MOMENT.fullmatch(name):  # NumPy would parse the description of any type
        raise ValueError
    return np.array([integer(count)], np.int64).view(name)[0]


# How labels are written and read, by exact type: the types of `labels.WRITABLE`.
_LABELS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    type(None): (str, {"None": None}.__getitem__),
    bool: (str, flag),
    str: (ascii, _text),  # ascii escapes what UTF-8 cannot encode
    bytes: (ascii, _bytes),
    int: (lambda label: f"{label:x}", integer),
    float: (float.hex, float.fromhex),
    Fraction: (quotient, _fraction),
    Decimal: (str, Decimal),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    **dict.fromkeys((np.datetime64, np.timedelta64), (_counted, _moment_of)),
}
_TYPE = {type_.__name__: type_ for type_ in _LABELS}


def written_label(label: Any) -> tuple[str | None, str | None]:
    """The kind and the text of a label whose type is writable."""
    if label is Unlabelled.POSITION:
        return None, None
    return type(label).__name__, _LABELS[type(label)][0](label)


def read_label(kind: str | None, text: str) -> Any:
    """The label of this kind with this text; refused unless it is written as exactly this text."""
    if kind is None:
        return Unlabelled.POSITION
    write, read = _LABELS[_TYPE[kind]]
    label = read(text)
    if type(label) is not _TYPE[kind] or write(label) != text:
        raise ValueError
    return label
