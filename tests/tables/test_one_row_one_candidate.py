"""A row counts for at most one candidate, and for the one that it equals, in every type, for lists, rules and others.

Three faults were of this class: values that are equal only after a cast. So all types are asked about all kinds of
candidates, near the numbers where types run out of digits, and the scores that reach the mechanism are compared with
exact arithmetic in Python. Without a person column, the scores of all candidates add up to the rows that equal one.
"""

import datetime
import math
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dpselect
from dpselect import every
from dpselect.errors import DPSelectError
from dpselect.tables import domains
from dpselect.tables.duckdb import values
from dpselect.tables.duckdb.values import Form, form_of
from dpselect.tables.kinds import Kind
from tests import spark
from tests.seam import NotRecorded, Recorder, recording
from tests.tables.looking import in_writing

BASES = [0, 5, 127, 2**11, 2**24, 2**31, 2**53, 2**60, 2**63, 2**64, 2**100]
NEAR = [Fraction(base + step) for base in BASES for step in (-2, -1, 0, 1, 2, 3)]
PARTS = [Fraction(part) for part in ("0.1", "0.3", "0.5", "2.5", "12.5", "-0.5", "4.99", "5.01", "5.000000001")]
FINE = [Fraction(5) + Fraction(1, 10**digits) for digits in (17, 18, 19, 25)]
NUMBERS = [*NEAR, *PARTS, *FINE]

TYPES = {
    **{str(type_): type_ for type_ in (pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64())},
    **{str(type_): type_ for type_ in (pa.float32(), pa.float64())},
    **{str(type_): type_ for type_ in (pa.decimal128(5, 0), pa.decimal128(10, 2), pa.decimal128(38, 0))},
    **{str(type_): type_ for type_ in (pa.decimal128(38, 18), pa.decimal128(38, 30))},
}
WRITING, HUGEINT = "writing", "hugeint"
NAMES = [*TYPES, WRITING, HUGEINT]
IN_SPARK = ["int64", "float", "double", "decimal128(10, 2)", "decimal128(38, 18)", WRITING]


def held(number, name):
    """What a column of this type holds instead of a number; None if it cannot hold one that is near."""
    if name == WRITING:
        return number if _decimal(number) is not None else None
    if name == HUGEINT:
        return number if number.denominator == 1 and abs(number) < 2**127 else None
    type_ = TYPES[name]
    if pa.types.is_floating(type_):
        return Fraction(float(np.float32(float(number)) if type_ == pa.float32() else float(number)))
    scale = type_.scale if pa.types.is_decimal(type_) else 0
    rounded = Fraction(round(number * 10**scale), 10**scale)
    try:
        pa.array([_decimal(rounded) if scale or pa.types.is_decimal(type_) else int(rounded)], type_)
    except (pa.ArrowException, OverflowError):
        return None
    return rounded


def _decimal(number, digits=60):
    """The exact decimal of a number with at most so many digits after the point; None if it has more."""
    scaled = number * 10**digits
    if scaled.denominator != 1:
        return None
    text = f"{scaled.numerator:+0{digits + 2}d}"
    return Decimal(f"{text[:-digits]}.{text[-digits:].rstrip('0')}")


def rows_of(name):
    """All numbers as the column holds them."""
    return [own for number in NUMBERS if (own := held(number, name)) is not None]


def table_of(name, engine="duckdb"):
    rows = rows_of(name)
    if name == WRITING:
        texts = [f"{_decimal(row):f}" for row in rows]
        return in_writing(dpselect.open_table(pa.table({"x": pa.array(texts)}), engine=engine))
    if name == HUGEINT:
        relation = duckdb.connect().sql(f"SELECT unnest([{', '.join(f'{int(row)}::HUGEINT' for row in rows)}]) AS x")
        return dpselect.open_table(relation)
    type_ = TYPES[name]
    if pa.types.is_floating(type_):
        values = [float(row) for row in rows]
    else:
        values = [_decimal(row) if pa.types.is_decimal(type_) else int(row) for row in rows]
    return dpselect.open_table(pa.table({"x": pa.array(values, type_)}), engine=engine)


@dataclass(frozen=True)
class Asked:
    """Candidates, and the exact numbers that they are: a container."""

    name: str
    candidates: object
    meant: object
    other: object = None


def lists():
    whole = [int(number) for number in NEAR]
    yield Asked("whole numbers", whole, set(map(Fraction, whole)))
    decimals = [one for number in NUMBERS if (one := _decimal(number)) is not None]
    yield Asked("decimals", decimals, {Fraction(one) for one in decimals})
    yield Asked("whole numbers and others", whole, set(map(Fraction, whole)), other="other")


def floats(name):
    """A list of different floats of the column's type, which are what they are in every column of floats."""
    narrow = TYPES.get(name) == pa.float32()
    found = sorted({float(np.float32(float(one)) if narrow else float(one)) for one in NUMBERS})
    return Asked("floats", found, set(map(Fraction, found)))


def ranges(bases=tuple(BASES)):
    for base in bases:
        for name, reach in (("small", 40), ("large", 4000)):
            rule = every("integer", lower=base - reach, upper=base + reach)
            yield Asked(f"{name} rule at {base}", rule, _Between(base - reach, base + reach, 0))
    for base, digits in ((5, 2), (5, 18), (0, 1), (2**31, 9))[: len(bases)]:
        for name, reach in (("small", 40), ("large", 4000)):
            ends = [_decimal(Fraction(base) + Fraction(sign * reach, 10**digits)) for sign in (-1, 1)]
            rule = every("decimal", precision=38, digits=digits, lower=ends[0], upper=ends[1])
            yield Asked(f"{name} decimals at {base}", rule, _Between(*map(Fraction, ends), digits))
    yield Asked("all floats", every("float64"), _Floats())


@dataclass(frozen=True)
class _Between:
    lower: Fraction
    upper: Fraction
    digits: int

    def __contains__(self, number):
        return self.lower <= number <= self.upper and (number * 10**self.digits).denominator == 1


class _Floats:
    def __contains__(self, number):
        return abs(number) < 2**1024 and Fraction(float(number)) == number


def scores_of(table, asked):
    """The scores that reach the mechanism, and the numbers of candidates that have them; None if it is refused."""
    recorder = Recorder()
    with recording(recorder, 1, "spark" if hasattr(table._engine, "scores") else "duckdb"), suppress(NotRecorded):
        try:
            table.mode("x", candidates=asked.candidates, epsilon=1, other=asked.other)
        except DPSelectError:
            if not recorder.selections:
                return None
    [selection] = recorder.selections
    return list(zip(selection.scores, selection.lengths, strict=True))


def read_as(row, asked, name):
    """The number that the question reads in a row; None if it reads none."""
    if name != WRITING:
        return row
    kind = getattr(asked.candidates, "kind", None)  # of a rule
    if kind is Kind.FLOAT or asked.name == "floats":
        return Fraction(float(row))
    digits = 10**18  # so many digits of a text are kept
    rounded = Fraction(math.floor(abs(row) * digits + Fraction(1, 2)), digits) * (1 if row > 0 else -1)
    rounded = rounded if abs(rounded) < 10**20 else None
    if kind is Kind.INTEGER or asked.name.startswith("whole"):
        whole = row if row.denominator == 1 and abs(row) < 2**127 else rounded
        return whole if whole is not None and whole.denominator == 1 else None
    return rounded


def expected(asked, name):
    """How many rows equal a candidate, and how many equal none, by exact arithmetic."""
    found = [read_as(row, asked, name) for row in rows_of(name)]
    listed = sum(number is not None and number in asked.meant for number in found)
    return listed, len(found) - listed


def check(table, name, asked):
    """What reaches the mechanism adds up to the rows that equal a candidate. How many rows that are."""
    scores = scores_of(table, asked)
    if scores is None:
        return 0
    listed, others = expected(asked, name)
    assert sum(score * number for score, number in scores) == listed + (others if asked.other else 0), asked.name
    if asked.other:
        assert scores[-1] == (others, 1)
    return listed


@pytest.mark.parametrize("name", NAMES)
def test_a_row_counts_for_the_candidate_that_it_equals(name):
    table = table_of(name)
    numbers = [check(table, name, asked) for asked in (*lists(), floats(name), *ranges())]
    assert sum(number > 0 for number in numbers) >= (5 if name in ("int8", "uint8") else 10)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[*spark.MARKS, pytest.mark.slow]) for name in IN_SPARK])
def test_both_engines_count_the_same(name):
    spark.session()
    here, there = table_of(name), table_of(name, "spark")
    different = 0
    for asked in (*lists(), floats(name), *ranges((5, 2**60))):
        counts, others = scores_of(here, asked), scores_of(there, asked)
        assert counts == others, asked.name
        different += counts is not None and sum(score * number for score, number in counts) > 0
    assert different >= 4


MOMENTS = [
    datetime.datetime(2024, 1, 1, 12) + step * datetime.timedelta(microseconds=1)
    for step in (-(10**6), -1000, -2, -1, 0, 1, 2, 500, 999, 1000, 10**6)
]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("reach", [40, 4000], ids=["small", "large"])
def test_a_moment_counts_for_one_microsecond(unit, zone, reach):
    """Nanoseconds of one microsecond are one candidate, and count there."""
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    micros = [(moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1) for moment in MOMENTS]
    held_units = [one * factor // 10**6 for one in micros] + ([micros[4] * 1000 + 1] if unit == "ns" else [])
    table = dpselect.open_table(pa.table({"x": pa.array(held_units, pa.int64()).cast(pa.timestamp(unit, zone))}))
    middle = MOMENTS[4] if zone is None else MOMENTS[4].replace(tzinfo=datetime.UTC)
    ends = [middle + sign * datetime.timedelta(microseconds=reach) for sign in (-1, 1)]
    rule = every("timestamp" if zone is None else "timestamptz", lower=ends[0], upper=ends[1])
    read = [one * 10**6 // factor for one in held_units]
    within = sum(abs(one - micros[4]) <= reach for one in read)
    found = scores_of(table, Asked("moments", rule, None))
    assert sum(score * number for score, number in found) == within >= 1


@pytest.mark.parametrize("name", ["float", "double", "decimal128(10, 2)", WRITING])
def test_unseen_values_are_those_that_no_row_equals(engine, name):
    """One value of a rule is unseen exactly if no row equals it, also where a cast would make them equal."""
    table = table_of(name, engine)
    column = table.columns["x"]
    for base in (5, 2**24, 2**60):
        rule = every("integer", lower=base - 3000, upper=base + 3000)
        with table._engine.tally(column, rule, table._individuals) as tally:
            values = list(range(base - 30, base + 30))
            assert tally.unseen(0, values) == [value for value in values if Fraction(value) not in set(rows_of(name))]


@pytest.mark.parametrize("reach", [40, 4000], ids=["small", "large"])
def test_decimals_that_no_text_can_hold_are_equal_to_none(reach):
    """Texts are read with 18 digits. Candidates with more are not rounded to one that somebody has."""
    ends = [_decimal(Fraction(5) + Fraction(sign * reach, 10**25)) for sign in (0, 1)]
    rule = every("decimal", precision=30, digits=25, lower=ends[0], upper=ends[1])
    table = in_writing(dpselect.open_table(pa.table({"x": pa.array(["5", "5.0"])})))
    assert sum(score * number for score, number in scores_of(table, Asked("fine", rule, None))) == 2
    answers = {table.mode("x", candidates=rule, epsilon="0.000001").value for _ in range(5)}
    assert len(answers) > 1  # all candidates but one are unseen


@pytest.mark.parametrize(
    "mistake",
    [
        lambda column, kind: Form(kind, column.type, '"x"'),  # the type of the column, as in version 0.1.0
        lambda column, kind: Form(kind, "BIGINT", '"x"'),  # DuckDB casts the whole number, as in version 0.5.0
        lambda column, kind: Form(kind, "BIGINT", 'TRY_CAST("x" AS BIGINT)'),  # rounds
    ],
)
def test_a_comparison_after_a_cast_is_noticed(monkeypatch, mistake):
    def wrong(column, kind):
        return mistake(column, kind) if kind is Kind.INTEGER else right(column, kind)

    right = form_of
    for module in (values, domains):
        monkeypatch.setattr(module, "form_of", wrong)
    monkeypatch.setattr(Form, "equal", lambda self, value, candidate: f"{value} = {candidate}")
    table, wrong_somewhere = table_of("float"), 0
    for asked in ranges():
        try:
            check(table, "float", asked)
        except AssertionError:
            wrong_somewhere += 1
    assert wrong_somewhere
