"""Numbers in writing have ASCII digits and no underscores, and a number of a million digits is refused at once.

A number that becomes a float or a short text is rounded to the safe side, never to the nearest.

Every way into the library that takes a number is listed here; those of the command line are in `cli/test_numbers.py`.
"""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpselect
from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax
from dpselect._numbers import (
    DOWN,
    NEAREST,
    NotExact,
    NotFinite,
    TooLong,
    decimal_from_text,
    exact_text,
    float_above,
    float_below,
    float_near,
    number_from_text,
    rational,
    rational_from_text,
    rounded_down_text,
    rounded_up_text,
    shortest_text,
    shown,
)
from dpselect.accounting.charge import Charge
from dpselect.accounting.repeats import Repeated, repeated
from dpselect.accounting.totals import total
from dpselect.analysis import epsilon_for, error_bounds, error_quantile, expected_error
from dpselect.errors import DPSelectError, InvalidValue
from dpselect.explore.answers import asked_of, spending_of
from dpselect.explore.scores import made
from dpselect.mechanisms.summary import Summary
from dpselect.release import decode_answer
from dpselect.score_files import parse_score
from dpselect.tables.kinds import Kind
from dpselect.tuning import NegativeBinomial, Poisson
from tests.numbers import LONG_NUMBERS, LONG_TEXTS, MISWRITTEN
from tests.watchdog import at_once

Take = Callable[[Any], object]

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
TABLE = pa.table(
    {
        "whole": pa.array([1, 2], pa.int64()),
        "cents": pa.array([Decimal("1.50"), Decimal("2.50")]),
        "float": pa.array([1.5, 2.5]),
        "day": pa.array([datetime.date(2026, 1, 31)] * 2),
        "moment": pa.array([datetime.datetime(2026, 1, 31)] * 2),
        "person": pa.array([1, 2]),
    }
)
DAYS = {"lower": datetime.date(2020, 1, 1), "upper": datetime.date(2030, 1, 1)}
MOMENTS = {"lower": datetime.datetime(2020, 1, 1), "upper": datetime.datetime(2030, 1, 1)}


def table() -> dpselect.tables.Table:
    return dpselect.open_table(TABLE, person="person")


# Parameters that are taken as a number or in writing.
PARAMETERS: dict[str, Take] = {
    **{
        f"{name} of {kind.__name__}": lambda x, kind=kind, name=name: kind(**{"epsilon": 1, name: x})
        for kind in KINDS
        for name in ("epsilon", "sensitivity", "score_range")
    },
    "best": lambda x: PermuteAndFlip(1).select_lazily(lambda _: 0, 2, best=x),
    "best of the exponential mechanism": lambda x: ExponentialMechanism(1).select_lazily(lambda _: 0, 2, best=x),
    "each of a charge": lambda x: Charge("a", x),
    "epsilon of runs": lambda x: Repeated(Poisson(2), x),
    "mean": Poisson,
    "shape": lambda x: NegativeBinomial(x, "0.1"),
    "stop": lambda x: NegativeBinomial(1, x),
    "delta": lambda x: total([Charge("a", 1)], delta=x),
    "epsilon of generalized scores": lambda x: dpselect.generalized_scores([1, 2], [1, 2], x),
    "failure": lambda x: dpselect.generalized_scores([1, 2], [1, 2], 1, x),
    "expected error": lambda x: epsilon_for(PermuteAndFlip, [0, 1], expected_error=x),
    "error": lambda x: epsilon_for(PermuteAndFlip, [0, 1], error=x, probability=0.1),
    "probability": lambda x: epsilon_for(PermuteAndFlip, [0, 1], error=1, probability=x),
    "level of an error": lambda x: error_quantile(PermuteAndFlip(1), [0, 1], x),
    "tail": lambda x: error_bounds(PermuteAndFlip(1), 5).tail(x),
    "epsilon of an audit": lambda x: dpselect.audit.audit(np.argmax, x, runs=100),
    "false alarm": lambda x: dpselect.audit.audit(np.argmax, 1, runs=100, false_alarm=x),
    "epsilon of a lattice": lambda x: dpselect.optimality.solve(2, 1, x),
    "epsilon of a question": lambda x: table().mode("whole", candidates=[1, 2], epsilon=x),
    "level": lambda x: table().quantile("whole", x, lower=0, upper=9, epsilon=1),
}
# Public values that are taken as Python's numbers.
VALUES: dict[str, Take] = {
    **{f"candidates of {name}": lambda x, name=name: _mode(name, [x, 1]) for name in ("whole", "cents", "float")},
    **{f"top of {name}": lambda x, name=name: _top(name, [x, 1]) for name in ("whole", "cents", "float")},
    **{f"groups of {name}": lambda x, name=name: table().group_by(name, groups=[x]) for name in ("whole", "cents")},
    **{
        f"{end} of {name}": lambda x, end=end, name=name: _median(name, **{"lower": 0, "upper": 9, "step": 1, end: x})
        for name in ("whole", "cents", "float")
        for end in ("lower", "upper", "step")
    },
    "step of days": lambda x: _median("day", **DAYS, step=x),
    "step of moments": lambda x: _median("moment", **MOMENTS, step=x),
    "k": lambda x: table().top_k("whole", x, candidates=[1, 2], epsilon=1),
    "max_groups": lambda x: table().group_by("whole", groups=[1], max_groups=x),
    "count": lambda x: Charge("a", 1, count=x),
    "what": lambda x: Charge({"a": x}, 1),
    "what, within": lambda x: Charge({"a": [{"b": x}]}, 1),
    "n": lambda x: error_bounds(PermuteAndFlip(1), x),
    "n of lazy scores": lambda x: PermuteAndFlip(1).select_lazily(lambda _: 0, x, best=1),
    "draws": lambda x: PermuteAndFlip(1).simulate([1, 2], x),
    "seed": lambda x: PermuteAndFlip(1).simulate([1, 2], 1, seed=x),
    "runs": lambda x: dpselect.audit.audit(np.argmax, 1, runs=x),
    "sensitivities": lambda x: dpselect.generalized_scores([1, 2], [x, 1], 1),
}
# Secret numbers.
SCORES: dict[str, Take] = {
    **{f"select of {kind.__name__}": lambda x, kind=kind: kind(1).select([x, 0, 1]) for kind in KINDS},
    **{f"tuple of {kind.__name__}": lambda x, kind=kind: kind(1).select((0.5, x)) for kind in KINDS},
    **{f"rows of {kind.__name__}": lambda x, kind=kind: kind(1).select_rows([[0, 1], [x, 1]]) for kind in KINDS},
    **{f"pmf of {kind.__name__}": lambda x, kind=kind: kind(1).pmf([x, 0]) for kind in KINDS},
    "early exit": lambda x: PermuteAndFlip(1).select([x, 0], early_exit=True),
    "array of objects": lambda x: PermuteAndFlip(1).select(np.array([x, 0], object)),
    "matrix of objects": lambda x: PermuteAndFlip(1).select_rows(np.array([[x, 0]], object)),
    "series": lambda x: PermuteAndFlip(1).select(pd.Series([x, 0], dtype=object)),
    "frame": lambda x: PermuteAndFlip(1).select_rows(pd.DataFrame({"a": pd.Series([x], dtype=object), "b": [1]})),
    "runs": lambda x: PermuteAndFlip(1).select_runs([x, 0], [1, 2]),
    "lengths": lambda x: PermuteAndFlip(1).select_runs([1, 0], [x, 2]),
    "exponential runs": lambda x: ExponentialMechanism(1).select_runs([x, 0], [1, 2]),
    "summary": lambda x: PermuteAndFlip(1).summary().update([x, 0]),
    "feed": lambda x: PermuteAndFlip(1).summary().feed([[x, 0]]),
    "lazy flip": lambda x: PermuteAndFlip(1).select_lazily(lambda _: x, 2, best=1),
    "lazy rejection": lambda x: ExponentialMechanism(1).select_lazily(lambda _: x, 2, best=1),
    "generalized": lambda x: dpselect.generalized_scores([x, 0], [1, 1], 1),
    "error": lambda x: expected_error(PermuteAndFlip(1), [x, 0]),
}
# What only takes numbers in writing.
READERS: dict[str, Take] = {
    "score": lambda x: parse_score(x, line=1),
    **{
        f"value of {kind.name}": lambda x, kind=kind: kind.from_text(x, "x")
        for kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
    },
    "amount of the explorer": lambda x: spending_of({"amount": x}),
    "sensitivity of the explorer": lambda x: asked_of({"question": "select", "sensitivity": x}, made("median", 9)),
    "questions of the explorer": lambda x: spending_of({"questions": x}),
}


def _mode(name: str, candidates: list[Any]) -> object:
    return table().mode(name, candidates=candidates, epsilon=1)


def _top(name: str, candidates: list[Any]) -> object:
    return table().top_k(name, 1, candidates=candidates, epsilon=1)


def _median(name: str, **grid: Any) -> object:
    return table().median(name, **grid, epsilon=1)


def refused(take: Take, number: Any) -> str:
    """What the refusal says, with all that it was raised from."""
    with pytest.raises(DPSelectError) as caught:
        take(number)
    said, error = [], caught.value
    while error is not None:
        said.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(said)


@pytest.mark.parametrize("take", [*PARAMETERS.values(), *READERS.values()], ids=[*PARAMETERS, *READERS])
def test_digits_are_ascii_and_not_parted_and_a_long_text_is_refused_at_once(take: Take) -> None:
    for text in MISWRITTEN:
        refused(take, text)
    for text in LONG_TEXTS.values():
        with at_once():
            assert len(refused(take, text)) < 300


@pytest.mark.parametrize("take", [*PARAMETERS.values(), *VALUES.values()], ids=[*PARAMETERS, *VALUES])
def test_a_long_number_is_refused_at_once(take: Take) -> None:
    for number in LONG_NUMBERS.values():
        with at_once():
            assert len(refused(take, number)) < 300


@pytest.mark.parametrize("take", SCORES.values(), ids=SCORES)
def test_a_long_score_is_refused_at_once_and_not_shown(take: Take) -> None:
    messages = set()
    for number in LONG_NUMBERS.values():
        with at_once():
            messages.add(refused(take, number))
    for message in messages:
        assert not any(digits * 3 in message for digits in "0123456789")
        assert len(message) < 300


def test_long_numbers_of_a_ledger_are_refused_at_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", budget=1)
    for number in [*LONG_NUMBERS.values(), *LONG_TEXTS.values(), *MISWRITTEN]:
        with at_once():
            refused(lambda x: Ledger(tmp_path / "other", budget=x), number)
            refused(lambda x: ledger.spend(x, "question"), number)
    assert not (tmp_path / "other").exists()
    assert ledger.entries() == []


def test_names_of_repeated_runs_are_read_in_their_own_form_only() -> None:
    assert repeated("repeat-and-select poisson mean=10 epsilon=1/10") is not None
    for text in [*MISWRITTEN, *LONG_TEXTS.values()]:
        with at_once():
            assert repeated(f"repeat-and-select poisson mean={text} epsilon=1/10") is None
            assert repeated(f"repeat-and-select poisson mean=10 epsilon={text}") is None


@pytest.mark.parametrize("text", ["1_0", "\N{FULLWIDTH DIGIT ONE}", "0x1", "+1", " 1", "01", "A"])
def test_rows_of_summaries_are_read_in_their_own_form_only(text: str) -> None:
    seen = PermuteAndFlip(1).summary()
    seen.update([1], labels=[7])
    row = seen.to_arrow().to_pylist()[0]
    for column in ("heads", "head", "candidates", "label"):
        with pytest.raises(InvalidValue, match="is not a summary"):
            Summary.from_arrow(pa.Table.from_pylist([{**row, column: text}]))
    for column in ("epsilon", "maximum"):
        for quotient in (f"{text}/1", f"1/{text}"):
            with pytest.raises(InvalidValue, match="is not a summary"):
                Summary.from_arrow(pa.Table.from_pylist([{**row, column: quotient}]))
    with pytest.raises(InvalidValue, match="is not a summary"):
        Summary.from_arrow(pa.Table.from_pylist([{**row, "label_kind": "decimal", "label": "1_0"}]))
    for column in ("epsilon", "maximum"):
        with at_once(), pytest.raises(InvalidValue, match="is not a summary"):
            Summary.from_arrow(pa.Table.from_pylist([{**row, column: "7" * 10**6 + "/" + "3" * 10**6}]))


def test_a_stored_answer_is_read_in_our_own_notation_only() -> None:
    assert decode_answer('{"decimal": "1.50"}') == Decimal("1.50")
    with pytest.raises(NotExact):
        decode_answer('{"decimal": "1_0"}')


DECIMALS = st.from_regex(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True)
WHOLE = st.from_regex(r"[+-]?[0-9]{1,30}", fullmatch=True)
SPACE = st.text(" \t\n\N{NO-BREAK SPACE}", max_size=3)


@given(DECIMALS, SPACE)
def test_every_decimal_is_read_as_python_reads_it(text: str, space: str) -> None:
    assert decimal_from_text(space + text + space) == Decimal(text)
    assert rational_from_text(space + text + space) == Fraction(text)


@given(WHOLE, WHOLE, SPACE)
def test_quotients_of_whole_numbers_are_exact(above: str, below: str, space: str) -> None:
    text = f"{above}{space}/{space}{below}"
    if int(below):
        assert rational_from_text(text) == Fraction(int(above), int(below))
    else:
        with pytest.raises(NotExact):
            rational_from_text(text)


@given(WHOLE)
def test_digits_alone_are_an_int(text: str) -> None:
    number = number_from_text(text)
    assert type(number) is int
    assert number == int(text)


@given(st.text("0123456789+-.eE_/ \N{ARABIC-INDIC DIGIT THREE}\N{FULLWIDTH DIGIT ONE}", max_size=8))
def test_what_is_read_is_in_the_grammar(text: str) -> None:
    """Whatever is read has ASCII digits and no underscore, and Fraction agrees about its value."""
    try:
        number = rational_from_text(text)
    except (NotExact, NotFinite):
        return
    assert text.isascii()
    assert "_" not in text
    if "/" not in text:
        assert number == Fraction(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("0e999999999", 0), ("0e-999999999", 0), ("1e4000", 10**4000), ("1" + "0" * 4000, 10**4000)],
        *[("0" * 9999 + "7", 7), ("1e4001", NotFinite), ("1e-4001", NotFinite), ("0." + "1" * 4002, TooLong)],
        *[("inf", NotFinite), ("-NaN", NotFinite)],
    ],
)
def test_numbers_at_and_beyond_the_limit(text: str, expected: Any) -> None:
    with at_once():
        if isinstance(expected, int):
            assert rational_from_text(text) == expected
        else:
            with pytest.raises(expected):
                rational_from_text(text)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_up_to_the_limit_are_exact(kind: Any) -> None:
    """Every long double, and what has thousands of digits."""
    limits = np.finfo(np.longdouble)
    long = [10**19_000, Fraction(1, 10**19_000), Decimal("1.5e-4000"), Decimal("1." + "7" * 4000)]
    for scores in ([limits.max, limits.tiny], *([score, -(10**9)] for score in long)):
        assert kind(1).pmf(scores).sum() == pytest.approx(1)
        assert kind(1).select(scores) == 0


# Rounding.

ANY = st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction)


@given(ANY)
@example(Fraction(1, 3))  # the nearest float is below
@example(Fraction(1, 10))  # the nearest float is above
@example(Fraction(2**53 + 1))  # two floats are equally near
def test_floats_next_to_a_number(number: Fraction) -> None:
    below, above = float_below(number), float_above(number)
    assert Fraction(below) <= number <= Fraction(above)
    assert above == (below if Fraction(below) == number else math.nextafter(below, math.inf))
    assert float_near(number) in (below, above)
    assert abs(Fraction(float_near(number)) - number) <= min(number - Fraction(below), Fraction(above) - number)


def test_the_nearest_float_is_neither_always_above_nor_always_below() -> None:
    """The power check: a float_above that rounds to nearest is wrong for the first, a float_below for the second."""
    assert float_below(Fraction(1, 3)) == float_near(Fraction(1, 3)) < float_above(Fraction(1, 3))
    assert float_below(Fraction(1, 10)) < float_near(Fraction(1, 10)) == float_above(Fraction(1, 10))


def test_numbers_beyond_the_floats() -> None:
    largest = math.nextafter(math.inf, 0)
    assert (float_below(Fraction(10**400)), float_above(Fraction(10**400))) == (largest, math.inf)
    assert (float_below(Fraction(-(10**400))), float_above(Fraction(-(10**400)))) == (-math.inf, -largest)
    assert (float_below(Fraction(1, 10**400)), float_above(Fraction(1, 10**400))) == (0.0, 5e-324)
    assert (float_near(Fraction(10**400)), float_near(Fraction(-(10**400)))) == (math.inf, -math.inf)


@given(st.fractions(min_value="1/100000000000"))
def test_texts_read_back(number: Fraction) -> None:
    text = shortest_text(number)
    assert (rational_from_text(text[1:-1]) if text.startswith("'") else rational(eval(text))) == number  # noqa: S307
    assert rational_from_text(exact_text(number)) == number


@given(st.fractions(min_value="1/100000000000"), st.integers(1, 30))
@example(Fraction(1, 3), 6)
@example(Fraction(2, 3), 6)
def test_short_texts_are_rounded_to_their_side(number: Fraction, digits: int) -> None:
    above, below = Fraction(rounded_up_text(number, digits)), Fraction(rounded_down_text(number, digits))
    assert below <= number <= above
    assert above - below <= number / 10 ** (digits - 1)
    assert (above == number) == (below == number)


@given(st.floats(1e-6, 1e9))
@example(1 / 3)
@example(2 / 3)
def test_shown_numbers_are_rounded_to_their_side(number: float) -> None:
    """But for their eleventh digit: 0.1 plus a rounding error is shown as 0.1."""
    above, below = (Fraction(shown(number, *side).replace(",", "")) for side in ((), (DOWN,)))
    slack = Fraction(number) / 10**10
    assert below - slack <= Fraction(number) <= above + slack
    assert above - below <= Fraction(number) / 10**3


@pytest.mark.parametrize(
    ("value", "rounding", "text"),
    [
        (27.6310211, None, "27.64"),
        (27.6310211, DOWN, "27.63"),
        (27.6351, NEAREST, "27.64"),
        (0.1, None, "0.1"),
        (0.1 + 0.2, None, "0.3"),
        (99999.0, None, "100,000"),
        (1234567.0, None, "1,235,000"),
        (0.0012341, None, "0.001235"),
        (0.00012341, None, "1.235e-4"),
        (3e200, None, "3e+200"),
        (0.0, None, "0"),
        (2.0, None, "2"),
        (float("nan"), None, "-"),
        (None, None, "-"),
    ],
)
def test_numbers_are_shown_with_four_digits(value: float | None, rounding: str | None, text: str) -> None:
    assert (shown(value) if rounding is None else shown(value, rounding)) == text


def test_only_the_value_of_a_subclass_counts():
    """It may compute in its own way."""

    class Odd(Fraction):
        __mul__ = __add__ = lambda self, other: Fraction(99)

    plain = rational(Odd(1, 3))
    assert type(plain) is Fraction
    assert (plain, plain * 3) == (Fraction(1, 3), 1)
