"""Events: the bound is wrong no more often than it says, and each sort of views catches a leak that the others miss."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpselect
from dpselect.audit import audit
from dpselect.audit.events import (
    SORTS,
    WHOLE,
    Event,
    Samples,
    chosen_event,
    coarse_view,
    combinations,
    differing_parts,
    epsilon_bound,
    frequent_items,
    item_view,
    learned_views,
    likelihood,
    noticeable_epsilon,
    part_view,
)
from dpselect.audit.outputs import outcome_of

CASES = [(0.5, 0.5), (0.9, 0.3), (0.2, 0.01), (0.03, 0.02), (1.0, 0.5), (0.999, 0.001), (0.6, 1e-6)]


@pytest.mark.parametrize("doubt", [0.3, 0.05, 1e-3])
@pytest.mark.parametrize("trials", [1, 2, 10, 60])
@pytest.mark.parametrize(("likely", "unlikely"), CASES)
def test_the_bound_holds_as_often_as_it_says(likely, unlikely, trials, doubt):
    """Summed over every pair of counts: how often is the bound above the truth?"""
    counts = np.arange(trials + 1)
    bounds = epsilon_bound(counts[:, np.newaxis], counts, trials, doubt)
    chances = np.outer(stats.binom.pmf(counts, trials, likely), stats.binom.pmf(counts, trials, unlikely))
    assert chances.sum() == pytest.approx(1)
    assert chances[bounds > math.log(likely / unlikely)].sum() <= doubt


def test_the_bound_is_not_idle():
    """Both ends are those of Clopper and Pearson: half of the doubt lies beyond each."""
    trials, doubt = 500, 1e-4
    for hits, others in [(400, 20), (3, 1), (500, 0), (250, 250)]:
        interval = stats.binomtest(hits, trials).proportion_ci(1 - doubt, method="exact")
        other = stats.binomtest(others, trials).proportion_ci(1 - doubt, method="exact")
        assert epsilon_bound(hits, others, trials, doubt) == pytest.approx(math.log(interval.low / other.high))


def test_no_hit_bounds_nothing():
    assert epsilon_bound(0, 0, 100, 0.01) == -np.inf
    assert epsilon_bound(0, 100, 100, 0.01) == -np.inf
    assert epsilon_bound(100, 100, 100, 0.01) < 0


@pytest.mark.parametrize("trials", [50, 101, 300])
@pytest.mark.parametrize("promised", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("doubt", [0.2, 1e-6])
def test_an_epsilon_is_noticeable_where_the_expected_counts_give_a_larger_bound(trials, promised, doubt):
    """Every number of hits is tried."""
    half = trials // 2
    counts = [count for count in range(1, half + 1) if epsilon_bound(half, count, trials, doubt) > promised]
    expected = math.log(half / max(counts)) if counts else math.inf
    assert noticeable_epsilon(promised, trials, doubt) == expected
    assert expected > promised


@pytest.mark.parametrize("epsilon", [1.5, 3.0])
def test_what_is_noticeable_shows_about_half_of_the_time(epsilon):
    """By the exact probabilities of all counts: a little more shows mostly, a little less mostly not."""
    trials, doubt = 1000, 1e-3
    hits = np.arange(trials + 1)

    def chance(true):
        here, there = stats.binom.pmf(hits, trials, 0.5), stats.binom.pmf(hits, trials, 0.5 * math.exp(-true))
        return here @ (epsilon_bound(hits[:, None], hits, trials, doubt) > epsilon) @ there

    noticeable = noticeable_epsilon(epsilon, trials, doubt)
    assert chance(noticeable - 0.3) < 0.35 < chance(noticeable) < 0.65 < chance(noticeable + 0.5)


def samples(here, there):
    return Samples(Counter(here), Counter(there), sum(here.values()))


@pytest.mark.parametrize("seed", range(20))
def test_no_event_has_a_larger_bound(seed):
    """Against all subsets of six outcomes, in both directions, where the ranking is that of the same samples."""
    rng = np.random.default_rng(seed)
    here, there = (Counter(rng.choice(6, 2_000, p=rng.dirichlet(np.ones(6))).tolist()) for _ in range(2))
    seen = samples(here, there)
    subsets = [frozenset(i for i in range(6) if mask >> i & 1) for mask in range(64)]
    best = max(seen.bound(Event(subset, way), 1e-3) for subset in subsets for way in (False, True))
    assert seen.bound(chosen_event(seen, seen, 1e-3), 1e-3) == pytest.approx(best)


def test_an_event_may_be_more_likely_on_the_neighbour():
    seen = samples({0: 10_000}, {0: 5_000, "ValueError": 5_000})
    event = chosen_event(seen, seen, 1e-6)
    assert event == Event(frozenset(["ValueError"]), is_reversed=True)
    assert seen.hits(event) == (5_000, 0)


def test_luck_among_many_outcomes_does_not_choose():
    """Each outcome comes up once: the ranking is nothing but luck, and promises nothing on other samples."""
    rng = np.random.default_rng(5)
    parts = [samples(*(Counter(rng.choice(10**6, 500).tolist()) for _ in range(2))) for _ in range(2)]
    event = chosen_event(*parts, 1e-6, [frozenset(range(500_000))])
    assert parts[1].bound(event, 1e-6) < 0
    assert parts[0].bound(chosen_event(parts[0], parts[0], 1e-6), 1e-6) > 2, "as it would on the same samples"


def test_a_suspect_is_chosen_where_it_tells_most():
    rng = np.random.default_rng(6)
    low = [Counter(rng.choice(10**6, 500).tolist()) for _ in range(2)]
    high = [Counter((900_000 + rng.choice(10**5, 500)).tolist()) for _ in range(2)]
    suspect = frozenset(range(900_000))
    assert chosen_event(*map(samples, low, high), 1e-6, [suspect]) == Event(suspect, is_reversed=False)


# Outputs that never come up twice.

GENERATOR = np.random.default_rng()
DOUBT = 1e-9
RUNS = 1_000


def bits(size):
    return GENERATOR.integers(2, size=size)


def whole(data):
    """A text that comes up again."""
    return "ab"[data]


def half_line(data):
    return GENERATOR.laplace(5 * data)


def interval(data):
    """Nothing near zero on one side, and the same half-lines on both, nearly."""
    return GENERATOR.uniform(0.5 * data, 1) * GENERATOR.choice([-1, 1])


def atom(data):
    """A value that comes up in half of the runs, among others that do not."""
    return float(data) / 3 if GENERATOR.random() < 0.5 else GENERATOR.uniform()


def far_part(data):
    numbers = GENERATOR.normal(size=40)
    numbers[33] += 8 * data
    return numbers


def field(data):
    return {"noise": GENERATOR.normal(), "leak": {"deep": [GENERATOR.normal(6 * data)]}}


def length(data):
    return GENERATOR.normal(size=3 + data)


def in_a_set(data):
    return {*GENERATOR.integers(10**9, size=8).tolist(), "leak" if data else "none"}


def beginning(data):
    """Each bit is fair; the first two are equal on one side, and differ on the other."""
    first, *others = bits(30).tolist()
    return (first, first ^ data, *others)


def signs(data):
    """Each of two numbers is symmetric; their product has a sign."""
    one, other = np.abs(GENERATOR.normal(size=2)) * GENERATOR.choice([-1, 1])
    return one, other * (1 - 2 * data)


def anywhere(data):
    """An item at a random place among others that do not come up again."""
    items = [f"{number}" for number in GENERATOR.integers(10**12, size=40)]
    items[GENERATOR.integers(40)] = f"leak {data}"
    return items


def many_small_leaks(data):
    """No number reveals much, and all of them together do."""
    return GENERATOR.laplace(0.5 * data, size=40)


# A leak, and a sort of views that is enough to catch it; none where the whole output is enough.
LEAKS = {
    whole: None,
    half_line: differing_parts,
    interval: differing_parts,
    atom: differing_parts,
    far_part: differing_parts,
    field: differing_parts,
    length: differing_parts,
    in_a_set: differing_parts,
    beginning: combinations,
    signs: combinations,
    anywhere: frequent_items,
    many_small_leaks: likelihood,
}
NEEDED = (half_line, beginning, many_small_leaks)  # where no other sort is enough


def audited(leak, monkeypatch, sorts):
    monkeypatch.setattr(dpselect.audit, "learned_views", lambda here, there: learned_views(here, there, sorts))
    return audit(leak, 1, inputs=[(0, 1)], runs=RUNS, false_alarm=DOUBT).violates


@pytest.mark.slow
@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_leak_is_caught_by_one_sort_of_views(leak, monkeypatch):
    assert audit(leak, 1, inputs=[(0, 1)], runs=RUNS, false_alarm=DOUBT).violates
    assert not audit(leak, 1, inputs=[(0, 0), (1, 1)], runs=RUNS, false_alarm=DOUBT).violates
    assert audited(leak, monkeypatch, [sort for sort in SORTS if sort is LEAKS[leak]])
    assert leak not in NEEDED or not audited(leak, monkeypatch, [sort for sort in SORTS if sort is not LEAKS[leak]])


def noise():
    """An output that never comes up twice, of parts that do and a part that does not."""
    return "abc"[GENERATOR.integers(3)], GENERATOR.normal()


AUDITS = 60
OFTEN = 0.3  # how often each may be wrong


def positive_bounds(bound):
    """How many audits of runs that do not depend on their input claim an epsilon above zero."""
    return sum(bound() > 0 for _ in range(AUDITS))


def drawn(trials):
    return samples(*(Counter(outcome_of(noise()) for _ in range(trials)) for _ in range(2)))


@pytest.mark.slow
def test_what_was_learned_does_not_bend_the_bound():
    """The stated confidence holds for views, events and directions that were all chosen by looking.

    The power check: on the samples by which they were chosen the bound is wrong far more often.
    """
    most = stats.binom.isf(1e-9, AUDITS, OFTEN)

    def honest():
        return audit(lambda _: noise(), 1, inputs=[(0, 1)], runs=400, false_alarm=OFTEN).lower_bound

    def bent():
        ranking, choosing = drawn(100), drawn(100)
        views = learned_views(ranking.here, ranking.there)
        return choosing.bound(chosen_event(ranking, choosing, OFTEN, views=views), OFTEN)

    assert positive_bounds(honest) <= most < positive_bounds(bent)


def test_a_few_values_are_looked_at_as_they_are():
    few = Counter({outcome_of(value): 10 for value in (1, 0.5, "a", None, math.nan)})
    assert learned_views(few, few) == [WHOLE]


def test_numbers_of_any_size_have_bins():
    """Infinite ones, and integers beyond the floats."""
    numbers = [math.inf, -math.inf, 10**400, -(10**400), *range(100), *(Fraction(1, n) for n in range(3, 50))]
    counts = Counter(map(outcome_of, numbers))
    [_, part] = learned_views(counts, counts)
    assert part.bins
    bins = [part.label(outcome_of(number)) for number in sorted(numbers)]
    assert bins == sorted(bins)
    assert {type(label) for label in bins} == {int}
    assert max(bins) < part.bins


def test_a_value_that_comes_up_again_has_its_own_bin():
    counts = Counter(map(outcome_of, [*np.linspace(0, 1, 100).tolist(), *[1 / 3] * 30]))
    [_, part] = learned_views(counts, counts)
    below, at, above = (part.label(outcome_of(number)) for number in (1 / 3 - 1e-12, 1 / 3, 1 / 3 + 1e-12))
    assert below < at < above
    assert part.words(frozenset([at])) == f"output is = {1 / 3!r}"


def test_bins_have_words():
    view = part_view((1, "a"), (0.0, 1.0, 2.0))
    every = frozenset(range(view.bins))
    assert view.words(frozenset([0])) == "output[1]['a'] is < 0.0"
    assert view.words(frozenset([2, 3])) == "output[1]['a'] is >= 1.0"
    assert view.words(frozenset([0, 2])) == "output[1]['a'] is < 0.0 or >= 1.0 and < 2.0"
    assert view.words(every | {None}) == "output[1]['a'] is a number or None"
    missing = view.label(outcome_of(()))
    assert view.words(frozenset([missing])) == "output[1]['a'] is missing"
    assert item_view("x").words(frozenset([False])) == "the output does not contain 'x'"
    beginning = coarse_view({}, 2)
    label = beginning.label(outcome_of((None, None, 1)))
    assert beginning.words(frozenset([label])) == "the output begins with (None, None)"
    coarse = coarse_view({(1,): (0.0, 1.0)})
    label = coarse.label(outcome_of((None, 0.5)))
    assert coarse.words(frozenset([label])) == "the output is (None, >= 0.0 and < 1.0)"
    named = coarse_view({("a", 0): (0.0,)})
    assert (
        named.words(frozenset([named.label(outcome_of({"a": [3.0, "x"]}))])) == "the output is ('a': >= 0.0, 'a': 'x')"
    )
    assert WHOLE.words(frozenset(range(9))) == "the output is 0 or 1 or 2 or 3 or one of 5 more"


def test_half_lines_hold_every_number_beyond():
    """Also those that no run had before: the event is one of numbers, not of those that were seen."""
    seen = Counter(map(outcome_of, np.linspace(0, 1, 200).tolist()))
    later = Counter(map(outcome_of, np.linspace(3, 9, 200).tolist()))
    views = learned_views(seen, later)
    event = chosen_event(samples(seen, later), samples(seen, later), 1e-6, views=views[1:])
    assert samples({outcome_of(-5.0): 10}, {outcome_of(50.0): 10}).hits(event) == (10, 0)
