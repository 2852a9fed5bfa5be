"""The claims of McKenna & Sheldon (2020), in the order of the paper's sections, and how each is checked.

A claim is a row: where the paper makes it, the statement, the paper's number, and a function that computes ours and
says whether they agree. It may return a remark, too. The statement is the docstring of the function.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpselect.analysis import check_privacy, expected_error
from dpselect.mechanisms import ExponentialMechanism, PermuteAndFlip
from dpselect.optimality import THRESHOLD, certify, pareto_ratios
from dpselect.optimality.lattice import bounded_lattice, permute_and_flip, powers
from dpselect.research import figures
from dpselect.research.datasets import TASKS, Experiment, Material
from dpselect.research.plotting import EXPONENTIAL, FLIP, NOISY_MAX

NO_DATA = "needs the data"

_ROUNDING = 1e-9
_SOLVER = 1e-7
_ODDS = Fraction(1, 3)
_PARETO = ("0.1", "0.5", "2")
_CLOSE = 1.8

Found = tuple[str, bool] | tuple[str, bool, str]  # our number, whether it agrees, and a remark


@dataclass(frozen=True)
class PaperClaim:
    """What the paper claims and where, its number, ours, and whether they agree (None if not checked)."""

    where: str
    statement: str
    paper: str
    ours: str
    holds: bool | None
    remark: str = ""

    @property
    def verdict(self) -> str:
        return {True: "pass", False: "FAIL", None: "not checked"}[self.holds]


@dataclass(frozen=True)
class Row:
    where: str
    statement: str
    paper: str
    check: Callable[[Material], Found]
    remark: str = ""
    needs_data: bool = False

    def against(self, material: Material) -> PaperClaim:
        if self.needs_data and not material.histograms:
            return PaperClaim(self.where, self.statement, self.paper, NO_DATA, None)
        ours, holds, *remark = self.check(material)
        return PaperClaim(self.where, self.statement, self.paper, ours, bool(holds), "".join(remark) or self.remark)


def rounds_to(number: float, printed: str) -> bool:
    """Whether the number is within half a unit of the last digit that is printed."""
    half = Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent)) / 2
    return abs(Decimal(number) - Decimal(printed)) <= half


def listed(numbers: dict[str, float], digits: int = 4) -> str:
    """Named numbers in one line."""
    return ", ".join(f"{name}: {number:.{digits}g}" for name, number in numbers.items())


def _falls(numbers: dict[Any, float]) -> bool:
    return bool(np.all(np.diff(list(numbers.values())) < 0))


CLAIMS: list[Row] = []


def _claim(where: str, paper: str, *, needs_data: bool = False) -> Callable[..., Any]:
    # Add the function that follows to the claims. Its docstring is the statement, and may have a remark.
    def add(check: Callable[[Material], Found]) -> Callable[[Material], Found]:
        statement, _, remark = inspect.cleandoc(check.__doc__ or "").partition("\n\n")
        CLAIMS.append(Row(where, statement, paper, check, " ".join(remark.split()), needs_data))
        return check

    return add


def _score_vectors() -> list[list[int]]:
    return [[-2 * step for step in steps] for steps in bounded_lattice(4, 4).classes]


@_claim("Theorem 1", "<= 1")
def _privacy(_: Material) -> Found:
    """Permute-and-flip is ε-differentially private: the largest log-ratio to a neighbour is at most ε = 1."""
    vectors = _score_vectors()
    worst = max(check_privacy(PermuteAndFlip(1), scores) for scores in vectors)
    return f"{worst:.12f}", worst <= 1 + _ROUNDING, f"Over {len(vectors)} score vectors of four candidates."


@_claim("Proposition 3", "equal")
def _recurrence(_: Material) -> Found:
    """Permute-and-flip solves the recurrence: two ways to compute the probabilities agree."""
    lattice, mechanism, odds = bounded_lattice(4, 4), PermuteAndFlip(1), float(np.exp(-1.0))
    by_recurrence = permute_and_flip(lattice, odds) * powers(lattice, odds)
    vectors = _score_vectors()
    pmf = np.concatenate([[mechanism.pmf(q)[q.index(-2 * s)] for s in sorted({-x // 2 for x in q})] for q in vectors])
    difference = float(np.max(np.abs(by_recurrence / pmf - 1)))
    return f"relative difference {difference:.1e}", difference < _ROUNDING


@_claim("Theorem 2", "<= 1")
def _dominance(_: Material) -> Found:
    """Permute-and-flip is never worse: its error relative to the exponential mechanism's is at most one.

    On the same score vectors, at three values of ε.
    """
    largest = max(
        expected_error(PermuteAndFlip(e), q) / expected_error(ExponentialMechanism(e), q)
        for e in (0.1, 1, 5)
        for q in _score_vectors()
        if min(q) < 0
    )
    return f"largest {largest:.6f}", largest <= 1


def _errors_by_p(material: Material) -> dict[str, dict[float, float]]:
    return figures.ERROR_BY_P.table(material).curves("mechanism", "p", "expected_error")


@_claim("Section 4.1, Figure 1 (a)", "< 1")
def _lower(material: Material) -> Found:
    """The error of permute-and-flip is lower for all p between zero and one."""
    errors = _errors_by_p(material)
    largest = max(error / errors[EXPONENTIAL][p] for p, error in errors[FLIP].items() if p < 1)
    return f"largest error relative to the exponential mechanism's {largest:.6f}", largest < 1


@_claim("Section 4.1, Figure 1 (a)", f"near 1/{figures.ERROR_BY_P_CANDIDATES}")
def _in_the_middle(material: Material) -> Found:
    """The maximum error occurs in the middle, near p = 1/n, for n = 3.

    Counted as near: within a factor of two.
    """
    tops = {name: max(error, key=lambda p: error[p]) for name, error in _errors_by_p(material).items()}
    return listed(tops, 3), all(0.5 < p * figures.ERROR_BY_P_CANDIDATES < 2 for p in tops.values())


@_claim("Section 4.1, Figure 1 (b)", "1 to 2")
def _between_one_and_two(material: Material) -> Found:
    """The ratio of expected errors is always between one and two.

    That it is below two for all scores is proven in docs/theory.md; the paper leaves it open.
    """
    curves = figures.RATIO_BY_P.table(material).curves("n", "p", "ratio")
    ratios = [value for curve in curves.values() for p, value in curve.items() if p < 1]
    return f"{min(ratios):.6f} to {max(ratios):.6f}", min(ratios) >= 1 - _ROUNDING and max(ratios) < 2


@_claim("Section 4.1, Figure 1 (b)", "2")
def _towards_two(_: Material) -> Found:
    """The ratio approaches two as p tends to zero.

    At p = 1e-9.
    """
    limits = {f"n = {n:,}": figures.ratio(1e-9, n) for n in figures.RATIO_BY_P_CANDIDATES}
    return listed(limits, 7), all(2 - 1e-5 < value < 2 for value in limits.values())


@_claim("Section 4.1, Figure 1 (b)", "decreases")
def _needed_p(material: Material) -> Found:
    """The p that a fixed ratio needs decreases with n."""
    curves = figures.RATIO_BY_P.table(material).curves("n", "p", "ratio")
    needed = {f"n = {n:,}": max(p for p, value in curve.items() if value >= 1.5) for n, curve in curves.items()}
    return "for a ratio of 1.5, " + listed(needed, 3), _falls(needed)


@_claim("Section 4.1, Figure 1 (b)", "1")
def _towards_one(_: Material) -> Found:
    """The ratio converges to one for every p > 0 as n goes to infinity."""
    many = {f"n = {n:,}": figures.ratio(0.1, n) for n in (10, 1000, 10**5, 10**7)}
    return "at p = 0.1, " + listed(many, 8), _falls(many) and many["n = 10,000,000"] < 1 + 1e-5


def _worst_cases(material: Material) -> dict[str, dict[int, float]]:
    return figures.WORST_CASE_BY_N.table(material).curves("curve", "n", "expected_error")


@_claim("Proposition 5, Figure 1 (c)", "<= 4")
def _factor_of_four(material: Material) -> Found:
    """The upper bounds are within a factor of four of the worst cases."""
    curves = _worst_cases(material)
    flip, exponential, upper = curves[FLIP], curves[EXPONENTIAL], curves[figures.UPPER]
    inside = all(curves[figures.LOWER][n] <= flip[n] <= exponential[n] <= upper[n] for n in flip)
    ends = {f"n = {n:,}": upper[n] / flip[n] for n in (min(flip), max(flip))}
    holds = inside and max(upper[n] / flip[n] for n in flip) <= 4
    return "upper bound over permute-and-flip's worst case, " + listed(ends), holds


@_claim("Section 4.1, Figure 1 (c)", "largest at n = 2")
def _largest_at_two(material: Material) -> Found:
    """The ratio of worst-case errors is largest at n = 2 and decays towards one."""
    curves = _worst_cases(material)
    ratios = {n: curves[EXPONENTIAL][n] / error for n, error in curves[FLIP].items()}
    largest = max(ratios, key=lambda n: ratios[n])
    ends = {f"n = {n:,}": ratios[n] for n in (min(ratios), max(ratios))}
    return f"largest at n = {largest}; " + listed(ends), largest == 2 and _falls(ratios)


def _errors_by_gap(material: Material) -> dict[str, dict[float, float]]:
    # The errors of each mechanism by the gap c, where it is not zero.
    curves = figures.NOISY_MAX_BY_GAP.table(material).curves("mechanism", "c", "expected_error")
    return {name: {c: error for c, error in curve.items() if c < 0} for name, curve in curves.items()}


@_claim("Appendix, Figure 4", "below 1, then above 1")
def _crossing(material: Material) -> Found:
    """Report noisy max is better than the exponential mechanism for c near zero and worse far below."""
    errors = _errors_by_gap(material)
    relative = {c: error / errors[EXPONENTIAL][c] for c, error in errors[NOISY_MAX].items()}
    crossing = next(c for c in reversed(relative) if relative[c] > 1)
    ends = {f"c = {c:g}": relative[c] for c in (max(relative), -1.0, min(relative))}
    holds = all(value < 1 if c > crossing else value > 1 for c, value in relative.items())
    return f"relative error {listed(ends)}; they cross near c = {crossing:g}", holds


@_claim("Appendix, Figure 4", "> 1")
def _better_than_both(material: Material) -> Found:
    """Permute-and-flip is better than both for all c."""
    errors = _errors_by_gap(material)
    least = min(errors[name][c] / error for name in (EXPONENTIAL, NOISY_MAX) for c, error in errors[FLIP].items())
    return f"smallest error relative to permute-and-flip's {least:.6f}", least > 1


def _curve(material: Material, size: tuple[int, int], mechanism: str = "permute_and_flip") -> dict[float, float]:
    ratios = figures.ratio_curve(*size, material.epsilons)
    return {e: getattr(ratio, mechanism) for e, ratio in zip(material.epsilons, ratios, strict=True)}


def _points(material: Material) -> list[tuple[float, float]]:
    return [point for size in figures.LATTICES for point in _curve(material, size).items()]


@_claim("Proposition 6", "no improvement")
def _pareto(_: Material) -> Found:
    """Permute-and-flip is Pareto optimal: a mechanism that is never worse is never better."""
    found = {epsilon: pareto_ratios(4, 4, epsilon) for epsilon in _PARETO}
    slack = max(abs(ratios.permute_and_flip - 1) for ratios in found.values())
    others = listed({f"ε = {epsilon}": ratios.exponential for epsilon, ratios in found.items()})
    remark = f"By a linear program, n = k = 4. The same program improves the exponential mechanism by {others}."
    return f"largest improvement found {slack:.1e}", slack < 1e-6, remark


@_claim("Theorem 3", "0.96")
def _threshold(_: Material) -> Found:
    """Permute-and-flip is optimal on average for ε of at least log((3 + √5)/2)."""
    return f"{THRESHOLD:.6f}", rounds_to(THRESHOLD, "0.96")


@_claim("Theorem 3, its proof", "holds")
def _proof(_: Material) -> Found:
    """The dual solution is feasible, obeys the finer bounds and has the value of permute-and-flip."""
    proofs = [certify(n, k, _ODDS) for n, k in figures.LATTICES]
    exact = [one.proves_optimality and one.finer_bounds and one.value == one.permute_and_flip for one in proofs]
    remark = f"In rational arithmetic with exp(-ε) = {_ODDS}; no solver is used."
    return f"holds exactly on {sum(exact)} of {len(exact)} lattices", all(exact), remark


@_claim("Section 5, Figure 2 (a, b)", "1")
def _one_above(material: Material) -> Found:
    """The optimality ratio of permute-and-flip is one above the threshold."""
    above = [abs(value - 1) for e, value in _points(material) if e >= THRESHOLD]
    last = max((e for e, value in _points(material) if value > 1 + 1e-6), default=0.0)
    remark = f"By the solver, over {len(above)} programs. On these lattices it exceeds one only up to ε = {last:.3g}."
    return f"largest difference from one {max(above):.1e}", max(above) < _SOLVER and last < THRESHOLD, remark


@_claim("Section 5, Figure 2 (a, b)", "1.01")
def _largest_ratio(material: Material) -> Found:
    """The largest measured optimality ratio of permute-and-flip is about 1.01."""
    worst = max(value for _, value in _points(material))
    return f"{worst:.4f}", rounds_to(worst, "1.01")


@_claim("Section 5, Figure 2 (b)", "grows")
def _grows_with_k(material: Material) -> Found:
    """The ratio grows slowly with k.

    Largest ratio over ε, n = 4.
    """
    largest = {f"k = {size[1]}": max(_curve(material, size).values()) for size in figures.BY_DEPTH}
    return listed(largest, 5), all(np.diff(list(largest.values())) > 0)


@_claim("Section 5, Figure 2 (a)", "no strong dependence")
def _hardly_depends_on_n(material: Material) -> Found:
    """The ratio shows no strong dependence on n.

    Largest ratio over ε, k = 4. Counted as not strong: they differ by less than 0.005.
    """
    largest = {f"n = {size[0]}": max(_curve(material, size).values()) for size in figures.BY_CANDIDATES}
    return listed(largest, 5), max(largest.values()) - min(largest.values()) < 0.005


@_claim("Section 5, Figure 2 (c)", "towards 2")
def _exponential_towards_two(material: Material) -> Found:
    """The ratio of the exponential mechanism increases with ε and approaches two for larger k and ε.

    Counted as approaching: rising in ε and in k, and above 1.9 for k = 8.
    """
    curves = {f"k = {size[1]}": list(_curve(material, size, "exponential").values()) for size in figures.BY_DEPTH}
    ends = {name: curve[-1] for name, curve in curves.items()}
    rising = all(np.diff(curve).min() > -_SOLVER for curve in curves.values())
    holds = rising and all(np.diff(list(ends.values())) > 0) and 1.9 < ends["k = 8"] < 2
    return f"at ε = {material.epsilons[-1]:g}, " + listed(ends), holds


@_claim("Section 5, Figure 2", "1")
def _one_at_zero(material: Material) -> Found:
    """The ratio approaches one for both mechanisms as ε tends to zero.

    The largest over all lattices.
    """
    first = material.epsilons[0]
    flip = max(_curve(material, size)[first] for size in figures.LATTICES)
    exponential = max(_curve(material, size, "exponential")[first] for size in figures.LATTICES)
    ours = f"at ε = {first:g}, permute-and-flip {flip:.6f}, exponential mechanism {exponential:.4f}"
    return ours, flip < 1.0001 and exponential < 1.01


@dataclass(frozen=True)
class Printed:
    task: str
    epsilon: str
    ratio: str
    error: str
    budget: str


PRINTED = (Printed("mode", "0.04", "1.84", "5.4", "1.27"), Printed("median", "0.01", "1.93", "13.7", "1.19"))
# The numbers that are printed, and what they are in an experiment at an epsilon.
NUMBERS: dict[str, tuple[str, Callable[[Experiment, float], float]]] = {
    "ratio": ("the ratio of expected errors", Experiment.ratio),
    "error": ("the expected error of permute-and-flip", lambda experiment, epsilon: experiment.error(FLIP, epsilon)),
    "budget": ("the budget that the exponential mechanism needs, relative,", Experiment.budget),
}


def hepth_claims(printed: Printed) -> Iterator[Row]:
    # The claims about one task on HEPTH: the printed numbers, and the range of the ratio.
    hepth = f"HEPTH {printed.task}:"
    for name, (what, figure) in NUMBERS.items():
        statement, number = f"{hepth} {what} at ε = {printed.epsilon}.", getattr(printed, name)
        yield Row("Section 6", statement, number, partial(_number, printed, name, figure), needs_data=True)
    yield Row(
        "Section 6, Figure 3",
        f"{hepth} the ratio ranges from one for small ε to two for large ε.",
        "1 to 2",
        lambda material: _range(material.on("HEPTH", printed.task)),
        "At the ends of the figure. Counted as one: below 1.1; as two: above 1.8.",
        needs_data=True,
    )


def _number(printed: Printed, name: str, figure: Callable[[Experiment, float], float], material: Material) -> Found:
    # A printed number, at the printed epsilon, which is rounded, and at the epsilon that gives the paper's error.
    experiment = material.on("HEPTH", printed.task)
    met = experiment.epsilon(FLIP, float(printed.error))
    at_printed, at_met = figure(experiment, float(printed.epsilon)), figure(experiment, met)
    is_met = rounds_to(met, printed.epsilon)
    does = "rounds" if is_met else "does not round"
    remark = f"The paper's error of {printed.error} is reached at the second ε, which {does} to the printed one."
    if name == "error" and experiment.people != 1:
        people = float(printed.error) * experiment.people
        remark += f" Scores are twice the people, so {printed.error} is {people:.2g} people."
    ours = f"{at_printed:.4g} at ε = {printed.epsilon}; {at_met:.4g} at ε = {met:.4g}"
    return ours, is_met and rounds_to(at_met, getattr(printed, name)), remark


def _range(experiment: Experiment) -> Found:
    epsilons = figures.error_table([experiment]).column("epsilon")
    low, high = (experiment.ratio(end) for end in (min(epsilons), max(epsilons)))
    ends = {f"ε = {min(epsilons):.3g}": low, f"ε = {max(epsilons):.3g}": high}
    return listed(ends), low < 1.1 and _CLOSE < high < 2


CLAIMS += [row for printed in PRINTED for row in hepth_claims(printed)]


@_claim("Section 6, Figure 3 (c)", "close to 2", needs_data=True)
def _close_to_two(material: Material) -> Found:
    """Where the exponential mechanism's error is 50, the improvement is close to two on all data sets (median)."""
    table = figures.bar_table(material.of("median")).where(mechanism=FLIP)
    errors = zip(table.column("data_set"), table.column("expected_error"), strict=True)
    improvements = {name: figures.ERROR / error for name, error in errors}
    short = ", ".join(name for name, factor in improvements.items() if factor < _CLOSE)
    remark = f"Counted as close: at least {_CLOSE}." + (f" Not so on {short}." if short else "")
    return listed(improvements), not short, remark


@_claim("Section 4.1, Section 6", "<= 2", needs_data=True)
def _never_above(material: Material) -> Found:
    """A ratio greater than two was never observed.

    docs/theory.md proves it for all scores.
    """
    tables = [figures.error_table([experiment]) for experiment in material.of(*TASKS)]
    curves = [table.curves("mechanism", "epsilon", "expected_error") for table in tables]
    ratios = [error / curve[FLIP][epsilon] for curve in curves for epsilon, error in curve[EXPONENTIAL].items()]
    return f"largest {max(ratios):.6f} of {len(ratios)}", max(ratios) < 2
