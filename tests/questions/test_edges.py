"""The edges of the records of questions: the smallest and the largest numbers of candidates, and defaults in words."""

import math

import pyarrow as pa
import pytest

import dpselect
from dpselect import Ledger, PermuteAndFlip, analysis, pure, zcdp
from dpselect.accounting.budget import Price
from dpselect.analysis.measures import selection_errors
from dpselect.errors import InvalidValue
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.questions import Mode, Quantile, TopK, UnlistedTopK, Values
from dpselect.questions.methods import METHODS, Margin, NoisyCounts, automatic, log_sets_between, method_for
from dpselect.questions.rows import Individuals
from dpselect.tables.kinds import Column, Kind

HUGE = 2**60


def test_a_quantile_has_two_candidates_or_more():
    assert Quantile(level="1/2", candidates=2).size == 2
    with pytest.raises(InvalidValue, match="candidates must be"):
        Quantile(level="1/2", candidates=1)


def test_an_answer_without_an_order_says_so():
    assert TopK.beside({"candidates": ["a", "b"]}) == {"ordered": False}
    assert TopK.beside({"candidates": ["a", "b"], "ordered": True}) == {"ordered": True}
    assert TopK.beside({"delta": "1e-9"}) == {"ordered": True}


def test_among_too_many_candidates_peeling_is_the_only_method():
    price = Price(1)
    for name in ("auto", "peel"):
        assert (
            method_for(3, HUGE + 1, method=name, max_values=1, ordered=False, price=price, budget=None).name == "peel"
        )
    with pytest.raises(InvalidValue, match="method set takes at most"):
        method_for(3, HUGE + 1, method="set", max_values=1, ordered=False, price=price, budget=None)


def test_a_question_by_its_name_has_the_defaults_of_the_method():
    table = dpselect.open_table(pa.table({"x": ["a"] * 99, "n": [7] * 99}))
    assert table.ask("values", "x", epsilon=1, delta=1e-6).value == ["a"]
    assert table.ask("maximum", "n", lower=0, upper=9, epsilon=50).value == 7


def test_a_row_has_one_value_and_a_person_as_many_as_are_allowed():
    people = Individuals(Column("who", "BIGINT", Kind.INTEGER))
    assert [Individuals(None).limit(most) for most in (None, 2)] == [1, 1]
    assert [people.limit(most) for most in (None, 2)] == [None, 2]


def test_records_are_imported_when_they_are_used():
    assert dpselect.questions.Mode is Mode
    assert not hasattr(dpselect.questions, "Median")


def test_a_question_among_too_few_values_or_of_too_many_is_none():
    with pytest.raises(InvalidValue, match="max_values must be given"):
        Values(max_values=None)
    assert [Mode(candidates=2).draws, UnlistedTopK(k=3, groups=9, max_groups=2).draws] == [1, 6]


def test_of_public_numbers_the_method_follows_at_their_edges():
    assert automatic(5, 1000, 4, ordered=True, concentrated=False) is NoisyCounts
    assert automatic(5, 1000, 5, ordered=True, concentrated=False) is not NoisyCounts


@pytest.mark.parametrize("name", METHODS)
def test_no_tail_of_a_method_is_more_than_certain(name):
    method = METHODS[name](6, 8, 2)
    kind = ReportNoisyMax if method.suits(ReportNoisyMax) and name == "noisy-counts" else PermuteAndFlip
    tail = method.bounds(kind).tail
    assert tail(0.0) == 1
    assert 0 <= tail(99.0) < 1e-30


def test_a_cut_of_noisy_counts_is_one_of_all_pairs():
    for ordered, pairs in ((False, 21 * 21), (True, 21 * 21 + 21 * 10)):
        tail = NoisyCounts(21, 42, 5, ordered).bounds(ReportNoisyMax).tail
        assert tail(20.0) == pytest.approx(pairs * (0.5 + 20 / 4) * math.exp(-20), rel=1e-12)


def test_what_a_margin_attains_is_known_for_one_size_only():
    one = selection_errors(PermuteAndFlip, math.log(7)).attained
    assert Margin(3, 9).bounds(PermuteAndFlip).attained == pytest.approx(one / 3 / 2)
    assert Margin(3, 9, least=3).bounds(PermuteAndFlip).attained == pytest.approx(one / 3 / 2)
    assert Margin(3, 9, least=2).bounds(PermuteAndFlip).attained == 0


def test_there_are_no_more_sets_than_all():
    for candidates in (1500, 3000, 10**6):
        assert log_sets_between(candidates, 1, candidates - 1) <= candidates * math.log(2)


def test_ledgers_keep_what_was_stated_and_nothing_else(tmp_path):
    ledger = Ledger(tmp_path / "ledger", zcdp(9, delta="0.01"))
    table = dpselect.open_table(pa.table({"who": [1, 2], "x": ["a", "b"]}), person="who", ledger=ledger)
    table.top_k("x", 2, epsilon=1, delta="1e-9")
    table.top_k("x", 2, epsilon=1, delta="1e-9", max_values=3)
    always = {"question", "column", "candidates", "k", "person", "neighbours", "estimate", "sensitivity", "monotonic"}
    assert [set(entry.what) for entry in ledger.entries()] == [always, always | {"max_values"}]


# Plans.


def test_of_what_is_free_nothing_is_spent():
    told = analysis.plan(4, question="top_k", k=4, epsilon=1).to_dict()
    assert {(own["epsilon"], own["total_epsilon"], own["total_zcdp"]) for own in told["mechanisms"]} == {(0, 0, 0)}
    assert {(own["epsilon"], own["epsilon_each"], own["rho"], own["draws"]) for own in told["costs"]} == {(0, 0, 0, 0)}


def test_many_questions_are_compared_in_people_too():
    planned = analysis.plan(question="quantile", level="0.9", lower=0, upper=9, epsilon=1, questions=10)
    found = planned.to_dict()["better_for_many"]["exponential"]["expected_error_at_most"]
    assert found == planned.accuracy["exponential"].average


def test_two_candidates_can_become_more():
    grows = "The bounds grow with the logarithm"
    for upper, expected in ((0, False), (1, True), (2, True)):
        told = analysis.plan(question="median", lower=0, upper=upper, epsilon=1).sentences
        assert any(grows in sentence for sentence in told) == expected


def test_only_an_evenly_divided_approximate_budget_is_compared_with_a_pure_one():
    pure_is_better = "A pure budget of the same epsilon is better"

    def advised(**price):
        return pure_is_better in " ".join(analysis.plan(30, question="mode", **price).advice)

    assert advised(budget="1,1e-6")
    assert not advised(budget="1,1e-6", epsilon="0.001")
    assert not advised(budget=pure(10, cap="0.1"), questions=3)
    assert not advised(budget="zcdp:0.5")


def test_a_person_in_all_groups_needs_no_condition():
    for most, expected in (
        (1, "if nobody is in more than one group"),
        (2, "if nobody is in more than 2 groups"),
        (3, ""),
    ):
        assert Mode(candidates=9, groups=3, max_groups=most).condition == expected


def test_the_size_of_a_small_group_is_rounded_up():
    table = dpselect.open_table(pa.table({"x": ["a", "b"], "g": ["p", "q"]})).group_by("g", groups=["p", "q"])
    accuracy = table.mode("x", candidates=["a", "b"], epsilon=1).accuracy
    assert accuracy.within_95 % 1
    assert f"In a group of fewer than {math.ceil(accuracy.within_95)} rows" in accuracy.words
