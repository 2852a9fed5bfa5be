"""Commands about the scores in a file: `dpselect select` chooses privately, `dpselect compare` compares on public ones.

Everything that options state is checked before the file is read.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

import dpselect
from dpselect import _validate
from dpselect._messages import install_command
from dpselect._numbers import NEAREST, finite, shown
from dpselect.accounting.budget import AUTO, Price
from dpselect.cli.commands import (
    CLAIM,
    JSON,
    LEDGER,
    PRICE,
    SCORE_COLUMNS,
    SCORES,
    Given,
    check_ledger_options,
    claimed,
    command,
    open_ledger,
    planned_options,
    print_comment,
    print_figures,
    print_line,
    print_paragraph,
    print_terms,
    writing,
)
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.mechanisms import MECHANISMS, PermuteAndFlip
from dpselect.mechanisms.parameters import Claim, Neighbours, neighbours_of, stated
from dpselect.questions.methods import is_in_order
from dpselect.questions.options import MAX_VALUES, PLANNING, Option, sizes, whole
from dpselect.release import Answer
from dpselect.score_files import PRIVACY, ScoreFile, read_public_scores, read_scores
from dpselect.top_k import release_top_k

if TYPE_CHECKING:
    from dpselect.analysis import Comparison, TopKComparison
    from dpselect.top_k import TopKRecord

_METHOD, _ORDERED, _NEIGHBOURS = planned_options("top", "method", "ordered", "neighbours")


_Refused = tuple[Sequence[Option], str]  # options, and why


def _check_k(given: Given, without: _Refused, beside: _Refused) -> None:
    # Some options are for several candidates and need -k, and others are for one.
    refused, why = without if given["k"] is None else beside
    for option in refused:
        if given[option.key] not in (option.default, False):
            raise InvalidValue(f"{option.flags[0]} {why}")


# Selecting.

_SEVERAL = (
    _METHOD,
    Option(
        ("--max-values",), "N", "With -k: no person is counted in more than N scores. set and noisy-counts need it."
    ),
    _ORDERED,
)
_OF_COUNTS = (
    "cannot be given with -k: scores must then be numbers of people, and a person adds at most one to each of them"
)
_NUMBERS_OF_CLAIM = [option for option in CLAIM if not option.is_flag]


@command(
    SCORES,
    *PRICE,
    *CLAIM,
    Option(("-k",), "K|LO:HI", "Choose K candidates, or LO to HI. Scores must then be numbers of people."),
    *_SEVERAL,
    Option(("--mechanism",), "M", f"One of {', '.join(MECHANISMS)}. auto: by the kind of budget.", default=AUTO),
    *SCORE_COLUMNS,
    *LEDGER,
    Option(("--what",), "TEXT", "What the ledger records as the question. It is public."),
    JSON,
)
def select(given: Given) -> None:
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
    recorded = {name: given[name] for name in ("budget", "dataset", "request_id", "what")}
    check_ledger_options(given["ledger"], **recorded)
    _check_k(given, (_SEVERAL, "is for several candidates: give -k too"), (_NUMBERS_OF_CLAIM, _OF_COUNTS))
    price = Price(given["epsilon"], given["rho"], given["mechanism"])
    claim = stated(given["sensitivity"], given["monotonic"], given["score_range"])
    choices = {
        "method": given["method"],
        "max_values": _limit(given),
        "ordered": given["ordered"],
        "monotonic": given["monotonic"],
    }
    wanted, column = None if given["k"] is None else sizes(given["k"]), given["column"]
    candidates = read_scores(given["file"], column=column, label=given["label"])
    asked = {"question": given["what"] or ("select" if wanted is None else "top_k")}
    asked |= {"column": column} if column else {}
    paid = None if given["ledger"] is None else open_ledger(given["ledger"], given["budget"], given["dataset"])
    release = {"ledger": paid, "what": asked, "request_id": given["request_id"]}
    if wanted is None:
        answer, chosen, content, terms = _select_one(candidates, price, claim, release)
    else:
        answer, chosen, content, terms = _select_several(candidates, price, wanted, choices, release)
    if given["json"]:
        typer.echo(json.dumps(content))
        return
    for position, label in chosen:
        print_line(f"candidate {position} (counting from 0)" if label is None else label, "bold green")
    if answer.epsilon and len(chosen) > 1 and not content["ordered"]:
        print_comment("in the order of the file, which says nothing about the scores")
    print_terms(answer, terms)


def _limit(given: Given) -> int | None:
    return None if given["max_values"] is None else whole(given["max_values"], "max_values")


# The answer, the positions and labels that were chosen, the JSON object, and what is said of the mechanism.
_Selected = tuple[Answer, list[tuple[int, str | None]], dict[str, Any], str]


def _select_one(candidates: ScoreFile, price: Price, claim: Claim, release: dict[str, Any]) -> _Selected:
    paid = release["ledger"]
    chooser = price.drawn_by(None if paid is None else paid.budget, 1, **claim.arguments())
    answer = chooser.release(candidates.scores, **release, rho=price.rho)
    content = answer.to_dict()
    index = content.pop("value")
    label = candidates.labels[index] if candidates.labels else None
    found = {"candidate": label, "index": index}
    return answer, [(index, label)], {**found, **content, **chooser.claim.to_json()}, f", {chooser.claim}"


def _select_several(
    candidates: ScoreFile, price: Price, k: int | tuple[int, int], choices: dict[str, Any], release: dict[str, Any]
) -> _Selected:
    # Positions are printed too, and labels need not be different.
    named = None if candidates.labels is None else list(enumerate(candidates.labels))
    given: dict[str, Any] = {"epsilon": price.epsilon, "rho": price.rho, "mechanism": price.mechanism}
    answer = release_top_k(candidates.scores, k, named, **given, **choices, **release)
    chosen = [(position, None) for position in answer.value] if named is None else answer.value
    content = answer.to_dict()
    del content["value"]
    labels = None if named is None else [label for _, label in chosen]
    found = {"candidates": labels, "indices": [position for position, _ in chosen]}
    shown = {**choices, "ordered": is_in_order(choices["method"], choices["ordered"])}
    return answer, chosen, {**found, **content, **shown}, ""


# Comparing.

_ENDINGS = (".png", ".svg", ".pdf")


def check_plot(path: str) -> None:
    """Refuse a wrong file ending, a missing folder and a missing matplotlib."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"--plot must end in {', '.join(_ENDINGS)}: got {path!r}")
    if not Path(path).parent.is_dir():
        raise InvalidValue(f"--plot {path!r}: there is no such folder: create it first")
    try:
        import_module("matplotlib")
    except ImportError:
        raise MissingExtra(f"--plot needs matplotlib: {install_command('matplotlib')}") from None


_OF_METHODS = (
    *(MAX_VALUES.of(PLANNING), _ORDERED, _NEIGHBOURS),
    Option(("--runs",), "R", "With -k: answers to simulate where no formula is cheap. Default: 200."),
    Option(("--seed",), "S", "With -k: the same seed gives the same numbers."),
)


@command(
    SCORES,
    Option(
        ("--epsilon",), "A:B", "A range such as 0.01:1, a list such as 0.1,0.5,1 or a single number.", is_required=True
    ),
    Option(("--points",), "P", "Number of epsilons in the range A:B. Default: 25."),
    *CLAIM,
    Option(("-k",), "K", "Compare the methods for the K most common instead; LO:HI for the margin."),
    *_OF_METHODS,
    *SCORE_COLUMNS,
    Option(("--plot",), "FILE", "Also plot the errors to a file that ends in .png, .svg or .pdf."),
    JSON,
)
def compare(given: Given) -> None:
    """Compare the errors of the mechanisms on public or synthetic scores.

    SCORES.csv has one column of scores, or two: label, score. A header is fine.
    With -k, scores are counts of people, and the methods for the K most common candidates are compared.
    Results computed from private scores are private too: do not share them.

    Example: dpselect compare public.csv --epsilon 0.01:1

    Example: dpselect compare public.csv --epsilon 0.1,0.5,1 --monotonic --plot errors.svg

    Example: dpselect compare public.csv --epsilon 0.01:1 -k 3 --max-values 1
    """
    wanted, plot = _epsilons(given["epsilon"], given["points"]), given["plot"]
    needed = _OF_METHODS, "needs -k, the number of candidates to choose"
    _check_k(given, needed, (CLAIM, "is not for -k: scores are then counts of people"))
    claim = claimed(given)
    asked = None if given["k"] is None else _about_top_k(given)
    if plot is not None:
        check_plot(plot)
    scores = read_public_scores(given["file"], given["column"], given["label"])
    compared: Any
    if asked is None:
        compared, about = dpselect.analysis.compare(scores, wanted, **claim.arguments()), claim.to_json()
    else:
        stated = {name: value for name, value in asked.items() if name != "neighbours"}
        is_added = asked["neighbours"] == Neighbours.ADD_REMOVE
        compared = dpselect.analysis.compare_top_k(scores, epsilons=wanted, monotonic=is_added, **stated)
        about = {**asked, "automatic": compared.automatic}
    if plot is not None:
        with writing(f"--plot {plot!r}"):
            compared.plot(plot)
    if given["json"]:
        content = {"candidates": len(scores), **about, "plot": plot, "records": _records(compared)}
        typer.echo(json.dumps(content, allow_nan=False))
        return
    if asked is None:
        _print_mechanisms(compared, len(scores))
    else:
        _print_methods(compared, asked, len(scores))
    if plot is not None:
        print_line(f"Plot: {plot}", "bold")
    print_paragraph("Privacy:", f"{PRIVACY}. Unless these scores are public or synthetic, do not share the results.")


def _records(compared: "Comparison | TopKComparison") -> list[dict[str, Any]]:
    found = compared.to_dicts()
    # A ratio of two zeros is null.
    return [{**each, "ratio": finite(each["ratio"])} if "ratio" in each else each for each in found]


def _epsilons(text: str, points: str | None) -> list[Fraction]:
    """The epsilons of a range A:B, of a list A,B,C or of a single number.

    >>> [float(epsilon) for epsilon in _epsilons("0.01:1", "3")]
    [0.01, 0.1, 1.0]
    """
    listed = [_validate.moderate(epsilon=part.strip()) for part in text.split(":" if ":" in text else ",")]
    if ":" not in text:
        if points is not None:
            raise InvalidValue("--points needs a range of epsilons: give --epsilon as A:B, for example 0.01:1")
        return listed
    number = _validate.count_in_text(2, 10_000, points="25" if points is None else points)
    if len(listed) != 2 or listed[0] >= listed[1]:
        raise InvalidValue("epsilon must be a range A:B from a smaller to a larger number: give for example 0.01:1")
    between = np.geomspace(float(listed[0]), float(listed[1]), number)[1:-1]
    return [listed[0], *map(Fraction, between.tolist()), listed[1]]


def _about_top_k(given: Given) -> dict[str, Any]:
    runs, seed = given["runs"], given["seed"]
    return {
        "k": sizes(given["k"]),
        "max_values": _limit(given),
        "ordered": given["ordered"],
        "neighbours": neighbours_of(given["neighbours"]).value,
        "runs": _validate.count_in_text(2, 10**7, runs="200" if runs is None else runs),
        "seed": None if seed is None else whole(seed, "seed"),
    }


_NARROW = 8  # characters per line of a column head, so that three mechanisms fit into 80 columns


def _heads() -> list[str]:
    heads = ["epsilon"]
    for name in MECHANISMS:
        heads += ["\n".join([*_lines(name), "average"]), "95 %"]
        heads += [] if name == PermuteAndFlip.name else ["ratio"]
    return heads


def _lines(name: str) -> list[str]:
    lines = wrap(name, _NARROW, break_long_words=False)
    halves = ([line[: 1 - _NARROW] + "-", line[1 - _NARROW :]] if len(line) > _NARROW else [line] for line in lines)
    return [half for pair in halves for half in pair]


def _print_mechanisms(comparison: "Comparison", candidates: int) -> None:
    print_paragraph(f"{candidates:,} candidates:", "how far the choice is below the best, in units of the scores")
    rows: list[list[str]] = []
    for epsilon, records in groupby(comparison.records, key=lambda record: record.epsilon):
        cells = [shown(epsilon, NEAREST)]
        for record in records:
            cells += [shown(record.expected_error), shown(record.error_95)]
            cells += [] if record.mechanism == PermuteAndFlip.name else [shown(record.ratio, NEAREST)]
        rows.append(cells)
    print_figures(_heads(), rows)
    print_paragraph(
        "How to read it:",
        "average is the expected error; 95 of 100 selections stay within the error under 95 %; ratio is the average"
        " relative to permute-and-flip's, between 1 and 2 for the exponential mechanism on any scores.",
    )


def _print_methods(compared: "TopKComparison", asked: dict[str, Any], candidates: int) -> None:
    methods = list(dict.fromkeys(record.method for record in compared.records))
    least, most = asked["k"] if isinstance(asked["k"], tuple) else (asked["k"], asked["k"])
    chosen = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    what = "how many fewer people the chosen ones have than the most common ones, per item"
    print_paragraph(f"{chosen} of {candidates:,} candidates:", what)
    by_epsilon = groupby(compared.records, key=lambda record: record.epsilon)
    rows = [[shown(epsilon, NEAREST), *map(_cell, records)] for epsilon, records in by_epsilon]
    print_figures(["epsilon", *methods], rows)
    print_paragraph(
        "How to read it:",
        f"these are average errors. A number with ± is from {asked['runs']:,} simulated answers, with a 95 % interval;"
        " < means that none of them was short; other numbers are exact.",
    )
    print_paragraph(f"The method auto takes {compared.automatic} here.", "This follows from public numbers alone.")


def _cell(record: "TopKRecord") -> str:
    if record.exact:
        return shown(record.expected_error, NEAREST)
    if not record.expected_error:
        return f"< {shown(record.high, digits=2)}"
    width = shown(record.high - record.expected_error, digits=2)
    return f"{shown(record.expected_error, NEAREST, digits=3)} ± {width}"
