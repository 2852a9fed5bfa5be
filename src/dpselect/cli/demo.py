"""`dpselect demo`: ask a synthetic hospital table private questions, with explanations."""

import math
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Box

import dpselect
from dpselect import PermuteAndFlip
from dpselect.cli.commands import Given, busy, command, print_line, writing
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
from dpselect.questions.options import Option
from dpselect.tables.table import Table

_EPSILONS = ("1", "0.1", "0.01", "0.002")
_RUNS = 5
_CODES = [diagnosis.code for diagnosis in DIAGNOSES]
_NAMES = {diagnosis.code: diagnosis.name for diagnosis in DIAGNOSES}

_INTRODUCTION = f"""
[bold]Which diagnosis do most patients have?[/bold]
We ask a made-up hospital: a table of {VISITS:,} visits by {PATIENTS:,} patients with {len(DIAGNOSES)} diagnoses.

The exact winner can depend on a single patient, and so reveal something about them. A private answer is drawn at \
random instead, and the most common diagnoses are the most likely. [bold]Epsilon[/bold] says how private the answer \
is: adding or removing any one patient changes the probability of each answer by at most the factor in the second \
column (e to the power epsilon). A smaller epsilon protects patients better and misses the winner more often.

  >>> visits = dpselect.open_table("visits.csv", person="patient")
  >>> visits.mode("diagnosis", candidates=["I10", "E11", "M54", ...], epsilon="0.1")
"""

_NEXT = """
[bold]Try next:[/bold] save this table and ask it questions on the command line, or select by your own scores.
{command} demo --save visits.csv
{command} mode visits.csv --column diagnosis --candidates I10,E11,M54,J06 --person patient --epsilon 0.1
{command} top visits.csv -k 3 --column diagnosis --candidates I10,E11,M54,J06 --person patient --epsilon 0.1
{command} median visits.csv --column cost --lower 0 --upper 100000 --person patient --epsilon 0.1
{command} select --help
"""

_ENDINGS = (".csv", ".parquet")


@command(Option(("--save",), "FILE", "Write the table to this .csv or .parquet file, and exit."))
def demo(given: Given) -> None:
    """Answer private questions about a synthetic hospital table.

    Takes a few seconds and reads no file. The table is made up, so the true answers can be shown too.

    Example: dpselect demo

    Example: dpselect demo --save visits.csv
    """
    save = given["save"]
    if save is not None and Path(save).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"--save {save}: the name of the file must end with {' or '.join(_ENDINGS)}")
    with busy("Generating the table ..."):
        visits = make_visits()
    if save is not None:
        _save(visits, save)
        return
    with busy("Asking ..."):
        pieces = [*_ask_mode(visits), _ask_median(visits), _ask_counties(visits)]
    console = Console(highlight=False)
    for piece in pieces:
        console.print(piece)
    # No line breaks here: a command must stay on one line so that it can be copied.
    console.print(_NEXT.format(command=escape(_command())), end="", soft_wrap=True)


def _command() -> str:
    run_by = sys.argv[0]
    return "dpselect" if shutil.which("dpselect") or Path(run_by).name != "dpselect" else run_by


def _save(visits: Visits, path: str) -> None:
    # Opening raises the errors of a path that cannot be written.
    with writing(path, ": check the path and permissions"), open(path, "wb"):
        pass
    relation, written = visits.relation(), str(Path(path).absolute())
    if path.lower().endswith(".parquet"):
        relation.write_parquet(written)
    else:
        relation.write_csv(written)
    print_line(f"{VISITS:,} visits written to {path}: columns patient, county, diagnosis, cost.")


def _open(visits: Visits) -> Table:
    return dpselect.open_table(visits.relation(), person="patient")


def _ask_mode(visits: Visits) -> list[Any]:
    counts, table = patients_per_diagnosis(visits), _open(visits)
    second, best = (int(index) for index in np.argsort(counts)[-2:])
    truth = (
        f"[bold]True answer:[/bold] {_name(best)} with {counts[best]:,} patients, followed by {_name(second)} with"
        f" {counts[second]:,}.\nWe show it only because these data are made up. With real patients it stays secret."
    )
    shown = Box()
    shown.add_column("epsilon", justify="right")
    shown.add_column("one patient changes a probability by at most", justify="right", max_width=17)
    shown.add_column(f"{_RUNS} private answers")
    shown.add_column("what to expect", max_width=30)
    for epsilon in _EPSILONS:
        # One patient adds at most one to each count and lowers none. The table derives this itself.
        mechanism = PermuteAndFlip(epsilon, sensitivity=1, monotonic=True)
        answers = _ask_modes(table, epsilon)
        expected = (
            f"on average {dpselect.analysis.expected_error(mechanism, counts):,.1f} patients fewer than the winner"
        )
        factor = f"factor {math.exp(mechanism.epsilon):.3f}"
        shown.add_row(epsilon, factor, _coloured(answers, DIAGNOSES[best].code), expected)
        shown.add_section()
    guarantee = PermuteAndFlip("0.1").guarantee
    notes = (
        f"[bold]Guarantee[/bold] of one answer with epsilon 0.1: {guarantee}. Pure means without exception."
        " zCDP is a second unit of privacy, which adds up more slowly over many answers.\n"
        f"[bold]Costs add up:[/bold] {_RUNS} answers cost {_RUNS} times the epsilon of one. With real data, ask once.\n"
    )
    return [_INTRODUCTION, truth, shown, notes]


def _ask_median(visits: Visits) -> str:
    costs, table = np.sort(typical_costs(visits)), _open(visits)
    true, patients = int(costs[(costs.size - 1) // 2]), costs.size // 2
    answers = [table.median("cost", lower=0, upper=HIGHEST_COST, epsilon="0.1").value for _ in range(_RUNS)]
    missed = np.mean([abs(int(np.searchsorted(costs, answer)) - patients) / 2 for answer in answers])
    return (
        f"[bold]What does a visit cost?[/bold] Half of the patients typically pay less than {true:,} (true median).\n"
        f"{_RUNS} private answers with epsilon 0.1, out of all whole numbers up to {HIGHEST_COST:,}:"
        f" [green]{', '.join(f'{answer:,}' for answer in answers)}[/green]\n"
        f"On average, the number of patients below an answer differs from half of {patients:,} by {missed:,.0f}.\n"
    )


def _ask_counties(visits: Visits) -> Box:
    grouped = _open(visits).group_by("county", groups=list(COUNTIES))
    answers = grouped.mode("diagnosis", candidates=_CODES, epsilon="0.1").value
    shown = Box(title="The most common diagnosis in each county, with epsilon 0.1 for all counties together")
    shown.add_column("county")
    shown.add_column("private answer")
    shown.add_column("true answer")
    for position, county in enumerate(COUNTIES):
        best = int(patients_per_diagnosis(visits, position).argmax())
        shown.add_row(county, _coloured(Counter([answers[county]]), _CODES[best], times=False), _NAMES[_CODES[best]])
    return shown


def _ask_modes(table: Table, epsilon: str) -> Counter[str]:
    return Counter(table.mode("diagnosis", candidates=_CODES, epsilon=epsilon).value for _ in range(_RUNS))


def _coloured(answers: Counter[str], best: str, times: bool = True) -> str:
    # The true winner is green.
    return "\n".join(
        f"[{'green' if code == best else 'yellow'}]{f'{count} x ' if times else ''}{_NAMES[code]}[/]"
        for code, count in answers.most_common()
    )


def _name(index: int) -> str:
    diagnosis = DIAGNOSES[index]
    return f"{diagnosis.name} ({diagnosis.code})"
