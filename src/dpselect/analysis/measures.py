"""How far the choice of a mechanism may be off, and how private it is: on given scores, and for all scores.

**Errors on given scores**, McKenna & Sheldon (2020), Section 2: the error q* - q_M of a mechanism M, its mean, tails
and quantiles. `epsilon_for` is the inverse.

**Evaluations**, Algorithms 1 and 2: how many scores `select_lazily` computes before it stops.

Permute-and-flip: give every candidate an arrival time, uniform on [0, 1]. Candidate r is visited if no head arrives
before it, so the expected number of visits is the sum over r of the integral over [0, 1] of prod over s != r of
(1 - p_s t) dt, with p_s = exp(-c (b - q_s)).

The exponential mechanism computes the score of r if r is proposed before another candidate is accepted. In each
proposal the former has probability 1/n and the latter (S - p_r)/n with S = sum p_s. So the expected number of scores is
the sum over r of 1 / (1 + S - p_r). Scores are remembered, so these are different candidates, out of n / S proposals on
average.

**Errors for all scores** of n candidates: bounds, and the epsilon that a bound needs. With the rate c = epsilon /
score_range every error is that of rate one divided by c, so errors are computed once for each mechanism and number of
candidates. The worst cases are those of Propositions 1, 4 and 5. Each mechanism knows its `worst` errors at rate one
(see `mechanisms.laws`); here they are converted to score units.

**Privacy**: the largest log-ratio of probabilities on neighbouring scores. By Proposition 2, for a regular mechanism,
the worst neighbour of q for candidate r raises q_r and lowers the others, which is q + 2 sensitivity e_r by shift
invariance. With monotonic scores it is q + sensitivity e_r, and in general q + score_range e_r.
"""

import itertools
import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from dpselect import _validate
from dpselect._numbers import first_true, float_near, rational, rounded_up_text
from dpselect._scores import as_vector, exact_scores, losses
from dpselect._types import Floats, Number, Vector
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import Mechanism, MechanismBase, checked_mechanism, is_mechanism_class
from dpselect.mechanisms.laws import WorstErrors
from dpselect.mechanisms.parameters import Claim, claim_of, stated
from dpselect.selection.gaps import gaps_of

_LARGEST_SEARCH = 8
_TOO_SMALL = 1e-290


# Errors on given scores.


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
    with np.errstate(over="ignore"):  # an error beyond the largest float is infinite
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


# Errors for all scores.


@dataclass(frozen=True)
class UnitErrors:
    """Bounds on an error that hold for all data, at rate one.

    Attributes:
        average: the expected error is at most this.
        attained: on some data, the expected error is at least this.
        tail: a function of x that falls: the probability of an error of x or more is at most this.
    """

    average: float
    attained: float
    tail: Callable[[float], float]

    def rarely_exceeded(self, probability: float) -> float:
        return 0.0 if self.tail(0.0) <= probability else first_true(lambda x: self.tail(x) <= probability, 1.0)


ErrorsOf = Callable[[type[MechanismBase]], UnitErrors]  # of a mechanism, at rate one


@dataclass(frozen=True)
class Promise:
    """Bounds on the error of one selection that hold for all scores, in units of the scores.

    Attributes:
        mechanism: the mechanism with its epsilon.
        average: the expected error is at most this.
        attained: on some scores, the expected error is at least this.
        within_95: at least 95 of 100 selections have a smaller error.
        within_99: at least 99 of 100 selections have a smaller error.

    >>> from dpselect import PermuteAndFlip
    >>> round(promise(PermuteAndFlip(epsilon=1), 1000).average, 2)
    8.53
    """

    mechanism: MechanismBase
    average: float
    attained: float
    within_95: float
    within_99: float


def promise(mechanism: MechanismBase, n: int) -> Promise:
    """The bounds of a mechanism for n candidates."""
    # For permute-and-flip and the exponential mechanism, `average` is the exact worst case, so it is attained. For
    # report noisy max, the exact worst case is not known.
    return promised_by(mechanism, among(n))


def promised_by(mechanism: MechanismBase, errors_of: ErrorsOf) -> Promise:
    rate, errors = float(mechanism.rate), errors_of(type(mechanism))
    tails = (errors.rarely_exceeded(probability) for probability in (0.05, 0.01))
    return Promise(mechanism, *(error / rate for error in (errors.average, errors.attained, *tails)))


def rarely_exceeded(mechanism: MechanismBase, n: int, probability: float) -> float:
    """An error that one selection reaches with at most this probability, for all scores of n candidates."""
    return among(n)(type(mechanism)).rarely_exceeded(probability) / float(mechanism.rate)


def among(n: int) -> ErrorsOf:
    """The errors of one selection among n candidates."""
    return partial(selection_errors, log_n=math.log(checked_count(n)))


@cache
def selection_errors(kind: type[MechanismBase], log_n: float) -> UnitErrors:
    """The errors of one selection among candidates of whose number only the logarithm is known."""
    worst = kind.worst
    attained = worst_exponent(worst, log_n)[1]
    average = attained if worst.is_exact or not log_n else worst.averages(log_n)[1]
    return UnitErrors(average, attained, lambda x: worst.tail(x, log_n))


def epsilon_for_average(average: float, error: Number) -> Fraction:
    """The epsilon at which an average, given at epsilon one, is at most `error`; rounded up to four digits."""
    if not average:
        raise InvalidValue("every epsilon meets the target: there is no choice, so the error is zero")
    return Fraction(rounded_up_text(Fraction(average) / _validate.exact_positive(error=error), digits=4))


_GRID = 40
_GOLDEN, _NARROW = (math.sqrt(5) - 1) / 2, 1e-10


@dataclass(frozen=True)
class WorstCase:
    """The largest expected error over all scores.

    Attributes:
        error: the largest expected error, in units of the scores.
        gap: how far all others are below the best candidate on the scores where it occurs.

    >>> from dpselect import PermuteAndFlip
    >>> round(worst_case_error(PermuteAndFlip(epsilon=1), 2).gap, 6)
    2.0
    """

    error: float
    gap: float


def worst_case_error(mechanism: MechanismBase, n: int) -> WorstCase:
    """The largest expected error over all scores of n candidates.

    For permute-and-flip and the exponential mechanism it is exact (Proposition 4). For report noisy max only scores
    (c, ..., c, 0) are searched, which gives a lower bound on its worst case.

    Args:
        mechanism: a mechanism with its public parameters.
        n: the number of candidates.

    Raises:
        InvalidType: `mechanism` is not one of dpselect's, or `n` is not an integer.
        InvalidValue: `n` is not positive, or has more than 4,000 digits.

    >>> from dpselect import PermuteAndFlip
    >>> worst = worst_case_error(PermuteAndFlip(epsilon=1), 2)
    >>> round(worst.error, 6), round(worst.gap, 6)
    (0.367879, 2.0)
    """
    worst, size = checked_mechanism(mechanism).worst, checked_count(n)
    exponent, error = worst_exponent(worst, math.log(size))
    unit = float_near(1 / mechanism.rate)
    return WorstCase(error * unit, exponent * unit)


def worst_exponent(worst: WorstErrors, log_n: float) -> tuple[float, float]:
    # The x at which x Pr[lose] is largest on scores (-x, ..., -x, 0) at rate one, and that product.
    if not log_n:
        return 0.0, 0.0

    def error(log_exponent: float) -> float:
        exponent = math.exp(log_exponent)
        return exponent * worst.loss_probability(exponent, log_n)

    # The product x * Pr[lose] rises from zero, has one maximum near x = log n, and falls like x n exp(-x).
    grid = np.linspace(math.log(0.01), math.log(log_n + 50), _GRID)
    top = int(np.argmax([error(point) for point in grid]))
    found = _golden_section(error, float(grid[max(top - 1, 0)]), float(grid[min(top + 1, _GRID - 1)]))
    return math.exp(found), error(found)


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    # Where a function that rises and then falls is largest (Kiefer 1953), without SciPy, which is slow to import.
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    of_left, of_right = function(left), function(right)
    while high - low > _NARROW:
        if of_left < of_right:
            low, left, of_left = left, right, of_right
            right = low + _GOLDEN * (high - low)
            of_right = function(right)
        else:
            high, right, of_right = right, left, of_left
            left = high - _GOLDEN * (high - low)
            of_left = function(left)
    return (low + high) / 2


def checked_count(n: int) -> int:
    # The number of candidates, at least one. It may be beyond all floats.
    size = _validate.count(n=n)
    if size < 1:
        raise InvalidValue("n must be >= 1: give at least one candidate")
    return size


@dataclass(frozen=True)
class Bounds:
    """Bounds on the errors of a mechanism that hold for all scores, in units of the scores.

    Attributes:
        lower: the largest expected error over all scores is at least this.
        upper: the expected error is at most this, for any scores.
        n: the number of candidates.
        rate: the factor c of exp(-c (q* - q)).
        worst: what the mechanism knows about its errors at rate one.

    >>> from dpselect import PermuteAndFlip
    >>> round(error_bounds(PermuteAndFlip(epsilon=1), 1000).upper, 3)
    13.816
    """

    lower: float
    upper: float
    n: int
    rate: Fraction
    worst: WorstErrors = field(repr=False)

    def tail(self, error: float) -> float:
        """Return an upper bound on Pr[error >= t] that holds for all scores, from 0 to 1.

        For the exponential mechanism and permute-and-flip it is n exp(-c t), the paper's bound with
        t = (log n + s) / c. For report noisy max it is a union bound: a candidate that is t worse wins only if the
        difference of two Laplace noises is at least c t, which has probability (1/2 + c t / 4) exp(-c t).

        Args:
            error: t, in units of the scores.

        Raises:
            InvalidType: `error` is not a number.
            InvalidValue: `error` is not positive and finite.

        >>> from dpselect import PermuteAndFlip
        >>> round(error_bounds(PermuteAndFlip(epsilon=1), 1000).tail(20), 4)
        0.0454
        """
        return self.worst.tail(float_near(self.rate * _validate.exact_positive(error=error)), math.log(self.n))


def error_bounds(mechanism: MechanismBase, n: int) -> Bounds:
    """Bound the expected error and its tails, from n and the public parameters alone, in units of the scores.

    For permute-and-flip and the exponential mechanism the upper bound is log(n) / c with c = epsilon / score_range, and
    the lower one a quarter of it (Proposition 5). For report noisy max the error is at most the largest noise minus the
    noise of the best candidate, so the upper bound is the mean of the largest of n noises; the lower one is attained on
    (x, ..., x, 0) with x = -log(n) / c.

    See `worst_case_error` for the parameters.

    >>> from dpselect import PermuteAndFlip
    >>> error_bounds(PermuteAndFlip(epsilon=1), 1000).upper
    13.815510557964274
    """
    worst, size = checked_mechanism(mechanism).worst, checked_count(n)
    unit = float_near(1 / mechanism.rate)
    lower, upper = worst.averages(math.log(size))
    return Bounds(lower * unit, upper * unit, size, mechanism.rate, worst)


# Privacy.


class HasProbabilities(HasPmf, Protocol):
    """Any mechanism with a pmf and public parameters, ours or not."""

    @property
    def sensitivity(self) -> Any: ...

    @property
    def monotonic(self) -> bool: ...


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
