"""No sum of charges exceeds a budget, in any currency, for any sequence, and no charge that fits is refused."""

import random
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpselect import Ledger, approximate, pure, zcdp
from dpselect.accounting.budget import Budget, as_budget
from dpselect.accounting.charge import ROUND
from dpselect.accounting.totals import total
from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    InvalidType,
    InvalidValue,
    RequestConflict,
    RequestUnanswered,
)
from dpselect.ledger import Charge
from tests.ledger.currencies import AMPLE, WHOLE, at_once, cost, every_currency

STEP = Fraction(1, ROUND)
MECHANISMS = ["pure", "permute-and-flip", "exponential", "noisy-max"]
ODD = [Fraction(1, 1009), Fraction(1, 10**60), Fraction(1, 10**3990 - 1), Fraction(5e-324), Fraction(1, 3) + STEP / 7]
EPSILONS = st.sampled_from([*map(Fraction, ("0.1", "1/3", "0.5", "1", "1e-9")), Fraction(0.1), *ODD])
RHOS = st.sampled_from([*map(Fraction, ("0.05", "1/7", "0.5", "1e-9")), Fraction(0.1), *ODD])
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 10**4), Fraction(1, 1009), Fraction(1, 10**60), Fraction(1e-7)])
CHARGES = st.one_of(
    st.builds(Charge, st.just("by epsilon"), EPSILONS, st.sampled_from(MECHANISMS), st.integers(1, 4), delta=DELTAS),
    st.builds(
        lambda rho, count, delta: Charge("by rho", rho=rho, count=count, delta=delta), RHOS, st.integers(1, 4), DELTAS
    ),
)
REST = "what is left"
BUDGETS = st.sampled_from(
    [zcdp("1", delta="0.001"), zcdp("1/1009", delta="1/1009"), zcdp("0.3"), approximate("2", "0.01"),
     approximate("1", "1e-6", share=0), pure("1"), pure("2", cap="0.5")]
)  # fmt: skip


def exactly_left(ledger: Ledger) -> Charge:
    """A charge of all that remains."""
    value, delta = ledger.remaining.limit
    if ledger.budget.rho is None:
        return Charge(REST, value)
    return Charge(REST, rho=value, delta=min(delta, Fraction(1, 2)))


@settings(max_examples=60, deadline=None)
@given(BUDGETS, st.lists(CHARGES | st.just(REST), max_size=8))
@example(zcdp("1/1009", delta="1/1009"), [Charge("a", rho="1/2018", delta="1/2018"), REST])
@example(zcdp("0.5", delta="1e-300"), [Charge("a", rho="0.1", delta="1e-301")] * 3 + [REST])
def test_sums_never_exceed_the_limit(budget: Budget, charges: Sequence[Charge | str]) -> None:
    """Against sums that this test keeps itself: of what was asked for, exactly; and of what is recorded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ledger"
        ledgers = [Ledger(path, budget=budget), Ledger(path)]
        asked = recorded = Fraction(0)
        asked_delta = recorded_delta = Fraction(0)
        for given_charge in charges:
            ledgers.reverse()
            ledger, before = ledgers[0], len(ledgers[1].entries())
            if isinstance(given_charge, str) and ledger.remaining.limit.value == 0:
                continue
            charge = exactly_left(ledger) if isinstance(given_charge, str) else given_charge
            value = charge.epsilon if budget.rho is None else charge.rho
            try:
                entry = ledger.charge(charge)
            except InvalidValue:
                is_capped = budget.cap is not None and charge.each > budget.cap
                assert value is None or (charge.delta and not budget.limit.delta) or is_capped
                assert len(ledgers[1].entries()) == before
                continue
            except BudgetExceeded:
                too_much = recorded + value + STEP > budget.limit.value
                assert too_much or recorded_delta + charge.delta + STEP > budget.limit.delta
                assert not isinstance(given_charge, str)
                assert len(ledgers[1].entries()) == before
                continue
            assert value is not None
            cost = entry.epsilon if budget.rho is None else entry.rho
            assert cost is not None
            assert value <= cost
            assert charge.delta <= entry.delta < charge.delta + STEP
            asked, recorded = asked + value, recorded + cost
            asked_delta, recorded_delta = asked_delta + charge.delta, recorded_delta + entry.delta
            assert asked <= recorded <= budget.limit.value
            assert asked_delta <= recorded_delta <= budget.limit.delta
            if isinstance(given_charge, str):
                assert recorded == budget.limit.value
            assert ledgers[1].spent.limit == (recorded, recorded_delta)
        again = Ledger(path)
        assert again.spent.limit == (recorded, recorded_delta)
        assert again.remaining.limit == (budget.limit.value - recorded, budget.limit.delta - recorded_delta)
        assert again.verify().id == len(again.entries())
        assert total(again).delta == recorded_delta
        assert str(again.spent)
        assert again.spent.words


@pytest.mark.parametrize(
    ("budget", "release", "words"),
    [
        (
            "1",
            {"epsilon": "0.1", "delta": "1e-9"},
            "a release with a delta has no pure epsilon: use a ledger whose budget has",
        ),
        ("1", {"rho": "0.1"}, "a release of which only rho is known has no pure epsilon: use a ledger whose budget"),
        ("1", {"rho": "0.1", "delta": "1e-9"}, "has no pure epsilon"),
        ("1,cap:0.1", {"rho": "0.01"}, "has no pure epsilon"),
        ("1,cap:0.1", {"epsilon": "0.11"}, r"epsilon of a single release must be at most 0\.1, the cap of this ledger"),
        (
            "zcdp:1",
            {"epsilon": "0.1", "delta": "1e-9"},
            "this budget has no delta for releases: create a ledger whose budget has one",
        ),
        ("zcdp:1", {"rho": "0.1", "delta": "1e-9"}, "this budget has no delta for releases"),
        ("1,1e-6,0", {"rho": "0.001", "delta": "1e-9"}, "this budget has no delta for releases"),
        ("1", {}, "give exactly one of epsilon and rho"),
        ("1", {"epsilon": 1, "rho": 1}, "give exactly one of epsilon and rho"),
        ("zcdp:1", {}, "give exactly one of epsilon and rho"),
        ("zcdp:1", {"epsilon": "0.1", "rho": "0.1"}, "give exactly one of epsilon and rho"),
        ("zcdp:1", {"rho": 0}, "rho must be > 0"),
        ("zcdp:1", {"rho": "x"}, "rho must be a number"),
        ("zcdp:1", {"rho": True}, "rho must be a number"),
        ("zcdp:1,0.1", {"rho": "0.1", "delta": 1}, "delta must be from 0 to below 1"),
        ("zcdp:1,0.1", {"rho": "0.1", "delta": -1}, "delta must be from 0 to below 1"),
        ("zcdp:1,0.1", {"rho": "0.1", "delta": None}, "delta must be a number"),
    ],
)
def test_what_a_budget_never_allows_is_a_clear_error_and_costs_nothing(
    path: Path, budget: str, release: dict[str, Any], words: str
) -> None:
    ledger = Ledger(path, budget=budget)
    before = path.read_bytes()
    with pytest.raises((InvalidValue, InvalidType), match=words):
        ledger.spend(what="question", **release)
    assert path.read_bytes() == before
    assert ledger.entries() == []


def test_a_stated_rho_may_not_be_too_small() -> None:
    charge = Charge("x", "1", "exponential", rho="0.2")
    assert charge.rho == Fraction(1, 5)
    with pytest.raises(InvalidValue, match="rho must be at least that of the mechanism"):
        Charge("x", "1", "exponential", rho="0.05")
    with pytest.raises(InvalidValue, match="give the epsilon of the charge, or its rho"):
        Charge("x")
    with pytest.raises(InvalidValue, match="give the epsilon of each release too"):
        Charge("x", mechanism="exponential", rho="0.1")


def test_a_cap_is_for_each_release(path: Path) -> None:
    ledger = Ledger(path, budget=pure("10", cap="0.1"))
    ledger.charge(Charge("top 5", "0.1", "exponential", count=5))
    with pytest.raises(InvalidValue, match=r"at most 0\.1, the cap of this ledger, got 0\.100001"):
        ledger.spend(0.1, "the float is more than a tenth")
    assert ledger.spent == Fraction(1, 2)
    with pytest.raises(BudgetMismatch):
        Ledger(path, budget="10")
    with pytest.raises(BudgetMismatch):
        Ledger(path, budget=pure("10", cap="0.2"))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mechanism", ["any", *MECHANISMS[1:]])
def test_the_zcdp_that_follows_from_a_cap_is_an_upper_bound(mechanism: str, seed: int) -> None:
    """Random sequences that use up the budget, with releases at the cap and below it.

    Each rho is rounded up by up to 2e-12 of its size. What is true is below what is recorded divided by that.
    """
    numbers = random.Random(seed)
    for budget in (pure("10", cap="0.1"), pure("3", cap="3"), pure("40", cap="8")):
        assert budget.cap is not None
        left, rho = budget.epsilon, Fraction(0)
        while left > 0:
            name = numbers.choice(MECHANISMS) if mechanism == "any" else mechanism
            each = min(left, budget.cap, numbers.choice([budget.cap, Fraction(numbers.random()) * budget.cap]))
            charge = Charge("x", max(each, min(left, budget.cap / 1000)), name)
            budget.check(charge)
            assert charge.epsilon is not None
            left, rho = left - charge.epsilon, rho + charge.rho
        assert rho / (1 + Fraction(2, 10**12)) <= Fraction(budget.follows[mechanism])


# The other promises, in every currency.


@every_currency(WHOLE)
def test_threads_share_a_ledger_of_any_currency(path: Path, budget: str) -> None:
    ledger = Ledger(path, budget=budget)
    part = {"epsilon" if ledger.budget.rho is None else "rho": ledger.budget.limit.value / 24}
    spent: list[int] = []
    unexpected: list[BaseException] = []

    def spend() -> None:
        try:
            while True:
                spent.append(ledger.spend(what="question", **part))
        except BudgetExceeded:
            pass
        except BaseException as error:
            unexpected.append(error)

    at_once(*[spend] * 8)
    assert unexpected == []
    assert sorted(spent) == list(range(1, 25))
    assert ledger.remaining.limit.value == 0
    assert ledger.verify().id == 24


@every_currency()
def test_requests_in_any_currency(path: Path, budget: str) -> None:
    ledger, charge = (
        Ledger(path, budget=budget),
        Charge({"question": "mode"}, Fraction(1, 1009), "exponential", count=3),
    )
    entry = ledger.charge(charge, request_id="r")
    assert entry.charge.each > charge.each  # it is rounded up, and a retry is recognised all the same
    with pytest.raises(RequestUnanswered, match=r"as entry 1, but its answer was not stored\. Nothing is refunded"):
        ledger.charge(charge, request_id="r")
    with pytest.raises(RequestConflict, match="request_id was used before with a different question or parameters"):
        ledger.charge(Charge("other", Fraction(1, 1009), "exponential", count=3), request_id="r")
    ledger.store_answer(entry.id, "asthma", content="data")
    for repeat in (ledger, Ledger(path)):
        for same in (charge, entry.charge):
            again = repeat.charge(same, request_id="r", content="data")
            assert (again.id, again.answer, again.head, again.rho, again.delta) == (
                entry.id, "asthma", entry.head, entry.rho, entry.delta,
            )  # fmt: skip
    others = [
        Charge(charge.what, Fraction(1, 1013), "exponential", count=3),
        Charge(charge.what, Fraction(1, 1009), "permute-and-flip", count=3),
        Charge(charge.what, Fraction(1, 1009), "exponential", count=2),
        Charge("other", Fraction(1, 1009), "exponential", count=3),
    ]
    if as_budget(budget).limit.delta:
        others.append(Charge(charge.what, charge.each, "exponential", 3, delta="1e-9"))
    for other in others:
        with pytest.raises(RequestConflict):
            ledger.charge(other, request_id="r")
    with pytest.raises(RequestConflict, match="other data"):
        ledger.charge(charge, request_id="r", content="other data")
    assert (ledger.spent, len(ledger.entries())) == (cost(budget, 1, charge), 1)


@pytest.mark.parametrize("budget", [AMPLE[name] for name in ("cap", "zcdp", "approximate")])
def test_a_request_with_another_rho_is_a_conflict(path: Path, budget: str) -> None:
    ledger = Ledger(path, budget=budget)
    first = Charge("x", "0.1", "exponential", rho="0.01")
    ledger.store_answer(ledger.charge(first, request_id="r").id, "asthma")
    assert ledger.charge(first, request_id="r").answer == "asthma"
    for other in (Charge("x", "0.1", "exponential"), Charge("x", "0.1", "exponential", rho="0.02")):
        with pytest.raises(RequestConflict):
            ledger.charge(other, request_id="r")
    odd = Charge("y", "0.1", "exponential", rho=Fraction(10, 1009))
    ledger.store_answer(ledger.charge(odd, request_id="odd").id, "flu")
    assert ledger.charge(odd, request_id="odd").answer == "flu"


@every_currency()
def test_what_is_spent_and_left_is_exact_and_what_is_guaranteed_is_said(path: Path, budget: str) -> None:
    ledger = Ledger(path, budget=budget)
    for _ in range(3):
        ledger.spend("0.1", "question")
    limit = as_budget(budget).limit
    assert ledger.spent == cost(budget, 3)
    assert ledger.spent.limit.value + ledger.remaining.limit.value == limit.value
    assert ledger.spent.limit.delta + ledger.remaining.limit.delta == limit.delta
    if ledger.budget.rho is None:
        assert ledger.guaranteed == "0.3-DP (pure)"
    else:
        assert ledger.guaranteed == f"the budget, {ledger.budget.words}"
    assert ledger.charged(ledger.entries()[0]) == cost(budget, 1)
