"""Theorems 10 to 15 of docs/theory.md in small worlds, by brute force in exact arithmetic."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import mpmath
import pytest

from tests import reference
from tests.top_k import exact, waiting
from tests.top_k.exact import (
    LAWS,
    flip_pmf,
    heads,
    histograms,
    margin,
    pairs_of_people,
    sets,
    softmax,
    total,
    truncated,
)

pytestmark = pytest.mark.slow

HALF, QUARTER, NEARLY_ONE = Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)


def coins(*probabilities: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, probabilities))


def is_reached(ratio: Fraction, base: Fraction, bound: int) -> bool:
    """The log-ratio is at most the bound, and at least nine tenths of it; both in units of the rate."""
    return ratio <= base**-bound and ratio**10 >= base ** (-9 * bound)


def test_the_integral_is_permute_and_flip():
    """The laws of this file are those of the paper."""
    for case in (coins("1"), coins("1", "1/3"), coins("1", "1", "1/7", "1/2"), coins("1", "1/5", "1/5", "2/3", "1/9")):
        assert list(flip_pmf(case)) == reference.pmf_by_permutations(case)
        assert list(softmax(case)) == reference.softmax_pmf(case)


# Theorem 10.

MIXTURES = [
    coins("1"),
    coins("1", "1/2"),
    coins("1", "1", "1"),
    coins("1", "1", "1/3", "1/100"),
    coins("1", "9/10", "9/10", "4/5", "1/2"),
]


def mixture(case, parts, power=0):
    """Weights and the mixed law of the first parts; the weights of the theorem have power zero."""
    tails = exact.all_tails(case)
    weights = [sum(own**j for own in case) * exact.moment(tails, j - 1 + power) for j in range(1, parts + 1)]
    mixed = [
        sum(weight * own**j / sum(p**j for p in case) for j, weight in enumerate(weights, start=1)) for own in case
    ]
    return weights, mixed


@pytest.mark.parametrize("case", MIXTURES, ids=str)
def test_permute_and_flip_is_a_mixture_of_exponential_mechanisms(case):
    """What the first parts leave out is between nothing and a bound that falls to zero, for each candidate."""
    truth = reference.pmf_by_permutations(case)
    tails = exact.all_tails(case)
    for parts in (1, 2, 7, 60):
        weights, mixed = mixture(case, parts)
        assert 0 <= 1 - sum(weights) <= Fraction(len(case), parts + 1)
        for own, whole, part in zip(case, truth, mixed, strict=True):
            assert 0 <= whole - part <= own ** (parts + 1) / (parts + 1)
            assert whole - part == own ** (parts + 1) * exact.moment(exact.without(tails, own), parts)


def test_other_weights_are_no_mixture():
    """With one power of t more the weights sum to less than one, and what is left out does not fall to zero."""
    for case in MIXTURES:
        weights, _ = mixture(case, 60, power=1)
        assert 1 - sum(weights) > Fraction(len(case), 61)


def test_each_part_of_the_mixture_is_better_than_the_one_before():
    """So permute-and-flip is never worse than the exponential mechanism."""
    for case in MIXTURES:
        for worst in set(case):
            tail = [sum(own**j for own in case if own <= worst) / sum(own**j for own in case) for j in range(1, 9)]
            assert tail == sorted(tail, reverse=True)
            flips = sum(p for own, p in zip(case, reference.pmf_by_permutations(case), strict=True) if own <= worst)
            assert flips <= tail[0]


# Theorem 11. The series need the coins of rivals to be below one half.

RACES = [
    coins("1"),
    coins("1", "1/4"),
    coins("1", "1", "1/5"),
    coins("1", "1/4", "1/4", "1/4", "1/4"),
    coins("1", "1/4", "1/9", "1/27"),
]


def far_apart(one, other):
    return max(abs(float(a - b)) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("case", RACES, ids=str)
def test_waiting_is_permute_and_flip(case):
    """Event by event: also where most raw events are no event, but their time passes."""
    for surplus in (1, Fraction(4, 3), 5):
        assert far_apart(waiting.waiting_pmf(case, surplus * sum(case)), flip_pmf(case)) < 1e-12


def test_a_clock_that_is_reset_and_a_fresh_time_are_wrong():
    """The numbers of the page: the probability of the best of five."""
    case = coins("1", "1/4", "1/4", "1/4", "1/4")
    wrong = waiting.reset_pmf(case, sum(case)), waiting.fresh_pmf(case, sum(case))
    lost = waiting.reset_pmf(case, 3 * sum(case))
    assert [round(float(pmf[0]), 4) for pmf in (flip_pmf(case), *wrong, lost)] == [0.6102, 0.5837, 0.6036, 0.5304]
    for other in RACES[1:]:
        for pmf in (waiting.reset_pmf(other, sum(other)), waiting.fresh_pmf(other, sum(other))):
            assert abs(float(sum(pmf)) - 1) < 1e-12
            assert far_apart(pmf, flip_pmf(other)) > 1e-4


def test_the_hazards_in_the_clock_are_those_of_the_arrivals():
    """-(ln F)' (1 - t) is the sum of p times acceptance, at rational t = 1 - exp(-y), for coins of any size."""
    for case in (*RACES, *MIXTURES):
        tails = exact.all_tails(case)
        slope = [k * c for k, c in enumerate(tails)][1:]
        for t in (Fraction(0), Fraction(1, 7), Fraction(2, 3), Fraction(99, 100)):
            accepted = sum(own * (1 - t) / (1 - own * t) for own in case)
            assert -exact.value_at(slope, t) * (1 - t) / exact.value_at(tails, t) == accepted


def test_the_race_accepts_with_its_probability():
    """Turn by turn, up to what is open after 200 turns."""
    for own, x in product(coins("1/100", "1/2", "9/10"), coins("1/50", "1/2", "1")):
        still, accepted = Fraction(1), Fraction(0)
        for _ in range(200):
            accepted += still * x
            still *= (1 - x) * own
        assert 0 <= x / (1 - own * (1 - x)) - accepted <= still


@pytest.mark.parametrize("case", RACES, ids=str)
def test_few_events_and_few_turns(case):
    """The mean number of events is Z Pr[best], below 1.3; races of rivals have at most p turns each, all at most 2."""
    everyone = sum(case)
    for surplus in (1, 3):
        raw = surplus * everyone
        events = waiting.mean_events(case, raw)
        assert abs(float(events - raw * flip_pmf(case)[0])) < 1e-12
        assert events <= Fraction(13, 10) * surplus
        turns = {own: float(waiting.mean_turns(case, raw, own)) for own in case if own < 1}
        assert sum(turns[own] for own in case if own < 1) <= 2
        for own, mean in turns.items():
            races = float(events * own / raw)
            assert races <= mean <= float(own)
            assert mean <= -math.log1p(-float(own)) / float(own) * races


def test_without_the_first_rule_the_race_has_no_mean():
    """The best candidate's turns, cut off after 10, 100 and 1,000, grow with the logarithm; with a tie they do not."""
    alone, tied = (exact.without(exact.all_tails(case), Fraction(1)) for case in (RACES[1], RACES[2]))

    def capped(others, most):
        """The sum over turns of the integral of t ** (turn - 1) F(t) / (1 - t), cut off."""
        return float(sum(exact.moment(others, turn) for turn in range(most)))

    for most in (10, 100):
        assert capped(alone, 10 * most) - capped(alone, most) > 0.74 * math.log(10)
        assert capped(tied, 10 * most) < 2


# Theorem 12.


@pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
def test_the_range_of_sums(replace):
    """Exactly min(m, k, d - k), twice that under replace, for all d up to five: no smaller range will do."""
    for items in range(2, 6):
        for size, most in product(range(1, items), range(1, items + 1)):
            pairs = pairs_of_people(items, most, replace=replace)
            change, spread = exact.score_range(total, sets(items, size), [(0,) * items], pairs)
            assert spread == min(most, size, items - size) * (1 + replace)
            assert change == min(most, size)


SUMS = [(3, 1, 1, 5), (3, 2, 3, 5), (4, 2, 1, 5), (4, 2, 2, 4), (4, 3, 2, 4), (5, 2, 2, 3)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("items", "size", "most", "highest"), SUMS)
def test_sets_scored_by_sums_are_private(items, size, most, highest, replace, law):
    """All histograms and all neighbours: at the rate epsilon / range the loss comes near epsilon and stays below.

    So with a range that is smaller by one the loss would be more than epsilon, wherever the range is at least two.
    """
    bound = min(most, size, items - size) * (1 + replace)
    pairs = pairs_of_people(items, most, replace=replace)
    ratio = exact.largest_ratio(law, total, sets(items, size), histograms(items, highest), pairs, QUARTER)
    assert is_reached(ratio, QUARTER, bound)
    assert bound == 1 or ratio > QUARTER ** -(bound - 1)


def mean_law(people, kept, law):
    """The law of one of three items, where `kept` lists the histograms that are equally likely."""
    choices = kept(people)
    laws = [law(heads(choice, HALF)) for choice in choices]
    return [sum(column) / len(laws) for column in zip(*laws, strict=True)]


def own_choice(people):
    """Each person keeps one item, every one with the same probability."""
    return [tuple(map(kept.count, range(3))) for kept in product(*people)]


def most_common(people):
    """Each person keeps the item that most people have."""
    common = Counter(item for person in people for item in person)
    kept = [max(person, key=lambda item: (common[item], item)) for person in people]
    return [tuple(map(kept.count, range(3)))]


def by_position(people):
    """What a person keeps depends on their place in the file."""
    kept = [person[place % len(person)] for place, person in enumerate(people)]
    return [tuple(map(kept.count, range(3)))]


@pytest.mark.parametrize("law", LAWS)
def test_random_truncation_is_private_and_looking_at_others_is_not(law):
    """All tables of three people with one to three of three items; neighbours lack one of them."""
    worst = {}
    for kept in (own_choice, most_common, by_position):
        worst[kept] = Fraction(1)
        for table in product([chosen for size in (1, 2, 3) for chosen in combinations(range(3), size)], repeat=3):
            here = mean_law(table, kept, law)
            for gone in range(3):
                there = mean_law(table[:gone] + table[gone + 1 :], kept, law)
                worst[kept] = max(worst[kept], *(max(a / b, b / a) for a, b in zip(here, there, strict=True)))
    assert worst[own_choice] <= 2
    assert worst[most_common] > 2
    assert worst[by_position] > 2


@pytest.mark.parametrize("shift", coins("1/97", "1/4", "1", "7/3", "64"))
def test_coins_with_k_heads_are_the_exponential_mechanism(shift):
    """For any threshold, with odds 2 ** counts times any shift; and C times the probability of a set is its coin."""
    for counts in ((3, 1, 1, 0), (5, 4, 2, 2), (2, 2, 2, 2), (6, 3, 1, 0)):
        odds = [shift * HALF**-count for count in counts]
        law = exact.coin_sets(odds)
        for size in (1, 2, 3):
            chosen = sets(4, size)
            scores = [total(counts, own) for own in chosen]
            given = sum(law[own] for own in chosen)
            assert tuple(law[own] / given for own in chosen) == softmax(heads(scores, HALF))
            rate = math.prod(1 + w for w in odds) * HALF ** max(scores) / shift**size
            assert tuple(rate * law[own] for own in chosen) == heads(scores, HALF)
            assert rate >= sum(heads(scores, HALF))


def test_the_rate_of_a_threshold_that_separates():
    """C is the product of the 1 + exp(-|c (x - tau)|), and of nothing so small if tau does not separate."""
    for counts in histograms(4, 4):
        for size, threshold in product((1, 2, 3), range(-1, 6)):
            odds = [HALF ** (threshold - count) for count in counts]
            rate = math.prod(1 + w for w in odds) * HALF ** (total(counts, tuple(range(size))) - size * threshold)
            short = math.prod(1 + HALF ** abs(count - threshold) for count in counts)
            separates = counts[size - 1] >= threshold >= counts[size]
            assert (rate == short) is separates
            assert rate >= short


def test_waiting_for_coins_is_permute_and_flip_over_sets():
    """Theorems 11 and 12 together: raw events are sets of heads of any size, at the rate C."""
    counts, size, base = (4, 2, 1, 0), 2, QUARTER
    chosen = sets(4, size)
    scores = [total(counts, own) for own in chosen]
    for threshold in (1, 2, 3):
        odds = [base ** (threshold - count) for count in counts]
        law = exact.coin_sets(odds)
        rate = math.prod(1 + w for w in odds) * base ** (max(scores) - size * threshold)
        events = tuple(rate * law[own] for own in chosen)
        assert far_apart(waiting.waiting_pmf(events, rate), flip_pmf(heads(scores, base))) < 1e-12
        assert far_apart(waiting.waiting_pmf(events, 2 * rate), flip_pmf(heads(scores, base))) < 1e-12
        assert far_apart(waiting.reset_pmf(events, rate), flip_pmf(heads(scores, base))) > 1e-3


def heads_in_all(odds):
    """The probabilities of the number of heads."""
    law = [mpmath.mpf(1)]
    for w in odds:
        law = [(a + w * b) / (1 + w) for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def best_threshold(counts, size):
    """The tau at which `size` heads are expected, by bisection at rate one."""
    low, high = mpmath.mpf(-60), mpmath.mpf(100)
    for _ in range(70):
        middle = (low + high) / 2
        expected = mpmath.fsum(1 / (1 + mpmath.exp(middle - x)) for x in counts)
        low, high = (middle, high) if expected > size else (low, middle)
    return low


def test_the_number_of_tries_at_the_best_threshold():
    """Where k heads are expected, at most sqrt(1 + 12 Var) tries are; 2 pi in place of 12, and no 1, would fail."""
    broken = 0
    for counts in ([9, 7, 6, 2, 1, 0], [3] * 10, [40, 1, 0, 0], list(range(30)), [0] * 50 + [5]):
        for size in (1, 2, len(counts) // 2, len(counts) - 1):
            tau = best_threshold(counts, size)
            odds = [mpmath.exp(x - tau) for x in counts]
            tries = 1 / heads_in_all(odds)[size]
            variance = mpmath.fsum(w / (1 + w) ** 2 for w in odds)
            assert tries <= mpmath.sqrt(1 + 12 * variance) * (1 + mpmath.mpf(10) ** -9)
            assert all(
                1 / heads_in_all([w * mpmath.exp(shift) for w in odds])[size] >= tries * (1 - mpmath.mpf(10) ** -9)
                for shift in (-1, -0.1, 0.1, 1)
            )
            broken += tries > mpmath.sqrt(2 * mpmath.pi * variance)
    assert broken > 0


# Theorem 13.

INTERVALS = [(items, low, high) for items in (2, 3, 4) for low in range(1, items) for high in range(low, items)]


@pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("items", "low", "high"), [*INTERVALS, (5, 2, 2), (5, 1, 4)])
def test_the_range_of_margins(items, low, high, replace):
    """Sensitivity 1 and range 2, or 2 and 4, for people with any number of items; not monotonic."""
    tables = histograms(items, 2)
    found = exact.score_range(margin, sets(items, low, high), tables, pairs_of_people(items, items, replace=replace))
    assert found == ((2, 4) if replace else (1, 2))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("items", "low", "high"), INTERVALS)
def test_margins_are_private(items, low, high, replace, law):
    """At half the rate of a range of one the loss comes near epsilon; at the rate epsilon it is nearly twice that."""
    base, bound = Fraction(1, 8), 4 if replace else 2
    pairs, tables = pairs_of_people(items, items, replace=replace), histograms(items, 3)
    ratio = exact.largest_ratio(law, margin, sets(items, low, high), tables, pairs, base)
    assert is_reached(ratio, base, bound)
    assert ratio > base ** -(bound // 2)


def run_of(chosen):
    """How many of the first ranks are inside, and the last rank inside, both counted from one."""
    return sum(rank == place for place, rank in enumerate(chosen)), chosen[-1] + 1


def run_lengths(items, low, high):
    """The lengths that the theorem states: runs (h, t), and one prefix for each size."""
    runs = {(size, size): 1 for size in range(low, high + 1)}
    for before, last in product(range(high), range(1, items + 1)):
        length = sum(
            math.comb(last - before - 2, size - before - 1)
            for size in range(max(low, before + 1), min(high, last - 1) + 1)
        )
        if length:
            runs[before, last] = length
    return runs


@pytest.mark.parametrize(("items", "low", "high"), [*INTERVALS, (5, 2, 2), (6, 2, 4), (7, 3, 3), (8, 1, 7)])
def test_sets_of_one_margin_come_in_runs(items, low, high):
    chosen = sets(items, low, high)
    runs = run_lengths(items, low, high)
    assert runs == Counter(map(run_of, chosen))
    assert sum(runs.values()) == sum(math.comb(items, size) for size in range(low, high + 1))
    assert len(runs) == low * (items - low) + sum(items - h - 1 for h in range(low, high)) + high - low + 1
    assert low < high or len(runs) == low * (items - low) + 1
    for counts in histograms(items, 2):
        scores = {own: margin(counts, own) for own in chosen}
        assert all(
            score == counts[last - 1] - counts[before]
            for (before, last), score in ((run_of(own), score) for own, score in scores.items())
        )


# Theorem 14. The rate of the margin is c, that of the truncated score c or 2c: its base is squared.

WORLDS = [(3, 1, 5), (3, 2, 5), (4, 1, 3), (4, 2, 4), (4, 3, 3), (5, 2, 3), (5, 3, 3)]


@pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
def test_the_range_of_truncated_scores(replace):
    """One if k = 1, k = d - 1 or m = 1, and two otherwise; under replace twice that."""
    for items in (2, 3, 4, 5):
        for size, most in product(range(1, items), range(1, items + 1)):
            if replace and items == 5 and most > 2:
                continue
            pairs = pairs_of_people(items, most, replace=replace)
            _, spread = exact.score_range(truncated, sets(items, size), histograms(items, 2), pairs)
            one = most == 1 or size in {1, items - 1}
            assert spread == (1 if one else 2) * (1 + replace)


def laws_of(law, score, counts, chosen, base):
    return law(heads([score(counts, own) for own in chosen], base))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("items", "size", "highest"), WORLDS)
def test_at_the_same_rate_the_margin_is_never_worse(items, size, highest, law):
    """Each set that is not a best one is less likely, so every loss and tail is smaller; also for several sizes."""
    better = 0
    for smallest, base, counts in product({1, size}, (HALF, NEARLY_ONE), histograms(items, highest)):
        chosen = sets(items, smallest, size)
        ours, theirs = (laws_of(law, score, counts, chosen, base) for score in (margin, truncated))
        for own, mine, canonical in zip(chosen, ours, theirs, strict=True):
            if margin(counts, own) < 0:
                assert mine <= canonical
                better += mine < canonical
    assert better > 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("items", "size", "highest"), WORLDS)
def test_at_half_the_rate_the_margin_is_never_better(items, size, highest, law):
    """In the order of sets, so for every loss that does not fall when an item is exchanged for one with fewer people.

    At the same rate this fails: there the margin is better.
    """
    chosen = sets(items, size)
    tails = exact.up_sets(chosen)
    worse = fails = 0
    for base, counts in product((HALF, NEARLY_ONE), histograms(items, highest)):
        ours, twice, same = (
            laws_of(law, score, counts, chosen, rate)
            for score, rate in ((margin, base), (truncated, base**2), (truncated, base))
        )
        for tail in tails:
            mine, canonical = sum(ours[i] for i in tail), sum(twice[i] for i in tail)
            assert mine >= canonical
            worse += mine > canonical
            fails += mine < sum(same[i] for i in tail)
    assert worse > 0
    assert fails > 0


@pytest.mark.parametrize(("items", "size", "highest"), WORLDS)
def test_at_the_same_rate_the_sum_is_never_worse_than_the_truncated_score(items, size, highest):
    """Of the exponential mechanism, in the order of sets. The margin at the same rate may be better than the sum."""
    chosen = sets(items, size)
    tails = exact.up_sets(chosen)
    fails = 0
    for base, counts in product((HALF, NEARLY_ONE), histograms(items, highest)):
        sums, canonical, margins = (
            laws_of(softmax, score, counts, chosen, base) for score in (total, truncated, margin)
        )
        for tail in tails:
            mine = sum(sums[i] for i in tail)
            assert mine <= sum(canonical[i] for i in tail)
            fails += mine > sum(margins[i] for i in tail)
    assert fails > 0


@pytest.mark.parametrize(("items", "size", "highest"), WORLDS)
def test_a_gap_makes_the_best_set_sure(items, size, highest):
    """All others together: below N exp(-2 c gap), half of that for permute-and-flip. The truncated score is not so."""
    chosen, fails = sets(items, size), 0
    for base, counts in product((HALF, QUARTER), histograms(items, highest)):
        gap = counts[size - 1] - counts[size]
        for law, part in ((flip_pmf, HALF), (softmax, Fraction(1))):
            if gap:
                bound = part * len(chosen) * base ** (2 * gap)
                assert 1 - laws_of(law, margin, counts, chosen, base)[0] < bound
                fails += 1 - laws_of(law, truncated, counts, chosen, base)[0] >= bound
    assert fails > 0


# Theorem 15.


def largest_one_shot_ratio(items, size, highest, *, replace, base=HALF):
    """The largest ratio over all tables and neighbours, and the largest divergence."""
    laws = {}

    def law(counts):
        shifted = tuple(count - min(counts) for count in counts)
        if shifted not in laws:
            laws[shifted] = list(exact.one_shot_pmf(heads(shifted, base), size).values())
        return laws[shifted]

    worst, divergence = Fraction(1), 0.0
    for table in histograms(items, highest):
        for one, other in pairs_of_people(items, items, replace=replace):
            here, there = law(exact.joined(table, one)), law(exact.joined(table, other))
            ratios = [a / b for a, b in zip(here, there, strict=True)]
            worst = max(worst, *ratios, 1 / min(ratios))
            divergence = max(divergence, sum(float(a) * math.log(r) for a, r in zip(here, ratios, strict=True)))
    return worst, divergence


@pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("items", "size", "highest"), [(2, 1, 4), (3, 1, 4), (3, 2, 4), (4, 2, 2), (4, 3, 1)])
def test_one_shot_is_private_and_no_more(items, size, highest, replace):
    """The loss is exactly epsilon = k R c somewhere, so k - 1 in place of k would be too little."""
    worst, divergence = largest_one_shot_ratio(items, size, highest, replace=replace)
    bound = size * (1 + replace)
    assert worst == 2**bound
    epsilon = bound * math.log(2)
    assert divergence <= epsilon * math.tanh(epsilon / 2)


def test_one_shot_is_not_accounted_for_as_exponential_mechanisms():
    """Its divergence is more than twice k times the rho of bounded range at epsilon / k, for k = 2."""
    _, divergence = largest_one_shot_ratio(3, 2, 3, replace=False)
    kappa = math.log(2) / (2 - 1)
    assert round(divergence, 4) == 0.2756
    assert divergence > 2 * (2 * (kappa - 1 - math.log(kappa)))


def test_the_order_of_all_costs_what_all_but_one_cost():
    assert largest_one_shot_ratio(3, 3, 4, replace=False)[0] == 2**2
    whole, part = (exact.one_shot_pmf(coins("1", "1/2", "1/5"), size) for size in (3, 2))
    assert all(whole[order] == part[order[:2]] for order in whole)


ONE_SHOT = [coins("1", "1/2"), coins("1", "1/2", "1/5"), coins("1", "1", "1/3", "1/4")]


@pytest.mark.parametrize("case", ONE_SHOT, ids=str)
def test_one_shot_of_one_is_permute_and_flip(case):
    """And of more it is not peeling, though its probabilities sum to one as well."""
    assert tuple(exact.one_shot_pmf(case, 1).values()) == flip_pmf(case)
    if len(case) > 2:
        once, peeled = exact.one_shot_pmf(case, 2), exact.peeling_pmf(case, 2, flip_pmf)
        assert sum(once.values()) == sum(peeled.values()) == 1
        assert once != peeled


@pytest.mark.parametrize("case", ONE_SHOT[1:], ids=str)
def test_arrivals_are_exponential_noise_and_gumbel_noise_is_peeling(case):
    """The two largest noisy scores, by quadrature over the second: noise of rate one, scores ln p."""
    places = [mpmath.log(mpmath.mpf(own.numerator) / own.denominator) for own in case]
    noises = {
        "exponential": (lambda z: mpmath.exp(-z) if z > 0 else 0, lambda z: -mpmath.expm1(-z) if z > 0 else 0),
        "gumbel": (lambda z: mpmath.exp(-z - mpmath.exp(-z)), lambda z: mpmath.exp(-mpmath.exp(-z))),
    }
    laws = {"exponential": exact.one_shot_pmf(case, 2), "gumbel": exact.peeling_pmf(case, 2, softmax)}
    edges = [*sorted({-12, *places, 2, 6, 15, 45})]
    for noise, (density, below) in noises.items():
        for (first, second), truth in laws[noise].items():
            others = [s for s in range(len(case)) if s not in {first, second}]

            def integrand(y, first=first, second=second, others=others, density=density, below=below):
                rest = math.prod((below(y - places[s]) for s in others), start=mpmath.mpf(1))
                return density(y - places[second]) * (1 - below(y - places[first])) * rest

            found = mpmath.quad(integrand, edges)
            assert abs(found - mpmath.mpf(truth.numerator) / truth.denominator) < 1e-9
    assert far_apart(laws["exponential"].values(), laws["gumbel"].values()) > 1e-3
