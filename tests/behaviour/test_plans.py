"""Plans beside tables: what a plan says a question costs, draws and achieves is what the table does."""

import random
import re
from fractions import Fraction

import pyarrow as pa
import pytest

import dpselect
from dpselect import Ledger, approximate, plan, zcdp
from dpselect.analysis import plan_found
from tests import seam

TABLE = pa.table({"who": [1, 1, 2], "x": ["a", "b", "b"], "g": ["p", "q", "p"], "n": [1, 2, 3]})
LISTED = ["a", "b", "c", "d"]
ENDS = {"lower": 0, "upper": 9}
QUARTERS = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
# A plan's question, and the same question about the table.
QUESTIONS = {
    "mode": ({"question": "mode", "candidates": 4}, lambda t, **o: t.mode("x", candidates=LISTED, **o)),
    "peel": (
        {"question": "top_k", "candidates": 4, "k": 2, "method": "peel"},
        lambda t, **o: t.top_k("x", 2, candidates=LISTED, method="peel", **o),
    ),
    "set": (
        {"question": "top_k", "candidates": 4, "k": 2, "method": "set", "max_values": 1},
        lambda t, **o: t.top_k("x", 2, candidates=LISTED, method="set", max_values=1, **o),
    ),
    "margin": (
        {"question": "top_k", "candidates": 4, "k": 2, "method": "margin"},
        lambda t, **o: t.top_k("x", 2, candidates=LISTED, method="margin", **o),
    ),
    "median": ({"question": "median", **ENDS}, lambda t, **o: t.median("n", **ENDS, **o)),
    "quantile": (
        {"question": "quantile", "level": "0.9", **ENDS},
        lambda t, **o: t.quantile("n", "0.9", **ENDS, **o),
    ),
    "quantiles": (
        {"question": "quantiles", "levels": QUARTERS, **ENDS},
        lambda t, **o: t.quantiles("n", QUARTERS, **ENDS, **o),
    ),
    "rows": (
        {"question": "median", "max_rows": 3, **ENDS},
        lambda t, **o: t.median("n", per_person="rows", max_rows=3, **ENDS, **o),
    ),
}
BUDGETS = {"pure": "10", "zcdp": zcdp(10, delta="1e-3"), "approximate": approximate(20, "1e-3")}


def asked(name, tmp_path, budget, relation, grouped, **price):
    """The plan, the answer, its entry, and the mechanisms that drew."""
    planned, ask = QUESTIONS[name]
    ledger = Ledger(tmp_path / "ledger", budget=budget)
    table = dpselect.open_table(TABLE, person="who", neighbours=relation, ledger=ledger)
    groups = {"groups": 2, "max_groups": 2} if grouped else {}
    if grouped:
        table = table.group_by("g", groups=["p", "q"], max_groups=2)
    recorder = seam.Recorder(random.Random(1))
    with seam.recording(recorder, 7, "duckdb"):
        answer = ask(table, **price)
    expected = plan(**planned, **groups, neighbours=relation, budget=budget, questions=1, **price)
    [entry] = ledger.entries()
    return expected, answer, entry, recorder.selections, ledger


@pytest.mark.parametrize("grouped", [False, True], ids=["alone", "groups"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_plan_states_what_a_table_charges_and_draws(name, kind, relation, grouped, tmp_path):
    expected, answer, entry, selections, ledger = asked(name, tmp_path, BUDGETS[kind], relation, grouped, epsilon="0.7")
    told = expected.to_dict()
    [cost] = [own for own in told["costs"] if own["mechanism"] == expected.used]
    assert expected.used == answer.mechanism
    assert entry.charge.epsilon == answer.epsilon == Fraction(7, 10)
    assert cost["draws"] * cost["epsilon_each"] == pytest.approx(0.7)
    for one in selections:
        assert float(one.mechanism.epsilon) == pytest.approx(cost["epsilon_each"])
    assert cost["rho"] == pytest.approx(float(entry.rho), rel=1e-9)
    assert dict(cost["one"], currency=None) == dict(ledger.charged(entry).to_dict(), currency=None)
    if selections[0].what == seam.ONE and name != "quantiles":
        assert str(selections[0].mechanism.score_range) == str(expected.question.claim.score_range)


@pytest.mark.parametrize("name", ["mode", "set", "median", "quantiles"])
def test_a_plan_states_the_accuracy_of_the_answer(name, tmp_path):
    expected, answer, *_ = asked(name, tmp_path, "10", "add-remove", False, epsilon="0.7")
    accuracy = expected.accuracy[answer.mechanism]
    assert answer.accuracy.average == pytest.approx(accuracy.average)
    assert answer.accuracy.within_95 == pytest.approx(accuracy.within_95)


@pytest.mark.parametrize("name", ["mode", "median"])
def test_a_budget_pays_for_as_many_questions_as_the_plan_says(name, tmp_path):
    planned, ask = QUESTIONS[name]
    found = plan(**planned, budget="zcdp:0.1", questions=5)
    ledger = Ledger(tmp_path / "ledger", budget="zcdp:0.1")
    table = dpselect.open_table(TABLE, person="who", ledger=ledger)
    for _ in range(5):
        ask(table, rho=Fraction(1, 50))
    assert ledger.remaining.rho == 0
    assert any("Ask each question with rho 0.02" in line for line in found.sentences)
    with pytest.raises(dpselect.BudgetExceeded):
        ask(table, rho="1e-9")


# Accuracy, by brute force over tables.


def errors_of(mode, counts, mechanism):
    """How many people fewer the answer has, with its probability."""
    rows = [label for label, count in zip(LISTED, counts, strict=True) for _ in range(count)]
    table = dpselect.open_table(pa.table({"x": pa.array(rows, pa.string())}))
    law = seam.answers(lambda: mode(table, epsilon=1, mechanism=mechanism)).law
    return [(max(counts) - counts[LISTED.index(label)], chance) for label, chance in law.items()]


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_no_table_exceeds_the_accuracy_of_a_mode_and_some_reach_it(mechanism):
    planned, mode = QUESTIONS["mode"]
    accuracy = plan(**planned, epsilon=1).accuracy[mechanism]
    averages = []
    for gap in range(9):
        found = errors_of(mode, (gap, 0, 0, 0), mechanism)
        averages.append(sum(error * chance for error, chance in found))
        for bound, rare in ((accuracy.within_95, 0.05), (accuracy.within_99, 0.01)):
            assert sum(chance for error, chance in found if error >= bound) <= rare
    assert 0.9 * accuracy.average <= max(averages) <= accuracy.average


NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e-?\d+)?")


@pytest.mark.parametrize("epsilon", ["0.5", "0.3", "1/7"])
@pytest.mark.parametrize("name", ["mode", "median", "quantile"])
def test_what_is_told_about_errors_is_rounded_up(name, epsilon):
    """In the sentences of a plan, and in those of an answer."""
    planned, ask = QUESTIONS[name]
    found = plan(**planned, epsilon=epsilon)
    accuracy = found.accuracy[found.used]
    answer = ask(dpselect.open_table(TABLE), epsilon=epsilon)
    exact = (accuracy.average, accuracy.within_95, accuracy.within_99)
    for words in (found.sentences[0], answer.accuracy.words):
        numbers = [float(text.replace(",", "")) for text in NUMBER.findall(words)]
        for error in exact:
            near = [number for number in numbers if number == pytest.approx(error, rel=2e-3)]
            assert near, (error, words)
            assert min(near) >= error * (1 - 1e-10), (error, words)


@pytest.mark.parametrize("wanted", [2, 10, 33])
def test_the_epsilon_for_an_error_achieves_it(wanted):
    planned, _ = QUESTIONS["mode"]
    found = plan(**planned, error=wanted)
    again = plan(**planned, epsilon=Fraction(found.to_dict()["mechanisms"][0]["epsilon"]))
    assert again.accuracy["permute-and-flip"].average <= wanted * (1 + 1e-9)


# Unlisted values.

FOUND = {
    "values": (lambda t, **o: t.values("x", **o), {"question": "values"}),
    "mode": (lambda t, **o: t.mode("x", max_values=1, **o), {"question": "mode", "max_values": 1}),
}


@pytest.mark.parametrize("grouped", [False, True], ids=["alone", "groups"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", FOUND)
def test_a_value_of_so_many_people_is_found_half_of_the_time(name, relation, grouped):
    ask, planned = FOUND[name]
    price = {"epsilon": 2, "delta": "1e-3"}
    groups = {"groups": 1, "max_groups": 1} if grouped else {}
    told = plan_found(**planned, **price, **groups, neighbours=relation).to_dict()

    def chance(people):
        rows = pa.table({"who": range(people), "x": ["a"] * people, "g": ["p"] * people})
        table = dpselect.open_table(rows, person="who", neighbours=relation)
        table = table.group_by("g", groups=["p"]) if grouped else table
        law = seam.answers(lambda: ask(table, **price)).law
        return sum(own for value, own in law.items() if "'a'" in repr(value))

    for people, least in ((told["people_half"], 0.5), (told["people_95"], 0.95)):
        assert chance(people - 1) < least <= chance(people)
    assert chance(1) <= 1e-3
