"""Private questions about a file: `dpselect mode`, `top`, `values`, `median`, `quantile`, `quantiles` and others.

Lists of candidates and groups, and the ends of a range, are public values from the command line.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect._numbers import exact_text
from dpselect.cli.compare import check_plot
from dpselect.cli.console import clean_errors, has_several, print_line, print_terms
from dpselect.cli.options import (
    Budget,
    Dataset,
    Json,
    LedgerFile,
    MechanismName,
    Method,
    OptionalEpsilon,
    Ordered,
    RequestId,
    Rho,
    check_ledger_options,
    limit,
    listed_levels,
    sizes,
    whole,
)
from dpselect.errors import InvalidValue
from dpselect.tables import Answer, Table, open_table, plot_quantiles
from dpselect.tables.databases import file_of
from dpselect.tables.domains import Domain
from dpselect.tables.domains import every as domain_of
from dpselect.tables.groups import group_text
from dpselect.tables.ranges import public_grid
from dpselect.tables.schema import Column, value_from_text
from dpselect.tables.table import known_column
from dpselect.top_k import is_in_order

_TABLE_ENDINGS = (".csv", ".gz", ".parquet", ".zst")


def public_list(text: str, column: Column, option: str, table: str) -> list[Any]:
    """The values of a list such as A,B,C, or of a file with one value per line, in the type of the column."""
    path = Path(text)
    if _is_file(path) and _is_within(path, table):
        raise InvalidValue(f"{option} is a file of the table itself: give a public list, because errors may quote it")
    texts = _file_lines(path) if _is_file(path) else _items(text, option)
    if option == "--candidates" and not _is_file(path) and len(texts) == 1:
        raise InvalidValue(
            f"{option}: one value leaves no choice, and there is no file of that name: give A,B,C with commas, or a"
            " file with one value per line"
        )
    if not texts:
        raise InvalidValue(f"{option} must name at least one value: give A,B,C or a file with one value per line")
    return [value_from_text(item, column.kind, option) for item in texts]


def _items(text: str, option: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line break, or an item that is too long
        raise InvalidValue(f"{option} must be one line A,B,C, or a file with one value per line") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a list that is too long for a path, or has characters that no path has
        return False


def _is_within(path: Path, source: str) -> bool:
    """Whether the file is the table, or looks like one of the files in its folder."""
    try:
        table = Path(file_of(source))
        inside = path.suffix in _TABLE_ENDINGS and path.resolve().is_relative_to(table.resolve(strict=True))
        return inside or table.samefile(path)
    except (OSError, ValueError):  # the table is a pattern, or is not there
        return False


def _file_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InvalidValue(f"{path}: the list cannot be read: give a UTF-8 text file with one value per line") from None
    return [line for line in lines if line.strip()]


_File = Annotated[
    str, typer.Argument(metavar="FILE", help="CSV or Parquet file, a folder or pattern of them, or a database.")
]
_FromTable = Annotated[
    str | None, typer.Option("--table", metavar="T", help="For a database: the table, such as visits or clinic.visits.")
]
_Query = Annotated[
    str | None, typer.Option(metavar="SQL", help="For a database: a SELECT statement instead of a table.")
]
_Column = Annotated[str, typer.Option("--column", metavar="C", help="The column that the question is about.")]
_Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="LIST|FILE",
        help="Possible answers: A,B,C, or a file with one per line. Must be public. Or give --every or --delta.",
    ),
]
_Every = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="A rule instead of a list: int64, integer:0..999, text:8 (at most 8 bytes), text:6:0123456789 (of these"
        " characters), decimal:9:2 (9 digits, 2 of them after the point), date, uuid, ...",
    ),
]
_Delta = Annotated[
    str | None,
    typer.Option(
        metavar="D",
        help="Find the values in the data. D is the probability with which a value that only one person has may come"
        " out, such as 1e-9: much less than one over the number of people.",
    ),
]
_Other = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="A further candidate, for people with a value that is not listed."),
]
_Person = Annotated[
    str | None,
    typer.Option(metavar="P", help="Column that identifies the person. Default: each row is a person."),
]
_Neighbours = Annotated[str, typer.Option(metavar="N", help="add-remove (hides who is in the table) or replace.")]
_GroupBy = Annotated[
    list[str] | None,
    typer.Option(metavar="G", help="One answer for each group of this column. Repeat it to combine columns."),
]
_Groups = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LIST|FILE",
        help="The groups of --group-by, once for each of them. Must be public."
        " found:E,D finds them in the data, at epsilon E and delta D.",
    ),
]
_MaxGroups = Annotated[str, typer.Option(metavar="M", help="In how many groups one person may be counted.")]
_MaxValues = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="For how many candidates a person counts: N of theirs, at random. set and noisy-counts need it.",
    ),
]
_MaxFound = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="For how many of the values that are found a person counts: N of theirs, at random."
    ),
]
_Engine = Annotated[str, typer.Option(metavar="duckdb|spark", help="Where to count: on this machine or in Spark.")]
_Plot = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Also draw the private distribution function: FILE.png, .svg or .pdf."),
]
_People = Annotated[
    str | None,
    typer.Option(metavar="N", help="For --plot, the public number of people; draws the accuracy of each level."),
]
_Lower = Annotated[
    str | None,
    typer.Option(metavar="A", help="Smallest candidate: a number, date or timestamp. Default: that of the type."),
]
_Upper = Annotated[str | None, typer.Option(metavar="B", help="Largest candidate. Default: that of the type.")]
_Step = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Step between candidates (days for dates, seconds for timestamps). Default: 1, or without --lower or"
        " --upper as fine as the type. For CSV, 1 reads whole numbers and 0.01 two digits after the point.",
    ),
]
_Range = Annotated[
    str,
    typer.Option(
        "--range", metavar="full|log", help="log: values rounded to two digits, for few people or an unknown scale."
    ),
]
_PerPerson = Annotated[
    str,
    typer.Option(
        metavar="median|rows",
        help="A person counts once, at the median of their rows; or with up to --max-rows rows, chosen at random.",
    ),
]
_MaxRows = Annotated[
    str | None, typer.Option(metavar="M", help="With how many rows a person counts, for --per-person rows.")
]
_Levels = Annotated[
    str, typer.Option(metavar="LIST", help="Shares such as 0.1,0.5,0.9, or quartiles, deciles or percentiles.")
]

_MOST = 10**9


def mode(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    column: _Column,
    candidates: _Candidates = None,
    every: _Every = None,
    other: _Other = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    delta: _Delta = None,
    max_values: _MaxFound = None,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
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
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        listed = _possible(table, file, column, candidates, every)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta, "max_values": limit(max_values)}
        answer = _grouped(table, file, group_by, groups, max_groups).mode(
            column, candidates=listed, other=other, **price, mechanism=mechanism, request_id=request_id
        )
    _print(answer, as_json)


def top(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    k: Annotated[
        str,
        typer.Option(
            "-k", metavar="K|LO:HI", help="How many candidates to return, or an interval in which to find a clear cut."
        ),
    ],
    column: _Column,
    candidates: _Candidates = None,
    every: _Every = None,
    other: _Other = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    delta: _Delta = None,
    method: Method = "auto",
    max_values: _MaxValues = None,
    ordered: Ordered = False,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
) -> None:
    """Return the K candidates that most people have, privately.

    They are printed as --candidates lists them, which says nothing about their counts. With --ordered or --delta, the
    best is first. Epsilon is the total for the whole answer. If K is the number of candidates, nothing is counted or
    charged. With an interval LO:HI, the number of candidates is chosen too, by the margin to those that are left out.
    A person counts for all candidates that they have. With --max-values 1, a person with several counts for one of
    them, and answers are more accurate.

    Example: dpselect top visits.csv -k 3 --column diagnosis --candidates codes.txt --person patient --epsilon 1

    Example: dpselect top sales.csv -k 20 --column item --candidates items.txt --person buyer --max-values 5 --epsilon 1

    Example: dpselect top sales.csv -k 10:30 --column item --candidates items.txt --person buyer --epsilon 1

    Example: dpselect top sales.csv -k 10 --column item --delta 1e-9 --person buyer --max-values 5 --epsilon 1
    """
    with clean_errors():
        wanted, kept = sizes(k), limit(max_values)
        choices: dict[str, Any] = {"method": method, "max_values": kept, "ordered": ordered, "mechanism": mechanism}
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        listed = _possible(table, file, column, candidates, every)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta}
        answer = _grouped(table, file, group_by, groups, max_groups).top_k(
            column, wanted, candidates=listed, other=other, **price, **choices, request_id=request_id
        )
    in_order = listed is None or is_in_order(method, ordered)
    _print(answer, as_json, ordered=in_order, order="--candidates" if every is None else "the rule")


def values(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    column: _Column,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    delta: _Delta = None,
    max_values: _MaxFound = "1",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
) -> None:
    """Return the values that enough people have, privately. They are public then.

    Use them as candidates or groups of later questions. dpselect plan values says how many people a value needs.

    Example: dpselect values visits.csv --column diagnosis --person patient --epsilon 1 --delta 1e-9
    """
    with clean_errors():
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta, "request_id": request_id}
        kept: Any = limit(max_values)
        answer = _grouped(table, file, group_by, groups, max_groups).values(column, max_values=kept, **price)
    _print(answer, as_json)


def median(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    column: _Column,
    lower: _Lower = None,
    upper: _Upper = None,
    step: _Step = None,
    range_: _Range = "full",
    per_person: _PerPerson = "median",
    max_rows: _MaxRows = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
) -> None:
    """Return a value with about half of the people below it, privately.

    The candidates are lower, lower + step, ..., upper. Values outside this range count as its nearest end.
    A person with several rows counts once, at the median of their values, unless --per-person is rows.

    Example: dpselect median visits.csv --column cost --lower 0 --upper 1000000 --person patient --epsilon 0.5

    Example: dpselect median visits.csv --column cost --step 1 --person patient --epsilon 0.5
    """
    with clean_errors():
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        asked = _asked(lower, upper, step, range_, per_person, max_rows)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "mechanism": mechanism, "request_id": request_id}
        answer = _grouped(table, file, group_by, groups, max_groups).median(column, **asked, **price)
    _print(answer, as_json)


def quantile(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    level: Annotated[str, typer.Option(metavar="Q", help="Share of people below it, such as 0.9 or 1/3.")],
    column: _Column,
    lower: _Lower = None,
    upper: _Upper = None,
    step: _Step = None,
    range_: _Range = "full",
    per_person: _PerPerson = "median",
    max_rows: _MaxRows = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
) -> None:
    """Return a value with about a share Q of the people below it, privately.

    A person with several rows counts once, at the median of their values. So this is a quantile of people, not of rows:
    with --per-person rows --max-rows 10, up to ten rows of each person count instead.

    Example: dpselect quantile visits.csv --level 0.9 --column cost --lower 0 --upper 50000 --person patient --epsilon 1
    """
    with clean_errors():
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        asked = _asked(lower, upper, step, range_, per_person, max_rows)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "mechanism": mechanism, "request_id": request_id}
        answer = _grouped(table, file, group_by, groups, max_groups).quantile(column, level, **asked, **price)
    _print(answer, as_json)


def quantiles(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    levels: _Levels,
    column: _Column,
    lower: _Lower = None,
    upper: _Upper = None,
    step: _Step = None,
    range_: _Range = "full",
    per_person: _PerPerson = "median",
    max_rows: _MaxRows = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    plot: _Plot = None,
    people: _People = None,
    as_json: Json = False,
) -> None:
    """Return a value for each of several shares of the people, privately, in one question.

    Epsilon is the total for the whole answer. Larger shares never get smaller values. Each line has a share and its
    value, in the order of --levels. --plot draws them as a distribution function, with --people also their accuracy.

    Example: dpselect quantiles visits.csv --levels deciles --column cost --step 1 --person patient --epsilon 1

    Example: dpselect quantiles visits.parquet --levels 0.1,0.5,0.9 --column cost --person patient --epsilon 1
    """
    with clean_errors():
        wanted, number = listed_levels(levels), _people_drawn(plot, people)
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        asked = _asked(lower, upper, step, range_, per_person, max_rows)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "mechanism": mechanism, "request_id": request_id}
        size = public_grid(lower, upper, step, known_column(table, column, "column"), range_).size
        answer = _grouped(table, file, group_by, groups, max_groups).quantiles(column, wanted, **asked, **price)
    _print_levels(answer, wanted, as_json)
    if plot is not None:
        most = whole(least=1, most=_MOST, max_groups=max_groups)
        grouped = {"groups": len(answer.value), "max_groups": most} if isinstance(answer.value, dict) else {}
        # The number of candidates depends on the type of the column: two dates are days, or the seconds between them.
        bars = {"people": number, "candidates": max(size, 2), "max_rows": asked["max_rows"], **grouped}
        with clean_errors():
            _draw(answer, wanted, plot, neighbours=neighbours, **bars)
        if not as_json:
            print_line(f"Plot: {plot}", "bold")


def minimum(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    column: _Column,
    level: Annotated[str, typer.Option(metavar="Q", help="Share of people below it.")] = "0.01",
    lower: _Lower = None,
    upper: _Upper = None,
    step: _Step = None,
    range_: _Range = "full",
    per_person: _PerPerson = "median",
    max_rows: _MaxRows = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
) -> None:
    """Return a value with only few people below it, privately, in place of the minimum.

    The smallest value is that of one person, and no private answer is always near it. So this is the quantile of
    --level, whose error is a few people. Without --lower and --upper, it needs many people.

    Example: dpselect minimum visits.csv --column cost --lower 0 --upper 50000 --person patient --epsilon 1
    """
    with clean_errors():
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        asked = _asked(lower, upper, step, range_, per_person, max_rows)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "mechanism": mechanism, "request_id": request_id}
        answer = _grouped(table, file, group_by, groups, max_groups).minimum(column, level=level, **asked, **price)
    _print(answer, as_json)


def maximum(  # noqa: PLR0913 - typer makes an option of each argument
    file: _File,
    *,
    column: _Column,
    level: Annotated[str, typer.Option(metavar="Q", help="Share of people below it.")] = "0.99",
    lower: _Lower = None,
    upper: _Upper = None,
    step: _Step = None,
    range_: _Range = "full",
    per_person: _PerPerson = "median",
    max_rows: _MaxRows = None,
    epsilon: OptionalEpsilon = None,
    rho: Rho = None,
    mechanism: MechanismName = "auto",
    from_table: _FromTable = None,
    query: _Query = None,
    person: _Person = None,
    neighbours: _Neighbours = "add-remove",
    group_by: _GroupBy = None,
    groups: _Groups = None,
    max_groups: _MaxGroups = "1",
    ledger: LedgerFile = None,
    budget: Budget = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    engine: _Engine = "duckdb",
    as_json: Json = False,
) -> None:
    """Return a value with only few people above it, privately, in place of the maximum.

    The largest value is that of one person, and no private answer is always near it. So this is the quantile of
    --level, whose error is a few people. Without --lower and --upper, it needs many people.

    Example: dpselect maximum visits.csv --column cost --lower 0 --upper 50000 --person patient --epsilon 1
    """
    with clean_errors():
        unit: dict[str, Any] = {"person": person, "neighbours": neighbours, "engine": engine}
        table = _opened(file, ledger, budget, dataset, request_id, table=from_table, query=query, **unit)
        asked = _asked(lower, upper, step, range_, per_person, max_rows)
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "mechanism": mechanism, "request_id": request_id}
        answer = _grouped(table, file, group_by, groups, max_groups).maximum(column, level=level, **asked, **price)
    _print(answer, as_json)


def _opened(
    file: str, ledger: str | None, budget: str | None, dataset: str | None, request_id: str | None, **options: Any
) -> Table:
    check_ledger_options(ledger, budget=budget, dataset=dataset, request_id=request_id)
    return open_table(file, ledger=ledger, budget=budget, dataset=dataset, **options)


def _grouped(table: Table, file: str, columns: list[str] | None, groups: list[str] | None, max_groups: str) -> Table:
    """The table in groups, if there are any: those of one column, or all combinations of several."""
    most = whole(least=1, most=_MOST, max_groups=max_groups)
    named, texts = columns or [], groups or []
    if len(named) != len(texts):
        raise InvalidValue(
            "--group-by and --groups belong together: name each column, and list its public groups, in the same order;"
            " if there is no list, find the groups of a column with --groups found:0.5,1e-9"
        )
    if not named:
        return table
    for name in named:
        if "," in name and name not in table.columns:
            raise InvalidValue("--group-by names one column: repeat it, and --groups, for each further column")
    if texts[0].startswith(_FOUND):
        return _found_groups(table, named, texts, most)
    listed = {
        column: public_list(text, known_column(table, column, "--group-by"), "--groups", file)
        for column, text in zip(named, texts, strict=True)
    }
    if len(named) == 1:
        return table.group_by(named[0], groups=listed[named[0]], max_groups=most)
    return table.group_by(named, groups=listed, max_groups=most)


_FOUND = "found:"


def _found_groups(table: Table, named: list[str], texts: list[str], most: int) -> Table:
    """The table in groups of one column that are found in the data, at a price such as found:0.5,1e-9."""
    if len(named) > 1:
        raise InvalidValue("--groups found: is for one column: find the values of each with dpselect values")
    epsilon, comma, delta = texts[0].removeprefix(_FOUND).partition(",")
    if not (epsilon.strip() and comma and delta.strip()):
        raise InvalidValue("--groups found: needs the epsilon and the delta of finding them: found:0.5,1e-9")
    grouped = table.group_by(named[0], epsilon=epsilon.strip(), delta=delta.strip(), max_groups=most)
    paid = "" if grouped.found is None else "; ".join(filter(None, (str(grouped.found.guarantee), grouped.found.entry)))
    typer.echo(f"{len(grouped.groups):,} groups found: {paid}", err=True)  # the answer itself goes to standard output
    return grouped


def _possible(table: Table, file: str, column: str, candidates: str | None, every: str | None) -> Any:
    """The possible answers: a list, a rule, or None."""
    if candidates is not None and every is not None:
        raise InvalidValue("--candidates and --every exclude each other: give a list or a rule")
    if every is not None:
        return rule(every)
    if candidates is None:
        return None
    return public_list(candidates, known_column(table, column, "column"), "--candidates", file)


# What follows the kind of a rule, and what is between two of them. Otherwise it is the ends of a range.
_PARTS = {"text": (("max_bytes", "alphabet"), ":"), "decimal": (("precision", "digits"), ":")}
_RANGE = (("lower", "upper"), "..")
_WHOLE = ("max_bytes", "precision", "digits")


def rule(text: str) -> Domain:
    """The rule KIND, or one with parameters such as text:8, decimal:9:2 or integer:0..999.

    >>> rule("text:8"), rule("integer:0..999")
    (every('text', max_bytes=8), every('integer', lower=0, upper=999))
    """
    kind, colon, rest = text.partition(":")
    names, between = _PARTS.get(kind, _RANGE)
    parts = rest.split(between, 1) if colon else []
    given: dict[str, Any] = {name: part for name, part in zip(names, parts, strict=False) if part}
    read = {name: whole(least=0, most=_MOST, **{name: part}) for name, part in given.items() if name in _WHOLE}
    return domain_of(kind, **{**given, **read})


def _asked(  # noqa: PLR0913, PLR0917 - the options of all quantiles
    lower: str | None, upper: str | None, step: str | None, range_: str, per_person: str, max_rows: str | None
) -> dict[str, Any]:
    """The arguments that say which values a quantile may have, and with what a person counts."""
    rows = None if max_rows is None else whole(least=1, most=_MOST, max_rows=max_rows)
    ends = {"lower": lower, "upper": upper, "step": step, "range": range_}
    return {**ends, "per_person": per_person, "max_rows": rows}


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
