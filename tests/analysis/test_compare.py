"""The comparison of the three mechanisms: its records, tables, figures and refusals."""

import math
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import compare, error_quantile, expected_error

NAMES = {"permute-and-flip": PermuteAndFlip, "exponential": ExponentialMechanism, "noisy-max": ReportNoisyMax}
SCORES = [10, 8, 8, 0]
EPSILONS = ["0.1", 1, 3.5]
FIELDS = ["mechanism", "epsilon", "expected_error", "error_95", "ratio"]


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


def test_tables(comparison):
    rows = comparison.to_dicts()
    assert [list(row) for row in rows] == [FIELDS] * 9
    pandas_table, polars_table = comparison.to_pandas(), comparison.to_polars()
    assert isinstance(pandas_table, pd.DataFrame)
    assert isinstance(polars_table, pl.DataFrame)
    assert pandas_table.to_dict("records") == rows
    assert polars_table.to_dicts() == rows
    assert list(pandas_table.columns) == polars_table.columns == FIELDS


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


def test_nothing_derived_from_scores_is_shown_by_repr(comparison):
    assert repr(comparison) == str(comparison) == "Comparison(9 records)"


def test_records_are_frozen(comparison):
    with pytest.raises(FrozenInstanceError):
        comparison.records[0].epsilon = 2


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


MAGIC = {".png": b"\x89PNG\r\n", ".PNG": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


@pytest.mark.parametrize("ending", MAGIC)
def test_figures_are_saved_by_the_ending(comparison, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    path = tmp_path / f"figure{ending}"
    comparison.plot(path)
    content = path.read_bytes()
    assert content.startswith(MAGIC[ending])
    assert len(content) > 5_000
    if ending == ".svg":
        assert b"</svg>" in content


def test_figures_show_every_mechanism(comparison, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    [axes] = comparison.plot().axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(NAMES)
    for line, name in zip(axes.get_lines(), NAMES, strict=True):
        points = [(r.epsilon, r.expected_error) for r in comparison.records if r.mechanism == name]
        assert line.get_xydata().tolist() == [list(point) for point in points]
    comparison.plot(str(tmp_path / "text.png"))
    assert (tmp_path / "text.png").stat().st_size > 5_000


def test_figures_without_errors_are_drawn_all_the_same(tmp_path):
    """All candidates tie: there is no line to draw on logarithmic axes, and no warning."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    compare([3, 3], [1, 2]).plot(tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(MAGIC[".png"])


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.png.txt", ".png"])
def test_other_endings_are_refused(comparison, tmp_path, name):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    with pytest.raises(errors.InvalidValue, match="must end in"):
        comparison.plot(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


BAD = {
    "no epsilons": (SCORES, [], errors.InvalidValue, "epsilons must have at least one"),
    "a number": (SCORES, 1, errors.InvalidType, "epsilons must be a sequence"),
    "text": (SCORES, "12", errors.InvalidType, "epsilons must be a sequence"),
    "zero": (SCORES, [1, 0], errors.InvalidValue, "epsilon must be > 0"),
    "nan": (SCORES, [math.nan], errors.InvalidValue, "epsilon must be finite"),
    "None inside": (SCORES, [None], errors.InvalidType, "epsilon must be a number"),
    "empty scores": ([], [1], errors.InvalidValue, "scores must have at least one"),
    "nan scores": ([1.0, math.nan], [1], errors.InvalidValue, "scores must be finite"),
    "inf in an array": (np.array([1.0, math.inf]), [1], errors.InvalidValue, "scores must be finite"),
    "matrix": (np.ones((2, 2)), [1], errors.InvalidValue, "scores must be one-dimensional"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused(case):
    scores, epsilons, error, words = BAD[case]
    with pytest.raises(error, match=words):
        compare(scores, epsilons)


def test_bad_parameters_are_refused():
    with pytest.raises(errors.InvalidValue, match="sensitivity must be > 0"):
        compare(SCORES, [1], sensitivity=0)
    with pytest.raises(errors.InvalidType, match="monotonic must be True or False"):
        compare(SCORES, [1], monotonic="yes")
