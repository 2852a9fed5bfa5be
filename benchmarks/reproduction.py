"""The rows about the linear programs and the paper's report. They take long, so each is measured once."""

import os
import tempfile
from collections.abc import Iterator
from functools import partial

from benchmarks.bars import Bar, Figures, at_most_seconds, no_bar
from benchmarks.case import Case
from benchmarks.contestant import NotAvailable
from benchmarks.stopwatch import Call, Effort, timed
from dpselect.errors import DPSelectError
from dpselect.optimality import certify, solve
from dpselect.optimality.lattice import bounded_lattice, variable_count

_CURVE_POINTS = 250


def cases() -> Iterator[Case]:
    """Programs larger than the paper's, with and without their proof, and the whole report."""
    size = ("n = k = 8", f"{variable_count(8, 8):,} variables")
    large = partial(solve, 8, 10, always_solve=True, most_variables=10**5)
    large_size = ("n = 8, k = 10", f"{variable_count(8, 10):,} variables")
    yield _once("optimality.solve, proven", partial(solve, 8, 8, 1), no_bar(), "1", *size)
    yield _once("optimality.solve, HiGHS", partial(solve, 8, 8, 1, always_solve=True), no_bar(), "1", *size)
    yield _once("optimality.solve, HiGHS", partial(solve, 8, 8, 0.5), no_bar(), "0.5", *size)
    yield _once("optimality.solve, HiGHS", partial(solve, 8, 8, 0.1), no_bar(), "0.1", *size)
    yield _once("optimality.solve, HiGHS", partial(large, 1), at_most_seconds(60), "1", *large_size)
    yield _once("optimality.solve, HiGHS", partial(large, 0.5), at_most_seconds(60), "0.5", *large_size)
    yield _once("optimality.certify, exact", partial(certify, 8, 8, "1/3"), no_bar(), "log 3", *size)
    yield _once("dpselect paper", _report, at_most_seconds(180), "0.01:10", "", f"{_CURVE_POINTS} epsilons")


def _once(what: str, call: Call, bar: Bar, *columns: str) -> Case:
    def figures(_: Effort) -> Figures:
        bounded_lattice.cache_clear()  # a user's first call builds the lattice
        return Figures(timed(call)())

    return Case(what, "", bar, figures, *columns)


def _report() -> None:
    """The report with data, as a user makes it for the first time."""
    from dpselect.research.figures import ratio_curve  # noqa: PLC0415 - needs matplotlib
    from dpselect.research.reproduce import reproduce  # noqa: PLC0415

    ratio_curve.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = reproduce(folder, os.environ.get("DPSELECT_DPBENCH"), points=_CURVE_POINTS)
        except (ImportError, DPSelectError) as error:
            raise NotAvailable(str(error)) from None
    if report.missing:
        raise NotAvailable("no data: name their folder by DPSELECT_DPBENCH")
