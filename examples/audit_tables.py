"""Audit our own table questions (top-k, a quantile, and a mode for each group) on a small pair of neighbours.

    python examples/audit_tables.py [--runs N]

Or, in this folder, `dpselect audit --callable audit_tables:top_two --inputs audit_tables:NEIGHBOURS --epsilon 2`.
The outputs are a list, a number and a dict. The inputs are two tables; the second one has one patient less.
"""

import argparse
from typing import Any

import pyarrow as pa

import dpselect
from dpselect.audit import audit
from dpselect.tables import Table

EPSILON = "2"
DIAGNOSES, WARDS = ["flu", "gout", "rash"], ["east", "west"]  # public lists

VISITS = pa.table(
    {
        "patient": [1, 1, 2, 3],
        "diagnosis": ["flu", "flu", "flu", "gout"],
        "cost": [90, 70, 20, 40],
        "ward": ["east", "east", "west", "west"],
    }
)
# Opened once; only the questions run many times. The second table leaves out the first patient.
NEIGHBOURS = {
    "without patient 1": (
        dpselect.open_table(VISITS, person="patient"),
        dpselect.open_table(VISITS.slice(2), person="patient"),
    )
}


def top_two(table: Table) -> list[str]:
    """The two most common diagnoses, best first."""
    found: list[str] = table.top_k("diagnosis", 2, candidates=DIAGNOSES, epsilon=EPSILON, ordered=True).value
    return found


def cost_of_nine_in_ten(table: Table) -> int:
    """The cost that nine in ten patients stay below."""
    found: int = table.quantile("cost", "0.9", lower=0, upper=100, step=10, epsilon=EPSILON).value
    return found


def mode_of_each_ward(table: Table) -> dict[str, Any]:
    """The most common diagnosis in each ward."""
    wards = table.group_by("ward", groups=WARDS)
    found: dict[str, Any] = wards.mode("diagnosis", candidates=DIAGNOSES, epsilon=EPSILON).value
    return found


QUESTIONS = (top_two, cost_of_nine_in_ten, mode_of_each_ward)


def main(runs: int) -> None:
    """Audit each question."""
    for question in QUESTIONS:
        found = audit(question, EPSILON, inputs=NEIGHBOURS, runs=runs)
        print(f"{question.__name__}: {found.verdict}")
        print(f"  epsilon >= {found.lower_bound:.3f} follows from the event: {found.worst.description}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    main(parser.parse_args().runs)
