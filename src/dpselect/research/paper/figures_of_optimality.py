"""McKenna & Sheldon (2020), Figure 2: optimality ratios over a range of epsilons, by the solver."""

from functools import lru_cache
from typing import Any

from dpselect.research.optimality import THRESHOLD, Ratios
from dpselect.research.optimality.lattice import bounded_lattice
from dpselect.research.optimality.optimum import optimum
from dpselect.research.optimality.program import paper_program
from dpselect.research.paper.experiment import Material, Plot
from dpselect.research.plotting import NumberTable, of_number

Sizes = tuple[tuple[int, int], ...]

BY_CANDIDATES: Sizes = ((3, 4), (4, 4), (5, 4), (6, 4))
BY_DEPTH: Sizes = ((4, 2), (4, 4), (4, 6), (4, 8))
ALL: Sizes = tuple(dict.fromkeys(BY_CANDIDATES + BY_DEPTH))


@lru_cache(maxsize=64)
def ratio_curve(n: int, k: int, epsilons: tuple[float, ...]) -> tuple[Ratios, ...]:
    """The optimality ratios of both mechanisms at each epsilon. Every program is solved, even if a proof exists."""
    program = paper_program(bounded_lattice(n, k))
    return tuple(optimum(program, epsilon, always_solve=True).ratios for epsilon in epsilons)


def ratio_table(material: Material, sizes: Sizes, mechanism: str) -> NumberTable:
    """The ratios of one mechanism on several lattices."""
    rows = [
        (n, k, epsilon, getattr(ratios, mechanism))
        for n, k in sizes
        for epsilon, ratios in zip(material.epsilons, ratio_curve(n, k, material.epsilons), strict=True)
    ]
    return NumberTable(("n", "k", "epsilon", "optimality_ratio"), tuple(rows))


def draw_ratios(figure: Any, table: NumberTable, by: str, limits: tuple[float, float] | None = None) -> None:
    """Draw one line per lattice, and the threshold above which permute-and-flip is optimal."""
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
    axes.set(ylim=limits)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.legend()


def _ratios(name: str, number: str, caption: str, sizes: Sizes, mechanism: str = "permute_and_flip") -> Plot:
    """A figure of one mechanism, with a line for each n or for each k."""
    by = "n" if len({k for _, k in sizes}) == 1 else "k"
    return Plot(
        name,
        number,
        caption,
        lambda material: ratio_table(material, sizes, mechanism),
        lambda figure, table: draw_ratios(figure, table, by, (0.98, 2.02) if mechanism == "exponential" else None),
    )


OPTIMALITY_BY_N = _ratios(
    "figure-2a-optimality-by-n",
    "Figure 2 (a)",
    "Optimality ratio of permute-and-flip, k = 4, n = 3 to 6. Right of the dashed line it is proven to be one.",
    BY_CANDIDATES,
)
OPTIMALITY_BY_K = _ratios(
    "figure-2b-optimality-by-k",
    "Figure 2 (b)",
    "Optimality ratio of permute-and-flip, n = 4, k = 2, 4, 6, 8. Right of the dashed line it is proven to be one.",
    BY_DEPTH,
)
OPTIMALITY_EXPONENTIAL = _ratios(
    "figure-2c-optimality-exponential",
    "Figure 2 (c)",
    "Optimality ratio of the exponential mechanism, n = 4, k = 2, 4, 6, 8.",
    BY_DEPTH,
    "exponential",
)
