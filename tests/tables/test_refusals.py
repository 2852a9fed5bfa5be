"""What is refused, of every question and of groups: in one line that says why, before anything is charged."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpselect import Ledger, every, zcdp
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from tests.tables.looking import opened

DAY, MOMENT = datetime.date(2024, 3, 5), datetime.datetime(2024, 3, 5, 12)
ZONED, DAYS = MOMENT.replace(tzinfo=datetime.UTC), datetime.timedelta(days=1)
BOTH = {"g": ["a", "b"], "h": [1, 2]}
ROWS = {
    **{"who": [1], "x": [1], "h": [1], "f": [1.0], "d": [DAY], "t": [MOMENT], "b": [True], "s": ["1"], "g": ["a"]},
    **{"w": ["1"], "narrow": np.array([0.5], np.float32), "xs": [[1]]},
}


@pytest.fixture(params=["who", None], ids=["people", "rows"])
def refused(request, tmp_path):
    """What checks that a question is refused in words, before a charge."""
    ledger = Ledger(tmp_path / "ledger", zcdp("9", delta="1e-6"))
    table = opened(ROWS, person=request.param, ledger=ledger)

    def check(ask, error, words=None):
        with pytest.raises(error, match=words) as raised:
            ask(table)
        assert "\n" not in str(raised.value)
        assert ledger.entries() == []

    check.person = request.param
    return check


TOP_K = {
    "k of zero": ({"k": 0}, InvalidValue, "k must be from 1 to the number of candidates, 3, got 0"),
    "too large a k": ({"k": 4}, InvalidValue, "k must be from 1 to the number of candidates, 3, got 4"),
    "k as text": ({"k": "2"}, InvalidType, "k must be an integer"),
    "a float": ({"k": 2.0}, InvalidType, "k must be an integer"),
    "an empty interval": ({"k": (2, 1)}, InvalidValue, r"1 <= lo <= hi <= 2, .* got \(2, 1\)"),
    "an interval from zero": ({"k": (0, 1)}, InvalidValue, "1 <= lo <= hi <= 2"),
    "an interval to all": ({"k": (1, 3)}, InvalidValue, "1 <= lo <= hi <= 2"),
    "three numbers": ({"k": (1, 2, 2)}, InvalidType, "k must be a whole number, or a pair"),
    "an interval in order": ({"k": (1, 2), "ordered": True}, InvalidValue, "k may be a pair only with method margin"),
    "an interval for sets": (
        {"k": (1, 2), "method": "set", "max_values": 1},
        InvalidValue,
        "k may be a pair only with method margin",
    ),
    "a set in order": ({"method": "set", "max_values": 1, "ordered": True}, InvalidValue, "method set has no order"),
    "a margin in order": ({"method": "margin", "ordered": True}, InvalidValue, "method margin has no order"),
    "a set without a limit": ({"method": "set"}, InvalidValue, "method set needs max_values"),
    "noise without a limit": ({"method": "noisy-counts"}, InvalidValue, "method noisy-counts needs max_values"),
    "another method": ({"method": "best"}, InvalidValue, "method must be one of auto, set, margin, one-shot, peel"),
    "no name": ({"method": 3}, InvalidType, "method must be a name, got int"),
    "no values": ({"max_values": 0}, InvalidValue, "max_values must be >= 1, got 0"),
    "negative values": ({"max_values": -1}, InvalidValue, "max_values must be >="),
    "values as text": ({"max_values": "1"}, InvalidType, "max_values must be an integer"),
    "an order as text": ({"ordered": "yes"}, InvalidType, "ordered must be True or False"),
    "noise by another mechanism": (
        {"method": "noisy-counts", "max_values": 1, "mechanism": "exponential"},
        InvalidValue,
        "method noisy-counts adds Laplace noise",
    ),
    "no price": ({"epsilon": None}, InvalidValue, "give exactly one of epsilon and rho"),
}


@pytest.mark.parametrize("kind", TOP_K)
def test_of_the_top_k(kind, refused):
    choices, error, words = TOP_K[kind]
    asked = {"k": 2, "candidates": [1, 2, 3], "epsilon": "0.1", **choices}
    if refused.person is None and "without a limit" in kind:  # a row has one value
        return
    refused(lambda t: t.top_k("x", **asked), error, words)
    refused(lambda t: t.group_by("g", groups=["a", "b"]).top_k("x", **asked), error, words)


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda t: t.mode("x", epsilon=1), InvalidValue),
        (lambda t: t.top_k("x", 2, epsilon=1), InvalidValue),
        (lambda t: t.values("x", epsilon=1), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta=0), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta="0.51"), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta=-1), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta=math.nan), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta="small"), DPSelectError),
        (lambda t: t.mode("x", delta="1e-9"), InvalidValue),
        (lambda t: t.mode("x", candidates=[1, 2], epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.mode("x", candidates=[1, 2], epsilon=1, max_values=1), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta="1e-9", max_values=0), InvalidValue),
        (lambda t: t.mode("x", epsilon=1, delta="1e-9", mechanism="noisy-max"), InvalidType),
        (lambda t: t.top_k("x", 0, epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.top_k("x", 10**5, epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.top_k("x", (1, 2), epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.top_k("x", 2, epsilon=1, delta="1e-9", method="set", max_values=1), InvalidValue),
        (lambda t: t.values("x", epsilon=1, delta="1e-9", max_values=0), InvalidValue),
        (lambda t: t.values("x", epsilon=1, delta="1e-9", max_values=None), InvalidValue),
        (lambda t: t.values("nobody", epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.values("xs", epsilon=1, delta="1e-9"), InvalidType),
        (lambda t: t.group_by("x", epsilon=1), InvalidValue),
        (lambda t: t.group_by("x", delta="1e-9"), InvalidValue),
        (lambda t: t.group_by("x", groups=[1], epsilon=1), InvalidValue),
        (lambda t: t.group_by(["x", "g"], epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.mode("d", candidates=every("int64"), epsilon=1), InvalidType),
        (lambda t: t.mode("x", candidates=every("text", max_bytes=3), epsilon=1), InvalidType),
        (lambda t: t.mode("x", candidates=every("date"), epsilon=1), InvalidType),
        (lambda t: t.mode("x", candidates=every("int64"), epsilon=1, delta="1e-9"), InvalidValue),
        (lambda t: t.mode("x", candidates=every("int64"), epsilon=1, max_values=1), InvalidValue),
        (lambda t: t.top_k("x", 0, candidates=every("int64"), epsilon=1), InvalidValue),
        (lambda t: t.top_k("x", 2**64, candidates=every("int64"), epsilon=1), InvalidValue),
        (lambda t: t.top_k("x", 2**64 + 1, candidates=every("int64"), epsilon=1), InvalidValue),
        (lambda t: t.mode("x", candidates=every, epsilon=1), InvalidType),
        (lambda t: t.group_by("x", groups=every("int64")), InvalidType),
        (lambda t: t.group_by("x", groups=[1], max_groups=0), InvalidValue),
        (lambda t: t.group_by("x", groups=[1], max_groups=-1), InvalidValue),
        (lambda t: t.group_by("x", groups=[1], max_groups=1.0), InvalidType),
        (lambda t: t.group_by("x", groups=[1], max_groups=True), InvalidType),
        (lambda t: t.group_by("x", groups=[1], max_groups=None), InvalidType),
    ],
)
def test_of_unlisted_values_of_rules_and_of_limits(ask, error, refused):
    refused(ask, error)


def test_a_row_has_one_value_and_one_group(refused):
    if refused.person is None:
        refused(lambda t: t.values("x", epsilon=1, delta="1e-9", max_values=2), InvalidValue, "person")
        refused(
            lambda t: t.group_by("g", groups=["a"], max_groups=2), InvalidValue, "must be 1 without a person column"
        )


@pytest.mark.parametrize(
    ("column", "candidates", "other", "error", "words"),
    [
        ("x", [1, 2], 2, InvalidValue, "other must not be one of the candidates, but '2' is listed: give another name"),
        ("x", [1, 2], "2", InvalidValue, "other must not be one of the candidates, but '2' is listed"),
        (
            "g",
            ["a", "b"],
            "b",
            InvalidValue,
            "other must not be one of the candidates, but 'b' is listed: give another name",
        ),
        ("g", ["a", "b"], 5, InvalidType, "candidates with other must be values of one type"),
        ("x", [1, 2], 0.5, InvalidType, "candidates with other are floating-point numbers, but the column 'x'"),
        ("x", [1, 2], True, InvalidType, "candidates with other must be values of one type"),
        ("x", [1, 2], [3], InvalidType, "candidates with other must be numbers, text"),
        ("x", [1, 2], "\ud800", InvalidValue, "other must be text that can be encoded as UTF-8"),
        ("w", [1, 2], 0.5, InvalidType, "other must be text, or whole numbers like the candidates"),
        ("f", [0.5], math.nan, InvalidValue, "candidates with other must be finite numbers"),
        ("narrow", [float(np.float32(0.1))], math.nextafter(float(np.float32(0.1)), 1), InvalidValue, "are equal when"),
    ],
)
def test_of_a_candidate_for_others(column, candidates, other, error, words, refused):
    asked = {"candidates": candidates, "other": other, "epsilon": 1}
    refused(lambda t: t.mode(column, **asked), error, words)
    refused(lambda t: t.top_k(column, 1, **asked), error, words)


@pytest.mark.parametrize(
    ("columns", "groups", "error", "words"),
    [
        ([], {}, InvalidValue, "group_by must name at least one column"),
        (["g", "g"], {"g": ["a"]}, InvalidValue, "group_by must name different columns"),
        (["g", "y"], BOTH, InvalidValue, "column 'y' is not in the table"),
        (["g", 5], BOTH, InvalidType, "column must be the name of a column, got int"),
        ({"g", "h"}, BOTH, InvalidType, "column must be the name of a column, got set"),
        (["g", "h"], {"g": ["a"]}, InvalidValue, "groups must have a list for each column, but there is none for 'h'"),
        (["g", "h"], BOTH | {"x": [1]}, InvalidValue, "groups has a list for 'x', which is not in group_by"),
        (["g", "h"], BOTH | {"h": []}, InvalidValue, "groups of 'h' must have at least one value"),
        (["g", "h"], BOTH | {"h": [1, 1]}, InvalidValue, "groups of 'h' must be different values"),
        (
            ["g", "h"],
            BOTH | {"h": ["1"]},
            InvalidType,
            "groups of 'h' are text, but the column 'h' holds whole numbers",
        ),
        (["g", "h"], BOTH | {"g": "ab"}, InvalidType, "groups of 'g' must be a list of values, got str"),
        (["g", "h"], {"g": list(map(str, range(1001))), "h": range(1000)}, InvalidValue, "1,001,000 combinations"),
        (["g", "h"], None, InvalidValue, "give groups, the public list"),
        (["g", "h"], [], InvalidValue, "groups must have at least one value"),
        (["g", "h"], "ab", InvalidType, "groups must be a list of values, got str"),
        (["g", "h"], ["a1", "b2"], InvalidType, "groups must be tuples .* but one is str"),
        (["g", "h"], ["x", "g"], InvalidType, "groups must be tuples .* but one is str"),
        (["g", "h"], [["a", "b"], [1, 2]], InvalidType, "groups must be tuples .* but one is list"),
        (["g"], ["a", "b"], InvalidType, r"but one is str: for plain groups, write group_by\('g'\)"),
        (["g", "h"], [("a", 1), ("b",)], InvalidValue, "groups must be tuples of length 2, .* but one has length 1"),
        (["g", "h"], [("a", 1), ("a", 1)], InvalidValue, r"groups must be different, but \('a', 1\) occurs twice"),
        (["g", "h"], [("a", 1), ("b", True)], InvalidType, "groups of 'h' must be values of one type"),
        (["g", "h"], [("a", 1), ("b", None)], InvalidType, "groups of 'h' must be numbers, text"),
        (["g", "h"], [("a", [1])], InvalidType, "groups of 'h' must be numbers, text"),
        ("g", {"g": ["a"]}, InvalidType, "groups must be a list of values, got dict"),
        ("g", [("a",)], InvalidType, "groups must be numbers, text"),
        ("g", None, InvalidValue, "give groups, the public list"),
        ("g", [], InvalidValue, "groups must have at least one value"),
        ("g", ["a", "a"], InvalidValue, "groups must be different values"),
        ("g", "ab", InvalidType, "groups must be a list"),
    ],
)
def test_of_groups(columns, groups, error, words, refused):
    refused(lambda t: t.group_by(columns, groups=groups), error, words)


RANGES = {
    "a text": ("x", {"lower": "none", "upper": 9}, InvalidValue, "lower: 'none' cannot be read as one of the whole"),
    "a part": ("x", {"lower": "0.5", "upper": 9}, InvalidValue, "lower: '0.5' cannot be read as one of the whole"),
    "a flag": ("x", {"lower": False, "upper": 9}, InvalidType, "lower and upper must be numbers"),
    "NaT": ("t", {"lower": pd.NaT, "upper": MOMENT}, InvalidType, "lower and upper must be numbers"),
    "turned": ("x", {"lower": 9, "upper": 0}, InvalidValue, "lower must be <= upper"),
    "no step": ("x", {"lower": 0, "upper": 9, "step": 0}, InvalidValue, "step must be > 0"),
    "back": ("x", {"lower": 0, "upper": 9, "step": -1}, InvalidValue, "step must be > 0"),
    "step of text": ("x", {"lower": 0, "upper": 9, "step": "a"}, InvalidValue, "step: 'a' cannot be read"),
    "step of time": ("x", {"lower": 0, "upper": 9, "step": DAYS}, InvalidType, "step must be a number"),
    "halves of whole": ("x", {"lower": 0, "upper": 9, "step": 0.5}, InvalidValue, "step must be whole numbers"),
    "NaN": ("f", {"lower": math.nan, "upper": 9}, InvalidValue, "lower must be a finite number"),
    "infinity": ("f", {"lower": 0, "upper": math.inf}, InvalidValue, "upper must be a finite number"),
    "signalling": ("f", {"lower": 0, "upper": Decimal("sNaN")}, InvalidValue, "upper must be a finite number"),
    "huge": ("x", {"lower": -(10**5000), "upper": 10**5000}, InvalidValue, "lower must be a finite number of moderate"),
    "long": ("x", {"lower": 0, "upper": 2**64}, InvalidValue, "more than 2\\*\\*64 candidates|too many digits"),
    "too many": ("x", {"lower": -(2**63), "upper": 2**63}, InvalidValue, "more than 2\\*\\*64 candidates"),
    "fine floats": ("f", {"lower": 0, "upper": 1000, "step": 1e-12}, InvalidValue, "too many digits"),
    "finer floats": ("f", {"lower": 0, "upper": 1e-10, "step": 1e-16}, InvalidValue, "at most 15 digits"),
    "long tail": (
        "s",
        {"lower": Decimal("0." + "0" * 30 + "1"), "upper": 1},
        InvalidValue,
        "at most 15 digits after the point",
    ),
    "days for numbers": (
        "x",
        {"lower": DAY, "upper": DAY},
        InvalidType,
        "holds whole numbers, lower and upper are dates",
    ),
    "numbers for days": ("d", {"lower": 0, "upper": 9}, InvalidType, "column 'd' holds dates, lower and upper are"),
    "times for days": ("d", {"lower": MOMENT, "upper": MOMENT}, InvalidType, "give dates"),
    "both": ("s", {"lower": DAY, "upper": MOMENT}, InvalidType, "must be of one type"),
    "zone for none": ("t", {"lower": ZONED, "upper": ZONED}, InvalidType, "give timestamps"),
    "zone for text": ("s", {"lower": ZONED, "upper": ZONED}, InvalidType, "holds text, lower and upper are timestamps"),
    "part of a day": ("d", {"lower": DAY, "upper": DAY, "step": DAYS / 2}, InvalidValue, "step must be whole days"),
    "float days": ("d", {"lower": DAY, "upper": DAY, "step": 1.5}, InvalidType, "step must be a number of days"),
    "text of time": (
        "t",
        {"lower": MOMENT, "upper": MOMENT, "step": "1 s"},
        InvalidValue,
        "step: '1 s' cannot be read",
    ),
    "nanoseconds": ("t", {"lower": MOMENT, "upper": MOMENT, "step": 1.5e-6}, InvalidValue, "whole microseconds"),
    "a list": ("x", {"lower": [0], "upper": 9}, InvalidType, "lower and upper must be numbers"),
    "flags": ("b", {"lower": 0, "upper": 1}, InvalidType, "holds true or false"),
}


@pytest.mark.parametrize("kind", RANGES)
def test_of_ranges(kind, refused):
    column, parameters, error, words = RANGES[kind]
    refused(lambda t: t.median(column, **parameters, epsilon=1), error, words)


@pytest.mark.parametrize(
    ("level", "error"),
    [
        (0, InvalidValue),
        (1, InvalidValue),
        (-0.5, InvalidValue),
        (1.5, InvalidValue),
        (math.nan, InvalidValue),
        (math.inf, InvalidValue),
        (10**400, InvalidValue),
        ("1e4000", InvalidValue),
        ("1e99999", InvalidValue),
        (True, InvalidValue),
        ("x", InvalidType),
        (None, InvalidType),
        ([0.5], InvalidType),
    ],
)
def test_of_levels(level, error, refused):
    words = r"level must be .*between 0 and 1"
    refused(lambda t: t.quantile("x", level, lower=0, upper=9, epsilon=1), error, words)
