"""Every figure is drawn, and looked at by a program: labels, legends, overlaps, styles that grey print tells apart."""

import csv
import io
import itertools
import math
from typing import Any

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.research import plotting
from dpselect.research.datasets import Material
from dpselect.research.figures import ERROR, FIGURES, Plot, ratio
from dpselect.research.plotting import EXPONENTIAL, FLIP, NumberTable

BY_NAME = {plot.name: plot for plot in FIGURES}


def drawn(plot: Plot, material: Material) -> Any:
    figure = plotting.blank_figure(*plot.size)
    plot.draw(figure, plot.table(material))
    return figure


def test_every_figure_of_the_paper_is_there() -> None:
    numbers = [plot.number for plot in FIGURES]
    panels = [f"Figure {number} ({panel})" for number in (1, 2, 3) for panel in "abc"]
    assert numbers == [*panels, "Figure 4", "Figure 5", "Figure 6", "Figure 7"]
    assert len(BY_NAME) == len(FIGURES)
    with_data = [*panels[6:], "Figure 5", "Figure 6", "Figure 7"]
    assert [plot.number for plot in FIGURES if plot.needs_data] == with_data


@pytest.mark.parametrize("plot", FIGURES, ids=lambda plot: plot.name)
def test_every_figure_can_be_read(plot: Plot, material: Material) -> None:
    """Its table has no holes; labels and a legend are there, overlap nothing, and lines differ also in grey."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra

    table = plot.table(material)
    assert table.rows
    for row in table.rows:
        assert len(row) == len(table.columns)
        assert all(math.isfinite(value) for value in row if isinstance(value, float))
    with plotting.settings():
        figure = plotting.blank_figure(*plot.size)
        plot.draw(figure, table)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        check_labels(figure)
        check_styles(figure)
        check_texts(figure, canvas.get_renderer())


def check_labels(figure: Any) -> None:
    axes = [one for one in figure.axes if one.axison]
    shared = [text.get_text() for text in (figure._supxlabel, figure._supylabel) if text]
    assert all(one.get_xlabel() or shared or one.get_xticklabels()[0].get_text() for one in axes)
    assert all(one.get_ylabel() or shared or not one.get_subplotspec().is_first_col() for one in axes)
    assert any("error" in label or "ratio" in label for label in [axes[0].get_ylabel(), *shared])
    assert any(one.get_legend() for one in figure.axes)


def check_styles(figure: Any) -> None:
    for axes in figure.axes:
        lines = [line for line in axes.lines if not line.get_label().startswith("_")]
        grey = [(str(line._unscaled_dash_pattern), line.get_marker()) for line in lines]
        colours = [line.get_color() for line in lines if "bound" not in line.get_label()]  # both bounds are black
        hatches = [bars[0].get_hatch() for bars in axes.containers]
        for differing in (grey, colours, hatches):
            assert len(set(differing)) == len(differing)


def check_texts(figure: Any, renderer: Any) -> None:
    """No text overlaps another or leaves the figure."""
    page = figure.bbox
    for axes in [one for one in figure.axes if one.axison]:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [one.get_window_extent(renderer) for one in labels if one.get_text() and inside(one, axes)]
            assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
        texts = [axes.xaxis.label, axes.yaxis.label, axes.title]
        for text in [one for one in texts if one.get_text() and one.get_visible()]:
            box = text.get_window_extent(renderer)
            assert page.x0 - 1 <= box.x0 <= box.x1 <= page.x1 + 1
            assert page.y0 - 1 <= box.y0 <= box.y1 <= page.y1 + 1


def inside(label: Any, axes: Any) -> bool:
    """Whether the tick of a label lies within the axes: matplotlib also keeps some beyond, and draws none of them."""
    x, y = label.get_position()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return (left <= x <= right) if y == 0 else (bottom <= y <= top)


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG\r\n\x1a\n"), ("pdf", b"%PDF-"), ("svg", b"<?xml")])
def test_images_are_in_their_format_and_always_the_same(material: Material, ending: str, magic: bytes) -> None:
    plot = BY_NAME["figure-1a-error-by-p"]
    with plotting.settings():
        first, second = (plotting.image(drawn(plot, material), ending) for _ in range(2))
    assert first.startswith(magic)
    assert first == second


def test_errors_by_p_are_the_formulas_of_proposition_4(material: Material) -> None:
    """Equations (emf) and (pff), written out for n = 3."""
    table = BY_NAME["figure-1a-error-by-p"].table(material)
    for name, p, _, error in table.rows:
        chance = 1 - 1 / (1 + 2 * p) if name == EXPONENTIAL else 1 - (1 - (1 - p) ** 3) / (3 * p)
        assert error == pytest.approx(2 * math.log(1 / p) * chance, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 100])
@pytest.mark.parametrize("p", [1e-4, 0.1, 0.9])
def test_ratios_by_p_are_those_of_the_probabilities(n: int, p: float) -> None:
    scores = [2 * math.log(p)] * (n - 1) + [0.0]
    losing = [1 - kind(1).pmf(scores)[-1] for kind in (ExponentialMechanism, PermuteAndFlip)]
    assert ratio(p, n) == pytest.approx(losing[0] / losing[1], rel=1e-7)


def test_bars_are_at_the_error_that_the_paper_chose(material: Material) -> None:
    table = BY_NAME["figure-7-both-bars"].table(material)
    assert table.where(mechanism=EXPONENTIAL).column("expected_error") == pytest.approx([ERROR] * 10, rel=1e-8)
    best = table.where(mechanism=FLIP)
    assert all(ERROR / 2 < error < ERROR for error in best.column("expected_error"))
    people = best.where(task="mode")
    assert people.column("people") == pytest.approx([error / 2 for error in people.column("expected_error")])


def test_curves_end_where_the_exponential_mechanism_errs_by_one(material: Material) -> None:
    table = BY_NAME["figure-5-five-modes"].table(material)
    for data_set in dict.fromkeys(table.column("data_set")):
        last = table.where(data_set=data_set, mechanism=EXPONENTIAL).rows[-1]
        assert last[3] == pytest.approx(1, rel=1e-8)


TABLE = NumberTable(("kind", "x", "y"), (("a", 1, 0.1), ("b", 1, 1 / 3), ("a", 2, 1e-300)))


def test_series_are_grouped_in_the_order_of_the_rows() -> None:
    assert list(TABLE.series("kind", "x", "y")) == [("a", [1, 2], [0.1, 1e-300]), ("b", [1], [1 / 3])]
    assert TABLE.curves("kind", "x", "y") == {"a": {1: 0.1, 2: 1e-300}, "b": {1: 1 / 3}}
    assert TABLE.where(kind="a", x=2).rows == [("a", 2, 1e-300)]
    assert TABLE.where(kind="c").rows == []


def test_csv_keeps_every_digit() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert [float(row["y"]) for row in rows] == [0.1, 1 / 3, 1e-300]
    assert [row["kind"] for row in rows] == ["a", "b", "a"]
    assert math.fsum(float(row["x"]) for row in rows) == 4
