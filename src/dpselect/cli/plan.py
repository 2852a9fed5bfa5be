"""`dpselect plan`: what accuracy to expect, what it costs, or what epsilon to use, before any data are touched.

There is a sub-command for each kind of question. `analysis.plan` computes everything, and `plan_text` prints it.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect._numbers import is_number
from dpselect._types import Vector
from dpselect._validate import fraction_of_one
from dpselect.cli.commands import Commands
from dpselect.cli.console import busy, clean_errors
from dpselect.cli.options import (
    Column,
    Json,
    Label,
    MaxValues,
    MechanismName,
    Method,
    Monotonic,
    NeighboursName,
    Ordered,
    Rho,
    ScoreRange,
    Sensitivity,
    claimed,
    limit,
    listed_levels,
    positive,
    sizes,
    whole,
    with_options,
)
from dpselect.cli.plan_text import print_many, print_plan
from dpselect.errors import InvalidValue
from dpselect.score_files import read_public_scores

if TYPE_CHECKING:
    from dpselect.questions.plan import FoundPlan, Plan


_Candidates = Annotated[str | None, typer.Option(metavar="N", help="Number of candidates. Default: that of --scores.")]
_Epsilon = Annotated[
    str | None, typer.Option(metavar="E", help="Epsilon of each selection (0.1, 1e-3 or 1/3); prints its error.")
]
_Error = Annotated[
    str | None,
    typer.Option(metavar="X", help="Acceptable average distance from the best; prints the epsilon it needs."),
]
_Delta = Annotated[
    str | None,
    typer.Option(metavar="D", help="Also print their total cost as (epsilon, D), by the best known accounting."),
]
_Scores = Annotated[
    str | None,
    typer.Option(metavar="PUBLIC.csv", help="Public or synthetic scores; adds exact errors on these scores."),
]

_MOST_CANDIDATES = 10**15
_MOST_QUESTIONS = 10**9


plan = typer.Typer(cls=Commands, no_args_is_help=True)


@plan.callback()
def before_any_data() -> None:
    """Print what accuracy to expect, what it costs, or what epsilon to use, before touching any data.

    Name a question about a table: mode, top, values, median, quantile, quantiles, minimum or maximum.
    For scores of your own, name select.
    The guarantees need only public numbers and hold for any data.

    Example: dpselect plan mode --candidates 30 --epsilon 0.1

    Example: dpselect plan median --lower 0 --upper 50000 --budget zcdp:0.5 --questions 20

    Example: dpselect plan select --candidates 1000 --epsilon 0.5
    """


def _selection(
    source: tuple[str | None, str | None, str | None, str | None],
    claim: dict[str, Any],
    price: dict[str, str | None],
    *,
    delta: str | None,
    **options: Any,
) -> tuple["Plan", int]:
    """The plan of a selection, and the number of public scores. The file is read when all options are checked."""
    numbers = {name: None if text is None else positive(**{name: text}) for name, text in price.items()}
    stated = claimed(**claim)
    failure = None if delta is None else fraction_of_one(delta=delta)
    number, vector = _candidates(*source)
    planned = _planned(
        candidates=number, **numbers, **stated.arguments(), delta=failure, scores=vector, question="select", **options
    )
    return planned, 0 if vector is None else len(vector)


def _planned(**asked: Any) -> "Plan":
    # SciPy takes longer to import than all the rest of the command line.
    from dpselect import analysis  # noqa: PLC0415 - SciPy is slow to import

    with busy("Planning ..."):
        return analysis.plan(**asked)


_ListedCandidates = Annotated[
    str | None,
    typer.Option("--candidates", metavar="N|LIST|FILE", help="Number of candidates; or A,B,C or a file of them."),
]
_Every = Annotated[
    str | None, typer.Option(metavar="RULE", help="A rule instead of a list, as for dpselect mode: int64, text:8, ...")
]
_FoundDelta = Annotated[
    str | None,
    typer.Option("--delta", metavar="D", help="Values are found in the data; prints how many people a value needs."),
]
_Price = Annotated[
    str | None, typer.Option("--epsilon", metavar="E", help="Epsilon of each question; prints its error.")
]
_PeopleError = Annotated[
    str | None,
    typer.Option("--error", metavar="X", help="Acceptable average error in people; prints the price it needs."),
]
_Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="B",
        help="What pays for all questions: 1 (epsilon), zcdp:0.5, or 1,1e-6. Alone, it is divided evenly.",
    ),
]
_Questions = Annotated[str, typer.Option("--questions", metavar="Q", help="How many such questions share the budget.")]
_Groups = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N|LIST|FILE",
        help="One answer for each group: their number, A,B,C or a file. Repeat it to combine the groups of columns.",
    ),
]
_MaxGroups = Annotated[str, typer.Option(metavar="M", help="In how many groups one person may be counted.")]
_Lower = Annotated[
    str | None,
    typer.Option(metavar="A", help="Smallest candidate: a number, date or timestamp. Default: 2^64 candidates."),
]
_Upper = Annotated[str | None, typer.Option(metavar="B", help="Largest candidate.")]
_Step = Annotated[
    str | None,
    typer.Option(metavar="S", help="Step between candidates (days for dates, seconds for timestamps). Default: 1."),
]
_Range = Annotated[
    str, typer.Option("--range", metavar="R", help="full, or log for about 5,000 candidates of two digits.")
]
_MaxRows = Annotated[
    str | None,
    typer.Option(metavar="M", help="A person counts with at most M rows. Default: once, at their median."),
]


@dataclass(frozen=True)
class _Asked:
    """The price of each question, who pays, and whom it is about: what all questions about a table share."""

    epsilon: _Price = None
    rho: Rho = None
    budget: _Budget = None
    questions: _Questions = "1"
    groups: _Groups = None
    max_groups: _MaxGroups = "1"
    neighbours: NeighboursName = "add-remove"
    as_json: Json = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a plan. The groups of several columns are combined."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "budget": self.budget,
            "questions": whole(least=1, most=_MOST_QUESTIONS, questions=self.questions),
            "groups": None if not self.groups else math.prod(_number(groups=text) for text in self.groups),
            "max_groups": whole(least=1, most=_MOST_QUESTIONS, max_groups=self.max_groups),
            "neighbours": self.neighbours,
        }


@dataclass(frozen=True)
class _Drawn:
    """The accuracy that is wanted instead of a price, and the mechanism."""

    error: _PeopleError = None
    mechanism: MechanismName = "auto"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a plan."""
        return {"error": self.error, "mechanism": self.mechanism}


@dataclass(frozen=True)
class _Grid:
    """The candidates of a quantile, and with how many rows a person counts."""

    lower: _Lower = None
    upper: _Upper = None
    step: _Step = None
    range_: _Range = "full"
    max_rows: _MaxRows = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a plan."""
        rows = None if self.max_rows is None else whole(least=1, most=_MOST_QUESTIONS, max_rows=self.max_rows)
        return {"lower": self.lower, "upper": self.upper, "step": self.step, "range": self.range_, "max_rows": rows}


@plan.command()
@with_options(_Asked, _Drawn)
def mode(  # noqa: PLR0913 - typer makes an option of each argument
    asked: _Asked,
    drawn: _Drawn,
    *,
    candidates: _ListedCandidates = None,
    every: _Every = None,
    delta: _FoundDelta = None,
    max_values: MaxValues = None,
) -> None:
    """Plan `dpselect mode`: how many fewer people the chosen value can have than the most common one.

    Give one of --epsilon, --rho and --error, or only --budget.
    With --every, the candidates follow a rule. With --delta, they are found in the data: the plan says how many people
    must have a value, and --max-values limits for how many values a person counts.

    Example: dpselect plan mode --candidates 30 --epsilon 0.1

    Example: dpselect plan mode --every int64 --epsilon 0.1

    Example: dpselect plan mode --delta 1e-9 --max-values 1 --epsilon 0.1

    Example: dpselect plan mode --candidates I10,E11,J45 --error 100 --budget 1

    Example: dpselect plan mode --candidates 30 --groups 12 --max-groups 2 --budget 1,1e-6 --questions 10
    """
    with clean_errors():
        chosen, kept = _chosen(candidates, every, delta), limit(max_values)
        if chosen is not None and kept is not None:
            raise InvalidValue("--max-values is for values that nobody listed: give --delta, or leave it out")
        planned: Plan
        if chosen is None:
            planned = _found(asked, drawn, question="mode", delta=delta, max_values=kept)
        else:
            planned = _planned(question="mode", **chosen, **asked.arguments(), **drawn.arguments())
    print_plan(planned, asked.as_json)


@plan.command()
@with_options(_Asked, _Drawn)
def top(  # noqa: PLR0913 - typer makes an option of each argument
    asked: _Asked,
    drawn: _Drawn,
    *,
    k: Annotated[str, typer.Option("-k", metavar="K", help="How many candidates to return; LO:HI for the margin.")],
    candidates: _ListedCandidates = None,
    every: _Every = None,
    delta: _FoundDelta = None,
    method: Method = "auto",
    max_values: MaxValues = None,
    ordered: Ordered = False,
) -> None:
    """Plan `dpselect top`: how many fewer people the K chosen values can have than the K most common ones.

    The price is for the whole answer. The plan says which method auto takes, and compares the methods at this price.
    If your table has no person column, give --max-values 1: a row has one value.
    With --every, the candidates follow a rule. With --delta, they are found in the data, and the plan says how many
    people must have a value.

    Example: dpselect plan top -k 3 --candidates 30 --epsilon 1

    Example: dpselect plan top -k 10 --delta 1e-9 --max-values 1 --epsilon 1

    Example: dpselect plan top -k 10 --candidates codes.txt --max-values 1 --epsilon 0.1

    Example: dpselect plan top -k 10 --candidates codes.txt --budget zcdp:0.5 --questions 20
    """
    with clean_errors():
        number = {"k": sizes(k), "max_values": limit(max_values)}
        chosen = _chosen(candidates, every, delta)
        planned: Plan
        if chosen is None:
            _check_found(method=None if method in ("auto", "peel") else method)
            planned = _found(asked, drawn, question="top_k", delta=delta, **number)
        else:
            how = {"method": method, "ordered": ordered, **asked.arguments(), **drawn.arguments()}
            planned = _planned(question="top_k", **chosen, **number, **how)
    print_plan(planned, asked.as_json)


@plan.command()
@with_options(_Asked)
def values(
    asked: _Asked,
    *,
    delta: _FoundDelta = None,
    max_values: Annotated[str, typer.Option(metavar="M", help="For how many values one person counts at most.")] = "1",
) -> None:
    """Plan `dpselect values`: how many people must have a value so that it is found.

    Groups that are found in the data are planned in the same way: --max-values is their --max-groups.

    Example: dpselect plan values --epsilon 1 --delta 1e-9

    Example: dpselect plan values --rho 0.05 --delta 1e-9 --max-values 3 --budget zcdp:0.5,1e-8
    """
    with clean_errors():
        found = _found(asked, question="values", delta=delta, max_values=limit(max_values))
    print_plan(found, asked.as_json)


@plan.command()
@with_options(_Asked, _Drawn, _Grid)
def median(asked: _Asked, drawn: _Drawn, grid: _Grid) -> None:
    """Plan `dpselect median`: how many people the answer can be away from the median.

    Example: dpselect plan median --lower 0 --upper 50000 --epsilon 0.1

    Example: dpselect plan median --lower 2020-01-01 --upper 2025-12-31 --budget zcdp:0.5 --questions 20
    """
    with clean_errors():
        planned = _planned(question="median", **grid.arguments(), **asked.arguments(), **drawn.arguments())
    print_plan(planned, asked.as_json)


@plan.command()
@with_options(_Asked, _Drawn, _Grid)
def quantile(
    asked: _Asked,
    drawn: _Drawn,
    grid: _Grid,
    *,
    level: Annotated[
        str, typer.Option("--level", "-q", metavar="Q", help="Share of people below it, such as 0.9 or 1/3.")
    ],
) -> None:
    """Plan `dpselect quantile`: how many people the answer can be away from the quantile.

    Example: dpselect plan quantile --level 0.9 --lower 0 --upper 50000 --epsilon 0.1

    Example: dpselect plan quantile --level 0.9 --lower 0 --upper 50000 --error 20 --budget zcdp:0.5
    """
    _plan_quantile(asked, drawn, grid, level)


def _plan_quantile(asked: _Asked, drawn: _Drawn, grid: _Grid, level: str) -> None:
    with clean_errors():
        named = {"level": level, **grid.arguments(), **asked.arguments(), **drawn.arguments()}
        planned = _planned(question="quantile", **named)
    print_plan(planned, asked.as_json)


_NEAR_AN_END = "Level of the quantile, near {end}. More people than the error should be beyond it."


@plan.command()
@with_options(_Asked, _Drawn, _Grid)
def minimum(
    asked: _Asked,
    drawn: _Drawn,
    grid: _Grid,
    *,
    level: Annotated[str, typer.Option("--level", "-q", metavar="Q", help=_NEAR_AN_END.format(end=0))] = "0.01",
) -> None:
    """Plan `dpselect minimum`: how many people the answer can be away from the quantile that stands for the minimum.

    Example: dpselect plan minimum --lower 0 --upper 50000 --epsilon 0.1
    """
    _plan_quantile(asked, drawn, grid, level)


@plan.command()
@with_options(_Asked, _Drawn, _Grid)
def maximum(
    asked: _Asked,
    drawn: _Drawn,
    grid: _Grid,
    *,
    level: Annotated[str, typer.Option("--level", "-q", metavar="Q", help=_NEAR_AN_END.format(end=1))] = "0.99",
) -> None:
    """Plan `dpselect maximum`: how many people the answer can be away from the quantile that stands for the maximum.

    Example: dpselect plan maximum --lower 0 --upper 50000 --epsilon 0.1
    """
    _plan_quantile(asked, drawn, grid, level)


@plan.command()
@with_options(_Asked, _Drawn, _Grid)
def quantiles(
    asked: _Asked,
    drawn: _Drawn,
    grid: _Grid,
    *,
    levels: Annotated[str, typer.Option(metavar="LEVELS", help="0.1,0.5,0.9, or quartiles, deciles or percentiles.")],
) -> None:
    """Plan `dpselect quantiles`: how many people each answer can be away from its level.

    Example: dpselect plan quantiles --levels deciles --lower 0 --upper 50000 --epsilon 1

    Example: dpselect plan quantiles --levels 0.1,0.5,0.9 --range log --budget zcdp:0.5 --questions 20
    """
    with clean_errors():
        named = {"levels": listed_levels(levels), **grid.arguments(), **asked.arguments(), **drawn.arguments()}
        planned = _planned(question="quantiles", **named)
    print_plan(planned, asked.as_json)


@plan.command()
def select(  # noqa: PLR0913 - typer makes an option of each argument
    *,
    candidates: _Candidates = None,
    epsilon: _Epsilon = None,
    rho: Rho = None,
    error: _Error = None,
    budget: _Budget = None,
    questions: _Questions = "1",
    mechanism: MechanismName = "auto",
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    delta: _Delta = None,
    scores: _Scores = None,
    column: Column = None,
    label: Label = None,
    as_json: Json = False,
) -> None:
    """Plan `dpselect select`: how far the chosen candidate can score below the best one.

    Results computed from private scores are private too, so give --scores public or synthetic ones.

    Example: dpselect plan select --candidates 1000 --epsilon 0.5

    Example: dpselect plan select --candidates 1000 --error 20 --monotonic --questions 20

    Example: dpselect plan select --candidates 1000 --monotonic --budget 1,1e-6 --questions 20

    Example: dpselect plan select --candidates 1000 --epsilon 0.1 --questions 50 --delta 1e-6

    Example: dpselect plan select --scores public.csv --epsilon 0.5
    """
    with clean_errors():
        planned, size = _selection(
            (candidates, scores, column, label),
            {"sensitivity": sensitivity, "monotonic": monotonic, "score_range": score_range},
            {"epsilon": epsilon, "rho": rho, "error": error},
            delta=delta,
            budget=budget,
            mechanism=mechanism,
            questions=whole(least=1, most=_MOST_QUESTIONS, questions=questions),
        )
    print_plan(planned, as_json, lambda: print_many(planned, scores, size), file=scores)


def _chosen(candidates: str | None, every: str | None, delta: str | None) -> dict[str, Any] | None:
    """How many candidates there are, by a list or a rule; None if values are found in the data."""
    given = {"--candidates": candidates, "--every": every, "--delta": delta}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        told = f", not {' and '.join(names)}" if names else ""
        raise InvalidValue(
            f"give one of --candidates (a list), --every (a rule) and --delta (values are found in the data){told}"
        )
    if candidates is not None:
        return {"candidates": _number(candidates=candidates)}
    if every is None:
        return None
    from dpselect.cli.asking import rule  # noqa: PLC0415 - tables are slow to import

    domain = rule(every)
    return {"candidates": domain.size, "rule": domain.words}


def _check_found(**others: str | None) -> None:
    """Refuse what only a list or a rule has."""
    for name, value in others.items():
        if value is not None:
            raise InvalidValue(f"--{name} needs --candidates or --every: leave it out for values that are found")


def _found(asked: _Asked, drawn: _Drawn | None = None, **question: Any) -> "FoundPlan":
    from dpselect import analysis  # noqa: PLC0415 - SciPy is slow to import

    named = {**question, **asked.arguments()}
    if drawn is not None:
        _check_found(error=drawn.error)
        named["mechanism"] = drawn.mechanism
    return analysis.plan_found(**named)


def _number(**option: str) -> int:
    """How many values an option names: a number, a list A,B,C, or a file with one value per line.

    >>> _number(candidates="30"), _number(candidates="I10,E11,J45")
    (30, 3)
    """
    [(name, text)] = option.items()
    try:
        if Path(text).is_file():
            return sum(bool(line.strip()) for line in Path(text).read_text(encoding="utf-8-sig").splitlines())
    except (OSError, ValueError):  # a list that is too long for a path, or a file that is not text
        pass
    if "," in text:
        return len(next(csv.reader([text], skipinitialspace=True)))
    if not is_number(text):
        raise InvalidValue(f"{name} must be a number, a list A,B,C or an existing file, got {text[:40]!r}")
    return whole(least=1, most=_MOST_CANDIDATES, **option)


def _candidates(
    candidates: str | None, file: str | None, column: str | None, label: str | None
) -> tuple[int, Vector | None]:
    """The number of candidates, and the public scores if a file is given."""
    if file is None:
        if candidates is None:
            raise InvalidValue("give --candidates, the number of candidates, or --scores with a public file")
        if column is not None or label is not None:
            raise InvalidValue("--column and --label name columns of a file: give --scores too")
        return _count(candidates), None
    given = None if candidates is None else _count(candidates)
    scores = read_public_scores(file, column, label)
    return given or _count(str(len(scores))), scores


def _count(candidates: str) -> int:
    return whole(least=2, most=_MOST_CANDIDATES, candidates=candidates)
