"""The comparison of the methods for the top k: its records, tables, figures and refusals."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from dpselect import errors
from dpselect.accounting.budget import Price
from dpselect.analysis import compare_top_k, top_k_error
from dpselect.questions import TopK
from dpselect.questions.methods import METHODS

COUNTS = [90, 85, 60, 40, 39, 12, 5, 0]
FIELDS = ["method", "epsilon", "expected_error", "low", "high", "exact"]
ALL = ["set", "margin", "one-shot", "peel", "noisy-counts"]

APPLICABLE = [
    ({}, ["margin", "one-shot", "peel"], "one-shot"),
    ({"max_values": 1}, ALL, "set"),
    ({"max_values": 1, "ordered": True}, ["one-shot", "peel", "noisy-counts"], "noisy-counts"),
    ({"ordered": True}, ["one-shot", "peel"], "one-shot"),
    ({"k": (2, 4)}, ["margin"], "margin"),
    ({"k": 7}, ["margin", "one-shot", "peel"], "peel"),
    ({"k": 8}, ["all"], "all"),
    ({"k": 8, "ordered": True, "max_values": 2}, ["one-shot", "peel", "noisy-counts"], "noisy-counts"),
]


@pytest.mark.parametrize(("asked", "methods", "automatic"), APPLICABLE, ids=str)
def test_all_methods_that_can_answer_are_compared(asked, methods, automatic):
    compared = compare_top_k(COUNTS, **{"k": 3, "epsilons": ["0.1", 1], "runs": 20, **asked})
    assert [(record.epsilon, record.method) for record in compared.records] == [
        (epsilon, method) for epsilon in (0.1, 1.0) for method in methods
    ]
    assert compared.automatic == automatic


def test_records_have_the_errors_of_the_analysis():
    compared = compare_top_k(COUNTS, 3, ["0.1", "1"], max_values=2, monotonic=False, runs=30, seed=7)
    for record in compared.records:
        asked = {"method": record.method, "max_values": 2, "monotonic": False, "runs": 30, "seed": 7}
        found = top_k_error(COUNTS, 3, epsilon=str(record.epsilon), **asked)
        assert (record.expected_error, record.low, record.high) == (found.mean, found.low, found.high)
        assert record.exact == found.exact == (record.method != "noisy-counts")


def test_the_method_of_auto_is_as_auto_takes_it():
    """Of seven candidates five are chosen: auto leaves two out in one shot, and the named method chooses all five."""
    counts = COUNTS[:7]
    [auto] = [r for r in compare_top_k(counts, 5, [1]).records if r.method == "one-shot"]
    assert auto.expected_error == top_k_error(counts, 5, epsilon=1).mean
    [named] = compare_top_k(counts, 5, [1], methods=["one-shot"]).records
    assert named.expected_error == top_k_error(counts, 5, epsilon=1, method="one-shot").mean != auto.expected_error


def test_named_methods_are_compared_once_and_in_their_order():
    compared = compare_top_k(COUNTS, 3, [1], max_values=1, methods=["peel", "auto", "set", "peel"])
    assert [record.method for record in compared.records] == ["peel", "set"]


def test_a_mechanism_that_cannot_draw_leaves_methods_out():
    choice = TopK(k=3, candidates=30, max_values=1)
    assert list(choice.applicable(Price(1, None, "exponential"))) == ["set", "margin", "peel"]
    assert list(choice.applicable(Price(1, None, "permute-and-flip"))) == ["set", "margin", "one-shot", "peel"]
    assert set(choice.applicable(Price(1))) == set(METHODS)


def test_tables():
    compared = compare_top_k(COUNTS, 3, ["0.1", 1], runs=20)
    rows = compared.to_dicts()
    assert [list(row) for row in rows] == [FIELDS] * 6
    assert json.loads(json.dumps(rows)) == rows
    assert compared.to_pandas().to_dict("records") == compared.to_polars().to_dicts() == rows
    assert repr(compared) == str(compared) == "TopKComparison(6 records)"
    with pytest.raises(FrozenInstanceError):
        compared.records[0].low = 0.0


def test_figures_show_every_method(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    compared = compare_top_k(COUNTS, 3, ["0.02", "0.1"], max_values=1, runs=20, seed=1)
    [axes] = compared.plot(tmp_path / "errors.svg").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ALL
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 5
    for line, method in zip(axes.get_lines(), ALL, strict=True):
        points = [[r.epsilon, r.expected_error] for r in compared.records if r.method == method]
        assert line.get_xydata().tolist() == points
    assert axes.get_ylabel() == "expected error (people short per item)"
    assert (tmp_path / "errors.svg").stat().st_size > 5_000
    with pytest.raises(errors.InvalidValue, match="must end in"):
        compared.plot(tmp_path / "errors.txt")


def test_figures_end_where_errors_are_negligible():
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    [axes] = compare_top_k([1000, 900, 10, 0], 2, ["0.001", 1]).plot().axes
    largest = max(y for line in axes.get_lines() for y in line.get_ydata())
    assert axes.get_ylim()[0] == pytest.approx(1e-6 * largest)


BAD = [
    ({"epsilons": []}, errors.InvalidValue, "epsilons must have at least one"),
    ({"epsilons": "12"}, errors.InvalidType, "epsilons must be a sequence"),
    ({"epsilons": [0]}, errors.InvalidValue, "epsilon must be > 0"),
    ({"k": 9}, errors.InvalidValue, "k must be from 1 to the number of candidates, 8, got 9"),
    ({"methods": "set"}, errors.InvalidType, "methods must be a sequence of names"),
    ({"methods": 3}, errors.InvalidType, "methods must be a sequence of names"),
    ({"methods": []}, errors.InvalidValue, "methods must have at least one name"),
    ({"methods": ["set"]}, errors.InvalidValue, "method set needs max_values"),
    ({"methods": ["best"]}, errors.InvalidValue, "method must be one of"),
    ({"methods": ["margin"], "ordered": True}, errors.InvalidValue, "method margin has no order"),
    ({"max_values": 0}, errors.InvalidValue, "max_values must be >= 1"),
    ({"monotonic": 1}, errors.InvalidType, "monotonic must be True or False"),
    ({"runs": 1}, errors.InvalidValue, "runs must be from 2"),
    ({"seed": "x"}, errors.InvalidType, "seed must be an integer"),
    ({"scores": []}, errors.InvalidValue, "scores must have at least one"),
    ({"scores": np.array([0.5, 1.0, 7.0, 2.0])}, errors.InvalidValue, "scores must be counts for the margin"),
]


@pytest.mark.parametrize(("asked", "error", "words"), BAD, ids=lambda value: str(value)[:50])
def test_bad_arguments_are_refused(asked, error, words):
    with pytest.raises(error, match=words):
        compare_top_k(**{"scores": COUNTS, "k": 3, "epsilons": [1], **asked})
