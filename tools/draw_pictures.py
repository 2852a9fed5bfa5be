"""Draw the pictures of the documentation into docs/pictures, or into another folder.

    python tools/draw_pictures.py [FOLDER]

They stand on a light card of their own, so that they are readable on light and on dark pages.
"""

import io
import math
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, analysis
from dpselect.demo_data import DIAGNOSES, make_visits, patients_per_diagnosis
from dpselect.research.plotting import COLOURS, DASHES

ROOT = Path(__file__).parents[1]
COST = "cost-by-n"
INK, PALE, CARD = "#24292f", "#b8bfc6", "#fbfbfd"
BLUE, ORANGE, GREEN = COLOURS[:3]


def text(x: float, y: float, words: str, size: int = 14, colour: str = INK, anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, edge: str = "none") -> str:
    """A rectangle with round corners."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" stroke="{edge}"/>'


def line(start: tuple[float, float], end: tuple[float, float], colour: str = INK, more: str = "") -> str:
    """A straight line."""
    (x, y), (u, v) = start, end
    return f'<line x1="{x:g}" y1="{y:g}" x2="{u:g}" y2="{v:g}" stroke="{colour}" stroke-width="1.5" {more}/>'


def dot(x: float, y: float, colour: str, radius: float = 5) -> str:
    """A disc."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour}"/>'


def drawing(width: int, height: int, words: str, parts: Iterator[str]) -> bytes:
    """The parts on a card, with words for those who do not see it."""
    arrow = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="{words}"><title>{words}</title>{arrow}'
    )
    card = box(0.5, 0.5, width - 1, height - 1, CARD, PALE)
    return "\n".join([head, card, *parts, "</svg>\n"]).encode()


def coin() -> bytes:
    """A uniform number, bit by bit, until it lies on one side of exp(-1)."""
    left, scale, bits = 170.0, 520.0, "01010"
    boundary = left + scale * math.exp(-1)

    def parts() -> Iterator[str]:
        yield text(20, 30, "Heads means U &lt; exp(−γ). Here γ = 1, and exp(−1) = 0.3678…", 16)
        yield line((boundary, 48), (boundary, 252), ORANGE, 'stroke-dasharray="5 3"')
        yield text(boundary + 6, 60, "exp(−γ)", 13, ORANGE)
        for row, known in enumerate(range(1, len(bits) + 1)):
            y, low = 72 + 36 * row, int(bits[:known], 2) / 2**known
            decided = known == len(bits)
            yield text(20, y + 15, f"U = 0.{bits[:known]}…", 14)
            yield box(left, y + 4, scale, 14, "#eceff2")
            yield box(left + scale * low, y + 4, scale / 2**known, 14, GREEN if decided else BLUE)
            yield text(left + scale + 12, y + 16, "heads" if decided else "open", 13, GREEN if decided else BLUE)
        yield text(left, 268, "0", 12, anchor="middle")
        yield text(left + scale, 268, "1", 12, anchor="middle")
        yield text(
            20, 292, "Blue: where U can still be. Each bit halves it. It is decided when it leaves the line.", 13
        )

    return drawing(760, 308, "The bits of a uniform number are revealed until it is on one side of exp(-1)", parts())


def kernel() -> bytes:
    """Which candidates the kernel looks at twice."""
    rng = np.random.default_rng(5)
    scores = np.concatenate([rng.gamma(2.0, 14, 52), [118, 109, 104]])[rng.permutation(55)]
    hot, survivors, heads = scores > 95, {9, 31, 47}, set(np.flatnonzero(scores > 105).tolist())
    base, left, step = 210.0, 30.0, 12.4

    def parts() -> Iterator[str]:
        yield text(20, 30, "55 candidates; a million look the same", 16)
        yield line((left, base - 95 * 1.3), (730, base - 95 * 1.3), ORANGE, 'stroke-dasharray="5 3"')
        yield text(730, 30, "hot: above the line, within 8 ln 2 / c of the best", 13, ORANGE, "end")
        for place, score in enumerate(scores):
            x, colour = left + step * place, BLUE if hot[place] else PALE
            colour = GREEN if place in survivors else colour
            yield box(x, base - 1.3 * score, 9, 1.3 * score, colour)
            if place in heads:
                yield dot(x + 4.5, base - 1.3 * score - 10, INK)
        yield line((left, base), (730, base))
        y = 240
        for colour, words in (
            (PALE, "cold: read once, for the maximum. Heads with probability below 1/256"),
            (GREEN, "cold, but U starts with eight zeros: about one in 256. Only the gaps between them are drawn"),
            (BLUE, "hot: the coin is flipped to the end"),
        ):
            yield box(left, y - 11, 12, 12, colour)
            yield text(left + 20, y, words, 13)
            y += 22
        yield dot(left + 6, y - 5, INK)
        yield text(left + 20, y, "heads: one of them, each with the same probability, is the answer", 13)

    return drawing(760, 322, "Few candidates are looked at twice: the hot, and one in 256 of the cold", parts())


def summary() -> bytes:
    """Two summaries become one."""

    def card(x: float, y: float, words: tuple[str, ...], edge: str) -> Iterator[str]:
        yield box(x, y, 190, 92, "#ffffff", edge)
        for row, word in enumerate(words):
            yield text(x + 12, y + 24 + 20 * row, word, 14, edge if not row else INK)

    def parts() -> Iterator[str]:
        yield text(20, 30, "Two parts of the candidates, on two machines", 16)
        yield from card(20, 50, ("part A", "best score 1,430", "3 heads", "one of them: flu"), BLUE)
        yield from card(20, 168, ("part B", "best score 1,397", "5 heads", "one of them: gout"), ORANGE)
        for y in (96, 214):
            yield line((212, y), (270, y), INK, 'marker-end="url(#tip)"')
            yield line((466, y), (526, 155 + (y - 155) * 0.3), INK, 'marker-end="url(#tip)"')
        yield from card(274, 50, ("first head of A", "at time T_A", "law: 3 candidates", "with score 1,430"), BLUE)
        yield from card(274, 168, ("first head of B", "at time T_B", "law: 5 candidates", "with score 1,397"), ORANGE)
        yield text(274, 282, "only the difference of the scores matters: 33", 13)
        yield from card(530, 109, ("A and B together", "the earlier of", "T_A and T_B,", "and its head"), GREEN)

    return drawing(760, 300, "Merging two summaries: the part whose first head arrives earlier wins", parts())


def choice() -> bytes:
    """The demo's question: how likely each answer is, and the error against epsilon."""
    people = patients_per_diagnosis(make_visits())
    best = np.argsort(people)[::-1][:5]
    kinds = {"permute-and-flip": PermuteAndFlip, "exponential": ExponentialMechanism, "noisy max": ReportNoisyMax}
    with mpl.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "dpselect"}):
        figure = Figure(figsize=(7.6, 2.9), layout="constrained", facecolor=CARD)
        chances, errors = figure.subplots(1, 2)
        for number, (name, kind) in enumerate(kinds.items()):
            places = np.arange(best.size) + 0.27 * (number - 1)
            chances.bar(places, kind(0.01, monotonic=True).pmf(people)[best], 0.25, color=COLOURS[number], label=name)
            epsilons = np.geomspace(0.001, 0.06, 50)
            curve = [analysis.expected_error(kind(float(e), monotonic=True), people) for e in epsilons]
            errors.plot(epsilons, curve, color=COLOURS[number], linestyle=DASHES[number], label=name)
        _label(chances, errors, [f"{DIAGNOSES[i].code}\n{people[i]:,}" for i in best])
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _label(chances: Any, errors: Any, names: list[str]) -> None:
    chances.set_xticks(range(len(names)), names)
    chances.set_title("Chance of each answer, ε = 0.01", fontsize=9.5)
    chances.legend(frameon=False)
    errors.set_title("Patients fewer than the best has, on average", fontsize=9.5)
    errors.loglog()
    errors.set_xticks([0.001, 0.01], ["0.001", "0.01"])
    errors.set_yticks([1, 10, 100], ["1", "10", "100"])
    errors.set_xlabel("ε  (larger: sharper, less private)")
    for axes in (chances, errors):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, axis="y")
        axes.set_facecolor(CARD)


# The style of each column of the table of costs: a colour and dashes.
COST_STYLES = (
    (INK, ""),
    (BLUE, ""),
    (COLOURS[4], "8 3"),
    (ORANGE, "2 3"),
    (COLOURS[3], "8 3 2 3"),
    (GREEN, "5 2"),
)
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def cost_by_n(page: str) -> bytes:
    """Time against the number of candidates, both in powers of ten, from the table of the page."""
    head, exponents, costs = _table_of_costs(page)
    low, high = math.floor(min(map(min, costs))), math.ceil(max(map(max, costs)))
    left, right, top, bottom = 84.0, 528.0, 52.0, 404.0

    def across(exponent: float) -> float:
        return left + (right - left) * (exponent - exponents[0]) / (exponents[-1] - exponents[0])

    def down(cost: float) -> float:
        return bottom - (bottom - top) * (cost - low) / (high - low)

    def parts() -> Iterator[str]:
        yield text(20, 30, "Time of one call against the number of candidates", 16)
        for power in range(low, high + 1):
            yield line((left, down(power)), (right, down(power)), "#e3e7eb")
            yield text(left - 10, down(power) + 4, _time(power), 13, anchor="end")
        for exponent in exponents:
            yield line((across(exponent), bottom), (across(exponent), bottom + 5))
            yield text(across(exponent), bottom + 22, _count(exponent), 13, anchor="middle")
        yield line((left, bottom), (right, bottom))
        yield text((left + right) / 2, bottom + 44, "candidates", 13, anchor="middle")
        places = _spread([down(column[-1]) for column in costs], 20)
        for name, column, place, (colour, dashes) in zip(head, costs, places, COST_STYLES, strict=True):
            points = [(across(exponent), down(cost)) for exponent, cost in zip(exponents, column, strict=True)]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-dasharray="{dashes}"/>'
            yield from (dot(round(x, 1), round(y, 1), colour, 3) for x, y in points)
            yield line(points[-1], (right + 24, round(place, 1)), colour)
            yield text(right + 29, round(place + 4, 1), name, 13)

    return drawing(760, 464, "Time of one call against the number of candidates, on logarithmic scales", parts())


def _table_of_costs(page: str) -> tuple[list[str], list[int], list[list[float]]]:
    """The names of the columns, the exponents of the lines, and a column of decimal logarithms of seconds for each."""
    [block] = re.findall(r"^<!-- report: cost against n -->$(.*?)^<!-- end -->$", page, re.MULTILINE | re.DOTALL)
    head, _, *rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in block.split("\n") if row]
    exponents, *columns = zip(*rows, strict=True)
    costs = [list(map(_logarithm, column)) for column in columns]
    return head[1:], [int(exponent.removeprefix("10^")) for exponent in exponents], costs


def _logarithm(time: str) -> float:
    number, unit = time.split()
    return math.log10(float(number) * SECONDS[unit])


def _time(power: int) -> str:
    """A power of ten of a second."""
    unit = next(unit for unit, size in SECONDS.items() if power >= round(math.log10(size)) or unit == "us")
    return f"{10 ** (power - round(math.log10(SECONDS[unit]))):g} {unit.replace('u', 'µ')}"


def _count(exponent: int) -> str:
    return f"{10**exponent:,}" if exponent < 6 else f"10{''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[int(digit)] for digit in str(exponent))}"


def _spread(places: list[float], gap: float) -> list[float]:
    """The places in their order, moved apart until neighbours have the gap; their middle stays."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for lower, upper in pairwise(order):
        moved[upper] = max(moved[upper], moved[lower] + gap)
    shift = (sum(places) - sum(moved)) / len(places)
    return [place + shift for place in moved]


def cost() -> bytes:
    """The costs that the page of performance has."""
    return cost_by_n((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"))


PICTURES: dict[str, Callable[[], bytes]] = {
    "coin": coin,
    "kernel": kernel,
    "summary": summary,
    "choice": choice,
    COST: cost,
}


def main() -> None:
    """Draw all pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
    for name, picture in PICTURES.items():
        (folder / f"{name}.svg").write_bytes(picture())


if __name__ == "__main__":
    main()
