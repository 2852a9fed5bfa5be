"""The accuracy of a mechanism, and the epsilon that an accuracy needs: exact results and data-independent bounds.

Results computed from scores are as private as the scores: use public or synthetic scores, or keep the results to
yourself. Nothing here touches a ledger or releases an answer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.analysis.comparison import Comparison, compare
    from dpselect.analysis.measures import (
        Bounds,
        Promise,
        WorstCase,
        check_privacy,
        epsilon_for,
        error_bounds,
        error_quantile,
        error_tail,
        expected_error,
        expected_evaluations,
        search_neighbours,
        worst_case_error,
    )
    from dpselect.analysis.unequal import UnequalErrors, unequal_errors
    from dpselect.questions.plan import FoundPlan, Plan, PlannedMethod, plan, plan_found
    from dpselect.release import Accuracy
    from dpselect.top_k import TopKComparison, TopKError, compare_top_k, top_k_error

__all__ = [
    "Accuracy",
    "Bounds",
    "Comparison",
    "FoundPlan",
    "Plan",
    "PlannedMethod",
    "Promise",
    "TopKComparison",
    "TopKError",
    "UnequalErrors",
    "WorstCase",
    "check_privacy",
    "compare",
    "compare_top_k",
    "epsilon_for",
    "error_bounds",
    "error_quantile",
    "error_tail",
    "expected_error",
    "expected_evaluations",
    "plan",
    "plan_found",
    "search_neighbours",
    "top_k_error",
    "unequal_errors",
    "worst_case_error",
]
# Imported when they are first used: SciPy is slow to import, and plans are made of questions, which need the bounds.
_MEASURES = (
    *("Bounds", "Promise", "WorstCase", "error_bounds", "worst_case_error", "check_privacy", "search_neighbours"),
    *("epsilon_for", "error_quantile", "error_tail", "expected_error", "expected_evaluations"),
)
_HOMES = {
    "Accuracy": "release",
    **dict.fromkeys(_MEASURES, "analysis.measures"),
    **dict.fromkeys(("Comparison", "compare"), "analysis.comparison"),
    **dict.fromkeys(("UnequalErrors", "unequal_errors"), "analysis.unequal"),
    **dict.fromkeys(("FoundPlan", "Plan", "PlannedMethod", "plan", "plan_found"), "questions.plan"),
    **dict.fromkeys(("TopKComparison", "TopKError", "compare_top_k", "top_k_error"), "top_k"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpselect.analysis' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"dpselect.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
