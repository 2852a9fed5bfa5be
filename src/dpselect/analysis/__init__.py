"""The accuracy of a mechanism, and the epsilon that an accuracy needs: exact results and data-independent bounds.

Results computed from scores are as private as the scores: use public or synthetic scores, or keep the results to
yourself. Nothing here touches a ledger or releases an answer.
"""

from dpselect.analysis.compare import Comparison, TopKComparison, compare, compare_top_k
from dpselect.analysis.error import epsilon_for, error_quantile, error_tail, expected_error
from dpselect.analysis.evaluations import expected_evaluations
from dpselect.analysis.found_plans import FoundPlan, plan_found
from dpselect.analysis.planning import plan
from dpselect.analysis.plans import Accuracy, Plan, PlannedMethod
from dpselect.analysis.privacy import check_privacy, search_neighbours
from dpselect.analysis.promises import Bounds, Promise, WorstCase, error_bounds, worst_case_error
from dpselect.analysis.top_k_error import TopKError, top_k_error
from dpselect.analysis.unequal import UnequalErrors, unequal_errors

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
