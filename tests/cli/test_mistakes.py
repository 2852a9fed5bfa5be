"""Mistakes on the command line: what is doubtful is said on standard error, and the answer is not changed."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run

ASKED = ("--column", "delay", "--lower", "0", "--upper", "10", "--epsilon", "1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flights.csv"
    path.write_text("dest,delay\n" + "ulm,4\n" * 300)
    return path


def test_the_share_of_a_quantile_has_a_short_name(run: Run, file: Path) -> None:
    result = run("quantile", file, "-q", "0.9", *ASKED)
    assert (result.code, result.out) == (0, "4\n")


@pytest.mark.parametrize(("name", "hint"), [("mean", "releases no noisy"), ("count", "OpenDP"), ("max", "maximum")])
def test_questions_of_other_libraries(run: Run, name: str, hint: str) -> None:
    result = run(name, "flights.csv", "--column", "delay")
    assert result.code == 2
    assert f"No such command '{name}'" in result.err
    assert hint in " ".join(result.err.split())


def test_a_plan_of_a_question_of_other_libraries(run: Run) -> None:
    assert "releases no noisy" in " ".join(run("plan", "mean", "--epsilon", "1").err.split())


def test_one_group_alone(run: Run, file: Path) -> None:
    alone = run("median", file, *ASKED, "--group-by", "dest", "--groups", "ulm")
    assert (alone.code, alone.out.splitlines()[0]) == (0, "ulm: 4")
    assert alone.err.startswith("warning: groups has one value, 'ulm'")


@pytest.mark.parametrize(("upper", "doubtful"), [("1.500", True), ("12.340", True), ("1.5", False), ("1500", False)])
def test_a_point_may_be_a_thousands_separator(run: Run, file: Path, upper: str, doubtful: bool) -> None:
    result = run(
        "median", file, "--column", "delay", "--lower", "0", "--upper", upper, "--step", "0.01", "--epsilon", "1"
    )
    assert result.code == 0
    assert (f"warning: --upper {upper} is read with a decimal point" in result.err) is doubtful


def test_a_large_epsilon(run: Run, file: Path) -> None:
    result = run("mode", file, "--column", "dest", "--candidates", "ulm,bonn", "--epsilon", "1000")
    assert (result.code, result.out.splitlines()[0]) == (0, "ulm")
    assert result.err.startswith("warning: epsilon 1,000 hardly protects anybody")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("values FILE --column dest --epsilon 1 --delta 0.01", 1),
        ("mode FILE --column dest --epsilon 1 --delta 0.01", 1),
        ("top FILE --column dest --epsilon 1 --delta 0.01 -k 2", 1),
        ("mode FILE --column delay --candidates 1,4 --epsilon 1 --group-by dest --groups found:1,0.01", 1),
        ("mode FILE --column dest --candidates ulm,bonn --rho 0.1 --ledger LEDGER --budget zcdp:1,0.005", 1),
        ("values FILE --column dest --rho 0.1 --delta 0.002 --ledger LEDGER --budget zcdp:1,0.005", 2),
        ("plan select --candidates 100 --epsilon 0.1 --questions 5 --delta 0.01", 1),
        ("plan mode --candidates 100 --budget 1,0.01", 1),
        ("plan values --epsilon 1 --delta 0.01", 1),
        ("plan mode --epsilon 1 --delta 0.01", 1),
        ("values FILE --column dest --epsilon 1 --delta 0.001", 0),
    ],
)
def test_a_large_delta(run: Run, file: Path, tmp_path: Path, words: str, count: int) -> None:
    names = {"FILE": file, "LEDGER": tmp_path / "l.ledger"}
    result = run(*(names.get(word, word) for word in words.split()))
    assert result.code == 0
    lines = [line for line in result.err.splitlines() if line.startswith("warning: delta 0.0")]
    assert len(lines) == count
    assert all("hardly protects anybody" in line for line in lines)


def test_a_large_delta_of_a_total(run: Run, file: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "l.ledger"
    asked = ("mode", file, "--column", "dest", "--candidates", "ulm,bonn", "--epsilon", "0.1")
    assert run(*asked, "--ledger", ledger, "--budget", "1").code == 0
    result = run("ledger", "show", ledger, "--delta", "0.01")
    assert (result.code, result.err.count("warning: delta 0.01 hardly protects anybody")) == (0, 1)
