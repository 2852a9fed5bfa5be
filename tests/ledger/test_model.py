"""Any sequence of uses against a plain model in memory."""

import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dpselect import Ledger
from dpselect.accounting.charge import loss_of
from dpselect.accounting.totals import total
from dpselect.errors import BudgetExceeded, BudgetMismatch, RequestConflict, RequestUnanswered
from dpselect.ledger import Charge, Receipt

ODD = [Fraction(5e-324), Fraction(1, 1009), Fraction(1, 10**3999 - 1)]
EPSILONS = st.sampled_from(["0.1", 0.1, "1/3", "1/7", "1e-30", "0.05", *ODD])
MECHANISMS = st.sampled_from(["permute-and-flip", "exponential", "noisy-max", "pure"])
CHARGES = st.builds(Charge, st.sampled_from(["a", "b"]), EPSILONS, MECHANISMS, st.integers(1, 3))
REQUESTS = st.sampled_from(["r1", "r2", "r3"])


@dataclass
class Model:
    """What a ledger promises, without a file."""

    budget: Fraction
    charges: list[Charge] = field(default_factory=list)  # as they are recorded
    requests: dict[str, int] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)

    @property
    def spent(self) -> Fraction:
        return sum(map(self.cost, self.charges), Fraction(0))

    def cost(self, charge: Charge) -> Fraction:
        return charge.each * charge.count

    def refuses(self, charge: Charge) -> bool:
        return self.spent + self.cost(charge) > self.budget


class ConcentratedModel(Model):
    """The same with a sum of rho."""

    def cost(self, charge: Charge) -> Fraction:
        return rho_of(charge)


def rho_of(charge: Charge) -> Fraction:
    """That of a tiny epsilon is a float beyond the grid, and costs 10^-50."""
    rho = Fraction(loss_of(charge.mechanism).zcdp(charge.each)) * charge.count
    return Fraction(1, 10**50) if rho < Fraction(1, 10**70) else rho


def recorded(charge: Charge) -> Charge:
    """An odd fraction costs the next multiple of 10^-50, and all others what they are."""
    each = charge.each
    if each in ODD:
        exact = each * charge.count
        each = Fraction(-(-exact.numerator * 10**50 // exact.denominator), 10**50) / charge.count
    rounded = Charge(charge.what, each, charge.mechanism, charge.count)
    return Charge(charge.what, each, charge.mechanism, charge.count, rho=rho_of(rounded))


class LedgerMachine(RuleBasedStateMachine):
    budget, other_budgets, model_of = "1.5", ("1.4", "2", 0.1, "zcdp:1.5", "1.5,1e-6", "1.5,cap:1"), Model

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "a.ledger"
        self.ledgers = [Ledger(self.path, budget=self.budget), Ledger(self.path)]
        self.model = self.model_of(self.ledgers[0].budget.limit.value)
        self.receipts: list[Receipt] = [self.ledgers[0].receipt()]

    @property
    def ledger(self) -> Ledger:
        """Two objects take turns, so that each must learn of the other's charges."""
        self.ledgers.reverse()
        return self.ledgers[0]

    @rule(charge=CHARGES)
    def charge(self, charge: Charge) -> None:
        cost = recorded(charge)
        if self.model.refuses(cost):
            with pytest.raises(BudgetExceeded):
                self.ledger.charge(charge)
            return
        self.model.charges.append(cost)
        entry = self.ledger.charge(charge)
        assert (entry.id, entry.charge) == (len(self.model.charges), cost)
        self.receipts.append(self.ledger.receipt(entry))

    @rule(charge=CHARGES, request=REQUESTS)
    def request(self, charge: Charge, request: str) -> None:
        earlier, cost = self.model.requests.get(request), recorded(charge)
        if earlier is None and self.model.refuses(cost):
            with pytest.raises(BudgetExceeded):
                self.ledger.charge(charge, request_id=request)
        elif earlier is None:
            self.model.charges.append(cost)
            self.model.requests[request] = len(self.model.charges)
            assert self.ledger.charge(charge, request_id=request).id == len(self.model.charges)
        elif self.model.charges[earlier - 1] != cost:
            with pytest.raises(RequestConflict):
                self.ledger.charge(charge, request_id=request)
        elif earlier not in self.model.answers:
            with pytest.raises(RequestUnanswered):
                self.ledger.charge(charge, request_id=request)
        else:
            entry = self.ledger.charge(charge, request_id=request)
            assert (entry.id, entry.answer) == (earlier, self.model.answers[earlier])

    @rule(request=REQUESTS)
    def repeat(self, request: str) -> None:
        """The same request again, with the parameters that it had."""
        if request in self.model.requests:
            self.request(self.model.charges[self.model.requests[request] - 1], request)

    @rule(request=REQUESTS, answer=st.sampled_from(["x", "y"]))
    def store(self, request: str, answer: str) -> None:
        id = self.model.requests.get(request)
        if id is None:
            return
        if self.model.answers.setdefault(id, answer) == answer:
            self.ledger.store_answer(id, answer)
        else:
            with pytest.raises(RequestConflict, match=f"entry {id} already has a different answer"):
                self.ledger.store_answer(id, answer)

    @rule()
    def reopen(self) -> None:
        self.ledgers[0] = Ledger(self.path, budget=self.budget)

    @rule(data=st.data())
    def reopen_with_another_budget(self, data: st.DataObject) -> None:
        with pytest.raises(BudgetMismatch):
            Ledger(self.path, budget=data.draw(st.sampled_from(self.other_budgets)))

    @rule()
    def verify(self) -> None:
        for receipt in self.receipts:
            assert self.ledger.verify(receipt).id == len(self.model.charges)

    @invariant()
    def the_ledger_is_the_model(self) -> None:
        ledger = self.ledger
        assert ledger.spent.limit == (self.model.spent, 0)
        assert ledger.remaining.limit == (self.model.budget - self.model.spent, 0)
        entries = ledger.entries()
        assert [entry.id for entry in entries] == list(range(1, len(self.model.charges) + 1))
        assert [entry.charge for entry in entries] == self.model.charges
        assert {entry.request_id: entry.id for entry in entries if entry.request_id} == self.model.requests
        assert {entry.id: entry.answer for entry in entries if entry.answer is not None} == self.model.answers
        assert total(ledger).epsilon == sum(charge.each * charge.count for charge in self.model.charges)

    def teardown(self) -> None:
        self.folder.cleanup()


class ConcentratedMachine(LedgerMachine):
    budget, other_budgets, model_of = "zcdp:0.05", ("0.05", "zcdp:0.04", "zcdp:0.05,1e-9", "1,1e-6"), ConcentratedModel


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestConcentratedMachine = ConcentratedMachine.TestCase
TestConcentratedMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
