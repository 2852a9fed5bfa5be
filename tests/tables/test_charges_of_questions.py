"""Every question with a ledger: what is charged, nothing beyond the budget, and requests that are repeated for free."""

import itertools
import json
import warnings
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import pyarrow as pa
import pytest

import dpselect
from dpselect import Ledger, approximate, every, pure, zcdp
from dpselect.errors import BudgetExceeded, InvalidType, InvalidValue, RequestConflict
from dpselect.tables.duckdb import engine as duckdb_engine
from dpselect.tables.kinds import Column, Kind, public_span
from tests.golden.charges import CANDIDATES, DELTA, GROUPS, QUESTIONS, RANGE
from tests.tables.looking import opened

ROWS = {"who": ["a", "a", "b", "c"], "x": [1, 2, 2, 3], "t": list("uvvw"), "g": list("klkl"), "h": [1, 2, 1, 2]}
FREE = "top of all"
BUDGETS = {
    "pure": (pure(1), {"epsilon": "0.3"}, {"epsilon": "1.1"}),
    "zcdp": (zcdp(1, delta="1e-5"), {"rho": "0.01"}, {"rho": "1.1"}),
    "approximate": (approximate(1, "1e-5"), {"rho": "0.001"}, {"rho": "1.1"}),
}
# The number of equal parts of a price, by the budget: of several levels one for each depth, of rounds one for each.
PARTS = {"top 2, peel": 2, "top 2 of unlisted values": 2, "top 2, noisy counts": 2, "values, up to 3": 3, "deciles": 4}
PARTS |= {"two quantiles of rows": 2, "top 2 of a large domain": 2}
GROUPED = {"": 1, ", in 1 of 3 groups": 1, ", in 2 of 4 pairs": 2}


def asked(table, name, groups="", **options):
    """The answer to a question, in groups if they are named."""
    method, arguments, own = QUESTIONS[name]
    table = table if GROUPS[groups] is None else table.group_by(**GROUPS[groups])
    return getattr(table, method)(*arguments, **{**own, **options})


def needs_delta(name):
    return "delta" in QUESTIONS[name][2]


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("currency", BUDGETS)
@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != FREE])
def test_a_price_is_charged_exactly_in_equal_parts(name, currency, groups, tmp_path):
    """In the currency of the budget, whatever draws and however often."""
    budget, price, _ = BUDGETS[currency]
    if currency == "pure" and needs_delta(name):
        return
    ledger = Ledger(tmp_path / "ledger", budget)
    answer = asked(opened(ROWS, person="who", ledger=ledger), name, groups, **price)
    [entry] = ledger.entries()
    assert entry.mechanism.removesuffix("-found") == answer.mechanism
    assert answer.epsilon == entry.charge.each * entry.charge.count
    parts = entry.charge.count // GROUPED[groups]
    if name in PARTS:
        assert parts == PARTS[name]
    elif name in ("top 2, one shot", "top 2, ordered", "top 2, auto"):
        assert parts == (1 if currency == "pure" else 2)  # Gumbel noise, once, costs as much as the selections
    else:
        assert parts == 1
    if currency == "pure":
        assert answer.charged == ledger.spent == Fraction(3, 10) == answer.epsilon
    else:
        assert answer.charged.rho == Fraction(price["rho"])
        assert answer.guarantee.zcdp == pytest.approx(float(Fraction(price["rho"])), rel=1e-6)
        assert answer.guarantee.zcdp <= float(Fraction(price["rho"]))
    ledger.verify(answer.receipt)


@pytest.mark.parametrize("currency", BUDGETS)
@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != FREE])
def test_nothing_is_read_beyond_the_budget(name, currency, tmp_path, monkeypatch):
    budget, _, price = BUDGETS[currency]
    if currency == "pure" and needs_delta(name):
        return
    ledger = Ledger(tmp_path / "ledger", budget)
    table = opened(ROWS, person="who", ledger=ledger)
    monkeypatch.setattr(duckdb_engine, "read", Mock(side_effect=AssertionError))
    with pytest.raises(BudgetExceeded):
        asked(table, name, **price)
    assert ledger.entries() == []


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("currency", BUDGETS)
def test_a_mechanism_may_be_named(mechanism, currency, tmp_path):
    ledger = Ledger(tmp_path / "ledger", BUDGETS[currency][0])
    table = opened(ROWS, person="who", ledger=ledger)
    price = {"epsilon": "0.01", "mechanism": mechanism}
    for name in ("mode of a list", "mode of a large domain", "top 2, set", "median", "maximum", "deciles"):
        assert asked(table, name, **price).mechanism == mechanism
    assert {entry.mechanism for entry in ledger.entries()} == {mechanism}


def test_a_pure_budget_refuses_a_delta(tmp_path):
    ledger = Ledger(tmp_path / "ledger", 1)
    table = opened(ROWS, ledger=ledger)
    for name in filter(needs_delta, QUESTIONS):
        with pytest.raises(dpselect.errors.InvalidValue, match="delta"):
            asked(table, name, **{"epsilon": "0.1", **({"max_values": 1} if name.startswith("values") else {})})
    assert ledger.entries() == []


# Requests: the options that make another question.
OTHERS = {
    "mode of a list": [{"candidates": CANDIDATES[:-1]}, {"candidates": CANDIDATES[::-1]}, {"other": "o"}],
    "mode with others": [{"other": None}, {"other": "others"}],
    "mode of a large domain": [{"candidates": every("int32")}],
    "mode of unlisted values": [{"delta": "1e-7"}, {"max_values": 1}],
    "top 2, margin": [{"k": 3}, {"method": "peel"}, {"mechanism": "exponential"}],
    "top 2, limited": [{"max_values": 5}, {"ordered": True}],
    "values": [{"delta": "1e-7"}, {"max_values": 2}],
    "median": [{"upper": 98}, {"step": 3}, {"lower": None, "upper": None, "range": "log"}],
    "median of rows": [{"max_rows": 2}, {"per_person": "median", "max_rows": None}],
    "minimum": [{"level": "0.02"}, {"mechanism": "exponential"}],
    "quantile 0.9": [{"level": "0.8"}],
    "deciles": [{"levels": "quartiles"}, {"levels": [f"{i}/10" for i in range(9, 0, -1)]}],
}


@pytest.mark.parametrize("groups", ["", ", in 2 of 4 pairs"])
@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != FREE])
def test_a_request_is_repeated_and_costs_nothing(name, groups, tmp_path):
    def table():
        budget = zcdp(1, delta="1e-5") if needs_delta(name) else pure(1)
        return opened(ROWS, person="who", ledger=tmp_path / "ledger", budget=budget)

    price = {"epsilon": "0.001", "request_id": "r"}
    first, again = (asked(table(), name, groups, **price) for _ in range(2))
    assert again == first
    assert (again.value, again.repeated, first.repeated) == (first.value, True, False)
    method, arguments, own = QUESTIONS[name]
    for other in [{"epsilon": "0.002"}, *OTHERS.get(name, [])]:
        changed = {key: other[key] for key in ("k", "level", "levels") if key in other and method != "minimum"}
        rest = {key: value for key, value in other.items() if key not in changed}
        grouped = table() if GROUPS[groups] is None else table().group_by(**GROUPS[groups])
        with pytest.raises(RequestConflict):
            getattr(grouped, method)(arguments[0], *(changed.values() or arguments[1:]), **{**own, **price, **rest})
    assert len(Ledger(tmp_path / "ledger").entries()) == 1


# Ranges, in the forms in which users state them: several are the same grid, and most are not.
ENDS = [
    *({"lower": 0, "upper": upper} for upper in (10, Decimal(10), "10", "10.0", 10.0, 9, 11)),
    *({"lower": 0, "upper": upper, "step": 3} for upper in (8, 9, 10, 11, 12)),
    *({"lower": 0, "upper": 1, "step": step} for step in (Decimal("0.5"), 0.5, "0.5", Decimal("0.3"), "0.30", 0.3)),
    *({"lower": lower} for lower in (0, 0.0, "2026-01-01")),
    {"lower": "2026-01-01", "upper": "2026-01-31"},
    *({"lower": "2026-01-01", "upper": upper, "step": 7} for upper in ("2026-01-29", "2026-01-31")),
    *({"lower": "2026-01-01 00:00:00", "upper": f"2026-01-31 {hour}:00:00", "step": 86400} for hour in ("00", "13")),
    {"step": 1},
    {"range": "log"},
]
COLUMNS = {
    "text": (Column("x", "VARCHAR", Kind.TEXT, untyped=True), ["1", "2.5", "2026-01-01"]),
    "integer": (Column("x", "BIGINT", Kind.INTEGER), [1, 2]),
    "float": (Column("x", "DOUBLE", Kind.FLOAT), [1.0, 2.5]),
    "decimal": (Column("x", "DECIMAL(9,1)", Kind.DECIMAL, 1, precision=9), [Decimal("1.0"), Decimal("2.5")]),
    "date": (Column("x", "DATE", Kind.DATE), [date(2026, 1, 1)]),
    "timestamp": (Column("x", "TIMESTAMP", Kind.TIMESTAMP), [datetime(2026, 1, 1, 5)]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_entries_are_equal_exactly_if_the_candidates_are(name, tmp_path):
    """A text may be read as whole numbers or as decimals, and a range may end behind its last candidate."""
    column, values = COLUMNS[name]
    types = {"x": pa.decimal128(9, 1)} if name == "decimal" else {}
    table = opened({"x": values}, types=types, ledger=tmp_path / "ledger", budget=pure(1))
    spans = []
    for ends in ENDS:
        with suppress(InvalidType, InvalidValue):
            table.median("x", **ends, epsilon="0.001")
            spans.append(public_span(*(ends.get(each) for each in ("lower", "upper", "step")), column, **_only(ends)))
    entries = [entry.what for entry in Ledger(tmp_path / "ledger").entries()]
    assert len(entries) == len(spans) > 2
    for (span, entry), (other, its) in itertools.combinations(zip(spans, entries, strict=True), 2):
        assert (span == other) == (entry == its), (entry, its)


def _only(ends):
    return {"range": ends["range"]} if "range" in ends else {}


@pytest.mark.parametrize("epsilon", ["1e-330", "1e-3000", "1e3000"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_whoever_has_paid_can_see_the_answer(name, epsilon, tmp_path):
    """An accuracy beyond all floats is none, and no reason to withhold the answer."""
    ledger = Ledger(tmp_path / "ledger", zcdp("1e4000", delta="1e-5"))
    with warnings.catch_warnings(action="ignore"), suppress(InvalidValue):
        answer = asked(opened(ROWS, person="who", ledger=ledger), name, epsilon=epsilon)
        assert json.dumps(answer.to_dict())
        assert repr(answer).startswith("Answer(")
        assert answer._repr_html_()
        return
    assert not ledger.entries()


def test_a_rho_too_small_for_any_float_is_refused():
    for mechanism in ("permute-and-flip", "exponential"):
        with pytest.raises(InvalidValue, match="rho is too small"):
            asked(opened(ROWS), "mode of a list", rho="1e-600", mechanism=mechanism)


def test_an_epsilon_beyond_all_floats_exceeds_the_budget(tmp_path):
    ledger = Ledger(tmp_path / "ledger", 1)
    for epsilon in ("1e3000", 10**3000):
        with pytest.raises(BudgetExceeded):
            ledger.spend(epsilon, "all")
        with pytest.raises(BudgetExceeded), pytest.warns(match="hardly protects"):
            asked(opened(ROWS, ledger=ledger), "mode of a list", epsilon=epsilon)


def test_the_name_of_a_question_is_part_of_a_request(tmp_path):
    """A minimum is not the quantile of its level, and a mode is not the first one of the top."""
    table = opened(ROWS, ledger=tmp_path / "ledger", budget=1)
    price = {"epsilon": "0.001", "request_id": "r"}
    table.minimum("x", **RANGE, **price)
    for other in (
        lambda: table.quantile("x", "0.01", **RANGE, **price),
        lambda: table.maximum("x", level="0.01", **RANGE, **price),
        lambda: table.quantiles("x", ["0.01"], **RANGE, **price),
        lambda: table.mode("t", candidates=CANDIDATES, **price),
    ):
        with pytest.raises(RequestConflict):
            other()


def test_a_request_with_another_delta_is_another_request(tmp_path):
    """The ledger records both deltas as 1e-50, but the answer was drawn with the larger one."""
    table = opened({"x": ["a"] * 300}, ledger=tmp_path / "ledger.db", budget=zcdp(2, delta="1e-6"))
    assert table.mode("x", epsilon=1, delta="1e-60", request_id="one").value == "a"
    assert table.mode("x", epsilon=1, delta="1e-60", request_id="one").repeated
    with pytest.raises(RequestConflict):
        table.mode("x", epsilon=1, delta="1e-61", request_id="one")


def test_a_delta_that_is_spent_is_refused(tmp_path):
    table = opened(ROWS, ledger=Ledger(tmp_path / "ledger", zcdp("9", delta=DELTA["delta"])))
    table.values("t", epsilon=1, **DELTA)
    with pytest.raises(BudgetExceeded):
        table.values("t", epsilon=1, delta="1e-30")
