"""Optimality ratios over a range of epsilons, by the solver: shared by the three panels of the paper's Figure 2."""

from functools import lru_cache
from typing import Any

from dpselect.optimality import THRESHOLD, Ratios
from dpselect.optimality.lattice import bounded_lattice
from dpselect.optimality.optimum import optimum
from dpselect.optimality.program import Program
from dpselect.paper.plot import Material
from dpselect.paper.style import of_number
from dpselect.paper.table import Table

Sizes = tuple[tuple[int, int], ...]

BY_CANDIDATES: Sizes = ((3, 4), (4, 4), (5, 4), (6, 4))
BY_DEPTH: Sizes = ((4, 2), (4, 4), (4, 6), (4, 8))
ALL: Sizes = tuple(dict.fromkeys(BY_CANDIDATES + BY_DEPTH))


@lru_cache(maxsize=64)
def ratio_curve(n: int, k: int, epsilons: tuple[float, ...]) -> tuple[Ratios, ...]:
    """The optimality ratios of both mechanisms at each epsilon. Every program is solved, also where a proof exists."""
    program = Program(bounded_lattice(n, k))
    return tuple(optimum(program, epsilon, always_solve=True).ratios for epsilon in epsilons)


def ratio_table(material: Material, sizes: Sizes, mechanism: str) -> Table:
    """The ratios of one mechanism on several lattices."""
    rows = [
        (n, k, epsilon, getattr(ratios, mechanism))
        for n, k in sizes
        for epsilon, ratios in zip(material.epsilons, ratio_curve(n, k, material.epsilons), strict=True)
    ]
    return Table(("n", "k", "epsilon", "optimality_ratio"), tuple(rows))


def draw_ratios(figure: Any, table: Table, by: str) -> Any:
    """One line a lattice, with the threshold above which permute-and-flip is optimal."""
    axes = figure.subplots()
    for number, (value, epsilon, ratio) in enumerate(table.series(by, "epsilon", "optimality_ratio")):
        axes.plot(epsilon, ratio, label=f"${by}$ = {value}", **of_number(number))
    axes.axvline(THRESHOLD, color="0.45", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    axes.annotate(
        " $\\log\\frac{3+\\sqrt{5}}{2}$",
        (THRESHOLD, 1),
        xycoords=("data", "axes fraction"),
        va="top",
        color="0.3",
    )
    axes.set(xscale="log", xlim=(min(table.column("epsilon")), max(table.column("epsilon"))))
    axes.set(xlabel="$\\epsilon$", ylabel="optimality ratio (1 = optimal)")
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.legend()
    return axes
