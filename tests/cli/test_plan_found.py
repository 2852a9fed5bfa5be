"""`dpselect plan values`, and plans of mode and top without a list: what is printed is what the analysis returns."""

import json
from typing import Any

import pytest

from dpselect import analysis
from tests.cli.conftest import Run
from tests.cli.plans import plan, words

CASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "values": (
        ("values", "--epsilon", "1", "--delta", "1e-9", "--max-values", "3"),
        {"question": "values", "epsilon": "1", "delta": "1e-9", "max_values": 3},
    ),
    "values with a budget": (
        ("values", "--rho", "0.05", "--delta", "1e-9", "--budget", "zcdp:0.5,1e-8", "--questions", "20"),
        {"question": "values", "rho": "0.05", "delta": "1e-9", "budget": "zcdp:0.5,1e-8", "questions": 20},
    ),
    "mode": (
        ("mode", "--epsilon", "0.1", "--delta", "1e-6"),
        {"question": "mode", "epsilon": "0.1", "delta": "1e-6"},
    ),
    "top": (
        ("top", "-k", "5", "--epsilon", "1", "--delta", "1e-6", "--max-values", "1", "--groups", "9"),
        {"question": "top_k", "k": 5, "epsilon": "1", "delta": "1e-6", "max_values": 1, "groups": 9},
    ),
    "replaced": (
        ("top", "-k", "5", "--rho", "1", "--delta", "1e-6", "--neighbours", "replace", "--mechanism", "exponential"),
        {"question": "top_k", "k": 5, "rho": "1", "delta": "1e-6", "neighbours": "replace", "mechanism": "exponential"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_text_and_json_are_those_of_the_analysis(run: Run, case: str) -> None:
    options, asked = CASES[case]
    planned = analysis.plan_found(**asked)
    assert plan(run, *options) == json.loads(json.dumps(planned.to_dict()))
    result = run("plan", *options)
    assert (result.code, result.err) == (0, "")
    text = words(result.out)
    assert words(planned.title) in text
    for sentence in planned.sentences:
        assert words(sentence) in text
    people = [planned.half, planned.usual, *([] if planned.surely is None else [planned.surely])]
    assert " ".join(f"{number:,}" for number in people) in text
    if planned.limited is not None:
        assert f"max-values 1 {planned.limited.half:,} {planned.limited.usual:,}" in text


@pytest.mark.parametrize(("rule", "size"), [("int64", 2**64), ("integer:0..999", 1000), ("uuid", 2**128)])
def test_rules_are_planned_by_their_size(run: Run, rule: str, size: int) -> None:
    content = plan(run, "mode", "--every", rule, "--epsilon", "0.1")
    expected = analysis.plan(size, rule=content["rule"], question="mode", epsilon="0.1")
    assert content == json.loads(json.dumps(expected.to_dict()))
    assert content["people_needed"] is not None
    several = plan(run, "top", "-k", "3", "--every", rule, "--epsilon", "0.1")
    assert several["candidates"] == size
    text = words(run("plan", "mode", "--every", rule, "--epsilon", "0.1").out)
    assert f"The most common value needs {content['people_needed']} people" in text


BAD = [
    (("mode", "--epsilon", "1"), "give one of --candidates (a list), --every (a rule) and --delta"),
    (("mode", "--epsilon", "1", "--candidates", "3", "--delta", "1e-9"), "not --candidates and --delta"),
    (("top", "-k", "3", "--epsilon", "1", "--every", "int64", "--delta", "1e-9"), "not --every and --delta"),
    (("mode", "--error", "3", "--delta", "1e-9"), "error needs candidates"),
    (("mode", "--epsilon", "1", "--candidates", "3", "--max-values", "2"), "max_values is for values that nobody"),
    (("top", "-k", "3", "--epsilon", "1", "--delta", "1e-9", "--method", "set"), "method needs candidates"),
    (("top", "-k", "3:5", "--epsilon", "1", "--delta", "1e-9"), "k may be a pair only with a list"),
    (("values", "--epsilon", "1"), "give delta"),
    (("values", "--epsilon", "1", "--delta", "0.7"), "at most 1/2"),
    (("mode", "--epsilon", "1", "--every", "colour"), "must be"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_bad_plans_are_one_line(run: Run, options: tuple[str, ...], message: str) -> None:
    result = run("plan", *options)
    assert result.code != 0
    assert result.err.count("\n") == 1
    assert message in result.err


def test_groups_of_several_columns_are_combined(run: Run) -> None:
    asked = ("plan", "mode", "--candidates", "9", "--epsilon", "1", "--groups", "A,B,C", "--groups", "4", "--json")
    assert json.loads(run(*asked).out)["groups"] == 12
