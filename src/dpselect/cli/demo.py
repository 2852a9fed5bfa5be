"""`dpselect demo`: a private question to a made-up hospital, explained in plain words."""

import math
from collections import Counter

import numpy as np
from rich.console import Console
from rich.table import Table

from dpselect import PermuteAndFlip
from dpselect.cli.console import busy, clean_errors
from dpselect.cli.hospital import DIAGNOSES, PATIENTS, VISITS, Integers, make_visits, patients_per_diagnosis

_EPSILONS = ("1", "0.1", "0.01", "0.002")
_ANSWERS = 5
_DRAWS = 2_000

_INTRODUCTION = f"""
[bold]Which diagnosis do most patients have?[/bold]
We ask a made-up hospital: {VISITS:,} visits of {PATIENTS:,} patients, {len(DIAGNOSES)} diagnoses.

The exact winner can depend on a single patient, and so tell on them. A private answer is drawn at random instead, \
with a strong pull towards the best. [bold]Epsilon[/bold] says how private: with or without any one patient in the \
table, the probability of each answer changes at most by the factor in the second column (e to the power epsilon). \
A smaller epsilon hides patients better and misses the winner more often.
"""

_NEXT = """
[bold]Try next[/bold]
  dpselect select --help    choose by scores in your own CSV file; in Python:
  >>> from dpselect import PermuteAndFlip
  >>> PermuteAndFlip(epsilon="0.1").select([310, 250, 120])
"""


def demo() -> None:
    """Answer a private question on a hospital table that the demo makes itself.

    It takes a second or two, reads no file and writes none.

    Example: dpselect demo
    """
    with clean_errors():
        with busy("Making a hospital ..."):
            counts = patients_per_diagnosis(make_visits())
        table = _table(counts)
    console = Console(highlight=False)
    console.print(_INTRODUCTION)
    console.print(_truth(counts))
    console.print(table)
    console.print(_notes())
    console.print(_NEXT, end="")


def _mechanism(epsilon: str) -> PermuteAndFlip:
    # One patient adds at most one to each count, and never lowers any.
    return PermuteAndFlip(epsilon, sensitivity=1, monotonic=True)


def _table(counts: Integers) -> Table:
    table = Table()
    table.add_column("epsilon", justify="right")
    table.add_column("one patient changes a probability at most by", justify="right", max_width=17)
    table.add_column(f"{_ANSWERS} private answers")
    table.add_column("patients short of the best (estimate)", justify="right", max_width=16)
    for epsilon in _EPSILONS:
        mechanism = _mechanism(epsilon)
        factor = f"factor {math.exp(mechanism.epsilon):.3f}"
        table.add_row(epsilon, factor, _answers(mechanism, counts), f"{_shortfall(mechanism, counts):,.1f}")
        table.add_section()
    return table


def _answers(mechanism: PermuteAndFlip, counts: Integers) -> str:
    """The private answers, each drawn afresh; in green those that are the true winner."""
    answers = Counter(mechanism.select(counts) for _ in range(_ANSWERS))
    return "\n".join(
        f"[{'green' if counts[index] == counts.max() else 'yellow'}]{times} x {DIAGNOSES[index].name}[/]"
        for index, times in answers.most_common()
    )


def _shortfall(mechanism: PermuteAndFlip, counts: Integers) -> float:
    """The average number of patients that the answer has fewer than the best, from simulated answers."""
    return float(counts.max() - counts[mechanism.simulate(counts, _DRAWS)].mean())


def _truth(counts: Integers) -> str:
    second, best = (int(index) for index in np.argsort(counts)[-2:])
    return (
        f"[bold]True answer:[/bold] {_name(best)}, {counts[best]:,} patients; next is {_name(second)} with"
        f" {counts[second]:,}.\nWe show it only because these data are made up. Of real patients it stays secret."
    )


def _notes() -> str:
    guarantee = _mechanism("0.1").guarantee
    return (
        f"The last column is an estimate from {_DRAWS:,} simulated answers: how many patients fewer than the true"
        " winner the answer has, on average.\n"
        f"[bold]Guarantee[/bold] of one answer with epsilon 0.1: {guarantee}. Pure means without exception; zCDP is"
        " the same promise in the unit in which many answers are added up.\n"
        f"[bold]Answers add up:[/bold] the {_ANSWERS} of a row cost {_ANSWERS} times its epsilon. With real data,"
        " ask once."
    )


def _name(index: int) -> str:
    diagnosis = DIAGNOSES[index]
    return f"{diagnosis.name} ({diagnosis.code})"
