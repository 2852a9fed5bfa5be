"""How far an answer may be off, from public numbers alone: the bounds of `dpselect plan` for the mechanism that drew.

Nothing here sees a row. The bounds hold for all data, and so they are larger than the errors of most. They are computed
when somebody looks at them, because `analysis` takes longer to import than a question to answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from dpselect._numbers import shown
from dpselect.accounting.budget import Budget, Price
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Neighbours
from dpselect.release import Accuracy
from dpselect.top_k import Method

Measure = Callable[[], Accuracy | None]


@dataclass(frozen=True)
class Asked:
    """Of whom it is asked: who is counted, in how many groups, and who is a neighbour. Public."""

    noun: str
    neighbours: Neighbours
    groups: int | None
    max_groups: int

    @property
    def options(self) -> dict[str, Any]:
        """Return the parameters of a plan."""
        groups = {} if self.groups is None else {"groups": self.groups, "max_groups": self.max_groups}
        return {"neighbours": self.neighbours.value, **groups}


def of_most(asked: Asked, method: Method, mechanism: MechanismBase, *, single: bool, rule: str | None) -> Measure:
    """The accuracy of a mode or a top-k."""
    return partial(_most, asked, method, mechanism, single, rule)


def of_levels(
    asked: Asked, levels: Sequence[Fraction], size: int, max_rows: int | None, mechanism: MechanismBase
) -> Measure:
    """The accuracy of one or several quantiles."""
    return partial(_levels, asked, tuple(levels), size, max_rows, mechanism)


def of_found(asked: Asked, price: Price, budget: Budget | None, **question: Any) -> Measure:
    """The accuracy of values that are found in the data. The question is that of `plan_found`."""
    return partial(_found, asked, price, budget, question)


def _most(asked: Asked, method: Method, mechanism: MechanismBase, single: bool, rule: str | None) -> Accuracy | None:
    from dpselect.analysis.questions import Mode, TopK  # noqa: PLC0415 - slow to import
    from dpselect.analysis.ways import ByMethod, BySelection  # noqa: PLC0415 - as above

    if method.candidates < 2:
        return None
    named: dict[str, Any] = {"candidates": method.candidates, "rule": rule, **asked.options}
    if single:
        return _bounds(asked, BySelection(Mode(**named)), mechanism)
    parameters = method.parameters()
    k = parameters["k"]
    named |= {"k": tuple(k) if isinstance(k, list) else k, "max_values": method.max_values, "ordered": method.ordered}
    return _bounds(asked, ByMethod(TopK(**named, method=method.name), method), mechanism)


def _levels(
    asked: Asked, levels: tuple[Fraction, ...], size: int, max_rows: int | None, mechanism: MechanismBase
) -> Accuracy | None:
    from dpselect.analysis.questions import Quantile, Quantiles  # noqa: PLC0415 - slow to import
    from dpselect.analysis.ways import BySelection  # noqa: PLC0415 - as above

    if size < 2:
        return None
    named: dict[str, Any] = {"candidates": size, "max_rows": max_rows, **asked.options}
    planned = Quantile(level=levels[0], **named) if len(levels) == 1 else Quantiles(levels=levels, **named)
    return _bounds(asked, BySelection(planned), mechanism)


def _bounds(asked: Asked, way: Any, mechanism: MechanismBase) -> Accuracy:
    """The bounds of a plan, in people or rows."""
    question, promised = way.question, way.promise(mechanism)
    average, usual, rare = (
        bound / question.unit for bound in (promised.average, promised.within_95, promised.within_99)
    )
    needed = question.people_needed(mechanism)
    # A row has one value and is in one group.
    condition, holds = (way.condition, way.holds) if asked.noun == "people" else ("", "This holds for any data.")
    told = [way.meaning(*map(shown, (average, usual, rare))), holds]
    told += filter(None, [question.dense(mechanism)])
    told += [] if needed is None else [question.need(needed)]
    if asked.groups is not None:
        few = f"{math.ceil(usual):,} {question.per_person}"
        told.append(f"In a group of fewer than {few}, the answer may be mere chance.")
    bounds = (average, usual, question.per_person, f"bound {condition or 'for any data'}")
    accuracy = Accuracy(*bounds, " ".join(told), question.usual_error(mechanism), condition, needed)
    return _in_nouns(asked, accuracy)


def _found(asked: Asked, price: Price, budget: Budget | None, question: Mapping[str, Any]) -> Accuracy:
    from dpselect.analysis.found_plans import plan_found  # noqa: PLC0415 - slow to import

    paid: dict[str, Any] = {name: getattr(price, name) for name in ("epsilon", "rho", "delta", "mechanism")}
    planned = plan_found(**question, **paid, budget=budget, **asked.options)
    people, limit = (float(planned.half), float(planned.usual)), planned.max_values if asked.noun == "people" else None
    counted = "" if limit is None else planned.condition
    told = " ".join(filter(None, [*planned.sentences[: 1 if planned.nothing is None else 2], counted]))
    more = "" if limit is None else f"if nobody has more than {'one value' if limit == 1 else f'{limit:,} values'}"
    found = Accuracy(*people, "people", "people who must have a value to be found", told, condition=more)
    return _in_nouns(asked, found)


def _in_nouns(asked: Asked, accuracy: Accuracy) -> Accuracy:
    """The accuracy in the words of those who are counted: plans speak of people."""
    if asked.noun == "people":
        return accuracy
    words, method = accuracy.words.replace(" people", " rows"), accuracy.method.replace("people", "rows")
    return replace(accuracy, unit="rows", method=method, words=words)
