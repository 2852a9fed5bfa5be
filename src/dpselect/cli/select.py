"""`dpselect select`: a private selection from scores in a file, of one candidate or of several."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dpselect.accounting.budget import AUTO, Price
from dpselect.cli.console import clean_errors, print_line, print_terms
from dpselect.cli.options import (
    Budget,
    Column,
    Dataset,
    File,
    Json,
    Label,
    LedgerFile,
    Method,
    Monotonic,
    OptionalEpsilon,
    Ordered,
    RequestId,
    Rho,
    ScoreRange,
    Sensitivity,
    check_ledger_options,
    open_ledger,
)
from dpselect.errors import InvalidValue
from dpselect.mechanisms import MECHANISMS, MechanismBase
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.questions.methods import is_in_order
from dpselect.questions.options import sizes, whole
from dpselect.release import Answer
from dpselect.score_files import ScoreFile, read_scores
from dpselect.top_k import release_top_k

_Name = Annotated[str, typer.Option(metavar="M", help=f"One of {', '.join(MECHANISMS)}. auto: by the kind of budget.")]

_What = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the ledger records as the question. It is public.")
]
_K = Annotated[
    str | None,
    typer.Option(
        "-k", metavar="K|LO:HI", help="Choose K candidates, or LO to HI. Scores must then be numbers of people."
    ),
]
_MaxValues = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="With -k: no person is counted in more than N scores. set and noisy-counts need it."
    ),
]


def select(  # noqa: PLR0913 - typer makes an option of each argument
    file: File,
    *,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    k: _K = None,
    method: Method = AUTO,
    max_values: _MaxValues = None,
    ordered: Ordered = False,
    mechanism: _Name = AUTO,
    column: Column = None,
    label: Label = None,
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    what: _What = None,
    as_json: Json = False,
) -> None:
    """Choose one candidate with a high score, or several, privately.

    SCORES.csv has one column (score) or two (label, score), with or without a header.
    Scores are read at their exact decimal value and never rounded.
    Labels must be public. Scores stay secret: only the choice is printed.
    Without --ledger, nothing records what was spent.

    With -k, the scores must be numbers of people: a person adds at most one to each of them.
    With --monotonic, people are added or removed. Without it, a person may be replaced by another, which needs twice
    the noise. The answer is printed in the order of the file; with --ordered, the best is first.

    Example: dpselect select counts.csv --epsilon 0.1 --monotonic

    Example: dpselect select counts.csv --epsilon 0.1 --monotonic --ledger survey.ledger --budget 1

    Example: dpselect select counts.csv -k 10 --max-values 1 --epsilon 0.1 --monotonic
    """
    with clean_errors():
        check_ledger_options(ledger, budget=budget, dataset=dataset, request_id=request_id, what=what)
        _check_options(k, {"sensitivity": sensitivity, "score_range": score_range}, method, max_values, ordered)
        price, claim = Price(epsilon, rho, mechanism), stated(sensitivity, monotonic, score_range)
        limit = None if max_values is None else whole(max_values, "max_values")
        choices = {"method": method, "max_values": limit, "ordered": ordered, "monotonic": monotonic}
        wanted = None if k is None else sizes(k)
        candidates = read_scores(file, column=column, label=label)
        asked = {"question": what or ("select" if k is None else "top_k")} | ({"column": column} if column else {})
        paid = None if ledger is None else open_ledger(ledger, budget, dataset)
        release = {"ledger": paid, "what": asked, "request_id": request_id}
        if wanted is None:
            show = _select_one(candidates, price, claim, release)
        else:
            show = _select_several(candidates, price, wanted, choices, release)
    show(as_json)


def _check_options(
    k: str | None, claims: dict[str, str | None], method: str, max_values: str | None, ordered: bool
) -> None:
    if k is None:
        for name, is_given in {"method": method != AUTO, "max-values": max_values, "ordered": ordered}.items():
            if is_given:
                raise InvalidValue(f"--{name} is for several candidates: give -k too")
        return
    for name, claim in claims.items():
        if claim is not None:
            raise InvalidValue(
                f"--{name.replace('_', '-')} cannot be given with -k: scores must then be numbers of people, and a"
                " person adds at most one to each of them"
            )


def _select_one(candidates: ScoreFile, price: Price, claim: Claim, release: dict[str, Any]) -> Callable[[bool], None]:
    paid = release["ledger"]
    chooser = price.drawn_by(None if paid is None else paid.budget, 1, **claim.arguments())
    answer = chooser.release(candidates.scores, **release, rho=price.rho)
    return lambda as_json: (_print_json if as_json else _print_text)(chooser, answer, candidates)


def _select_several(
    candidates: ScoreFile, price: Price, k: int | tuple[int, int], choices: dict[str, Any], release: dict[str, Any]
) -> Callable[[bool], None]:
    # Positions are printed too, and labels need not be different.
    named = None if candidates.labels is None else list(enumerate(candidates.labels))
    given: dict[str, Any] = {"epsilon": price.epsilon, "rho": price.rho, "mechanism": price.mechanism}
    answer = release_top_k(candidates.scores, k, named, **given, **choices, **release)
    chosen = [(position, None) for position in answer.value] if named is None else answer.value
    shown = {**choices, "ordered": is_in_order(choices["method"], choices["ordered"])}
    return lambda as_json: (_print_several_json if as_json else _print_several_text)(answer, chosen, shown)


def _shown(position: int, label: str | None) -> str:
    return f"candidate {position} (counting from 0)" if label is None else label


def _print_text(chooser: MechanismBase, answer: Answer, candidates: ScoreFile) -> None:
    index = answer.value
    print_line(_shown(index, candidates.labels[index] if candidates.labels else None), "bold green")
    print_terms(answer, f", {chooser.claim}")


def _print_json(chooser: MechanismBase, answer: Answer, candidates: ScoreFile) -> None:
    content = answer.to_dict()
    index = content.pop("value")
    shown = {
        "candidate": candidates.labels[index] if candidates.labels else None,
        "index": index,
        **content,
        **chooser.claim.to_json(),
    }
    typer.echo(json.dumps(shown))


_Chosen = list[tuple[int, str | None]]


def _print_several_text(answer: Answer, chosen: _Chosen, choices: dict[str, Any]) -> None:
    for position, label in chosen:
        print_line(_shown(position, label), "bold green")
    if answer.epsilon and not choices["ordered"] and len(chosen) > 1:
        print_line("in the order of the file, which says nothing about the scores", "dim")
    print_terms(answer)


def _print_several_json(answer: Answer, chosen: _Chosen, choices: dict[str, Any]) -> None:
    content = answer.to_dict()
    del content["value"]
    labels = [label for _, label in chosen]
    found = {"candidates": None if None in labels else labels, "indices": [position for position, _ in chosen]}
    typer.echo(json.dumps({**found, **content, **choices}))
