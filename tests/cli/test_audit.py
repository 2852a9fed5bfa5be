import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

MODULE = """
import random

import numpy

CALLS = []


def best(scores):
    return numpy.argmax(scores)


def constant(scores):
    CALLS.append(scores)
    return 0


def noisy_mean(ages):
    return "mean", sum(ages) / len(ages) + random.gauss(0, 0.01)


def first(ages):
    return ages[0]


NEIGHBOURS = {"one left": ([30, 40, 50], [30, 40])}
PLAIN_PAIRS = [([30, 40, 50], [30, 40])]


class Uniform:
    sensitivity, monotonic = 1, False

    def pmf(self, scores):
        return [1 / len(scores)] * len(scores)


class Box:
    uniform = Uniform()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's own module in the working directory."""
    (tmp_path / "their_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "their_module", raising=False)
    return "their_module"


@pytest.mark.parametrize("options", ["permute-and-flip --rows", "exponential", "noisy-max --rows"])
def test_ours_have_no_violation(run: Run, options: str) -> None:
    result = run("audit", "--epsilon", "1", "--runs", "200", "--mechanism", *options.split())
    assert result.code == 0
    assert result.err == ""
    assert result.out.splitlines()[:2] == [
        "no violation found in 8,800 runs",
        "This does not prove privacy: an audit can only prove a violation.",
    ]
    assert "many losers" in result.out
    assert "What this could find: nothing." in result.out
    assert max(len(line) for line in result.out.splitlines() if line.startswith(" ")) <= 80


def test_an_audit_says_what_it_could_find(run: Run, module: str) -> None:
    options = ("audit", "--callable", f"{module}:constant", "--epsilon", "1", "--runs", "10000")
    assert "a true epsilon of 1.265 would be flagged about half of the time" in " ".join(run(*options).out.split())
    assert round(json.loads(run(*options, "--json").out)["noticeable"], 3) == 1.264
    few = json.loads(run(*options[:-1], "200", "--json").out)
    assert few["noticeable"] is None


def test_a_violation_has_its_own_exit_code(run: Run, module: str) -> None:
    result = run("audit", "--callable", f"{module}:best", "--epsilon", "0.5", "--runs", "1000")
    assert result.code == 1
    assert result.err == ""
    assert result.out.startswith("violates epsilon = 0.5: it is at least 3.3")


def test_inputs_and_outputs_of_any_kind(run: Run, module: str) -> None:
    options = f"--callable {module}:noisy_mean --inputs {module}:NEIGHBOURS --epsilon 1 --runs 1000".split()
    result = run("audit", *options)
    assert result.code == 1
    found = re.match(r"violates epsilon = 1: it is at least ([0-9.]+) on the pair", result.out)
    assert found is not None
    assert float(found[1]) > 2  # as many as 3.6 are possible with so few runs
    assert "on the pair 'one left'" in result.out
    assert "The event: output[1] is " in result.out
    content = json.loads(run("audit", *options, "--json").out)
    [finding] = content["findings"]
    assert finding["description"].startswith("output[1] is ")
    assert finding["event"] == []
    assert (finding["pair"], finding["trials"], finding["failures"]) == ("one left", 500, 0)
    assert "sensitivity" not in content


def test_inputs_without_a_violation(run: Run, module: str) -> None:
    options = ("--callable", f"{module}:first", "--inputs", f"{module}:PLAIN_PAIRS", "--epsilon", "1", "--runs", "1000")
    content = json.loads(run("audit", *options, "--json").out)
    assert content["verdict"] == "no violation found in 2,000 runs"
    assert content["findings"][0]["event"] == [30]
    assert content["findings"][0]["description"] == "the output is 30"


def test_json_has_everything(run: Run, module: str) -> None:
    result = run("audit", "--callable", f"{module}:constant", "--epsilon", "1/3", "--sensitivity", "2", "--json")
    assert result.code == 0
    content = json.loads(result.out)
    assert content["violates"] is False
    assert (content["epsilon"], content["sensitivity"], content["monotonic"]) == ("1/3", "2", False)
    assert content["verdict"] == f"no violation found in {content['runs']:,} runs"
    assert content["runs"] == 20_000 * len(content["findings"])
    assert content["runs"] == len(sys.modules[module].CALLS)
    assert {"lower_bound", "noticeable", "false_alarm"} < set(content)
    fields = {"pair", "lower_bound", "event", "more_likely_on", "hits", "neighbour_hits", "trials", "failures"}
    for finding in content["findings"]:
        assert set(finding) >= fields
        assert all(type(index) is int for index in finding["event"])


def test_probabilities_are_compared_on_request(run: Run, module: str) -> None:
    ours = json.loads(run("audit", "--mechanism", "exponential", "--epsilon", "0.5", "--pmf", "--json").out)
    assert 0.49 < ours["log_ratio"] <= 0.5
    theirs = run("audit", "--callable", f"{module}:Box.uniform", "--epsilon", "0.5", "--pmf")
    assert theirs.code == 0
    assert theirs.out.startswith("no violation found on 22 score vectors")
