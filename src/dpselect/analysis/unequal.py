"""Raskhodnikova & Smith (2016), the generalized exponential mechanism: equalise scores of unequal sensitivities.

With a margin t and r_i = q_i - t s_i, where s_i is the sensitivity of score q_i, the generalized score is

    g_i = min over j of (r_i - r_j) / (s_i + s_j).

Between neighbours, r_i - r_j moves by at most s_i + s_j, so each quotient moves by at most one, and so does the least:
g has sensitivity one for any public t. If g_i is at least -t, then q_i >= q_j - 2 t s_j for every j: the
choice is judged by the sensitivity of each rival, not by the largest of all. Permute-and-flip and the exponential
mechanism choose such an i with probability 1 - failure for t = 2 log(n / failure) / epsilon.

-g_i is the steepest slope from the point (-s_i, r_i) to a point (s_j, r_j), all of which lie to its right: a tangent to
their upper hull. It is found by bisection, because along the hull the slope rises up to the tangent and falls after
it. Floats guess where; exact comparisons of the two edges there decide. This takes n log n steps instead of n**2.

`unequal_errors` compares this with the simple way, which uses the largest sensitivity for all scores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._numbers import rational, rounded_up_text
from dpselect._scores import as_vector, copied, losses
from dpselect._types import Floats, Number, Vector
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase, is_mechanism_class
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip

# With more bits than this, a common denominator costs more than it saves.
_LONGEST_DENOMINATOR = 4096


def generalized_scores(scores: Any, sensitivities: Any, epsilon: Number, failure: Number = 0.05) -> list[Fraction]:
    """Turn scores with individual sensitivities into exact scores of sensitivity one; the best one is zero.

    Pass them to any mechanism of sensitivity one: `PermuteAndFlip(epsilon).select(generalized_scores(...))`. With
    probability 1 - failure the candidate that permute-and-flip or the exponential mechanism then selects has a score
    of at least max over j of (q_j - 2 t s_j), with t = 2 log(n / failure) / epsilon.

    They are not monotonic, even if the original scores are: do not use `monotonic=True` for them.

    Args:
        scores: one score per candidate. Secret, and so is the result.
        sensitivities: the largest change of each score when one person changes. Public.
        epsilon: the epsilon of the selection that follows. It only sets t and has no effect on privacy here.
        failure: the probability that the bound may fail. It only sets t.

    Raises:
        InvalidType: the scores, the sensitivities or a number cannot be read.
        InvalidValue: there are no scores, a number is out of range, or there are not as many sensitivities as scores.

    >>> generalized_scores([10, 12], [1, 9], epsilon=4)
    [Fraction(0, 1), Fraction(-39861, 31250)]
    """
    vector = _finite(as_vector(scores))
    units = _sensitivities(sensitivities, len(vector))
    points = _points(vector, units, margin(len(vector), epsilon, failure))
    return _least_quotients(points)


def margin(n: int, epsilon: Number, failure: Number) -> Fraction:
    """The t of n candidates: 2 log(n / failure) / epsilon, in floats and rounded up to six digits."""
    # Any public t is private, so the rounding affects only accuracy.
    spent, doubt = _validate.exact_positive(epsilon=epsilon), _validate.exact_positive(failure=failure)
    if doubt >= 1:
        raise InvalidValue("failure must be between 0 and 1: give for example 0.05")
    logarithm = math.log(n * doubt.denominator) - math.log(doubt.numerator)
    return Fraction(rounded_up_text(2 * Fraction(logarithm) / spent))


def _sensitivities(sensitivities: Any, count: int) -> Vector:
    rule = "sensitivities must be positive finite numbers"
    try:
        vector = _finite(as_vector(sensitivities))
    except InvalidType:  # its message is about scores
        raise InvalidType(f"{rule}: give how much one person can change each score") from None
    except InvalidValue:
        raise InvalidValue(f"{rule}, one for each score: give how much one person can change each") from None
    if len(vector) != count:
        raise InvalidValue(f"sensitivities must be as long as scores, got {len(vector)} and {count}: give one for each")
    if min(vector) <= 0:
        raise InvalidValue(f"{rule}, but one of them is not > 0: give how much one person can change each score")
    return vector


def _finite(vector: Vector) -> Vector:
    own = copied(vector)  # nobody may change it between this check and its use
    if isinstance(own, np.ndarray):
        losses(own)  # refuses numbers that are not finite; Fractions always are
    return own


@dataclass(frozen=True, repr=False)
class _Points:
    # The sensitivities s and the r of candidates, in units that make them integers if that is cheap. Secret.

    s: Sequence[Any]
    r: Sequence[Any]
    unit: Any  # divide r / s in these units by this to get r / s


def _points(scores: Vector, units: Vector, t: Fraction) -> _Points:
    whole_scores, whole_units = _whole(scores), _whole(units)
    if whole_scores is None or whole_units is None:
        s = [rational(unit) for unit in units]
        return _Points(s, [rational(q) - t * unit for q, unit in zip(scores, s, strict=True)], 1)
    (q, q_scale), (s, s_scale) = whole_scores, whole_units
    q_factor, s_factor = s_scale * t.denominator, t.numerator * q_scale
    r = [q_i * q_factor - s_i * s_factor for q_i, s_i in zip(q, s, strict=True)]
    return _Points(s, r, q_scale * t.denominator)


def _whole(vector: Vector) -> tuple[list[Any], int] | None:
    # The numbers over a common denominator, unless it is too long.
    if isinstance(vector, np.ndarray) and vector.dtype.kind in "iu":
        return vector.tolist(), 1
    ratios = [number.as_integer_ratio() for number in (vector.tolist() if isinstance(vector, np.ndarray) else vector)]
    common = 1
    for denominator in {denominator for _, denominator in ratios}:
        common = math.lcm(common, denominator)
        if common.bit_length() > _LONGEST_DENOMINATOR:
            return None
    return [numerator * (common // denominator) for numerator, denominator in ratios], common


def _least_quotients(points: _Points) -> list[Fraction]:
    hull = _upper_hull(points)
    least = []
    for s, r, guess in zip(points.s, points.r, _guesses(points, hull), strict=True):
        k = _tangent(hull, s, r, guess)
        least.append(Fraction(r - hull.r[k], points.unit * (s + hull.s[k])))
    return least


def _upper_hull(points: _Points) -> _Points:
    # The points on the upper hull, from the smallest s to the largest r: s and r rise along it, and slopes fall.
    s: list[Any] = []
    r: list[Any] = []
    for s_j, r_j in sorted(zip(points.s, points.r, strict=True)):
        if r and r_j <= r[-1]:
            continue
        # The last one is on or below the line from the one before it to the new one. (The first may be right below the
        # second: then all see the second steeper.)
        while len(r) > 1 and (r[-1] - r[-2]) * (s_j - s[-1]) <= (r_j - r[-1]) * (s[-1] - s[-2]):
            del s[-1], r[-1]
        s.append(s_j)
        r.append(r_j)
    return _Points(s, r, points.unit)


def _tangent(hull: _Points, s: Any, r: Any, guess: int) -> int:
    # The position on the hull with the largest slope from (-s, r): the first one whose successor is not steeper.
    low, high = 0, len(hull.s) - 1
    falls_behind = guess == high or not _next_is_steeper(hull, guess, s, r)
    if falls_behind and (guess == low or _next_is_steeper(hull, guess - 1, s, r)):
        return guess
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _next_is_steeper(hull, middle, s, r) else (low, middle)
    return low


def _next_is_steeper(hull: _Points, k: int, s: Any, r: Any) -> bool:
    return bool((hull.r[k] - r) * (hull.s[k + 1] + s) < (hull.r[k + 1] - r) * (hull.s[k] + s))


def _guesses(points: _Points, hull: _Points) -> list[int]:
    # The positions of the tangents in floats; arbitrary if they overflow. Only a guess: exact comparisons decide.
    try:
        s, r, hull_s, hull_r = (np.array(part, np.float64) for part in (points.s, points.r, hull.s, hull.r))
    except OverflowError:
        return [0] * len(points.s)
    low, high = np.zeros(s.size, np.int64), np.full(s.size, hull_s.size - 1)
    with np.errstate(all="ignore"):
        for _ in range(hull_s.size.bit_length()):
            middle = np.minimum((low + high) // 2, hull_s.size - 2)
            steeper = (low < high) & _is_below_edge(hull_s, hull_r, middle, s, r)
            low, high = np.where(steeper, middle + 1, low), np.where(steeper, high, np.maximum(low, middle))
    return low.tolist()


def _is_below_edge(hull_s: Floats, hull_r: Floats, k: npt.NDArray[np.int64], s: Floats, r: Floats) -> Any:
    # Whether edge k, extended to the left, passes below (-s, r). Then the slope to the end of the edge is larger.
    slopes = (hull_r[k + 1] - hull_r[k]) / (hull_s[k + 1] - hull_s[k])
    return hull_r[k] - slopes * (hull_s[k] + s) < r


@dataclass(frozen=True)
class UnequalErrors:
    """The expected errors of one selection, in units of the scores. They are as private as the scores.

    Attributes:
        common: the error with the largest sensitivity for all scores.
        generalized: the error with generalized scores.

    >>> UnequalErrors(common=10.0, generalized=4.0).gain
    2.5
    """

    common: float
    generalized: float

    @property
    def gain(self) -> float:
        """How many times smaller the error is with generalized scores; below one if they lose."""
        if not self.generalized:
            return float("inf") if self.common else 1.0
        return self.common / self.generalized


def unequal_errors(
    scores: Any,
    sensitivities: Any,
    epsilon: Number,
    *,
    failure: Number = 0.05,
    kind: type[MechanismBase] = PermuteAndFlip,
) -> UnequalErrors:
    """Compare the expected errors of both ways to choose among scores of unequal sensitivities.

    The result is as private as the scores. `kind` is the mechanism class that selects. See `generalized_scores` for the
    other parameters.

    >>> unequal = unequal_errors([1000, 900, 500, 0], [1, 1, 1, 1000], epsilon=1)
    >>> round(unequal.common), round(unequal.generalized)
    (307, 4)
    """
    if not is_mechanism_class(kind):
        raise InvalidType("kind must be a mechanism class: give PermuteAndFlip, not PermuteAndFlip(epsilon=1)")
    spent = _validate.exact_positive(epsilon=epsilon)
    equalized = generalized_scores(scores, sensitivities, spent, failure)
    errors = losses(as_vector(scores))
    largest = rational(max(as_vector(sensitivities)))
    common, generalized = kind(spent, largest).pmf(scores), kind(spent).pmf(equalized)
    return UnequalErrors(float(common @ errors), float(generalized @ errors))
