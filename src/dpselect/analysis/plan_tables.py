"""The tables of plans, as texts: the command line and notebooks show the same ones.

The plans that they take are those of `planning` and `found_plans`, which import this file.
"""

from typing import Any

from dpselect._numbers import shown

Texts = tuple[list[str], list[list[str]]]


def plan_table(planned: Any) -> Texts:
    """The heads and the rows of a `Plan`: the accuracy and the cost of each mechanism. Public numbers only.

    >>> from dpselect import analysis
    >>> plan_table(analysis.plan(4, question="mode", epsilon="0.1"))[1][0]
    ['permute-and-flip', '0.1', '4.42', '43.83', '59.92', 'epsilon 0.1']
    """
    rounds, count = planned.way.rounds, planned.questions
    heads = ["\nmechanism", "epsilon of\na draw", "average\nat most", "95 of 100\nbelow", "99 of 100\nbelow"]
    heads += [f"all {rounds:,}, 95 of\n100 below"] if rounds > 1 else []
    heads += ["one question\ncosts"]
    heads += [f"{count:,} questions\ncost"] if count > 1 else []
    heads += ["questions that\nthe budget allows"] if planned.budget is not None else []
    return heads, [_mechanism(planned, name, accuracy) for name, accuracy in planned.accuracy.items()]


def _mechanism(planned: Any, name: str, accuracy: Any) -> list[str]:
    cost = planned.costs[name]
    each = 0 if cost.charge is None else cost.charge.each
    cells = [shown(float(each), digits=6), *map(shown, (accuracy.average, accuracy.within_95, accuracy.within_99))]
    cells += [shown(accuracy.all_within_95)] if planned.way.rounds > 1 else []
    cells += [cost.one.words]
    cells += [cost.total.words] if planned.questions > 1 else []
    if planned.budget is not None:
        cells += ["any number" if cost.allowed is None else f"{cost.allowed:,}"]
    return [name, *cells]


def found_table(found: Any) -> Texts:
    """The heads and the rows of a `FoundPlan`: how many people must have a value so that it is found.

    >>> from dpselect import analysis
    >>> found_table(analysis.plan_found("values", epsilon=1, delta="1e-6"))[1][0][1:]
    ['14', '16', '28']
    """
    rows = {"" if found.limited is None else "any number of values": found}
    rows |= {} if found.limited is None else {"max-values 1": found.limited}
    heads = ["\nmechanism", "probability\n1/2", "95 of\n100"] + (["\nalways"] if found.surely is not None else [])
    texts = []
    for name, each in rows.items():
        people = [each.half, each.usual] + ([] if each.surely is None else [each.surely])
        texts.append([", ".join(filter(None, [each.mechanism, name])), *(f"{number:,}" for number in people)])
    return heads, texts
