"""Plans of top-k questions: the method that is taken, costs against real ledgers and tables, and what a plan says."""

import json
from fractions import Fraction
from itertools import product

import pytest

from dpselect import release_top_k
from dpselect.accounting.budget import Price, as_budget
from dpselect.analysis import plan
from dpselect.errors import BudgetExceeded
from dpselect.ledger import Ledger
from dpselect.mechanisms import MECHANISMS
from dpselect.questions import TopK
from dpselect.questions.methods import method_for

BUDGETS = ["1", "3,cap:1/7", "zcdp:0.5", "1,1e-6"]
# The method, what is asked, and the names under which a ledger records it in pure epsilon and in zCDP.
ASKED = {
    "set": ({"method": "set", "max_values": 2}, ("permute-and-flip", "exponential")),
    "margin": ({"method": "margin"}, ("permute-and-flip", "exponential")),
    "several margins": ({"k": (2, 5)}, ("permute-and-flip", "exponential")),
    "one-shot": ({"method": "one-shot"}, ("one-shot", "exponential")),
    "peel": ({"method": "peel"}, ("permute-and-flip", "exponential")),
    "noisy-counts": ({"method": "noisy-counts", "max_values": 2}, ("noisy-max", "noisy-max")),
    "auto, one value": ({"max_values": 1, "k": 4}, ("permute-and-flip", "exponential")),
    "auto, in order": ({"max_values": 1, "ordered": True}, ("noisy-max", "exponential")),
    "auto, leaving out": ({"k": 9}, ("one-shot", "exponential")),
}
COUNTS = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0]


def asked_for(case):
    asked = {"k": 3, **ASKED[case][0]}
    return asked.pop("k"), asked


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("case", ASKED)
def test_a_ledger_charges_what_was_planned(tmp_path, case, budget):
    """The budget alone is divided among three questions, which are then asked. A fourth one is refused."""
    k, options = asked_for(case)
    planned = plan(12, question="top_k", k=k, budget=budget, questions=3, **options)
    cost = planned.costs[planned.used]
    ledger = Ledger(tmp_path / "a.ledger", budget=budget)
    price = {"epsilon": cost.charge.epsilon} if planned.budget.rho is None else {"rho": cost.charge.rho}
    for _ in range(3):
        answer = release_top_k(COUNTS, k, ledger=ledger, **price, **options)
        assert answer.charged == cost.one
        assert answer.epsilon == cost.charge.epsilon
        rows = {row["mechanism"]: row for row in planned.to_dict()["mechanisms"]}
        assert 3 * answer.guarantee.zcdp == pytest.approx(rows[planned.used]["total_zcdp"])
    entry = ledger.entries()[-1]
    assert (entry.mechanism, entry.charge.count, entry.charge.each) == (
        cost.charge.mechanism,
        cost.charge.count,
        cost.charge.each,
    )
    assert entry.mechanism == ASKED[case][1][planned.budget.rho is not None]
    assert entry.charge.what["method"] == planned.method
    if "cap" not in budget:
        assert cost.allowed == 3
        with pytest.raises(BudgetExceeded):
            release_top_k(COUNTS, k, ledger=ledger, **price, **options)
    else:
        assert cost.charge.each <= Fraction(1, 7)


@pytest.mark.parametrize("budget", [None, *BUDGETS])
def test_the_method_is_the_one_that_answers(budget):
    held = None if budget is None else as_budget(budget)
    for k, d, limit, ordered in product((1, 2, 6, 11), (12, 30), (None, 1, 3), (False, True)):
        planned = plan(
            d, question="top_k", k=k, max_values=limit, ordered=ordered, epsilon=1, budget=budget, mechanism="auto"
        )
        method = method_for(k, d, max_values=limit, ordered=ordered, price=Price(1), budget=held)
        assert (planned.method, planned.question.how) == (method.name, method)
        assert planned.about_methods[0].startswith(f"The method is {method.name}, because ")
        assert method.name in planned.methods


@pytest.mark.parametrize("case", ASKED)
def test_accuracies_are_bounds_at_the_rate_of_the_mechanism(case):
    k, options = asked_for(case)
    for price, groups in product(({"epsilon": "0.4"}, {"rho": "0.02"}), ({}, {"groups": 5, "max_groups": 2})):
        planned = plan(12, question="top_k", k=k, **options, **price, **groups)
        for name, accuracy in planned.accuracy.items():
            mechanism = planned.promises[name].mechanism
            errors = planned.question.how.bounds(MECHANISMS[name])
            assert accuracy.average == pytest.approx(errors.average / float(mechanism.rate), rel=1e-12)
            assert accuracy.within_95 == pytest.approx(errors.rarely_exceeded(0.05) / float(mechanism.rate), rel=1e-12)
            assert accuracy.unit == "people"
        own = planned.methods[planned.method]
        assert own.average == pytest.approx(planned.accuracy[planned.used].average, rel=1e-12)


def test_rates_by_hand():
    """The rates of a person's count at epsilon 0.6 for the whole answer, and what neighbours and groups divide."""
    rates = {
        "set": ({"max_values": 2}, 0.3),
        "margin": ({}, 0.3),
        "one-shot": ({}, 0.2),
        "peel": ({}, 0.2),
        "noisy-counts": ({"max_values": 2}, 0.3),
    }
    for method, (options, rate) in rates.items():
        for neighbours, groups in product(("add-remove", "replace"), ({}, {"groups": 9, "max_groups": 4})):
            planned = plan(
                12, question="top_k", k=3, method=method, epsilon="0.6", neighbours=neighbours, **options, **groups
            )
            found = float(planned.promises[planned.used].mechanism.rate)
            share = (2 if neighbours == "replace" else 1) * (4 if groups else 1)
            assert found == pytest.approx(rate / share, rel=1e-12), method


def test_the_comparison_is_at_the_same_price():
    planned = plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1")
    assert list(planned.methods) == ["set", "margin", "one-shot", "peel", "noisy-counts"]
    for name, found in planned.methods.items():
        alone = plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1", method=name)
        assert found.average == alone.accuracy[alone.used].average
        assert found.within_95 == alone.accuracy[alone.used].within_95
        assert found.mechanism == alone.used
    told = planned.about_methods[1]
    assert "too low: set 49.02; noisy-counts 49.13; one-shot" in told
    by_error = plan(1000, question="top_k", k=10, max_values=1, error=50)
    dear = by_error.costs[by_error.used].charge.epsilon
    assert by_error.methods == plan(1000, question="top_k", k=10, max_values=1, epsilon=dear).methods
    in_zcdp = plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1", budget="zcdp:0.5")
    assert in_zcdp.methods["peel"].mechanism == "exponential"
    assert "one-shot" not in in_zcdp.methods


def test_a_choice_of_all_is_free():
    for budget in (None, "1", "zcdp:0.5", "1,1e-6"):
        planned = plan(30, question="top_k", k=30, epsilon=1, budget=budget, questions=5)
        assert planned.method == "all"
        for name, cost in planned.costs.items():
            assert (cost.charge, cost.allowed) == (None, None)
            assert (cost.one.epsilon or cost.one.rho or 0) == 0
            assert planned.accuracy[name].average == planned.accuracy[name].all_within_95 == 0
        assert planned.suffices == (None if budget is None else True)
        assert "It costs nothing." in planned.sentences
        assert planned.advice == []
        assert planned.equal_cost is None
        content = json.loads(json.dumps(planned.to_dict()))
        assert [row["total_epsilon"] for row in content["mechanisms"]] == [0.0] * len(planned.promises)
        assert [row["epsilon"] for row in content["costs"]] == [0.0] * len(planned.promises)
    alone = plan(30, question="top_k", k=30, budget="1")
    assert alone.method == "all"
    with_order = plan(30, question="top_k", k=30, epsilon=1, ordered=True)
    assert with_order.method == "one-shot"
    assert with_order.accuracy["permute-and-flip"].average == 0
    assert with_order.accuracy["permute-and-flip"].within_95 > 0


def test_an_interval_of_sizes_is_a_pair():
    question = TopK(candidates=30, k=[3, 8], method="margin", max_values=2)
    assert (question.k, question.to_dict()["k"]) == ((3, 8), [3, 8])
    assert plan(question=question, epsilon=1) == plan(
        30, question="top_k", k=(3, 8), method="margin", max_values=2, epsilon=1
    )
