"""The JSON form of questions: what is written is read again, and only that, and its schema says so."""

import datetime
import json
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from dpselect import every
from dpselect.analysis import plan
from dpselect.questions import (
    Mode,
    Quantile,
    Quantiles,
    Question,
    Select,
    TopK,
    UnlistedMode,
    UnlistedTopK,
    Values,
    options,
)
from dpselect.tables.kinds import Column, Kind, public_span

HOUR = datetime.timedelta(hours=1)
DAY, MOMENT = datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
QUESTIONS = [
    Mode(candidates=30),
    Mode(candidates=every("int64"), groups=12, max_groups=2, neighbours="replace"),
    TopK(candidates=30, k=3),
    TopK(candidates=30, k=(3, 8), method="margin", max_values=2),
    TopK(candidates=2**70, k=3, rule="every x", ordered=True),
    UnlistedMode(),
    UnlistedMode(max_values=3, groups=2),
    UnlistedTopK(k=7, max_values=1),
    Values(),
    Values(max_values=3, neighbours="replace"),
    Quantile(level="1/3"),
    Quantile(level=0.9, lower=0, upper="99.5", step="1/4"),
    Quantile(level=0.5, candidates=77, max_rows=3),
    Quantile(level=0.01, range="log", stands_for="minimum"),
    Quantiles(levels="deciles", lower=DAY, upper=DAY, step=7),
    Quantiles(
        levels=["0.75", "1/3"], lower=MOMENT, upper=MOMENT + datetime.timedelta(1), step=datetime.timedelta(0, 1)
    ),
    Select(candidates=30),
    Select(candidates=30, sensitivity=0.1, monotonic=True),
    Select(candidates=30, score_range="1/3"),
]


def is_valid(value, schema):
    """The few words of JSON Schema that are used."""
    kinds = {"string": str, "boolean": bool, "array": (list, tuple), "null": type(None)}
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    if "anyOf" in schema:
        return any(is_valid(value, each) for each in schema["anyOf"])
    names = schema.get("type", [])
    for name in [names] if isinstance(names, str) else names:
        number = isinstance(value, (int, float) if name == "number" else int) and not isinstance(value, bool)
        if isinstance(value, kinds[name]) if name in kinds else number:
            return schema.get("minimum", value) <= value if number else True
    return not names


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_what_is_written_is_read_again_and_is_what_the_schema_says(question):
    data = json.loads(json.dumps(question.to_dict()))
    for reader in (Question, type(question)):
        again = reader.from_dict(data)
        assert (type(again), again) == (type(question), question)
    assert again.to_dict() == data
    schema = type(question).schema()
    assert json.loads(json.dumps(schema)) == schema
    properties, named = schema["properties"], {"question": data["question"]}
    assert set(properties) == set(data)
    assert properties["question"]["const"] == question.name
    needed = {name: data[name] for name in schema["required"]}
    if set(needed) <= {"question", "candidates", "k", "level", "levels"}:  # the others may be left out
        defaults = {name: own["default"] for name, own in properties.items() if "default" in own}
        assert {**defaults, **needed, **named} == Question.from_dict({**needed, **named}).to_dict()
    for name, value in question.to_dict().items():
        if value is not None or "anyOf" in properties[name]:
            assert name == "question" or is_valid(value, properties[name]), (name, properties[name])
        assert not is_valid({}, properties[name]), name


def test_a_schema_says_what_must_be_stated_and_what_it_means():
    required = {each: set(each.schema()["required"]) - {"question"} for each in map(type, QUESTIONS)}
    assert required == {
        Mode: {"candidates"},
        TopK: {"candidates", "k"},
        UnlistedMode: {"candidates"},  # a constant, by which it is told apart
        UnlistedTopK: {"candidates", "k"},
        Values: set(),
        Quantile: {"level"},
        Quantiles: {"levels"},
        Select: {"candidates"},
    }
    properties = TopK.schema()["properties"]
    assert properties["k"]["description"] == "How many candidates to return; LO:HI for the margin."
    assert properties["groups"]["description"].startswith("One answer for each group")
    assert "description" not in properties["rule"]


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_whole_numbers_of_other_types_make_the_same_question(question):
    """Those of NumPy overflow: 100 groups of 100 values each were 16 coins."""

    class Own(int):
        def __mul__(self, other):
            return 0

    names = [each.name for each in fields(question) if each.init and type(getattr(question, each.name)) is int]
    for name in names:
        value = getattr(question, name)
        kinds = [Own, *(kind for kind in (np.int8, np.int64) if value <= np.iinfo(kind).max)]
        for kind in kinds:
            again = replace(question, **{name: kind(value)})
            assert again == question
            assert type(getattr(again, name)) is int
            assert json.loads(json.dumps(again.to_dict())) == question.to_dict()
    assert Values(max_values=np.int8(100), groups=np.int8(100), max_groups=np.int8(100)).draws == 10_000


def test_every_name_of_a_question_is_read():
    stated = {"candidates": 9, "k": 2, "level": 0.2, "levels": "deciles"}
    for entry in options.QUESTIONS.values():
        known = {each.name for each in fields(entry.record)} - set(entry.fixed)
        for name in {entry.name, entry.method}:
            data = {"question": name, **{key: value for key, value in stated.items() if key in known}}
            if issubclass(entry.record, (Quantile, Quantiles)):
                del data["candidates"]
            found = Question.from_dict(data)
            assert isinstance(found, entry.record)
            assert all(getattr(found, field) == value for field, value in entry.fixed.items())


def test_what_only_a_table_knows_is_not_written():
    column = Column("secret", "BIGINT", Kind.INTEGER)
    asked = Quantile(level="1/2", column=column, grid=public_span(0, 9, 1, column), noun="rows")
    assert asked.to_dict() == Quantile(level="1/2", candidates=10).to_dict()
    assert "secret" not in json.dumps(asked.to_dict())


@pytest.mark.parametrize("question", [own for own in QUESTIONS if own.size > 1], ids=repr)
def test_a_plan_has_the_form_of_its_question(question):
    unlisted = isinstance(question, (UnlistedTopK, Values))
    told = plan(question=question, epsilon=1, **({"delta": "1e-9"} if unlisted else {})).to_dict()
    claim = ("sensitivity", "monotonic", "score_range")
    for name, value in question.to_dict().items():
        if name != "candidates" and name not in claim:
            assert told[name] == value
    assert unlisted or told["candidates"] == question.size
    assert Fraction(told["epsilon"]) == 1
