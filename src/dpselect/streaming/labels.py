"""Labels of candidates. Only the drawn label is read, and nothing else may depend on which one it was.

So the labels of a block are checked before anything is drawn, and reading one never fails: a timestamp that Python's
datetime cannot hold exactly is returned as NumPy's. Whether an Arrow row can hold the labels is decided for the whole
block, too, by the types of its labels; an unknown type does not fit.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

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
    """Whether an object is an instance of a class from a package that may not be installed."""
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in type(labels).__mro__)


def _python(label: Any) -> Any:
    """A label that outlives its block. NumPy scalars become Python's, except timestamps, which may be finer."""
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        return label.item()
    return None if _is_missing(type(label)) else label


def _is_missing(type_: type) -> bool:
    """Whether this is the type of pandas' NA, which becomes None as a label."""
    return type_.__name__ == "NAType"


def _all_writable(labels: Any) -> bool:
    return all(
        t in WRITABLE or _is_missing(t) or (np.generic in t.__mro__ and _dtype_writable(np.dtype(t)))
        for t in set(map(type, labels))
    )


def _dtype_writable(dtype: np.dtype[Any]) -> bool:
    """Whether all scalars of a type are writable. A float wider than Python's has no Python value."""
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
    """Whether these types are writable. A Timestamp is not: its time zone and unit would be lost."""
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
    """The exact value: a NumPy timestamp if Python's cannot hold it, and the raw bytes of a text that is not UTF-8."""
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
