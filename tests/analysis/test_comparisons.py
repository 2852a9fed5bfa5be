"""The comparisons of the mechanisms, and of the methods for the top k: their records, tables and figures."""

import json
import math
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.accounting.budget import Price
from dpselect.analysis import compare, compare_top_k, error_quantile, expected_error, top_k_error
from dpselect.questions import TopK
from dpselect.questions.methods import METHODS

NAMES = {"permute-and-flip": PermuteAndFlip, "exponential": ExponentialMechanism, "noisy-max": ReportNoisyMax}
SCORES = [10, 8, 8, 0]
EPSILONS = ["0.1", 1, 3.5]


@pytest.fixture(scope="module")
def comparison():
    return compare(SCORES, EPSILONS, sensitivity=2, monotonic=True)


def test_records_hold_every_mechanism_at_every_epsilon(comparison):
    assert [(r.epsilon, r.mechanism) for r in comparison.records] == [
        (float(Fraction(epsilon)), name) for epsilon in EPSILONS for name in NAMES
    ]


def test_records_hold_the_figures_of_the_analysis(comparison):
    for record, epsilon in zip(comparison.records, np.repeat(EPSILONS, 3).tolist(), strict=True):
        mechanism = NAMES[record.mechanism](epsilon, 2, monotonic=True)
        assert record.expected_error == expected_error(mechanism, SCORES)
        assert record.error_95 == error_quantile(mechanism, SCORES, 0.95)
        best = expected_error(PermuteAndFlip(epsilon, 2, monotonic=True), SCORES)
        assert record.ratio == pytest.approx(record.expected_error / best, rel=1e-14)


def test_ratios_are_one_for_permute_and_flip_and_below_two_for_the_exponential_mechanism(comparison):
    ratios = {name: [r.ratio for r in comparison.records if r.mechanism == name] for name in NAMES}
    assert ratios["permute-and-flip"] == [1, 1, 1]
    assert all(1 < ratio < 2 for ratio in ratios["exponential"])
    assert all(ratio > 1 for ratio in ratios["noisy-max"])


def test_without_errors_the_ratio_is_not_a_number():
    for record in compare([3, 3], [1]).records:
        assert record.expected_error == 0
        assert math.isnan(record.ratio)


@pytest.mark.parametrize(
    ("module", "method", "install"),
    [
        ("pandas", "to_pandas", " -m pip install pandas$"),
        ("polars", "to_polars", " -m pip install polars$"),
        ("matplotlib.figure", "plot", " -m pip install matplotlib$"),
    ],
)
def test_a_missing_library_is_named(comparison, monkeypatch, module, method, install):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.MissingExtra, match=install):
        getattr(comparison, method)()


SEQUENCES = {
    "array": np.array([0.5, 2.0]),
    "generator": (epsilon for epsilon in (0.5, 2.0)),
    "pandas": pd.Series([0.5, 2.0]),
    "texts": ("0.5", "2"),
    "Fractions": [Fraction(1, 2), Fraction(2)],
}


@pytest.mark.parametrize("case", SEQUENCES)
def test_any_sequence_of_epsilons_is_read(case):
    records = compare(SCORES, SEQUENCES[case]).records
    assert [record.epsilon for record in records] == [0.5] * 3 + [2.0] * 3


COUNTS = [90, 85, 60, 40, 39, 12, 5, 0]
METHOD_NAMES = ["set", "margin", "one-shot", "peel", "noisy-counts"]

APPLICABLE = [
    ({}, ["margin", "one-shot", "peel"], "one-shot"),
    ({"max_values": 1}, METHOD_NAMES, "set"),
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


def test_figures_end_where_errors_are_negligible():
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    [axes] = compare_top_k([1000, 900, 10, 0], 2, ["0.001", 1]).plot().axes
    largest = max(y for line in axes.get_lines() for y in line.get_ydata())
    assert axes.get_ylim()[0] == pytest.approx(1e-6 * largest)


# Tables and figures of both.


@pytest.fixture(scope="module")
def compared_methods():
    return compare_top_k(COUNTS, 3, ["0.02", "0.1"], max_values=1, runs=20, seed=1)


# The comparison, the fields and the words of its records, the lines of its figure, and the unit of its errors.
BOTH = {
    "mechanisms": ("comparison", "mechanism", ["error_95", "ratio"], list(NAMES), "units of the scores"),
    "methods": ("compared_methods", "method", ["low", "high", "exact"], METHOD_NAMES, "people short per item"),
}


@pytest.fixture(params=BOTH)
def both(request):
    fixture, *rest = BOTH[request.param]
    return request.getfixturevalue(fixture), *rest


def test_tables(both):
    compared, series, others, lines, _ = both
    rows = compared.to_dicts()
    assert [list(row) for row in rows] == [[series, "epsilon", "expected_error", *others]] * len(compared.records)
    assert json.loads(json.dumps(rows)) == rows
    pandas_table, polars_table = compared.to_pandas(), compared.to_polars()
    assert (type(pandas_table), type(polars_table)) == (pd.DataFrame, pl.DataFrame)
    assert pandas_table.to_dict("records") == polars_table.to_dicts() == rows
    assert list(dict.fromkeys(row[series] for row in rows)) == lines
    assert repr(compared) == str(compared) == f"{type(compared).__name__}({len(rows)} records)", "no score is shown"
    with pytest.raises(FrozenInstanceError):
        compared.records[0].epsilon = 2


MAGIC = {".png": b"\x89PNG\r\n", ".PNG": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


def test_figures_show_every_line_and_are_saved_by_the_ending(both, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    compared, series, _, lines, unit = both
    [axes] = compared.plot(str(tmp_path / "text.png")).axes
    assert (tmp_path / "text.png").stat().st_size > 5_000
    assert [text.get_text() for text in axes.get_legend().get_texts()] == lines
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == len(lines)
    for line, name in zip(axes.get_lines(), lines, strict=True):
        points = [[r.epsilon, r.expected_error] for r in compared.records if getattr(r, series) == name]
        assert line.get_xydata().tolist() == points
    assert axes.get_ylabel() == f"expected error ({unit})"
    for ending, magic in MAGIC.items():
        compared.plot(tmp_path / f"figure{ending}")
        content = (tmp_path / f"figure{ending}").read_bytes()
        assert content.startswith(magic)
        assert len(content) > 5_000
        assert (b"</svg>" in content) == (ending == ".svg")
    known = set(tmp_path.iterdir())
    for name in ("figure.jpg", "figure", "figure.png.txt", ".png"):
        with pytest.raises(errors.InvalidValue, match="must end in"):
            compared.plot(tmp_path / name)
    assert set(tmp_path.iterdir()) == known


def test_figures_without_errors_are_drawn_all_the_same(tmp_path):
    """All candidates tie: there is no line to draw on logarithmic axes, and no warning."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    compare([3, 3], [1, 2]).plot(tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(MAGIC[".png"])
