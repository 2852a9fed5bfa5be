"""Plans of several quantiles: the bounds as sums over the depths, and how many people an answer needs."""

import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpselect
from dpselect import PermuteAndFlip
from dpselect._levels import NAMED
from dpselect.accounting.budget import Price
from dpselect.analysis import plan
from dpselect.questions import Quantile, Quantiles
from dpselect.questions.quantiles import cuts_of, errors_by_level
from dpselect.tables.kinds import Column, Kind, public_span
from tests.tables.looking import repeated

LEVELS = [
    NAMED["deciles"],
    NAMED["percentiles"],
    (Fraction(1, 100), Fraction(1, 3), Fraction(9, 10)),
    (Fraction(1, 7),),
]


def recursion(levels, n, error):
    """The ranks of cuts that are off by `error(position)`, and the levels within their parts."""
    ranks, found = {-1: Fraction(0), len(levels): Fraction(n)}, {}

    def solve(first, last):
        if first == last:
            return
        middle = (first + last) // 2
        low, high = (levels[first - 1] if first else 0), (levels[last] if last < len(levels) else 1)
        p = Fraction(levels[middle] - low) / (high - low)
        ranks[middle] = (1 - p) * ranks[first - 1] + p * ranks[last] + error(middle)
        found[middle] = p
        solve(first, middle)
        solve(middle + 1, last)

    solve(0, len(levels))
    return [ranks[i] for i in range(len(levels))], [found[i] for i in range(len(levels))]


@pytest.mark.parametrize("levels", LEVELS, ids=len)
def test_the_error_of_a_level_is_at_most_the_weighted_sum_over_its_depths(levels):
    cuts, drawn = cuts_of(levels), random.Random(1)
    for trial in range(20):
        errors = [Fraction(1) if trial == 0 else Fraction(drawn.randint(-50, 50)) for _ in levels]
        ranks, parts = recursion(levels, 1000, errors.__getitem__)
        assert [cut.level for cut in cuts] == parts
        for rank, level, cut in zip(ranks, levels, cuts, strict=True):
            bound = sum(weight * abs(errors[other]) for other, weight in cut.weights.items())
            assert abs(rank - level * 1000) <= bound
            assert trial or abs(rank - level * 1000) == bound, "it is reached if all cuts are off in one direction"
    assert max(len(cut.weights) for cut in cuts) <= len(levels).bit_length()


def test_one_level_has_the_bounds_of_a_quantile():
    one, several = (
        plan(question=question, lower=0, upper=1000, epsilon="0.5", **level)
        for question, level in (("quantile", {"level": "0.9"}), ("quantiles", {"levels": ["0.9"]}))
    )
    for name in one.accuracy:
        assert several.accuracy[name].average == pytest.approx(one.accuracy[name].average)
        assert several.accuracy[name].within_99 == pytest.approx(one.accuracy[name].within_99)
    assert several.people_needed == one.people_needed


def test_bounds_grow_with_depths_rows_and_replacement():
    asked = {"question": "quantiles", "lower": 0, "upper": 1000, "epsilon": 1}
    few, many = (plan(levels=levels, **asked).accuracy["exponential"] for levels in ("quartiles", "percentiles"))
    assert few.average < many.average
    assert few.within_95 < few.all_within_95 < many.all_within_95
    base = plan(levels="deciles", **asked).accuracy["exponential"]
    for factor, other in ((2, {"neighbours": "replace"}), (3, {"max_rows": 3}), (6, {"groups": 9, "max_groups": 6})):
        planned = plan(levels="deciles", **other, **asked)
        assert planned.accuracy["exponential"].average == pytest.approx(factor * base.average)
        assert planned.question.draws == 4 * other.get("max_groups", 1)
    assert planned.question.error_unit == "people"
    assert plan(levels="deciles", max_rows=3, **asked).question.error_unit == "rows"


def test_the_tail_is_a_union_bound_over_the_depths():
    mechanism, levels = PermuteAndFlip("0.25"), NAMED["deciles"]
    errors = errors_by_level(mechanism, 1001, levels, 0.05)
    first = 2 * math.log(1001 * 2**32 / 0.05) / 0.25 / 2  # the median is the first cut: max(p, 1 - p) is 1/2
    assert errors[4] == pytest.approx(first, rel=1e-6)
    assert max(errors) == Quantiles(levels=levels, candidates=1001).promise(mechanism).within_95
    assert all(
        a < b for a, b in zip(errors, errors_by_level(mechanism, 1001, levels, 0.05, together=True), strict=True)
    )


def test_ranges_may_be_left_out():
    assert Quantile(level="1/2").size == Quantile(level="1/2", lower=0).size == Quantiles(levels=[0.5]).size == 2**64
    assert Quantile(level="1/2", range="log").size == 4863
    assert Quantile(level="1/2", candidates=77).size == 77
    assert "over the whole range of the column (at most 2**64 candidates)" in Quantile(level="1/2").title
    assert "from 3 (at most" in Quantile(level="1/2", lower=3).title
    assert plan(question="median", lower=0, upper=9, epsilon=1).question.step == 1


def test_the_range_log_of_a_plan_is_that_of_floats():

    assert (
        public_span(None, None, None, Column("x", "DOUBLE", Kind.FLOAT), "log").size
        == Quantile(level="1/2", range="log").size
    )


def test_the_people_needed_are_those_of_the_design():
    """ln(20 2**64) = 47.36 people on each side of a median; 2 max(q, 1 - q) times that on the smaller side."""
    assert plan(question="median", epsilon=1).people_needed == math.ceil(2 * 47.3572)
    assert plan(question="median", epsilon=1, neighbours="replace").people_needed == math.ceil(4 * 47.3572)
    assert plan(question="quantile", level=0.1, epsilon=1).people_needed == math.ceil(2 * 0.9 * 47.3572 / 0.1)
    assert plan(question="quantiles", levels="deciles", epsilon=1).people_needed == 2758
    assert plan(30, question="mode", epsilon=1).people_needed is None
    planned = plan(question="quantiles", levels="deciles", epsilon="0.5", groups=3)
    assert any(f"It needs about {planned.people_needed:,} people in each group" in told for told in planned.sentences)
    assert planned.to_dict()["people_needed"] == planned.people_needed


def outside(people, levels, times):
    """For each level, the share of answers that are not the value that all people have."""
    copies = repeated({"x": [7] * people}, times)
    return np.mean([[x != 7 for x in own] for own in copies.quantiles("x", levels, epsilon=1).value.values()], axis=0)


@pytest.mark.parametrize(("levels", "times"), [(["1/2"], 1000), (["1/10"], 1000), ("deciles", 100)], ids=str)
def test_so_many_people_are_enough_and_half_of_them_are_not(levels, times):
    """With enough people, 1.5 % of the answers are elsewhere, or fewer: of 1,000, 5 % are once in 10**12 runs."""
    needed = plan(question="quantiles", levels=levels, epsilon=1).people_needed
    assert outside(needed, levels, times).max() <= 0.05
    assert outside(needed // 2, levels, times).max() > 0.5


def test_the_usual_error_is_near_that_of_dense_values():
    """All people have different values that are next to each other."""
    levels, people = NAMED["deciles"], np.arange(2000)
    table = dpselect.open_table(pa.table({"x": people}))
    answers = [table.quantiles("x", "deciles", lower=0, upper=1999, epsilon=1).value for _ in range(40)]
    errors = np.abs(np.array(answers) - np.array([float(level) * 2000 for level in levels])).mean(axis=0)
    usual = Quantiles(levels=levels).usual_error(PermuteAndFlip("0.25"))
    assert usual / 4 < errors.max() < 2 * usual


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("groups", [None, 3])
@pytest.mark.parametrize("max_rows", [None, 4])
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10)])
def test_a_list_of_one_level_is_one_quantile(level, max_rows, groups, neighbours):
    """One selection draws it, and not a cut."""
    common = {"lower": 0, "upper": 99, "max_rows": max_rows, "groups": groups, "neighbours": neighbours}
    alone, listed = Quantile(level=level, **common), Quantiles(levels=[level], **common)
    price = Price("0.5")
    assert listed.draw(price) == alone.draw(price)
    assert listed.accuracy(listed.draw(price)) == alone.accuracy(alone.draw(price))
