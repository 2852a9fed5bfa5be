"""`--score-range` instead of `--sensitivity` and `--monotonic`, in every command that takes those."""

import json
from pathlib import Path

import pytest

from dpselect import PermuteAndFlip
from dpselect.analysis import expected_error
from tests.cli.conftest import Run

SCORES = "a,30\nb,28\nc,0\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(SCORES)
    return path


def test_select_names_the_range(run: Run, file: Path) -> None:
    text = run("select", file, "--epsilon", "1000", "--score-range", "1/2").out
    assert text.startswith("a\nchosen by permute-and-flip, score range 0.5; guarantee: 1000-DP")
    answer = json.loads(run("select", file, "--epsilon", "1000", "--score-range", "0.5", "--json").out)
    assert answer["score_range"] == "0.5"
    assert not {"sensitivity", "monotonic"} & answer.keys()


def test_plan_counts_in_ranges(run: Run, file: Path) -> None:
    common = ("plan", "select", "--scores", file, "--epsilon", "1", "--json")
    ranged = json.loads(run(*common, "--score-range", "6").out)
    same = json.loads(run(*common, "--sensitivity", "3").out)
    assert ranged.pop("score_range") == "6"
    assert (same.pop("sensitivity"), same.pop("monotonic")) == ("3", False)
    assert ranged == same
    text = run("plan", "select", "--candidates", "10", "--epsilon", "1", "--score-range", "6").out
    assert "score range 6" in " ".join(text.split())
    needed = json.loads(run("plan", "select", "--scores", file, "--error", "1", "--score-range", "6", "--json").out)
    proxy = needed["proxy"]["mechanisms"][0]
    assert expected_error(PermuteAndFlip(proxy["epsilon"], score_range=6), [30, 28, 0]) == pytest.approx(1, rel=1e-6)


def test_compare_counts_in_ranges(run: Run, file: Path) -> None:
    common = ("compare", file, "--epsilon", "0.1,1", "--json")
    ranged = json.loads(run(*common, "--score-range", "1").out)
    same = json.loads(run(*common, "--monotonic").out)
    assert ranged["score_range"] == "1"
    assert ranged["records"] == same["records"]


def test_audit_moves_scores_by_ranges(run: Run) -> None:
    options = ("--epsilon", "1", "--score-range", "2", "--mechanism", "exponential", "--pmf", "--json")
    content = json.loads(run("audit", *options).out)
    assert (content["violates"], content["score_range"]) == (False, "2")
    assert "all move far and alike" in content["log_ratios"]


@pytest.mark.parametrize("command", ["select", "plan", "compare", "audit"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--score-range", "0"), "score_range must be > 0"),
        (("--score-range", "1", "--sensitivity", "1"), "give either score_range"),
        (("--score-range", "1", "--monotonic"), "give either score_range"),
    ],
)
def test_bad_ranges_are_refused(run: Run, file: Path, command: str, options: tuple[str, ...], words: str) -> None:
    where = {"plan": ["select", "--candidates", "9"], "audit": ["--mechanism", "exponential"]}.get(command, [file])
    result = run(command, *where, "--epsilon", "1", *options)
    assert result.code == 2
    assert words in " ".join(result.err.split())
