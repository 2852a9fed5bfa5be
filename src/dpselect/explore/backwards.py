"""Questions backwards: the epsilon for an error, and the epsilon of each of k selections from one budget."""

from collections.abc import Mapping
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._exact import rounded_down_text, rounded_up_text
from dpselect.analysis import epsilon_for, error_tail, expected_error
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.explore.score_set import Known, ScoreSet
from dpselect.explore.settings import LARGEST, SMALLEST, Settings, positive, text, whole
from dpselect.ledger.rounds import affordable_epsilon
from dpselect.mechanisms.names import KINDS, MechanismName

_DIGITS = 4
_MOST_SELECTIONS = 10_000
_LARGEST_BUDGET = 100
_NEARLY = 1.001


def epsilon_needed(shown: ScoreSet, settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest epsilon of each mechanism for an acceptable error, rounded up.

    Asked is an average error, or an error that may occur only so many times in 100.
    """
    error = float(positive(asked, "error"))
    blind = Known(np.full(len(shown.exact), 1 / len(shown.exact)))  # which every mechanism is at least as good as
    if text(asked, "times", ""):
        target: dict[str, Any] = {"error": error, "probability": float(_hundredth(asked))}
        is_met = error_tail(blind, shown.scores, error) <= target["probability"]
    else:
        target = {"expected_error": error}
        is_met = expected_error(blind, shown.scores) <= error
    rows = {}
    for name, kind in KINDS.items():
        needed = None
        if not is_met:
            found = epsilon_for(kind, shown.scores, **target, **settings.claim.arguments())
            needed = rounded_up_text(Fraction(found), _DIGITS)
        rows[name] = {"epsilon": needed, "usable": needed is not None and SMALLEST <= Fraction(needed) <= LARGEST}
    return {"mechanisms": rows}


def _hundredth(asked: Mapping[str, Any]) -> Fraction:
    times = positive(asked, "times")
    if times >= 100:
        raise InvalidValue("times must be below 100: of a hundred selections")
    return times / 100


def shares(shown: ScoreSet, settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Epsilon of each of k selections from a total budget, and the mechanism with the smallest error on these scores.

    Pure budgets are divided by k. With a delta, Google's dp_accounting finds what each mechanism can afford.
    """
    count = whole(asked, "selections", 1, _MOST_SELECTIONS)
    budget = positive(asked, "budget")
    if budget < SMALLEST:
        raise InvalidValue(f"budget must be at least {float(SMALLEST)}: with less, every answer is noise")
    if budget > _LARGEST_BUDGET:
        raise InvalidValue(f"budget must be at most {_LARGEST_BUDGET}: beyond it there is hardly any privacy")
    delta = _validate.fraction_of_one(delta=text(asked, "delta")) if text(asked, "delta", "") else None
    if delta is not None and find_spec("dp_accounting") is None:
        raise MissingExtra("budgets with a delta need dp-accounting: pip install 'dpselect[accounting]'")
    rows: dict[MechanismName, dict[str, Any]] = {}
    for name in KINDS:
        each = rounded_down_text(_share(name, count, budget, delta), _DIGITS)
        error = expected_error(settings.record(name, Fraction(each)), shown.scores)
        usable = SMALLEST <= Fraction(each) <= LARGEST
        rows[name] = {"epsilon": each, "expected_error": error, "usable": usable}
    # Permute-and-flip comes first: where another is better by less than a thousandth, it is still the one to take.
    least = min(row["expected_error"] for row in rows.values())
    better = next(name for name, row in rows.items() if row["expected_error"] <= _NEARLY * least)
    return {"mechanisms": rows, "better": better, "accounting": "pure" if delta is None else "(epsilon, delta)"}


def _share(name: MechanismName, count: int, budget: Fraction, delta: float | None) -> Fraction:
    pure = budget / count
    return pure if delta is None or count == 1 else affordable_epsilon(name, count, float(budget), delta)
