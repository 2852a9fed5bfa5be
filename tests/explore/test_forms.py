"""A question that only a test registers is a form of the page, without a change in the explorer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpselect.explore.answers import VIEWS, asked_of, form_of, offered
from dpselect.explore.app import Explorer
from dpselect.explore.scores import made
from dpselect.questions.most import Mode
from dpselect.questions.options import QUESTIONS, Named, Option, option, whole
from dpselect.questions.quantiles import Quantile

CLOSE = made("close-race", 30)


@dataclass(frozen=True, kw_only=True)
class Runners(Mode):
    """One of the candidates after the best ones, of which `skipped` are left out."""

    name: ClassVar[str] = "runners"
    skipped: int = option(
        Option(("--skipped",), "N", "How many of the first are left out.", whole, default="1"), default=1
    )


@dataclass(frozen=True, kw_only=True)
class Halfway(Quantile):
    """A quantile under another name."""

    name: ClassVar[str] = "halfway"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(QUESTIONS, "runners", Named("runners", Runners))
    monkeypatch.setitem(QUESTIONS, "halfway", Named("halfway", Halfway, title="Half of it"))


def test_it_is_offered_with_its_fields():
    start = Explorer().start({})
    forms = {form["name"]: form for form in start["questions"]}
    assert list(forms) == ["mode", "top_k", "quantiles", "select", "runners", "halfway"]
    assert (forms["runners"]["title"], forms["halfway"]["title"]) == ("Runners", "Half of it")
    assert (forms["runners"]["data"], forms["halfway"]["data"]) == ("scores", "people")
    field = next(one for one in forms["runners"]["fields"] if one["name"] == "skipped")
    assert field == {
        "name": "skipped",
        "label": "Skipped",
        "hint": "How many of the first are left out.",
        "value": "1",
        "empty": "1",
        "box": False,
        "choices": {},
        "shared": False,
    }
    assert [one["name"] for one in forms["runners"]["fields"]] == ["skipped", "groups", "max_groups", "neighbours"]


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "runners", "skipped": "2", "amount": "0.3"},
        {"question": "halfway", "level": "1/3", "amount": "0.1"},
    ],
    ids=str,
)
def test_every_request_is_answered(fields):
    explorer = Explorer()
    asked = {**fields, "id": explorer.start({})["scores"]["id"], "low": -2, "high": 1}
    begun, found = explorer.begin(asked), explorer.look(asked)
    assert float(begun["amount"]) > 0
    assert found["taken"] in found["rows"]
    assert found["sentence"].startswith("With \N{GREEK SMALL LETTER EPSILON} = ")
    assert found["thresholds"] == [], "how far off an answer is, is not known of any question"
    assert len(found["chances"][found["taken"]]) == len(found["labels"]) == len(found["notes"])
    assert sum(explorer.draw({**asked, "draws": "100"})["counts"]) == 100
    assert any(explorer.curve(asked)["errors"][found["taken"]])
    assert explorer.needed({**asked, "error": "20"})["choices"][found["taken"]]["usable"]
    details = explorer.details(asked)
    assert f"question='{fields['question']}'" in details["python"]
    assert details["command"].startswith(f"dpselect plan {fields['question']} ")
    assert ("--skipped=2" in details["command"]) is ("skipped" in fields)


def test_the_answers_are_those_of_the_question():
    """Where the page has a law of its own, the answers of the question itself agree with it."""
    for kind, fields in (("halfway", {"level": "1/3"}), ("runners", {})):
        asked = asked_of({"question": kind, "amount": "0.1", **fields}, CLOSE)
        known = {"halfway": {"question": "quantiles", "levels": "1/3"}, "runners": {"question": "mode"}}[kind]
        law = asked_of({"amount": "0.1", **known}, CLOSE)
        assert type(law) in VIEWS.values()
        assert type(asked) not in VIEWS.values()
        answers = asked.answers(asked.taken, 2000, 60.0)[:, 0]
        often = np.bincount(answers, minlength=asked.data.size) / 2000
        assert np.abs(often - law.outcomes(law.taken).chances).max() < 6 * np.sqrt(0.25 / 2000)


def test_a_title_of_none_is_not_offered():
    assert "values" not in offered()
    assert "median" not in offered()
    assert form_of(QUESTIONS["median"])["data"] == "people"


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_page_shows_it(browser):
    page = browser.open(question="runners", amount="0.3")
    page.until(lambda: page.text("sentence").startswith("With ε = 0.3 the error is at most "))
    assert page.find("#skipped").get_attribute("value") == "1"
    assert page.find("label[for=skipped]").text == "Skipped"
    assert not page.find("#tail").is_displayed()
    page.write("skipped", "0")
    page.until(lambda: page.text("settings-error").startswith("skipped must be > 0"))
    assert page.find("#skipped").get_attribute("aria-invalid") == "true"
