"""What an answer estimates, in words: in the answer and in a ledger. The command line is in `tests/cli`."""

from fractions import Fraction

import pytest

import dpselect
from tests.tables.looking import opened

PEOPLE = "people, each at the median of their own rows"
ENDS = {"lower": 0, "upper": 9}
MEDIAN = ("median", (), {})
QUARTILES = ("quantiles", ("quartiles",), {})
ROWS = {"per_person": "rows", "max_rows": 3}

# The question, and what is asked for; and whom it is over, without a person and with one.
WHAT = {
    "median": (MEDIAN, "median", ""),
    "quantile": (("quantile", ("0.9",), {}), "90 % quantile", ""),
    "the middle quantile": (("quantile", (0.5,), {}), "median", ""),
    "parts of a percent": (("quantile", ("0.999",), {}), "99.9 % quantile", ""),
    "thirds": (("quantile", ("1/3",), {}), "1/3 quantile", ""),
    "quartiles": (QUARTILES, "quartiles", ""),
    "listed quartiles": (("quantiles", ([0.25, 0.5, 0.75],), {}), "quartiles", ""),
    "quartiles in another order": (("quantiles", ([0.5, 0.25, 0.75],), {}), "50 %, 25 %, 75 % quantiles", ""),
    "deciles": (("quantiles", ("deciles",), {}), "deciles", ""),
    "percentiles": (("quantiles", ("percentiles",), {}), "percentiles", ""),
    "two levels": (("quantiles", (["0.9", "1/3"],), {}), "90 %, 1/3 quantiles", ""),
    "one level": (("quantiles", (["0.5"],), {}), "50 % quantile", ""),
    "many levels": (
        ("quantiles", ([Fraction(i, 20) for i in range(19, 0, -1)],), {}),
        "19 quantiles from 5 % to 95 %",
        "",
    ),
    "minimum": (("minimum", (), {}), "1 % quantile", " (in place of the minimum)"),
    "maximum": (("maximum", (), {}), "99 % quantile", " (in place of the maximum)"),
    "another maximum": (("maximum", (), {"level": "0.9"}), "90 % quantile", " (in place of the maximum)"),
    "a middle minimum": (("minimum", (), {"level": "1/2"}), "median", " (in place of the minimum)"),
    "a range of magnitudes": (("median", (), {"range": "log"}), "median", ""),
}
WHOM = {
    "rows": (None, {}, "rows"),
    "people": ("who", {}, PEOPLE),
    "rows of people": ("who", ROWS, "rows of people, at most 3 rows of each person"),
    "one row of a person": (
        "who",
        {"per_person": "rows", "max_rows": 1},
        "rows of people, at most 1 row of each person",
    ),
    "many rows of people": (
        "who",
        {"per_person": "rows", "max_rows": 10**4},
        "rows of people, at most 10,000 rows of each person",
    ),
}


def rows_of_people():
    return {"who": [1, 1, 2, 3], "g": ["p", "q", "p", "q"], "x": [1, 2, 3, 4]}


@pytest.mark.parametrize("groups", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["all", "groups"])
@pytest.mark.parametrize("whom", WHOM)
def test_an_answer_says_what_it_estimates(whom, groups, ledger):
    """A ledger says so, too."""
    person, counted, over = WHOM[whom]
    table = opened(rows_of_people(), person=person, ledger=ledger)
    if groups:
        table = table.group_by("g", groups=["p", "q"])
    for (name, arguments, options), words, instead in WHAT.values():
        ends = {} if "range" in options else ENDS
        answer = getattr(table, name)("x", *arguments, **ends, **options, **counted, epsilon=1)
        expected = f"{words} over {over}{instead}" + (", in each group of 'g'" if groups else "")
        assert answer.estimate == answer.to_dict()["estimate"] == expected
        assert f"estimate={expected!r}" in repr(answer)
        asked = ledger.entries()[-1].what
        assert asked["estimate"] == expected
        assert asked["question"] == ("quantile" if name == "median" else name)
        assert {key: asked[key] for key in ("per_person", "max_rows") if key in asked} == counted


def test_answers_without_a_table_estimate_nothing_in_words():
    answer = dpselect.PermuteAndFlip(1).release([1, 2])
    assert (answer.estimate, "estimate" in repr(answer)) == ("", False)
