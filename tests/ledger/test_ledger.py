"""What a user of one ledger in one process sees."""

import math
import os
import pickle
import sqlite3
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect
from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax
from dpselect.accounting.charge import canonical_text
from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    DPSelectError,
    InvalidType,
    InvalidValue,
    LedgerError,
)
from dpselect.ledger import PURE, Charge, Receipt, file
from dpselect.mechanisms import MECHANISMS

TENTH = Charge({"question": "mode", "column": "diagnosis"}, "0.1")


def test_ten_times_the_float_a_tenth_is_more_than_one(ledger: Ledger) -> None:
    """The float 0.1 is above 1/10, and floats count at their exact value."""
    for _ in range(9):
        ledger.spend(0.1, "question")
    with pytest.raises(
        BudgetExceeded, match=r"epsilon 0\.100001 exceeds what is left of the budget, 0\.0999999 of 1.*write '0.1'"
    ):
        ledger.spend(0.1, "question")
    assert ledger.spent == 9 * Fraction(0.1)


@pytest.mark.parametrize(
    ("epsilon", "charged"),
    [
        (1e-70, Fraction(1e-70)),
        ("1e-50", Fraction(1, 10**50)),
        *((tiny, Fraction(1, 10**50)) for tiny in (5e-324, "5e-324", Decimal("1e-3999"), Fraction(1, 7**300))),
    ],
)
def test_a_tiny_spend_is_not_lost(path: Path, epsilon: Any, charged: Fraction) -> None:
    ledger = Ledger(path, budget=1)
    ledger.spend("0.1", "large")
    ledger.spend(epsilon, "tiny")
    assert ledger.spent == Fraction(1, 10) + charged
    assert Ledger(path).spent == Fraction(1, 10) + charged
    with pytest.raises(BudgetExceeded):
        ledger.spend("0.9", "the rest")
    ledger.spend(Fraction(9, 10) - charged, "the rest")
    assert ledger.remaining == 0


@pytest.mark.parametrize("budget", [1, 1.0, "1", "1.0", Fraction(1), Decimal("1.00"), np.float64(1), np.int64(1)])
def test_a_budget_is_a_number_not_a_text(path: Path, budget: Any) -> None:
    Ledger(path, budget="1").spend("1/3", "question")
    assert Ledger(path, budget=budget).remaining == Fraction(2, 3)
    assert Ledger(path).budget == 1


@pytest.mark.parametrize("budget", ["0.9", "1.1", 0.1, Fraction(99999999, 100000000)])
def test_a_budget_is_fixed_at_creation(path: Path, budget: Any) -> None:
    ledger = Ledger(path, budget="1")
    with pytest.raises(BudgetMismatch, match="has the budget epsilon 1, which was fixed when it was created"):
        Ledger(path, budget=budget)
    assert ledger.budget == 1


def test_a_new_ledger_needs_a_budget(path: Path) -> None:
    with pytest.raises(LedgerError, match=r"there is no ledger .*hospital.ledger: give a budget to create one"):
        Ledger(path)
    assert not path.exists()


@pytest.mark.parametrize("bad", [0, -1, "x", math.nan, math.inf, True, [1]])
def test_bad_budgets_and_epsilons_are_named(path: Path, bad: Any) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="budget must be"):
        Ledger(path, budget=bad)
    assert not path.exists()
    with pytest.raises((InvalidValue, InvalidType), match="epsilon must be"):
        Ledger(path, budget=1).spend(bad, "question")


@pytest.mark.parametrize("bad", [b"x", "", "a\0b", 3, None])
def test_bad_paths_are_refused(bad: Any) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="path must be"):
        Ledger(bad, budget=1)


@pytest.mark.parametrize("name", [":memory:", "a?mode=memory", "a%20b#c", "größe ü.db", "a b", "-", "file:x"])
def test_odd_names_are_files(tmp_path: Path, name: str) -> None:
    Ledger(tmp_path / name, budget=1).spend("0.5", "question")
    assert os.listdir(tmp_path) == [name]
    assert Ledger(tmp_path / name).spent == Fraction(1, 2)


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("here.ledger", budget=1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.spend("0.5", "question")
    assert Ledger(tmp_path / "here.ledger").spent == Fraction(1, 2)


def test_a_ledger_that_somebody_switched_to_a_write_ahead_log_is_switched_back(ledger: Ledger, path: Path) -> None:
    ledger.spend("0.1", "question")
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.close()
    Ledger(path).spend("0.1", "question")
    assert os.listdir(path.parent) == [path.name]


def test_a_setting_that_sqlite_refuses_is_an_error(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another program reads the ledger with a write-ahead log, DELETE cannot be set."""
    first, *others = file._SETTINGS
    assert first[0] == "busy_timeout"
    monkeypatch.setattr(file, "_SETTINGS", (("busy_timeout", "50", 50), *others))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("PRAGMA journal_mode = WAL")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM entries").fetchall()
    with pytest.raises(LedgerError, match=r"nothing is released|SQLite refused journal_mode"):
        Ledger(path)
    reader.close()
    Ledger(path).spend("0.1", "question")


def test_entries_say_what_was_asked_and_nothing_else(ledger: Ledger) -> None:
    what = {"question": "median", "column": "age", "lower": 0, "upper": Decimal("99.5"), "step": Fraction(1, 2)}
    ledger.spend("0.25", what)
    ledger.spend("1/3", "in plain words")
    first, second = ledger.entries()
    assert first.what == {"question": "median", "column": "age", "lower": 0, "upper": "199/2", "step": "1/2"}
    assert (first.id, first.epsilon, first.mechanism, first.request_id) == (1, Fraction(1, 4), PURE, None)
    assert (second.id, second.what, second.epsilon) == (2, "in plain words", Fraction(1, 3))
    assert first.time <= second.time
    assert set(first.to_dict()) == {
        "id", "time", "what", "mechanism", "epsilon", "each", "count", "rho", "delta", "request_id",
        "head",
    }  # fmt: skip


def test_order_is_by_sequence_never_by_clock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["2030-01-01T00:00:00.000000+00:00", "1999-01-01T00:00:00.000000+00:00"])
    monkeypatch.setattr("dpselect.ledger.file._now", lambda: next(times))
    ledger.spend("0.1", "first")
    ledger.spend("0.1", "second, on a clock that was set back")
    assert [entry.id for entry in ledger.entries()] == [1, 2]
    assert [entry.time[:4] for entry in ledger.entries()] == ["2030", "1999"]
    ledger.verify()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (3, "what must be a string or a mapping"),
        (None, "what must be a string or a mapping"),
        (["a"], "what must be a string or a mapping"),
        ({"scores": np.arange(3)}, "got ndarray"),
        ({1: "a"}, "mappings with strings as keys, got dict"),
        ({"a": math.nan}, "finite numbers"),
        ({"a": {"b": [object()]}}, "got object"),
        ({"a": 10**5000}, "at most 4000 digits"),
        ({"a": "x" * 2**20}, "what must be at most 1,048,576 characters"),
    ],
)
def test_a_question_holds_public_parameters_only(ledger: Ledger, what: Any, message: str) -> None:
    with pytest.raises((InvalidValue, InvalidType), match=message):
        ledger.spend("0.1", what)
    assert ledger.spent == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.fractions(max_denominator=99) | st.just("\ud800\0"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.text(max_size=20) | st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_the_canonical_text_of_a_question_is_stable(what: Any) -> None:
    charge = Charge(what, 1)
    assert canonical_text(charge.what) == charge.text == Charge(charge.what, 1).text
    assert charge.text.isascii()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "0.1", "gaussian"), "mechanism must be one of permute-and-flip, exponential, noisy-max, pure"),
        (("x", "0.1", PURE, 0), "count must be from 1"),
        (("x", "0.1", PURE, True), "count must be an integer"),
        (("x", "0.1", PURE, 10**13), "count must be from 1"),
        (("x", "0"), "epsilon must be > 0"),
    ],
)
def test_bad_charges_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((InvalidValue, InvalidType), match=message):
        Charge(*arguments)


def test_only_a_charge_is_charged(ledger: Ledger) -> None:
    with pytest.raises(InvalidType, match="charge must be a Charge, got str"):
        ledger.charge("0.1")  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", [{"sensitivity": "2.5", "monotonic": True}, {"score_range": "2.5"}], ids=str)
@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax])
def test_a_charge_names_the_very_mechanism_that_draws(ledger: Ledger, kind: Any, claim: dict[str, Any]) -> None:
    mechanism = kind("1/7", **claim)
    entry = ledger.charge(Charge.of(mechanism, {"question": "mode"}))
    assert isinstance(entry.what, dict)
    stated = {name: value for name, value in entry.what.items() if name != "question"}
    assert stated == {name: "5/2" if value == "2.5" else value for name, value in claim.items()}
    rebuilt = MECHANISMS[entry.mechanism](entry.charge.each, **stated)
    assert (type(rebuilt), rebuilt, mechanism.name) == (kind, mechanism, entry.mechanism)
    with pytest.raises(InvalidType, match="what must be a mapping"):
        Charge.of(mechanism, "mode")  # type: ignore[arg-type]


def test_a_mechanism_that_is_not_ours_has_no_name() -> None:
    class Mine(PermuteAndFlip):
        """A subclass may draw anything."""

    with pytest.raises(InvalidType, match="mechanism must be one of dpselect's, got Mine"):
        Charge.of(Mine(1), {})


def test_the_representation_and_the_lazy_names(ledger: Ledger) -> None:
    assert repr(ledger) == f"Ledger({str(ledger.path)!r}, budget=pure('1'))"
    assert dpselect.ledger.Ledger is dpselect.Ledger is Ledger
    assert issubclass(dpselect.BudgetExceeded, DPSelectError)
    assert issubclass(dpselect.LedgerCorrupt, LedgerError)
    assert not issubclass(dpselect.BudgetExceeded, LedgerError)


def test_entries_and_receipts_travel(ledger: Ledger) -> None:
    entry = ledger.charge(TENTH, request_id="r")
    assert pickle.loads(pickle.dumps(entry)) == entry  # noqa: S301 - our own
    receipt = ledger.receipt(entry)
    assert Receipt.from_json(receipt.to_json()) == receipt == ledger.receipt()


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '{"receipt": 2, "ledger": "a", "id": 1, "head": "b"}',
                                  '{"receipt": 1, "ledger": "a", "id": "1", "head": "b"}', "[" * 100_000])  # fmt: skip
def test_a_text_that_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="receipt must"):
        Receipt.from_json(text)


# Requests: a retry gets the stored answer and costs nothing, or is refused.


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
