"""What `dpselect plan --json` prints."""

import json
from typing import Any

import typer

from dpselect.analysis.plan import EqualCost, Promise
from dpselect.cli.plan_figures import Figures, Proxy, Question
from dpselect.ledger.rounds import EqualRounds, Rounds
from dpselect.mechanisms.names import MechanismName, name_of


def print_json(question: Question, answer: Figures) -> None:
    """Print one JSON object: the question with exact numbers, and the figures as floats, not rounded."""
    content = {
        "candidates": question.candidates,
        **question.claim.to_dict(),
        "epsilon": None if question.epsilon is None else str(question.epsilon),
        "error": None if question.error is None else str(question.error),
        "selections": question.selections,
        "mechanisms": [_promise(name, promised, question.selections) for name, promised in answer.promises.items()],
        "better_for_one": MechanismName.PERMUTE_AND_FLIP.value,
        "better_for_many": None if answer.equal is None else _many(answer.equal, question.selections),
        "approximate": None if answer.rounds is None else _approximate(answer.rounds),
        "proxy": None if question.scores is None else _proxies(question, answer.proxies),
    }
    typer.echo(json.dumps(content))


def _promise(name: MechanismName, promised: Promise, times: int) -> dict[str, Any]:
    guarantee = promised.mechanism.guarantee
    return {
        "mechanism": name.value,
        "epsilon": float(guarantee.epsilon),
        "expected_error_at_most": promised.average,
        "expected_error_attained": promised.attained,
        "error_95": promised.within_95,
        "error_99": promised.within_99,
        "total_epsilon": float(guarantee.epsilon * times),
        "total_zcdp": guarantee.zcdp * times,
    }


def _many(equal: EqualCost, times: int) -> dict[str, Any]:
    better = MechanismName.EXPONENTIAL if equal.better is equal.exponential else MechanismName.PERMUTE_AND_FLIP
    same = {
        MechanismName.EXPONENTIAL.value: equal.exponential,
        MechanismName.PERMUTE_AND_FLIP.value: equal.permute_and_flip,
    }
    return {
        "pure": MechanismName.PERMUTE_AND_FLIP.value,
        "zcdp": better.value,
        "at_total_zcdp": equal.rho * times,
        **{
            name: {"epsilon": float(promised.mechanism.epsilon), "expected_error_at_most": promised.average}
            for name, promised in same.items()
        },
    }


def _approximate(compared: EqualRounds) -> dict[str, Any]:
    return {
        "delta": compared.exponential.total.delta,
        "better": name_of(compared.better.each.mechanism).value,
        "exponential": _rounds(compared.exponential),
        "permute-and-flip at equal error": _rounds(compared.equal_error),
        "permute-and-flip at equal budget": _rounds(compared.equal_budget),
    }


def _rounds(rounds: Rounds) -> dict[str, Any]:
    return {
        "epsilon": float(rounds.each.mechanism.epsilon),
        "expected_error_at_most": rounds.each.average,
        "total_epsilon": rounds.total.epsilon,
        "method": rounds.total.method,
    }


def _proxies(question: Question, proxies: dict[MechanismName, Proxy]) -> dict[str, Any]:
    shown = ("epsilon",) if question.epsilon is None else ("expected_error", "error_95")
    return {
        "file": question.file,
        "mechanisms": [
            {"mechanism": name.value, **{key: getattr(proxy, key) for key in shown}} for name, proxy in proxies.items()
        ],
    }
