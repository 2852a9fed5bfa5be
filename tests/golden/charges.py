"""What every kind of question charges and draws by: each kind, in each relation, with groups and budgets of each type.

A line names the question, and then what the ledger records for it: the mechanism, the epsilon of each release, how many
there are, delta, and what is taken from the budget. The rows do not matter, so there are two of them.
"""

import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import dpselect
from dpselect.errors import DPSelectError

ROWS = pa.table({"who": ["a", "b"], "x": [1, 2], "t": ["u", "v"], "g": ["k", "l"], "h": [1, 2]})
CANDIDATES = ["u", "v", "w", "x", "y", "z"]
RANGE: dict[str, Any] = {"lower": 0, "upper": 99}
DELTA = {"delta": "1e-6"}

QUESTIONS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "mode of a list": ("mode", ("t",), {"candidates": CANDIDATES}),
    "mode with others": ("mode", ("t",), {"candidates": CANDIDATES, "other": "other"}),
    "mode of a small domain": ("mode", ("x",), {"candidates": dpselect.every("int8")}),
    "mode of a large domain": ("mode", ("x",), {"candidates": dpselect.every("int64")}),
    "mode of unlisted values": ("mode", ("t",), DELTA),
    "mode of unlisted values, limited": ("mode", ("t",), {**DELTA, "max_values": 2}),
    "top 2, auto": ("top_k", ("t", 2), {"candidates": CANDIDATES}),
    "top 2, limited": ("top_k", ("t", 2), {"candidates": CANDIDATES, "max_values": 1}),
    "top 2, set": ("top_k", ("t", 2), {"candidates": CANDIDATES, "method": "set", "max_values": 2}),
    "top 2, margin": ("top_k", ("t", 2), {"candidates": CANDIDATES, "method": "margin"}),
    "top 1 to 3, margin": ("top_k", ("t", (1, 3)), {"candidates": CANDIDATES}),
    "top 2, one shot": ("top_k", ("t", 2), {"candidates": CANDIDATES, "method": "one-shot"}),
    "top 2, peel": ("top_k", ("t", 2), {"candidates": CANDIDATES, "method": "peel"}),
    "top 2, noisy counts": ("top_k", ("t", 2), {"candidates": CANDIDATES, "method": "noisy-counts", "max_values": 2}),
    "top 2, ordered": ("top_k", ("t", 2), {"candidates": CANDIDATES, "ordered": True}),
    "top 2 of a large domain": ("top_k", ("x", 2), {"candidates": dpselect.every("int64")}),
    "top 2 of unlisted values": ("top_k", ("t", 2), {**DELTA, "max_values": 2}),
    "top of all": ("top_k", ("t", 6), {"candidates": CANDIDATES}),
    "values": ("values", ("t",), DELTA),
    "values, up to 3": ("values", ("t",), {**DELTA, "max_values": 3}),
    "median": ("median", ("x",), RANGE),
    "median of rows": ("median", ("x",), {**RANGE, "per_person": "rows", "max_rows": 3}),
    "quantile 0.9": ("quantile", ("x", "0.9"), RANGE),
    "quantile 1/3 of magnitudes": ("quantile", ("x", "1/3"), {"range": "log"}),
    "minimum": ("minimum", ("x",), RANGE),
    "maximum": ("maximum", ("x",), RANGE),
    "deciles": ("quantiles", ("x", "deciles"), RANGE),
    "two quantiles of rows": ("quantiles", ("x", ["0.5", "0.9"]), {**RANGE, "per_person": "rows", "max_rows": 2}),
}
GROUPS: dict[str, dict[str, Any] | None] = {
    "": None,
    ", in 1 of 3 groups": {"column": "g", "groups": ["k", "l", "m"]},
    ", in 2 of 4 pairs": {"column": ["g", "h"], "groups": {"g": ["k", "l"], "h": [1, 2]}, "max_groups": 2},
}
BUDGETS: dict[str, tuple[Any, dict[str, str]]] = {
    "pure": ("100", {"epsilon": "0.6"}),
    "zcdp, rho": (dpselect.zcdp("100", delta="0.001"), {"rho": "0.06"}),
    "zcdp, epsilon": (dpselect.zcdp("100", delta="0.001"), {"epsilon": "0.6"}),
    "approximate": (dpselect.approximate("100", "0.001"), {"epsilon": "0.06"}),
}


def lines() -> Iterator[str]:
    """The golden lines: what is charged, and of some questions what the ledger says about them."""
    with tempfile.TemporaryDirectory() as folder:
        units = itertools.product((None, "who"), ("add-remove", "replace"), BUDGETS)
        for number, (person, neighbours, budget) in enumerate(units):
            amount, cost = BUDGETS[budget]
            path = Path(folder) / str(number)
            table = dpselect.open_table(ROWS, person=person, neighbours=neighbours, ledger=path, budget=amount)
            who = f"{'rows' if person is None else 'people'}, {neighbours}, {budget}"
            asked = [
                (f"{name}{grouped}", _asked(table, question, groups, cost))
                for (name, question), (grouped, groups) in itertools.product(QUESTIONS.items(), GROUPS.items())
            ]
            entries = {entry.id: entry for entry in dpselect.Ledger(path).entries()}
            yield f"# {who}"
            yield from (f"{name}: {_written(outcome, entries)}" for name, outcome in asked)
            if (person, budget) == ("who", "pure"):
                yield f"# {who}: what the ledger says"
                yield from (f"{name}: {_what(outcome, entries)}" for name, outcome in asked)


def _asked(table: Any, question: tuple[str, tuple[Any, ...], dict[str, Any]], groups: Any, cost: Any) -> Any:
    method, arguments, options = question
    try:
        asked = table if groups is None else table.group_by(**groups)
        return getattr(asked, method)(*arguments, **options, **cost)
    except DPSelectError as error:
        return f"refused: {error}"


def _written(outcome: Any, entries: dict[int, Any]) -> str:
    if isinstance(outcome, str):
        return outcome
    if outcome.ledger_id is None:
        return "free"
    entry = entries[outcome.ledger_id]
    names = ("mechanism", "each", "count", "epsilon", "rho", "delta")
    facts = ", ".join(f"{name} {value}" for name in names if (value := getattr(entry.charge, name, None)))
    return f"{facts}; {outcome.guarantee}; charged {outcome.charged.words}"


def _what(outcome: Any, entries: dict[int, Any]) -> str:
    if isinstance(outcome, str) or outcome.ledger_id is None:
        return "nothing"
    return f"{json.dumps(entries[outcome.ledger_id].what)}; {outcome.accuracy}"
