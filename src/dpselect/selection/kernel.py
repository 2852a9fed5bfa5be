"""The passes over many numbers that C does faster than NumPy, where the install could compile them (`_kernel.c`).

Each function returns None if there is no compiled kernel, or if it does not take these arrays: then the caller does the
same in NumPy. The two agree for all numbers. The kernel draws no random bit and makes no decision that its error bound
leaves in doubt, so only speed depends on it. `DPSELECT_KERNEL=no` in the environment leaves it out.
"""

import importlib
import os
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._types import Array, Flags, Floats, Octets, Positions

# The version of `_kernel.c` that this file calls. An older module may be left in a clone that was not installed again.
_VERSION = 9


def loaded() -> ModuleType | None:
    # The compiled module, if there is one of this version and nobody asks to leave it out.
    if os.environ.get("DPSELECT_KERNEL") == "no":
        return None
    try:
        module = importlib.import_module("dpselect.selection._kernel")
    except ImportError:
        return None
    return module if getattr(module, "VERSION", None) == _VERSION else None


compiled: Any = loaded()

# The types that it takes, and whether they are integers.
_IS_WHOLE = {np.dtype(np.float64): False, np.dtype(np.int64): True}
_GAPS, _SCORES = {"u": 0, "f": 1}, 2
_WORD = np.dtype(np.uint32)
_MOST_ZEROS = 50  # so that skips are integers of 64 bits


class Hot(NamedTuple):
    """The positions of some candidates, and their scores. Secret."""

    positions: Positions
    scores: Array


def takes(values: Array) -> bool:
    """Return whether there is a kernel that takes these values."""
    return compiled is not None and values.dtype in _IS_WHOLE and _is_plain(values)


def _is_plain(values: npt.NDArray[Any]) -> bool:
    flags = values.flags
    return flags.c_contiguous and flags.aligned


def maxima(values: Array, width: int) -> tuple[Array, bool] | None:
    """The maximum of each `width` values (the last part may be shorter), and whether all values are finite."""
    if not takes(values):
        return None
    found = np.empty(-(-values.size // width), values.dtype)
    return found, compiled.maxima(_IS_WHOLE[values.dtype], values, width, found)


class Scan(NamedTuple):
    """What one pass over a vector finds. Secret."""

    maxima: Array  # of its parts
    is_finite: bool
    best: Any
    hot: Hot | None = None  # None if they are more than fit
    floor: Any = None  # which they reach


def scan(values: Array, width: int, best: Any, gap: Any, most: int) -> Scan | None:
    """The maxima of parts, the largest of them and of `best`, and the candidates within the gap of that."""
    # Their floor is the best minus the gap: not above that if they are floats, and in int64 if they are integers.
    if not takes(values):
        return None
    dtype = values.dtype
    found, positions, scores = (
        np.empty(-(-values.size // width), dtype),
        np.empty(most, np.int64),
        np.empty(most, dtype),
    )
    is_finite, ends, count = compiled.scan(_IS_WHOLE[dtype], values, width, best, gap, found, positions, scores)
    hot = None if count < 0 else Hot(positions[:count], scores[:count])
    return Scan(found, is_finite, ends[0], hot, ends[1])


def at_least(values: Array, width: int, floors: Array, most: int) -> Positions | None:
    """The positions of values that reach the floor of their part of `width` values."""
    # There is one floor for all parts, or one for each. None stands also for more positions than about `most`.
    if not takes(values):
        return None
    found = np.empty(most, np.int64)
    count = compiled.at_least(_IS_WHOLE[values.dtype], values, width, floors, found)
    return None if count < 0 else found[:count]


def exponents(values: Array, positions: Array, best: Array, width: int, rate: float) -> tuple[Floats, bool] | None:
    """The exponents rate * (best - value) at some positions, and whether none of them is negative or NaN."""
    # There is one best value for all, or one for each part of `width` values. The gap is rounded once if it is a float;
    # if it is an integer, once when it becomes a float; and the product is rounded once more.
    if not (values.size and takes(values) and positions.dtype == np.int64 and _is_plain(positions)):
        return None
    found = np.empty(positions.size)
    return found, compiled.exponents(_IS_WHOLE[values.dtype], values, positions, best, width, rate, found)


def gaps(values: Array, positions: Array, best: Array, width: int) -> Array | None:
    """The gaps best - value at some positions, as for `exponents`: floats, or uint64 modulo 2**64."""
    if not (takes(values) and positions.dtype == np.int64 and _is_plain(positions)):
        return None
    is_whole = _IS_WHOLE[values.dtype]
    found = np.empty(positions.size, np.uint64 if is_whole else np.float64)
    compiled.gaps(is_whole, values, positions, best, width, found)
    return found


class Left(NamedTuple):
    """Candidates whose coins are left to flip, their scores, and how many zeros each coin starts with. Secret."""

    positions: Positions
    scores: Array
    depths: Octets


def joined(  # noqa: PLR0913, PLR0917 - the values and their floors, and two lists of candidates
    values: Array, floors: Any, width: int, hot: Hot, survivors: Positions, zeros: Octets | int
) -> Left:
    """The hot candidates, and those survivors that are below the floor of their part, whose coins start with zeros."""
    # It takes the values. There is one floor for all parts of `width` values, or one for each, and the same number of
    # zeros for all survivors, or one for each.
    dtype, most = values.dtype, hot.positions.size + survivors.size
    left = np.empty(most, np.int64), np.empty(most, dtype), np.empty(most, np.uint8)
    lists = *hot, survivors, np.asarray(zeros, np.uint8)
    count = compiled.joined(_IS_WHOLE[dtype], values, np.asarray(floors, dtype), width, *lists, *left)
    return Left(left[0][:count], left[1][:count], left[2][:count])


def octets(levels: Array, near: Array, far: Array, drawn: Octets, **options: Any) -> tuple[Flags, Flags] | None:
    """The heads among some coins by their first octet, and those that it leaves open."""
    # A level is a gap, heads up to `near` and not tails up to `far` of the octet; or, with `scores`, it is a score,
    # heads from `near` on. Octets from `last` on leave a coin open that they would make heads.
    if compiled is None or not _is_plain(levels) or levels.dtype.itemsize != 8:
        return None
    found = np.empty(levels.size, np.uint8)
    kind = _SCORES if options.get("scores") else _GAPS[levels.dtype.kind]
    compiled.octets(kind, options.get("last", 256), levels, near, far, drawn, found)
    return _heads_and_open(found)


def table(gaps: Array, lines: Octets, drawn: Octets) -> tuple[Flags, Flags] | None:
    """The same for whole gaps: heads if the octet is below the line of the gap, and open if it is equal to it."""
    if compiled is None or not _is_plain(gaps):
        return None
    found = np.empty(gaps.size, np.uint8)
    compiled.table(gaps, lines, drawn, found)
    return _heads_and_open(found)


def _heads_and_open(found: Octets) -> tuple[Flags, Flags]:
    is_open = found > 1
    found &= 1
    return found.view(np.bool_), is_open


def skips(words: npt.NDArray[Any], zeros: int, margin: float) -> tuple[Positions, Positions] | None:
    """The skips of `Draws.skips` for some words, and the indices of those that are in doubt."""
    if compiled is None or words.dtype != _WORD or zeros > _MOST_ZEROS:
        return None
    found = np.empty(words.size, np.int64)
    if not compiled.skips(words, zeros, margin, found):
        return found, found[:0]
    return found, (found < 0).nonzero()[0]


def successes(words: npt.NDArray[Any], zeros: int, margin: float, last: int, trials: int) -> Positions | None:
    """The positions of the successes after `last`, below `trials`, that these words give; None if one is in doubt."""
    if compiled is None or words.dtype != _WORD or zeros > _MOST_ZEROS:
        return None
    found = np.empty(words.size, np.int64)
    count = compiled.successes(words, zeros, margin, last, trials, found)
    return None if count < 0 else found[:count]


def coins(  # noqa: PLR0913, PLR0917 - the arrays of the coins, and the bounds of their filter
    exponents: Floats,
    words: npt.NDArray[Any],
    prefixes: Octets | int,
    depths: Any,
    margin: float,
    slack: float,
    vanished: float,
) -> tuple[Flags, Positions] | None:
    """The heads among some coins of `Draws.finish`, and the indices of those that are in doubt, which are tails."""
    if compiled is None or words.dtype != _WORD:
        return None
    found = np.empty(words.size, np.uint8)
    known = np.asarray(prefixes, _WORD), np.asarray(depths, np.uint8)
    if not compiled.coins(exponents, words, *known, margin, slack, vanished, found):
        return found.view(np.bool_), _NONE
    doubtful = (found > 1).nonzero()[0]
    found[doubtful] = 0
    return found.view(np.bool_), doubtful


_NONE = np.empty(0, np.int64)
