"""What an answer estimates, in words: in the answer, in a ledger, and on the command line."""

import json
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect import Ledger
from tests.cli.conftest import run  # noqa: F401 - a fixture
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


@pytest.mark.parametrize("groups", [False, True], ids=["all", "groups"])
@pytest.mark.parametrize("whom", WHOM)
@pytest.mark.parametrize("what", WHAT)
def test_an_answer_says_what_it_estimates(what, whom, groups, tmp_path):
    """A ledger says so, too, but for one quantile as version 0.4 had it, whose requests must be found."""
    (name, arguments, options), words, instead = WHAT[what]
    person, counted, over = WHOM[whom]
    ledger = Ledger(tmp_path / "ledger", budget=1)
    table = opened(rows_of_people(), person=person, ledger=ledger)
    if groups:
        table = table.group_by("g", groups=["p", "q"])
    ends = {} if "range" in options else ENDS
    answer = getattr(table, name)("x", *arguments, **ends, **options, **counted, epsilon=1)
    expected = f"{words} over {over}{instead}{', in each group of ' + repr('g') if groups else ''}"
    assert answer.estimate == answer.to_dict()["estimate"] == expected
    assert f"estimate={expected!r}" in repr(answer)
    [entry] = ledger.entries()
    as_before = name in ("median", "quantile") and not counted and "range" not in options
    assert entry.what.get("estimate") == (None if as_before else expected)
    assert entry.what["question"] == ("quantile" if name == "median" else name)
    assert (entry.what.get("per_person"), entry.what.get("max_rows")) == (
        counted.get("per_person"),
        counted.get("max_rows"),
    )


def test_a_stored_answer_says_it_again(tmp_path):
    for _ in range(2):
        table = opened(rows_of_people(), person="who", ledger=tmp_path / "ledger", budget=1)
        answer = table.median("x", **ENDS, epsilon=1, request_id="r")
        assert answer.estimate == f"median over {PEOPLE}"
    assert answer.repeated


def test_answers_without_a_table_estimate_nothing_in_words():
    answer = dpselect.PermuteAndFlip(1).release([1, 2])
    assert (answer.estimate, "estimate" in repr(answer)) == ("", False)


COMMANDS = {
    "median": ("median", "median over rows of people, at most 2 rows of each person"),
    "quantile": ("quantile --level 0.9", "90 % quantile over rows of people, at most 2 rows of each person"),
    "quantiles": ("quantiles --levels deciles", "deciles over rows of people, at most 2 rows of each person"),
    "minimum": (
        "minimum",
        "1 % quantile over rows of people, at most 2 rows of each person (in place of the minimum)",
    ),
    "maximum": (
        "maximum --level 0.95",
        "95 % quantile over rows of people, at most 2 rows of each person (in place of the maximum)",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_says_it(name, run, tmp_path):  # noqa: F811 - the fixture
    command, words = COMMANDS[name]
    question, *options = command.split()
    file = tmp_path / "people.parquet"
    pq.write_table(pa.table(rows_of_people()), file)
    asked = [*options, "--column", "x", "--lower", "0", "--upper", "9", "--epsilon", "1", "--person", "who"]
    asked += ["--per-person", "rows", "--max-rows", "2", "--ledger", tmp_path / "ledger", "--budget", "9"]
    assert words in run(question, file, *asked).out.splitlines()
    assert json.loads(run(question, file, *asked, "--json").out)["estimate"] == words
    grouped = run(question, file, *asked, "--group-by", "g", "--groups", "p,q").out.splitlines()
    assert f"{words}, in each group of 'g'" in grouped
    assert words in " ".join(run("ledger", "show", tmp_path / "ledger", "--json").out.split())
