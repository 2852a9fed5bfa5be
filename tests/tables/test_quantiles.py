"""`quantiles`, `minimum` and `maximum`, and what is new for one quantile: answers, charges, requests, estimates."""

import datetime
import random
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import pyarrow as pa
import pytest
from flint import arb

from dpselect import Ledger, approximate, pure, zcdp
from dpselect.errors import BudgetExceeded, RequestConflict
from dpselect.tables.duckdb import engine as duckdb_engine
from tests.tables.looking import opened

RANGE = {"lower": 0, "upper": 100}
CERTAIN = 10**5  # an epsilon at which the best candidate is chosen, but with a probability below 1e-1000
PERCENTILES = [Fraction(i, 100) for i in range(1, 100)]


def rows_of_people():
    """Everybody at one of the values 0 to 99: the q-quantile is 100 q - 1 or, for whole percents, up to 100 q."""
    return {"who": range(400), "g": ["p", "q"] * 200, "x": [i // 4 for i in range(400)]}


@pytest.fixture(params=[None, "who"], ids=["rows", "people"])
def person(request):
    return request.param


@pytest.fixture(params=["add-remove", "replace"])
def neighbours(request):
    return request.param


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger", budget=100)


# Answers.


def test_answers_are_in_the_order_of_the_levels(person, neighbours):
    table = opened(rows_of_people(), person=person, neighbours=neighbours)
    levels = ["0.905", "0.105", "0.505", "0.995", "0.005"]
    assert table.quantiles("x", levels, **RANGE, epsilon=CERTAIN).value == [90, 10, 50, 99, 0]
    assert table.quantiles("x", ["0.505"], **RANGE, epsilon=CERTAIN).value == [50]
    assert table.quantiles("x", ["0.505", "0.105"], **RANGE, epsilon=CERTAIN).value == [50, 10]


def test_named_levels_are_those_that_they_name(person):
    table = opened(rows_of_people(), person=person)
    for name, levels in (
        ("quartiles", PERCENTILES[24::25]),
        ("deciles", PERCENTILES[9::10]),
        ("percentiles", PERCENTILES),
    ):
        found = table.quantiles("x", name, **RANGE, epsilon=CERTAIN).value
        assert len(found) == len(levels)
        assert all(100 * q - 1 <= value <= 100 * q for q, value in zip(levels, found, strict=True))


@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_answers_never_cross(person, neighbours, epsilon):
    """However noisy they are, and in whatever order the levels are given."""
    table = opened(rows_of_people(), person=person, neighbours=neighbours)
    levels = random.Random(7).sample(PERCENTILES, 99)
    found = table.quantiles("x", levels, **RANGE, epsilon=epsilon).value
    ascending = [value for _, value in sorted(zip(levels, found, strict=True))]
    assert ascending == sorted(found)
    percentiles = table.quantiles("x", "percentiles", **RANGE, epsilon=epsilon).value
    assert percentiles == sorted(percentiles)
    assert len(percentiles) == 99
    assert set(percentiles) <= set(range(101))


def test_groups_have_a_list_each(person, neighbours):
    """Also one in which nobody is."""
    rows = rows_of_people() | {"x": [10] * 400}
    grouped = opened(rows, person=person, neighbours=neighbours).group_by("g", groups=["q", "empty", "p"])
    answer = grouped.quantiles("x", ["0.9", "0.1", "0.5"], **RANGE, epsilon=CERTAIN)
    assert list(answer.value) == ["q", "empty", "p"]
    assert answer.value["q"] == answer.value["p"] == [10, 10, 10]
    high, low, middle = answer.value["empty"]
    assert low <= middle <= high
    assert set(grouped.maximum("x", **RANGE, epsilon=CERTAIN).value) == {"q", "empty", "p"}


def test_minimum_and_maximum_are_outer_quantiles(person):
    table = opened(rows_of_people(), person=person)
    asked = RANGE | {"epsilon": CERTAIN}
    assert table.minimum("x", **asked).value in (0, 1)
    assert table.maximum("x", **asked).value in (98, 99)
    assert table.minimum("x", level="0.105", **asked).value == 10
    assert table.maximum("x", level=0.905, **asked).value == 90


def test_a_value_that_most_people_share_is_the_median(person):
    """Sixty people at 0 and forty at 1: 0 is right for all levels up to 0.6, alone and together."""
    rows = {"who": range(100), "x": [0] * 60 + [1] * 40}
    table = opened(rows, person=person)
    asked = {"lower": 0, "upper": 1, "epsilon": CERTAIN}
    assert table.median("x", **asked).value == 0
    assert table.quantile("x", "0.59", **asked).value == 0
    assert table.quantile("x", "0.61", **asked).value == 1
    assert table.quantiles("x", "deciles", **asked).value in ([0] * 5 + [x] + [1] * 3 for x in (0, 1))
    halves = opened({"who": rows["who"], "x": [float(x) for x in rows["x"]]}, person=person)
    assert halves.median("x", lower=0, upper=1, step="0.5", epsilon=CERTAIN).value == 0


def test_a_person_may_count_with_up_to_a_billion_rows():
    table = opened({"who": [1, 2], "x": [1, 2]}, person="who")
    found = table.median("x", lower=0, upper=9, epsilon=1, per_person="rows", max_rows=10**9).value
    assert 0 <= found <= 9


def test_people_and_rows_have_different_quantiles():
    """Most rows are from few people: the median of people is 1, and that of rows is 50, or 1 with one row of each."""
    rows = {"who": [*range(60), *[100] * 100, *[101] * 100], "x": [1] * 60 + [50] * 200}
    table = opened(rows, person="who")
    asked = RANGE | {"epsilon": CERTAIN * 1000}
    assert table.median("x", **asked).value == 1
    assert table.median("x", **asked, per_person="rows", max_rows=100).value == 50
    assert table.median("x", **asked, per_person="rows", max_rows=1).value == 1
    assert table.quantiles("x", ["0.5", "0.1"], **asked, per_person="rows", max_rows=100).value == [50, 1]
    assert table.minimum("x", **asked, per_person="rows", max_rows=100, level="0.3").value == 50
    assert opened(rows).median("x", **asked).value == 50


# The source is read once, and a ledger is charged once.


def test_the_source_is_read_once(person, ledger, monkeypatch):
    read = Mock(wraps=duckdb_engine.read)
    monkeypatch.setattr(duckdb_engine, "read", read)
    table = opened(rows_of_people(), person=person)
    table.quantiles("x", "percentiles", **RANGE, epsilon=1)
    assert read.call_count == 1
    table.group_by("g", groups=["p", "q"]).quantiles("x", "deciles", **RANGE, epsilon=1)
    assert read.call_count == 2
    for level in PERCENTILES[::50]:
        table.quantile("x", level, **RANGE, epsilon=1)
    assert read.call_count == 4


BUDGETS = {"pure": pure(1), "zcdp": zcdp(1), "approximate": approximate(1, "1e-6", share=0)}
DEPTHS = {1: 1, 2: 2, 3: 2, 4: 3, 9: 4, 15: 4, 99: 7}


def levels_of(count):
    return [Fraction(i, count + 1) for i in range(count, 0, -1)]


@pytest.mark.parametrize("max_groups", [None, 1, 2])
@pytest.mark.parametrize("currency", BUDGETS)
@pytest.mark.parametrize(
    ("count", "relation"),
    [(9, "add-remove"), *(pytest.param(count, "replace", marks=pytest.mark.slow) for count in (1, 99))],
)
def test_all_levels_together_are_one_charge(count, relation, currency, max_groups, tmp_path):
    """In the currency of the budget it is exactly what was asked, in equal parts: one for each depth and group."""
    ledger = Ledger(tmp_path / "ledger", budget=BUDGETS[currency])
    table = opened(rows_of_people(), person="who", neighbours=relation, ledger=ledger)
    if max_groups is not None:
        table = table.group_by("g", groups=["p", "q"], max_groups=max_groups)
    price = {"epsilon": "0.3"} if currency == "pure" else {"rho": "0.01"}
    answer = table.quantiles("x", levels_of(count), **RANGE, **price)
    [entry] = ledger.entries()
    assert entry.mechanism == answer.mechanism == ("permute-and-flip" if currency == "pure" else "exponential")
    assert entry.charge.count == DEPTHS[count] * (max_groups or 1)
    assert answer.epsilon == entry.charge.each * entry.charge.count
    if currency == "pure":
        assert answer.charged == ledger.spent == Fraction(3, 10) == answer.epsilon
    else:
        assert answer.charged.rho == ledger.spent.rho == Fraction(1, 100)
        assert answer.guarantee.zcdp == pytest.approx(0.01, rel=1e-6)
        assert answer.guarantee.zcdp <= 0.01
    ledger.verify(answer.receipt)


@pytest.mark.parametrize("count", [9, *(pytest.param(count, marks=pytest.mark.slow) for count in DEPTHS if count != 9)])
def test_an_epsilon_is_charged_in_zcdp_for_each_depth(count, tmp_path):
    """L draws of the exponential mechanism at epsilon/L: kappa - 1 - ln(kappa) each, rounded up."""
    ledger = Ledger(tmp_path / "ledger", budget=zcdp(1))
    answer = opened(rows_of_people(), ledger=ledger).quantiles("x", levels_of(count), **RANGE, epsilon="0.7")
    part = arb(7) / 10 / DEPTHS[count]
    kappa = part / part.expm1()
    rho = float(DEPTHS[count] * (kappa - 1 - kappa.log()))
    assert rho * (1 - 1e-12) <= answer.charged.rho <= rho * (1 + 1e-6)
    assert answer.epsilon == Fraction(7, 10)


@pytest.mark.parametrize("currency", BUDGETS)
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_a_mechanism_may_be_named(mechanism, currency, tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=BUDGETS[currency])
    table = opened(rows_of_people(), ledger=ledger)
    answers = [
        table.quantiles("x", "quartiles", **RANGE, epsilon="0.01", mechanism=mechanism),
        table.maximum("x", **RANGE, epsilon="0.01", mechanism=mechanism),
    ]
    assert {answer.mechanism for answer in answers} == {entry.mechanism for entry in ledger.entries()} == {mechanism}


@pytest.mark.parametrize(
    ("relation", "levels", "rows", "sensitivity"),
    [
        # Of several levels, in units of what an added row moves the score of a level by; of one level, its score.
        ("add-remove", "deciles", None, "1"),
        ("replace", "deciles", None, "2"),
        ("add-remove", "deciles", 3, "3"),
        ("replace", "deciles", 3, "6"),
        ("add-remove", ["0.9"], None, "9"),
        ("replace", ["0.9"], None, "10"),
        ("add-remove", ["0.9"], 3, "27"),
        ("replace", ["0.9"], 3, "30"),
    ],
)
def test_a_ledger_records_how_far_neighbours_are_apart(relation, levels, rows, sensitivity, ledger):
    table = opened(rows_of_people(), person="who", neighbours=relation, ledger=ledger)
    counted = {} if rows is None else {"per_person": "rows", "max_rows": rows}
    table.quantiles("x", levels, **RANGE, epsilon=1, **counted)
    [entry] = ledger.entries()
    assert (entry.what["sensitivity"], entry.what["monotonic"]) == (sensitivity, False)


@pytest.mark.parametrize("currency", BUDGETS)
def test_nothing_is_read_beyond_the_budget(currency, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger", budget=BUDGETS[currency])
    table = opened(rows_of_people(), person="who", ledger=ledger)
    monkeypatch.setattr(duckdb_engine.DuckDBEngine, "places", None)
    price = {"epsilon": "1.1"} if currency == "pure" else {"rho": "1.1"}
    for ask in (table.minimum, table.maximum, table.median, lambda *a, **k: table.quantiles(*a, "deciles", **k)):
        with pytest.raises(BudgetExceeded):
            ask("x", **RANGE, **price)
    assert ledger.entries() == []


# Requests.

ASKED = {
    "levels": ["0.9", "0.1", "0.5"],
    **RANGE,
    "per_person": "rows",
    "max_rows": 2,
    "epsilon": "0.001",
    "request_id": "r",
}
OTHERS = {
    "a level": {"levels": ["0.9", "0.2", "0.5"]},
    "fewer levels": {"levels": ["0.9", "0.1"]},
    "their order": {"levels": ["0.1", "0.5", "0.9"]},
    "a name": {"levels": "deciles"},
    "rows": {"max_rows": 3},
    "people": {"per_person": "median", "max_rows": None},
    "an end": {"upper": 99},
    "the range": {"lower": None, "upper": None},
    "magnitudes": {"lower": None, "upper": None, "range": "log"},
    "the price": {"epsilon": "0.002"},
    "the mechanism": {"mechanism": "exponential"},
}


def test_a_request_is_repeated_and_costs_nothing(tmp_path):
    def table():
        return opened(rows_of_people(), person="who", ledger=tmp_path / "ledger", budget=1)

    first, again = (table().quantiles("x", **ASKED) for _ in range(2))
    assert again == first
    assert (again.value, again.estimate, again.repeated) == (first.value, first.estimate, True)
    same = {"levels": [Fraction(9, 10), 0.1, Decimal("0.50")], "lower": "0", "upper": "1e2", "step": 1}
    assert table().quantiles("x", **{**ASKED, **same}).value == first.value
    for other in OTHERS.values():
        with pytest.raises(RequestConflict):
            table().quantiles("x", **{**ASKED, **other})
    with pytest.raises(RequestConflict):
        table().quantile("x", **{**{k: v for k, v in ASKED.items() if k != "levels"}, "level": "0.9"})
    assert Ledger(tmp_path / "ledger").spent == Fraction(1, 1000)


def test_requests_of_groups_and_of_outer_quantiles_are_repeated(tmp_path):
    """The one that is asked for is part of the question: a minimum is not the quantile of its level."""

    def table():
        return opened(rows_of_people(), person="who", ledger=tmp_path / "ledger", budget=1).group_by(
            "g", groups=["p", "q"]
        )

    asked = RANGE | {"epsilon": "0.001"}
    calls = {
        "quantiles": lambda: table().quantiles("x", "percentiles", **asked, request_id="quantiles"),
        "minimum": lambda: table().minimum("x", **asked, request_id="minimum"),
        "maximum": lambda: table().maximum("x", **asked, request_id="maximum"),
    }
    for ask in calls.values():
        first, again = ask(), ask()
        assert (again.value, again.repeated, first.repeated) == (first.value, True, False)
    for conflict in (
        lambda: table().quantile("x", "0.01", **asked, request_id="minimum"),
        lambda: table().minimum("x", level="0.99", **asked, request_id="maximum"),
        lambda: table().minimum("x", level="0.02", **asked, request_id="minimum"),
    ):
        with pytest.raises(RequestConflict):
            conflict()
    assert Ledger(tmp_path / "ledger").spent == Fraction(3, 1000)


def test_999_levels_are_a_request_like_any_other(tmp_path):
    levels = [f"{i}/1000" for i in range(1, 1000)]
    table = opened(rows_of_people(), ledger=tmp_path / "ledger", budget=1)
    first, again = (table.quantiles("x", levels, **RANGE, epsilon=1, request_id="r") for _ in range(2))
    assert (again.value, again.repeated) == (first.value, True)
    assert first.value == sorted(first.value)
    [entry] = table._ledger.entries()
    assert entry.charge.count == 10


MOMENT = datetime.datetime(2024, 3, 5, 12, 0, 0, 123456)
STORED = {
    "whole numbers": ([7], pa.int64()),
    "large numbers": ([2**64 - 1], pa.uint64()),
    "floats": ([0.1], pa.float64()),
    "narrow floats": ([0.1], pa.float32()),
    "decimals": ([Decimal("1.50")], pa.decimal128(9, 2)),
    "dates": ([MOMENT.date()], pa.date32()),
    "moments": ([MOMENT], pa.timestamp("us")),
    "moments of a zone": ([MOMENT.replace(tzinfo=datetime.UTC)], pa.timestamp("us", "Asia/Kolkata")),
}


@pytest.mark.parametrize(
    "kind", ["decimals", *(pytest.param(k, marks=pytest.mark.slow) for k in STORED if k != "decimals")]
)
def test_stored_answers_have_the_type_of_the_column(kind, tmp_path):
    """All people have one value, over the whole type; alone and in groups that are values, too."""
    [value], type_ = STORED[kind]
    rows, types = {"who": range(60), "x": [value] * 60, "g": [value] * 60}, {"x": type_, "g": type_}
    answers = []
    for _ in range(2):
        table = opened(rows, types=types, person="who", ledger=tmp_path / "ledger", budget=10**9)
        answers.append(table.quantiles("x", ["0.9", "0.1"], epsilon=CERTAIN, request_id="all"))
        grouped = table.group_by("g", groups=[value])
        answers.append(grouped.quantiles("x", ["0.9", "0.1"], epsilon=CERTAIN, request_id="groups"))
    assert [repr(answer.value) for answer in answers] == [repr([value] * 2), repr({value: [value] * 2})] * 2
    assert [answer.repeated for answer in answers] == [False, False, True, True]
