"""Try to catch a mechanism, ours or yours, being less private than it claims.

An audit can prove that a promised epsilon is wrong. It can never prove that it is right.

`audit` runs any callable as a black box, in these stages:

1. `neighbours`: check that each pair of inputs is one that one person can turn into the other. `hard_pairs` supplies
   pairs of score vectors on which implementations are known to fail.
2. This file: run the callable many times on both inputs of a pair (Ding et al. 2018).
3. `outputs`: turn an output, or an exception, into a hashable outcome that can be counted.
4. `events`: from the first quarter of the runs, learn coarser views of outputs that rarely repeat, such as bins of
   numbers or parts of lists. From the second quarter, choose the event that differs most between the two inputs. From
   the other half, compute a lower confidence bound on epsilon from that event alone. So there is one test per pair, and
   the error probabilities of the tests add up (Bonferroni).
5. `findings`: report the bounds and the verdict.

`audit_pmf` compares the probabilities of a mechanism that computes them. There nothing is random; only floats add an
error.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._scores import exact_scores
from dpselect._show import progress
from dpselect._types import Number
from dpselect._validate import withheld
from dpselect.analysis.measures import HasProbabilities, check_privacy, search_neighbours
from dpselect.audit.events import WHOLE, Counts, Samples, chosen_event, learned_views
from dpselect.audit.findings import Audit, Finding, PmfAudit
from dpselect.audit.neighbours import Pair, checked_inputs, checked_pairs, hard_pairs
from dpselect.audit.outputs import Raised, in_order, is_new_object, outcome_of, plain
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import Claim, claim_of, stated

__all__ = ["Audit", "Finding", "Pair", "PmfAudit", "audit", "audit_pmf", "hard_pairs"]

Sampler = Callable[[Any, int], Counts]  # (input, runs) -> how often each outcome occurred
Watch = Callable[[float], None]

DEFAULT_RUNS = 10_000
DEFAULT_FALSE_ALARM = 1e-6
_LEAST_RUNS = 100
# Our probabilities have a relative error of at most 1e-12, which moves a log-ratio by at most 2e-12. Probabilities from
# elsewhere may be less accurate.
DEFAULT_SLACK = 1e-9
_MOST_TO_SEARCH = 3
_MOST_CANDIDATES = 64
_CELLS = 2**19
_CHUNK = 100


def _sampler(f: Any, total: int, watch: Watch) -> Sampler:
    # The function that runs `f`, in batches if it has a method `select_rows`, and reports its progress.
    rows, done = getattr(f, "select_rows", None), 0
    if not callable(rows) and not callable(f):
        raise InvalidType(f"f must be a callable f(scores) or a mechanism, got {type(f).__name__}")

    def sample(given: Any, runs: int) -> Counts:
        nonlocal done
        counts: Counts = Counter()
        cells = given.size if isinstance(given, np.ndarray) else len(given) if hasattr(given, "__len__") else 1
        chunk = max(1, _CELLS // max(1, cells)) if callable(rows) else _CHUNK
        for start in range(0, runs, chunk):
            part = min(chunk, runs - start)
            counts.update(_run_in_rows(rows, given, part) if callable(rows) else _run_one_by_one(f, given, part))
            done += part
            watch(done / total)
        return counts

    return sample


def _own_copy(given: Any) -> Any:
    # A shallow copy for one run. An object that cannot be copied, such as an open connection, is passed as it is.
    try:
        return copy(given)
    except Exception:  # the copy runs code of the object, which may raise anything
        return given


def _attempted(f: Callable[[Any], Any], given: Any) -> Any:
    # What a call returns, or the name of its exception, whose message may quote the scores.
    try:
        return f(given)
    except Exception as error:
        return Raised(type(error).__name__)


def _run_one_by_one(f: Callable[[Any], Any], given: Any, runs: int) -> Counts:
    # Call `f` once per run, each time on a fresh copy. An exception is an outcome too: an observer learns from it.
    return Counter(outcome_of(_attempted(f, _own_copy(given))) for _ in range(runs))


def _run_in_rows(select_rows: Callable[[Any], Any], given: Any, runs: int) -> Counts:
    # Call `select_rows` once for all runs. An exception cannot be counted here: it hides the outcomes of the other
    # rows, and a second attempt would bias them.
    rows = np.broadcast_to(given, (runs, *given.shape)) if isinstance(given, np.ndarray) else [given] * runs
    found = _attempted(select_rows, rows)
    if isinstance(found, Raised):
        raise InvalidValue(
            f"select_rows failed, with {found.name}: give f.select instead, whose exceptions are counted"
        )
    counts = _counted(found)
    if counts.total() != runs:
        raise InvalidValue("select_rows must return one output for each row: return an array or a list of that length")
    return counts


def _counted(found: Any) -> Counts:
    if isinstance(found, np.ndarray) and found.dtype.kind in "biu" and found.size:  # floats have -0.0 and NaN
        values, often = np.unique(found, axis=0, return_counts=True)
        return Counter(dict(zip(map(outcome_of, values.tolist()), often.tolist(), strict=True)))
    wrong = InvalidType(f"select_rows must return an array or a list, got {type(found).__name__}")
    outputs = withheld(lambda: list(found.tolist() if isinstance(found, np.ndarray) else found), wrong, TypeError)
    return Counter(map(outcome_of, outputs))


def audit(  # noqa: PLR0913 - what is claimed, and how hard to try
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

    The audit runs `f` many times on neighbouring inputs and compares how often each event occurs. Use public or
    synthetic scores and inputs only: the findings are computed from them without any privacy.

    Args:
        f: a callable f(scores), or f(data) if `inputs` is given, or a mechanism with `select_rows`, which is run in
            batches. It must return an index or another hashable value, or a list, set, dict, dataclass or NumPy array
            of such values. Its runs must be independent of each other. An exception counts as an outcome.
        epsilon: the epsilon that `f` promises.
        sensitivity, monotonic, score_range: See `PermuteAndFlip`.
        pairs: neighbouring score vectors, each a tuple (scores, neighbour); `hard_pairs` if omitted.
        inputs: neighbouring inputs of any kind, instead of scores: a list of tuples (data, neighbour), or a dict from
            names to such tuples. The audit cannot check that they are neighbours. Each run gets a shallow copy.
        runs: the number of runs on each of the two inputs of each pair.
        false_alarm: the largest acceptable probability of reporting a violation although `f` keeps its promise.
        watch: a function that is called with the fraction of the work that is done, from 0 to 1. If omitted, a bar is
            shown on a terminal and in a notebook.

    Raises:
        InvalidType: `f` is not callable or returns an unhashable value, or an argument has the wrong type.
        InvalidValue: an argument is out of range, a pair does not consist of neighbours, or `f` fails in every run.

    Always choosing the best candidate is not private; a constant answer is:

    >>> import numpy
    >>> audit(lambda scores: int(numpy.argmax(scores)), epsilon=1, runs=1000)
    Audit(violates epsilon = 1: it is at least 3.329 on the pair 'ties')
    >>> audit(lambda scores: 0, epsilon=1, runs=1000)
    Audit(no violation found in 44,000 runs)

    Inputs can be of any kind, and outputs can be numbers:

    >>> mean = lambda ages: sum(ages) / len(ages)
    >>> found = audit(mean, epsilon=1, inputs={"one person left": ([30, 40, 50], [30, 40])}, runs=1000)
    >>> found
    Audit(violates epsilon = 1: it is at least 3.525 on the pair 'one person left')
    >>> found.worst.description
    'the output is 40.0'
    """
    promised = _validate.exact_positive(epsilon=epsilon)
    claim: Claim | None = stated(sensitivity, monotonic, score_range)
    if inputs is not None:
        if not (pairs is None and sensitivity is None and score_range is None and not monotonic):
            raise InvalidValue("inputs are not scores: leave out pairs, sensitivity, monotonic and score_range")
        claim = None
    doubt = _validate.fraction_of_one(false_alarm=false_alarm)
    each = _validate.count(runs=runs)
    if each < _LEAST_RUNS:
        raise InvalidValue(f"runs must be >= {_LEAST_RUNS}, got {runs}: fewer runs cannot show anything")
    if claim is None:
        checked = checked_inputs(inputs)
    else:
        checked = checked_pairs(hard_pairs(promised, **claim.arguments()) if pairs is None else pairs, claim)
    total = 2 * each * len(checked)
    too_deep = InvalidValue("the output of f is nested too deeply: return fewer levels")
    with progress("Auditing") as shown:
        sampler = _sampler(f, total, shown if watch is None else watch)
        findings = withheld(
            lambda: tuple(
                _test_pair(pair, () if claim is None else pair.risers(), sampler, each, doubt / len(checked))
                for pair in checked
            ),
            too_deep,
            RecursionError,  # from reading an output; an exception of f itself is an outcome
        )
    if sum(finding.failures for finding in findings) == total:
        failure = _attempted(f, _own_copy(checked[0].both[0]))
        name = failure.name if isinstance(failure, Raised) else "different errors"
        raise InvalidValue(f"f failed in every run, with {name}: {_SIGNATURE[claim is None]}")
    return Audit(promised, claim, doubt, total, findings)


_SIGNATURE = (
    "give a callable f(scores) that takes a NumPy array, or a list of scores that no array can hold",
    "give a callable f(data) that accepts the given inputs",
)


def _test_pair(
    pair: Pair, suspects: Iterable[frozenset[Hashable]], sampler: Sampler, runs: int, doubt: float
) -> Finding:
    # Choose an event on one half of the runs and test it on the other half.
    here, there = pair.both
    sizes = (runs // 4, runs // 2 - runs // 4, runs - runs // 2)
    parts = [Samples(sampler(here, n), sampler(there, n), n) for n in sizes]
    ranking, choosing, testing = parts
    _check_comparable(ranking.here)
    views = learned_views(ranking.here, ranking.there)
    event = chosen_event(ranking, choosing, doubt, suspects, views)
    bound = max(0.0, testing.bound(event, doubt))
    outputs = tuple(map(plain, in_order(event.labels))) if event.view is WHOLE else ()
    outcomes = [found for part in parts for side in (part.here, part.there) for found in side.items()]
    failures = sum(often for outcome, often in outcomes if isinstance(outcome, Raised))
    return Finding(
        pair.name, bound, outputs, event.is_reversed, *testing.hits(event), testing.trials, failures, str(event)
    )


def _check_comparable(counts: Counts) -> None:
    # Refuse outputs that are all new objects, each equal only to itself: no event would occur twice.
    if len(counts) == counts.total() and all(map(is_new_object, counts)):
        kind = type(plain(next(iter(counts)))).__name__
        raise InvalidType(f"f returns a new {kind} in each run, which equals no other: return its value instead")


def audit_pmf(
    mechanism: HasProbabilities,
    epsilon: Number | None = None,
    *,
    scores: Mapping[str, Any] | None = None,
    slack: float = DEFAULT_SLACK,
) -> PmfAudit:
    """Compare the probabilities that a mechanism's `pmf` gives on neighbouring score vectors.

    For up to three candidates, a grid over the whole box of neighbours is searched, including its ends and its middle.
    This does not assume that the mechanism is regular. For more candidates, only the neighbours that are worst for a
    regular mechanism are compared (see `analysis.check_privacy`).

    Args:
        mechanism: an object with a method `pmf(scores)`, and with `sensitivity` and `monotonic`, or `score_range`.
        epsilon: the promised epsilon; `mechanism.epsilon` if omitted.
        scores: a dictionary from names to score vectors; the short vectors of `hard_pairs` if omitted.
        slack: how far errors of the probabilities may move a log-ratio.

    Raises:
        InvalidType: the mechanism has no `pmf`, or `scores` is not a dictionary.
        InvalidValue: epsilon is not positive, or a score vector has more than 64 candidates.

    >>> from dpselect import PermuteAndFlip
    >>> audit_pmf(PermuteAndFlip(epsilon=1), scores={"two": [3, 0], "ties": [0, 0, 0]})
    PmfAudit(no violation found on 2 score vectors)
    >>> audit_pmf(PermuteAndFlip(epsilon="1.01"), epsilon=1, scores={"two": [3, 0], "ties": [0, 0, 0]})
    PmfAudit(violates epsilon = 1: it is at least 1.01 on 'two')
    """
    if not callable(getattr(mechanism, "pmf", None)):
        raise InvalidType("mechanism must have a method pmf(scores): use audit for a callable without one")
    promised = _validate.exact_positive(epsilon=getattr(mechanism, "epsilon", None) if epsilon is None else epsilon)
    claim = claim_of(mechanism)
    if scores is None:
        pairs = hard_pairs(promised, **claim.arguments(), longest=16)
        scores = {pair.name: pair.scores for pair in pairs}
    if not isinstance(scores, Mapping) or not scores:
        raise InvalidType("scores must be a dictionary from names to score vectors, with at least one entry")
    ratios = tuple((str(name), _worst(mechanism, vector)) for name, vector in scores.items())
    return PmfAudit(promised, claim, slack, ratios)


def _worst(mechanism: HasProbabilities, scores: Any) -> float:
    exact = exact_scores(scores)
    if len(exact) > _MOST_CANDIDATES:
        raise InvalidValue(f"scores must have at most {_MOST_CANDIDATES} candidates, got {len(exact)}: give fewer")
    return (search_neighbours if len(exact) <= _MOST_TO_SEARCH else check_privacy)(mechanism, exact)
