"""What a mechanism does on given scores: its errors, how private it is, and the epsilon that an accuracy needs.

**Errors**, McKenna & Sheldon (2020), Section 2: the error q* - q_M of a mechanism M, its mean, tails and quantiles.
`epsilon_for` is the inverse.

**Evaluations**, Algorithms 1 and 2: how many scores `select_lazily` computes before it stops.

Permute-and-flip: give every candidate an arrival time, uniform on [0, 1]. Candidate r is visited if no head arrives
before it, so the expected number of visits is the sum over r of the integral over [0, 1] of prod over s != r of
(1 - p_s t) dt, with p_s = exp(-c (b - q_s)).

The exponential mechanism computes the score of r if r is proposed before another candidate is accepted. In each
proposal the former has probability 1/n and the latter (S - p_r)/n with S = sum p_s. So the expected number of scores is
the sum over r of 1 / (1 + S - p_r). Scores are remembered, so these are different candidates, out of n / S proposals on
average.

**Privacy**: the largest log-ratio of probabilities on neighbouring scores. By Proposition 2, for a regular mechanism,
the worst neighbour of q for candidate r raises q_r and lowers the others, which is q + 2 sensitivity e_r by shift
invariance. With monotonic scores it is q + sensitivity e_r, and in general q + score_range e_r.
"""

import itertools
import math
import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_near, rational
from dpselect._scores import as_vector, exact_scores, losses
from dpselect._types import Floats, Number, Vector
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import Mechanism, MechanismBase, checked_mechanism, is_mechanism_class
from dpselect.mechanisms.parameters import Claim, claim_of, stated
from dpselect.selection.gaps import gaps_of

_LARGEST_SEARCH = 8
_TOO_SMALL = 1e-290


class HasPmf(Protocol):
    def pmf(self, scores: Any, /) -> Any: ...


def expected_error(mechanism: HasPmf, scores: Any) -> float:
    """The mean of q* - q_M: the average distance of the choice below the best candidate, in units of the scores.

    The result is as private as the scores.

    Args:
        mechanism: a mechanism, or any object with a `pmf` method.
        scores: one score per candidate.

    Raises:
        InvalidType: the scores are not a one-dimensional sequence of numbers.
        InvalidValue: there are no scores, or a score is not finite.

    >>> from dpselect import PermuteAndFlip
    >>> round(expected_error(PermuteAndFlip(epsilon=1), [10, 8, 0]), 4)
    0.3966
    """
    probabilities, errors = mechanism.pmf(scores), losses(as_vector(scores))
    return float(probabilities @ np.where(probabilities > 0, errors, 0.0))


def error_tail(mechanism: HasPmf, scores: Any, t: Any) -> Any:
    """The probability that the choice is t or more below the best: Pr[q* - q_M >= t].

    `t` is one error, or an array of errors, for which it returns an array. See `expected_error` for the rest.

    >>> from dpselect import PermuteAndFlip
    >>> error_tail(PermuteAndFlip(epsilon=1), [10, 8, 0], [0, 1]).round(4)
    array([1.    , 0.1865])
    """
    thresholds = _thresholds(t)
    errors, upto = _distribution(mechanism, scores)
    # Summed from the largest error, so that small tails are sums of small numbers.
    tails = np.append(np.cumsum(upto[::-1])[::-1], 0.0)
    tails[0] = 1.0
    found: Floats = tails[np.searchsorted(errors, thresholds, side="left")]
    return float(found) if thresholds.ndim == 0 else found


def _thresholds(t: Any) -> Floats:
    try:
        thresholds = np.asarray(t)
    except ValueError:
        thresholds = np.empty(0, object)
    if thresholds.dtype.kind not in "iuf" or np.isnan(thresholds).any():
        raise InvalidValue("t must be a number or an array of numbers: give errors in units of the scores")
    return thresholds


def error_quantile(mechanism: HasPmf, scores: Any, level: float) -> float:
    """The error that the choice does not exceed with this probability: the smallest x with Pr[q* - q_M <= x] >= level.

    `level` is a probability between 0 and 1, such as 0.95. See `expected_error` for the rest.

    >>> from dpselect import PermuteAndFlip
    >>> error_quantile(PermuteAndFlip(epsilon=1), [10, 8, 0], 0.95)
    2.0
    """
    level = _validate.fraction_of_one(level=level)
    errors, probabilities = _distribution(mechanism, scores)
    beyond = np.append(np.cumsum(probabilities[::-1])[::-1], 0.0)[1:]  # Pr[error > each]
    return float(errors[np.argmax(beyond <= 1 - level)])


def _distribution(mechanism: HasPmf, scores: Any) -> tuple[Floats, Floats]:
    # Distinct errors, ascending, and the probability of each.
    errors, inverse = np.unique(losses(as_vector(scores)), return_inverse=True)
    probabilities: Floats = np.bincount(inverse, weights=mechanism.pmf(scores)).astype(np.float64)
    return errors, probabilities


# The range of log(epsilon) to search: all positive floats.
_LOWEST, _HIGHEST = -744.0, 709.0
_TOLERANCE = 1e-12


def epsilon_for(  # noqa: PLR0913 - two ways to state a target, all by keyword
    kind: type[MechanismBase],
    scores: Any,
    *,
    expected_error: float | None = None,
    error: float | None = None,
    probability: float | None = None,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    score_range: Number | None = None,
) -> float:
    """Find the smallest epsilon at which a mechanism of this kind is accurate enough on these scores.

    Give either `expected_error`, or both `error` and `probability`. The result is rounded to the accurate side, within
    a relative 1e-10, and is as private as the scores.

    Args:
        kind: a mechanism class, such as `PermuteAndFlip`.
        scores: one score per candidate.
        expected_error: the largest mean error that is acceptable, in units of the scores.
        error: an error that should be rare, in units of the scores.
        probability: the largest acceptable probability of an error of at least `error`.
        sensitivity, monotonic, score_range: See `PermuteAndFlip`.

    Raises:
        InvalidType: `kind` is not a mechanism class, the scores cannot be read, or another argument is not a number.
        InvalidValue: the target is not stated in one of the two ways, or every epsilon or no epsilon meets it.

    >>> from dpselect import PermuteAndFlip
    >>> round(epsilon_for(PermuteAndFlip, [10, 8, 0], expected_error=0.1), 4)
    2.3031
    """
    if not is_mechanism_class(kind):
        raise InvalidType("kind must be a mechanism class: give PermuteAndFlip, not PermuteAndFlip(epsilon=1)")
    claim = stated(sensitivity, monotonic, score_range).arguments()
    measured, target = _target(scores, expected_error, error, probability)

    def excess(log_epsilon: float) -> float:
        return measured(kind(math.exp(log_epsilon), **claim)) - target

    if not losses(as_vector(scores)).any():
        raise InvalidValue("every epsilon meets the target: all scores are equal, so there is no error")
    return _smallest(excess)


def _target(
    scores: Any, mean: float | None, error: float | None, probability: float | None
) -> tuple[Callable[[Mechanism], float], float]:
    if mean is not None and error is None and probability is None:
        target = float_near(_validate.exact_positive(expected_error=mean))
        return lambda mechanism: expected_error(mechanism, scores), target
    if mean is None and error is not None and probability is not None:
        threshold = float_near(_validate.exact_positive(error=error))
        return lambda mechanism: float(error_tail(mechanism, scores, threshold)), _validate.fraction_of_one(
            probability=probability
        )
    raise InvalidValue("give either expected_error, or both error and probability")


def _smallest(excess: Callable[[float], float]) -> float:
    # The zero of a decreasing function of log(epsilon), found from a bracket that widens until it contains one.
    from scipy.optimize import brentq  # noqa: PLC0415 - SciPy is slow to import

    low = high = 0.0
    for step in itertools.accumulate(itertools.repeat(2.0), operator.mul):
        if excess(low) > 0:
            break
        if low <= _LOWEST:
            raise InvalidValue("every epsilon meets the target: even the smallest float is accurate enough")
        low = max(low - step, _LOWEST)
    for step in itertools.accumulate(itertools.repeat(2.0), operator.mul):
        if excess(high) <= 0:
            break
        if high >= _HIGHEST:
            raise InvalidValue("no epsilon meets the target: give a larger error")
        high = min(high + step, _HIGHEST)
    root = float(brentq(excess, low, high, xtol=_TOLERANCE, rtol=4 * np.finfo(float).eps))
    while excess(root) > 0:  # round to the accurate side
        root += 10 * _TOLERANCE
    return math.exp(root)


def expected_evaluations(mechanism: MechanismBase, scores: Any, best: Number | None = None) -> float:
    """The expected number of scores that `select_lazily` computes, within a relative 1e-12; linear time.

    The result is as private as the scores.

    Args:
        mechanism: a mechanism with `select_lazily`: permute-and-flip or the exponential mechanism.
        scores: one score per candidate.
        best: the bound that is given to `select_lazily`; the best of the scores if omitted.

    Raises:
        InvalidType: the mechanism has no `select_lazily`, or an argument is not a number.
        InvalidValue: there are no scores, or a score or `best` is not finite.

    >>> from dpselect import ExponentialMechanism, PermuteAndFlip
    >>> scores = [100] * 5 + [90] * 95
    >>> round(expected_evaluations(PermuteAndFlip(epsilon=1), scores), 2)
    15.41
    >>> round(expected_evaluations(ExponentialMechanism(epsilon=1), scores, best=110), 2)
    96.37
    """
    return checked_mechanism(mechanism)._expected_evaluations(_exponents(mechanism, as_vector(scores), best))


def _exponents(mechanism: MechanismBase, vector: Vector, best: Number | None) -> Floats:
    # c (b - q), with scores above the bound lowered to it
    losses(vector)  # refuses scores that are not finite
    largest = rational(vector.max()) if isinstance(vector, np.ndarray) else max(vector)
    bound = largest if best is None else _validate.exact(best=best)
    if largest > bound:
        vector = [min(rational(score), bound) for score in vector]
    gaps = gaps_of(vector, mechanism._rate)
    # Both terms are positive: the sum is rounded once, and no digits cancel.
    beyond = max(bound - largest, Fraction(0))
    exponents: Floats = gaps.approximate(gaps.at(slice(None))) + float_near(mechanism.rate * beyond)
    return exponents


# Privacy.


class HasProbabilities(Protocol):
    """Any mechanism with a pmf and public parameters, ours or not."""

    @property
    def sensitivity(self) -> Any: ...

    @property
    def monotonic(self) -> bool: ...

    def pmf(self, scores: Any) -> Any: ...


def check_privacy(mechanism: HasProbabilities, scores: Any) -> float:
    """The largest |log(Pr[M(q) = r] / Pr[M(q') = r])| over the worst neighbours q' of q; at most epsilon if private.

    For each r the neighbours q + d e_r and q - d e_r are compared at r, with d the score range: twice the sensitivity,
    or the sensitivity for monotonic scores. Infinite if one probability is zero and the other is not.

    Args:
        mechanism: a mechanism, or any object with `pmf`, and with `sensitivity` and `monotonic`, or `score_range`.
        scores: one score per candidate. The result is as private as they are.

    Raises:
        InvalidType: the scores are not a one-dimensional sequence of numbers.
        InvalidValue: there are no scores, or a score is not finite.

    >>> from dpselect import PermuteAndFlip
    >>> round(check_privacy(PermuteAndFlip(epsilon=1), [10, 8, 0]), 9)
    1.0
    """
    exact = exact_scores(scores)
    step = claim_of(mechanism).score_range
    here, promised = np.asarray(mechanism.pmf(exact)), getattr(mechanism, "epsilon", 0)
    worst = 0.0
    for r in range(len(exact)):
        for moved in (step, -step):
            neighbour = [score + (moved if s == r else 0) for s, score in enumerate(exact)]
            worst = max(worst, log_ratio(here[r], np.asarray(mechanism.pmf(neighbour))[r], promised))
    return worst


def search_neighbours(mechanism: HasProbabilities, scores: Any, steps: int = 3) -> float:
    """The largest log-ratio over a grid of the whole box of neighbours; at most epsilon if the mechanism is private.

    The box is [-sensitivity, sensitivity]^n, with `steps` values per side; for monotonic scores, the two boxes
    [0, sensitivity]^n and [-sensitivity, 0]^n; for a score range, both of these and the centred box, which it
    allows with any shift. So it also catches irregular mechanisms, if they show on the grid.

    See `check_privacy` for the parameters. There are at most eight candidates, and at least two steps.

    >>> from dpselect import ExponentialMechanism
    >>> search_neighbours(ExponentialMechanism(epsilon=1), [10, 8, 0]) <= 1 + 1e-9
    True
    """
    exact = exact_scores(scores)
    if len(exact) > _LARGEST_SEARCH:
        raise InvalidValue(f"scores must have at most {_LARGEST_SEARCH} candidates: the search tries every neighbour")
    if _validate.count(steps=steps) < 2:
        raise InvalidValue("steps must be >= 2: both ends of the box belong to the grid")
    size, lows = claim_of(mechanism).score_range, _lowest_moves(claim_of(mechanism))
    grids = [[low + size * k / (steps - 1) for k in range(steps)] for low in lows]
    here, promised = np.asarray(mechanism.pmf(exact)), getattr(mechanism, "epsilon", 0)
    worst = 0.0
    for change in itertools.chain(*(itertools.product(grid, repeat=len(exact)) for grid in grids)):
        there = np.asarray(mechanism.pmf([score + move for score, move in zip(exact, change, strict=True)]))
        worst = max(worst, *(log_ratio(p, q, promised) for p, q in zip(here, there, strict=True)))
    return worst


def _lowest_moves(claim: Claim) -> list[Fraction]:
    # The lower corners of the boxes of neighbours. The score range is the length of each side.
    one_way, centred = [Fraction(0), -claim.score_range], [-claim.score_range / 2]
    return one_way + centred if claim.by_range else one_way if claim.monotonic else centred


def log_ratio(p: float, q: float, epsilon: float) -> float:
    """|log(p / q)|; zero if both are too small for floats."""
    # It is infinite if one is zero, unless epsilon is so large that the other may just have underflowed.
    if p == q or max(p, q) < _TOO_SMALL:
        return 0.0
    if min(p, q) < sys.float_info.min:
        least = math.log(max(p, q)) - math.log(sys.float_info.min)
        return least if least <= epsilon else math.inf
    return float(abs(np.log(p) - np.log(q)))
