"""`dpselect select`: one private selection from scores in a file."""

import json
from typing import Annotated

import typer

from dpselect.cli.console import clean_errors, print_line
from dpselect.cli.options import (
    Budget,
    Column,
    Dataset,
    Epsilon,
    File,
    Json,
    Label,
    LedgerFile,
    Monotonic,
    RequestId,
    ScoreRange,
    Sensitivity,
    check_ledger_options,
    mechanism_class,
    open_ledger,
)
from dpselect.mechanisms import MECHANISMS, MechanismBase, PermuteAndFlip
from dpselect.release import Answer
from dpselect.score_files import ScoreFile, read_scores

_Name = Annotated[
    str, typer.Option(metavar="M", help=f"One of {', '.join(MECHANISMS)}. Recommended: {PermuteAndFlip.name}.")
]

_What = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the ledger records as the question. It is public.")
]


def select(  # noqa: PLR0913 - typer makes an option of each argument
    file: File,
    *,
    epsilon: Epsilon,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    mechanism: _Name = PermuteAndFlip.name,
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
        chooser = mechanism_class(mechanism)(epsilon, sensitivity, monotonic, score_range=score_range)
        candidates = read_scores(file, column=column, label=label)
        asked = {"question": what or "select", **({} if column is None else {"column": column})}
        paid = None if ledger is None else open_ledger(ledger, budget, dataset)
        answer = chooser.release(candidates.scores, ledger=paid, what=asked, request_id=request_id)
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
