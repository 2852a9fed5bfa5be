"""`dpselect plan`: what accuracy to expect, or what epsilon to use, before any data are touched.

`analysis.plan` computes it. Here it is printed: as tables with their meaning in plain words, or as JSON.
"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect._numbers import DOWN, shown
from dpselect._types import Vector
from dpselect._validate import fraction_of_one
from dpselect.cli.console import busy, clean_errors, figure_table, print_line, print_paragraph, print_table
from dpselect.cli.options import Column, Json, Label, Monotonic, ScoreRange, Sensitivity, claimed, positive, whole
from dpselect.errors import InvalidValue
from dpselect.mechanisms import PermuteAndFlip
from dpselect.score_files import PRIVACY, read_public_scores, shown_path

if TYPE_CHECKING:
    from dpselect.analysis.equal_cost import EqualCost, EqualRounds
    from dpselect.analysis.planning import Plan
    from dpselect.analysis.promises import Promise


def print_json(planned: "Plan", file: str | None) -> None:
    """Print one JSON object: the question with exact numbers, and the results as unrounded floats."""
    content = planned.to_dict()
    if content["proxy"] is not None:
        content["proxy"] = {"file": file, **content["proxy"]}
    typer.echo(json.dumps(content))


_FIXED = "This holds if the epsilons and the number of selections do not depend on the answers."


def print_text(planned: "Plan", file: str | None, size: int) -> None:
    """Print the results and what they mean. `size` is the number of scores in the file."""
    title = f"Choosing one of {planned.candidates:,} candidates, {planned.claim}:"
    print_paragraph(title, "how far the choice can be below the best, for any data, in units of the scores")
    _print_promises(planned)
    print_paragraph("In words:", _words(planned, planned.promises[PermuteAndFlip.name]))
    print_paragraph(
        "For one selection, permute-and-flip is the better mechanism:",
        "at the same epsilon it is never worse than the exponential mechanism, on any data, on average or in any tail.",
    )
    if planned.equal_cost is not None:
        _print_many(planned.selections, planned.equal_cost)
    if planned.equal_rounds is not None:
        _print_rounds(planned.selections, planned.equal_rounds)
    if file is not None:
        _print_on_scores(planned, file, size)
    print_paragraph(
        "Privacy:",
        f"these guarantees use public numbers only and reveal nothing about your data. But {PRIVACY}: give"
        " --scores public or synthetic scores only.",
    )


def _print_promises(planned: "Plan") -> None:
    times = planned.selections
    totals = [f"{times:,} times\nepsilon", f"{times:,} times\nrho"] if times > 1 else []
    columns = ("\nepsilon", "average\nat most", "95 of 100\nbelow", "99 of 100\nbelow")
    table = figure_table("\nmechanism", *columns, *totals)
    for name, promised in planned.promises.items():
        mark = "*" if promised.attained < promised.average else ""
        cells = [_epsilon(promised), *map(shown, (promised.average, promised.within_95, promised.within_99))]
        if times > 1:
            guarantee = promised.mechanism.guarantee
            cells += [shown(float(guarantee.epsilon * times), digits=6), shown(guarantee.zcdp * times)]
        table.add_row(name + mark, *cells)
    print_table(table)
    for name, promised in planned.promises.items():
        if promised.attained < promised.average:
            attained = shown(promised.attained, DOWN)
            note = f"the exact worst case of {name} is not known. On some data its average is {attained}."
            print_paragraph("* A proven bound:", note)


def _words(planned: "Plan", best: "Promise") -> str:
    n, epsilon = f"{planned.candidates:,}", _epsilon(best)
    if planned.error is None:
        told = f"with epsilon {epsilon} and {n} candidates, permute-and-flip's choice scores on average at most"
        told += f" {shown(best.average)} below the best, for any data."
    else:
        told = f"epsilon {epsilon} guarantees that permute-and-flip's choice among {n} candidates scores on average"
        told += f" at most {shown(float(planned.error), digits=6)} below the best, for any data."
    tails = f"95 of 100 choices are less than {shown(best.within_95)} below it, 99 of 100 less than"
    return f"{told} {tails} {shown(best.within_99)}."


def _print_many(times: int, equal: "EqualCost") -> None:
    print_paragraph(
        f"For {times:,} selections that share a budget of pure epsilon, permute-and-flip is always better:",
        "epsilons add up, and at the same epsilon it is never worse than the exponential mechanism.",
    )
    exponential, other = equal.exponential, equal.permute_and_flip
    rho, epsilon = shown(equal.rho * times), shown(float(other.mechanism.epsilon), DOWN)
    print_paragraph(
        f"For {times:,} selections that share a zCDP budget, {equal.better.mechanism.name} is better:",
        f"{times:,} exponential selections at epsilon {_epsilon(exponential)} cost rho {rho}, and are on average at"
        f" most {shown(exponential.average)} below the best. For the same rho, permute-and-flip has epsilon {epsilon}"
        f" each, and is on average at most {shown(other.average)} below the best. {_FIXED}",
    )


def _print_rounds(times: int, compared: "EqualRounds") -> None:
    delta = f"{compared.exponential.total.delta:g}"
    together = f"{times:,} selections together" if times > 1 else "One selection"
    print_paragraph(f"{together} as (epsilon, {delta})-DP:", "the exponential mechanism and permute-and-flip")
    table = figure_table("\nmechanism", "epsilon\neach", "average\nat most", "total\nepsilon")
    rows = {
        "exponential": compared.exponential,
        "permute-and-flip, same error": compared.equal_error,
        "permute-and-flip, same total": compared.equal_budget,
    }
    for name, rounds in rows.items():
        cells = (rounds.each.mechanism.epsilon, rounds.each.average, rounds.total.epsilon)
        table.add_row(name, *(shown(float(cell)) for cell in cells))
    print_table(table)
    better, error, total = compared.better.each.mechanism, compared.equal_error, compared.equal_budget
    print_paragraph(
        f"For a budget of (epsilon, {delta}), {better.name} is better:",
        f"for the same error, permute-and-flip costs {shown(error.total.epsilon)} instead of"
        f" {shown(compared.exponential.total.epsilon)}, and for the same total, its choice is on average at most"
        f" {shown(total.each.average)} below the best instead of {shown(compared.exponential.each.average)}. {_FIXED}",
    )


def _print_on_scores(planned: "Plan", file: str, size: int) -> None:
    source = f"on the {size:,} scores of {shown_path(file)}"
    if planned.error is None:
        print_line(f"Exact errors {source} (other data give other numbers):", "bold")
        table = figure_table("\nmechanism", "\naverage", "95 of 100\nwithin")
        for name, found in planned.on_scores.items():
            table.add_row(name, shown(found.expected_error), shown(found.error_95))
    else:
        wanted = f"an average of {shown(float(planned.error), digits=6)}"
        print_line(f"The epsilon for {wanted} {source} (other data may need more):", "bold")
        table = figure_table("mechanism", "epsilon")
        for name, found in planned.on_scores.items():
            table.add_row(name, "any" if found.epsilon is None else shown(found.epsilon))
    print_table(table)


def _epsilon(promised: "Promise") -> str:
    return shown(float(promised.mechanism.epsilon), digits=6)


_Candidates = Annotated[str | None, typer.Option(metavar="N", help="Number of candidates. Default: that of --scores.")]
_Epsilon = Annotated[
    str | None, typer.Option(metavar="E", help="Epsilon of each selection (0.1, 1e-3 or 1/3); prints its error.")
]
_Error = Annotated[
    str | None,
    typer.Option(metavar="X", help="Acceptable average distance from the best; prints the epsilon it needs."),
]
_Selections = Annotated[str, typer.Option(metavar="K", help="How many selections share one privacy budget.")]
_Delta = Annotated[
    str | None,
    typer.Option(metavar="D", help="Also print their total cost as (epsilon, D), by the best known accounting."),
]
_Scores = Annotated[
    str | None,
    typer.Option(metavar="PUBLIC.csv", help="Public or synthetic scores; adds exact errors on these scores."),
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
    """Print what accuracy to expect, or what epsilon to use, before touching any data.

    The guarantees need only the number of candidates and hold for any data.
    Results computed from private scores are private too, so give --scores public or synthetic ones.

    Example: dpselect plan --candidates 1000 --epsilon 0.5

    Example: dpselect plan --candidates 1000 --error 20 --monotonic --selections 20

    Example: dpselect plan --candidates 1000 --epsilon 0.1 --selections 50 --delta 1e-6

    Example: dpselect plan --scores public.csv --epsilon 0.5
    """
    # SciPy takes longer to import than all the rest of the command line.
    from dpselect import analysis  # noqa: PLC0415 - SciPy is slow to import

    with clean_errors():
        if (epsilon is None) == (error is None):
            raise InvalidValue("give either --epsilon to get the error, or --error to get the epsilon")
        times = whole(least=1, most=_MOST_SELECTIONS, selections=selections)
        given = None if epsilon is None else positive(epsilon=epsilon)
        wanted = None if error is None else positive(error=error)
        claim = claimed(sensitivity, monotonic, score_range)
        failure = None if delta is None else fraction_of_one(delta=delta)
        number, vector = _candidates(candidates, scores, column, label)
        with busy("Planning ..."):
            planned = analysis.plan(
                number,
                epsilon=given,
                error=wanted,
                **claim.arguments(),
                selections=times,
                delta=failure,
                scores=vector,
            )
    if as_json:
        print_json(planned, scores)
    else:
        print_text(planned, scores, 0 if vector is None else len(vector))


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
