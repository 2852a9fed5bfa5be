"""Questions and releases against budgets in every currency: who draws, what it costs, and what is refused."""

from fractions import Fraction

import pytest

import dpselect
from dpselect import BudgetExceeded, ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax, open_table
from dpselect.errors import InvalidType, InvalidValue
from tests.release.test_charging import NAMES, ROWS, questions

BUDGETS = {
    "pure": ("10", "permute-and-flip"),
    "cap": (dpselect.pure("10", cap="10"), "permute-and-flip"),
    "zcdp": (dpselect.zcdp("0.5"), "exponential"),
    "approximate": (dpselect.approximate("8", "1e-6"), "exponential"),
}


def asked(path, budget, **options):
    return questions(open_table(ROWS, person="person", ledger=path, budget=budget, **options))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("currency", BUDGETS)
def test_the_budget_chooses_the_mechanism(name, currency, path):
    budget, best = BUDGETS[currency]
    answer = asked(path, budget)[name](epsilon="0.2")
    [entry] = Ledger(path).entries()
    assert answer.mechanism == entry.mechanism == best
    assert answer.epsilon == entry.epsilon == Fraction(1, 5)
    assert answer.charged == Ledger(path).spent
    spent = Ledger(path).spent
    if currency in ("pure", "cap"):
        assert spent == spent.epsilon == Fraction(1, 5)
    else:
        mechanism = ExponentialMechanism(entry.charge.each)
        assert spent.rho == entry.rho == Fraction(mechanism.guarantee.zcdp) * entry.charge.count
        assert answer.guarantee.zcdp == float(spent.rho)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("currency", ["pure", "zcdp"])
def test_the_user_may_name_the_mechanism(name, mechanism, currency, path):
    answer = asked(path, BUDGETS[currency][0])[name](epsilon="0.2", mechanism=mechanism)
    assert answer.mechanism == Ledger(path).entries()[0].mechanism == mechanism


@pytest.mark.parametrize("name", NAMES)
def test_a_question_in_rho_costs_exactly_that_rho(name, path):
    ask = asked(path, dpselect.zcdp("0.5"))[name]
    for _ in range(10):
        answer = ask(rho="0.05")
        assert answer.charged.rho == Fraction(1, 20)
        assert answer.guarantee.zcdp <= 0.05 * (1 + 1e-12)
        assert answer.guarantee.zcdp >= 0.05 * (1 - 1e-6)  # nearly all of the price is used
    with pytest.raises(BudgetExceeded, match=r"exceeds what is left of the budget, 0 of 0\.5"):
        ask(rho="1e-9")
    assert Ledger(path).remaining.rho == 0


def test_a_question_in_rho_has_a_pure_epsilon_too(path):
    answer = asked(path, "10")["mode"](rho="0.02")
    assert answer.mechanism == "permute-and-flip"
    assert answer.charged == answer.epsilon == PermuteAndFlip(answer.epsilon).epsilon
    assert PermuteAndFlip(answer.epsilon).guarantee.zcdp <= 0.02


def test_without_a_ledger_permute_and_flip_draws(path):
    for name, ask in questions(open_table(ROWS, person="person")).items():
        assert ask(epsilon=1).mechanism == ask(rho=1).mechanism == "permute-and-flip", name
        assert ask(epsilon=1, mechanism="exponential").mechanism == "exponential", name
        assert ask(epsilon=1).charged is None, name


@pytest.mark.parametrize(
    ("price", "error", "words"),
    [
        ({}, InvalidValue, "give exactly one of epsilon and rho"),
        ({"epsilon": 1, "rho": 1}, InvalidValue, "give exactly one of epsilon and rho"),
        ({"rho": 0}, InvalidValue, "rho must be > 0"),
        ({"rho": "much"}, InvalidValue, "rho must be a number"),
        ({"epsilon": 1, "mechanism": "best"}, InvalidValue, "mechanism must be one of auto, permute-and-flip"),
        ({"epsilon": 1, "mechanism": None}, InvalidType, "mechanism must be 'auto' or the name of a mechanism"),
        ({"epsilon": 1, "mechanism": ReportNoisyMax.name}, (InvalidType, InvalidValue), "noisy max|noisy-max|NoisyMax"),
    ],
)
@pytest.mark.parametrize("name", ["mode", "medians"])
@pytest.mark.parametrize("currency", ["pure", "zcdp"])
def test_a_wrong_price_costs_nothing(price, error, words, name, currency, path):
    ask = asked(path, BUDGETS[currency][0])[name]
    with pytest.raises(error, match=words):
        ask(**price)
    assert Ledger(path).entries() == []


def test_a_stated_rho_is_never_below_that_of_the_mechanism(path):
    ledger = Ledger(path, budget=dpselect.zcdp("0.5"))
    with pytest.raises(InvalidValue, match="rho must be at least that of the mechanism"):
        ExponentialMechanism("1").release([1, 2], ledger=ledger, rho="0.01")
    assert ExponentialMechanism("0.1").release([1, 2], ledger=ledger, rho="0.01").charged.rho == Fraction(1, 100)
