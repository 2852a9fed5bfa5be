"""What is refused, with which words: one table for each function, of what differs from a call that is answered."""

import datetime
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect import PermuteAndFlip, analysis, generalized_scores
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.questions import Mode, Question, TopK, UnlistedMode

DAY, MOMENT = datetime.date(2024, 2, 27), datetime.datetime(2024, 2, 27, 12)
COUNTS = [90, 85, 60, 40, 39, 12, 5, 0]
RANGE = {"candidates": None, "question": "median", "lower": 0, "upper": 9}
LEVELS = {**RANGE, "question": "quantiles"}
TOP = {"question": "top_k", "k": 10}
FOUND = {"epsilon": 1, "delta": 1e-9}


def tail(error):
    return analysis.error_bounds(PermuteAndFlip(1), 10).tail(error)


def unequal(scores, sensitivities, epsilon, failure=0.05):
    return analysis.unequal_errors(scores, sensitivities, epsilon, failure=failure)


# What differs from a call that is answered, with the error and its words.
PLANS = [
    ({"epsilon": None}, InvalidValue, "give exactly one of epsilon, rho and error"),
    ({"rho": "0.1"}, InvalidValue, "give exactly one of epsilon, rho and error"),
    ({"rho": "0.1", "epsilon": None, "error": 3}, InvalidValue, "give exactly one of epsilon, rho and error"),
    (
        {"question": "mean"},
        InvalidValue,
        "must be one of mode, top_k, values, median, quantile, quantiles, minimum, maximum, select",
    ),
    ({"question": 3}, InvalidType, "question must be a name or a record"),
    ({"question": Mode(candidates=3)}, InvalidValue, "candidates belongs in the record"),
    ({"candidates": None}, InvalidValue, "mode needs candidates"),
    ({"candidates": 1}, InvalidValue, "candidates must be a whole number from 2"),
    ({"candidates": "30"}, InvalidType, "candidates must be an integer"),
    ({"k": 3}, InvalidValue, "k is not a parameter of mode, which takes candidates, groups"),
    ({"monotonic": True}, InvalidValue, "monotonic is not a parameter of mode"),
    ({"method": "set"}, InvalidValue, "method is not a parameter of mode"),
    ({"ordered": True}, InvalidValue, "ordered is not a parameter of mode"),
    ({"max_values": 1}, InvalidValue, "max_values is for values that nobody listed"),
    ({"rule": 3}, InvalidType, "rule must be text"),
    ({"scores": [1, 2]}, InvalidValue, "scores are for the question 'select'"),
    ({"question": UnlistedMode(), "error": 3}, InvalidValue, "error needs candidates"),
    ({"max_groups": 2}, InvalidValue, "max_groups needs groups"),
    ({"groups": 0}, InvalidValue, "groups must be a whole number from 1"),
    ({"groups": 3, "max_groups": 0}, InvalidValue, "max_groups must be a whole number from 1"),
    ({"neighbours": "friends"}, InvalidValue, "neighbours must be 'add-remove' or 'replace'"),
    ({"mechanism": "noisy-max"}, InvalidValue, "one of auto, permute-and-flip, exponential for mode"),
    ({"mechanism": "best"}, InvalidValue, "mechanism must be one of auto"),
    ({"budget": "1", "delta": "1e-6"}, InvalidValue, "delta does not belong to this budget"),
    ({"budget": "zcdp:"}, InvalidValue, "budget must have a form such as"),
    ({"questions": 0}, InvalidValue, "questions must be a whole number from 1"),
    ({"questions": "2"}, InvalidType, "questions must be an integer"),
    ({"epsilon": 0}, InvalidValue, "epsilon must be > 0"),
    ({"epsilon": []}, InvalidType, "epsilon must be a number"),
    ({"epsilon": "1e-60"}, InvalidValue, "epsilon must be between 1e-50 and 1e50"),
    ({"rho": "1e60", "epsilon": None}, InvalidValue, "rho must be between 1e-50 and 1e50"),
    ({"error": "1e60", "epsilon": None}, InvalidValue, "error must be between 1e-50 and 1e50"),
    ({"delta": 1}, InvalidValue, "delta must be between 0 and 1"),
    ({"budget": "1e-49", "epsilon": None, "questions": 100}, InvalidValue, "epsilon must be between 1e-50"),
    ({**RANGE, "lower": 10}, InvalidValue, "lower must be <= upper"),
    ({**RANGE, "range": "log"}, InvalidValue, "range='log' replaces lower, upper and step"),
    ({**RANGE, "candidates": 9}, InvalidValue, "candidates replaces lower, upper and step"),
    ({"question": "median", "candidates": None, "range": "linear"}, InvalidValue, "must be 'full' or 'log'"),
    ({**RANGE, "rule": "every x"}, InvalidValue, "rule is not a parameter of median"),
    ({**RANGE, "max_rows": 0}, InvalidValue, "max_rows must be a whole number from 1"),
    ({**RANGE, "levels": "deciles"}, InvalidValue, "levels is not a parameter of median"),
    (LEVELS, InvalidValue, "quantiles needs levels"),
    ({**LEVELS, "levels": "thirds"}, InvalidValue, "levels must be a list of numbers"),
    ({**LEVELS, "levels": 0.5}, InvalidType, "for one level use quantile"),
    ({**LEVELS, "levels": [0.1, "1/10"]}, InvalidValue, "0.1 occurs twice"),
    (
        {**LEVELS, "levels": [0.1], "budget": "1,1e-6", "delta": "1e-6"},
        InvalidValue,
        "delta is for questions of one selection",
    ),
    ({**LEVELS, "levels": "deciles", "mechanism": "noisy-max"}, InvalidValue, "exponential for quantiles"),
    ({**RANGE, "step": 0}, InvalidValue, "step must be > 0"),
    ({**RANGE, "step": datetime.timedelta(1)}, InvalidType, "step must be a number, as lower and upper are"),
    ({**RANGE, "upper": "soon"}, InvalidValue, "upper: 'soon' is neither a number nor a date"),
    ({**RANGE, "upper": "2026-01-31"}, InvalidType, "lower and upper must be of one type"),
    ({**RANGE, "lower": DAY, "upper": MOMENT}, InvalidType, "lower and upper must be of one type"),
    ({**RANGE, "lower": MOMENT, "upper": MOMENT.replace(tzinfo=datetime.UTC)}, InvalidType, "of one type"),
    ({**RANGE, "lower": DAY, "upper": DAY, "step": DAY}, InvalidType, "must be a number of days or seconds"),
    ({**RANGE, "upper": 2**64}, InvalidValue, "more than 2\\*\\*64 candidates"),
    ({**RANGE, "level": "0.9"}, InvalidValue, "level is not a parameter of median"),
    ({**RANGE, "question": "quantile"}, InvalidValue, "quantile needs level"),
    ({**RANGE, "question": "quantile", "level": 1}, InvalidValue, "level must be between 0 and 1"),
    ({**RANGE, "question": "quantile", "level": "1/1000003"}, InvalidValue, "level must be a multiple of 1/n"),
    ({**RANGE, "upper": 0, "epsilon": None, "error": 1}, InvalidValue, "every epsilon meets the target"),
    ({"question": "top_k"}, InvalidValue, "top_k needs k"),
    ({**TOP, "k": 31}, InvalidValue, "k must be from 1 to the number of candidates, 30, got 31"),
    ({**TOP, "k": 0}, InvalidValue, "k must be from 1"),
    ({**TOP, "k": 2.5}, InvalidType, "k must be an integer"),
    ({**TOP, "k": (3, 30)}, InvalidValue, "k must be a pair"),
    ({**TOP, "k": (2, 3), "method": "peel"}, InvalidValue, "k may be a pair only with method margin"),
    ({**TOP, "method": "best"}, InvalidValue, "method must be one of auto, set"),
    ({**TOP, "method": 1}, InvalidType, "method must be a name"),
    ({**TOP, "method": "set"}, InvalidValue, "method set needs max_values"),
    ({**TOP, "method": "noisy-counts"}, InvalidValue, "method noisy-counts needs max_values"),
    ({**TOP, "method": "margin", "ordered": True}, InvalidValue, "method margin has no order"),
    ({**TOP, "max_values": 0}, InvalidValue, "max_values must be >= 1"),
    ({**TOP, "max_values": "1"}, InvalidType, "max_values must be an integer"),
    ({**TOP, "ordered": "yes"}, InvalidType, "ordered must be True or False"),
    ({**TOP, "mechanism": "noisy-max", "method": "peel"}, InvalidValue, "one of auto, permute-and-flip"),
    ({**TOP, "mechanism": "noisy-max", "method": "margin"}, InvalidType, "cannot draw with method margin"),
    (
        {**TOP, "mechanism": "exponential", "method": "noisy-counts", "max_values": 1},
        InvalidValue,
        "adds Laplace noise",
    ),
    ({**TOP, "k": 30, "ordered": True, "epsilon": None, "error": 1}, InvalidValue, "every epsilon meets"),
]
SELECTIONS = [
    ({"candidates": None}, InvalidValue, "give candidates, the number of candidates"),
    ({"candidates": 2**54}, InvalidValue, "candidates must be a whole number from 2"),
    ({"candidates": 2.5}, InvalidType, "candidates must be an integer"),
    ({"sensitivity": "1e60"}, InvalidValue, "sensitivity must be between 1e-50 and 1e50"),
    ({"score_range": "1e-60"}, InvalidValue, "score_range must be between 1e-50 and 1e50"),
    ({"sensitivity": 1, "score_range": 1}, InvalidValue, "give either score_range, or"),
    ({"scores": [1, math.nan]}, InvalidValue, "finite"),
]
FOUND_PLANS = [
    ({"delta": None}, InvalidValue, "give delta"),
    ({"delta": 0}, InvalidValue, "delta must be above 0"),
    ({"delta": 0.6}, InvalidValue, "at most 1/2"),
    ({"epsilon": None}, InvalidValue, "exactly one of epsilon and rho"),
    ({"k": 3}, InvalidValue, "k is not a parameter of values"),
    ({"max_values": 0}, InvalidValue, "max_values must be"),
    ({"max_groups": 2}, InvalidValue, "max_groups needs groups"),
    ({"neighbours": "x"}, InvalidValue, "neighbours"),
    ({"question": "top_k"}, InvalidValue, "top_k needs k"),
    ({"question": "top_k", "k": 10_001}, InvalidValue, "k must be from 1 to 10,000"),
    ({"question": "mode", "mechanism": "noisy-max"}, InvalidType, "use permute-and-flip"),
    ({"question": "median"}, InvalidValue, "values, mode or top_k"),
    ({"question": "mode", "candidates": 5}, InvalidValue, "candidates are found in the data"),
]
RECORDS = [
    ({"question": "median", "levle": 0.5}, InvalidValue, "levle is not a parameter of median"),
    ({"question": "mode", "candidates": 3, "max_group": 2}, InvalidValue, "did you mean 'max_groups'"),
    ({"question": "mode", "candidates": "found in the data", "k": 2}, InvalidValue, "k is not a parameter of mode"),
    ({"question": "mode", "candidates": 3, "column": "x"}, InvalidValue, "column is not a parameter of mode"),
    ({"question": "top_k", "candidates": "found in the data", "k": 0}, InvalidValue, "k must be from 1"),
    ({"question": "values", "max_values": 0}, InvalidValue, "max_values must be"),
    ({"candidates": 3}, InvalidType, "data must be a dict with the name of a question"),
    (["mode"], InvalidType, "data must be a dict"),
    ({"question": "quantile", "level": 0.5, "lower": "soon"}, InvalidValue, "neither a number nor a date"),
    ({"question": "quantile", "level": 0.5, "step": "PT1.0000001S"}, InvalidValue, "neither a number nor"),
]
TOP_K = [
    ({"epsilon": None}, InvalidValue, "give exactly one of epsilon and rho"),
    ({"rho": 1}, InvalidValue, "give exactly one of epsilon and rho"),
    ({"k": 9}, InvalidValue, "k must be from 1 to the number of candidates, 8, got 9"),
    ({"k": (3, 1)}, InvalidValue, "k must be a pair"),
    ({"method": "set"}, InvalidValue, "method set needs max_values"),
    ({"monotonic": "yes"}, InvalidType, "monotonic must be True or False"),
    ({"mechanism": "best"}, InvalidValue, "mechanism must be one of auto"),
    ({"runs": 1}, InvalidValue, "runs must be from 2 to 10,000,000, got 1"),
    ({"runs": 10**8}, InvalidValue, "runs must be from 2"),
    ({"runs": 9.5}, InvalidType, "runs must be an integer"),
    ({"seed": -1}, InvalidValue, "seed must be >= 0"),
    ({"scores": [0.5, 2.0, 1.0], "method": "margin"}, InvalidValue, "scores must be counts for the margin"),
    ({"scores": [-1e308, 1e308, 0.0], "method": "peel"}, InvalidValue, "scores must differ by less than 1e308"),
]
METHODS = [
    ({"epsilons": []}, InvalidValue, "epsilons must have at least one number"),
    ({"k": 9}, InvalidValue, "k must be from 1 to the number of candidates, 8, got 9"),
    ({"methods": "set"}, InvalidType, "methods must be a sequence of names"),
    ({"methods": 3}, InvalidType, "methods must be a sequence of names"),
    ({"methods": []}, InvalidValue, "methods must have at least one name"),
    ({"methods": ["set"]}, InvalidValue, "method set needs max_values"),
    ({"methods": ["best"]}, InvalidValue, "method must be one of"),
    ({"methods": ["margin"], "ordered": True}, InvalidValue, "method margin has no order"),
    ({"monotonic": 1}, InvalidType, "monotonic must be True or False"),
    ({"runs": 1}, InvalidValue, "runs must be from 2"),
    ({"seed": "x"}, InvalidType, "seed must be an integer"),
    ({"scores": np.array([0.5, 1.0, 7.0, 2.0])}, InvalidValue, "scores must be counts for the margin"),
]
COMPARISONS = [
    ({"epsilons": []}, InvalidValue, "epsilons must have at least one"),
    ({"epsilons": 1}, InvalidType, "epsilons must be a sequence"),
    ({"epsilons": "12"}, InvalidType, "epsilons must be a sequence"),
    ({"epsilons": [1, 0]}, InvalidValue, "epsilon must be > 0"),
    ({"epsilons": [math.nan]}, InvalidValue, "epsilon must be finite"),
    ({"epsilons": [None]}, InvalidType, "epsilon must be a number"),
    ({"sensitivity": 0}, InvalidValue, "sensitivity must be > 0"),
    ({"monotonic": "yes"}, InvalidType, "monotonic must be True or False"),
]
EPSILONS = [
    ({}, InvalidValue, "give either expected_error, or both error and probability"),
    ({"expected_error": 1, "error": 1, "probability": 0.1}, InvalidValue, "give either"),
    ({"error": 1}, InvalidValue, "give either"),
    ({"probability": 0.1}, InvalidValue, "give either"),
    ({"expected_error": -1}, InvalidValue, "expected_error must be > 0"),
    ({"expected_error": math.inf}, InvalidValue, "expected_error must be finite"),
    ({"expected_error": "much"}, InvalidValue, "expected_error must be a number"),
    ({"expected_error": [1]}, InvalidType, "expected_error must be a number"),
    ({"error": 1, "probability": 1}, InvalidValue, "probability must be between 0 and 1"),
    ({"error": 1, "probability": 0}, InvalidValue, "probability must be > 0"),
    ({"error": 0, "probability": 0.1}, InvalidValue, "error must be > 0"),
    ({"expected_error": 1, "sensitivity": 0}, InvalidValue, "sensitivity must be > 0"),
    ({"expected_error": 0.1, "monotonic": 1}, InvalidType, "monotonic must be True or False"),
    ({"expected_error": 0.1, "sensitivity": "1e-400"}, InvalidValue, None),  # near the epsilon, and no float is
    ({"expected_error": 0.1, "sensitivity": "1e400"}, InvalidValue, None),
    *(
        ({"expected_error": 0.1, "kind": kind}, InvalidType, "kind must be a mechanism class")
        for kind in (PermuteAndFlip(1), "permute-and-flip", None, int, Fraction, MechanismBase)
    ),
]
LEVELS_OF_ERRORS = [
    ({"level": 0}, InvalidValue, "level must be > 0"),
    ({"level": 1}, InvalidValue, "level must be between 0 and 1"),
    ({"level": math.nan}, InvalidValue, "level must be finite"),
    ({"level": None}, InvalidType, "level must be a number"),
    ({"level": True}, InvalidType, "level must be a number"),
    ({"level": [0.5]}, InvalidType, "level must be a number"),
]
ERRORS = [
    ({"error": 0}, InvalidValue, "error must be > 0"),
    ({"error": math.nan}, InvalidValue, "error must be finite"),
    ({"error": None}, InvalidType, "error must be a number"),
    ({"error": [1, 2]}, InvalidType, "error must be a number"),
]
SIZES = [
    ({"n": 0}, InvalidValue, "n must be"),
    ({"n": -1}, InvalidValue, "n must be"),
    *(({"n": n}, InvalidType, "n must be an integer") for n in (2.0, "2", True, None)),
    *(({"mechanism": other}, InvalidType, "mechanism must be") for other in (None, 3, PermuteAndFlip, "ours")),
]
SEARCHES = [
    ({"scores": [0] * 9}, InvalidValue, "at most 8 candidates"),
    *(({"steps": steps}, DPSelectError, "steps must be") for steps in (1, 0, -3, 2.5, "3", None)),
]
UNEQUAL = [
    ({"sensitivities": [1]}, InvalidValue, "as long as scores, got 1 and 2"),
    ({"sensitivities": [1, 1, 1]}, InvalidValue, "as long as scores, got 3 and 2"),
    ({"sensitivities": [1, 0]}, InvalidValue, "one of them is not > 0"),
    ({"sensitivities": np.array([1.0, -1])}, InvalidValue, "one of them is not > 0"),
    ({"sensitivities": [1, math.nan]}, InvalidValue, "sensitivities must be positive finite"),
    ({"sensitivities": np.array([1, math.nan])}, InvalidValue, "sensitivities must be positive finite"),
    ({"sensitivities": []}, InvalidValue, "sensitivities must be positive finite"),
    ({"sensitivities": ["1", "1"]}, InvalidType, "sensitivities must be positive finite"),
    ({"sensitivities": 1}, InvalidType, "sensitivities must be positive finite"),
    ({"epsilon": 0}, InvalidValue, "epsilon must be > 0"),
    ({"failure": 1}, InvalidValue, "failure must be between 0 and 1"),
    ({"failure": 2}, InvalidValue, "failure must be between 0 and 1"),
    ({"failure": 0}, InvalidValue, "failure must be > 0"),
]
# Each function, a call that it answers, and its table.
TABLES = [
    (analysis.plan, {"candidates": 30, "question": "mode", "epsilon": "0.1"}, PLANS),
    (analysis.plan, {"candidates": 10, "epsilon": 1}, SELECTIONS),
    (analysis.plan_found, {"question": "values", **FOUND}, FOUND_PLANS),
    (Question.from_dict, {}, [({"data": data}, *told) for data, *told in RECORDS]),
    (TopK.from_dict, {}, [({"data": Mode(candidates=3).to_dict()}, InvalidValue, "must be 'top_k', got 'mode'")]),
    (analysis.top_k_error, {"scores": COUNTS, "k": 2, "epsilon": "0.5"}, TOP_K),
    (analysis.compare_top_k, {"scores": COUNTS, "k": 3, "epsilons": [1]}, METHODS),
    (analysis.compare, {"scores": COUNTS, "epsilons": [1]}, COMPARISONS),
    (analysis.epsilon_for, {"kind": PermuteAndFlip, "scores": [3, 1, 0]}, EPSILONS),
    (
        analysis.error_tail,
        {"mechanism": PermuteAndFlip(1), "scores": [3, 2, 0]},
        [
            ({"t": t}, InvalidValue, "t must be")
            for t in ("a", None, True, math.nan, [0, math.nan], 1j, [[1], [1, 2]], ["1", "2"], object())
        ],
    ),
    (analysis.error_quantile, {"mechanism": PermuteAndFlip(1), "scores": [3, 2, 0]}, LEVELS_OF_ERRORS),
    (tail, {}, ERRORS),
    *(
        (function, {"mechanism": PermuteAndFlip(1), "n": 5}, SIZES)
        for function in (analysis.worst_case_error, analysis.error_bounds)
    ),
    (analysis.search_neighbours, {"mechanism": PermuteAndFlip(1), "scores": [0, 1]}, SEARCHES),
    *(
        (function, {"scores": [1, 2], "sensitivities": [1, 1], "epsilon": 1}, UNEQUAL)
        for function in (generalized_scores, unequal)
    ),
    (
        analysis.unequal_errors,
        {"scores": [1], "sensitivities": [1], "epsilon": 1},
        [({"kind": PermuteAndFlip(1)}, InvalidType, "kind must be a mechanism class")],
    ),
]
CASES = [(function, answered, *row) for function, answered, rows in TABLES for row in rows]


@pytest.mark.parametrize(
    ("function", "answered", "changes", "error", "words"),
    CASES,
    ids=lambda one: getattr(one, "__name__", str(one).partition(" object at ")[0])[:40],
)
def test_it_is_refused(function, answered, changes, error, words):
    with pytest.raises(error, match=words):
        function(**{**answered, **changes})


BAD_SCORES = [
    *([], [1.0, math.nan], [1.0, math.inf], [[1, 2], [3, 4]], "abc", ["a", "b"], None),
    *map(np.array, ([1.0, math.inf], [1.0, -math.inf], [1.0, math.nan], [[1.0, 1.0], [1.0, 1.0]])),
]
MEASURES = {
    "mean": lambda scores: analysis.expected_error(PermuteAndFlip(1), scores),
    "tail": lambda scores: analysis.error_tail(PermuteAndFlip(1), scores, 1),
    "quantile": lambda scores: analysis.error_quantile(PermuteAndFlip(1), scores, 0.5),
    "epsilon for a mean": lambda scores: analysis.epsilon_for(PermuteAndFlip, scores, expected_error=0.3),
    "epsilon for a tail": lambda scores: analysis.epsilon_for(PermuteAndFlip, scores, error=2, probability=0.05),
    "check": lambda scores: analysis.check_privacy(PermuteAndFlip(1), scores),
    "search": lambda scores: analysis.search_neighbours(PermuteAndFlip(1), scores),
    "comparison": lambda scores: analysis.compare(scores, [1]),
    "top k": lambda scores: analysis.top_k_error(scores, 1, epsilon=1),
    "comparison of methods": lambda scores: analysis.compare_top_k(scores, 1, [1]),
    "generalized": lambda scores: generalized_scores(scores, [1, 1], 1),
}


@pytest.mark.parametrize("scores", BAD_SCORES, ids=str)
@pytest.mark.parametrize("measure", MEASURES)
def test_bad_scores_are_refused(measure, scores):
    with pytest.raises(DPSelectError, match="score"):
        MEASURES[measure](scores)
