"""Private questions about a table: `dpselect mode`, `top`, `values`, `median`, `quantile`, `quantiles` and others."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

import typer

from dpselect._numbers import exact_text
from dpselect.cli import asking
from dpselect.cli.asking import Asked, Ends
from dpselect.cli.compare import check_plot
from dpselect.cli.console import clean_errors, has_several, print_hint, print_line, print_terms
from dpselect.cli.options import MechanismName, Method, Ordered, limit, listed_levels, sizes, whole, with_options
from dpselect.errors import InvalidValue
from dpselect.questions.methods import is_in_order
from dpselect.tables import Answer, Table, plot_quantiles
from dpselect.tables.candidates import group_text
from dpselect.tables.kinds import known_column
from dpselect.tables.spans import public_span

_Level = Annotated[
    str, typer.Option("--level", "-q", metavar="Q", help="Share of people below it, such as 0.9 or 1/3.")
]


@with_options(Asked)
def mode(  # noqa: PLR0913 - typer makes an option of each argument
    asked: Asked,
    *,
    candidates: asking.Candidates = None,
    every: asking.Every = None,
    other: asking.Other = None,
    delta: asking.Delta = None,
    max_values: asking.MaxFound = None,
    mechanism: MechanismName = "auto",
) -> None:
    """Return the candidate that most people have, privately.

    Candidates must be public: a list taken from the data would leak.
    A candidate that nobody has can win. Values that are not listed do not count, unless --other names a candidate
    for them. Without a list, give a rule with --every, or --delta to find the values in the data.

    Example: dpselect mode visits.csv --column diagnosis --candidates I10,E11,J45 --person patient --epsilon 0.5

    Example: dpselect mode visits.csv --column diagnosis --every text:3 --person patient --epsilon 0.5

    Example: dpselect mode visits.csv --column diagnosis --delta 1e-9 --person patient --epsilon 0.5
    """
    with clean_errors():
        table, kept = asked.table(), limit(max_values)
        choices: dict[str, Any] = {"delta": delta, "max_values": kept, "other": other, "mechanism": mechanism}
        listed = asked.listed(table, candidates, every)
        answer = asked.ask(table, lambda own: own.mode(asked.column, candidates=listed, **asked.price, **choices))
    _print(answer, asked.as_json)


@with_options(Asked)
def top(  # noqa: PLR0913 - typer makes an option of each argument
    asked: Asked,
    *,
    k: Annotated[
        str,
        typer.Option(
            "-k", metavar="K|LO:HI", help="How many candidates to return, or an interval in which to find a clear cut."
        ),
    ],
    candidates: asking.Candidates = None,
    every: asking.Every = None,
    other: asking.Other = None,
    delta: asking.Delta = None,
    method: Method = "auto",
    max_values: asking.MaxValues = None,
    ordered: Ordered = False,
    mechanism: MechanismName = "auto",
) -> None:
    """Return the K candidates that most people have, privately.

    They are printed as --candidates lists them, which says nothing about their counts. With --ordered or --delta, the
    best is first. Epsilon is the total for the whole answer. If K is the number of candidates, nothing is counted or
    charged. With an interval LO:HI, the number of candidates is chosen too, by the margin to those that are left out.
    A person counts for all candidates that they have. With --max-values 1, a person with several counts for one of
    them, at random: there is less noise, but it is another question, and its top K may differ.

    Example: dpselect top visits.csv -k 3 --column diagnosis --candidates codes.txt --person patient --epsilon 1

    Example: dpselect top sales.csv -k 20 --column item --candidates items.txt --person buyer --max-values 5 --epsilon 1

    Example: dpselect top sales.csv -k 10:30 --column item --candidates items.txt --person buyer --epsilon 1

    Example: dpselect top sales.csv -k 10 --column item --delta 1e-9 --person buyer --max-values 5 --epsilon 1
    """
    with clean_errors():
        wanted, kept = sizes(k), limit(max_values)
        choices: dict[str, Any] = {"method": method, "max_values": kept, "ordered": ordered, "mechanism": mechanism}
        table = asked.table()
        listed = asked.listed(table, candidates, every)
        named = {"candidates": listed, "other": other, "delta": delta, **asked.price, **choices}
        answer = asked.ask(table, lambda own: own.top_k(asked.column, wanted, **named))
    in_order = listed is None or is_in_order(method, ordered)
    _print(answer, asked.as_json, ordered=in_order, order="--candidates" if every is None else "the rule")


@with_options(Asked)
def values(asked: Asked, *, delta: asking.Delta = None, max_values: asking.MaxFound = "1") -> None:
    """Return the values that enough people have, privately. They are public then.

    Use them as candidates or groups of later questions. dpselect plan values says how many people a value needs.

    Example: dpselect values visits.csv --column diagnosis --person patient --epsilon 1 --delta 1e-9
    """
    with clean_errors():
        kept: Any = limit(max_values)
        price = {**asked.price, "delta": delta, "max_values": kept}
        answer = asked.ask(asked.table(), lambda own: own.values(asked.column, **price))
    _print(answer, asked.as_json)


@with_options(Asked, Ends)
def median(asked: Asked, ends: Ends) -> None:
    """Return a value with about half of the people below it, privately.

    The candidates are lower, lower + step, ..., upper. Values outside this range count as its nearest end.
    A person with several rows counts once, at the median of their values, unless --per-person is rows.

    Example: dpselect median visits.csv --column cost --lower 0 --upper 1000000 --person patient --epsilon 0.5

    Example: dpselect median visits.csv --column cost --step 1 --person patient --epsilon 0.5
    """
    _ask_quantile(asked, ends, lambda own, named: own.median(asked.column, **named))


@with_options(Asked, Ends)
def quantile(asked: Asked, ends: Ends, *, level: _Level) -> None:
    """Return a value with about a share Q of the people below it, privately.

    A person with several rows counts once, at the median of their values. So this is a quantile of people, not of rows:
    with --per-person rows --max-rows 10, up to ten rows of each person count instead.

    Example: dpselect quantile visits.csv --level 0.9 --column cost --lower 0 --upper 50000 --person patient --epsilon 1
    """
    _ask_quantile(asked, ends, lambda own, named: own.quantile(asked.column, level, **named))


@with_options(Asked, Ends)
def quantiles(
    asked: Asked, ends: Ends, *, levels: asking.Levels, plot: asking.Plot = None, people: asking.People = None
) -> None:
    """Return a value for each of several shares of the people, privately, in one question.

    Epsilon is the total for the whole answer. Larger shares never get smaller values. Each line has a share and its
    value, in the order of --levels. --plot draws them as a distribution function, with --people also their accuracy.

    Example: dpselect quantiles visits.csv --levels deciles --column cost --step 1 --person patient --epsilon 1

    Example: dpselect quantiles visits.parquet --levels 0.1,0.5,0.9 --column cost --person patient --epsilon 1
    """
    with clean_errors():
        wanted, number, table = listed_levels(levels), _people_drawn(plot, people), asked.table()
        column = known_column(table.columns, asked.column, "column")
        size = public_span(ends.lower, ends.upper, ends.step, column, ends.range_).size
        named = {**ends.arguments(), **asked.price}
        answer = asked.ask(table, lambda own: own.quantiles(asked.column, wanted, **named))
    _print_levels(answer, wanted, asked.as_json)
    _print_unread(asked, table)
    if plot is not None:
        several = isinstance(answer.value, dict)
        grouped = {"groups": len(answer.value), "max_groups": asked.most_groups} if several else {}
        # The number of candidates depends on the type of the column: two dates are days, or the seconds between them.
        bars = {"people": number, "candidates": max(size, 2), "max_rows": ends.rows, **grouped}
        with clean_errors():
            _draw(answer, wanted, plot, neighbours=asked.neighbours, **bars)
        if not asked.as_json:
            print_line(f"Plot: {plot}", "bold")


@with_options(Asked, Ends)
def minimum(asked: Asked, ends: Ends, *, level: _Level = "0.01") -> None:
    """Return a value with only few people below it, privately, in place of the minimum.

    The smallest value is that of one person, and no private answer is always near it. So this is the quantile of
    --level, whose error is a few people. Without --lower and --upper, it needs many people.

    Example: dpselect minimum visits.csv --column cost --lower 0 --upper 50000 --person patient --epsilon 1
    """
    _ask_quantile(asked, ends, lambda own, named: own.minimum(asked.column, level=level, **named))


@with_options(Asked, Ends)
def maximum(asked: Asked, ends: Ends, *, level: _Level = "0.99") -> None:
    """Return a value with only few people above it, privately, in place of the maximum.

    The largest value is that of one person, and no private answer is always near it. So this is the quantile of
    --level, whose error is a few people. Without --lower and --upper, it needs many people.

    Example: dpselect maximum visits.csv --column cost --lower 0 --upper 50000 --person patient --epsilon 1
    """
    _ask_quantile(asked, ends, lambda own, named: own.maximum(asked.column, level=level, **named))


def _ask_quantile(asked: Asked, ends: Ends, question: Callable[[Table, dict[str, Any]], Answer]) -> None:
    """Ask for a quantile, with the shared arguments, and print the answer."""
    with clean_errors():
        table, named = asked.table(), {**ends.arguments(), **asked.price}
        answer = asked.ask(table, lambda own: question(own, named))
    _print(answer, asked.as_json)
    _print_unread(asked, table)


def _print_unread(asked: Asked, table: Table) -> None:
    """Say, on a terminal, what is always true of a file without types. It depends on no row."""
    if table.columns[asked.column].untyped:
        seen = f"dpselect check {asked.file} --column {asked.column}"
        print_hint(f"Text that is not a number or date, such as 2,5 or 31.12.2026, is left out. To see it: {seen}")


def _print(answer: Answer, as_json: bool, ordered: bool | None = None, order: str = "--candidates") -> None:
    """Print an answer, and whether its candidates are in order if it may have several; `order` is that of others."""
    if as_json:
        typer.echo(json.dumps({**answer.to_dict(), **({} if ordered is None else {"ordered": ordered})}))
        return
    for line in _lines(answer.value):
        print_line(line, "bold green")
    if ordered is False and answer.epsilon and has_several(answer.value):
        print_line(f"in the order of {order}, which says nothing about the counts", "dim")
    if ordered and has_several(answer.value):
        print_line("the most common first", "dim")
    print_line(answer.estimate, "dim")
    if answer.accuracy is not None:
        print_line(str(answer.accuracy), "dim")
    print_terms(answer)


def _people_drawn(plot: str | None, people: str | None) -> int | None:
    """The public number of people of a plot. The file is checked before anything is charged."""
    if plot is None:
        if people is not None:
            raise InvalidValue("--people is for the bars of a plot: name its file with --plot")
        return None
    check_plot(plot)
    return None if people is None else whole(least=1, most=10**18, people=people)


def _draw(answer: Answer, levels: Sequence[Fraction], path: str, **asked: Any) -> None:
    try:
        plot_quantiles(answer, levels, path=path, **asked)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--plot {path!r}: the file cannot be written ({reason})") from None


def _print_levels(answer: Answer, levels: Sequence[Fraction], as_json: bool) -> None:
    """Print an answer with a line for each level, after the name of its group if there are groups."""
    texts = [exact_text(level) for level in levels]
    if as_json:
        typer.echo(json.dumps({"levels": texts, **answer.to_dict()}))
        return
    by_group = (
        [(f"{group_text(group)}  ", own) for group, own in answer.value.items()]
        if isinstance(answer.value, dict)
        else []
    )
    lines = [
        f"{group}{text}  {value}"
        for group, own in by_group or [("", answer.value)]
        for text, value in zip(texts, own, strict=True)
    ]
    _print(replace(answer, value=lines), as_json)


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{group_text(group)}: {', '.join(_lines(answer))}" for group, answer in value.items()]
    if value is None or value == []:
        return ["nothing was common enough"]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]
