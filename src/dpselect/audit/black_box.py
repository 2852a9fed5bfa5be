"""Run a mechanism on neighbouring scores and bound its epsilon from below, as Ding et al. (2018) did for epsilon-DP.

Half of the runs choose, for each pair of neighbours, the event that tells them apart best. The other half tests that
event and no other, so that there is one test for each pair, and their doubts add up (Bonferroni).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dpselect import _validate
from dpselect.audit.bound import Counts, Samples, chosen_event
from dpselect.audit.findings import Audit, Finding
from dpselect.audit.hard_pairs import hard_pairs
from dpselect.audit.neighbours import Pair, checked_pairs
from dpselect.audit.runs import Sampler, chunk_of, sampler_of
from dpselect.errors import InvalidValue
from dpselect.mechanisms.claim import stated
from dpselect.mechanisms.record import Number

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
    runs: int = DEFAULT_RUNS,
    false_alarm: Number = DEFAULT_FALSE_ALARM,
    watch: Watch | None = None,
) -> Audit:
    """Try to show that `f` is not epsilon-differentially private.

    Give it public or synthetic scores only: what it finds is derived from them.

    Args:
        f: any callable f(scores) -> index, or a mechanism with `select_rows`, which is run in batches. Its runs must be
            independent of each other. An exception of a callable counts as an outcome.
        epsilon: what f promises.
        sensitivity: by how much one person can change any single score; 1 if not given.
        monotonic: whether one person moves all scores in the same direction.
        score_range: instead of both, by how much one person can change any difference of two scores.
        pairs: neighbouring vectors (scores, neighbour); default: `hard_pairs`.
        runs: runs on each vector of each pair.
        false_alarm: how likely a private f may be called a violator.
        watch: is told how much of the work is done, from 0 to 1.

    >>> import numpy
    >>> audit(lambda scores: int(numpy.argmax(scores)), epsilon=1, runs=1000)
    Audit(violates epsilon = 1: it is at least 3.329 on the pair 'ties')
    >>> audit(lambda scores: 0, epsilon=1, runs=1000)
    Audit(no violation found in 44,000 runs)
    """
    promised = _validate.exact_positive(epsilon=epsilon)
    claim = stated(sensitivity, monotonic, score_range)
    doubt = _validate.fraction_of_one(false_alarm=false_alarm)
    each = _runs(runs)
    if pairs is None:
        pairs = hard_pairs(promised, **claim.arguments())
    checked = checked_pairs(pairs, claim)
    sampler = _watched(f, 2 * each * len(checked), watch)
    findings = tuple(_finding(pair, sampler, each, doubt / len(checked)) for pair in checked)
    total = 2 * each * len(checked)
    if sum(finding.failures for finding in findings) == total:
        raise InvalidValue(
            f"f failed in every run, with {_first_error(f, checked[0])}: give a callable f(scores) -> index; scores is"
            " a NumPy array, or a list where no array holds them"
        )
    return Audit(promised, claim, doubt, total, findings)


def _first_error(f: Any, pair: Pair) -> str:
    """The name of what f raises; what it says may quote the scores."""
    try:
        f(pair.scores)
    except Exception as error:
        return type(error).__name__
    return "different errors"


def _finding(pair: Pair, sampler: Sampler, runs: int, doubt: float) -> Finding:
    """Choose an event on one half of the runs, and test it on the other half."""
    parts = (runs // 4, runs // 2 - runs // 4, runs - runs // 2)
    ranking, choosing, testing = (Samples(sampler(pair.scores, n), sampler(pair.neighbour, n), n) for n in parts)
    event = chosen_event(ranking, choosing, doubt, suspects=pair.risers())
    bound = max(0.0, testing.bound(event, doubt))
    outcomes = sorted(event.outcomes, key=lambda outcome: (isinstance(outcome, str), outcome))
    failures = sum(_failures(part.here) + _failures(part.there) for part in (ranking, choosing, testing))
    return Finding(pair.name, bound, tuple(outcomes), event.is_reversed, *testing.hits(event), testing.trials, failures)


def _failures(counts: Counts) -> int:
    return sum(often for outcome, often in counts.items() if isinstance(outcome, str))


def _watched(f: Any, total: int, watch: Watch | None) -> Sampler:
    """Sample in chunks, and tell how much is done after each."""
    sampler, done = sampler_of(f), 0

    def sample(scores: Any, runs: int) -> Counts:
        nonlocal done
        counts: Counts = Counter()
        for part in _parts(runs, chunk_of(f, len(scores))):
            counts += sampler(scores, part)
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
