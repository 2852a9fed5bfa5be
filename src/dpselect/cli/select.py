"""`dpselect select`: one private selection from scores in a file."""

import json
from typing import Annotated

import typer

from dpselect.cli.console import clean_errors, print_line
from dpselect.cli.options import Column, Epsilon, File, Json, Label, Monotonic, ScoreRange, Sensitivity
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.registry import KINDS, MechanismName
from dpselect.score_files import Candidates, read_scores

_Name = Annotated[
    MechanismName, typer.Option(metavar="M", help="permute-and-flip (recommended), exponential or noisy-max.")
]


def select(  # noqa: PLR0913 - typer makes an option of each argument
    file: File,
    *,
    epsilon: Epsilon,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    mechanism: _Name = MechanismName.PERMUTE_AND_FLIP,
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
        chooser = KINDS[mechanism](epsilon, sensitivity, monotonic, score_range=score_range)
        candidates = read_scores(file, column=column, label=label)
        index = chooser.select(candidates.scores)
    (_print_json if as_json else _print_text)(chooser, mechanism, candidates, index)


def _print_text(chooser: MechanismBase, name: MechanismName, candidates: Candidates, index: int) -> None:
    print_line(candidates.labels[index] if candidates.labels else f"candidate {index} (counting from 0)", "bold green")
    print_line(f"chosen by {name.value}, {chooser.claim}; guarantee: {chooser.guarantee}", "dim")


def _print_json(chooser: MechanismBase, name: MechanismName, candidates: Candidates, index: int) -> None:
    answer = {
        "candidate": candidates.labels[index] if candidates.labels else None,
        "index": index,
        "mechanism": name.value,
        "epsilon": str(chooser.epsilon),
        **chooser.claim.to_dict(),
        "guarantee": str(chooser.guarantee),
    }
    typer.echo(json.dumps(answer))
