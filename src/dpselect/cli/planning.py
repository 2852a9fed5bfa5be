"""`dpselect plan`: what accuracy to expect and what epsilon to ask for, before any data are touched."""

from typing import Annotated

import typer

from dpselect._scores import Vector
from dpselect._validate import fraction_of_one
from dpselect.cli.console import busy, clean_errors
from dpselect.cli.options import Column, Json, Label, Monotonic, ScoreRange, Sensitivity
from dpselect.cli.parsing import claimed, positive, whole
from dpselect.cli.public_scores import read_public_scores
from dpselect.errors import InvalidValue

_Candidates = Annotated[
    str | None, typer.Option(metavar="N", help="How many candidates there are. Default: as many as in --scores.")
]
_Epsilon = Annotated[
    str | None, typer.Option(metavar="E", help="Privacy of each selection, 0.1, 1e-3 or 1/3, to learn its error.")
]
_Error = Annotated[
    str | None,
    typer.Option(metavar="X", help="How far below the best the choice may be on average, to learn its epsilon."),
]
_Selections = Annotated[str, typer.Option(metavar="K", help="How many selections share one privacy budget.")]
_Delta = Annotated[
    str | None,
    typer.Option(metavar="D", help="Also what they cost together as (epsilon, D), by the best known accounting."),
]
_Scores = Annotated[
    str | None,
    typer.Option(metavar="PUBLIC.csv", help="Public or synthetic scores: adds the exact figures on them."),
]

_MOST_CANDIDATES = 10**15
_MOST_SELECTIONS = 10**9


def plan(  # noqa: PLR0913 - typer makes an option of each argument
    *,
    candidates: _Candidates = None,
    epsilon: _Epsilon = None,
    error: _Error = None,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    selections: _Selections = "1",
    delta: _Delta = None,
    scores: _Scores = None,
    column: Column = None,
    label: Label = None,
    as_json: Json = False,
) -> None:
    """Tell what accuracy to expect, or what epsilon to ask for, before touching data.

    Guaranteed figures need only the number of candidates, and hold whatever the data.
    Figures computed from private scores are themselves private: give --scores public or synthetic ones.

    Example: dpselect plan --candidates 1000 --epsilon 0.5

    Example: dpselect plan --candidates 1000 --error 20 --monotonic --selections 20

    Example: dpselect plan --candidates 1000 --epsilon 0.1 --selections 50 --delta 1e-6

    Example: dpselect plan --scores public.csv --epsilon 0.5
    """
    # SciPy takes longer to import than all the rest of the command line.
    from dpselect.cli.plan_figures import Question, figures  # noqa: PLC0415
    from dpselect.cli.plan_json import print_json  # noqa: PLC0415
    from dpselect.cli.plan_report import print_text  # noqa: PLC0415

    with clean_errors():
        if (epsilon is None) == (error is None):
            raise InvalidValue("give either --epsilon, to learn the error, or --error, to learn the epsilon")
        times = whole(least=1, most=_MOST_SELECTIONS, selections=selections)
        given = None if epsilon is None else positive(epsilon=epsilon)
        wanted = None if error is None else positive(error=error)
        claim = claimed(sensitivity, monotonic, score_range)
        failure = None if delta is None else fraction_of_one(delta=delta)
        number, vector = _candidates(candidates, scores, column, label)
        question = Question(number, given, wanted, claim, times, failure, scores, vector)
        with busy("Planning ..."):
            answer = figures(question)
    (print_json if as_json else print_text)(question, answer)


def _candidates(
    candidates: str | None, file: str | None, column: str | None, label: str | None
) -> tuple[int, Vector | None]:
    """The number of candidates, and the public scores if a file is given."""
    if file is None:
        if candidates is None:
            raise InvalidValue("give --candidates, how many there are to choose from, or --scores with a public file")
        if column is not None or label is not None:
            raise InvalidValue("--column and --label name columns of a file: give --scores too")
        return _count(candidates), None
    given = None if candidates is None else _count(candidates)
    scores = read_public_scores(file, column, label)
    return given or _count(str(len(scores))), scores


def _count(candidates: str) -> int:
    return whole(least=2, most=_MOST_CANDIDATES, candidates=candidates)
