"""Questions with a ledger in any currency: what each costs, what is refused, and labelled by what drew."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect
from dpselect import BudgetExceeded, ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax, open_table
from dpselect.errors import EngineFailure, InvalidType, InvalidValue, LedgerError, RequestConflict
from dpselect.mechanisms import MECHANISMS
from dpselect.release import decode_answer, encode_answer
from dpselect.tables.duckdb.engine import DuckDBEngine
from tests.statistical.goodness import assert_fits, assert_rejected

ROWS = pa.table(
    {
        "person": [1, 1, 2, 3, 4, 5],
        "code": ["a", "b", "a", "c", "a", "b"],
        "cost": [Decimal("1.50"), Decimal("2.00"), Decimal("0.25"), None, Decimal("9.75"), Decimal("3.00")],
        "day": [datetime.date(2026, 1, day) for day in range(1, 7)],
        "county": ["n", "s", "s", "n", "s", "n"],
    }
)
CODES = ["a", "b", "c"]


def questions(table):
    """Every question, as a function of epsilon and request id."""
    money = {"lower": 0, "upper": 10, "step": Decimal("0.25")}
    days = {"lower": datetime.date(2026, 1, 1), "upper": datetime.date(2026, 12, 31)}
    grouped = table.group_by("county", groups=["n", "s"], max_groups=2)
    return {
        "mode": lambda **ask: table.mode("code", candidates=CODES, **ask),
        "top_k": lambda **ask: table.top_k("code", 2, candidates=CODES, method="peel", **ask),
        "median": lambda **ask: table.median("cost", **money, **ask),
        "quantile": lambda **ask: table.quantile("day", "0.9", **days, **ask),
        "groups": lambda **ask: grouped.mode("code", candidates=CODES, **ask),
        "medians": lambda **ask: grouped.median("day", **days, **ask),
    }


NAMES = list(questions(open_table(ROWS, person="person")))


def test_a_request_with_other_parameters_is_refused(path):
    table = open_table(ROWS, person="person", ledger=path, budget="1")
    table.mode("code", candidates=CODES, epsilon="0.1", request_id="x")
    for other in (
        lambda: table.mode("code", candidates=["a", "b"], epsilon="0.1", request_id="x"),
        lambda: table.mode("code", candidates=["a", "c", "b"], epsilon="0.1", request_id="x"),
        lambda: table.mode("code", candidates=CODES, epsilon="0.2", request_id="x"),
        lambda: table.top_k("code", 1, candidates=CODES, epsilon="0.1", request_id="x"),
    ):
        with pytest.raises(RequestConflict):
            other()
    assert Ledger(path).spent == Fraction(1, 10)


def test_the_charge_is_on_disk_before_anything_is_counted(path, monkeypatch):
    """And it stays when counting fails."""
    seen = []

    def failing(self, *arguments):
        seen.append(Ledger(path).spent)
        raise EngineFailure("no")

    table = open_table(ROWS, person="person", ledger=path, budget="1")
    monkeypatch.setattr(DuckDBEngine, "chosen", failing)
    with pytest.raises(EngineFailure):
        table.mode("code", candidates=CODES, epsilon="0.25")
    assert seen == [Fraction(1, 4)]
    assert Ledger(path).spent == Fraction(1, 4)


def test_a_ledger_may_be_given_as_an_object(path):
    ledger = Ledger(path, budget="1")
    open_table(ROWS, ledger=ledger).mode("code", candidates=CODES, epsilon="0.5")
    assert ledger.spent == Fraction(1, 2)
    with pytest.raises(LedgerError, match="budget"):
        open_table(ROWS, ledger=ledger, budget="2")


def test_budget_and_request_need_a_ledger():
    with pytest.raises(InvalidValue, match="budget needs a ledger"):
        open_table(ROWS, budget="1")
    with pytest.raises(InvalidValue, match="dataset needs a ledger"):
        open_table(ROWS, dataset="rows")
    with pytest.raises(InvalidValue, match="request_id needs a ledger"):
        open_table(ROWS).mode("code", candidates=CODES, epsilon=1, request_id="x")


@pytest.mark.parametrize("name", NAMES)
def test_the_label_is_the_sampler(name, path, monkeypatch):
    """What draws is the mechanism that the entry names: the same record, with the distribution of its name alone."""
    drew = []
    for method in ("select", "select_runs"):
        original = getattr(PermuteAndFlip, method)

        def watched(self, *arguments, original=original, **options):
            drew.append(self)
            return original(self, *arguments, **options)

        monkeypatch.setattr(PermuteAndFlip, method, watched)
    questions(open_table(ROWS, person="person", ledger=path, budget=10))[name](epsilon=2)
    [entry] = Ledger(path).entries()
    kind = MECHANISMS[entry.mechanism]
    named = kind(entry.charge.each, Fraction(entry.what["sensitivity"]), entry.what["monotonic"])
    assert drew
    assert all(type(one) is kind and one == named for one in drew)
    scores, draws = np.array([3, 2, 1]) * int(named.sensitivity), 100_000
    counts = np.bincount(drew[0].select_rows(np.broadcast_to(scores, (draws, 3))), minlength=3)
    truth = named.pmf(scores)
    assert_fits(counts, truth)
    for other in set(MECHANISMS.values()) - {kind}:
        wrong = other(named.epsilon, named.sensitivity, named.monotonic).pmf(scores)
        assert_rejected(counts, wrong, truth=truth)


scalars = (
    st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(datetime.UTC))
)


@given(scalars | st.lists(scalars) | st.dictionaries(scalars, scalars | st.lists(scalars)))
def test_stored_values_come_back_as_they_were(value):
    back = decode_answer(encode_answer(value))
    assert back == value
    assert type(back) is type(value)


# Budgets in every currency: who draws, what it costs, and what is refused.

BUDGETS = {
    "pure": ("10", "permute-and-flip"),
    "cap": (dpselect.pure("10", cap="10"), "permute-and-flip"),
    "zcdp": (dpselect.zcdp("0.5"), "exponential"),
    "approximate": (dpselect.approximate("8", "1e-6"), "exponential"),
}


def asked(path, budget, **options):
    return questions(open_table(ROWS, person="person", ledger=path, budget=budget, **options))


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
