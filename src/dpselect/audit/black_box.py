"""How often each outcome comes up when a callable is run on an input.

Run a mechanism on neighbours and bound its epsilon from below, as Ding et al. (2018) did for epsilon-DP.

Half of the runs choose, for each pair of neighbours, the event that differs most between them. The other half tests
that event and no other, so that there is one test for each pair, and their doubts add up (Bonferroni).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._types import Number
from dpselect._validate import withheld
from dpselect.audit.bound import Counts, Samples, chosen_event
from dpselect.audit.findings import Audit, Finding
from dpselect.audit.hard_pairs import hard_pairs
from dpselect.audit.learning import learned_views
from dpselect.audit.neighbours import InputPair, Pair, checked_inputs, checked_pairs
from dpselect.audit.outputs import Raised, in_order, is_new_object, outcome_of, plain
from dpselect.audit.views import WHOLE
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import Claim, stated

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


Watch = Callable[[float], None]

DEFAULT_RUNS = 10_000
DEFAULT_FALSE_ALARM = 1e-6
_LEAST_RUNS = 100


def audit(  # noqa: PLR0913 - the claim, and how hard to try
    f: Any,
    epsilon: Number,
    *,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    score_range: Number | None = None,
    pairs: Iterable[Any] | None = None,
    inputs: Any = None,
    runs: int = DEFAULT_RUNS,
    false_alarm: Number = DEFAULT_FALSE_ALARM,
    watch: Watch | None = None,
) -> Audit:
    """Try to show that `f` is not epsilon-differentially private.

    Give it public or synthetic scores and inputs only: what it finds is derived from them.

    Args:
        f: any callable f(scores), or f(data) with `inputs`, or a mechanism with `select_rows`, which is run in batches.
            Its output is an index or anything else that is hashable, or a list, set, dict, dataclass or NumPy array of
            such things. Its runs must be independent of each other. An exception of a callable counts as an outcome.
        epsilon: what f promises.
        sensitivity: by how much one person can change any single score; 1 if not given.
        monotonic: whether one person moves all scores in the same direction.
        score_range: instead of both, by how much one person can change any difference of two scores.
        pairs: neighbouring vectors (scores, neighbour); default: `hard_pairs`.
        inputs: instead of scores, neighbouring inputs of any kind: a list of tuples (data, neighbour), or a dict of
            them by name. That they are neighbours is for you to know. Each run gets a shallow copy.
        runs: runs on each of the two neighbours of each pair.
        false_alarm: how likely a private f may be called a violator.
        watch: is called with the part of the work that is done, from 0 to 1.

    Returns:
        The lower bounds of epsilon, one for each pair, with the events that they rest on.

    Raises:
        InvalidType: f is not callable, or returns something without a hash; or an argument has a wrong type.
        InvalidValue: an argument is out of range, a pair of vectors is not one of neighbours, or f fails in every run.

    >>> import numpy
    >>> audit(lambda scores: int(numpy.argmax(scores)), epsilon=1, runs=1000)
    Audit(violates epsilon = 1: it is at least 3.329 on the pair 'ties')
    >>> audit(lambda scores: 0, epsilon=1, runs=1000)
    Audit(no violation found in 44,000 runs)

    Inputs of any kind, and an output that is a number:

    >>> mean = lambda ages: sum(ages) / len(ages)
    >>> found = audit(mean, epsilon=1, inputs={"one person left": ([30, 40, 50], [30, 40])}, runs=1000)
    >>> found
    Audit(violates epsilon = 1: it is at least 3.525 on the pair 'one person left')
    >>> found.worst.description
    'the output is 40.0'
    """
    promised = _validate.exact_positive(epsilon=epsilon)
    claim = _claim(inputs, pairs, sensitivity, monotonic, score_range)
    doubt = _validate.fraction_of_one(false_alarm=false_alarm)
    each = _runs(runs)
    checked = _neighbours(promised, claim, pairs, inputs)
    total = 2 * each * len(checked)
    sampler = _watched(f, total, watch)
    too_deep = InvalidValue("f must not return what is nested too deeply: return fewer levels")
    findings = withheld(
        lambda: tuple(_finding(pair, sampler, each, doubt / len(checked)) for pair in checked),
        too_deep,
        RecursionError,  # not of f, whose exceptions are outcomes
    )
    if sum(finding.failures for finding in findings) == total:
        raise InvalidValue(f"f failed in every run, with {_first_error(f, checked[0])}: {_SIGNATURE[claim is None]}")
    return Audit(promised, claim, doubt, total, findings)


_SIGNATURE = (
    "give a callable f(scores); scores is a NumPy array, or a list where no array holds them",
    "give a callable f(data) that takes the inputs as you gave them",
)


def _claim(
    inputs: Any, pairs: Any, sensitivity: Number | None, monotonic: bool, score_range: Number | None
) -> Claim | None:
    """What is claimed of scores; nothing where inputs are given."""
    claim = stated(sensitivity, monotonic, score_range)
    if inputs is None:
        return claim
    if not (pairs is None and sensitivity is None and score_range is None and not monotonic):
        raise InvalidValue("inputs are no scores: leave out pairs, sensitivity, monotonic and score_range")
    return None


def _neighbours(
    epsilon: Fraction, claim: Claim | None, pairs: Iterable[Any] | None, inputs: Any
) -> Sequence[Pair | InputPair]:
    if claim is None:
        return checked_inputs(inputs)
    return checked_pairs(hard_pairs(epsilon, **claim.arguments()) if pairs is None else pairs, claim)


def _first_error(f: Any, pair: Pair | InputPair) -> str:
    """The name of what f raises; what it says may quote the scores."""
    try:
        f(own_copy(pair.both[0]))
    except Exception as error:
        return type(error).__name__
    return "different errors"


def _finding(pair: Pair | InputPair, sampler: Sampler, runs: int, doubt: float) -> Finding:
    """Choose an event on one half of the runs, and test it on the other half."""
    here, there = pair.both
    parts = (runs // 4, runs // 2 - runs // 4, runs - runs // 2)
    ranking, choosing, testing = (Samples(sampler(here, n), sampler(there, n), n) for n in parts)
    _check_comparable(ranking.here)
    views = learned_views(ranking.here, ranking.there)
    event = chosen_event(ranking, choosing, doubt, pair.risers(), views)
    bound = max(0.0, testing.bound(event, doubt))
    outputs = tuple(map(plain, in_order(event.outcomes))) if event.view is WHOLE else ()
    failures = sum(_failures(part.here) + _failures(part.there) for part in (ranking, choosing, testing))
    return Finding(
        pair.name, bound, outputs, event.is_reversed, *testing.hits(event), testing.trials, failures, str(event)
    )


def _check_comparable(counts: Counts) -> None:
    """Refuse outputs that are all new objects, equal to nothing else: no event could be counted."""
    if len(counts) == counts.total() and all(map(is_new_object, counts)):
        kind = type(plain(next(iter(counts)))).__name__
        raise InvalidType(f"f returns a new {kind} in each run, equal to no other: return its value instead")


def _failures(counts: Counts) -> int:
    return sum(often for outcome, often in counts.items() if isinstance(outcome, Raised))


def _watched(f: Any, total: int, watch: Watch | None) -> Sampler:
    """Sample in chunks, and report how much is done after each."""
    sampler, done = sampler_of(f), 0

    def sample(given: Any, runs: int) -> Counts:
        nonlocal done
        counts: Counts = Counter()
        for part in _parts(runs, chunk_of(f, given)):
            counts.update(sampler(given, part))
            done += part
            if watch is not None:
                watch(done / total)
        return counts

    return sample


def _parts(runs: int, size: int) -> Iterator[int]:
    while runs > 0:
        yield min(size, runs)
        runs -= size


def _runs(runs: Any) -> int:
    if _validate.count(runs=runs) < _LEAST_RUNS:
        raise InvalidValue(f"runs must be >= {_LEAST_RUNS}, got {runs}: fewer can show nothing")
    return int(runs)
