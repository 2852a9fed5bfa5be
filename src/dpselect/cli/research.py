"""What explains and checks the mechanisms: `dpselect explore`, `dpselect paper` and `dpselect audit`.

The first is a page to choose a budget on, the second reproduces the permute-and-flip paper, and the last tries to catch
a mechanism being less private than it claims.
"""

import importlib
import json
import math
import os
import sys
from dataclasses import asdict, replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any

import typer

import dpselect
from dpselect import _validate
from dpselect._messages import install_command
from dpselect._numbers import DOWN, shown
from dpselect.cli.commands import (
    CLAIM,
    JSON,
    PRICE,
    SCORE_COLUMNS,
    SCORES,
    Given,
    busy,
    claimed,
    command,
    print_figures,
    print_line,
    print_paragraph,
)
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.parameters import Claim
from dpselect.questions.options import Option
from dpselect.score_files import STANDARD_INPUT, read_scores, shown_path

if TYPE_CHECKING:
    from dpselect.audit import Audit, PmfAudit
    from dpselect.explore.scores import ScoreSet
    from dpselect.research.reproduce import Report

# The paper.


@command(
    Option(("--out",), "DIR", "Folder to write to; created if missing.", is_required=True),
    Option(("--data",), "DIR", "Folder with the DPBench files. Default: $DPSELECT_DPBENCH, or download."),
    Option(("--points",), "P", "Number of epsilons on each curve from a linear program.", default="250"),
    JSON,
)
def paper(given: Given) -> None:
    """Reproduce every figure of the permute-and-flip paper and check every claim.

    Writes each figure as PNG, PDF and CSV, and claims.csv and report.html, which works offline.
    Takes about a minute. Needs the extra 'paper' (matplotlib and pooch).

    Example: dpselect paper --out report

    Example: dpselect paper --out report --data dpbench
    """
    from dpselect.research.reproduce import reproduce  # noqa: PLC0415 - the other commands start without SciPy

    points = _validate.count_in_text(2, 10_000, points=given["points"])
    report = reproduce(given["out"], given["data"], points=points)
    (_print_report_json if given["json"] else _print_report)(report)


def _print_report(report: "Report") -> None:
    unchecked = report.count(None)
    beyond = f", {unchecked} not checked" if unchecked else ""
    print_paragraph(
        f"{len(report.figures)} figures,", f"{report.count(True)} claims pass, {report.count(False)} fail{beyond}."
    )
    for claim in report.claims:
        if claim.holds is False:
            print_paragraph("Fails:", f"{claim.where}: {claim.statement} Ours: {claim.ours}. {claim.remark}")
    if report.missing:
        names = ", ".join(plot.number for plot in report.missing)
        print_paragraph("Missing:", f"{names}: {report.why_missing}. Give --data DIR; the report explains how.")
    print_line(f"Report: {report.html}", "bold")


def _print_report_json(report: "Report") -> None:
    content = {
        "report": str(report.html),
        "figures": [plot.name for plot in report.figures],
        "missing": [plot.name for plot in report.missing],
        "why_missing": report.why_missing or None,
        "passed": report.count(True),
        "failed": report.count(False),
        "not_checked": report.count(None),
        "claims": [{**asdict(claim), "verdict": claim.verdict} for claim in report.claims],
    }
    typer.echo(json.dumps(content))


# The page.


@command(
    replace(SCORES, help="Public or synthetic scores to start with; - reads standard input.", is_required=False),
    Option(("--port",), "P", "Port of the page. Default: any free port."),
    Option(("--no-browser",), "", "Print the address, but do not open the page."),
    *SCORE_COLUMNS,
)
def explore(given: Given) -> None:
    """Choose epsilon by eye, on a local web page that only this machine can reach.

    The page shows the scores, so give public or synthetic ones.
    Needs the extra 'explore' (starlette and uvicorn).

    Example: dpselect explore public.csv
    """
    chosen = 0 if given["port"] is None else _validate.count_in_text(1, 65_535, port=given["port"])
    try:
        from dpselect.explore.app import serve  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        remedy = install_command("starlette", "uvicorn")
        raise MissingExtra(f"the explorer needs starlette and uvicorn: {remedy}") from None
    first = None if given["file"] is None else _read_first(given["file"], given["column"], given["label"])
    serve(first, chosen, browser=not given["no_browser"], announce=_announce)


def _read_first(file: str, column: str | None, label: str | None) -> "ScoreSet":
    from dpselect.explore.scores import ScoreSet, file_words  # noqa: PLC0415 - the other commands do not need it

    candidates = read_scores(file, column=column, label=label)
    words = None if file == STANDARD_INPUT else file_words(file, column, label)
    try:
        return ScoreSet(shown_path(file), candidates, file=words)
    except InvalidValue as error:
        raise InvalidValue(f"{shown_path(file)}: {error}") from None


def _announce(address: str) -> None:
    print_line(f"The explorer: {address}", "bold")
    print_line("Only this machine can reach it. Anyone who sees the page sees the scores. Press Ctrl-C to stop.", "dim")


# Audits.

VIOLATION = 1
_MOST_RUNS = 10**10
_HEADS = ("pair of neighbours", "epsilon\nat least", "one", "other", "failures")
_MOST_OF_A_DESCRIPTION = 300
_COLUMNS = "and the epsilon this implies. A failure is a run that raised an exception."
_LONGEST_OF_OURS, _LONGEST_OF_YOURS = 5_000, 64  # ours use another algorithm above 4,096 candidates


@command(
    replace(
        PRICE[0],
        help="Privacy loss, exactly as written: 0.1, 1e-3 or 1/3. Smaller is more private.",
        is_required=True,
    ),
    Option(("--mechanism",), "M", f"One of ours: {', '.join(MECHANISMS)}."),
    Option(
        ("--callable",),
        "MODULE:NAME",
        "Your own function f(scores), which returns an index or anything hashable. Importing its module runs the"
        " module.",
    ),
    Option(
        ("--inputs",),
        "MODULE:NAME",
        "Neighbouring inputs for --callable, instead of scores: a list of tuples (data, neighbour), or a dict from"
        " names to such tuples.",
    ),
    *CLAIM,
    Option(("--runs",), "N", "Number of runs on each score vector or input.", default="10000"),
    Option(("--false-alarm",), "P", "Largest acceptable probability of a false alarm.", default="1e-6"),
    Option(("--rows",), "", "Audit select_rows, which draws in batches, instead of select."),
    Option(("--pmf",), "", "Compare its probabilities instead of running it."),
    JSON,
)
def audit(given: Given) -> None:
    """Try to show that a mechanism is less private than it claims.

    Runs it on neighbouring scores that have broken other implementations, or on your own --inputs.
    Exit code 0: no violation found, which proves nothing. 1: it violates epsilon. 2: bad input.

    Example: dpselect audit --mechanism permute-and-flip --epsilon 1

    Example: dpselect audit --callable mymodule:choose --epsilon 0.5 --sensitivity 2 --runs 100000

    Example: dpselect audit --callable mymodule:top_three --inputs mymodule:NEIGHBOURS --epsilon 1
    """
    promised, claim = _validate.moderate(epsilon=given["epsilon"]), claimed(given)
    times = _validate.count_in_text(100, _MOST_RUNS, runs=given["runs"])
    mechanism, inputs = given["mechanism"], given["inputs"]
    audited = _audited(mechanism, given["callable"], promised, claim)
    if given["rows"] and mechanism is None:
        raise InvalidValue("--rows needs --mechanism: leave it out with --callable")
    if inputs is not None and any(given[name] for name in ("mechanism", "pmf", *(each.key for each in CLAIM))):
        raise InvalidValue(
            "--inputs needs --callable: leave out --mechanism, --pmf, --sensitivity, --monotonic and --score-range"
        )
    if given["pmf"]:
        with busy("Comparing ..."):
            result: Audit | PmfAudit = dpselect.audit.audit_pmf(audited, promised)
    else:
        chosen = audited.select if mechanism is not None and not given["rows"] else audited
        longest = _LONGEST_OF_YOURS if mechanism is None else _LONGEST_OF_OURS
        neighbours = _neighbours(inputs, promised, claim, longest)
        result = dpselect.audit.audit(chosen, promised, **neighbours, runs=times, false_alarm=given["false_alarm"])
    if given["json"]:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        _print_audit(result)
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


def _print_audit(result: "Audit | PmfAudit") -> None:
    print_line(result.verdict, "bold red" if result.violates else "bold green")
    if not result.violates:
        print_line("This does not prove privacy: an audit can only prove a violation.", "dim")
    _print_findings(result)
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


def _print_findings(result: "Audit | PmfAudit") -> None:
    if isinstance(result, dpselect.audit.PmfAudit):
        ratios = [(name, "inf" if math.isinf(ratio) else shown(ratio)) for name, ratio in result.log_ratios]
        print_figures(["scores", "log-ratio"], ratios)
        return
    rows = [
        (each.pair, shown(each.lower_bound, DOWN), *map("{:,}".format, (each.hits, each.neighbour_hits, each.failures)))
        for each in result.findings
    ]
    print_figures(_HEADS, rows)
