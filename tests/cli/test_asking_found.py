"""`dpselect mode|top|values` without a list of candidates: what is printed, and what is refused."""

from pathlib import Path

import pytest

from dpselect import Ledger
from tests.cli.conftest import Run

FOUND = "--column code --person who --epsilon 8 --delta 1e-6"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Ninety people have I10, forty have E11, and one has Z99."""
    path = tmp_path / "visits.csv"
    codes = ["I10"] * 90 + ["E11"] * 40 + ["Z99"]
    path.write_text("who,code\n" + "".join(f"{who},{code}\n" for who, code in enumerate(codes)))
    return str(path)


def test_found_values_are_printed_with_the_most_common_first(run: Run, file: str) -> None:
    lines = run("top", file, "-k", "2", *FOUND.split()).out.splitlines()
    assert lines[:4] == [
        "I10",
        "E11",
        "the most common first",
        "up to 2 values that most people have, if enough have them",
    ]
    assert run("mode", file, *FOUND.split()).out.splitlines()[:2] == [
        "I10",
        "the value that most people have, if enough have it",
    ]
    assert run("values", file, *FOUND.split()).out.splitlines()[:3] == [
        "E11",
        "I10",
        "the values that enough people have, each person counted for one of theirs, chosen at random",
    ]


def test_a_rule_has_an_order_of_its_own(run: Run, file: str) -> None:
    asked = [
        "top",
        file,
        "-k",
        "2",
        *["--column", "code", "--person", "who", "--epsilon", "20", "--every", "text:3", "--max-values", "1"],
    ]
    assert run(*asked).out.splitlines()[:3] == [
        "E11",
        "I10",
        "in the order of the rule, which says nothing about the counts",
    ]
    assert run(*asked, "--ordered").out.splitlines()[:3] == ["I10", "E11", "the most common first"]


def test_a_rule_of_decimals_without_digits_after_the_point(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("cost\n" + "12\n" * 90)
    result = run("mode", path, *["--column", "cost", "--epsilon", "4", "--every", "decimal:4:0"])
    assert result.out.splitlines()[0] == "12"


def test_groups_that_are_found_say_what_they_cost(run: Run, file: str, tmp_path: Path) -> None:
    asked = ["mode", file, *FOUND.split(), "--group-by", "code", "--groups", "found:8,1e-6"]
    assert run(*asked).err.startswith("2 groups found: (8, 0.000001)-DP, ")
    kept = run(*asked, "--ledger", tmp_path / "visits.ledger", "--budget", "zcdp:99,1e-3")
    assert " with the same delta; ledger entry 1 (charged rho " in kept.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("values FILE --column code --epsilon 1", "values are found in the data, which needs delta: give for example"),
        ("mode FILE --column code --epsilon 1", "without them the question needs delta"),
        ("mode FILE --column code --epsilon 1 --every words", "kind must be one of int8"),
        ("mode FILE --column code --epsilon 1 --every text", "or --every text:8"),
        ("mode FILE --column code --epsilon 1 --every integer:0-9", "or --every integer:0..999"),
        ("mode FILE --column code --epsilon 1 --every decimal:9", "or --every decimal:9:2"),
        ("mode FILE --column code --epsilon 1 --every int64:0..9", "leave it out, or write every('integer'"),
        ("mode FILE --column code --epsilon 1 --every text:3 --candidates a,b", "give a list or a rule"),
        (f"mode FILE {FOUND} --group-by who", "if there is no list, find the groups of a column with --groups found:"),
        (f"mode FILE {FOUND} --group-by who,code --groups 1,2", "--group-by names one column: repeat it"),
    ],
)
def test_refusals_say_what_to_give(run: Run, file: str, arguments: str, message: str) -> None:
    result = run(*arguments.replace("FILE", file).split())
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("budget", ["1", "zcdp:0.5", "1,1e-6,0"])
def test_a_budget_without_a_delta_names_budgets_that_have_one(run: Run, file: str, tmp_path: Path, budget: str) -> None:
    path = tmp_path / "visits.ledger"
    ask = [
        "values",
        file,
        *["--column", "code", "--person", "who", "--epsilon", "0.1", "--delta", "1e-9"],
        "--ledger",
        path,
    ]
    refused = run(*ask, "--budget", budget)
    assert refused.code == 2
    for named in ("1,1e-6", "zcdp:0.5,1e-9"):
        assert named in refused.err
        other = tmp_path / f"{named}.ledger"
        assert run(*ask[:-1], other, "--budget", named).code == 0
    assert Ledger(path).entries() == []
