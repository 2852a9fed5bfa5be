"""`dpselect mode`, `top` and `values` without a list: rules, values that are found, and groups that are found."""

import json
from pathlib import Path

import pytest

from dpselect import Ledger, zcdp
from dpselect.cli.questions import rule
from tests.cli.conftest import Run

ROWS = ["Ulm"] * 300 + ["Kiel"] * 200 + ["Bonn"] * 100 + ["Rom"]
FOUND = ("--epsilon", "9", "--delta", "1e-9", "--person", "who", "--column", "city")


@pytest.fixture
def visits(tmp_path: Path) -> str:
    path = tmp_path / "visits.csv"
    lines = [f"{who},{city},{who % 2}" for who, city in enumerate(ROWS)]
    path.write_text("\n".join(["who,city,ward", *lines]) + "\n", encoding="utf-8")
    return str(path)


def test_values_are_found(run: Run, visits: str) -> None:
    result = run("values", visits, *FOUND)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[:4] == [
        "Bonn",
        "Kiel",
        "Ulm",
        ("the values that enough people have, each person counted for one of theirs, chosen at random"),
    ]
    assert "(9, 1e-9)-DP" in result.out
    shown = json.loads(run("values", visits, *FOUND, "--json").out)
    assert (shown["value"], shown["guarantee"]["delta"]) == (["Bonn", "Kiel", "Ulm"], "1e-9")


def test_a_mode_and_a_top_are_found(run: Run, visits: str) -> None:
    assert run("mode", visits, *FOUND).out.splitlines()[0] == "Ulm"
    assert run("mode", visits, *FOUND, "--max-values", "1").out.splitlines()[0] == "Ulm"
    assert run("top", visits, "-k", "5", *FOUND).out.splitlines()[:3] == ["Ulm", "Kiel", "Bonn"]
    assert "in the order of" not in run("top", visits, "-k", "5", *FOUND).out
    nothing = ("--epsilon", "0.01", "--delta", "1e-12", "--column", "city")
    assert json.loads(run("mode", visits, *nothing, "--json").out)["value"] is None
    assert run("mode", visits, *nothing).out.splitlines()[0] == "nothing was common enough"
    assert run("top", visits, "-k", "2", *nothing).out.splitlines()[0] == "nothing was common enough"
    assert run("values", visits, *nothing).out.splitlines()[0] == "nothing was common enough"


@pytest.mark.parametrize("text", ["text:8", "text:4:BKUeilmno", "text:100"])
def test_a_rule_replaces_a_list(run: Run, visits: str, text: str) -> None:
    result = run("mode", visits, "--column", "city", "--every", text, "--epsilon", "9")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[0] == "Ulm"
    assert run("mode", visits, "--column", "ward", "--every", "integer:0..9", "--epsilon", "9").out[0] in "01"


def test_rules_as_people_write_them() -> None:
    written = ["int8", "integer:-5..5", "decimal:9:2", "date:2000-01-01..2024-12-31", "uuid", "text:3", "boolean"]
    assert [repr(rule(text)) for text in written] == [
        "every('int8')",
        "every('integer', lower=-5, upper=5)",
        "every('decimal', precision=9, digits=2)",
        "every('date', lower=datetime.date(2000, 1, 1), upper=datetime.date(2024, 12, 31))",
        "every('uuid')",
        "every('text', max_bytes=3)",
        "every('boolean')",
    ]
    moments = rule("timestamp:2024-01-01T00:00:00..2024-01-01T00:00:01")
    assert moments.size == 1_000_001


def test_groups_are_found(run: Run, visits: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    Ledger(ledger, zcdp("9", delta="1e-6"))
    asked = ("--column", "ward", "--candidates", "0,1", "--epsilon", "5", "--person", "who", "--ledger", ledger)
    result = run("mode", visits, *asked, "--group-by", "city", "--groups", "found:2,1e-9")
    assert result.code == 0
    assert [line.split(":")[0] for line in result.out.splitlines()[:3]] == ["Bonn", "Kiel", "Ulm"]
    assert "3 groups found" in result.err
    assert "ledger entry 1" in result.err
    assert [float(entry.delta) for entry in Ledger(ledger).entries()] == [1e-9, 0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("mode FILE --column city --epsilon 1", "give candidates"),
        ("values FILE --column city --epsilon 1", "delta"),
        ("mode FILE --column city --epsilon 1 --delta 0", "delta must be above 0"),
        ("mode FILE --column city --epsilon 1 --delta 0.7", "delta must be above 0"),
        ("mode FILE --column city --epsilon 1 --candidates Ulm,Kiel --every text:3", "exclude each other"),
        ("mode FILE --column city --epsilon 1 --candidates Ulm,Kiel --delta 1e-9", "leave out either delta"),
        ("mode FILE --column city --epsilon 1 --every int65", "int64"),
        ("mode FILE --column city --epsilon 1 --every text", "max_bytes"),
        ("mode FILE --column city --epsilon 1 --every text:many", "max_bytes"),
        ("mode FILE --column city --epsilon 1 --every integer:9..1", "lower"),
        ("mode FILE --column city --epsilon 1 --every text:3 --other else", "other"),
        ("mode FILE --column ward --epsilon 1 --candidates 0,1 --group-by city --groups found:1", "found:0.5,1e-9"),
        ("top FILE -k 2 --column city --epsilon 1 --delta 1e-9 --method set --max-values 1", "method"),
    ],
)
def test_refusals_are_one_line(run: Run, visits: str, asked: str, words: str) -> None:
    result = run(*(visits if part == "FILE" else part for part in asked.split()))
    assert (result.code, result.out) == (2, "")
    assert words in result.err.replace("\n", " ")
    assert "Traceback" not in result.err


GROUPED = "--person who --group-by city --groups found:2,1e-9"


@pytest.mark.parametrize(
    "asked",
    [
        "mode FILE --column ward --epsilon 0 --candidates 0,1",
        "mode FILE --column ward --epsilon 1",
        "mode FILE --column nothing --epsilon 1 --candidates 0,1",
        "top FILE -k 500 --column ward --epsilon 1 --candidates 0,1",
        "median FILE --column ward --epsilon 1 --lower 9 --upper 1",
        "mode FILE --column ward --epsilon 1 --candidates 0,1 --mechanism noisy-max",
        "mode FILE --column ward --epsilon 1 --candidates 0,1 --group-by ward --groups 0,1",
    ],
)
def test_groups_are_not_paid_for_if_the_question_is_wrong(run: Run, visits: str, tmp_path: Path, asked: str) -> None:
    ledger = tmp_path / "ledger"
    Ledger(ledger, zcdp("9", delta="1e-6"))
    result = run(*(visits if part == "FILE" else part for part in f"{asked} {GROUPED}".split()), "--ledger", ledger)
    assert result.code == 2
    assert list(Ledger(ledger).entries()) == []


def test_a_retry_finds_the_same_groups_and_costs_nothing(run: Run, visits: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    Ledger(ledger, zcdp("9", delta="1e-6"))
    asked = f"mode FILE --column ward --epsilon 1 --candidates 0,1 {GROUPED} --request-id a --ledger"
    first, again = (run(*(visits if part == "FILE" else part for part in asked.split()), ledger) for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert first.out.splitlines()[:3] == again.out.splitlines()[:3]
    assert len(list(Ledger(ledger).entries())) == 2
