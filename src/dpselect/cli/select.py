"""`dpselect select`: one private selection from scores in a file."""

import json
from typing import Annotated

import typer

from dpselect.accounting.budget import AUTO, Price
from dpselect.cli.console import clean_errors, print_line
from dpselect.cli.options import (
    Budget,
    Column,
    Dataset,
    File,
    Json,
    Label,
    LedgerFile,
    Monotonic,
    OptionalEpsilon,
    RequestId,
    Rho,
    ScoreRange,
    Sensitivity,
    check_ledger_options,
    open_ledger,
)
from dpselect.mechanisms import MECHANISMS, MechanismBase
from dpselect.mechanisms.base import checked_mechanism
from dpselect.mechanisms.parameters import stated
from dpselect.release import Answer
from dpselect.score_files import ScoreFile, read_scores

_Name = Annotated[str, typer.Option(metavar="M", help=f"One of {', '.join(MECHANISMS)}. auto: by the kind of budget.")]

_What = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the ledger records as the question. It is public.")
]


def select(  # noqa: PLR0913 - typer makes an option of each argument
    file: File,
    *,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
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
    """Choose one candidate with a high score, privately.

    SCORES.csv has one column (score) or two (label, score), with or without a header.
    Scores are read at their exact decimal value and never rounded.
    Labels must be public. Scores stay secret: only the choice is printed.
    Without --ledger, nothing records what was spent.

    Example: dpselect select counts.csv --epsilon 0.1 --monotonic

    Example: dpselect select counts.csv --epsilon 0.1 --monotonic --ledger survey.ledger --budget 1
    """
    with clean_errors():
        check_ledger_options(ledger, budget=budget, dataset=dataset, request_id=request_id, what=what)
        price, claim = Price(epsilon, rho, mechanism), stated(sensitivity, monotonic, score_range)
        candidates = read_scores(file, column=column, label=label)
        asked = {"question": what or "select", **({} if column is None else {"column": column})}
        paid = None if ledger is None else open_ledger(ledger, budget, dataset)
        chooser = checked_mechanism(price.drawn_by(None if paid is None else paid.budget, 1, **claim.arguments()))
        answer = chooser.release(candidates.scores, ledger=paid, what=asked, request_id=request_id, rho=price.rho)
    (_print_json if as_json else _print_text)(chooser, answer, candidates)


def _print_text(chooser: MechanismBase, answer: Answer, candidates: ScoreFile) -> None:
    index = answer.value
    print_line(candidates.labels[index] if candidates.labels else f"candidate {index} (counting from 0)", "bold green")
    entry = f"; {answer.entry}" if answer.entry else ""
    print_line(f"chosen by {answer.mechanism}, {chooser.claim}; guarantee: {answer.guarantee}{entry}", "dim")


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
