"""How often each outcome comes up when a callable is run on an input."""

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from dpselect.audit.bound import Counts
from dpselect.audit.outputs import Raised, outcome_of
from dpselect.errors import InvalidType, InvalidValue, withheld

Sampler = Callable[[Any, int], Counts]  # input, runs -> how often each outcome came up

_CELLS = 2**19
_CHUNK = 100


def sampler_of(f: Any) -> Sampler:
    """What runs `f`: in batches where it is a mechanism with `select_rows`, else call by call."""
    if callable(getattr(f, "select_rows", None)):
        return lambda given, runs: _in_rows(f.select_rows, given, runs)
    if callable(f):
        return lambda given, runs: _one_by_one(f, given, runs)
    raise InvalidType(f"f must be a callable f(scores) or a mechanism, got {type(f).__name__}")


def chunk_of(f: Any, given: Any) -> int:
    """How many runs to make between two looks at the progress bar."""
    if not hasattr(f, "select_rows"):
        return _CHUNK
    cells = given.size if isinstance(given, np.ndarray) else len(given) if hasattr(given, "__len__") else 1
    return max(1, _CELLS // max(1, cells))


def own_copy(given: Any) -> Any:
    """A copy for one run; what cannot be copied, such as an open connection, is handed over itself."""
    try:
        return copy(given)
    except Exception:  # whatever its own code raises
        return given


def _one_by_one(f: Callable[[Any], Any], given: Any, runs: int) -> Counts:
    """An exception is an outcome as well: an observer of it learns from it. Each run gets its own copy of the input."""
    counts: Counts = Counter()
    for _ in range(runs):
        try:
            output = f(own_copy(given))
        except Exception as error:
            counts[Raised(type(error).__name__)] += 1
        else:
            counts[outcome_of(output)] += 1
    return counts


def _in_rows(select_rows: Callable[[Any], Any], given: Any, runs: int) -> Counts:
    """An exception cannot be counted here: it hides the other rows' outcomes, and to try again would bend them."""
    rows = np.broadcast_to(given, (runs, *given.shape)) if isinstance(given, np.ndarray) else [given] * runs
    found, failure = None, ""
    try:
        found = select_rows(rows)
    except Exception as error:  # what it says may quote the scores
        failure = type(error).__name__
    if failure:
        raise InvalidValue(f"select_rows failed, with {failure}: give f.select, whose exceptions are counted")
    counts = _counted(found)
    if counts.total() != runs:
        raise InvalidValue("select_rows must return one output for each row: return an array or a list of as many")
    return counts


def _counted(found: Any) -> Counts:
    """The outputs of many runs: an array's first axis, or anything to iterate over."""
    if isinstance(found, np.ndarray) and found.dtype.kind in "biu" and found.size:  # other types have -0.0 or NaN
        values, often = np.unique(found, axis=0, return_counts=True)
        return Counter(dict(zip(map(outcome_of, values.tolist()), often.tolist(), strict=True)))
    wrong = InvalidType(f"select_rows must return an array or a list, got {type(found).__name__}")
    outputs = withheld(lambda: list(found.tolist() if isinstance(found, np.ndarray) else found), wrong, TypeError)
    return Counter(map(outcome_of, outputs))
