"""One row of the table: what it measures, and what came out."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import units
from benchmarks.bars import Bar, Figures
from benchmarks.contestant import Contestant, NotAvailable
from benchmarks.scores import Data
from benchmarks.stopwatch import Effort, interleaved_medians, timed

FAILED = "FAILED"


@dataclass(frozen=True)
class Case:
    """A row to be measured."""

    what: str
    against: str
    bar: Bar
    measure: Callable[[Effort], Figures]
    epsilon: str = ""
    n: str = ""
    shape: str = ""
    dtype: str = ""
    show: Callable[[float], str] = units.seconds
    rows: int = 0  # of long rows, how many candidates or rows of a table they see
    is_of_errors: bool = False  # of answers, which a busy machine does not change

    @property
    def label(self) -> str:
        """All that tells the row from others."""
        return " ".join(filter(None, (self.what, self.epsilon, self.n, self.shape, self.dtype, self.against)))


@dataclass(frozen=True)
class Row:
    """A row that was measured, or whose `note` says why it could not be."""

    case: Case
    figures: Figures | None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None where there is no bar, or no figure."""
        return None if self.figures is None else self.case.bar.is_met(self.figures)

    @property
    def verdict(self) -> str:
        """The judgement in words."""
        if self.figures is None:
            return self.note
        return {True: "met", False: "NOT MET", None: "no bar"}[self.is_met]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of the table's columns."""
        case = self.case
        subject = (case.what, case.epsilon, case.n, case.shape, case.dtype, case.against)
        return (*subject, *self.results, case.bar.text, self.verdict)

    @property
    def results(self) -> tuple[str, str, str]:
        """Our figure, the reference's and the ratio as text."""
        if self.figures is None:
            return "", "", ""
        show, reference = self.case.show, self.figures.reference
        return show(self.figures.ours), "" if reference is None else show(reference), self.case.bar.ratio(self.figures)


def measured(case: Case, effort: Effort) -> Row:
    """The row of a case. One without a bar takes half the time; one that fails does not take the others with it."""
    try:
        return Row(case, case.measure(effort if case.bar.text else effort.half))
    except NotAvailable as missing:
        return Row(case, None, str(missing))
    except Exception:
        traceback.print_exc()
        return Row(case, None, FAILED)


def contest(ours: Contestant, reference: Contestant, data: Data, bar: Bar) -> Case:
    """Our time beside the reference's on the same scores."""
    return _timing([ours, reference], reference.name, data, bar)


def solo(ours: Contestant, data: Data, bar: Bar) -> Case:
    """Our time alone."""
    return _timing([ours], "", data, bar)


def _timing(contestants: list[Contestant], against: str, data: Data, bar: Bar) -> Case:
    def figures(effort: Effort) -> Figures:
        scores = data.scores()
        return Figures(*interleaved_medians([timed(one.prepared(scores)) for one in contestants], effort))

    ours = contestants[0]
    return Case(ours.name, against, bar, figures, ours.epsilon, data.size, data.shape, data.dtype)
