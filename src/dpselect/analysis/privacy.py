"""Measure how private a mechanism is on given scores: the largest log-ratio of probabilities on neighbouring scores.

McKenna & Sheldon (2020), Proposition 2: for a regular mechanism, the worst neighbour of q for candidate r raises q_r
and lowers the others, which is q + 2 sensitivity e_r by shift invariance. With monotonic scores it is
q + sensitivity e_r, and in general q + score_range e_r.
"""

import itertools
import math
import sys
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from dpselect import _validate
from dpselect._scores import exact_scores
from dpselect.errors import InvalidValue
from dpselect.mechanisms.parameters import Claim, claim_of

_LARGEST_SEARCH = 8
_TOO_SMALL = 1e-290


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
