"""Labels of candidates: one of a block is read when it is drawn, and nothing but that label depends on what was drawn.

So labels are checked as a whole before anything is drawn, and reading one never fails: a moment that Python's datetime
cannot hold exactly is given as NumPy's. Whether a row of Arrow can hold the labels is decided for all of a block too,
by their types; a type that is not known to fit does not.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import countOf
from typing import Any

import numpy as np

from dpselect.errors import InvalidType, InvalidValue

# The very types, as a subclass would not come back as it was.
WRITABLE = frozenset(
    {type(None), str, bool, int, float, Fraction, Decimal, datetime.datetime, datetime.date, bytes}
    | {np.datetime64, np.timedelta64}
)
_POLARS_WRITABLE = ("String", "Boolean", "Int", "UInt", "Float", "Decimal", "Date", "Binary", "Categorical", "Enum")
_ARROW_WRITABLE = (
    *("null", "boolean", "integer", "floating", "decimal", "date", "string", "large_string", "string_view"),
    *("binary", "large_binary", "binary_view", "fixed_size_binary"),
)
_KINDS = "give a list, NumPy array of one dimension, pandas or polars Series or Arrow array, a label for each candidate"


class Unlabelled(Enum):
    """What stands for the label of a candidate that has none. A label may be None, and this survives a pickle."""

    POSITION = "position"


@dataclass(frozen=True, repr=False)
class Labels:
    """The labels of a block: `at` reads one by position, `writable` tells whether a row of Arrow can hold them all."""

    at: Callable[[int], Any]
    writable: bool


def labels_of(labels: Any, size: int) -> Labels:
    """The labels of a block of so many candidates; without labels, each has its position."""
    if labels is None:
        return Labels(lambda _: Unlabelled.POSITION, writable=True)
    read = _labels(labels)
    if len(labels) != size:
        raise InvalidValue("labels must be as many as scores: give one label for each candidate")
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
        return Labels(lambda position: _python(labels.iloc[position]), _pandas_writable(labels))
    if _is(labels, "polars", "Series"):
        return Labels(lambda position: _from_polars(labels, position), _polars_writable(labels.dtype))
    if _is(labels, "pyarrow", "Array") or _is(labels, "pyarrow", "ChunkedArray"):
        return Labels(lambda position: _from_arrow(labels[position]), _arrow_writable(labels.type))
    raise InvalidType(f"labels must be a sequence of labels, got {type(labels).__name__}: {_KINDS}")


def _is(labels: Any, package: str, name: str) -> bool:
    """Whether it is an instance of a class of a package that need not be installed."""
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in type(labels).__mro__)


def _python(label: Any) -> Any:
    """A label that outlives its block: NumPy's scalars as Python's, but moments as they are, which may be finer."""
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        return label.item()
    return None if _is_missing(type(label)) else label


def _all_writable(labels: Any) -> bool:
    return all(t in WRITABLE or _is_missing(t) or _scalar_writable(t) for t in _types(labels))


def _types(labels: Any) -> set[type]:
    """The types of the labels. Mostly there is one, and counting it is faster than collecting a set."""
    first = set(map(type, labels[:1]))
    if all(countOf(map(type, labels), type_) == len(labels) for type_ in first):
        return first
    return set(map(type, labels))


def _is_missing(type_: type) -> bool:
    """Whether it is the type of pandas' NA, which is None as a label."""
    return type_.__name__ == "NAType"


def _scalar_writable(type_: type) -> bool:
    return issubclass(type_, np.generic) and _dtype_writable(np.dtype(type_))


def _dtype_writable(dtype: np.dtype[Any]) -> bool:
    """Whether all scalars of a type are; a float wider than Python's has no Python value."""
    return dtype.kind in "biuSUmM" or (dtype.kind == "f" and dtype.itemsize <= 8)


def _from_array(labels: Any) -> Labels:
    if labels.ndim != 1:
        raise InvalidType(f"labels must be one-dimensional, got {labels.ndim} dimensions: {_KINDS}")
    writable = _all_writable(labels) if labels.dtype.kind in "OT" else _dtype_writable(labels.dtype)
    if isinstance(labels, np.ma.MaskedArray):
        plain, hidden = labels.data, np.ma.getmaskarray(labels)
        return Labels(lambda position: None if hidden[position] else _python(plain[position]), writable)
    return Labels(lambda position: _python(labels[position]), writable)


def _pandas_writable(series: Any) -> bool:
    """By type; a Timestamp is not, as its time zone and unit would be lost."""
    dtype = series.dtype
    if str(dtype) == "category":
        return _pandas_writable(series.cat.categories)
    if isinstance(dtype, np.dtype):
        return (
            _all_writable(series.to_numpy()) if dtype.kind == "O" else dtype.kind not in "mM" and _dtype_writable(dtype)
        )
    return str(dtype) in ("str", "string", "string[pyarrow]", "large_string[pyarrow]") or dtype.kind in "biuf"


def _polars_writable(dtype: Any) -> bool:
    name = str(dtype).partition("(")[0].rstrip("0123456789")
    return name in (*_POLARS_WRITABLE, "Datetime", "Null")


def _from_polars(series: Any, position: int) -> Any:
    """One value; moments from their count of units, as polars cuts nanoseconds and panics beyond the year 9999."""
    one, name = series.slice(position, 1), str(series.dtype).partition("(")[0]
    if name not in ("Date", "Datetime", "Duration", "Time") or one.null_count():
        return one[0]
    unit: Any = {"Date": "D", "Time": "ns"}.get(name) or series.dtype.time_unit
    count = one.to_physical()[0]
    exact: Any = np.datetime64(count, unit) if name.startswith("Date") else np.timedelta64(count, unit)
    in_python = isinstance(exact.item(), (datetime.date, datetime.timedelta))
    return one[0] if in_python else exact


def _arrow_writable(type_: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - whoever hands in an array has it

    if pa.types.is_dictionary(type_):
        return _arrow_writable(type_.value_type)
    if pa.types.is_timestamp(type_):
        return type_.unit != "ns" or type_.tz is None  # the others are Timestamps of pandas
    return any(getattr(pa.types, f"is_{name}")(type_) for name in _ARROW_WRITABLE)


def _from_arrow(scalar: Any) -> Any:
    """One value; exactly, and of a text that is none its bytes."""
    if getattr(scalar.type, "unit", "") == "ns" and getattr(scalar.type, "tz", None) is None and scalar.is_valid:
        return _moment(scalar)
    try:
        return _python(scalar.as_py())
    except Exception:  # which would tell what was drawn
        return _beyond_python(scalar)


def _beyond_python(scalar: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(scalar.type):
        return _from_arrow(scalar.value)
    if pa.types.is_temporal(scalar.type):
        return _moment(scalar)
    return scalar.as_buffer().to_pybytes() if hasattr(scalar, "as_buffer") else scalar


def _moment(scalar: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    unit: Any = getattr(scalar.type, "unit", "D" if pa.types.is_date32(scalar.type) else "ms")
    since_epoch = pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type)
    return np.datetime64(scalar.value, unit) if since_epoch else np.timedelta64(scalar.value, unit)
