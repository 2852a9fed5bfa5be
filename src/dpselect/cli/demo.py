"""`dpselect demo`: private questions to a made-up hospital, explained in plain words."""

import math
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Box

import dpselect
from dpselect import PermuteAndFlip
from dpselect.cli.console import busy, clean_errors, print_line
from dpselect.demo_data import (
    COUNTIES,
    DIAGNOSES,
    HIGHEST_COST,
    PATIENTS,
    VISITS,
    Visits,
    make_visits,
    patients_per_diagnosis,
    typical_costs,
)
from dpselect.errors import InvalidValue
from dpselect.tables.table import Table

_EPSILONS = ("1", "0.1", "0.01", "0.002")
_RUNS = 5
_CODES = [diagnosis.code for diagnosis in DIAGNOSES]
_NAMES = {diagnosis.code: diagnosis.name for diagnosis in DIAGNOSES}

_INTRODUCTION = f"""
[bold]Which diagnosis do most patients have?[/bold]
We ask a made-up hospital: a table of {VISITS:,} visits of {PATIENTS:,} patients, {len(DIAGNOSES)} diagnoses.

The exact winner can depend on a single patient, and so tell on them. A private answer is drawn at random instead, \
with a strong pull towards the best. [bold]Epsilon[/bold] says how private: with or without any one patient in the \
table, the probability of each answer changes at most by the factor in the second column (e to the power epsilon). \
A smaller epsilon hides patients better and misses the winner more often.

  >>> visits = dpselect.open_table("visits.csv", person="patient")
  >>> visits.mode("diagnosis", candidates=["I10", "E11", "M54", ...], epsilon="0.1")
"""

_NEXT = """
[bold]Try next:[/bold] write this table and ask it on the command line; or choose by scores of your own.
{command} demo --save visits.csv
{command} mode visits.csv --column diagnosis --candidates I10,E11,M54,J06 --person patient --epsilon 0.1
{command} median visits.csv --column cost --lower 0 --upper 100000 --person patient --epsilon 0.1
{command} select --help
"""

_ENDINGS = (".csv", ".parquet")
_Save = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write the made-up table to this .csv or .parquet file, and stop.")
]


def demo(save: _Save = None) -> None:
    """Answer private questions on a hospital table that the demo makes itself.

    It takes a few seconds and reads no file. The table is made up, so the true answers can be shown beside.

    Example: dpselect demo

    Example: dpselect demo --save visits.csv
    """
    with clean_errors():
        if save is not None and Path(save).suffix.lower() not in _ENDINGS:
            raise InvalidValue(f"--save {save}: the name must end with {' or '.join(_ENDINGS)}")
        with busy("Making a hospital ..."):
            visits = make_visits()
        if save is not None:
            _save(visits, save)
            return
        with busy("Asking ..."):
            parts = _mode_part(visits), _median_part(visits), _county_part(visits)
    console = Console(highlight=False)
    for part in parts:
        for piece in part:
            console.print(piece)
    # No line breaks of ours: a command that is copied must stay one line.
    console.print(_NEXT.format(command=escape(_command())), end="", soft_wrap=True)


def _command() -> str:
    """What to type here: the name, if the shell finds it, else the path by which it was run."""
    run_by = sys.argv[0]
    return "dpselect" if shutil.which("dpselect") or Path(run_by).name != "dpselect" else run_by


def _save(visits: Visits, path: str) -> None:
    # Arrow is slow to import, and no other command needs it at once.
    from pyarrow import csv, parquet  # noqa: PLC0415

    try:
        if path.lower().endswith(".parquet"):
            parquet.write_table(visits.table(), path)
        else:
            csv.write_csv(visits.table(), path)
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be written ({error.strerror or type(error).__name__})") from None
    print_line(f"{VISITS:,} visits written to {path}: columns patient, county, diagnosis, cost.")


def _open(visits: Visits) -> Table:
    return dpselect.open_table(visits.table(), person="patient")


def _mode_part(visits: Visits) -> list[Any]:
    counts, table = patients_per_diagnosis(visits), _open(visits)
    second, best = (int(index) for index in np.argsort(counts)[-2:])
    truth = (
        f"[bold]True answer:[/bold] {_name(best)}, {counts[best]:,} patients; next is {_name(second)} with"
        f" {counts[second]:,}.\nWe show it only because these data are made up. Of real patients it stays secret."
    )
    shown = Box()
    shown.add_column("epsilon", justify="right")
    shown.add_column("one patient changes a probability at most by", justify="right", max_width=17)
    shown.add_column(f"{_RUNS} private answers")
    shown.add_column("what to expect", max_width=30)
    for epsilon in _EPSILONS:
        # One patient adds at most one to each count, and never lowers any: what the table derives by itself.
        mechanism = PermuteAndFlip(epsilon, sensitivity=1, monotonic=True)
        answers = _several_modes(table, epsilon)
        expected = (
            f"on average {dpselect.analysis.expected_error(mechanism, counts):,.1f} patients fewer than the best has"
        )
        factor = f"factor {math.exp(mechanism.epsilon):.3f}"
        shown.add_row(epsilon, factor, _coloured(answers, DIAGNOSES[best].code), expected)
        shown.add_section()
    guarantee = PermuteAndFlip("0.1").guarantee
    notes = (
        f"[bold]Guarantee[/bold] of one answer with epsilon 0.1: {guarantee}. Pure means without exception; zCDP is"
        " the same promise in the unit in which many answers are added up.\n"
        f"[bold]Answers add up:[/bold] the {_RUNS} of a row cost {_RUNS} times its epsilon. With real data, ask once.\n"
    )
    return [_INTRODUCTION, truth, shown, notes]


def _median_part(visits: Visits) -> list[Any]:
    costs, table = np.sort(typical_costs(visits)), _open(visits)
    true = int(costs[(costs.size - 1) // 2])
    answers = [table.median("cost", lower=0, upper=HIGHEST_COST, epsilon="0.1").value for _ in range(_RUNS)]
    missed = np.mean([abs(int(np.searchsorted(costs, answer)) - costs.size / 2) for answer in answers])
    text = (
        f"[bold]What does a visit cost?[/bold] Half of the patients typically pay less than {true:,} (true median).\n"
        f"{_RUNS} private answers with epsilon 0.1, among all whole numbers up to {HIGHEST_COST:,}:"
        f" [green]{', '.join(f'{answer:,}' for answer in answers)}[/green]\n"
        f"Instead of half, about {missed:,.0f} patients more or fewer lie below these answers, of {costs.size:,}.\n"
    )
    return [text]


def _county_part(visits: Visits) -> list[Any]:
    grouped = _open(visits).group_by("county", groups=list(COUNTIES))
    answers = grouped.mode("diagnosis", candidates=_CODES, epsilon="0.1").value
    shown = Box(title="The most common diagnosis of each county, epsilon 0.1 for all counties together")
    shown.add_column("county")
    shown.add_column("private answer")
    shown.add_column("true answer")
    for position, county in enumerate(COUNTIES):
        best = int(patients_per_diagnosis(visits, position).argmax())
        shown.add_row(county, _coloured(Counter([answers[county]]), _CODES[best], times=False), _NAMES[_CODES[best]])
    return [shown]


def _several_modes(table: Table, epsilon: str) -> Counter[str]:
    """Private answers, each drawn afresh."""
    return Counter(table.mode("diagnosis", candidates=_CODES, epsilon=epsilon).value for _ in range(_RUNS))


def _coloured(answers: Counter[str], best: str, times: bool = True) -> str:
    """The answers with how often each came; in green those that are the true winner."""
    return "\n".join(
        f"[{'green' if code == best else 'yellow'}]{f'{count} x ' if times else ''}{_NAMES[code]}[/]"
        for code, count in answers.most_common()
    )


def _name(index: int) -> str:
    diagnosis = DIAGNOSES[index]
    return f"{diagnosis.name} ({diagnosis.code})"
