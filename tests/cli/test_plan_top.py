"""`dpselect plan top` with methods: what it prints is what `analysis.plan` returns."""

import json
from typing import Any

import pytest

from dpselect import analysis
from dpselect._numbers import shown
from tests.cli.conftest import Run
from tests.cli.plans import is_rounded_up, number, plan, words

CASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "set": (("-k", "10", "--max-values", "1", "--epsilon", "0.1"), {"k": 10, "max_values": 1, "epsilon": "0.1"}),
    "margin": (("-k", "10", "--epsilon", "0.1"), {"k": 10, "epsilon": "0.1"}),
    "interval": (("-k", "5:15", "--error", "20"), {"k": (5, 15), "error": "20"}),
    "one-shot": (("-k", "3", "--rho", "0.1", "--method", "one-shot"), {"k": 3, "rho": "0.1", "method": "one-shot"}),
    "noisy-counts": (
        ("-k", "10", "--max-values", "2", "--ordered", "--budget", "1", "--questions", "4"),
        {"k": 10, "max_values": 2, "ordered": True, "budget": "1", "questions": 4},
    ),
    "zcdp": (
        ("-k", "10", "--max-values", "1", "--budget", "zcdp:0.5", "--questions", "4"),
        {"k": 10, "max_values": 1, "budget": "zcdp:0.5", "questions": 4},
    ),
    "groups": (
        ("-k", "95", "--epsilon", "1", "--groups", "9", "--max-groups", "2", "--neighbours", "replace"),
        {"k": 95, "epsilon": "1", "groups": 9, "max_groups": 2, "neighbours": "replace"},
    ),
    "all": (("-k", "100", "--budget", "1"), {"k": 100, "budget": "1"}),
}


@pytest.mark.parametrize("case", CASES)
def test_text_and_json_are_those_of_the_analysis(run: Run, case: str) -> None:
    options, asked = CASES[case]
    planned = analysis.plan(100, question="top_k", **asked)
    content = plan(run, "top", "--candidates", "100", *options)
    assert content == json.loads(json.dumps(planned.to_dict()))
    result = run("plan", "top", "--candidates", "100", *options)
    assert (result.code, result.err) == (0, "")
    text = words(result.out)
    for sentence in [planned.question.title, *planned.sentences, *planned.about_methods, *planned.advice]:
        assert words(sentence) in text
    rows = {
        line.split()[0]: line.split()[1:] for line in result.out.splitlines() if line.startswith(" ") and line.strip()
    }
    for name, accuracy in planned.accuracy.items():
        cost = planned.costs[name]
        each = 0 if cost.charge is None else float(cost.charge.each)
        assert number(rows[name][0]) == pytest.approx(each, rel=1e-5)
        assert is_rounded_up(rows[name][1], accuracy.average)
        assert is_rounded_up(rows[name][2], accuracy.within_95)


def test_the_sentence_of_a_set(run: Run) -> None:
    options = ("--candidates", "1000", "-k", "10", "--max-values", "1", "--epsilon", "0.1")
    text = words(run("plan", "top", *options).out)
    average = shown(analysis.plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1").methods["set"].average)
    assert average == "49.02"
    assert f"the mean count of the 10 chosen values is at most {average} people below that of the 10" in text
    assert "Which method: The method is set, because a person counts for at most one candidate" in text
    assert f"too low: set {average}; noisy-counts 49.13;" in text


def test_an_answer_that_costs_nothing(run: Run) -> None:
    text = words(run("plan", "top", "--candidates", "30", "-k", "30", "--budget", "1").out)
    assert "All 30 candidates are chosen, so the answer has no error." in text
    assert "It costs nothing." in text
    assert "epsilon 0 any number" in text
    assert "Which mechanism:" not in text


BAD = {
    "method": (("-k", "3", "--method", "best"), "method must be one of auto, set, margin"),
    "no limit": (("-k", "3", "--method", "set"), "method set needs max_values"),
    "zero limit": (("-k", "3", "--max-values", "0"), "max_values must be > 0"),
    "order of a set": (("-k", "3", "--method", "margin", "--ordered"), "method margin has no order"),
    "pair": (("-k", "3:5", "--method", "peel"), "k may be a pair only with method margin"),
    "wrong pair": (("-k", "5:3"), "k must be a pair (lo, hi) with"),
    "three": (("-k", "1:2:3"), "k must be a number or an interval LO:HI"),
    "mechanism": (
        ("-k", "3", "--method", "noisy-counts", "--max-values", "1", "--mechanism", "exponential"),
        "method noisy-counts adds Laplace noise",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_one_line_and_code_two(run: Run, options: tuple[str, ...], message: str) -> None:
    result = run("plan", "top", "--candidates", "30", "--epsilon", "1", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert len(result.err.splitlines()) == 1
