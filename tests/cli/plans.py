"""What the tests of `dpselect plan` share: the cells of its tables, and the errors that the analysis proves."""

import json
from typing import Any

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.analysis import error_bounds, worst_case_error
from dpselect.mechanisms.base import MechanismBase
from tests.cli.conftest import Run

MECHANISMS: dict[str, type[MechanismBase]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
    "noisy-max": ReportNoisyMax,
}


def words(text: str) -> str:
    return " ".join(text.split())


def tables(text: str) -> list[dict[str, list[str]]]:
    """The cells of each table by the mechanism's name."""
    found: list[dict[str, list[str]]] = []
    for line in text.splitlines():
        cells = line.replace("*", "").split()
        if cells and cells[0] in MECHANISMS and line.startswith(" "):
            if cells[0] == "permute-and-flip":
                found.append({})
            found[-1][cells[0]] = cells[1:]
    return found


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def guaranteed(mechanism: MechanismBase, n: int) -> float:
    """The smallest expected error that the analysis proves for all scores."""
    if isinstance(mechanism, ReportNoisyMax):
        return error_bounds(mechanism, n).upper
    return worst_case_error(mechanism, n).error


def is_rounded_up(cell: str, exact: float) -> bool:
    return exact * (1 - 1e-10) <= number(cell) <= exact * 1.0011


def plan(run: Run, *options: object) -> dict[str, Any]:
    result = run("plan", *options, "--json")
    assert (result.code, result.err) == (0, "")
    content: dict[str, Any] = json.loads(result.out)
    return content


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert [row["mechanism"] for row in rows] == list(MECHANISMS)
    return {row["mechanism"]: row for row in rows}
