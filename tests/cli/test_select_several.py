"""`dpselect select -k`: several candidates from scores that are numbers of people."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect import Ledger
from tests.cli.conftest import Run

ORDER = "in the order of the file, which says nothing about the scores"
PRIVATE = "48151"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Counts whose three largest are far above the others, and in another order than in the file."""
    path = tmp_path / "counts.csv"
    path.write_text("label,people\nrare,0\nthird,48151\nfirst,90000\nsecond,60000\nrare,1\nnone,0\n")
    return path


def lines(run: Run, *arguments: object) -> list[str]:
    result = run("select", *arguments)
    assert (result.code, result.err) == (0, "")
    return result.out.splitlines()


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "--max-values 1",
        "--method set --max-values 2",
        "--method margin",
        "--monotonic",
        "--mechanism exponential",
        "--method set --max-values 1 --mechanism exponential --monotonic",
    ],
)
def test_candidates_are_printed_in_the_order_of_the_file(run: Run, file: Path, asked: str) -> None:
    printed = lines(run, file, "-k", "3", "--epsilon", "1", *asked.split())
    assert printed[:4] == ["third", "first", "second", ORDER]
    assert printed[4].startswith("chosen by ")


@pytest.mark.parametrize(
    ("asked", "mechanism"),
    [
        ("--ordered", "one-shot"),
        ("--ordered --max-values 1", "noisy-max"),
        ("--ordered --mechanism exponential", "exponential"),
        ("--method one-shot", "one-shot"),
        ("--method peel", "permute-and-flip"),
        ("--method noisy-counts --max-values 6", "noisy-max"),
    ],
)
def test_the_best_is_first_if_that_is_asked(run: Run, file: Path, asked: str, mechanism: str) -> None:
    printed = lines(run, file, "-k", "3", "--epsilon", "1", *asked.split())
    assert printed[:3] == ["first", "second", "third"]
    assert printed[3].startswith(f"chosen by {mechanism}; guarantee: 1-DP (pure)")


def test_an_interval_finds_the_clear_cut(run: Run, file: Path) -> None:
    assert lines(run, file, "-k", "1:5", "--epsilon", "1")[:4] == ["third", "first", "second", ORDER]


def test_positions_without_labels_and_json(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("0\n70000\n0\n80000\n")
    assert lines(run, file, "-k", "2", "--epsilon", "1", "--ordered")[:2] == [
        "candidate 3 (counting from 0)",
        "candidate 1 (counting from 0)",
    ]
    shown = json.loads("\n".join(lines(run, file, "-k", "2", "--epsilon", "1", "--max-values", "1", "--json")))
    zcdp = shown["guarantee"].pop("zcdp")
    assert 0 < zcdp < 1
    assert shown == {
        "candidates": None,
        "indices": [1, 3],
        "method": "auto",
        "max_values": 1,
        "ordered": False,
        "monotonic": False,
        "mechanism": "permute-and-flip",
        "epsilon": "1",
        "guarantee": {"epsilon": "1"},
        "ledger_id": None,
        "estimate": "",
        "accuracy": None,
        "repeated": False,
        "charged": None,
        "receipt": None,
    }


def test_labels_that_occur_twice_have_positions(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("a,0\nb,70000\nb,80000\na,0\n")
    shown = json.loads("\n".join(lines(run, file, "-k", "2", "--epsilon", "1", "--method", "peel", "--json")))
    assert (shown["candidates"], shown["indices"], shown["ordered"]) == (["b", "b"], [2, 1], True)


@pytest.mark.parametrize(
    ("asked", "method", "score_range", "count"),
    [
        ("--method set --max-values 2", "set", "4", 1),
        ("--method set --max-values 2 --monotonic", "set", "2", 1),
        ("--method margin", "margin", "4", 1),
        ("--method margin --monotonic", "margin", "2", 1),
        ("--method noisy-counts --max-values 2", "noisy-counts", "4", 2),
        ("--method noisy-counts --max-values 2 --monotonic", "noisy-counts", "2", 2),
    ],
)
def test_without_monotonic_a_person_may_be_replaced(
    run: Run, file: Path, tmp_path: Path, asked: str, method: str, score_range: str, count: int
) -> None:
    path = tmp_path / "a.ledger"
    lines(run, file, "-k", "3", "--epsilon", "0.5", *asked.split(), "--ledger", path, "--budget", "1")
    [entry] = Ledger(path).entries()
    assert (entry.what["method"], entry.what["score_range"], entry.charge.count) == (method, score_range, count)
    assert entry.epsilon == Fraction(1, 2)


def test_a_ledger_is_charged_and_a_request_repeated(run: Run, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    ask = ("select", file, "-k", "3", "--monotonic", "--ledger", path)
    first = run(*ask, "--epsilon", "0.6", "--budget", "1", "--request-id", "r")
    assert first.out.endswith("; ledger entry 1 (charged epsilon 0.6)\n")
    [entry] = Ledger(path).entries()
    assert (entry.mechanism, entry.epsilon, entry.charge.count) == ("one-shot", Fraction(3, 5), 1)
    assert entry.what == {
        "question": "top_k",
        "k": 3,
        "method": "one-shot",
        "ordered": False,
        "candidates": 6,
        "sensitivity": "1",
        "monotonic": True,
    }
    again = run(*ask, "--epsilon", "0.6", "--request-id", "r")
    assert again.out == first.out.replace("charged epsilon 0.6", "repeated, nothing charged")
    refused = run(*ask, "--epsilon", "0.6")
    assert (refused.code, refused.out) == (3, "")
    for other in (["-k", "2"], ["--ordered"], ["--method", "margin"], ["--max-values", "5"]):
        conflict = run(*ask, "--epsilon", "0.6", "--request-id", "r", *other)
        assert (conflict.code, conflict.out) == (2, "")
    file.write_text(file.read_text().replace("third", "another"))
    assert "on other data" in run(*ask, "--epsilon", "0.6", "--request-id", "r").err
    assert run(*ask, "--epsilon", "0.4", "--what", "top drinks").code == 0
    assert Ledger(path).entries()[1].what["question"] == "top drinks"


def test_all_candidates_cost_nothing(run: Run, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    printed = lines(run, file, "-k", "6", "--epsilon", "1", "--ledger", path, "--budget", "0.1")
    assert printed == [
        *("rare", "third", "first", "second", "rare", "none"),
        "these are all candidates: nothing was drawn, and nothing is charged",
    ]
    assert Ledger(path).entries() == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("-k 3 --sensitivity 2", "--sensitivity cannot be given with -k: scores must then be numbers of people"),
        ("-k 3 --score-range 2", "--score-range cannot be given with -k: scores must then be numbers of people"),
        ("--ordered", "--ordered is for several candidates: give -k too"),
        ("--method set", "--method is for several candidates: give -k too"),
        ("--max-values 1", "--max-values is for several candidates: give -k too"),
        ("-k 0", "k must be > 0"),
        ("-k 7", "k must be from 1 to the number of candidates, 6, got 7"),
        ("-k 1.5", "k must be a whole number from 1"),
        ("-k 4:3", "k must be a pair (lo, hi) with 1 <= lo <= hi <= 5"),
        ("-k 2 --method set", "method set needs max_values"),
        ("-k 2 --method set --max-values 1 --ordered", "method set has no order to return"),
        ("-k 2 --method set --max-values 1 --mechanism noisy-max", "noisy-max cannot draw with method set"),
        ("-k 2 --max-values 1e10", "max_values must be a whole number from 1 to 1,000,000,000"),
    ],
)
def test_refusals_are_one_line_and_charge_nothing(run: Run, file: Path, tmp_path: Path, asked: str, words: str) -> None:
    path = tmp_path / "a.ledger"
    result = run("select", file, "--epsilon", "0.1", *asked.split(), "--ledger", path, "--budget", "1")
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert len(result.err.splitlines()) == 1
    assert not path.exists() or Ledger(path).spent == 0


def test_scores_that_are_no_counts_are_refused_for_the_margin_and_not_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(f"a,{PRIVATE}.5\nb,{PRIVATE}\nc,3\n")
    result = run("select", file, "-k", "2", "--method", "margin", "--epsilon", "1")
    assert (result.code, result.out) == (2, "")
    assert "scores must be counts for the margin" in result.err
    assert PRIVATE not in result.err
