"""The exact law of what public code draws, followed to every outcome, beside brute force; and its coins by their bits.

In the enumerations a coin with exponent g has probability (1/3)**g, so every probability is rational (`tests.seam`).
"""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pyarrow as pa
import pytest
from flint import arb, ctx

import dpselect
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, every, select_top_k
from tests import reference, seam

pytestmark = pytest.mark.usefixtures("each_kernel")

THIRD = Fraction(1, 3)
LOSSES = [[0], [0, 0], [0, 1], [2, 0, 1], [0, 7, 1], [5, 0, 5], [1, 0, 2, 0]]
FLIP, EXPONENTIAL = (kind(epsilon=1, monotonic=True) for kind in (PermuteAndFlip, ExponentialMechanism))


def coins_of(losses):
    return [THIRD**loss for loss in losses]


def flipped(losses):
    return reference.pmf_by_permutations(coins_of(losses))


def softmax(losses):
    return reference.softmax_pmf(coins_of(losses))


def scores_of(losses):
    return [9 - loss for loss in losses]


def as_list(law, size):
    return [law.get(candidate, 0) for candidate in range(size)]


# One candidate.

WAYS = {
    "permute-and-flip": (FLIP.select, flipped),
    "early": (lambda scores: FLIP.select(scores, early_exit=True), flipped),
    "steady": (lambda scores: FLIP.select(scores, steady=True), flipped),
    "fractions": (lambda scores: FLIP.select([Fraction(score) for score in scores]), flipped),
    "lazily": (lambda scores: FLIP.select_lazily(lambda i: scores[i], len(scores), best=9), flipped),
    "exponential": (EXPONENTIAL.select, softmax),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("losses", LOSSES, ids=str)
def test_a_selection(name, losses):
    select, pmf = WAYS[name]
    assert as_list(seam.law(lambda: select(scores_of(losses))), len(losses)) == pmf(losses)


@pytest.mark.parametrize("steady", [False, True])
def test_the_rows_of_a_matrix_are_independent(steady):
    rows = [[0, 1, 0], [2, 0, 1]]
    found = seam.law(lambda: tuple(FLIP.select_rows([scores_of(row) for row in rows], steady=steady).tolist()))
    first, second = map(flipped, rows)
    expected = {(i, j): first[i] * second[j] for i, j in product(range(3), repeat=2)}
    assert found == expected


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax])
@pytest.mark.parametrize("losses", LOSSES, ids=str)
def test_stated_probabilities(kind, losses):
    """What `pmf` states is what independent balls contain."""
    pmf_in_balls = {
        PermuteAndFlip: reference.flip_pmf_in_balls,
        ExponentialMechanism: reference.softmax_in_balls,
        ReportNoisyMax: reference.noisy_max_pmf_in_balls,
    }[kind]
    mechanism = kind("0.75", sensitivity=2)
    found = mechanism.pmf(scores_of(losses))
    assert (
        reference.relative_error(found, pmf_in_balls([mechanism.rate * (loss - min(losses)) for loss in losses]))
        < 1e-12
    )


# Frequencies beside brute force, where the kernels compare bits of their own.

DRAWS = 1000
COUNTS = np.array([3, 2, 0, 1])


def law_of_sets(score, mechanism, sizes):
    sets = [own for size in sizes for own in combinations(range(len(COUNTS)), size)]
    return dict(zip(sets, mechanism.pmf([score(own) for own in sets]), strict=True))


def total(chosen):
    return sum(COUNTS[i] for i in chosen)


def margin(chosen):
    return min(COUNTS[i] for i in chosen) - max(count for i, count in enumerate(COUNTS) if i not in chosen)


def assert_drawn_by(law, draws):
    """No outcome is impossible, and none is seen seven standard deviations too often or too rarely."""
    seen = Counter(draws)
    assert set(seen) <= {out for out, chance in law.items() if chance}
    for out, chance in law.items():
        expected = chance * len(draws)
        deviation = math.sqrt(expected * (1 - chance))
        assert expected < 20 or abs(seen[out] - expected) < 7 * deviation, out


TOP = {
    "set": ({"method": "set", "max_values": 1}, law_of_sets(total, FLIP, [2])),
    "margin": ({"method": "margin"}, law_of_sets(margin, PermuteAndFlip(1, score_range=2), [2])),
    "one shot": (
        {"method": "one-shot", "ordered": True, "epsilon": 2},
        reference.exponential_orders(COUNTS, 1.0, 2),
    ),
    "peel": ({"method": "peel", "ordered": True, "epsilon": 2}, reference.peeled_orders(COUNTS, FLIP, 2)),
    "noisy counts": (
        {"method": "noisy-counts", "max_values": 1, "ordered": True},
        reference.laplace_orders(COUNTS, 1.0, 2),
    ),
}


@pytest.mark.parametrize("name", TOP)
def test_methods_of_the_top_two(name):
    options, law = TOP[name]
    draws = [tuple(select_top_k(COUNTS, 2, **{"epsilon": 1, **options})) for _ in range(DRAWS)]
    assert_drawn_by(law, draws)


def test_the_check_of_frequencies_is_not_idle():
    options, law = TOP["peel"]
    draws = [tuple(select_top_k(COUNTS, 2, **{**options, "epsilon": 4})) for _ in range(DRAWS)]
    with pytest.raises(AssertionError):
        assert_drawn_by(law, draws)


@pytest.mark.parametrize("mechanism", [FLIP, EXPONENTIAL], ids=lambda mechanism: mechanism.name)
def test_runs_are_repeated_scores(mechanism):
    scores, lengths = [1, 0, 3, 2], [2, 4, 0, 1]
    law = dict(enumerate(mechanism.pmf(np.repeat(scores, lengths))))
    assert_drawn_by(law, [mechanism.select_runs(np.array(scores), lengths) for _ in range(DRAWS)])
    if mechanism is FLIP:
        assert_drawn_by(law, [mechanism.select_runs(np.array(scores), lengths, steady=True) for _ in range(DRAWS)])


def test_a_summary_has_the_law_of_all_blocks_together():
    def stream():
        parts = [FLIP.summary(), FLIP.summary()]
        parts[0].update([3, 2], labels=["a", "b"])
        parts[1].update([3, 1], labels=["c", "d"])
        return parts[0].merge(parts[1]).result()

    law = dict(zip("abcd", FLIP.pmf([3, 2, 3, 1]), strict=True))
    assert_drawn_by(law, [stream() for _ in range(DRAWS)])


# Questions about a table.


def table_of(values, type_=None):
    return dpselect.open_table(pa.table({"x": pa.array(values, type_)}))


def test_a_median():
    """Ranks, not values, decide: the scores -|L - G| of candidates 0 to 3 for the rows 1, 1 and 3."""
    copies = pa.table({"x": [1, 1, 3] * DRAWS, "copy": np.repeat(np.arange(DRAWS), 3)})
    table = dpselect.open_table(copies).group_by("copy", groups=range(DRAWS))
    found = table.median("x", lower=0, upper=3, epsilon=2).value
    assert_drawn_by(dict(enumerate(FLIP.pmf([-3, 0, -1, -1]))), list(found.values()))


def test_a_mode():
    table = table_of(["a", "a", "b", "z"])
    found = seam.law(lambda: table.mode("x", candidates=["a", "b", "c"], epsilon=1).value)
    assert [found.get(label, 0) for label in "abc"] == flipped([0, 1, 2])


def test_a_domain_has_the_law_of_its_list():
    """A value that nobody has is as likely as each other one, though none is listed."""
    domain = every("integer", lower=0, upper=4)
    table = table_of([1, 1, 3])
    listed = seam.answers(lambda: table.mode("x", candidates=list(range(5)), epsilon=1)).law
    with seam.rules_are_tallied():
        ruled = seam.answers(lambda: table.mode("x", candidates=domain, epsilon=1)).law
        several = seam.answers(
            lambda: table.top_k("x", 2, candidates=domain, epsilon=2, method="peel", ordered=True)
        ).law
    assert ruled == pytest.approx(listed)
    assert several == pytest.approx(reference.peeled_orders([0, 2, 0, 1, 0], FLIP, 2))


# Unlisted values: one after another, each with its share, and each at most once.

TIED = ["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["d"]


@pytest.mark.parametrize("max_values", [None, 1])
def test_later_unlisted_values_are_chosen_like_the_first_among_the_rest(max_values):
    share = {"epsilon": 1, "delta": "0.02", "max_values": max_values}
    whole = {"epsilon": 3, "delta": "0.06", "max_values": max_values}

    @cache
    def law_of_one(*gone):
        table = table_of([x for x in TIED if x not in gone], pa.string())
        return seam.answers(lambda: table.mode("x", **share)).law

    expected = {}
    for order in [own for size in range(4) for own in permutations("abcd", size)]:
        chance = math.prod(law_of_one(*sorted(order[:i])).get(x, 0) for i, x in enumerate(order))
        expected[order] = chance * (law_of_one(*sorted(order))[None] if len(order) < 3 else 1)
    table = table_of(TIED)
    with seam.few_compete(5):
        assert seam.answers(lambda: table.top_k("x", 3, **whole)).law == pytest.approx(expected, rel=1e-9)


def test_values_come_out_one_by_one():
    share = {"epsilon": 1, "delta": "0.02"}
    found = seam.answers(lambda: table_of(TIED).values("x", **share)).law
    alone = {
        x: seam.answers(lambda x=x: table_of([y for y in TIED if y == x]).values("x", **share)).law for x in "abcd"
    }
    for out in [own for size in range(5) for own in combinations("abcd", size)]:
        expected = math.prod(alone[x].get((x,) if x in out else (), 0.0) for x in "abcd")
        assert found.get(out, 0.0) == pytest.approx(expected)


# Coins: heads is U < exp(-g), whatever bits of U are known.

EXPONENTS = [Fraction(1, 2**70), Fraction(1e-9), THIRD, Fraction(1), Fraction(11, 2), Fraction(30), Fraction(800)]


def boundary_of(exponent, depth):
    """The floor of exp(-g) in units of 2**-depth."""
    with ctx.workprec(depth + 200):
        return int(((-arb(exponent.numerator) / exponent.denominator).exp() * arb(2) ** depth).floor().unique_fmpz())


@pytest.mark.parametrize("agreeing", [0, 5, 31, 32, 33, 64, 150])
@pytest.mark.parametrize("exponent", EXPONENTS, ids=lambda e: f"{float(e):.3g}")
def test_the_first_bit_that_differs_decides(exponent, agreeing):
    expansion = boundary_of(exponent, agreeing + 1)
    other = expansion ^ 1
    for more in "01":
        assert seam.coin(exponent, f"{other:0{agreeing + 1}b}" + more * 64) is (other < expansion)


def test_equal_bits_decide_nothing():
    with pytest.raises(seam.BitsExhausted):
        seam.coin(THIRD, f"{boundary_of(THIRD, 320):0320b}")


def test_many_coins_at_once():
    """Words around the boundary, and the boundary itself, where the next bits decide: zeros are heads."""
    exponents = [Fraction(1, 7), THIRD, Fraction(1), Fraction(3), Fraction(9)] * 20
    words = [boundary_of(exponent, 32) for exponent in exponents]
    for distance in (-9, -4, -1, 1, 4, 9):
        near = [word + distance for word in words]
        assert seam.coins(exponents, near) == [distance < 0] * len(exponents)
    assert all(seam.coins(exponents, words, "0" * 32 * len(words)))
    assert not any(seam.coins(exponents, words, "1" * 32 * len(words)))
