"""`release_top_k`: several candidates from scores of one's own, charged before they are drawn."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import Ledger, approximate, pure, release_top_k, select_top_k, zcdp
from dpselect.errors import BudgetExceeded, InvalidType, InvalidValue, RequestConflict
from dpselect.questions.methods import METHODS

SCORES, LABELS = [3, 500, 2, 400, 300, 0], list("abcdef")
CHOICES = {
    "set": {"method": "set", "max_values": 1},
    "margin": {"method": "margin"},
    "one-shot": {"method": "one-shot"},
    "peel": {"method": "peel"},
    "noisy-counts": {"method": "noisy-counts", "max_values": 1},
    "auto": {},
}
ORDERED = ("one-shot", "peel", "noisy-counts")
BUDGETS = {"pure": pure(1), "zcdp": zcdp(1), "approximate": approximate(1, "1e-6", share=0)}


@pytest.mark.parametrize("monotonic", [True, False])
@pytest.mark.parametrize("name", CHOICES)
def test_clear_scores_have_a_clear_answer(name, monotonic):
    best = ["b", "d", "e"]
    choices = {**CHOICES[name], "monotonic": monotonic, "epsilon": 20}
    for scores in (SCORES, np.array(SCORES), np.array(SCORES, np.uint8 if max(SCORES) < 256 else np.uint16)):
        answer = release_top_k(scores, 3, LABELS, **choices)
        assert answer.value == best
        assert answer.epsilon == answer.guarantee.epsilon == 20
        assert release_top_k(scores, 3, **choices).value == select_top_k(scores, 3, **choices) == [1, 3, 4]
    # Turned round, an order is another one, and a set is still listed as the candidates are.
    turned = release_top_k(SCORES[::-1], 3, LABELS[::-1], **choices).value
    assert turned == (best if name in ORDERED else best[::-1])


@pytest.mark.parametrize("currency", BUDGETS)
@pytest.mark.parametrize("name", CHOICES)
def test_the_charge_is_recorded_before_the_draw(name, currency, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger", budget=BUDGETS[currency])
    price = {"epsilon": "0.3"} if currency == "pure" else {"rho": "0.02"}
    seen = []
    for kind in METHODS.values():
        right = kind.chosen
        monkeypatch.setattr(
            kind,
            "chosen",
            lambda self, *drawn, right=right: seen.append(len(ledger.entries())) or right(self, *drawn),
        )
    answer = release_top_k(SCORES, 3, LABELS, **price, **CHOICES[name], ledger=ledger, what="drinks")
    assert seen == [1]
    [entry] = ledger.entries()
    assert entry.what["question"] == "drinks"
    assert (entry.what["k"], entry.what["candidates"]) == (3, 6)
    assert entry.charge.each * entry.charge.count == answer.epsilon
    assert ledger.spent == answer.charged
    if currency == "pure":
        assert answer.epsilon == Fraction(3, 10)
    else:
        assert ledger.spent.rho == Fraction(1, 50)
        assert answer.guarantee.zcdp <= 0.02
    ledger.verify(answer.receipt)
    with pytest.raises(BudgetExceeded):
        release_top_k(SCORES, 3, **dict.fromkeys(price, 2), **CHOICES[name], ledger=ledger)
    assert seen == [1]


def test_a_request_stands_for_its_scores_labels_and_method(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=1)
    asked = {"epsilon": "0.001", "ledger": ledger, "request_id": "r"}
    first = release_top_k(SCORES, 2, LABELS, **asked)
    again = release_top_k(SCORES, 2, LABELS, **asked)
    assert (again, again.repeated) == (first, True)
    for scores, k, labels, others in (
        ([*SCORES[:-1], 1], 2, LABELS, {}),
        (SCORES, 2, LABELS[::-1], {}),
        (SCORES, 3, LABELS, {}),
        (SCORES, 2, LABELS, {"ordered": True}),
        (SCORES, 2, LABELS, {"method": "margin"}),
        (SCORES, 2, LABELS, {"max_values": 3}),
        (SCORES, 2, LABELS, {"monotonic": False}),
        (SCORES, 2, LABELS, {"mechanism": "exponential"}),
        (SCORES, 2, LABELS, {"what": "something else"}),
    ):
        with pytest.raises(RequestConflict):
            release_top_k(scores, k, labels, **asked, **others)
    assert ledger.spent == Fraction(1, 1000)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"k": 5}, "another k: this question has 2"),
        ({"method": "set"}, "another method: this question has one-shot"),
        ({"ordered": True}, "another ordered: this question has False"),
        ({"max_values": 1}, "another max_values: this question has 4"),
        ({"candidates": 7}, "another number of candidates: there are 6 scores"),
    ],
    ids=str,
)
def test_a_description_cannot_deny_the_question(stated, words, tmp_path):
    """A ledger must show what was asked, and a request id must stand for it. The same may be repeated."""
    ledger = Ledger(tmp_path / "ledger", budget=1)
    asked = {"epsilon": "0.1", "max_values": 4, "ledger": ledger}
    with pytest.raises(InvalidValue, match=words):
        release_top_k(SCORES, 2, **asked, what={"question": "drinks", **stated})
    assert ledger.entries() == []
    right = {"k": 2, "method": "one-shot", "ordered": False, "max_values": 4, "candidates": 6}
    release_top_k(SCORES, 2, **asked, what={"question": "drinks", "year": 2024, **right})
    [entry] = ledger.entries()
    assert entry.what == {"question": "drinks", "year": 2024, "sensitivity": "1", "monotonic": True, **right}


@pytest.mark.parametrize("choices", [{}, CHOICES["set"], CHOICES["margin"], {"mechanism": "noisy-max"}], ids=str)
def test_all_candidates_are_free(choices, tmp_path):
    for number, budget in enumerate(BUDGETS.values()):
        ledger = Ledger(tmp_path / str(number), budget=budget)
        answer = release_top_k(SCORES, 6, LABELS, epsilon=10**6, **choices, ledger=ledger, request_id="r")
        assert (answer.value, answer.epsilon, answer.guarantee.zcdp) == (LABELS, 0, 0)
        assert (answer.mechanism, answer.ledger_id) == ("none", None)
        assert release_top_k(SCORES, 6, rho=1, **choices, ledger=ledger).value == [0, 1, 2, 3, 4, 5]
        assert ledger.entries() == []
    with pytest.raises(InvalidValue, match="request_id needs a ledger"):
        release_top_k(SCORES, 6, epsilon=1, request_id="r")


BAD = {
    "k of zero": ({"k": 0}, InvalidValue, "k must be from 1 to the number of candidates, 6, got 0"),
    "negative counts": ({"method": "margin", "scores": [1, -1, 2]}, InvalidValue, "scores must be counts"),
    "no number": ({"scores": [1.0, float("nan"), 2.0]}, InvalidValue, "scores must be finite"),
    "too few labels": ({"labels": ["a"]}, InvalidValue, "labels must have one label per score"),
    "neither true nor false": ({"monotonic": 1}, InvalidType, "monotonic must be True or False"),
    "two prices": ({"rho": 1}, InvalidValue, "exactly one of epsilon and rho"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_before_a_charge(kind, tmp_path):
    choices, error, words = BAD[kind]
    ledger = Ledger(tmp_path / "ledger", budget=1)
    with pytest.raises(error, match=words):
        release_top_k(**{"scores": SCORES, "k": 2, "epsilon": "0.1", "ledger": ledger, **choices})
    assert ledger.entries() == []


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "noisy-max"])
@pytest.mark.parametrize("max_values", [None, 1, 3])
@pytest.mark.parametrize("ordered", [False, True])
def test_every_mechanism_draws_several(mechanism, max_values, ordered):
    answer = release_top_k(SCORES, 3, LABELS, epsilon=30, mechanism=mechanism, max_values=max_values, ordered=ordered)
    assert answer.value == ["b", "d", "e"]
    assert answer.epsilon == 30
    assert answer.mechanism == mechanism or (mechanism, answer.mechanism) == ("permute-and-flip", "one-shot")
