"""`dpselect audit`: try to catch a mechanism, ours or yours, being less private than it claims."""

import importlib
import json
import math
import os
import sys
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

import dpselect
from dpselect import _validate
from dpselect._numbers import DOWN, shown
from dpselect.cli.console import (
    busy,
    clean_errors,
    figure_table,
    print_line,
    print_paragraph,
    print_table,
)
from dpselect.cli.options import (
    Epsilon,
    Json,
    Monotonic,
    ScoreRange,
    Sensitivity,
    claimed,
)
from dpselect.errors import InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.parameters import Claim

if TYPE_CHECKING:
    from dpselect.audit import Audit, PmfAudit

_Mechanism = Annotated[str | None, typer.Option(metavar="M", help=f"One of ours: {', '.join(MECHANISMS)}.")]
_Callable = Annotated[
    str | None,
    typer.Option(
        "--callable",
        metavar="MODULE:NAME",
        help="Your own function f(scores), which returns an index or anything hashable. Importing its module runs the"
        " module.",
    ),
]
_Inputs = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="Neighbouring inputs for --callable, instead of scores: a list of tuples (data, neighbour), or a dict from"
        " names to such tuples.",
    ),
]
_Runs = Annotated[str, typer.Option(metavar="N", help="Number of runs on each score vector or input.")]
_FalseAlarm = Annotated[str, typer.Option(metavar="P", help="Largest acceptable probability of a false alarm.")]
_Rows = Annotated[
    bool, typer.Option("--rows", metavar="", help="Audit select_rows, which draws in batches, instead of select.")
]
_Pmf = Annotated[bool, typer.Option("--pmf", metavar="", help="Compare its probabilities instead of running it.")]

VIOLATION = 1
_MOST_RUNS = 10**10
_HEADS = ("pair of neighbours", "epsilon\nat least", "one", "other", "failures")
_MOST_OF_A_DESCRIPTION = 300
_COLUMNS = "and the epsilon this implies. A failure is a run that raised an exception."
_LONGEST_OF_OURS, _LONGEST_OF_YOURS = 5_000, 64  # ours use another algorithm above 4,096 candidates


def audit(  # noqa: PLR0913 - typer makes an option of each argument
    *,
    epsilon: Epsilon,
    mechanism: _Mechanism = None,
    function: _Callable = None,
    inputs: _Inputs = None,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    runs: _Runs = "10000",
    false_alarm: _FalseAlarm = "1e-6",
    rows: _Rows = False,
    pmf: _Pmf = False,
    as_json: Json = False,
) -> None:
    """Try to show that a mechanism is less private than it claims.

    Runs it on neighbouring scores that have broken other implementations, or on your own --inputs.
    Exit code 0: no violation found, which proves nothing. 1: it violates epsilon. 2: bad input.

    Example: dpselect audit --mechanism permute-and-flip --epsilon 1

    Example: dpselect audit --callable mymodule:choose --epsilon 0.5 --sensitivity 2 --runs 100000

    Example: dpselect audit --callable mymodule:top_three --inputs mymodule:NEIGHBOURS --epsilon 1
    """
    with clean_errors():
        promised, claim = _validate.moderate(epsilon=epsilon), claimed(sensitivity, monotonic, score_range)
        times = _validate.count_in_text(100, _MOST_RUNS, runs=runs)
        audited = _audited(mechanism, function, promised, claim)
        if rows and mechanism is None:
            raise InvalidValue("--rows needs --mechanism: leave it out with --callable")
        if inputs is not None and any((mechanism, pmf, sensitivity, monotonic, score_range)):
            raise InvalidValue(
                "--inputs needs --callable: leave out --mechanism, --pmf, --sensitivity, --monotonic and --score-range"
            )
        if pmf:
            with busy("Comparing ..."):
                result: Audit | PmfAudit = dpselect.audit.audit_pmf(audited, promised)
        else:
            chosen = audited.select if mechanism is not None and not rows else audited
            longest = _LONGEST_OF_YOURS if mechanism is None else _LONGEST_OF_OURS
            neighbours = _neighbours(inputs, promised, claim, longest)
            result = dpselect.audit.audit(chosen, promised, **neighbours, runs=times, false_alarm=false_alarm)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        _print_text(result)
    raise typer.Exit(VIOLATION if result.violates else 0)


def _neighbours(inputs: str | None, epsilon: Fraction, claim: Claim, longest: int) -> dict[str, Any]:
    if inputs is not None:
        return {"inputs": imported(inputs, "--inputs")}
    pairs = dpselect.audit.hard_pairs(epsilon, **claim.arguments(), longest=longest)
    return {**claim.arguments(), "pairs": pairs}


def _audited(mechanism: str | None, function: str | None, epsilon: Fraction, claim: Claim) -> Any:
    if (mechanism is None) == (function is None):
        raise InvalidValue("give either --mechanism or --callable MODULE:NAME, and not both")
    if mechanism is not None:
        if mechanism not in MECHANISMS:
            raise InvalidValue(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism[:40]!r}")
        return MECHANISMS[mechanism](epsilon, **claim.arguments())
    return imported(str(function), "--callable")


def imported(text: str, option: str) -> Any:
    """Import the object MODULE:NAME. Modules in the working directory are found first, as with `python -m`."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise InvalidValue(f"{option} must be MODULE:NAME, got {text[:40]!r}: give for example mymodule:choose")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    shown, found, reason = f"{option}: the module {module[:40]!r}", None, ""
    try:
        found = importlib.import_module(module)
    except Exception as error:  # the user's module may raise anything
        reason = type(error).__name__
    if reason:
        raise InvalidValue(f"{shown} cannot be imported ({reason}): check its name, and that it can be imported")
    missing = InvalidValue(f"{shown} has no {name[:40]!r}: check the name")
    return _validate.withheld(lambda: reduce(getattr, name.split("."), found), missing, AttributeError)


def _print_text(result: "Audit | PmfAudit") -> None:
    print_line(result.verdict, "bold red" if result.violates else "bold green")
    if not result.violates:
        print_line("This does not prove privacy: an audit can only prove a violation.", "dim")
    print_table(_table(result))
    if isinstance(result, dpselect.audit.Audit):
        trials = min(finding.trials for finding in result.findings)
        print_paragraph("", f"How often an event occurred in {trials:,} runs on each of the two neighbours, {_COLUMNS}")
        if result.violates:
            print_paragraph("The event:", _shortened(result.worst.description))
        else:
            print_paragraph("What this could find:", _reach(result.noticeable))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_OF_A_DESCRIPTION else f"{text[: _MOST_OF_A_DESCRIPTION - 3]}..."


def _reach(noticeable: float) -> str:
    if math.isinf(noticeable):
        return "nothing. With so few runs, even a large violation would be missed: give more --runs."
    return (
        f"a true epsilon of {shown(noticeable)} would be flagged about half of the time, and a larger one usually, if"
        " it shows on these inputs and not only in rare events. To find smaller violations, give more --runs."
    )


def _table(result: "Audit | PmfAudit") -> Table:
    if isinstance(result, dpselect.audit.PmfAudit):
        table = figure_table("scores", "log-ratio")
        for name, ratio in result.log_ratios:
            table.add_row(name, "inf" if math.isinf(ratio) else shown(ratio))
        return table
    table = figure_table(*_HEADS)
    for finding in result.findings:
        counts = (finding.hits, finding.neighbour_hits, finding.failures)
        table.add_row(finding.pair, shown(finding.lower_bound, DOWN), *(f"{count:,}" for count in counts))
    return table
