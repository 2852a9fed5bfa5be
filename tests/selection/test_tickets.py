"""The exponential mechanism on runs of equal scores: exactly the softmax of the candidates, for any lengths."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect._scores import as_lengths
from dpselect.errors import InvalidType, InvalidValue
from dpselect.selection import proposals
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket
from dpselect.selection.gaps import Rate, RationalGaps, gaps_of
from dpselect.selection.proposals import choose_by_tickets
from tests.reference import softmax_pmf
from tests.seam import distribution, heads_probability
from tests.selection.samplers import once

UNIT = Rate(Fraction(1))
HUGE = 10**500


# The exact distribution, by enumeration of all draws.

ENUMERATED = {
    "single": ([0], [3]),
    "two": ([0, 1], [2, 3]),
    "ties": ([4, 4, 2], [1, 2, 1]),
    "cold first": ([0, 9], [5, 1]),
    "levels mixed": ([5, 7, 6, 7, 0], [1, 1, 2, 1, 3]),
    "far below": ([40, 0, 39], [1, 6, 1]),
}


@pytest.mark.parametrize("kind", [np.int64, np.float64, Fraction, RationalGaps, object], ids=str)
@pytest.mark.parametrize("case", ENUMERATED)
def test_the_distribution_is_exactly_the_softmax_of_the_candidates(case, kind, monkeypatch):
    """With 2**2 instead of 2**8, so that all tickets can be enumerated."""
    monkeypatch.setattr(proposals, "_ZEROS", 2)
    scores, lengths = ENUMERATED[case]
    if kind is RationalGaps:
        gaps = RationalGaps(list(map(Fraction, scores)), UNIT)
    else:
        gaps = gaps_of(list(map(Fraction, scores)) if kind is Fraction else np.array(scores, np.int64), UNIT)
    counts = np.array(lengths, object if kind is object else np.uint64)
    found = distribution(once(lambda draws: choose_by_tickets(gaps, counts, draws)))
    expanded = [max(scores) - score for score, m in zip(scores, lengths, strict=True) for _ in range(m)]
    truth = softmax_pmf([heads_probability(loss) for loss in expanded])
    assert [found.get(position, Fraction(0)) for position in range(sum(lengths))] == truth


# The tickets of long runs, which no enumeration reaches: their number, and what the first and the last of a run do.


class Drawn(Draws):
    """Draws a given ticket, accepts it, and writes down with which coin."""

    def __init__(self, ticket=0):
        self.ticket = ticket

    def index(self, bound):
        self.bound = bound
        return self.ticket

    def flip(self, exponent, zeros=0):
        self.coin = exponent, zeros
        return True


LONG = {
    "64 bits": ([3, 0, 1, 3, -50], [2**63, 7, 2**62, 1, 2**61]),
    "beyond 64 bits": ([3, 0, 1, 3, -80], [2**64 - 1, 7, 2**64 - 1, 1, 2**61]),
    "one against 2**64": ([0, -1000], [1, 2**64]),
    "near and far": ([0, -44, -45, -46], [1, 2**63, 2**63, 2**63]),
    "huge": ([0, -1151, -1152, -5000, -1151], [1, HUGE, HUGE + 1, 7 * HUGE, 3]),
    "fractions": ([Fraction(1, 3), Fraction(-200, 7), Fraction(1, 5)], [5, 3**200, 2**70]),
}


def true_level(exponent, last):
    """floor(exponent / ln 2), at most `last`."""
    with ctx.workprec(400):
        quotient = arb(fmpq(exponent.numerator, exponent.denominator)) / arb(2).log()
        return min(int(quotient.floor().unique_fmpz()), last)


@pytest.mark.parametrize("case", LONG)
def test_tickets_of_long_runs(case):
    """A candidate has 2**(last - j) tickets and is accepted with probability 2**j exp(-g): in proportion to exp(-g)."""
    scores, lengths = LONG[case]
    exponents = [Fraction(max(scores)) - Fraction(score) for score in scores]
    last = sum(lengths).bit_length() + 8
    assert 2**last > 2**8 * sum(lengths)
    levels = [true_level(exponent, last) for exponent in exponents]
    gaps = gaps_of(list(map(Fraction, scores)), UNIT)
    counts = as_lengths(lengths, len(scores))
    order = sorted(range(len(scores)), key=lambda run: levels[run])
    edges = np.cumsum(np.array([0, *(lengths[run] << last - levels[run] for run in order)], object)).tolist()
    for run, (first, stop) in zip(order, pairwise(edges), strict=True):
        width = 1 << last - levels[run]
        middle = first + width * (lengths[run] // 2)
        for ticket, member in [
            (first, 0),
            (first + width - 1, 0),
            (middle, lengths[run] // 2),
            (stop - width, lengths[run] - 1),
            (stop - 1, lengths[run] - 1),
        ]:
            draws = Drawn(ticket)
            assert choose_by_tickets(gaps, counts, draws) == sum(lengths[:run]) + member
            assert draws.bound == edges[-1]
            assert draws.coin == (exponents[run], levels[run])


@pytest.mark.parametrize("kind", [Fraction, RationalGaps], ids=["scaled", "rational"])
def test_no_level_is_above_the_truth(kind):
    """Otherwise a candidate would need a probability of acceptance above one. Exponents next to multiples of ln 2."""
    exponents = [Fraction(0)]
    for bits in [*range(1, 70), 500, 1000, 1023, 1024]:
        low, high = log_bracket(Fraction(2**bits), 40)
        exponents += [low, high, low * (1 - Fraction(1, 2**51)), low * (1 - Fraction(1, 2**48)), high + 1]
    scores = [-exponent for exponent in exponents]
    gaps = RationalGaps(scores, UNIT) if kind is RationalGaps else gaps_of(scores, UNIT)
    levels = levels_of(gaps, 1010).tolist()
    for exponent, level in zip(exponents, levels, strict=True):
        truth = true_level(exponent, 1010)
        assert truth - 1 <= level <= truth
        if exponent and true_level(exponent * (1 - Fraction(1, 2**48)), 1010) == truth:
            assert level == truth


def levels_of(gaps, last):
    return proposals.levels_of(gaps.approximate(gaps.at(slice(None))), last)


def test_no_level_of_floats_is_above_the_truth():
    scores = np.array([0.0, *(-bits * math.log(2) for bits in range(1, 900))])
    levels = levels_of(gaps_of(scores, UNIT), 10**6).tolist()
    for score, level in zip(scores.tolist(), levels, strict=True):
        assert 0 <= true_level(-Fraction(score), 10**6) - level <= 1
    ends = gaps_of(np.array([1.7e308, -1.7e308, 0.0]), UNIT)
    assert levels_of(ends, 77).tolist() == [0, 77, 77]


# How long it takes.


class Counted(Draws):
    """Counts proposals."""

    proposals = 0

    def index(self, bound):
        self.proposals += 1
        return super().index(bound)


SLOW = {
    "one against 2**64": ([0, -1000], [1, 2**64]),
    "as likely as all others": ([0, -44], [1, 2**64]),
    "far below": ([0, -5000], [1, HUGE]),
    "a huge tail": ([0, *range(-1000, -1300, -1)], [1, *[HUGE] * 300]),
    "below the next level": ([0, *[Fraction(-69, 100) * (j + 1) for j in range(60)]], [1] + [1] * 60),
    "equal": ([3], [HUGE]),
}


@pytest.mark.parametrize("case", SLOW)
def test_two_proposals_are_enough_on_average(case):
    """The mean is below 2.1 and the deviation below 1.6: that of 2,000 is above 2.4 less than once in 10**9 times."""
    scores, lengths = SLOW[case]
    draws, count = Counted(), 2_000 if max(lengths) < HUGE else 200
    gaps, counts = gaps_of(list(map(Fraction, scores)), UNIT), as_lengths(lengths, len(scores))
    for _ in range(count):
        choose_by_tickets(gaps, counts, draws)
    assert draws.proposals / count < {2_000: 2.4, 200: 3}[count]


# Input: see also test_runs.


def test_what_a_mechanism_lacks_is_refused():
    with pytest.raises(InvalidValue, match="no steady schedule"):
        ExponentialMechanism(1).select_runs([1], [1], steady=True)
    with pytest.raises(InvalidType, match="steady must be True or False"):
        ExponentialMechanism(1).select_runs([1], [1], steady=None)
    with pytest.raises(InvalidType, match="ReportNoisyMax has not: use PermuteAndFlip or ExponentialMechanism"):
        ReportNoisyMax(1).select_runs([1], [1])


def test_mechanisms_say_what_they_have():
    for kind in (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax):
        tried = {"has_runs": lambda m: m.select_runs([1], [1]), "has_steady": lambda m: m.select([1], steady=True)}
        for name, call in tried.items():
            if getattr(kind, name):
                assert call(kind(1)) == 0
            else:
                with pytest.raises((InvalidType, InvalidValue)):
                    call(kind(1))
        assert kind.has_summary == hasattr(kind, "summary")


def test_scores_that_change_meanwhile_are_read_once(monkeypatch):
    """Otherwise no proposal might ever be accepted: here all scores fall after the levels were found."""
    scores, levels, drawn = np.zeros(10_000), proposals.levels_of, []

    def then_all_fall(exponents, last):
        found = levels(exponents, last)
        scores[:] = -1e9
        return found

    def index(draws, bound):
        drawn.append(bound)
        assert len(drawn) < 100
        return bound // 2

    monkeypatch.setattr(proposals, "levels_of", then_all_fall)
    monkeypatch.setattr(Draws, "index", index)
    assert ExponentialMechanism(1).select_runs(scores, np.ones(10_000, np.int64)) == 5_000
    assert len(drawn) == 1
