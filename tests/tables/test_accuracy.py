"""How far answers may be off: the bounds of plans, from public numbers alone, for every question and method."""

import json
import pickle

import pytest

from dpselect import Ledger, every, zcdp
from dpselect.questions.methods import METHODS
from tests.tables.looking import opened

LISTED = {"candidates": ["a", "b", "c", "d"]}
ROWS = {"who": [1, 2, 3], "x": ["a", "b", "a"], "n": [1, 2, 3], "g": [0, 0, 1]}
OTHERS = {"who": list(range(500)), "x": ["a"] * 500, "n": [7] * 500, "g": [1] * 500}
QUESTIONS = {
    "mode": lambda t: t.mode("x", **LISTED, epsilon=1),
    "other": lambda t: t.mode("x", **LISTED, other="z", epsilon=1),
    **{
        method: lambda t, method=method: t.top_k("x", 2, **LISTED, method=method, max_values=1, epsilon=1)
        for method in METHODS
    },
    "interval": lambda t: t.top_k("x", (1, 2), **LISTED, epsilon=1),
    "median": lambda t: t.median("n", lower=0, upper=100, epsilon=1),
    "quantile": lambda t: t.quantile("n", "0.9", epsilon=1),
    "deciles": lambda t: t.quantiles("n", "deciles", lower=0, upper=100, epsilon=1),
    "maximum": lambda t: t.maximum("n", range="log", epsilon=1),
    "rows": lambda t: t.median("n", per_person="rows", max_rows=3, epsilon=1),
    "rule": lambda t: t.mode("x", candidates=every("text", max_bytes=8), epsilon=1),
    "rule, top": lambda t: t.top_k("x", 2, candidates=every("text", max_bytes=100), epsilon=1),
    "found": lambda t: t.mode("x", epsilon=1, delta="1e-9"),
    "found, top": lambda t: t.top_k("x", 3, epsilon=1, delta="1e-9", max_values=1),
    "values": lambda t: t.values("x", epsilon=1, delta="1e-9"),
}


def table_of(rows, **options):
    return opened(rows, person="who", **options)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_it_follows_from_public_numbers_alone(name, relation):
    one, other = (QUESTIONS[name](table_of(rows, neighbours=relation)) for rows in (ROWS, OTHERS))
    assert one.accuracy == other.accuracy
    assert one.accuracy.words == other.accuracy.words
    assert 0 < one.accuracy.average < one.accuracy.within_95
    assert str(one.accuracy) in repr(one)
    shown = json.loads(json.dumps(one.to_dict()))["accuracy"]
    assert shown["within_95"] == one.accuracy.within_95
    assert pickle.loads(pickle.dumps(one)).accuracy == one.accuracy  # noqa: S301 - our own bytes


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_group_is_told_when_an_answer_may_be_chance(name):
    alone = QUESTIONS[name](table_of(ROWS)).accuracy
    grouped = QUESTIONS[name](table_of(ROWS).group_by("g", groups=[0, 1], max_groups=2)).accuracy
    assert grouped.within_95 > 1.5 * alone.within_95
    assert "mere chance" in grouped.words or "of a group" in grouped.words


def test_a_ledger_of_zcdp_has_the_accuracy_of_its_mechanism(tmp_path):
    table = table_of(ROWS, ledger=Ledger(tmp_path / "ledger", zcdp("9", delta="1e-6")))
    pure = table_of(ROWS)
    assert QUESTIONS["mode"](table).accuracy.average > QUESTIONS["mode"](pure).accuracy.average
    assert QUESTIONS["found"](table).accuracy.within_95 > QUESTIONS["found"](pure).accuracy.within_95


def test_rows_are_called_rows():
    accuracy = opened(ROWS).mode("x", **LISTED, epsilon=1).accuracy
    assert accuracy.unit == "rows"
    assert "people" not in accuracy.words
    assert "rows" in opened(ROWS).values("x", epsilon=1, delta="1e-9").accuracy.words


def test_what_cannot_be_wrong_has_none():
    table = table_of(ROWS)
    assert table.top_k("x", 4, **LISTED, epsilon=1).accuracy is None
    assert table.mode("x", candidates=["a"], epsilon=1).accuracy is None
    assert table.median("n", lower=1, upper=1, epsilon=1).accuracy is None
