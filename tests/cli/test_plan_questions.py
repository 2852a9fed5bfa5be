"""`dpselect plan` with the name of a question: what it prints is what `analysis.plan` returns."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dpselect import analysis
from dpselect._numbers import shown
from dpselect.questions.options import PLANNING
from dpselect.questions.options import QUESTIONS as ASKED
from tests.cli.conftest import Run
from tests.cli.plans import is_rounded_up, number, plan, tables, words

QUESTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "mode": (("--candidates", "30"), {"question": "mode", "candidates": 30}),
    "top": (
        ("-k", "2", "--candidates", "a,b,c,d", "--method", "peel"),
        {"question": "top_k", "k": 2, "candidates": 4, "method": "peel"},
    ),
    "median": (
        ("--lower", "2020-01-01", "--upper", "2020-12-31", "--step", "7"),
        {"question": "median", "lower": "2020-01-01", "upper": "2020-12-31", "step": 7},
    ),
    "quantile": (
        ("--level", "0.9", "--lower", "0", "--upper", "12.5", "--step", "0.5"),
        {"question": "quantile", "level": "9/10", "lower": 0, "upper": "12.5", "step": "0.5"},
    ),
    "quantiles": (
        ("--levels", "0.1, 1/2,0.9", "--range", "log", "--max-rows", "3"),
        {"question": "quantiles", "levels": ["0.1", "1/2", "0.9"], "range": "log", "max_rows": 3},
    ),
    "select": (
        ("--candidates", "30", "--monotonic"),
        {"question": "select", "candidates": 30, "monotonic": True},
    ),
}
PRICES: list[dict[str, Any]] = [
    {"epsilon": "0.1"},
    {"rho": "0.01", "mechanism": "exponential"},
    {"error": "5"},
    {"budget": "1,1e-6", "questions": 7},
    {"budget": "zcdp:0.5", "epsilon": "0.3", "questions": 7},
]
PEOPLE: dict[str, Any] = {"groups": 12, "max_groups": 2, "neighbours": "replace"}


def options(asked: dict[str, Any]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_text_and_json_are_those_of_the_analysis(run: Run, name: str, price: dict[str, Any]) -> None:
    given, asked = QUESTIONS[name]
    people = PEOPLE if name != "select" and "budget" in price else {}
    planned = analysis.plan(**asked, **price, **people)
    command = (name, *given, *options(price), *options(people))
    content = plan(run, *command)
    assert content == json.loads(json.dumps(planned.to_dict()))
    result = run("plan", *command)
    assert (result.code, result.err) == (0, "")
    text = words(result.out)
    for sentence in [planned.question.title, *planned.sentences, *planned.about_methods, *planned.advice]:
        assert words(sentence) in text
    [table] = tables(result.out)
    assert list(table) == list(planned.promises)
    for mechanism, cells in table.items():
        accuracy, cost = planned.accuracy[mechanism], planned.costs[mechanism]
        assert number(cells[0]) == pytest.approx(float(cost.charge.each), rel=1e-5)
        bounds = [accuracy.average, accuracy.within_95, accuracy.within_99]
        bounds += [accuracy.all_within_95] if planned.question.rounds > 1 else []
        assert all(is_rounded_up(cell, bound) for cell, bound in zip(cells[1:], bounds, strict=False))
        costs = [cost.one.words, *([cost.total.words] if planned.questions > 1 else [])]
        costs += [] if cost.allowed is None else [f"{cost.allowed:,}"]
        assert cells[1 + len(bounds) :] == " ".join(costs).split()


def test_the_sentence_of_a_mode(run: Run) -> None:
    text = words(run("plan", "mode", "--candidates", "6", "--epsilon", "0.1").out)
    average = shown(analysis.plan(6, question="mode", epsilon="0.1").accuracy["permute-and-flip"].average)
    assert average == "6.271"
    assert f"On average, the chosen value has at most {average} fewer people than the most common one." in text
    assert "One question costs epsilon 0.1." in text
    assert "Take permute-and-flip: at the same cost" in text
    assert "uses public numbers only" in text


def test_candidates_are_a_number_a_list_or_a_file(run: Run, tmp_path: Path) -> None:
    codes = tmp_path / "codes.txt"
    codes.write_text("\ufeffI10\nE11\n\nJ45\n", encoding="utf-8")
    for given, expected in (("3", 3), ("1e3", 1000), ("I10,E11,J45", 3), ('"a,b",c', 2), (codes, 3)):
        assert plan(run, "mode", "--candidates", given, "--epsilon", "1")["candidates"] == expected
        grouped = plan(run, "mode", "--candidates", "9", "--groups", given, "--epsilon", "1")
        assert grouped["groups"] == expected


def test_select_takes_public_scores_and_a_delta(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "public.csv"
    file.write_text("a,5\nb,8\nc,9\n")
    command = ("select", "--scores", file, "--epsilon", "1", "--questions", "5", "--delta", "1e-6")
    content = plan(run, *command)
    assert content["proxy"]["file"] == str(file)
    text = words(run("plan", *command).out)
    assert f"Exact errors on the 3 scores of {file}" in text
    assert "5 selections together as (epsilon, 1e-06)-DP" in text


BAD = {
    "no price": (("mode", "--candidates", "9"), "give exactly one of epsilon, rho and error"),
    "two prices": (
        ("mode", "--candidates", "9", "--epsilon", "1", "--rho", "1"),
        "give exactly one of epsilon, rho and error",
    ),
    "price and error": (
        ("median", "--lower", "0", "--upper", "9", "--rho", "1", "--error", "1"),
        "give exactly one of epsilon, rho and error",
    ),
    "no select price": (("select", "--candidates", "9"), "give exactly one of epsilon, rho and error"),
    "delta with a pure budget": (
        ("select", "--candidates", "9", "--budget", "1", "--delta", "1e-6"),
        "delta does not belong to this budget",
    ),
    "no such file": (
        ("mode", "--candidates", "no.txt", "--epsilon", "1"),
        "candidates must be a number, a list A,B,C or an existing file",
    ),
    "bad budget": (
        ("mode", "--candidates", "9", "--budget", "1,2,3,4"),
        "budget must have a form such as 1, 10,cap:0.1",
    ),
    "zero budget": (("mode", "--candidates", "9", "--budget", "0"), "budget must be > 0"),
    "k beyond the candidates": (("top", "-k", "4", "--candidates", "a,b", "--epsilon", "1"), "k must be from 1 to"),
    "half a k": (("top", "-k", "1.5", "--candidates", "9", "--epsilon", "1"), "k must be a whole number from 1"),
    "one candidate": (("mode", "--candidates", "1", "--epsilon", "1"), "candidates must be a whole number from 2"),
    "no number": (("mode", "--candidates", "many", "--epsilon", "1"), "candidates must be a number"),
    "empty range": (("median", "--lower", "9", "--upper", "0", "--epsilon", "1"), "lower must be <= upper"),
    "no range": (("median", "--lower", "low", "--upper", "9", "--epsilon", "1"), "lower: 'low' is neither a number"),
    "mixed range": (
        ("median", "--lower", "0", "--upper", "2020-01-01", "--epsilon", "1"),
        "lower and upper must be of",
    ),
    "zero step": (("median", "--lower", "0", "--upper", "9", "--step", "0", "--epsilon", "1"), "step must be > 0"),
    "level": (
        ("quantile", "--level", "1.5", "--lower", "0", "--upper", "9", "--epsilon", "1"),
        "level must be between 0 and 1",
    ),
    "levels": (("quantiles", "--levels", "0.1,2", "--epsilon", "1"), "level must be between 0 and 1"),
    "named levels": (("quantiles", "--levels", "thirds", "--epsilon", "1"), "levels must be a list of numbers"),
    "no rows": (("median", "--max-rows", "0", "--epsilon", "1"), "max_rows must be > 0"),
    "groups": (("mode", "--candidates", "9", "--max-groups", "2", "--epsilon", "1"), "max_groups needs groups"),
    "neighbours": (("mode", "--candidates", "9", "--neighbours", "x", "--epsilon", "1"), "neighbours must be"),
    "mechanism": (("mode", "--candidates", "9", "--mechanism", "noisy-max", "--epsilon", "1"), "mechanism must be one"),
    "zero questions": (("mode", "--candidates", "9", "--questions", "0", "--budget", "1"), "questions must be > 0"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_one_line_and_code_two(run: Run, command: tuple[str, ...], message: str) -> None:
    result = run("plan", *command)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("options", [("--epsilon", "1", "mode"), ("--json", "mode"), ("--candidates", "9")], ids=str)
def test_options_without_the_name_of_a_question_before_them_are_refused(run: Run, options: tuple[str, ...]) -> None:
    result = run("plan", *options)
    assert (result.code, result.out) == (2, "")
    assert f"No such option: {options[0]}" in result.err


def test_a_long_list_and_a_file_that_is_not_text(run: Run, tmp_path: Path) -> None:
    many = ",".join(f"code{i}" for i in range(2000))
    assert plan(run, "mode", "--candidates", many, "--epsilon", "1")["candidates"] == 2000
    file = tmp_path / "codes.bin"
    file.write_bytes(b"\xff\xfe\x00")
    result = run("plan", "mode", "--candidates", file, "--epsilon", "1")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")


@pytest.mark.parametrize("name", QUESTIONS)
def test_help_has_examples_that_run(run: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("codes.txt").write_text("\n".join(f"c{i}" for i in range(20)))
    Path("public.csv").write_text("a,5\nb,8\nc,9\n")
    written = "\n".join(ASKED[name].paragraphs(PLANNING))
    examples = re.findall(r"Example: dpselect (plan .*)", written)
    assert len(examples) >= 2
    text = words(run("plan", name, "--help").out)
    for example in examples:
        assert f"Example: dpselect {example}" in text
        result = run(*example.split())
        assert (result.code, result.err) == (0, "")
