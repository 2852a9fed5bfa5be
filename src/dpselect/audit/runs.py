"""How often each outcome comes up when a callable is run on a score vector."""

from collections import Counter
from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np

from dpselect.audit.bound import Counts
from dpselect.errors import InvalidType, InvalidValue

Sampler = Callable[[Any, int], Counts]  # scores, runs -> how often each outcome came up

_CELLS = 2**19
_CHUNK = 1_000


def sampler_of(f: Any) -> Sampler:
    """What runs `f`: in batches where it is a mechanism with `select_rows`, else call by call."""
    if callable(getattr(f, "select_rows", None)):
        return lambda scores, runs: _in_rows(f.select_rows, scores, runs)
    if callable(f):
        return lambda scores, runs: _one_by_one(f, scores, runs)
    raise InvalidType(f"f must be a callable f(scores) -> index or a mechanism, got {type(f).__name__}")


def chunk_of(f: Any, size: int) -> int:
    """How many runs to make between two looks at the progress bar."""
    return max(1, _CELLS // size) if hasattr(f, "select_rows") else _CHUNK


def _one_by_one(f: Callable[[Any], Any], scores: Any, runs: int) -> Counts:
    """An exception is an outcome as well: whoever sees it learns from it. Each run gets its own copy of the scores."""
    counts: Counts = Counter()
    for _ in range(runs):
        try:
            selected = f(copy(scores))
        except Exception as error:
            counts[type(error).__name__] += 1
        else:
            counts[_index(selected, len(scores))] += 1
    return counts


def _in_rows(select_rows: Callable[[Any], Any], scores: Any, runs: int) -> Counts:
    """An exception cannot be counted here: it hides the other rows' outcomes, and to try again would bend them."""
    rows = np.broadcast_to(scores, (runs, len(scores))) if isinstance(scores, np.ndarray) else [scores] * runs
    found, failure = None, ""
    try:
        found = select_rows(rows)
    except Exception as error:  # what it says may quote the scores
        failure = type(error).__name__
    if failure:
        raise InvalidValue(f"select_rows failed, with {failure}: give f.select, whose exceptions are counted")
    selected, often = np.unique(np.asarray(found), return_counts=True)
    return Counter({_index(index, len(scores)): count for index, count in zip(selected, often.tolist(), strict=True)})


def _index(selected: Any, size: int) -> int:
    if isinstance(selected, (bool, np.bool_)) or not isinstance(selected, Integral):
        raise InvalidType(f"f must return the index of a candidate, got {type(selected).__name__}")
    index = int(selected)
    if not 0 <= index < size:
        raise InvalidValue(f"f must return an index from 0 to {size - 1} for {size} candidates, got {index}")
    return index
