"""`dpselect select`: one private selection from scores in a file."""

import json
from typing import Annotated

import typer

from dpselect.cli.console import clean_errors, print_line
from dpselect.cli.options import Column, Epsilon, File, Json, Label, Monotonic, ScoreRange, Sensitivity, mechanism_class
from dpselect.mechanisms import MECHANISMS, MechanismBase, PermuteAndFlip
from dpselect.score_files import Candidates, read_scores

_Name = Annotated[
    str, typer.Option(metavar="M", help=f"One of {', '.join(MECHANISMS)}. Recommended: {PermuteAndFlip.name}.")
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
    as_json: Json = False,
) -> None:
    """Choose one candidate with a high score, privately.

    SCORES.csv has one column of scores, or two: label, score. A header is fine.
    Scores are taken at their exact decimal value, never rounded.
    Labels must be public. Scores stay secret: only the choice is printed.

    Example: dpselect select counts.csv --epsilon 0.1 --monotonic
    """
    with clean_errors():
        chooser = mechanism_class(mechanism)(epsilon, sensitivity, monotonic, score_range=score_range)
        candidates = read_scores(file, column=column, label=label)
        index = chooser.select(candidates.scores)
    (_print_json if as_json else _print_text)(chooser, candidates, index)


def _print_text(chooser: MechanismBase, candidates: Candidates, index: int) -> None:
    print_line(candidates.labels[index] if candidates.labels else f"candidate {index} (counting from 0)", "bold green")
    print_line(f"chosen by {chooser.name}, {chooser.claim}; guarantee: {chooser.guarantee}", "dim")


def _print_json(chooser: MechanismBase, candidates: Candidates, index: int) -> None:
    answer = {
        "candidate": candidates.labels[index] if candidates.labels else None,
        "index": index,
        "mechanism": chooser.name,
        "epsilon": str(chooser.epsilon),
        **chooser.claim.to_dict(),
        "guarantee": str(chooser.guarantee),
    }
    typer.echo(json.dumps(answer))
