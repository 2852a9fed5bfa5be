"""Several quantiles by splitting: sub-places, ranks, runs of cuts and the laws of answers, against brute force."""

import itertools
import random
from collections import Counter, defaultdict
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.mechanisms.parameters import Neighbours, of_quantile
from dpselect.questions import splitting
from dpselect.questions.rows import Places, quantile_score_runs
from dpselect.questions.splitting import Part, People, SubPlaces, split_quantiles
from dpselect.selection.draws import Draws
from tests.seam import ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.small_splits import HALVES, Splits, Standing, depths, few_sub_places, mixture, price, split_at
from tests.top_k.exact import flip_pmf, softmax

SUB_PLACES = 2**32
KINDS = pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism], ids=lambda kind: kind.name)


def data_of(values, individuals=None, between=None):
    count = len(values)
    return Places(
        np.array(values, np.uint64),
        np.zeros(count, np.bool_) if between is None else np.array(between, np.bool_),
        np.ones(count, np.int64) if individuals is None else np.array(individuals, np.int64),
    )


def at(epsilon, levels, kind=PermuteAndFlip):
    """A mechanism for each level within a part, at an equal share for each depth."""

    def mechanism(level):
        sensitivity = of_quantile(level, Neighbours.ADD_REMOVE, in_groups=True).largest_change
        return kind(Fraction(epsilon) / depths(len(levels)), sensitivity=sensitivity)

    return mechanism


# Sub-places.


def cells_of_rank(rank, count, draws, many, trials=2_500):
    """How often the sub-place of a rank is in each of eight equal cells."""
    return np.bincount(
        [SubPlaces(count, draws, many).between(rank, rank + 1).item() >> 29 for _ in range(trials)], minlength=8
    )


@pytest.mark.parametrize("many", [0, 1, 4, 100])
@pytest.mark.parametrize("rank", [0, 6, 11])
def test_sub_places_are_order_statistics_of_uniform_numbers(rank, many):
    """A rank alone is drawn: the number k of n uniform ones has a beta distribution."""
    right = np.diff(stats.beta(rank + 1, 12 - rank).cdf(np.linspace(0, 1, 9)))
    found = cells_of_rank(rank, 12, Draws(), many)
    assert_fits(found, right)
    other = rank - 1 if rank else 1
    assert_rejected(found, np.diff(stats.beta(other + 1, 12 - other).cdf(np.linspace(0, 1, 9))), truth=right)


@pytest.mark.parametrize("many", [0, 3, 100])
def test_all_sub_places_together_are_uniform(many):
    """Their highest bits in each of 16 cells, and how many of one draw share a cell, and all lower bits."""
    drawn = [SubPlaces(8, Draws(), many).between(0, 8) for _ in range(1_500)]
    everyone = np.concatenate(drawn)
    assert everyone.dtype == np.uint32
    for shift in (28, 20, 9, 0):
        assert_fits(np.bincount(everyone >> np.uint32(shift) & np.uint32(15), minlength=16), [1 / 16] * 16)
    lower = np.bincount([int((own < 2**31).sum()) for own in drawn], minlength=9)
    right = stats.binom(8, 0.5).pmf(range(9))
    assert_fits(lower, right)
    assert_rejected(lower, stats.binom(8, 0.6).pmf(range(9)), truth=right)


def test_people_keep_the_sub_places_that_are_drawn_for_their_own_value():
    """Those of one value are in order among themselves; those of the lowest values are not the lowest of all."""
    words = [9, 7, 3, 1, 5]
    script = ScriptedBits("".join(f"{word:032b}" for word in words))
    data = Places(np.array([2, 4, 5], np.uint64), np.zeros(3, np.bool_), np.array([2, 1, 2]))
    own = [2 << 32 | 7, 2 << 32 | 9, 4 << 32 | 3, 5 << 32 | 1, 5 << 32 | 5]
    assert People(data, script).places(0, 5) == own
    people = People(data, ScriptedBits("".join(f"{word:032b}" for word in [3, 9, 7, 1, 5])))
    assert [people.below(4 << 32 | 3), people.below(4 << 32 | 4)] == [2, 3]  # those of the middle value come first
    assert people.places(0, 5) == own


@pytest.mark.parametrize("people", [0, 1, 5_000])
def test_the_first_cut_is_among_all_places(people):
    asked = []

    class First:
        """It chooses the first place, and writes down how many there are."""

        rate = Fraction(1)

        def select_runs(self, scores, lengths):
            asked.append(sum(map(int, lengths)))
            return 0

        def select_bounded(self, below_best, lengths, distance):
            asked.append(sum(lengths))
            return len(lengths) - 1, lengths[-1] - 1

    data = Places(np.array([3][:people], np.uint64), np.zeros(min(people, 1), np.bool_), np.array([people][:people]))
    split_quantiles(data, 7, [Fraction(1, 3), Fraction(2, 3)], lambda _: First(), Draws())
    assert asked[0] == 7 * 2**32


def test_a_crowd_is_resolved_only_where_it_must_be():
    class Counting(Draws):
        asked = 0

        def bits(self, count):
            self.asked += count
            return super().bits(count)

        def words(self, count, width):
            self.asked += count * width
            return super().words(count, width)

    draws = Counting()
    subs = SubPlaces(10**7, draws, many=1000)
    [middle] = subs.between(5 * 10**6, 5 * 10**6 + 1).tolist()
    assert abs(middle - 2**31) < 2**32 / 100
    assert draws.asked < 3 * 10**7


# Ranks.


@st.composite
def crowds(draw):
    """Values with people, ascending; some of them twice, on and behind a candidate."""
    values = draw(st.lists(st.sampled_from([0, 1, 2, 5, 9, 2**40, 2**64 - 1]), max_size=6, unique=True).map(sorted))
    rows = []
    for value in values:
        rows.append((value, False, draw(st.integers(1, 9))))
        if draw(st.booleans()):
            rows.append((value, True, draw(st.integers(1, 3))))
    return rows


@settings(max_examples=150, deadline=None)
@given(data=st.data(), rows=crowds(), many=st.sampled_from([0, 1, 3, 8, 1000]))
def test_ranks_and_counts_are_those_of_a_sorted_list(data, rows, many):
    values, between, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    people = People(data_of(values, numbers, between), Draws(), many)
    total = sum(numbers)
    assert people.total == total
    ranges = data.draw(st.lists(st.tuples(st.integers(0, total), st.integers(0, total)), max_size=4))
    places = st.tuples(st.sampled_from([0, 1, 3, 9, 2**64 - 1]), st.integers(0, SUB_PLACES - 1))
    limits = [value << 32 | sub for value, sub in data.draw(st.lists(places, max_size=4))]
    seen = [(start, stop, people.places(start, stop)) for start, stop in ranges]
    counted = [(limit, people.below(limit)) for limit in limits]
    everyone = people.places(0, total)
    assert everyone == sorted(everyone)
    stand = Counter()
    for value, _, number in rows:
        stand[value] += number
    assert Counter(place >> 32 for place in everyone) == stand
    for start, stop, found in seen:
        assert found == everyone[start:stop]
    for limit, found in counted:
        assert found == sum(place < limit for place in everyone)
    for place in everyone:
        assert people.below(place) == sum(own < place for own in everyone)


# Runs of cuts.

SIZE, BITS = 5, 2
PLACES = SIZE << BITS


def distance(table, level, part, cut):
    """The definition: how far the number of people of the part below the cut is from its rank."""
    own = table[part.start : part.stop]
    return abs(level.denominator * sum(place < cut for place in own) - level.numerator * len(own))


@st.composite
def parts(draw):
    """People at places, and a part of them as two cuts make it."""
    table = sorted(draw(st.lists(st.integers(0, PLACES - 1), max_size=12)))
    low, high = sorted(draw(st.tuples(st.integers(0, PLACES - 1), st.integers(0, PLACES - 1))))
    is_last = draw(st.booleans())
    high = PLACES - 1 if is_last else high
    low = min(low, high)
    start, stop = (sum(place < cut for place in table) for cut in (low, high))
    return table, Part(start, len(table) if is_last else stop, low, high)


LEVELS = st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1, 100), Fraction(333, 1000)])


@settings(max_examples=300, deadline=None)
@given(world=parts(), level=LEVELS, reach=st.integers(1, 14))
def test_runs_of_cuts_are_a_partition_with_the_right_distances(world, level, reach):
    table, part = world
    with few_sub_places(BITS):
        runs = splitting._CutRuns.near(Standing(table), part, level, reach)
        owner = [
            (first + rank, run, rank)
            for run, (first, length) in enumerate(zip(runs.firsts, runs.lengths, strict=True))
            for rank in range(length)
        ]
        assert sorted(cut for cut, _, _ in owner) == list(range(part.low, part.high + 1))
        truth = {cut: distance(table, level, part, cut) for cut, _, _ in owner}
        best = min(truth.values())
        assert min(runs.below_best[: runs.inside]) == 0
        for cut, run, rank in owner:
            assert runs.bounds[run] <= truth[cut]
            assert run >= runs.inside or runs.bounds[run] == truth[cut]
            assert runs.distance(run, rank) == truth[cut] - best
            assert runs.below_best[run] <= runs.distance(run, rank)
            assert run < runs.inside or runs.below_best[run] >= reach * level.denominator
        assert runs.is_complete == (runs.inside == len(runs.lengths))
        if runs.is_complete:
            assert runs.firsts == sorted(runs.firsts)
        if reach >= part.size:
            assert runs.is_complete


def test_the_reach_is_far_enough_and_of_any_size():
    """The runs beyond it have a share below exp(-30) of one place, for any rate, also beyond all floats."""
    for epsilon in (Fraction(1, 10**400), 5e-324, Fraction(1, 1000), 1, 10**6, 10**400):
        part, level = Part(0, 10**9, 0, 2**96 - 1), Fraction(9, 10)
        mechanism = PermuteAndFlip(epsilon, sensitivity=9)
        reach = splitting._reach(part, mechanism, level.denominator)
        assert reach >= 3
        assert mechanism.rate * level.denominator * (reach - 2) >= Fraction(30 + 96 * 0.69)


@KINDS
@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**400), 5e-324, "1e-9", 1, 10**9, 10**400], ids=lambda e: f"{str(e)[:9]}"
)
def test_epsilons_of_any_size(epsilon, kind):
    levels = HALVES[7]
    answers = split_quantiles(
        data_of([0, 3, 5, 9], [4, 1, 4, 9]), 12, levels, at(Fraction(epsilon), levels, kind), Draws()
    )
    assert answers == sorted(answers)
    assert all(0 <= answer < 12 for answer in answers)
    if Fraction(epsilon) > 10**6:
        assert answers[3] in (5, 6, 7, 8, 9)


# Answers.


@settings(max_examples=150, deadline=None)
@given(
    rows=st.dictionaries(st.integers(0, 40), st.integers(1, 30), max_size=8),
    levels=st.sets(st.integers(1, 999), min_size=1, max_size=12).map(sorted),
    epsilon=st.sampled_from(["0.01", "1", "100"]),
    size=st.sampled_from([41, 10**6, 2**64]),
    kind=st.sampled_from([PermuteAndFlip, ExponentialMechanism]),
    many=st.sampled_from([1, 4, 1 << 20]),
)
def test_answers_never_cross(rows, levels, epsilon, size, kind, many):
    values = sorted(rows)
    wanted = [Fraction(level, 1000) for level in levels]
    with patch.object(splitting, "People", lambda data, draws: People(data, draws, many)):
        data = data_of(values, [rows[value] for value in values])
        answers = split_quantiles(data, size, wanted, at(epsilon, wanted, kind), Draws())
    assert len(answers) == len(levels)
    assert answers == sorted(answers)
    assert answers[0] >= 0
    assert answers[-1] < size


EDGES = {
    "nobody": ([], 10),
    "nobody, one candidate": ([], 1),
    "one candidate": ([0] * 7, 1),
    "one person": ([3], 10),
    "one place": ([4] * 500, 10),
    "the ends": ([0] * 40 + [2**64 - 1] * 40, 2**64),
    "the first": ([0] * 40, 2**64),
    "the last": ([2**64 - 1] * 40, 2**64),
    "nobody, 2**64 candidates": ([], 2**64),
}


@KINDS
@pytest.mark.parametrize("case", EDGES)
def test_edges(case, kind):
    """With a large epsilon the reach is a few ranks."""
    values, size = EDGES[case]
    for levels, epsilon in itertools.product(HALVES.values(), (1, 10**6)):
        answers = split_quantiles(data_of(values), size, levels, at(epsilon, levels, kind), Draws())
        assert answers == sorted(answers)
        assert answers[0] >= 0
        assert answers[-1] < size
        if epsilon > 1 and len(set(values)) == 1 and len(values) > len(levels):  # otherwise a part may have nobody
            assert set(answers) == set(values)


class Noting:
    """A mechanism that notes what it is asked, and answers with the first candidate."""

    rate = Fraction(1)

    def __init__(self):
        self.asked = []

    def select_runs(self, scores, lengths):
        self.asked.append((list(map(int, scores)), list(map(int, lengths))))
        return 0


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 3)])
def test_one_level_is_a_plain_quantile(level):
    """The same scores and lengths. People between two candidates stand at the lower one."""
    rng = random.Random(6)
    for size in (10, 2**64):
        values = sorted(rng.sample(range(10), 5))
        numbers = [rng.randrange(1, 9) for _ in values]
        noting = Noting()
        data = data_of(values, numbers, [rng.random() < 0.5 for _ in values])
        assert split_quantiles(data, size, [level], lambda _, noting=noting: noting, Draws()) == [0]
        scores, lengths = quantile_score_runs(data_of(values, numbers), size, level)
        assert noting.asked == [(scores.tolist(), lengths.tolist())]
    noting = Noting()
    split_quantiles(data_of([2, 2], [3, 4], [False, True]), 5, [level], lambda _, noting=noting: noting, Draws())
    scores, lengths = quantile_score_runs(data_of([2], [7]), 5, level)
    assert noting.asked == [(scores.tolist(), lengths.tolist())]


# The law of answers, with the mechanisms themselves and random sub-places of one bit.


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("reach", [None, 1])
@pytest.mark.parametrize("count", [2, 3])
def test_drawn_answers_fit_the_recursion_written_plainly(count, reach, kind):
    """An epsilon whose steps are rational in floats: the odds are those of the law."""
    levels, values = HALVES[count], (0, 0, 0, 1, 2)
    paid = price(levels, Neighbours.ADD_REMOVE)
    law = {PermuteAndFlip: flip_pmf, ExponentialMechanism: softmax}[kind]
    epsilon = 4
    odds = Fraction(np.exp(-epsilon / paid.steps)).limit_denominator(10**6)
    right = mixture(Splits(levels, 3, 2, paid, odds, law), values, shown=True)
    halved = mixture(Splits(levels, 3, 2, paid, odds**2, law), values, shown=True)
    unsplit = Splits(levels, 3, 2, paid, odds, law).outcomes(tuple(2 * value for value in values))
    together = defaultdict(float)
    for outcome, probability in unsplit.items():
        together[Splits(levels, 3, 2, paid, odds, law).answers(outcome)] += float(probability)
    found = Counter()
    with few_sub_places(1, reach):
        for _ in range(4_000):
            table = sorted(2 * value + random.getrandbits(1) for value in values)
            answers, _ = split_at(table, 3, levels, at(epsilon, levels, kind))
            found[tuple(answers)] += 1
    shown = sorted(right)
    assert found.keys() <= right.keys()
    counts, truth = [found[own] for own in shown], [float(right[own]) for own in shown]
    assert_fits(counts, truth)
    assert_rejected(counts, [float(halved[own]) for own in shown], truth=truth)
    assert_rejected(counts, [together[own] for own in shown], truth=truth)


# Scores that 64 bits do not hold.


def plain_scores(data, size, level):
    a, b, n = level.numerator, level.denominator, sum(data.individuals.tolist())
    totals = list(itertools.accumulate(data.individuals.tolist(), initial=0))
    at_value = [min(0, a * n - b * before, b * after - a * n) for before, after in itertools.pairwise(totals)]
    around = [-abs(b * total - a * n) for total in totals]
    return [score for pair in itertools.zip_longest(around, at_value) for score in pair if score is not None]


@pytest.mark.parametrize(
    ("level", "people"),
    [
        (Fraction(1, 10**6), 10**9),
        (Fraction(999_999, 10**6), 10**9),
        (Fraction(1, 10**6), (2**63 - 1) // 10**6 - 2),
        (Fraction(1, 10**6), (2**63 - 1) // 10**6 + 2),
        (Fraction(1, 10**10), 3 * 10**9),
        (Fraction(10**15 + 1, 3 * 10**15 + 1), 2_800 * 10**3),
        (Fraction(2**70 - 1, 2**70), 12),
    ],
)
def test_scores_of_large_denominators_are_exact(level, people):
    """Up to a denominator of 10**6 and 9 * 10**12 people in 64 bits; beyond that in Python's integers."""
    data = data_of([2, 5, 9], [people // 3, people - people // 3 - 1, 1])
    scores, lengths = quantile_score_runs(data, 12, level)
    assert scores.tolist() == plain_scores(data, 12, level)
    assert lengths.tolist() == [2, 1, 2, 1, 3, 1, 2]
    assert (scores.dtype == np.int64) == (level.denominator * people < 2**63)
    if level.denominator > 2**64:  # then a few units of the score make no difference
        return
    for kind in (PermuteAndFlip, ExponentialMechanism):
        mechanism = kind(10**6, sensitivity=max(level.numerator, level.denominator - level.numerator))
        chosen = mechanism.select_runs(scores, lengths)
        assert scores[np.searchsorted(np.cumsum(lengths.astype(np.int64)), chosen, side="right")] == max(
            scores.tolist()
        )
