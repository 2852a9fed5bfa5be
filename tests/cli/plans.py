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


def guaranteed(mechanism: MechanismBase, n: int) -> float:
    """The smallest expected error that the analysis proves for all scores."""
    if isinstance(mechanism, ReportNoisyMax):
        return error_bounds(mechanism, n).upper
    return worst_case_error(mechanism, n).error


def plan(run: Run, *options: object) -> dict[str, Any]:
    result = run("plan", *options, "--json")
    assert (result.code, result.err) == (0, "")
    content: dict[str, Any] = json.loads(result.out)
    return content


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert [row["mechanism"] for row in rows] == list(MECHANISMS)
    return {row["mechanism"]: row for row in rows}
