"""The figure of several quantiles: its points are the answer, and its bars the bounds of a plan."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import dpselect
from dpselect.analysis import plan
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables import plot_quantiles

pytest.importorskip("matplotlib")

LEVELS = ["0.9", "0.1", "0.5"]
TABLE = pa.table({"who": list(range(300)), "x": [i % 100 for i in range(300)], "ward": ["a", "b", "c"] * 100})


def test_the_points_are_the_answer_in_the_order_of_the_levels():
    answer = dpselect.open_table(TABLE).quantiles("x", LEVELS, lower=0, upper=100, epsilon=1)
    [line] = plot_quantiles(answer, LEVELS).axes[0].lines
    assert list(line.get_ydata()) == [0.1, 0.5, 0.9]
    assert list(line.get_xdata()) == sorted(answer.value)


def test_the_bars_are_the_bounds_of_the_plan():
    asked = {"lower": 0, "upper": 100, "neighbours": "replace"}
    table = dpselect.open_table(TABLE, person="who", neighbours="replace")
    answer = table.quantiles("x", LEVELS, lower=0, upper=100, epsilon=1)
    figure = plot_quantiles(answer, LEVELS, people=10**6, **asked)
    bound = plan(question="quantiles", levels=LEVELS, epsilon=1, **asked).accuracy["permute-and-flip"].within_95
    [bars] = figure.axes[0].collections
    lengths = [(high[1] - low[1]) / 2 for low, high in bars.get_segments()]
    assert max(lengths) == pytest.approx(bound / 10**6, rel=1e-6)
    [short] = plot_quantiles(answer, LEVELS, people=1, **asked).axes[0].collections
    assert all((low[1], high[1]) == pytest.approx((0, 1)) for low, high in short.get_segments())
    assert figure.axes[0].get_ylabel() == "share of people below"


def test_groups_dates_and_decimals_are_drawn(tmp_path):
    grouped = dpselect.open_table(TABLE).group_by("ward", groups=["a", "b"])
    answer = grouped.quantiles("x", LEVELS, lower=0, upper=100, epsilon=1)
    axes = plot_quantiles(answer, LEVELS, people=100, lower=0, upper=100, groups=2).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(60)]
    for values in (days, [Decimal(i) / 4 for i in range(60)]):
        answer = dpselect.open_table(pa.table({"x": values})).quantiles("x", "quartiles", epsilon=50)
        path = tmp_path / "figure.svg"
        plot_quantiles(answer, "quartiles", path=path)
        assert path.read_text().startswith("<?xml")


def test_wrong_levels_and_answers_are_refused(tmp_path):
    table = dpselect.open_table(TABLE)
    answer = table.quantiles("x", LEVELS, lower=0, upper=100, epsilon=1)
    with pytest.raises(InvalidValue, match="levels must be those of the question"):
        plot_quantiles(answer, "deciles")
    with pytest.raises(InvalidValue, match="levels must be those of the question"):
        plot_quantiles(table.median("x", lower=0, upper=9, epsilon=1), ["0.5"])
    words = table.top_k("ward", 3, candidates=["a", "b", "c"], epsilon=1)
    with pytest.raises(InvalidType, match="that of quantiles"):
        plot_quantiles(words, LEVELS)
    with pytest.raises(InvalidValue, match="people must be"):
        plot_quantiles(answer, LEVELS, people=0)
    with pytest.raises(InvalidValue, match="must end in"):
        plot_quantiles(answer, LEVELS, path=tmp_path / "figure.bmp")
