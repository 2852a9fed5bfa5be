"""The claims of the paper's Section 6: mode and median of the DPBench data sets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpselect.research.paper.claims import NO_DATA, PaperClaim, listed, rounds_to
from dpselect.research.paper.experiment import TASKS, Experiment, Material
from dpselect.research.paper.figures_of_data import ERROR, bar_table, error_table
from dpselect.research.plotting import EXPONENTIAL, FLIP

_CLOSE = 1.8


@dataclass(frozen=True)
class Printed:
    """The numbers in the paper about one task on HEPTH."""

    task: str
    epsilon: str
    ratio: str
    error: str
    budget: str


PRINTED = (Printed("mode", "0.04", "1.84", "5.4", "1.27"), Printed("median", "0.01", "1.93", "13.7", "1.19"))


def claims(material: Material) -> Iterator[PaperClaim]:
    """All claims, in the order of the paper. Without data, none is checked."""
    for printed in PRINTED:
        if material.experiments:
            yield from _hepth(material.experiments.on("HEPTH", printed.task), printed)
        else:
            yield from _unchecked(printed)
    if material.experiments:
        yield from _all_data_sets(material)
    else:
        yield PaperClaim("Section 6, Figure 3 (c)", _FACTOR_OF_TWO, "close to 2", NO_DATA, None)
        yield PaperClaim("Section 4.1, Section 6", _NEVER_ABOVE, "<= 2", NO_DATA, None)


_FACTOR_OF_TWO = (
    "Where the exponential mechanism's error is 50, the improvement is close to two on all data sets (median)."
)
_NEVER_ABOVE = "A ratio greater than two was never observed."


def _statements(printed: Printed) -> tuple[tuple[str, str], ...]:
    at = f"at ε = {printed.epsilon}"
    return (
        (f"HEPTH {printed.task}: the ratio of expected errors {at}.", printed.ratio),
        (f"HEPTH {printed.task}: the expected error of permute-and-flip {at}.", printed.error),
        (f"HEPTH {printed.task}: the budget that the exponential mechanism needs, relative, {at}.", printed.budget),
    )


def _unchecked(printed: Printed) -> Iterator[PaperClaim]:
    for statement, number in _statements(printed):
        yield PaperClaim("Section 6", statement, number, NO_DATA, None)
    yield PaperClaim("Section 6, Figure 3", _range_statement(printed.task), "1 to 2", NO_DATA, None)


def _range_statement(task: str) -> str:
    return f"HEPTH {task}: the ratio ranges from one for small ε to two for large ε."


def _hepth(experiment: Experiment, printed: Printed) -> Iterator[PaperClaim]:
    """Each number at the printed epsilon, which is rounded, and at the epsilon that gives the paper's error."""
    here = float(printed.epsilon)
    met = experiment.epsilon(FLIP, float(printed.error))
    figures: tuple[Callable[[float], float], ...] = (
        experiment.ratio,
        lambda epsilon: experiment.error(FLIP, epsilon),
        experiment.budget,
    )
    for (statement, number), figure in zip(_statements(printed), figures, strict=True):
        at_printed, at_met = figure(here), figure(met)
        yield PaperClaim(
            "Section 6",
            statement,
            number,
            f"{at_printed:.4g} at ε = {printed.epsilon}; {at_met:.4g} at ε = {met:.4g}",
            rounds_to(met, printed.epsilon) and rounds_to(at_met, number),
            _remark(experiment, printed, met, is_error=figure is figures[1]),
        )
    yield _range(experiment)


def _remark(experiment: Experiment, printed: Printed, met: float, *, is_error: bool) -> str:
    does = "rounds" if rounds_to(met, printed.epsilon) else "does not round"
    remark = f"The paper's error of {printed.error} is reached at the second ε, which {does} to the printed one."
    if not is_error or experiment.people == 1:
        return remark
    people = float(printed.error) * experiment.people
    return f"{remark} Scores are twice the people, so {printed.error} is {people:.2g} people."


def _range(experiment: Experiment) -> PaperClaim:
    table = error_table([experiment])
    low, high = min(table.column("epsilon")), max(table.column("epsilon"))
    ends = {f"ε = {epsilon:.3g}": experiment.ratio(epsilon) for epsilon in (low, high)}
    return PaperClaim(
        "Section 6, Figure 3",
        _range_statement(experiment.task),
        "1 to 2",
        listed(ends),
        experiment.ratio(low) < 1.1 and _CLOSE < experiment.ratio(high) < 2,
        "At the ends of the figure. Counted as one: below 1.1; as two: above 1.8.",
    )


def _all_data_sets(material: Material) -> Iterator[PaperClaim]:
    table = bar_table(material.experiments.of("median")).where(mechanism=FLIP)
    errors = zip(table.column("data_set"), table.column("expected_error"), strict=True)
    improvements = {name: ERROR / error for name, error in errors}
    short = [name for name, factor in improvements.items() if factor < _CLOSE]
    yield PaperClaim(
        "Section 6, Figure 3 (c)",
        _FACTOR_OF_TWO,
        "close to 2",
        listed(improvements),
        not short,
        f"Counted as close: at least {_CLOSE}." + (f" Not so on {', '.join(short)}." if short else ""),
    )
    ratios = [
        error / best
        for task in TASKS
        for experiment in material.experiments.of(task)
        for error, best in _both(experiment)
    ]
    yield PaperClaim(
        "Section 4.1, Section 6",
        _NEVER_ABOVE,
        "<= 2",
        f"largest {max(ratios):.6f} of {len(ratios)}",
        max(ratios) < 2,
        "docs/theory.md proves it for all scores.",
    )


def _both(experiment: Experiment) -> Iterator[tuple[float, float]]:
    table = error_table([experiment])
    errors = {name: error for name, _, error in table.series("mechanism", "epsilon", "expected_error")}
    return zip(errors[EXPONENTIAL], errors[FLIP], strict=True)
