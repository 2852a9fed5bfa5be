"""`dpselect compare -k`: what it prints is what `analysis.compare_top_k` returns."""

import json
from pathlib import Path

import pytest

from dpselect.analysis import compare_top_k
from tests.cli.conftest import Run

COUNTS = [310, 250, 120, 60, 7, 3]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "public.csv"
    path.write_text("".join(f"label{i},{count}\n" for i, count in enumerate(COUNTS)))
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_table_has_the_errors_of_the_analysis(run: Run, file: Path) -> None:
    command = ("compare", file, "--epsilon", "0.01,0.5", "-k", "3", "--max-values", "1", "--seed", "5", "--runs", "60")
    result = run(*command)
    assert (result.code, result.err) == (0, "")
    expected = compare_top_k(COUNTS, 3, ["0.01", "0.5"], max_values=1, runs=60, seed=5)
    text = words(result.out)
    assert "3 of 6 candidates: how many fewer people" in text
    assert "epsilon set margin one-shot peel noisy-counts" in text
    assert f"The method auto takes {expected.automatic} here." in text
    assert "60 simulated answers" in text
    assert "are private too" in text
    first = next(line for line in result.out.splitlines() if line.startswith(" 0.01 ")).split()
    for cell, record in zip(first[1:5], expected.records, strict=False):
        assert float(cell.replace(",", "")) == pytest.approx(record.expected_error, rel=6e-4)
    noisy = expected.records[4]
    assert first[6] == "±"
    assert float(first[5]) == pytest.approx(noisy.expected_error, rel=6e-3)
    assert float(first[7]) == pytest.approx(noisy.high - noisy.expected_error, rel=0.06)
    last = next(line for line in result.out.splitlines() if line.startswith(" 0.5 ")).split()
    assert last[-2] == "<", "no run was short"
    assert float(last[-1]) == pytest.approx(expected.records[9].high, rel=0.06)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (("-k", "2"), {"k": 2}),
        (("-k", "2:4"), {"k": (2, 4)}),
        (("-k", "3", "--max-values", "2", "--ordered"), {"k": 3, "max_values": 2, "ordered": True}),
        (("-k", "3", "--neighbours", "replace"), {"k": 3, "monotonic": False}),
        (("-k", "6"), {"k": 6}),
    ],
    ids=str,
)
def test_json_has_the_records(run: Run, file: Path, options: tuple[str, ...], asked: dict) -> None:
    result = run("compare", file, "--epsilon", "0.01:1", "--points", "3", *options, "--seed", "2", "--json")
    assert (result.code, result.err) == (0, "")
    content = json.loads(result.out)
    expected = compare_top_k(COUNTS, epsilons=[0.01, 0.1, 1], **asked, runs=200, seed=2)
    assert [r["method"] for r in content["records"]] == [r.method for r in expected.records]
    for found, record in zip(content["records"], expected.to_dicts(), strict=True):
        assert found["expected_error"] == pytest.approx(record["expected_error"], rel=1e-9)
    assert (content["automatic"], content["candidates"], content["runs"]) == (expected.automatic, 6, 200)
    assert content["k"] == (list(asked["k"]) if isinstance(asked["k"], tuple) else asked["k"])
    assert content["neighbours"] == ("add-remove" if asked.get("monotonic", True) else "replace")


BAD = {
    "too many": (("-k", "7"), "k must be from 1 to the number of candidates, 6, got 7"),
    "no number": (("-k", "few"), "k must be a number"),
    "half": (("-k", "1.5"), "k must be a whole number from 1"),
    "three ends": (("-k", "1:2:3"), "k must be a number or an interval LO:HI"),
    "wrong way": (("-k", "4:2"), "k must be a pair"),
    "sensitivity": (("-k", "2", "--sensitivity", "2"), "--sensitivity is not for -k"),
    "monotonic": (("-k", "2", "--monotonic"), "--monotonic is not for -k"),
    "range": (("-k", "2", "--score-range", "2"), "--score-range is not for -k"),
    "limit alone": (("--max-values", "2"), "--max-values needs -k"),
    "order alone": (("--ordered",), "--ordered needs -k"),
    "neighbours alone": (("--neighbours", "replace"), "--neighbours needs -k"),
    "runs alone": (("--runs", "20"), "--runs needs -k"),
    "seed alone": (("--seed", "2"), "--seed needs -k"),
    "one run": (("-k", "2", "--runs", "1"), "runs must be a whole number from 2"),
    "no limit": (("-k", "2", "--max-values", "0"), "max_values must be > 0"),
    "friends": (("-k", "2", "--neighbours", "friends"), "neighbours must be"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_one_line_and_code_two(run: Run, file: Path, options: tuple[str, ...], message: str) -> None:
    result = run("compare", file, "--epsilon", "0.1", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert len(result.err.splitlines()) == 1
