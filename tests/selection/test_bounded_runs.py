"""Runs whose scores are only bounded: exactly the law of the candidates written out, whatever the bounds are.

Exponents are at rate one, so a candidate that is g below the best has the exponent g. In the enumerations its coin
is heads with probability (1/3)**g.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import InvalidValue
from dpselect.mechanisms import permute_and_flip, several
from dpselect.selection import proposals as waiting
from dpselect.selection.draws import Draws
from dpselect.selection.proposals import Tickets, levels_of, log_rate_of, wait_for
from tests import reference
from tests.seam import Refused, distribution, heads_probability
from tests.selection.samplers import once
from tests.selection.test_tickets import Drawn, true_level
from tests.statistical.goodness import assert_fits, assert_rejected
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


@pytest.mark.parametrize("bounds", [tightest, loose], ids=lambda bounds: bounds.__name__)
@pytest.mark.parametrize("case", ENUMERATED)
def test_a_proposal_gives_a_candidate_in_proportion_to_its_own_coin(case, bounds):
    """With probability p / mass, where the mass does depend on the bounds; otherwise nothing."""
    runs = ENUMERATED[case]
    tickets = tickets_of(runs, bounds(runs), last=5)
    found = distribution(one_proposal(tickets, lambda run, rank: Fraction(runs[run][rank])))
    for run, rank in members(runs):
        own = runs[run][rank]
        assert found.pop((1, Fraction(own), (run, rank)), 0) == heads_probability(own) / tickets.mass
    assert found.keys() <= {None}


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


# Statistics. Runs hold candidates of different scores.

MIXED = {
    "few": [[0, 1, 4], [2, 9, 2, 5, 30], [3]],
    "crowded": [[4, 0], [3] * 22 + [5] * 50, [8, 8, 8]],
    "tied": [[0, 3, 3], [1, 2] * 20, [0, 0]],
}
DRAWS = 5_000
PMFS = {FLIP: reference.permute_and_flip_pmf, EXPONENTIAL: reference.exponential_pmf}


def drawn(choose, runs, draws=DRAWS):
    """How often each candidate was drawn, in the order of the runs."""
    starts = np.cumsum([0, *map(len, runs)])
    chosen = [choose() for _ in range(draws)]
    return np.bincount([int(starts[run]) + rank for run, rank in chosen], minlength=starts[-1])


def by_distance(runs, weights):
    """The sums over all candidates of one distance."""
    return np.bincount([own for run in runs for own in run], weights=weights)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", PMFS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("bounds", [tightest, loose], ids=lambda bounds: bounds.__name__)
@pytest.mark.parametrize("case", MIXED)
def test_draws_fit_the_candidates_written_out(case, bounds, mechanism):
    runs = MIXED[case]
    scores = [-own for run in runs for own in run]
    right = PMFS[mechanism](scores, 1.0)
    lengths = list(map(len, runs))
    found = drawn(lambda: mechanism.select_bounded(bounds(runs), lengths, of_runs(runs)), runs)
    assert_fits(found, right)
    assert_fits(by_distance(runs, found), by_distance(runs, right))
    by_bound = [-bound for run, bound in zip(runs, tightest(runs), strict=True) for _ in run]
    wrong = [PMFS[mechanism](scores, 1.4), PMFS[mechanism](by_bound, 1.0)]
    if case == "crowded":
        wrong += [pmf(scores, 1.0) for kind, pmf in PMFS.items() if kind is not mechanism]
    for other in wrong:
        assert_rejected(*(by_distance(runs, each) for each in (found, other)), truth=by_distance(runs, right))


def test_a_bound_that_is_too_large_is_refused_and_would_be_seen():
    runs = MIXED["crowded"]
    lengths, scores = list(map(len, runs)), [-own for run in runs for own in run]
    for mechanism in PMFS:
        for bounds, distance in (([0, 5, 8], of_runs(runs)), ([-5, -5, -5], lambda *_: -1)):
            with pytest.raises(InvalidValue, match="distance must not be below the bound of its run"):
                drawn(lambda own=mechanism, of=(bounds, distance): own.select_bounded(of[0], lengths, of[1]), runs)
    tickets = tickets_of(runs, [0, 5, 8], last=20)  # without that check
    levels = [true_level(Fraction(bound), 20) for bound in (0, 5, 8)]
    events, draws = tickets.accepted(lambda run, rank: Fraction(runs[run][rank]), Draws()), Draws()
    found = drawn(lambda: next(events)[2], runs)
    weights = [min(2.0 ** -levels[run], math.exp(-own)) for run, owns in enumerate(runs) for own in owns]
    wrong = np.array(weights) / sum(weights)
    assert_fits(found, wrong)
    assert_rejected(found, reference.exponential_pmf(scores, 1.0), truth=wrong)
    events = tickets.accepted(lambda run, rank: Fraction(runs[run][rank]), draws)
    waited = drawn(lambda: wait_for(events, log_rate_of(tickets.mass), draws), runs)
    truth = reference.permute_and_flip_pmf([math.log(weight) for weight in weights], 1.0)
    assert_fits(waited, truth)
    assert_rejected(waited, reference.permute_and_flip_pmf(scores, 1.0), truth=truth)


# Runs of lengths that no vector has. With n candidates of probability p, where p is tiny, prod (1 - p t) is e**-n p t.

LONG = {"2**96": 2**96, "10**500": HUGE}


def shares_of_tails(weights, *, flips):
    """The best candidate, and two kinds of candidates with these sums of tiny p."""
    total = sum(weights)
    if not flips:
        return np.array([1, *weights]) / (1 + total)
    best = -math.expm1(-total) / total
    return np.array([best, *(own / total * (1 - best) for own in weights)])


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", PMFS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("length", LONG)
@pytest.mark.parametrize("slack", [0, 1])
def test_draws_fit_long_runs(length, mechanism, slack):
    """A third of the long run is as far as its bound allows, or a little farther; the rest is one more below."""
    size = LONG[length]
    near, far = size // 3, size - size // 3
    least = math.floor(math.log(size)) - 1

    def distance(run, rank):
        return 0 if run else least + (0 if rank < near else 1)

    with ctx.workprec(200):
        weights = [float(arb(n) * (-arb(least + more)).exp()) for n, more in ((near, 0), (far, 1))]
    right = shares_of_tails(weights, flips=mechanism is FLIP)
    chosen = [mechanism.select_bounded([least - slack, 0], [size, 1], distance) for _ in range(2_500)]
    found = np.bincount([0 if run else 1 + (rank >= near) for run, rank in chosen], minlength=3)
    assert_fits(found, right)
    assert_rejected(found, shares_of_tails([2 * w for w in weights], flips=mechanism is FLIP), truth=right)
    assert_rejected(
        found, shares_of_tails([sum(weights) / 3, sum(weights) * 2 / 3], flips=mechanism is FLIP), truth=right
    )
    # Within a run of equal distances all candidates are equally likely.
    high = [(rank - near) * 4 // far for run, rank in chosen if not run and rank >= near]
    assert_fits(np.bincount(high, minlength=4), [0.25] * 4)


@pytest.mark.parametrize("mechanism", PMFS, ids=lambda mechanism: mechanism.name)
def test_rates_and_bounds_of_any_size(mechanism):
    for epsilon in (Fraction(1, 10**400), Fraction(10**400)):
        steep = type(mechanism)(epsilon)
        run, rank = steep.select_bounded([0, 10**900], [1, HUGE], lambda run, rank: run * (10**900 + rank))
        assert (run, rank) == (0, 0)
        assert steep.select_bounded([0], [1], lambda *_: 0) == (0, 0)
    assert waiting.log_rate_of(Fraction(1)).approximate == 0
