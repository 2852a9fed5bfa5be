"""What the questions about a table share on the command line: options, public lists and rules, and asking itself.

Lists of candidates and groups, and the ends of a range, are public values from the command line. A command declares the
options of its own and gets the shared ones as records (`options.with_options`).
"""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect._validate import warn
from dpselect.cli.options import (
    Budget,
    Dataset,
    Json,
    LedgerFile,
    MechanismName,
    OptionalEpsilon,
    RequestId,
    Rho,
    check_ledger_options,
    whole,
)
from dpselect.errors import InvalidValue
from dpselect.tables import Answer, Table, open_table
from dpselect.tables.domains import Domain
from dpselect.tables.domains import every as domain_of
from dpselect.tables.files import file_of
from dpselect.tables.kinds import Column, known_column
from dpselect.tables.table import checking

MOST = 10**9
_FROM_TO = re.compile(r"\s*[0-9]+\s*(?:-|\.\.|:)\s*[0-9]+\s*")
_TABLE_ENDINGS = (".csv", ".gz", ".parquet", ".zst")


def public_list(text: str, column: Column, option: str, table: str) -> list[Any]:
    """The values of a list such as A,B,C, or of a file with one value per line, in the type of the column."""
    path = Path(text)
    if _is_file(path) and _is_within(path, table):
        raise InvalidValue(f"{option} is a file of the table itself: give a public list, because errors may quote it")
    texts = _file_lines(path) if _is_file(path) else _items(text, option)
    if option == "--groups" and not _is_file(path) and _FROM_TO.fullmatch(text):
        raise InvalidValue(f"{option} {text[:40]} is one group, not a range: list all groups, such as 1,2,3")
    if option == "--candidates" and not _is_file(path) and len(texts) == 1:
        raise InvalidValue(
            f"{option}: there is no file {text[:40]!r}, and one value leaves no choice: give A,B,C with commas, or a"
            " file with one value per line"
        )
    if not texts:
        raise InvalidValue(f"{option} must name at least one value: give A,B,C or a file with one value per line")
    return [column.kind.from_text(item, option) for item in texts]


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
    read = {name: whole(least=0, most=MOST, **{name: part}) for name, part in given.items() if name in _WHOLE}
    return domain_of(kind, **{**given, **read})


File = Annotated[
    str, typer.Argument(metavar="FILE", help="CSV or Parquet file, a folder or pattern of them, or a database.")
]
FromTable = Annotated[
    str | None, typer.Option("--table", metavar="T", help="For a database: the table, such as visits or clinic.visits.")
]
Query = Annotated[
    str | None, typer.Option(metavar="SQL", help="For a database: a SELECT statement instead of a table.")
]
ColumnName = Annotated[str, typer.Option("--column", metavar="C", help="The column that the question is about.")]
Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="LIST|FILE",
        help="Possible answers: A,B,C, or a file with one per line. Must be public. Or give --every or --delta.",
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="A rule instead of a list: int64, integer:0..999, text:8 (at most 8 bytes), text:6:0123456789 (of these"
        " characters), decimal:9:2 (9 digits, 2 of them after the point), date, uuid, ...",
    ),
]
Delta = Annotated[
    str | None,
    typer.Option(
        metavar="D",
        help="Find the values in the data. D is the probability with which a value that only one person has may come"
        " out, such as 1e-9: much less than one over the number of people.",
    ),
]
Other = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="A further candidate, for people with a value that is not listed."),
]
Person = Annotated[
    str | None,
    typer.Option(metavar="P", help="Column that identifies the person. Default: each row is a person."),
]
Neighbours = Annotated[str, typer.Option(metavar="N", help="add-remove (hides who is in the table) or replace.")]
GroupBy = Annotated[
    list[str] | None,
    typer.Option(metavar="G", help="One answer for each group of this column. Repeat it to combine columns."),
]
GroupList = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LIST|FILE",
        help="The groups of --group-by, once for each of them. Must be public."
        " found:E,D finds them in the data, at epsilon E and delta D.",
    ),
]
MaxGroups = Annotated[str, typer.Option(metavar="M", help="In how many groups one person may be counted.")]
MaxValues = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="For how many candidates a person counts: N of theirs, at random. set and noisy-counts need it.",
    ),
]
MaxFound = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="For how many of the values that are found a person counts: N of theirs, at random."
    ),
]
Engine = Annotated[str, typer.Option(metavar="duckdb|spark", help="Where to count: on this machine or in Spark.")]
Plot = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Also draw the private distribution function: FILE.png, .svg or .pdf."),
]
People = Annotated[
    str | None,
    typer.Option(metavar="N", help="For --plot, the public number of people; draws the accuracy of each level."),
]
Lower = Annotated[
    str | None,
    typer.Option(metavar="A", help="Smallest candidate: a number, date or timestamp. Default: that of the type."),
]
Upper = Annotated[str | None, typer.Option(metavar="B", help="Largest candidate. Default: that of the type.")]
Step = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Step between candidates (days for dates, seconds for timestamps). Default: 1, or without --lower or"
        " --upper as fine as the type. For CSV, 1 reads whole numbers and 0.01 two digits after the point.",
    ),
]
Range = Annotated[
    str,
    typer.Option(
        "--range", metavar="full|log", help="log: values rounded to two digits, for few people or an unknown scale."
    ),
]
PerPerson = Annotated[
    str,
    typer.Option(
        metavar="median|rows",
        help="A person counts once, at the median of their rows; or with up to --max-rows rows, chosen at random.",
    ),
]
MaxRows = Annotated[
    str | None, typer.Option(metavar="M", help="With how many rows a person counts, for --per-person rows.")
]
Levels = Annotated[
    str, typer.Option(metavar="LIST", help="Shares such as 0.1,0.5,0.9, or quartiles, deciles or percentiles.")
]


@dataclass(frozen=True)
class Asked:
    """Of which table it is asked, in which groups, and who pays: the options that all questions share."""

    file: File
    column: ColumnName
    epsilon: OptionalEpsilon = None
    rho: Rho = None
    from_table: FromTable = None
    query: Query = None
    person: Person = None
    neighbours: Neighbours = "add-remove"
    group_by: GroupBy = None
    groups: GroupList = None
    max_groups: MaxGroups = "1"
    ledger: LedgerFile = None
    budget: Budget = None
    dataset: Dataset = None
    request_id: RequestId = None
    engine: Engine = "duckdb"
    as_json: Json = False

    @property
    def price(self) -> dict[str, Any]:
        """Return the price of the question, and the id of its request."""
        return {"epsilon": self.epsilon, "rho": self.rho, "request_id": self.request_id}

    @property
    def most_groups(self) -> int:
        """Return in how many groups one person may be counted."""
        return whole(least=1, most=MOST, max_groups=self.max_groups)

    def table(self) -> Table:
        """Return the table, opened, without groups."""
        check_ledger_options(self.ledger, budget=self.budget, dataset=self.dataset, request_id=self.request_id)
        paid = {"ledger": self.ledger, "budget": self.budget, "dataset": self.dataset}
        source: dict[str, Any] = {"table": self.from_table, "query": self.query, "engine": self.engine}
        # Finding groups is a question of its own, so there are two.
        source["keep"] = True if any(text.startswith(_FOUND) for text in self.groups or []) else None
        return open_table(self.file, person=self.person, neighbours=self.neighbours, **paid, **source)  # type: ignore[arg-type]

    def listed(self, table: Table, candidates: str | None, every: str | None) -> Any:
        """Return the possible answers: a list, a rule, or None."""
        if candidates is not None and every is not None:
            raise InvalidValue("--candidates and --every exclude each other: give a list or a rule")
        if every is not None:
            return rule(every)
        if candidates is None:
            return None
        return public_list(candidates, known_column(table.columns, self.column, "column"), "--candidates", self.file)

    def ask(self, table: Table, question: Callable[[Table], Answer]) -> Answer:
        """Ask a question of the table, or of each of its groups. Groups are found only if the question is right."""
        named, texts = self.group_by or [], self.groups or []
        if len(named) != len(texts):
            raise InvalidValue(
                "--group-by and --groups belong together: name each column, and list its public groups, in the same"
                " order; if there is no list, find the groups of a column with --groups found:0.5,1e-9"
            )
        most = self.most_groups
        if not named:
            return question(table)
        for name in named:
            if "," in name and name not in table.columns:
                raise InvalidValue("--group-by names one column: repeat it, and --groups, for each further column")
        if any(text.startswith(_FOUND) for text in texts):
            question(checking(table, named[0], most))
            return question(self._found_groups(table, named, texts, most))
        listed = {
            column: public_list(text, known_column(table.columns, column, "--group-by"), "--groups", self.file)
            for column, text in zip(named, texts, strict=True)
        }
        by, groups = (named[0], listed[named[0]]) if len(named) == 1 else (named, listed)
        return question(table.group_by(by, groups=groups, max_groups=most))

    def _found_groups(self, table: Table, named: list[str], texts: list[str], most: int) -> Table:
        """The table in groups of one column that are found in the data, at a price such as found:0.5,1e-9."""
        if len(named) > 1:
            raise InvalidValue("--groups found: is for one column: find the values of each with dpselect values")
        epsilon, comma, delta = texts[0].removeprefix(_FOUND).partition(",")
        if not (epsilon.strip() and comma and delta.strip()):
            raise InvalidValue("--groups found: needs the epsilon and the delta of finding them: found:0.5,1e-9")
        price = {"epsilon": epsilon.strip(), "delta": delta.strip()}
        request_id = None if self.request_id is None else f"{self.request_id} (groups)"
        grouped = table.group_by(named[0], **price, max_groups=most, request_id=request_id)
        found = grouped.found
        paid = "" if found is None else "; ".join(filter(None, (str(found.guarantee), found.entry)))
        # The answer itself goes to standard output.
        typer.echo(f"{len(grouped.groups):,} groups found: {paid}", err=True)
        return grouped


_FOUND = "found:"
# Somebody who means a decimal fraction leaves out zeros at its end.
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}\.[0-9]{2}0")


@dataclass(frozen=True)
class Ends:
    """Which values a quantile may have, and with what a person counts: the options that all quantiles share."""

    lower: Lower = None
    upper: Upper = None
    step: Step = None
    range_: Range = "full"
    per_person: PerPerson = "median"
    max_rows: MaxRows = None
    mechanism: MechanismName = "auto"

    @property
    def rows(self) -> int | None:
        """Return with how many rows a person counts."""
        return None if self.max_rows is None else whole(least=1, most=MOST, max_rows=self.max_rows)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a question. Warn of 1.500, which may be meant as one thousand five hundred."""
        ends = {"lower": self.lower, "upper": self.upper, "step": self.step, "range": self.range_}
        for name, text in ends.items():
            if text is not None and _THOUSANDS.fullmatch(text):
                warn(f"--{name} {text} is read with a decimal point: for a thousands separator, leave the point out")
        return {**ends, "per_person": self.per_person, "max_rows": self.rows, "mechanism": self.mechanism}
