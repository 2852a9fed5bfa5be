"""Read scores at their exact values, never through a common type that rounds.

A vector of scores becomes a native NumPy array of integers or floats if one holds every score exactly, and a list
of Fractions otherwise. No message contains a score.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpselect._numbers import LONGEST, NotExact, NotFinite, TooLong, float_near, rational
from dpselect._types import Array, Vector
from dpselect._validate import EXACT_IN_FLOATS
from dpselect.errors import DPSelectError, InvalidType, InvalidValue

_Read = TypeVar("_Read")

_KINDS = "give a list, NumPy array, pandas or polars Series or Arrow array of ints, floats, Fractions or Decimals"
_FINITE_RULE = "scores must be finite numbers: drop or replace NaN, missing and infinite scores by a public rule first"
_LENGTH_RULE = "scores must not have thousands of digits: round them by a public rule first"
_FLOATS, _INTEGERS = np.dtype(np.float64), np.dtype(np.int64)
_LARGEST_INTEGER = 2**63 - 1


def not_finite() -> InvalidValue:
    """The error for NaN, infinite and missing scores."""
    return InvalidValue(_FINITE_RULE)


def as_vector(scores: Any) -> Vector:
    """The exact scores, one per candidate."""
    if (
        type(scores) is np.ndarray
        and (scores.dtype is _FLOATS or scores.dtype is _INTEGERS)
        and scores.ndim == 1
        and scores.size
    ):
        return scores  # nothing to convert, and no foreign code is called
    return _guarded(_vector, scores)


def as_rows(scores: Any) -> Array | list[Vector]:
    """A matrix with one selection per row: a native two-dimensional array, or a list of exact vectors."""
    return _guarded(_rows, scores)


def copied(vector: Vector) -> Vector:
    """A copy of the scores that nobody else can change. Lists of Fractions are already our own."""
    return np.array(vector) if isinstance(vector, np.ndarray) else vector


def _guarded(read: Callable[[Any], _Read], scores: Any) -> _Read:
    # A foreign message or its context might quote a score.
    try:
        return read(scores)
    except (DPSelectError, MemoryError):
        raise
    except Exception:  # noqa: S110 - raised below, without a context
        pass
    raise InvalidType(f"scores of type {type(scores).__name__} cannot be read: {_KINDS}")


def _vector(scores: Any) -> Vector:
    if isinstance(scores, np.ndarray):
        return _vector_from_array(scores)
    if isinstance(scores, (list, tuple, range)):
        return _vector_from_sequence(list(scores) if isinstance(scores, list) else scores)
    if hasattr(scores, "__array__") and not _is_frame(scores):
        return _vector_from_array(_array_of(scores))
    raise InvalidType(f"scores must be one-dimensional, got {type(scores).__name__}: {_KINDS}")


def _rows(scores: Any) -> Array | list[Vector]:
    if _is_frame(scores):
        return _rows_from_frame(scores)
    if isinstance(scores, (list, tuple)):
        return _rows_from_sequence(scores)
    if not hasattr(scores, "__array__"):
        raise InvalidType(f"scores must be two-dimensional, got {type(scores).__name__}: give one row per selection")
    array = _unmasked(scores if isinstance(scores, np.ndarray) else _array_of(scores))
    if array.ndim != 2:
        raise InvalidValue(f"scores must be two-dimensional, got {array.ndim}: use select for a single vector")
    if not array.shape[0]:
        return np.empty((0, 1))
    if not array.shape[1]:
        raise _empty()
    flat = _native(array)
    if isinstance(flat, np.ndarray):
        return flat
    return [as_vector(row.tolist()) for row in array]


def _rows_from_frame(frame: Any) -> Array | list[Vector]:
    # Column by column, because the frame's common type would round integers next to floats.
    if not frame.shape[0]:
        return np.empty((0, 1))
    columns = [as_vector(column) for column in _columns(frame)]
    stacked = _stacked(columns, axis=1)
    return [as_vector(list(row)) for row in zip(*map(_items, columns), strict=True)] if stacked is None else stacked


def _rows_from_sequence(scores: Sequence[Any]) -> Array | list[Vector]:
    rows = [as_vector(row) for row in scores]
    if len({len(row) for row in rows}) > 1:
        raise InvalidValue("scores must have rows of one length: give every selection the same candidates")
    if not rows:
        return np.empty((0, 1))
    stacked = _stacked(rows, axis=0)
    return rows if stacked is None else stacked


def _stacked(vectors: list[Vector], axis: int) -> Array | None:
    # None unless all are arrays of one type: a common type would round.
    arrays = [vector for vector in vectors if isinstance(vector, np.ndarray)]
    is_one_type = len(arrays) == len(vectors) and len({array.dtype for array in arrays}) == 1
    return np.stack(arrays, axis) if is_one_type else None


def _is_frame(scores: Any) -> bool:
    return hasattr(scores, "columns") and hasattr(scores, "shape")


def _columns(frame: Any) -> Iterable[Any]:
    if hasattr(frame, "get_columns"):
        return frame.get_columns()  # type: ignore[no-any-return]
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, i] for i in range(frame.shape[1])]
    return frame.columns  # type: ignore[no-any-return]


def _items(vector: Vector) -> Sequence[Any]:
    return vector.tolist() if isinstance(vector, np.ndarray) else vector


def _array_of(scores: Any) -> Array:
    if "decimal" in str(getattr(scores, "dtype", "")).lower() and hasattr(scores, "to_list"):
        return np.array(scores.to_list(), dtype=object)  # polars and pandas would round decimals to floats
    return np.asarray(scores)


def _unmasked(array: Array) -> Array:
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise not_finite()
        return array.data
    return array


def _vector_from_array(array: Array) -> Vector:
    array = _unmasked(array)
    if array.ndim != 1:
        raise InvalidValue(f"scores must be one-dimensional, got {array.ndim} dimensions: use select_rows for a matrix")
    if not array.size:
        raise _empty()
    native = _native(array)
    return native if isinstance(native, np.ndarray) else _vector_from_sequence(array.tolist())


def _native(array: Array) -> Array | None:
    # None if only Fractions hold the values exactly.
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        return array.astype(np.uint8)  # a view would read a True that is stored as 255 as 255
    if kind in "iu" or (kind == "f" and size <= 8):
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if kind in "fO":
        return None
    # Only the kind: the width of a text type reveals the length of the longest score.
    raise InvalidType(f"scores must be numbers, got an array of {array.dtype.type.__name__}: {_KINDS}")


def _vector_from_sequence(scores: Sequence[Any]) -> Vector:
    if not len(scores):
        raise _empty()
    types = set(map(type, scores))
    if types <= {float, np.float64}:
        return np.array(scores, dtype=np.float64)
    if all(issubclass(t, (Integral, np.bool_)) for t in types):
        return _vector_from_integers(list(map(int, scores)))
    exact = [_score(score) for score in scores]
    return np.array([float(score) for score in exact]) if all(map(_is_plain_float, exact)) else exact


def _vector_from_integers(scores: list[int]) -> Vector:
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(scores, dtype=dtype)
        except OverflowError:
            continue
    return list(map(_score, scores))


def as_lengths(lengths: Any, count: int) -> Array:
    """The number of candidates that share each of `count` scores. Secret: it may depend on the data."""
    # An array of uint64, or of Python's integers if one of them is longer.
    if type(lengths) is np.ndarray and lengths.dtype == np.uint64 and lengths.ndim == 1:
        return _checked_lengths(lengths.copy(), count)
    is_object = isinstance(lengths, np.ndarray) and lengths.dtype == object
    listed = list(lengths) if is_object or isinstance(lengths, (list, tuple)) else []
    # No class of others, whose operations could raise an error that quotes a length.
    if all(type(length) in (int, bool) or isinstance(length, np.integer) for length in listed):
        whole = [int(length) for length in listed]
        if max((length.bit_length() for length in whole), default=0) > LONGEST:
            raise InvalidValue("lengths must not have thousands of digits: give shorter ones")
        if max(whole, default=0) >= 2**64:
            return _checked_lengths(np.array(whole, object), count)
    return _lengths(lengths, count).astype(np.uint64, copy=False)


def _lengths(lengths: Any, count: int) -> Array:
    wrong_type = "lengths must be whole numbers: give the number of candidates of each run"
    try:
        vector = as_vector(lengths) if not hasattr(lengths, "__len__") or len(lengths) else np.empty(0, np.int64)
    except (InvalidType, InvalidValue):  # their messages are about scores
        raise InvalidType(wrong_type) from None
    vector = copied(vector)  # nobody may change it between the checks and its use
    if len(vector) == count and not (isinstance(vector, np.ndarray) and vector.dtype.kind in "iu"):
        raise InvalidType(wrong_type)
    return _checked_lengths(np.asarray(vector), count)


def _checked_lengths(vector: Array, count: int) -> Array:
    if len(vector) != count:
        raise InvalidValue("lengths must have one length for each score: give both the same number of entries")
    if vector.min() < 0 or not vector.any():
        raise InvalidValue("lengths must be >= 0 and not all zero: give the number of candidates of each run")
    return vector


def exact_scores(scores: Any) -> list[Fraction]:
    """The scores at their exact values; refuses what is not finite."""
    vector = as_vector(scores)
    losses(vector)  # refuses scores that are not finite
    return rationals(vector)


def rationals(vector: Vector) -> list[Fraction]:
    """The exact values of a vector of finite scores."""
    return [rational(score) for score in _items(vector)]


def losses(scores: Vector) -> npt.NDArray[np.float64]:
    """The distance of each score from the best in float64, rounded once; infinite beyond the largest float."""
    if isinstance(scores, list):
        best = max(scores)
        return np.array([float_near(best - score) for score in scores])
    best = np.maximum.reduce(scores)
    if scores.dtype.kind == "f":
        if not (math.isfinite(best) and math.isfinite(np.minimum.reduce(scores))):
            raise not_finite()
        with np.errstate(over="ignore"):
            rounded: npt.NDArray[np.float64] = np.subtract(best, scores, dtype=np.float64)
        return rounded
    wide = np.uint64 if scores.dtype.kind == "u" else np.int64
    whole: Array = np.subtract(wide(best), scores, dtype=wide).view(np.uint64)
    return whole.astype(np.float64)


def over_common_denominator(scores: list[Fraction]) -> tuple[Array, int] | None:
    """The scores as int64 over a common denominator, as for prices and other decimals; None if they do not fit."""
    denominator = 1
    for different in {score.denominator for score in scores}:
        denominator = math.lcm(denominator, different)
        if denominator >= _LARGEST_INTEGER:
            return None
    whole = [score.numerator * (denominator // score.denominator) for score in scores]
    if max(whole) > _LARGEST_INTEGER or min(whole) < -_LARGEST_INTEGER:
        return None
    return np.array(whole, dtype=np.int64), denominator


def _is_plain_float(score: Fraction) -> bool:
    denominator = score.denominator
    is_binary = denominator & (denominator - 1) == 0
    return is_binary and max(abs(score.numerator), denominator) <= EXACT_IN_FLOATS


def _score(score: Any) -> Fraction:
    try:
        return rational(score)
    except TooLong:
        raise InvalidValue(_LENGTH_RULE) from None
    except NotFinite:
        raise not_finite() from None
    except NotExact:
        if score is None or type(score).__name__ in ("NAType", "NaTType"):
            raise not_finite() from None
        if isinstance(score, (list, tuple, np.ndarray)):
            raise InvalidValue("scores must be one-dimensional: use select_rows for a matrix") from None
        raise InvalidType(f"scores must be numbers, got a {type(score).__name__}: {_KINDS}") from None


def _empty() -> InvalidValue:
    return InvalidValue("scores must have at least one candidate: there is nothing to choose from")
