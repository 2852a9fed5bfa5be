"""Quantiles: runs have the scores of the plain definition, for every type; answers come in the column's type."""

import datetime
import decimal
import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest

from dpselect.questions import rows as questions
from dpselect.tables.kinds import public_span
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import opened, quantile_scores, repeated

LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3), Fraction(99, 100)]
DAY, MOMENT = datetime.date(2024, 2, 27), datetime.datetime(2024, 2, 28, 23, 59, 59, 999_990)
DAYS, MICROSECOND = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)
ZONED = MOMENT.replace(tzinfo=datetime.UTC)
TRIALS = 60


def plain_score(values, candidate, level):
    """The definition in `sensitivity`, word for word."""
    a, b = level.numerator, level.denominator
    below = sum(value < candidate for value in values)
    at = sum(value == candidate for value in values)
    above = len(values) - below - at
    return -max(0, (b - a) * below - a * (at + above), a * above - (b - a) * (below + at))


def plain_scores(values, candidates, lower, upper, level):
    clamped = [min(max(value, lower), upper) for value in values if value is not None and value == value]  # noqa: PLR0124
    return [plain_score(clamped, candidate, level) for candidate in candidates]


class Case:
    """A column's values on, between and outside of the candidates, and how the question is asked."""

    def __init__(self, pool, candidates, *, lower, upper, step, type_=None, written=None):
        self.pool, self.candidates, self.bounds, self.type = pool, candidates, (lower, upper, step), type_
        self.written = written or (lambda value: value)


def floats_around(candidates):
    near = [math.nextafter(x, side) for x in candidates for side in (-math.inf, math.inf)]
    return [*candidates, *near, *(0.1 * k for k in range(-3, 30)), 1e300, -1e300, math.inf, -math.inf, math.nan, -0.0]


TENTHS = [k / 10 for k in range(-2, 26)]
NARROW = [float(np.float32(x)) for x in (0.1, 0.3, 0.5, 0.75, 2.5, 3.0, -7.0)]
WHOLE = range(0, 20, 3)
QUARTERS = [Decimal(25 * k) / 100 for k in range(9)]
CENTS = [Decimal(k) / 100 for k in range(-50, 260, 7)]
NAIVE_TIMES = [MOMENT + k * MICROSECOND for k in range(-9, 40)]
CASES = {
    "whole": Case(list(range(-4, 25)), list(WHOLE), lower=0, upper=20, step=3),
    "whole, all": Case(list(range(-4, 25)), list(range(21)), lower=0, upper=20, step=1),
    "small": Case([0, 1, 2, 127, -128], list(range(-100, 100)), lower=-100, upper=99, step=1, type_=pa.int8()),
    "unsigned": Case([0, 5, 6, 2**64 - 1], list(range(3, 9)), lower=3, upper=8, step=1, type_=pa.uint64()),
    "one candidate": Case([4, 5, 6], [5], lower=5, upper=5, step=1),
    "decimals": Case(CENTS, QUARTERS, lower=0, upper=Decimal("2.1"), step=Decimal("0.25"), type_=pa.decimal128(30, 2)),
    "floats": Case(floats_around(TENTHS), TENTHS, lower=-0.2, upper=2.5, step=0.1, type_=pa.float64()),
    "floats, upper between": Case(floats_around(TENTHS), TENTHS[:-3:2], lower=-0.2, upper=2.3, step=0.2),
    "narrow floats": Case(NARROW, TENTHS[2:], lower=0, upper=2.5, step=0.1, type_=pa.float32()),
    "days": Case(
        [DAY + k * DAYS for k in range(-3, 12)],
        [DAY + k * DAYS for k in (0, 2, 4, 6)],
        lower=DAY,
        upper=DAY + 7 * DAYS,
        step=2,
    ),
    "times": Case(
        NAIVE_TIMES,
        [MOMENT + k * MICROSECOND for k in range(0, 30, 3)],
        lower=MOMENT,
        upper=MOMENT + 28 * MICROSECOND,
        step=Decimal("0.000003"),
        type_=pa.timestamp("us"),
    ),
    "zoned times": Case(
        [moment.replace(tzinfo=datetime.UTC) for moment in NAIVE_TIMES],
        [ZONED + k * MICROSECOND for k in range(0, 30, 3)],
        lower=ZONED,
        upper=(ZONED + 28 * MICROSECOND).astimezone(datetime.timezone(datetime.timedelta(hours=-5))),
        step=3 * MICROSECOND,
        type_=pa.timestamp("us", "Asia/Kolkata"),
    ),
}
# CSV columns are text, and what they are is said by the question.
CASES |= {
    f"{name} in text": Case(
        CASES[name].pool,
        CASES[name].candidates,
        **dict(zip(("lower", "upper", "step"), CASES[name].bounds, strict=True)),
        type_=pa.string(),
        written=str,
    )
    for name in ("whole", "decimals", "floats", "days", "times")
}
CASES["halves in text, whole candidates"] = Case(
    [Fraction(k, 2) for k in range(-8, 50)],
    list(WHOLE),
    lower=0,
    upper=20,
    step=3,
    type_=pa.string(),
    written=lambda value: str(float(value)),
)


@pytest.mark.parametrize("name", CASES)
def test_runs_have_the_scores_of_the_definition(name):
    """Many small random tables at once, as groups: empty, of one row, with duplicates, with missing values."""
    case, generator = CASES[name], random.Random(name)
    lower, upper, step = case.bounds
    tables = [generator.choices([*case.pool, None], k=generator.choice([0, 1, 2, 5, 9])) for _ in range(TRIALS)]
    rows = [(trial, value) for trial, values in enumerate(tables) for value in values]
    written = [None if value is None else case.written(value) for _, value in rows]
    table = opened({"trial": [trial for trial, _ in rows], "x": written}, types={"x": case.type})
    groups = table.group_by("trial", groups=range(TRIALS))
    for level in LEVELS:
        found = quantile_scores(groups, "x", level, lower=lower, upper=upper, step=step)
        assert found == [plain_scores(values, case.candidates, lower, upper, level) for values in tables]


@pytest.mark.parametrize("name", CASES)
def test_answers_are_candidates_in_the_columns_own_type(name):
    case, (lower, upper, step) = CASES[name], CASES[name].bounds
    middle = 1.5 if name == "narrow floats" else case.candidates[len(case.candidates) // 2]
    table = opened({"x": [case.written(middle)] * 9}, types={"x": case.type})
    sure = table.median("x", lower=lower, upper=upper, step=step, epsilon=10**4).value
    assert sure == middle
    assert type(sure) is type(middle)
    if isinstance(middle, datetime.datetime):
        assert (sure.tzinfo is None) == (middle.tzinfo is None)
    blind = table.quantile("x", "0.3", lower=lower, upper=upper, step=step, epsilon="1e-9").value
    assert blind in case.candidates


def test_decimals_have_the_digits_of_the_column():
    table = opened({"x": [Decimal("1.50")]}, types={"x": pa.decimal128(10, 2)})
    assert str(table.median("x", lower=1, upper=2, step=Decimal("0.5"), epsilon=10**4).value) == "1.50"


def score_at(scores, lengths, index):
    ends = list(accumulate(map(int, lengths)))
    return next(score for score, end in zip(scores.tolist(), ends, strict=True) if index < end)


@pytest.mark.parametrize(
    ("type_", "lower", "upper", "step"),
    [
        (pa.int64(), -(2**63), 2**63 - 1, 1),
        (pa.int64(), -(2**63), 2**63 - 1, 10**9 + 7),
        (pa.uint64(), 0, 2**64 - 1, 1),
        (pa.int64(), 0, 10**12, 1),
        (pa.string(), -(2**63), 2**63 - 1, 1),
        (pa.string(), 0, 2**64 - 1, 1),
        (pa.decimal128(38, 4), Decimal("-9e14"), Decimal("9e14"), Decimal("0.0001")),
        (pa.timestamp("us"), datetime.datetime.min, datetime.datetime.max, MICROSECOND),
    ],
    ids=str,
)
def test_large_domains(type_, lower, upper, step):
    """Up to 2**64 candidates: the runs cover all of them, and have the right score wherever we look."""
    middle = lower + (upper - lower) // 3
    middle = lower + (middle - lower) // step * step
    values = [lower, lower + step, middle, middle, middle + step, upper - step, upper, None, upper]
    table = opened({"x": [str(v) if v is not None and type_ == pa.string() else v for v in values]}, types={"x": type_})
    grid = public_span(lower, upper, step, table.columns["x"])
    [data] = table._engine.places(table.columns["x"], grid, table._individuals)
    known = [value for value in values if value is not None]
    for level in LEVELS:
        scores, lengths = questions.quantile_score_runs(data, grid.size, level)
        assert sum(map(int, lengths)) == grid.size
        near = [int((value - lower) // step) for value in known]
        looked = {i + d for i in near for d in (-1, 0, 1)} | {grid.size // 2, grid.size - 1}
        for index in sorted(looked):
            if 0 <= index < grid.size:
                assert score_at(scores, lengths, index) == plain_score(known, grid.value(index), level)
    answer = table.median("x", lower=lower, upper=upper, step=step, epsilon=10**4).value
    assert answer in (middle, middle + step)
    assert lower <= table.median("x", lower=lower, upper=upper, step=step, epsilon="1e-9").value <= upper


def test_an_empty_table_answers_uniformly_from_2_to_the_64_candidates():
    """The highest bits of the answers are uniform; a range of half the size is told from it."""
    table = repeated({"x": [None]}, 400, types={"x": pa.int64()})
    drawn = table.median("x", lower=-(2**63), upper=2**63 - 1, epsilon=1).value.values()
    found = np.bincount([(value + 2**63) >> 62 for value in drawn], minlength=4)
    assert_fits(found, [0.25] * 4)
    assert_rejected(found, [0.4, 0.4, 0.1, 0.1], truth=[0.25] * 4)
    assert len(set(drawn)) == 400


@pytest.mark.parametrize("precision", [28, 3])
def test_bounds_are_exact_in_any_decimal_context(precision):
    table = opened({"x": [Decimal("12345.67")] * 5}, types={"x": pa.decimal128(18, 2)})
    with decimal.localcontext() as context:
        context.prec = precision
        answer = table.median("x", lower=Decimal("12345.66"), upper=12346, step=Decimal("0.01"), epsilon=10**4)
    assert answer.value == Decimal("12345.67")
