"""Requests: a retry gets the stored answer and costs nothing, or is refused."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpselect import Ledger
from dpselect.errors import (
    BudgetExceeded,
    InvalidType,
    InvalidValue,
    RequestConflict,
)
from dpselect.ledger import Charge

TENTH = Charge({"question": "mode", "column": "diagnosis"}, "0.1")


@pytest.mark.parametrize(
    ("budget", "whole"),
    [("1", Charge("all", 1)), ("zcdp:0.5", Charge("all", Fraction(1, 1009), "exponential", rho="0.5"))],
)
def test_a_stored_answer_comes_back_when_the_budget_is_gone(path: Path, budget: str, whole: Charge) -> None:
    """A charge of all that is left is not rounded, and recognised all the same."""
    ledger = Ledger(path, budget=budget)
    ledger.store_answer(ledger.charge(whole, request_id="r").id, "42")
    assert ledger.charge(whole, request_id="r").answer == "42"
    with pytest.raises(BudgetExceeded):
        ledger.charge(whole, request_id="other")


def test_an_answer_never_changes(ledger: Ledger) -> None:
    entry = ledger.charge(TENTH, request_id="r")
    ledger.store_answer(entry.id, "asthma")
    ledger.store_answer(entry.id, "asthma")
    with pytest.raises(RequestConflict, match="entry 1 already has a different answer"):
        ledger.store_answer(entry.id, "flu")
    assert ledger.entries()[0].answer == "asthma"


@pytest.mark.parametrize("bad", ["", "x" * 201, "a\nb", 3, b"r"])
def test_bad_request_ids_are_refused(ledger: Ledger, bad: Any) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="request_id must be"):
        ledger.charge(TENTH, request_id=bad)
    assert ledger.spent == 0


def test_bad_answers_are_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidValue, match="there is no entry 1"):
        ledger.store_answer(1, "x")
    ledger.charge(TENTH)
    with pytest.raises(InvalidType, match="answer must be a string"):
        ledger.store_answer(1, 42)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="answer must be a string that can be encoded as UTF-8"):
        ledger.store_answer(1, "\ud800")


@pytest.mark.parametrize("answer", ["", "größe", "a\0b", "\U0001f600", "x" * 100_000])
def test_answers_come_back_to_the_last_character(ledger: Ledger, path: Path, answer: str) -> None:
    ledger.store_answer(ledger.charge(TENTH, request_id="r").id, answer)
    assert Ledger(path).charge(TENTH, request_id="r").answer == answer
    ledger.verify()


def test_a_charge_without_a_request_is_charged_each_time(ledger: Ledger) -> None:
    ledger.charge(TENTH)
    ledger.charge(TENTH)
    assert ledger.spent == Fraction(1, 5)
