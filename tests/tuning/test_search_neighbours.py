"""`PrivateSearchCV` on all small tables and all their neighbours, with exact probabilities of everything released.

A coin e^-1 is replaced by one third, so epsilon = 1 allows probabilities to differ by a factor of three.
"""

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.tuning import PrivateSearchCV, geometric, trials
from dpselect.tuning.search_cv import Parts
from tests.seam import BranchingDraws, distribution

FACTOR = 3  # e^epsilon of one run
HELD_OUT = Fraction(1, 4)
STOP = Fraction(1, 3)
WHOLE_FACTOR = FACTOR * ((FACTOR + STOP) / (1 + STOP * FACTOR)) ** 2  # e^epsilon of all runs
ROWS = list(itertools.product((0, 1), repeat=2))  # a feature and a label
COUNTS = range(-6, 10)


class Response(ClassifierMixin, BaseEstimator):
    """Randomized response about the labels: a factor of three, and no more, between any two tables."""

    draws: BranchingDraws

    def __init__(self, least=1):
        self.least = least

    def fit(self, features, labels):
        truth = sum(labels) >= self.least
        self.label_ = int(truth if Response.draws.coin(Fraction(3, 4)) else not truth)
        return self

    def predict(self, features):
        return np.array([row[0] ^ self.label_ for row in features])


@pytest.fixture
def run(monkeypatch):
    """The run of a search, whose noise is recorded and left out: it is added below with its exact probabilities."""

    def no_noise(rate, draws):
        assert rate == 1
        return 0

    monkeypatch.setattr(trials, "two_sided_geometric", no_noise)
    return PrivateSearchCV(Response(), {"least": [1, 2]}, epsilon=1, repeats=geometric(mean=1 / STOP))._checked_run()


def parts(table, flags):
    flags = np.array(flags, dtype=bool)
    return Parts(*columns(table), np.flatnonzero(~flags), np.flatnonzero(flags))


def in_both(table, flags):
    """A mistake: everybody is trained on and scored."""
    return Parts(*columns(table), np.arange(len(table)), np.arange(len(table)))


def columns(table):
    return [[row[0]] for row in table], [row[1] for row in table]


def law_of_run(run, divided):
    """The probability of parameters, model and count, without noise."""

    def outcome(draws):
        Response.draws = draws
        trained = run(divided, draws)
        assert trained.parameters == {"least": trained.model.least}
        return trained.model.least, trained.model.label_, trained.noisy_units

    return distribution(outcome)


def noise(z, rate=1):
    odds = Fraction(1, FACTOR**rate)
    return (1 - odds) / (1 + odds) * odds ** abs(z)


def noise_up_to(z, rate=1):
    odds = Fraction(1, FACTOR**rate)
    return odds**-z / (1 + odds) if z < 0 else 1 - odds ** (z + 1) / (1 + odds)


def generating(t):
    return STOP * t / (1 - (1 - STOP) * t)


def noisy(law, rate=1):
    """The probability of parameters, model and noisy count."""
    found = defaultdict(Fraction)
    for (least, label, count), p in law.items():
        for value in COUNTS:
            found[least, label, value] += p * noise(value - count, rate)
    return found


def kept(law, rate=1):
    """The same for the best of a geometric number of runs, of which the first one of equal counts is kept."""
    found = {}
    single = noisy(law, rate)
    for value in COUNTS:
        up_to = sum(p * noise_up_to(value - count, rate) for (*_, count), p in law.items())
        below = sum(p * noise_up_to(value - 1 - count, rate) for (*_, count), p in law.items())
        for least, label in itertools.product((1, 2), (0, 1)):
            share = single[least, label, value] / (up_to - below)
            found[least, label, value] = share * (generating(up_to) - generating(below))
    return found


def released(run, table, divide=parts, best=kept):
    """What a fit releases, over all outcomes of the coins."""
    total = defaultdict(Fraction)
    for flags in itertools.product((False, True), repeat=len(table)):
        held = sum(flags)
        weight = HELD_OUT**held * (1 - HELD_OUT) ** (len(table) - held)
        for outcome, p in best(law_of_run(run, divide(table, flags))).items():
            total[outcome] += weight * p
    return total


def neighbours(largest):
    """All pairs of a table and one with a row more, or another row, at any place."""
    for size in range(largest + 1):
        for table in itertools.product(ROWS, repeat=size):
            for place, row in itertools.product(range(size + 1), ROWS):
                if size < largest:
                    yield table, (*table[:place], row, *table[place:])
                if place < size and row > table[place]:
                    yield table, (*table[:place], row, *table[place + 1 :])


def largest_ratio(released_by, largest):
    laws = {table: released_by(table) for size in range(largest + 1) for table in itertools.product(ROWS, repeat=size)}
    return max(
        max(laws[one][outcome] / laws[other][outcome], laws[other][outcome] / laws[one][outcome])
        for one, other in neighbours(largest)
        for outcome in laws[one]
    )


def test_the_charge_is_that_of_the_bound():
    logarithm = Fraction(str(np.log(float(FACTOR))))
    assert float(geometric(mean=1 / STOP).epsilon(logarithm)) == pytest.approx(np.log(float(WHOLE_FACTOR)), rel=1e-12)


def test_a_run_is_as_private_as_stated_for_every_outcome_of_the_coins(run):
    """The two parts are fixed here; a row that is added has either coin."""
    ratios, law = [], cache(lambda table, flags: noisy(law_of_run(run, parts(table, flags))))
    for one, other in neighbours(2):
        for flags in itertools.product((False, True), repeat=len(other)):
            if len(one) == len(other):
                mine = flags
            else:
                place = next(i for i in range(len(other)) if other[:i] + other[i + 1 :] == one)
                mine = flags[:place] + flags[place + 1 :]
            first, second = law(one, mine), law(other, flags)
            ratios += [max(first[key] / second[key], second[key] / first[key]) for key in first]
    assert max(ratios) == FACTOR


@pytest.mark.slow
def test_no_ratio_exceeds_the_charge(run):
    """Parameters, model and noisy count of the best run, on all tables of up to three rows."""
    found = largest_ratio(lambda table: released(run, table), 3)
    assert 1.5 < found <= WHOLE_FACTOR


def test_no_ratio_exceeds_the_charge_on_the_smallest_tables(run):
    assert 1.5 < largest_ratio(lambda table: released(run, table), 2) <= WHOLE_FACTOR


def test_people_in_both_parts_would_be_found(run):
    """The power checks: without a split, with half the noise, and with the charge of a single run."""
    assert largest_ratio(lambda table: released(run, table, divide=in_both), 2) > WHOLE_FACTOR
    fixed = [parts(table, [True]) for table in [((0, 0),), ((0, 1),)]]
    for rate, is_private in ((1, True), (4, False)):
        one, other = (kept(law_of_run(run, part), rate) for part in fixed)
        ratio = max(max(one[key] / other[key], other[key] / one[key]) for key in one)
        assert ratio > FACTOR
        assert (ratio <= WHOLE_FACTOR) is is_private
