"""`dpselect quantiles|minimum|maximum`, and what is new for `median` and `quantile`: text, JSON, and refusals."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from dpselect import Ledger
from tests.cli.conftest import Run

PEOPLE = "people, each at the median of their own rows"
ROWS = "rows of people, at most 2 rows of each person"
SURE = ("--epsilon", "100000")


@pytest.fixture(params=["csv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Four people at each of the values 0 to 99, all of them even in the group a."""
    numbers = [i // 4 for i in range(400)]
    table = pa.table({"who": range(400), "x": numbers, "g": ["ab"[x % 2] for x in numbers], "s": ["word"] * 400})
    path = tmp_path / f"people.{request.param}"
    (arrow_csv.write_csv if request.param == "csv" else pq.write_table)(table, path)
    return str(path)


def test_each_line_has_a_level_and_its_value(run: Run, file: str) -> None:
    """In the order of --levels."""
    asked = ("quantiles", file, "--column", "x", "--step", "1", "--person", "who", *SURE)
    result = run(*asked, "--levels", "0.905, 1/16,0.505")
    assert result.code == 0
    *lines, accuracy, terms = result.out.splitlines()
    assert "people off on average" in accuracy
    assert lines == [
        "0.905  90",
        "0.0625  6",
        "0.505  50",
        f"90.5 %, 6.25 %, 50.5 % quantiles over {PEOPLE}",
    ]
    assert terms.startswith("chosen by permute-and-flip; guarantee: 100000-DP (pure), ")


@pytest.mark.parametrize(("name", "parts"), [("quartiles", 4), ("deciles", 10), ("percentiles", 100)])
def test_levels_may_be_named(run: Run, file: str, name: str, parts: int) -> None:
    asked = ("quantiles", file, "--column", "x", "--lower", "0", "--upper", "100", *SURE, "--levels", name, "--json")
    shown = json.loads(run(*asked).out)
    assert [Fraction(level) for level in shown["levels"]] == [Fraction(i, parts) for i in range(1, parts)]
    assert len(shown["value"]) == parts - 1
    for level, value in zip(shown["levels"], shown["value"], strict=True):
        assert 100 * Fraction(level) - 1 <= value <= 100 * Fraction(level)
    assert (shown["estimate"], shown["mechanism"], shown["epsilon"]) == (
        f"{name} over rows",
        "permute-and-flip",
        "100000",
    )


def test_groups_have_a_line_for_each_level(run: Run, file: str) -> None:
    asked = ("quantiles", file, "--column", "x", "--lower", "0", "--upper", "100", *SURE, "--levels", "0.905,0.105")
    groups = ("--group-by", "g", "--groups", "b,a")
    lines = run(*asked, *groups).out.splitlines()
    assert lines[:4] == ["b  0.905  91", "b  0.105  11", "a  0.905  90", "a  0.105  10"]
    assert lines[4] == "90.5 %, 10.5 % quantiles over rows, in each group of 'g'"
    shown = json.loads(run(*asked, *groups, "--json").out)
    assert shown["value"] == [{"group": "b", "value": [91, 11]}, {"group": "a", "value": [90, 10]}]
    assert shown["levels"] == ["0.905", "0.105"]


@pytest.mark.parametrize(
    ("command", "value", "words"),
    [
        ("minimum --level 0.105", 10, "10.5 % quantile over rows (in place of the minimum)"),
        ("maximum --level 181/200", 90, "90.5 % quantile over rows (in place of the maximum)"),
    ],
)
def test_outer_quantiles(run: Run, file: str, command: str, value: int, words: str) -> None:
    asked = (*command.split(), file, "--column", "x", "--lower", "0", "--upper", "100", *SURE)
    assert run(*asked).out.splitlines()[:2] == [str(value), words]
    shown = json.loads(run(*asked, "--json").out)
    assert (shown["value"], shown["estimate"]) == (value, words)


def test_outer_quantiles_have_levels_of_their_own(run: Run, file: str) -> None:
    asked = (file, "--column", "x", "--lower", "0", "--upper", "100", *SURE)
    for name, values, level in (("minimum", (0, 1), 1), ("maximum", (98, 99), 99)):
        value, words, *_ = run(name, *asked).out.splitlines()
        assert (int(value) in values, words) == (True, f"{level} % quantile over rows (in place of the {name})")


COMMANDS = {
    "median": ("median", f"median over {ROWS}"),
    "quantile": ("quantile --level 0.9", f"90 % quantile over {ROWS}"),
    "quantiles": ("quantiles --levels deciles", f"deciles over {ROWS}"),
    "minimum": ("minimum", f"1 % quantile over {ROWS} (in place of the minimum)"),
    "maximum": ("maximum --level 0.95", f"95 % quantile over {ROWS} (in place of the maximum)"),
}


@pytest.mark.parametrize("file", ["parquet"], indirect=True)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_estimated_is_said(run: Run, file: str, name: str, tmp_path: Path) -> None:
    """In text, in JSON, and in the ledger."""
    command, words = COMMANDS[name]
    asked = (*command.split(), file, "--column", "x", "--lower", "0", "--upper", "9", "--epsilon", "1")
    asked += ("--person", "who", "--per-person", "rows", "--max-rows", "2")
    asked += ("--ledger", str(tmp_path / "ledger"), "--budget", "9")
    assert words in run(*asked).out.splitlines()
    assert json.loads(run(*asked, "--json").out)["estimate"] == words
    assert f"{words}, in each group of 'g'" in run(*asked, "--group-by", "g", "--groups", "a,b").out.splitlines()
    shown = json.loads(run("ledger", "show", tmp_path / "ledger", "--json").out)
    assert [entry["what"]["estimate"] for entry in shown["entries"][:2]] == [words, words]
    assert Ledger(tmp_path / "ledger").spent == 3


def test_magnitudes_and_missing_ends(run: Run, file: str) -> None:
    for name, *level in (("median",), ("quantile", "--level", "0.5"), ("quantiles", "--levels", "1/2")):
        first = run(name, file, *level, "--column", "x", "--range", "log", *SURE).out.splitlines()[0]
        assert float(first.split()[-1]) in (49, 50)
        first = run(name, file, *level, "--column", "x", "--upper", "20", "--step", "5", *SURE).out.splitlines()[0]
        assert first.split()[-1] == "20"


def test_a_budget_in_another_currency(run: Run, file: str, tmp_path: Path) -> None:
    asked = ("quantiles", file, "--column", "x", "--step", "1", "--levels", "deciles", "--rho", "0.25")
    result = run(*asked, "--ledger", tmp_path / "ledger", "--budget", "zcdp:0.5")
    assert (result.code, result.err) == (0, "")
    assert "chosen by exponential" in result.out
    assert result.out.endswith("ledger entry 1 (charged rho 0.25)\n")
    assert run(*asked, "--ledger", tmp_path / "ledger").code == 0
    assert run(*asked, "--ledger", tmp_path / "ledger").code == 3


STEP, LEVELS = "--column x --step 1", "--levels 0.1,0.9"
BAD = {
    "no such name": (f"quantiles {STEP} --levels tenths", "levels must be a list of numbers such as [0.1, 0.5, 0.9]"),
    "no level": (f"quantiles {STEP} --levels ,", "level must be a number between 0 and 1, got ''"),
    "percents": (f"quantiles {STEP} --levels 10%,90%", "level must be a number between 0 and 1, got '10%'"),
    "a level of one": (f"quantiles {STEP} --levels 0.5,1", "level must be between 0 and 1"),
    "a level twice": (f"quantiles {STEP} --levels 0.5,1/2", "levels must be different, but 0.5 occurs twice"),
    "too fine": (f"quantiles {STEP} --levels 1/999983,1/2", "levels must be multiples of 1/n for one n <= 1,000,000"),
    "a level of a minimum": (f"minimum {STEP} --level 0", "level must be between 0 and 1"),
    "a level of a maximum": (f"maximum {STEP} --level most", "level must be a number between 0 and 1, got 'most'"),
    "rows without people": (f"quantiles {STEP} {LEVELS} --per-person rows --max-rows 2", "need a person column"),
    "no number of rows": (f"minimum {STEP} --person who --per-person rows", "per_person='rows' needs max_rows"),
    "rows of a median": (f"median {STEP} --person who --max-rows 2", "max_rows needs per_person='rows'"),
    "no rows": (f"maximum {STEP} --person who --per-person rows --max-rows 0", "max_rows must be > 0"),
    "half a row": (f"maximum {STEP} --person who --per-person rows --max-rows 0.5", "max_rows must be a whole number"),
    "per person": (
        f"median {STEP} --person who --per-person mean",
        "per_person must be 'median' or 'rows', got 'mean'",
    ),
    "a range": (f"quantiles {STEP} {LEVELS} --range wide", "range must be 'full' or 'log', got 'wide'"),
    "two ranges": (f"quantiles {STEP} {LEVELS} --range log", "range='log' is a grid of its own"),
    "turned": (f"quantiles --column x {LEVELS} --lower 9 --upper 1", "lower must be <= upper"),
    "no price": (f"quantiles {STEP} {LEVELS} --rho 1", "give exactly one of epsilon and rho"),
    "no column": (f"quantiles --column y {LEVELS}", "column 'y' is not in the table"),
}


@pytest.mark.parametrize("file", ["csv"], indirect=True)
@pytest.mark.parametrize("kind", BAD)
def test_refusals_are_one_line_and_cost_nothing(run: Run, file: str, kind: str, tmp_path: Path) -> None:
    command, message = BAD[kind]
    name, *rest = command.split()
    asked = ("--epsilon", "1", "--ledger", str(tmp_path / "ledger"), "--budget", "9")
    result = run(name, file, *rest, *asked)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not (tmp_path / "ledger").exists() or Ledger(tmp_path / "ledger").entries() == []


def test_text_has_no_quantiles(run: Run, file: str) -> None:
    for name, *more in (("quantiles", "--levels", "deciles"), ("minimum",), ("maximum",)):
        result = run(name, file, *more, "--column", "s", "--epsilon", "1")
        assert (result.code, result.out) == (2, "")
        assert "column 's'" in result.err
