"""Questions with a ledger: charged before anything is counted, never without a record, and labelled by what drew."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import Ledger, PermuteAndFlip, open_table
from dpselect.errors import InvalidValue, LedgerError, RequestConflict
from dpselect.mechanisms import MECHANISMS
from dpselect.release import decode_answer, encode_answer
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


@pytest.mark.parametrize("name", NAMES)
def test_every_question_is_charged_with_its_public_parameters(name, path):
    ask = questions(open_table(ROWS, person="person", ledger=path, budget="1"))[name]
    answer = ask(epsilon="0.3")
    [entry] = Ledger(path).entries()
    assert answer.ledger_id == entry.id == 1
    assert answer.epsilon == entry.epsilon == answer.guarantee.epsilon == Fraction(3, 10)
    assert entry.mechanism == answer.mechanism == "permute-and-flip"
    assert entry.charge.count == {"top_k": 2, "groups": 2, "medians": 2}.get(name, 1)
    assert {"question", "column", "person", "neighbours", "sensitivity", "monotonic"} <= set(entry.what)
    Ledger(path).verify(answer.receipt)


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
