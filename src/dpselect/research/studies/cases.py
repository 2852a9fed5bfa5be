"""The cases of the studies: each larger mechanism on each data set, in each unit, for a few budgets."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpselect._types import Counts, Floats
from dpselect.mechanisms.base import MechanismBase
from dpselect.research.studies.procedures import (
    CHOSEN,
    COMPARED,
    QUERIES,
    ROUNDS,
    Chooser,
    Currency,
    Plan,
    mwem_errors,
    peeling_errors,
    plan,
    random_intervals,
    stepwise_errors,
    synthetic_rows,
)

Run = Callable[[Chooser, Plan, int, np.random.Generator], Floats]
BUDGETS = (0.01, 0.03, 0.1, 0.3, 1.0)
TOPS = (10, 100)
SYNTHETIC = "synthetic"


@dataclass(frozen=True, eq=False)
class Task:
    """A larger mechanism on a data set: how it runs, and how it selects."""

    study: str
    data_set: str
    selections: int
    monotonic: bool
    measured: bool
    run: Run
    unit: str

    def errors(
        self, kind: type[MechanismBase], currency: Currency, budget: float, runs: int, generator: np.random.Generator
    ) -> Floats:
        """The error of each run with selections by this mechanism."""
        bought = plan(currency, kind, budget, self.selections, self.measured)
        chooser = Chooser(kind, bought.epsilon if self.monotonic else bought.epsilon / 2)
        return self.run(chooser, bought, runs, generator)


@dataclass(frozen=True, eq=False)
class Case:
    """A task with a budget; both mechanisms run on it."""

    task: Task
    currency: Currency
    budget: float

    def errors(self, runs: int, generator: np.random.Generator) -> dict[str, Floats]:
        """The errors of both mechanisms, by name."""
        return {kind.name: self.task.errors(kind, self.currency, self.budget, runs, generator) for kind in COMPARED}


def tasks(histograms: Mapping[str, Counts], generator: np.random.Generator) -> Iterator[Task]:
    """All tasks. Without histograms, only the one on synthetic data."""
    rows = synthetic_rows(generator)

    def stepwise(chooser: Chooser, _: Plan, runs: int, generator: np.random.Generator) -> Floats:
        return stepwise_errors(rows, chooser, runs, generator)

    yield Task("stepwise features", SYNTHETIC, CHOSEN, True, False, stepwise, "rows")
    for name, counts in histograms.items():
        for k in TOPS:
            yield Task(f"top {k}", name, k, True, False, partial(_peel, counts, k), "people per bin")
    for name, counts in histograms.items():
        queries = random_intervals(counts.size, QUERIES, generator)
        yield Task("MWEM", name, ROUNDS, False, True, partial(mwem_errors, counts, queries), "people per query")


def _peel(counts: Counts, k: int, chooser: Chooser, _: Plan, runs: int, generator: np.random.Generator) -> Floats:
    return peeling_errors(counts, k, chooser, runs, generator)


def cases(histograms: Mapping[str, Counts], generator: np.random.Generator) -> list[Case]:
    """Every task in every unit with every budget."""
    listed = list(tasks(histograms, generator))
    return [Case(task, currency, budget) for task in listed for currency in Currency for budget in BUDGETS]
