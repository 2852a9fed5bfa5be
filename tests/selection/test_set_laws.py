"""Whole sets as one choice, by their sums or margins: draws have the law of the mechanism among all sets."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from tests import reference
from tests.selection.samplers import assert_drawn, law_over_sets, margin, slow, total
from tests.statistical.goodness import assert_fits, assert_rejected

LAWS = {PermuteAndFlip: reference.flip_pmf_in_balls, ExponentialMechanism: reference.softmax_in_balls}
EITHER = pytest.mark.parametrize("kind", LAWS)
# A score of sets, the scores of candidates and how often each is repeated, k, epsilon, and a wrong rate in units of it.
CASES = {
    "plain": (total, [5, 3, 2, 0, 1], None, 2, 1, Fraction(1, 4)),
    "ties": (total, [1, 1, 1, 0, 0], None, 3, "3/2", Fraction(1, 4)),
    "most": (total, [3, 1, 2, 0, 0], None, 4, 1, Fraction(1, 4)),
    "one": (total, [0, 2, 1, 2], None, 1, 2, Fraction(1, 4)),
    "fractions": (
        *(total, [Fraction(1, 3), Fraction(-2, 7), Fraction(10**20, 10**20 + 1), 0]),
        *(None, 2, 2, Fraction(1, 4)),
    ),
    "floats": (total, [0.25, -0.5, 1e-300, 3.5, 3.25], None, 3, 1, Fraction(1, 4)),
    "far from the best": (total, [2**62, 2, 1, 0, 0], None, 3, 1, Fraction(1, 4)),
    "runs": (total, [3, 0, 2], [2, 3, 1], 3, 1, Fraction(1, 3)),
    "margin": (margin, [1, 6, 3, 0], None, 2, 1, 0),
    "margin, ties": (margin, [4, 4, 4, 1, 1], None, 2, 1, 0),
    "margin, an interval": (margin, [9, 1, 7, 2], None, (1, 3), "1/2", 0),
    "margin, zeros": (margin, [0, 0, 4, 0], None, 1, 1, 0),
    "margin, all zeros but one left out": (margin, [3, 0, 3, 3], None, 3, 1, 0),
    "margin, large counts": (margin, [2**61, 2**61 - 2, 2**61 - 5, 2**61 - 5], None, 2, 1, 0),
    "margin, runs": (margin, [0, 5, 3], [2, 1, 2], (2, 3), 1, 0),
}
FAST = ("ties", "one", "floats", "far from the best", "margin, ties", "margin, an interval", "margin, large counts")


@EITHER
@pytest.mark.parametrize("case", [case if case in FAST else slow(case) for case in CASES])
def test_draws_fit_and_those_of_another_rate_do_not(case, kind):
    score, scores, lengths, k, epsilon, factor = CASES[case]
    mechanism = kind(epsilon, score_range=1)
    draw = mechanism.select_set if score is total else mechanism.select_margin
    expanded = scores if lengths is None else np.repeat(scores, lengths).tolist()
    sizes = range(k[0], k[1] + 1) if isinstance(k, tuple) else [k]
    laws = (law_over_sets(expanded, score, sizes, own * mechanism.rate, LAWS[kind]) for own in (1, factor))
    assert_drawn(lambda: tuple(draw(scores, k, lengths=lengths)), 1_000, *laws)


@EITHER
@pytest.mark.parametrize(
    ("score", "scores", "score_range"), [(total, [5, 5, 0, 0, 0, 0, 0], 2), (margin, [9, 9, 5, 4, 4, 4], 3)]
)
def test_either_law_is_told_from_the_other(score, scores, score_range, kind):
    """One good set and many that are a little worse, by the number of the two best that are chosen."""
    [other] = set(LAWS) - {kind}
    mechanism = kind(1, score_range=score_range)
    draw = mechanism.select_set if score is total else mechanism.select_margin
    laws = [law_over_sets(scores, score, [2], mechanism.rate, LAWS[own]) for own in (kind, other)]
    right, wrong = (
        np.bincount([sum(i < 2 for i in own) for own in law], weights=list(law.values()), minlength=3) for law in laws
    )
    counts = np.bincount([sum(i < 2 for i in draw(scores, 2)) for _ in range(3_000)], minlength=3)
    assert_fits(counts, right)
    assert_rejected(counts, wrong, truth=right)
