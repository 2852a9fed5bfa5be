"""The results on the page, the same for every question.

`look` has everything at one budget. `curve` is the average error against the amount of the budget, a few points at a
time. `begin` finds an amount at which there is something to see. `needed` and `compared` are the inverse: the amount
for an error, and how much more of it another choice needs. Amounts are powers of the twelfth root of ten, or found by
bisection: errors fall as budgets grow.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._numbers import NEAREST, first_true, rounded_up_text
from dpselect._types import Floats
from dpselect.errors import InvalidValue
from dpselect.explore.answers import Asked, Currency, Fields, Outcomes, text, written

_MOST_STEPS = 240
_FAR = 0.9995  # the tails are drawn up to this probability


def look(asked: Asked) -> dict[str, Any]:
    """All results at these settings."""
    known = {choice: asked.outcomes(choice) for choice in asked.compared}
    rows = {choice: asked.cells(choice) for choice in asked.choices}
    thresholds = _thresholds([one for one in known.values() if one.weights.any()])
    return {
        "choices": [{"name": name, "title": title} for name, title in asked.choices.items()],
        "taken": asked.taken,
        "unit": asked.unit,
        "symbol": asked.spending.currency.symbol,
        "sentence": asked.sentence(),
        "heads": [asked.choice_title, *rows[asked.taken]],
        "rows": {choice: [cell._asdict() for cell in cells.values()] for choice, cells in rows.items()},
        "means": {choice: asked.mean(choice) for choice in asked.choices},
        "chances": {choice: one.chances.tolist() for choice, one in known.items()},
        "runs": max(one.runs for one in known.values()),
        "thresholds": thresholds.tolist(),
        "tails": {choice: one.tail(thresholds).tolist() for choice, one in known.items() if thresholds.size},
        "chart": {
            "title": asked.chance.format(noun=asked.data.noun),
            "order": asked.data.chart_order,
            "note": asked.note,
            "ranked": asked.data.is_ranked,
        },
        "labels": asked.data.labels,
        "notes": asked.data.notes,
        "order": asked.order,
        "draws": asked.draw_counts,
        "beliefs": asked.spending.beliefs(),
        "words": asked.words,
    }


def _thresholds(known: list[Outcomes]) -> Floats:
    if not known:
        return np.empty(0)
    far = max(one.error_quantile(_FAR) for one in known)
    errors = np.unique(np.concatenate([one.errors for one in known]))
    steps: Floats = errors[errors <= far]
    return steps if steps.size <= _MOST_STEPS else np.linspace(0, far, _MOST_STEPS)


_PER_DECADE = 12
_ON_EITHER_SIDE = 2  # decades of the slider
_FARTHEST = 15
_NOT_ENDS = InvalidValue("low and high must be the ends of the slider, in decades")
PATIENCE = 0.04  # seconds: a dragged slider must not wait for the curve


def begin(asked: Asked) -> dict[str, Any]:
    """Where the slider begins and ends: around an amount whose average error is a small part of what matters."""
    currency, target = asked.spending.currency, asked.target
    lowest, highest = _places(currency)
    place = 0
    if target:  # the smallest amount with at most this error
        place = first_true(lambda step: _mean_at(asked, asked.taken, step) <= target, lowest - 1, highest)
    low = min(max(lowest, place - _PER_DECADE * _ON_EITHER_SIDE), highest - 2 * _PER_DECADE * _ON_EITHER_SIDE)
    high = low + 2 * _PER_DECADE * _ON_EITHER_SIDE
    return {
        "amount": rounded_up_text(_amount(currency, place), 2),
        "low": low / _PER_DECADE,
        "high": high / _PER_DECADE,
        "target": target,
    }


def _places(currency: Currency) -> tuple[int, int]:
    low, high = (_PER_DECADE * math.log10(end) for end in (currency.low, currency.high))
    return round(low), round(high)


def _amount(currency: Currency, place: int) -> Fraction:
    return min(max(Fraction(10.0 ** (place / _PER_DECADE)), currency.low), currency.high)


def _mean_at(asked: Asked, choice: str, place: int) -> float:
    return asked.at(_amount(asked.spending.currency, place)).mean(choice)


def curve(asked: Asked, low: int, high: int, patience: float = PATIENCE) -> dict[str, Any]:
    """The points between two places that are known after this many seconds; null for missing ones."""
    places, choices = range(low, high + 1), list(asked.choices)
    line = ("curve", asked.question, replace(asked.spending, amount=Fraction(1)))
    known: dict[tuple[str, int], float] = {}
    deadline, is_late = time.monotonic() + patience, False
    for one in _coarse_first(choices, places):
        key, compute = (*line, *one), partial(_mean_at, asked, *one)
        if key in asked.data.results:
            known[one] = asked.data.results.get(key, compute)
        elif not is_late:  # at least one new point each time
            known[one] = asked.data.results.get(key, compute)
            is_late = time.monotonic() > deadline
    return {
        "amounts": [float(_amount(asked.spending.currency, place)) for place in places],
        "errors": {choice: [known.get((choice, place)) for place in places] for choice in choices},
        "complete": len(known) == len(choices) * len(places),
    }


def _coarse_first(choices: list[str], places: range) -> Iterator[tuple[str, int]]:
    # Every line is complete soon, if coarsely. Some points come twice.
    for stride in (8, 4, 2, 1):
        for choice in choices:
            for place in places:
                if place % stride == 0:
                    yield choice, place


def places_of(fields: Fields) -> tuple[int, int]:
    """The ends of a slider that a request states, in decades."""
    low, high = (_place(fields.get(name)) for name in ("low", "high"))
    if low >= high:
        raise _NOT_ENDS
    return low, high


def _place(decades: Any) -> int:
    if not isinstance(decades, (int, float)) or not -_FARTHEST <= decades <= _FARTHEST:
        raise _NOT_ENDS
    return round(_PER_DECADE * decades)


_DIGITS = 4
_FINE, _THREE_DIGITS = 23_000, 2_300  # steps for each decade: 1.0001 and 1.001 times as much
_SAME = 0.001


def needed(asked: Asked, fields: Fields) -> dict[str, Any]:
    """The smallest budget with which each choice has an acceptable error, rounded up."""
    # The target is an average error, or an error that may occur only a given number of times in 100.
    error = float(_validate.moderate(error=text(fields, "error")))
    often = float(_hundredth(fields)) if text(fields, "times", "") else None
    if often is not None and asked.is_slow:
        raise InvalidValue("times cannot be found for answers that are simulated slowly: give an average error")

    def is_met(choice: str, amount: Fraction) -> bool:
        at = asked.at(amount)
        if often is None:
            return at.mean(choice) <= error
        return float(at.outcomes(choice).tail(np.array([error]))[0]) <= often

    rows, currency = {}, asked.spending.currency
    for choice in asked.choices:
        found = _smallest(currency, partial(is_met, choice))
        told = f"more than {written(float(currency.high))}" if found is None else rounded_up_text(found, _DIGITS)
        is_any = found == currency.low
        rows[choice] = {"amount": None if is_any else told, "usable": found is not None and not is_any}
    return {"choices": rows}


def _smallest(currency: Currency, is_met: Callable[[Fraction], bool], steps: int = _FINE) -> Fraction | None:
    if is_met(currency.low):
        return currency.low
    if not is_met(currency.high):
        return None
    first, last = (round(steps * math.log10(end)) for end in (currency.low, currency.high))
    return Fraction(10.0 ** (first_true(lambda step: is_met(Fraction(10.0 ** (step / steps))), first, last) / steps))


def _hundredth(fields: Fields) -> Fraction:
    times = _validate.moderate(times=text(fields, "times"))
    if times >= 100:
        raise InvalidValue("times must be below 100: it counts cases in a hundred selections")
    return times / 100


def compared(asked: Asked) -> str:
    """How much more the best other choice would need for the error of the taken one, in words."""
    # The text is empty if there is no other choice, or if they do not differ measurably.
    mine = asked.mean(asked.taken)
    others = {choice: asked.mean(choice) for choice in asked.choices if choice != asked.taken}
    if not others or not mine > 0:
        return ""
    other = min(others, key=lambda choice: others[choice])
    title, currency = asked.choices[other], asked.spending.currency
    named = f"{title[0].upper()}{title[1:]}"
    if abs(others[other] - mine) <= _SAME * mine:
        return f"{named} does not differ measurably here."
    amount = _smallest(currency, lambda amount: asked.at(amount).mean(other) <= mine, _THREE_DIGITS)
    if amount is None or amount == currency.low:
        return ""
    factor = written(float(amount / asked.spending.amount), NEAREST, 3)
    budget = f"{currency.symbol} = {written(float(amount), NEAREST, 3)}"
    return f"{named}: the same average error needs {factor} times the budget ({budget})."
