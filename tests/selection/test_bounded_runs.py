"""Runs whose scores are only bounded: exactly the law of the candidates written out, whatever the bounds are.

Exponents are at rate one, so a candidate that is g below the best has the exponent g. In the enumerations its coin
is heads with probability (1/3)**g.
"""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import InvalidValue
from dpselect.mechanisms import permute_and_flip, several
from dpselect.selection import proposals as waiting
from dpselect.selection.proposals import Tickets, levels_of, log_rate_of
from tests import reference
from tests.seam import Refused, distribution, heads_probability
from tests.selection.samplers import once
from tests.selection.test_tickets import Drawn, true_level
from tests.top_k.exact import flip_pmf, softmax
from tests.top_k.waiting import waiting_pmf

FLIP, EXPONENTIAL = PermuteAndFlip(2), ExponentialMechanism(2)  # at rate one
HUGE = 10**500

# The distances of the candidates below the best one, run by run.
ENUMERATED = {
    "alone": [[0]],
    "one run": [[0, 2, 1]],
    "mixed": [[3, 0], [2, 5, 2], [4]],
    "best twice": [[0, 1], [0], [7, 3]],
    "far": [[0], [9, 20, 11]],
}


def tightest(runs):
    return [min(run) for run in runs]


def loose(runs):
    return [min(run) - 1 for run in runs]


def tickets_of(runs, bounds, last):
    levels = levels_of(np.array([float(max(bound, 0)) for bound in bounds]), last)
    return Tickets(levels, np.array([len(run) for run in runs], object), last)


def of_runs(runs):
    return lambda run, rank: runs[run][rank]


def members(runs):
    return [(run, rank) for run, own in enumerate(runs) for rank in range(len(own))]


def one_proposal(tickets, exponent):
    """What the first proposal gives; None if it is refused."""
    propose = once(lambda draws: next(tickets.accepted(exponent, draws)))

    def run(draws):
        try:
            return propose(draws)
        except Refused:
            return None

    return run


# One proposal, in Fractions.


@pytest.mark.parametrize("case", ENUMERATED)
def test_levels_tickets_and_coins(case):
    """Each candidate has 2**(last - j) tickets, and a coin with j zeros, for the level j of its run's bound."""
    runs, last = ENUMERATED[case], 6
    tickets = tickets_of(runs, tightest(runs), last)
    drawn = Drawn()
    drawn.index(0)
    next(tickets.accepted(lambda *_: Fraction(0), drawn))
    found = []
    for ticket in range(drawn.bound):
        draws = Drawn(ticket)
        _, exponent, member = next(tickets.accepted(lambda run, rank: Fraction(runs[run][rank]), draws))
        assert draws.coin == (exponent, true_level(Fraction(min(runs[member[0]])), last))
        found.append(member)
    levels = [true_level(Fraction(bound), last) for bound in tightest(runs)]
    for run, rank in members(runs):
        assert found.count((run, rank)) == 2 ** (last - levels[run])
    assert tickets.mass == sum(Fraction(len(run), 2**level) for run, level in zip(runs, levels, strict=True))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), distances=st.lists(st.integers(0, 7), min_size=1, max_size=6), last=st.integers(0, 4))
def test_runs_and_bounds_of_any_kind_give_the_same_events(data, distances, last):
    """Any partition into runs, and any bounds that hold: an event of rate p for each candidate."""
    ends = sorted({*data.draw(st.lists(st.integers(1, len(distances)), max_size=3)), len(distances)})
    runs = [distances[start:stop] for start, stop in itertools.pairwise([0, *ends])]
    bounds = [data.draw(st.integers(-2, min(run))) for run in runs]
    tickets = tickets_of(runs, bounds, last)
    found = distribution(one_proposal(tickets, lambda run, rank: Fraction(runs[run][rank])))
    found.pop(None, None)
    rates = {member: probability * tickets.mass for (_, _, member), probability in found.items()}
    assert rates == {(run, rank): heads_probability(runs[run][rank]) for run, rank in members(runs)}


def test_a_bound_that_is_too_large_is_no_probability():
    """The enumeration sees it: a coin would need a probability above one."""
    runs = [[0], [2, 3]]
    tickets = tickets_of(runs, [0, 5], last=8)
    with pytest.raises(AssertionError):
        distribution(one_proposal(tickets, lambda run, rank: Fraction(runs[run][rank])))


# The whole selection, in Fractions.


def first_events(mechanism, runs, bounds, monkeypatch):
    """The law of the first event that `select_bounded` hands on, and the mass that it states.

    Levels end at two instead of ten or so, so that all tickets can be enumerated.
    """
    stated = set()

    def run(draws):
        def taken(events, rate, used):
            assert used is draws
            stated.add(rate)
            return next(iter(events))[2]

        monkeypatch.setattr(several, "Tickets", lambda levels, sizes, _: Tickets(np.minimum(levels, 2), sizes, 2))
        monkeypatch.setattr(several, "Draws", lambda: draws)
        monkeypatch.setattr(permute_and_flip, "log_rate_of", lambda mass: mass)
        monkeypatch.setattr(permute_and_flip, "wait_for", taken)
        return mechanism.select_bounded(bounds, [len(run) for run in runs], of_runs(runs))

    return distribution(once(run)), stated


SMALL = {name: ENUMERATED[name] for name in ("one run", "mixed", "far")}


@pytest.mark.parametrize("case", SMALL)
def test_select_bounded_is_exactly_the_softmax(case, monkeypatch):
    runs = SMALL[case]
    found, _ = first_events(EXPONENTIAL, runs, tightest(runs), monkeypatch)
    coins = tuple(heads_probability(own) for run in runs for own in run)
    assert [found[member] for member in members(runs)] == list(softmax(coins))


@pytest.mark.parametrize("case", SMALL)
def test_the_events_that_permute_and_flip_waits_for(case, monkeypatch):
    """Events and their rate are those of theorem 11, which makes them the law of permute-and-flip."""
    runs = SMALL[case]
    coins = tuple(heads_probability(own) for run in runs for own in run)
    laws = []
    for bounds in (tightest(runs), loose(runs)):
        found, stated = first_events(FLIP, runs, bounds, monkeypatch)
        [mass] = stated
        assert mass >= sum(coins)
        assert [found[member] for member in members(runs)] == list(softmax(coins))
        laws.append(waiting_pmf(coins, mass))
    for law in laws:
        assert max(abs(float(a - b)) for a, b in zip(law, flip_pmf(coins), strict=True)) < 1e-10


# The logarithm of the rate, and the clock.

MASSES = [
    Fraction(1),
    Fraction(3, 2),
    1 + Fraction(1, 2**200),
    Fraction(HUGE),
    Fraction(2**96 + 1, 2**60),
    Fraction(3**700, 2**1000),
    Fraction(1, 3**50),
    Fraction(7 * 10**4000 + 1, 10**4000),
]


@pytest.mark.parametrize(
    "mass", [*MASSES, *(Fraction(random.Random(3).getrandbits(k) | 1, 2**k) for k in (9, 99, 999))]
)
def test_the_logarithm_of_the_mass_is_enclosed(mass):
    rate = log_rate_of(mass)
    with ctx.workprec(20_000):
        truth = (reference.ball(mass)).log()
        assert abs(reference.ball(rate.approximate) - truth) <= reference.ball(rate.doubt)
        assert rate.doubt < 1e-10
        for digits in (30, 50, 90):
            low, high = rate.bracket(digits)
            assert reference.ball(low) <= truth
            assert truth <= reference.ball(high)
            assert high - low < Fraction(1, 10 ** (digits - 6))


@pytest.mark.parametrize("mechanism", [FLIP, EXPONENTIAL], ids=lambda mechanism: mechanism.name)
def test_a_distance_below_its_bound_is_refused(mechanism):
    runs = [[4, 0], [3] * 22 + [5] * 50, [8, 8, 8]]
    for bounds, distance in (([0, 5, 8], of_runs(runs)), ([-5, -5, -5], lambda *_: -1)):
        selections = (mechanism.select_bounded(bounds, list(map(len, runs)), distance) for _ in range(5_000))
        with pytest.raises(InvalidValue, match="distance must not be below the bound of its run"):
            list(selections)


@pytest.mark.parametrize("mechanism", [FLIP, EXPONENTIAL], ids=lambda mechanism: mechanism.name)
def test_rates_and_bounds_of_any_size(mechanism):
    for epsilon in (Fraction(1, 10**400), Fraction(10**400)):
        steep = type(mechanism)(epsilon)
        run, rank = steep.select_bounded([0, 10**900], [1, HUGE], lambda run, rank: run * (10**900 + rank))
        assert (run, rank) == (0, 0)
        assert steep.select_bounded([0], [1], lambda *_: 0) == (0, 0)
    assert waiting.log_rate_of(Fraction(1)).approximate == 0
