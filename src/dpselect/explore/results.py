"""The results on the page, computed by `dpselect.analysis`.

`look` computes probabilities, errors and tails of all mechanisms at one epsilon. `curve` is expected error against
epsilon, once for each set of scores and a few points at a time: the error depends on the rate c = epsilon / range
alone, so it is computed at fixed rates, 10^(i/12), and another sensitivity only moves the curve along the axis.
`epsilon_needed` and `shares` answer the inverse questions: the epsilon for an error, and the epsilon of each of k
selections from one budget.
"""

import math
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._numbers import rounded_down_text, rounded_up_text
from dpselect._types import Floats
from dpselect.accounting.budget import Budget, approximate, pure
from dpselect.analysis import epsilon_for, error_quantile, error_tail, expected_error, plan
from dpselect.errors import InvalidValue
from dpselect.explore.score_set import Known, ScoreSet
from dpselect.explore.sentences import factor_sentence, sentence
from dpselect.explore.settings import LARGEST, SMALLEST, Settings, positive, text, whole
from dpselect.mechanisms import MECHANISMS, ExponentialMechanism, PermuteAndFlip

_MOST_STEPS = 240
_FAR = 0.9995  # the tails are drawn up to this probability
# Closer to the error of a uniform choice than this, floats cannot distinguish two epsilons.
_BLIND = 1 - 1e-6


def look(shown: ScoreSet, settings: Settings, unit: str) -> dict[str, Any]:
    """All results at these settings."""
    known = {name: shown.known(name, settings.rate) for name in MECHANISMS}
    results = {name: _results(shown, one) for name, one in known.items()}
    thresholds = _thresholds(shown, known)
    for name, one in known.items():
        results[name]["tail"] = error_tail(one, shown.scores, thresholds).tolist()
    return {
        "mechanisms": results,
        "thresholds": thresholds.tolist(),
        "sentence": sentence(settings, unit, results[settings.mechanism], bool(shown.losses.any())),
        "factor": (factor := exponential_factor(shown, settings)),
        "factor_sentence": factor_sentence(settings, factor),
        "guarantee": str(settings.mechanism_for().guarantee),
    }


def _results(shown: ScoreSet, known: Known) -> dict[str, Any]:
    return {
        "probabilities": known.probabilities.tolist(),
        "best": min(1.0, float(known.probabilities[shown.losses == 0].sum())),
        "expected_error": expected_error(known, shown.scores),
        "error_95": error_quantile(known, shown.scores, 0.95),
    }


def _thresholds(shown: ScoreSet, known: dict[str, Known]) -> Floats:
    """The errors at which the tails step, or a grid if there are many."""
    far = max(error_quantile(one, shown.scores, _FAR) for one in known.values())
    errors = np.unique(shown.losses)
    steps: Floats = errors[errors <= far]
    return steps if steps.size <= _MOST_STEPS else np.linspace(0, far, _MOST_STEPS)


def exponential_factor(shown: ScoreSet, settings: Settings) -> float | None:
    """How many times the budget the exponential mechanism needs for the expected error of permute-and-flip.

    None if all scores are equal, if the error is zero in floats, or if both choose almost uniformly.
    """
    target = expected_error(shown.known(PermuteAndFlip.name, settings.rate), shown.scores)
    if not 1e-290 < target < _BLIND * float(shown.losses.mean()):
        return None
    try:
        # At score range 1 the epsilon is the rate, and ratios of rates are ratios of epsilons.
        needed = epsilon_for(ExponentialMechanism, shown.scores, expected_error=target, score_range=1)
    except InvalidValue:
        return None
    return float(Fraction(needed) / settings.rate)


_PER_DECADE = 12
PATIENCE = 0.04  # seconds: a dragged slider must not wait for the curve


def curve(shown: ScoreSet, settings: Settings, patience: float = PATIENCE) -> dict[str, Any]:
    """The points that are known after this many seconds; null for missing ones."""
    low, high = (_PER_DECADE * math.log10(end / settings.claim.score_range) for end in (SMALLEST, LARGEST))
    places = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    points, deadline = shown.curve_points, time.monotonic() + patience
    for name, place in _missing(shown, places):
        mechanism = MECHANISMS[name](rate_at(place), score_range=1)
        points[name, place] = expected_error(mechanism, shown.scores)
        if time.monotonic() > deadline:
            break
    return {
        "epsilons": [float(rate_at(place) * settings.claim.score_range) for place in places],
        "errors": {name: [points.get((name, place)) for place in places] for name in MECHANISMS},
        "complete": all((name, place) in points for name in MECHANISMS for place in places),
    }


def rate_at(place: int) -> Fraction:
    """The rate at a place of the curve."""
    return Fraction(10.0 ** (place / _PER_DECADE))


def _missing(shown: ScoreSet, places: range) -> Iterator[tuple[str, int]]:
    """The order of points: the slow mechanism last, and coarse before fine, so that every line is complete soon."""
    for name in MECHANISMS:
        for stride in (8, 4, 2, 1):
            for place in places:
                if place % stride == 0 and (name, place) not in shown.curve_points:
                    yield name, place


_DIGITS = 4
_MOST_SELECTIONS = 10_000
_LARGEST_BUDGET = 100
_NEARLY = 1.001


def epsilon_needed(shown: ScoreSet, settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest epsilon of each mechanism for an acceptable error, rounded up.

    The target is an average error, or an error that may occur only a given number of times in 100.
    """
    error = float(positive(asked, "error"))
    blind = Known(np.full(len(shown.exact), 1 / len(shown.exact)))  # no mechanism is worse than this
    if text(asked, "times", ""):
        target: dict[str, Any] = {"error": error, "probability": float(_hundredth(asked))}
        is_met = error_tail(blind, shown.scores, error) <= target["probability"]
    else:
        target = {"expected_error": error}
        is_met = expected_error(blind, shown.scores) <= error
    rows = {}
    for name, kind in MECHANISMS.items():
        needed = None
        if not is_met:
            found = epsilon_for(kind, shown.scores, **target, **settings.claim.arguments())
            needed = rounded_up_text(Fraction(found), _DIGITS)
        rows[name] = {"epsilon": needed, "usable": needed is not None and SMALLEST <= Fraction(needed) <= LARGEST}
    return {"mechanisms": rows}


def _hundredth(asked: Mapping[str, Any]) -> Fraction:
    times = positive(asked, "times")
    if times >= 100:
        raise InvalidValue("times must be below 100: it counts cases in a hundred selections")
    return times / 100


def shares(shown: ScoreSet, settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The epsilon of each of k selections from a total budget, and the mechanism with the smallest error.

    They are those of `analysis.plan`, so a ledger with this budget pays for exactly k of them. Pure epsilon implies
    (epsilon, delta): where a pure budget leaves more for each selection, its share is taken.
    """
    count = whole(asked, "selections", 1, _MOST_SELECTIONS)
    budget = positive(asked, "budget")
    if budget < SMALLEST:
        raise InvalidValue(f"budget must be at least {float(SMALLEST)}: below that, every answer is noise")
    if budget > _LARGEST_BUDGET:
        raise InvalidValue(f"budget must be at most {_LARGEST_BUDGET}: above that, there is hardly any privacy")
    budgets = [pure(budget)]
    if text(asked, "delta", ""):
        budgets.append(approximate(budget, text(asked, "delta"), share=0))
    rows: dict[str, dict[str, Any]] = {}
    for paid in budgets:
        for name, share in _affordable(settings, len(shown.exact), count, paid).items():
            each = rounded_down_text(share, _DIGITS)
            if name in rows and Fraction(each) <= Fraction(rows[name]["epsilon"]):
                continue
            error = expected_error(settings.mechanism_for(name, Fraction(each)), shown.scores)
            usable = SMALLEST <= Fraction(each) <= LARGEST
            rows[name] = {"epsilon": each, "expected_error": error, "usable": usable, "budget": paid.currency}
    # Permute-and-flip comes first: it is preferred unless another one is better by more than a thousandth.
    least = min(row["expected_error"] for row in rows.values())
    better = next(name for name, row in rows.items() if row["expected_error"] <= _NEARLY * least)
    return {"mechanisms": rows, "better": better, "accounting": rows[better]["budget"]}


def _affordable(settings: Settings, candidates: int, count: int, budget: Budget) -> dict[str, Fraction]:
    """The epsilon of each of `count` selections by each mechanism."""
    claim = settings.claim.arguments()  # no share depends on the number of candidates, of which a plan has at least two
    planned = plan(max(candidates, 2), question="select", budget=budget, questions=count, **claim)
    return {name: promised.mechanism.epsilon for name, promised in planned.promises.items()}
