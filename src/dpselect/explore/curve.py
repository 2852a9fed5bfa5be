"""Expected error against epsilon: computed once for each set of scores, a little at a time.

The error depends on the rate c = epsilon / range alone. So it is computed at fixed rates, 10^(i/12), and another
sensitivity only moves the curve along the axis.
"""

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dpselect.analysis import expected_error
from dpselect.explore.score_set import ScoreSet
from dpselect.explore.settings import LARGEST, SMALLEST, Settings
from dpselect.mechanisms.names import KINDS, MechanismName

_PER_DECADE = 12
PATIENCE = 0.04  # seconds: a dragged slider must not wait for the curve


def curve(shown: ScoreSet, settings: Settings, patience: float = PATIENCE) -> dict[str, Any]:
    """The points that are known after so many seconds; null where one is still missing."""
    low, high = (_PER_DECADE * math.log10(end / settings.claim.score_range) for end in (SMALLEST, LARGEST))
    places = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    points, deadline = shown.curve_points, time.monotonic() + patience
    for name, place in _missing(shown, places):
        mechanism = KINDS[name](rate_at(place), score_range=1)
        points[name, place] = expected_error(mechanism, shown.scores)
        if time.monotonic() > deadline:
            break
    return {
        "epsilons": [float(rate_at(place) * settings.claim.score_range) for place in places],
        "errors": {name: [points.get((name, place)) for place in places] for name in KINDS},
        "complete": all((name, place) in points for name in KINDS for place in places),
    }


def rate_at(place: int) -> Fraction:
    """The rate at a place of the curve."""
    return Fraction(10.0 ** (place / _PER_DECADE))


def _missing(shown: ScoreSet, places: range) -> Iterator[tuple[MechanismName, int]]:
    """The slow mechanism last, and coarse before fine, so that every line is soon there as a whole."""
    for name in KINDS:
        for stride in (8, 4, 2, 1):
            for place in places:
                if place % stride == 0 and (name, place) not in shown.curve_points:
                    yield name, place
