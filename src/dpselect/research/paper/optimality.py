"""McKenna & Sheldon (2020), Section 5: Figure 2 and the claims on how close to optimal the mechanisms are.

The figure shows optimality ratios over a range of epsilons, by the solver.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpselect.optimality import THRESHOLD, Ratios, certify, pareto_ratios
from dpselect.optimality.lattice import bounded_lattice
from dpselect.optimality.optimum import optimum
from dpselect.optimality.program import paper_program
from dpselect.research.paper.experiment import Material, PaperClaim, Plot, listed, rounds_to
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


_SOLVER = 1e-7
_ODDS = Fraction(1, 3)
_PARETO = ("0.1", "0.5", "2")


def claims(material: Material) -> Iterator[PaperClaim]:
    """All claims of this section."""
    yield _pareto()
    yield from _threshold(material)
    yield from _sizes(material)
    yield from _exponential(material)


def _curve(material: Material, size: tuple[int, int], mechanism: str = "permute_and_flip") -> dict[float, float]:
    ratios = ratio_curve(*size, material.epsilons)
    return {e: getattr(ratio, mechanism) for e, ratio in zip(material.epsilons, ratios, strict=True)}


def _largest(material: Material, sizes: Sizes, name: str) -> dict[str, float]:
    """The largest ratio of permute-and-flip on each lattice."""
    return {f"{name} = {size[name == 'k']}": max(_curve(material, size).values()) for size in sizes}


def _pareto() -> PaperClaim:
    found = {epsilon: pareto_ratios(4, 4, epsilon) for epsilon in _PARETO}
    slack = max(abs(ratios.permute_and_flip - 1) for ratios in found.values())
    others = {f"ε = {epsilon}": ratios.exponential for epsilon, ratios in found.items()}
    return PaperClaim(
        "Proposition 6",
        "Permute-and-flip is Pareto optimal: a mechanism that is never worse is never better.",
        "no improvement",
        f"largest improvement found {slack:.1e}",
        slack < 1e-6,
        f"By a linear program, n = k = 4. The same program improves the exponential mechanism by {listed(others)}.",
    )


def _threshold(material: Material) -> Iterator[PaperClaim]:
    yield PaperClaim(
        "Theorem 3",
        "Permute-and-flip is optimal on average for ε of at least log((3 + √5)/2).",
        "0.96",
        f"{THRESHOLD:.6f}",
        rounds_to(THRESHOLD, "0.96"),
    )
    proofs = [certify(n, k, _ODDS) for n, k in ALL]
    exact = [
        proof.proves_optimality and proof.finer_bounds and proof.value == proof.permute_and_flip for proof in proofs
    ]
    yield PaperClaim(
        "Theorem 3, its proof",
        "The dual solution is feasible, obeys the finer bounds and has the value of permute-and-flip.",
        "holds",
        f"holds exactly on {sum(exact)} of {len(exact)} lattices",
        all(exact),
        f"In rational arithmetic with exp(-ε) = {_ODDS}; no solver is used.",
    )
    above = [abs(r - 1) for size in ALL for e, r in _curve(material, size).items() if e >= THRESHOLD]
    last = max((e for size in ALL for e, r in _curve(material, size).items() if r > 1 + 1e-6), default=0.0)
    yield PaperClaim(
        "Section 5, Figure 2 (a, b)",
        "The optimality ratio of permute-and-flip is one above the threshold.",
        "1",
        f"largest difference from one {max(above):.1e}",
        max(above) < _SOLVER and last < THRESHOLD,
        f"By the solver, over {len(above)} programs. On these lattices it exceeds one only up to ε = {last:.3g}.",
    )
    worst = max(r for size in ALL for r in _curve(material, size).values())
    yield PaperClaim(
        "Section 5, Figure 2 (a, b)",
        "The largest measured optimality ratio of permute-and-flip is about 1.01.",
        "1.01",
        f"{worst:.4f}",
        rounds_to(worst, "1.01"),
    )


def _sizes(material: Material) -> Iterator[PaperClaim]:
    by_depth = _largest(material, BY_DEPTH, "k")
    yield PaperClaim(
        "Section 5, Figure 2 (b)",
        "The ratio grows slowly with k.",
        "grows",
        listed(by_depth, 5),
        all(np.diff(list(by_depth.values())) > 0),
        "Largest ratio over ε, n = 4.",
    )
    by_candidates = _largest(material, BY_CANDIDATES, "n")
    yield PaperClaim(
        "Section 5, Figure 2 (a)",
        "The ratio shows no strong dependence on n.",
        "no strong dependence",
        listed(by_candidates, 5),
        max(by_candidates.values()) - min(by_candidates.values()) < 0.005,
        "Largest ratio over ε, k = 4. Counted as not strong: they differ by less than 0.005.",
    )


def _exponential(material: Material) -> Iterator[PaperClaim]:
    last, first = material.epsilons[-1], material.epsilons[0]
    ends = {f"k = {k}": _curve(material, (n, k), "exponential")[last] for n, k in BY_DEPTH}
    rising = all(np.diff(list(_curve(material, size, "exponential").values())).min() > -_SOLVER for size in BY_DEPTH)
    yield PaperClaim(
        "Section 5, Figure 2 (c)",
        "The ratio of the exponential mechanism increases with ε and approaches two for larger k and ε.",
        "towards 2",
        f"at ε = {last:g}, " + listed(ends),
        rising and all(np.diff(list(ends.values())) > 0) and 1.9 < ends["k = 8"] < 2,
        "Counted as approaching: rising in ε and in k, and above 1.9 for k = 8.",
    )
    flip = max(_curve(material, size)[first] for size in ALL)
    exponential = max(_curve(material, size, "exponential")[first] for size in ALL)
    yield PaperClaim(
        "Section 5, Figure 2",
        "The ratio approaches one for both mechanisms as ε tends to zero.",
        "1",
        f"at ε = {first:g}, permute-and-flip {flip:.6f}, exponential mechanism {exponential:.4f}",
        flip < 1.0001 and exponential < 1.01,
        "The largest over all lattices.",
    )
