"""Sets by their sum: one try flips independent odds, the law of its sets, and the rate of events."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect._scores import as_vector
from dpselect.selection import sets
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate, RationalGaps, gaps_of
from dpselect.selection.races import Tier, best_members
from dpselect.selection.sets import Tries, choose_set, choose_set_by_waiting, odds_coins
from tests.reference import ball
from tests.seam import BranchingDraws, Refused, ScriptedBits, distribution, heads_probability
from tests.selection.samplers import slow
from tests.watchdog import at_once


@pytest.fixture(autouse=True)
def _silent():
    """The kernels run where NumPy does not warn, as `select_set` sees to it."""
    with np.errstate(all="ignore"):
        yield


def tries_of(scores, k, lengths=None, rate=1):
    gaps = gaps_of(as_vector(list(scores)), Rate(Fraction(rate)))
    return Tries(gaps, np.array([1] * len(scores) if lengths is None else lengths, np.int64), k)


def exact_exponents(scores, rate=1):
    best = max(map(Fraction, scores))
    return [Fraction(rate) * (best - Fraction(score)) for score in scores]


def all_members(lengths):
    return [(run, rank) for run, length in enumerate(lengths) for rank in range(length)]


# One try, and the law of its sets, as exact rationals: a coin of distance g has the odds 3**-g in place of exp(-g).


def upset_probability(distance):
    odds = heads_probability(distance)
    return odds / (1 + odds)


def by_draws(odds, prefixes, depth, draws):
    return draws.finish_odds(odds, prefixes, depth)


class BranchingOdds(BranchingDraws):
    """Draws that branch; words decide nothing, because the tries have been told to doubt all of them."""

    def words(self, count, width):
        return np.zeros(count, np.uint16)

    def finish_odds(self, odds, prefixes, depth):
        """Coins behind zeros are known to start with them; words of sixteen bits are not."""
        known = depth if isinstance(prefixes, int) else 0
        chances = [upset_probability(odds.exact(i)) * 2**known for i in range(odds.approximate.size)]
        return np.array([self.coin(chance) for chance in chances], dtype=bool)


def doubting(scores, k, lengths=None, shift=0):
    """Tries whose theta is a whole number above the exponent of the k-th best, with words that decide nothing."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sets, "_threshold", lambda *_: float(shift))
        tries = tries_of(scores, k, lengths)
    tries._low[:], tries._high[:] = 0, 2**15
    return tries


SMALL = {
    "plain": ([5, 3, 2, 0], 2, None),
    "ties": ([2, 2, 2, 0], 2, None),
    "far": ([20, 9, 2, 0], 2, None),
    "a run": ([3, 1, 0], 3, [1, 2, 2]),
    "far runs": ([30, 8, 0], 3, [2, 2, 2]),
    "most": ([4, 3, 1, 0, 0], 4, None),
    "one": ([1, 0, 0, 1], 1, None),
}
SHIFTS = [-7, -1, 0, 1, 12]


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("case", SMALL)
def test_one_try_flips_independent_coins(case, shift):
    """Every set of upsets has the product of the probabilities of its coins: hot ones, and those that are skipped."""
    scores, k, lengths = SMALL[case]
    tries = doubting(scores, k, lengths, shift)
    members = all_members(tries._lengths.tolist())
    favourites = set(tries.members([]))

    def once(draws):
        heads, balance = tries._hot_upsets(1, draws)
        which, runs, ranks = tries._skipped_upsets(1, draws)
        assert not which.any()
        found = np.flatnonzero(heads[0])
        hot = list(zip(tries._hot_runs[found].tolist(), tries._hot_ranks[found].tolist(), strict=True))
        upsets = [*hot, *zip(runs.tolist(), ranks.tolist(), strict=True)]
        gained = sum(1 if member not in favourites else -1 for member in hot)
        assert balance.tolist() == [gained]
        return frozenset(upsets)

    found = exhaustive(once)
    exponents = exact_exponents(scores)
    theta = exponents[best_of(exponents, tries._lengths, k)] + shift
    assert favourites == {(run, rank) for run, rank in members if exponents[run] < theta}
    assert len(found) == 2 ** len(members)
    for upsets, probability in found.items():
        chances = {(run, rank): upset_probability(abs(theta - exponents[run])) for run, rank in members}
        assert probability == math.prod(p if member in upsets else 1 - p for member, p in chances.items())


def exhaustive(run):
    """As `seam.distribution`, with coins that have odds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.seam.BranchingDraws", BranchingOdds)
        patched.setattr(sets, "odds_coins", by_draws)
        return distribution(run)


def best_of(exponents, lengths, k):
    """The run of the k-th best candidate, or one that is as good."""
    ranked = sorted((e, run) for run, e in enumerate(exponents) for _ in range(lengths[run]))
    return ranked[k - 1][1]


@pytest.mark.parametrize("shift", SHIFTS[1:4])
@pytest.mark.parametrize(
    ("case", "batch"), [*((case, 1) for case in ("plain", "ties", "far", "a run", "one")), ("ties", 2), ("one", 2)]
)
def test_sets_have_exactly_the_law_of_the_exponential_mechanism(case, shift, batch, monkeypatch):
    """Whatever theta is: given that there are k heads, a set has the product of the odds of its members."""
    scores, k, lengths = SMALL[case]
    tries = doubting(scores, k, lengths, shift)
    monkeypatch.setattr(tries, "_first_batch", lambda: batch)
    members = all_members(tries._lengths.tolist())

    def first(draws):
        asked = draws.words

        def once(count, width):
            if draws.taken:
                raise Refused
            return asked(count, width)

        draws.words = once
        return frozenset(tries.members(next(tries.draw(draws))[1]))

    exponents = exact_exponents(scores)
    weights = {
        frozenset(chosen): heads_probability(sum(exponents[run] for run, _ in chosen))
        for chosen in itertools.combinations(members, k)
    }
    total = sum(weights.values())
    assert exhaustive(first) == {chosen: weight / total for chosen, weight in weights.items()}


def test_tries_are_counted_over_batches(monkeypatch):
    """Scripted numbers of heads more than the favourites: a set is found where there are two of them too few."""
    tries = doubting([5, 4, 3, 0, 0, 0], 1, None, 3)  # favourites are 5, 4 and 3
    assert tries._favourites == 3
    balances = iter([[0, 1], [-2, 3, -2, -2], [0] * 8, [1] * 15 + [-2]])
    empty = np.empty(0, np.int64)
    monkeypatch.setattr(tries, "_first_batch", lambda: 2)
    monkeypatch.setattr(sets, "_PATIENCE", 1)  # each batch is twice as large as the one before
    monkeypatch.setattr(
        tries,
        "_hot_upsets",
        lambda batch, _: (np.zeros((batch, tries._hot_runs.size), bool), np.array(next(balances))),
    )
    monkeypatch.setattr(tries, "_skipped_upsets", lambda *_: (empty, empty, empty))
    passed = [number for number, _ in itertools.islice(tries.draw(Draws()), 4)]
    assert passed == [3, 2, 1, 24]


# Floats decide only what is certain.


class KeyedDraws(Draws):
    """Words, many of them near what decides, whose further bits follow from the words themselves.

    So a coin has the same bits, whoever decides it.
    """

    def __init__(self, tries, seed):
        self._tries, self._seed = tries, seed
        self._random = random.Random(seed)

    def words(self, count, width):
        low, high = (bound.astype(int).tolist() for bound in (self._low, self._high))
        near = [self._random.choice([low, high])[i % len(low)] + self._random.randint(-2, 2) for i in range(count)]
        words = [near[i] if self._random.random() < 0.5 else self._random.getrandbits(16) for i in range(count)]
        return np.clip(words, 0, 2**16 - 1).astype(np.uint16)

    def survivors(self, count, zeros):
        return np.array([i for i in range(count) if self._random.random() < 0.2], np.int64)

    def finish_odds(self, odds, prefixes, depth):
        known = np.broadcast_to(prefixes, odds.approximate.shape).tolist()
        return np.array([self._coin(odds, i, prefix, depth) for i, prefix in enumerate(known)], dtype=bool)

    def _coin(self, odds, index, prefix, depth):
        class One:
            approximate, doubt = odds.approximate[index : index + 1], odds.doubt[index : index + 1]

            def exact(self, _):
                return odds.exact(index)

        bits = random.Random(f"{self._seed} {prefix} {depth}").getrandbits(4000)
        return odds_coins(One(), prefix, depth, ScriptedBits(format(bits, "04000b")))[0]


ANY = {
    "plain": ([5, 3, 2, 0, 7, 1], 2, None, "1/2"),
    "ties": ([2, 2, 2, 0, 0, 2], 3, None, 1),
    "far": ([20, 9, 2, 0, 40, 13], 3, None, 1),
    "runs": ([3, 1, 0], 4, [1, 4, 3], 1),
    "far runs": ([30, 8, 0], 3, [2, 2, 3], 1),
    "most": ([4, 3, 1, 0, 0, 2], 5, None, "1/3"),
    "floats": ([0.1, 0.25, -3.5, 1e-9, 2.75], 2, None, "0.7"),
    "thirds": ([Fraction(1, 3), Fraction(2, 7), Fraction(10**20, 10**20 + 1), Fraction(-2)], 2, None, 1),
    "long fractions": (
        [Fraction(10**30, 7), Fraction(10**30, 7) - Fraction(1, 3), Fraction(10**30, 7) - 2, 0],
        2,
        None,
        1,
    ),
    "beyond int64": ([10**30, 10**30 - 1, 10**30 - 3, 10**30 - 3, 0], 3, None, 1),
    "far from the best": ([2**62, 5, 4, 4, 1, 0], 3, None, "1/3"),
    "ties far from the best": ([2**62, 5, 5, 5, 5, 5], 3, None, "1/3"),
    "unsigned": ([2**64 - 1, 2**64 - 2, 2**63, 2**63 - 3, 0], 3, None, "1/7"),
    "huge floats": ([1.7e308, -1.7e308, -1.7e308, 1e300, 1.0], 4, None, 1),
    "huge floats, all near the end": ([1.7e308, -1.7e308, -1.6e308, -1.7e308], 2, None, 1),
    "tiny floats": ([5e-324, 0.0, 1e-310, 1e-310, -1e-310], 2, None, 1),
    "tiny floats, steep": ([5e-324, 0.0, 1e-310, 1e-310, -1e-310], 2, None, Fraction(2) ** 800),
    "steep": ([0, 5, 5, 9, 5], 3, None, Fraction(10**300, 3)),
    "steep and near": (
        [0, Fraction(1, 10**300), Fraction(1, 10**300), Fraction(3, 10**300)],
        2,
        None,
        Fraction(10**300, 3),
    ),
    "flat": ([0, 5, 5, 9, 5], 3, None, Fraction(1, 3 * 10**300)),
    "flat and far": ([0, -(10**300), -(10**300), 10**299], 2, None, Fraction(1, 3 * 10**300)),
}


def tries_for(case, shift=None):
    scores, k, lengths, rate = ANY[case]
    with pytest.MonkeyPatch.context() as patched:
        if shift is not None:
            patched.setattr(sets, "_threshold", lambda *_: float(shift))
        return tries_of(scores, k, lengths, rate)


@pytest.mark.parametrize("case", ANY)
def test_floats_decide_as_the_exact_coins_do(case, monkeypatch):
    """The same bits give the same upsets, if floats are trusted, and if they are made to doubt everything."""
    monkeypatch.setattr(sets, "odds_coins", by_draws)
    kinds = set()
    for seed, shift in itertools.product(range(2), (None, 0, 3)):
        trusting, doubting = tries_for(case, shift), tries_for(case, shift)
        low, high = trusting._low.copy(), trusting._high.copy()
        doubting._low[:], doubting._high[:] = 0, 2**15
        doubting._doubt = np.full(doubting._doubt.size, np.inf)
        found = []
        for tries in (trusting, doubting):
            draws = KeyedDraws(tries, seed)
            draws._low, draws._high = low, high
            heads, balance = tries._hot_upsets(6, draws)
            far = tries._skipped_upsets(6, draws)
            found.append((heads.tolist(), balance.tolist(), [part.tolist() for part in far]))
        assert found[0] == found[1]
        kinds |= {flag for row in found[0][0] for flag in row}
    assert kinds in ({False, True}, set())


# The rate of events.


def log_sum(exponents):
    """The logarithm of the sum of exp(a) for exact a; what is far below the largest one is a ball around nothing."""
    most = max(exponents)
    terms = (ball(a - most).exp() if a - most > -(10**6) else arb(0, arb(2) ** -9_000) for a in exponents)
    return ball(most) + sum(terms, arb(0)).log()


def true_log_rate(scores, k, lengths, rate, theta):
    """The sum over all sets of any size of the product of their odds, times what makes the best k-set's rate one."""
    exponents = exact_exponents(scores, rate)
    every = [e for e, m in zip(exponents, lengths or [1] * len(scores), strict=True) for _ in range(m)]
    best = sum(sorted(every)[:k])
    subsets = itertools.chain.from_iterable(itertools.combinations(every, size) for size in range(len(every) + 1))
    return log_sum([len(own) * theta - sum(own) - k * theta + best for own in subsets])


def assert_encloses(tries, truth):
    rate = tries.rate
    assert abs(ball(Fraction(rate.approximate)) - truth) <= ball(Fraction(rate.doubt))
    for digits in (5, 30, 80):
        low, high = rate.bracket(digits)
        assert not ball(low) > truth
        assert not ball(high) < truth
        assert high - low <= Fraction(1, 10 ** (digits - 2)), "it shrinks to the truth"


@pytest.mark.parametrize("shift", [None, 0, slow(2), slow(-1.5), slow(30)])
@pytest.mark.parametrize("case", ANY)
def test_the_rate_encloses_the_sum_over_all_sets(case, shift):
    """Also where theta is exactly the exponent of a candidate, of several, or badly chosen."""
    scores, k, lengths, rate = ANY[case]
    tries = tries_for(case, shift)
    with ctx.workprec(4000):
        assert_encloses(tries, true_log_rate(scores, k, lengths, rate, tries._theta))


NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.integers(-(2**70), 2**70),
    st.fractions(-5, 5, max_denominator=50),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-3, 3),
)
RUNS = st.lists(st.tuples(NUMBERS, st.integers(1, 3)), min_size=1, max_size=4).filter(
    lambda runs: sum(m for _, m in runs) > 1
)
RATES = st.fractions("1/100", 100, max_denominator=100) | st.sampled_from(
    [Fraction("1e-300"), Fraction("1e300"), Fraction(10**300, 3), Fraction(2) ** -899, Fraction(2) ** 901]
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(runs=RUNS, rate=RATES, where=st.floats(0, 1, exclude_max=True))
def test_the_rate_encloses_the_truth_for_any_scores(runs, rate, where):
    scores, lengths = zip(*runs, strict=True)
    k = 1 + int(where * (sum(lengths) - 1))
    with np.errstate(all="ignore"), ctx.workprec(9000):
        tries = tries_of(scores, k, lengths, rate)
        assert_encloses(tries, true_log_rate(scores, k, lengths, rate, tries._theta))


def chance_of_k(tries, scores, rate):
    """The probability that one try has exactly k heads, and the variance of their number, from exact distances."""
    exponents = exact_exponents(scores, rate)
    law = np.array([1.0])
    variance = 0.0
    for exponent, length in zip(exponents, tries._lengths.tolist(), strict=True):
        ahead = min(max(tries._theta - exponent, Fraction(-700)), Fraction(700))
        p = 1 / (1 + math.exp(-ahead))
        for _ in range(length):
            law = np.convolve(law, [1 - p, p])
            variance += p * (1 - p)
    return law[tries._k], variance


@settings(max_examples=80, deadline=None)
@given(
    runs=st.lists(st.tuples(NUMBERS, st.integers(1, 40)), min_size=2, max_size=12), rate=RATES, where=st.floats(0, 1)
)
@example(runs=[(1.7e308, 1), (-1.6e308, 555), (-1.7e308, 555)], rate=Fraction(1), where=0.27)
@example(runs=[(2**62, 1), (50, 300), (0, 300)], rate=Fraction(1, 3), where=0.3)
@example(runs=[(9, 1), (5, 60), (0, 1)], rate=Fraction(10**300, 3), where=0.5)
@example(runs=[(0, 10), (1, 10)], rate=Fraction(1), where=1.0)
def test_theta_needs_few_tries_whatever_the_scores_are(runs, rate, where):
    """About one try in sqrt(2 pi v + 1) has k heads: any theta is right, but many would try for ever."""
    scores, lengths = zip(*runs, strict=True)
    total = sum(lengths)
    k = min(1 + int(where * (total - 1)), total - 1)
    with np.errstate(all="ignore"):
        chance, variance = chance_of_k(tries_of(scores, k, lengths, rate), scores, rate)
    assert chance > 0.7 / math.sqrt(2 * math.pi * variance + 2)


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, ExponentialMechanism])
@pytest.mark.parametrize("case", ANY)
def test_every_selection_ends(case, mechanism):
    scores, k, lengths, rate = ANY[case]
    with at_once(20):
        for _ in range(5):
            chosen = mechanism(Fraction(rate), score_range=1).select_set(scores, k, lengths=lengths)
            assert len(set(chosen)) == k


# What a set loses.


@settings(max_examples=60, deadline=None)
@given(runs=RUNS, rate=RATES, where=st.floats(0, 1, exclude_max=True), data=st.data())
def test_the_exponent_of_a_set_is_what_it_loses(runs, rate, where, data):
    scores, lengths = zip(*runs, strict=True)
    k = 1 + int(where * (sum(lengths) - 1))
    members = all_members(lengths)
    chosen = set(data.draw(st.permutations(members))[:k])
    with np.errstate(all="ignore"):
        tries = tries_of(scores, k, lengths, rate)
        upsets = sorted(set(tries.members([])) ^ chosen)
        assert tries.members(upsets) == sorted(chosen)
        exact = [Fraction(scores[run]) for run, _ in members]
        best = sum(sorted(exact)[-k:])
        assert tries.exponent(upsets) == rate * (best - sum(Fraction(scores[run]) for run, _ in chosen))


@settings(max_examples=60, deadline=None)
@given(runs=RUNS, where=st.floats(0, 1))
def test_the_k_best(runs, where):
    scores, lengths = zip(*runs, strict=True)
    k = min(1 + int(where * sum(lengths)), sum(lengths))
    with np.errstate(all="ignore"):
        counts, last = best_members(gaps_of(as_vector(list(scores)), Rate(Fraction(1))), np.array(lengths), k)
    assert counts.sum() == k
    assert (counts <= lengths).all()
    ranked = sorted((Fraction(score) for score, m in runs for _ in range(m)), reverse=True)
    found = sorted((Fraction(scores[run]) for run, m in enumerate(counts.tolist()) for _ in range(m)), reverse=True)
    assert found == ranked[:k]
    assert Fraction(scores[last]) == ranked[k - 1]


@settings(max_examples=60, deadline=None)
@given(runs=RUNS, rate=RATES, place=st.floats(0, 1, exclude_max=True))
def test_differences_of_exponents_are_right_however_large_these_are(runs, rate, place):
    """They are within a relative 2**-50.9, or not representable: below 2**-1000, or beyond 2**100."""
    scores = [score for score, _ in runs]
    own = int(place * len(scores))
    with np.errstate(all="ignore"):
        gaps = gaps_of(as_vector(scores), Rate(rate))
        found = gaps.beyond(own).tolist()
    exponents = exact_exponents(scores, rate)
    for exponent, near in zip(exponents, found, strict=True):
        truth = exponent - exponents[own]
        assert (near > 0) - (near < 0) in ((truth > 0) - (truth < 0), 0)
        if abs(near) >= min(gaps.largest_exponent, 1.7e308):
            assert abs(truth) >= Fraction(2) ** 100
        else:
            assert abs(Fraction(near) - truth) <= abs(truth) * Fraction(2**-50.9) + Fraction(1, 2**1000)


# Tiers.


@pytest.mark.parametrize("lengths", [[1, 1, 1], [3, 1, 2], [2**58, 5, 2**59]], ids=str)
def test_members_of_a_tier_are_found_by_their_number(lengths):
    tier = Tier(8, np.array([4, 7, 9]), np.cumsum(np.array(lengths)))
    assert tier.size == sum(lengths)
    numbers, expected, start = [], [], 0
    for run, length in zip((4, 7, 9), lengths, strict=True):
        for rank in {0, length // 2, length - 1}:
            numbers.append(start + rank)
            expected.append((run, rank))
        start += length
    runs, ranks = tier.located(np.array(numbers))
    assert list(zip(runs.tolist(), ranks.tolist(), strict=True)) == expected


def test_a_tier_without_members_has_none():
    tier = Tier(8, np.empty(0, np.int64), np.empty(0, np.int64))
    assert tier.size == 0
    assert [part.tolist() for part in tier.located(np.arange(0))] == [[], []]


@pytest.mark.parametrize(("length", "most"), [(1, 16), (2**30, 28), (2**50, 48), (2**59, 52)])
def test_every_member_is_in_one_tier_and_its_upsets_have_as_many_zeros(length, most):
    """Of runs that are long enough to need more zeros, too: the last one has so many members."""
    scores = np.arange(0, -120, -1) / 3
    tries = tries_of(scores.tolist(), 40, [1] * 119 + [length])
    found = sorted(run for tier in tries._tiers for run in tier.runs.tolist())
    assert found == list(range(120))
    assert max(tier.zeros for tier in tries._tiers) == most
    for tier in tries._tiers:
        for run in tier.runs.tolist():
            with ctx.workprec(200):
                chance = 1 / (1 + ball(tries.exact(run)).exp())
                assert chance < arb(2) ** -tier.zeros
                # and not many more: eight, up to what rounding may move, unless it is the last tier
                assert tier.zeros == most or chance > arb(2) ** -(tier.zeros + 9)


def test_the_rate_of_scores_made_exact_is_used():
    """Three sources of exponents: arrays, a common denominator and long fractions."""
    gaps = [gaps_of(as_vector(scores), Rate(Fraction(1))) for scores in ([3, 1], [Fraction(1, 3), 1], [10**30, 1])]
    assert [isinstance(each, RationalGaps) for each in gaps] == [False, False, True]


def test_the_longest_runs_end():
    assert PermuteAndFlip(1, score_range=1).select_set([200, 0], 1, lengths=[1, 2**60 - 1]) == [0]
    assert PermuteAndFlip(1, score_range=1).select_set([43, 0], 1, lengths=[1, 2**58])[0] <= 2**58


def test_kernels_return_members_in_order():
    gaps = gaps_of(np.array([0, 900, 1000]), Rate(Fraction(1)))
    for choose in (choose_set, choose_set_by_waiting):
        found = choose(gaps, np.array([2, 3, 1]), 3, Draws())
        assert found in ([(1, a), (1, b), (2, 0)] for a, b in itertools.combinations(range(3), 2))
