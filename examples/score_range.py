"""Use a score range where a sensitivity would waste privacy: choose one of twenty plans by scores that move together.

    python examples/score_range.py

Every person gives every plan 4 to 5 points (nobody votes below 4), and the score of a plan is the sum of its points.
Adding or removing a person moves every score by 4 to 5 points, so the sensitivity is 5, monotonic. But no difference
between two scores moves by more than 1, so the score range is 1: the same guarantee with a fifth of the noise.
"""

import numpy as np
import numpy.typing as npt

from dpselect import PermuteAndFlip
from dpselect.analysis import expected_error

PLANS, PEOPLE, EPSILON = 20, 300, "0.1"


def points() -> npt.NDArray[np.float64]:
    """The points of each person (rows) for each plan (columns), in steps of 0.1."""
    generator = np.random.default_rng(5)
    taste = generator.uniform(0, 1, PLANS)
    return 4 + np.round(np.clip(taste + generator.normal(0, 0.4, (PEOPLE, PLANS)), 0, 1), 1)


def errors() -> tuple[float, float]:
    """The expected errors with the sensitivity and with the score range, on the same scores at the same epsilon."""
    scores = points().sum(axis=0)
    stated = PermuteAndFlip(EPSILON, sensitivity=5, monotonic=True), PermuteAndFlip(EPSILON, score_range=1)
    wide, tight = (expected_error(mechanism, scores) for mechanism in stated)
    return wide, tight


if __name__ == "__main__":
    wide, tight = errors()
    print(f"expected error with sensitivity=5, monotonic=True: {wide:.1f} points")
    print(f"expected error with score_range=1:                 {tight:.1f} points")
    chosen = PermuteAndFlip(EPSILON, score_range=1).select(points().sum(axis=0))
    print(f"chosen privately: plan {chosen}")
