"""Questions on the command line: `dpselect NAME` asks a table, `dpselect plan NAME` plans, `dpselect check` checks.

All of them are views of `questions.options.QUESTIONS`: what users state of a question are the options of its record,
which read their text. Only what is no part of a question is written here: which table, which groups, and who pays.
Lists of candidates and groups, and the ends of a range, are public values from the command line.
"""

import csv
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpselect import _validate
from dpselect._numbers import is_number, shown
from dpselect.cli.app import Late, LateCommands, questions
from dpselect.cli.commands import (
    JSON,
    LEDGER,
    PRICE,
    SCORE_COLUMNS,
    Given,
    busy,
    check_ledger_options,
    command,
    print_comment,
    print_figures,
    print_line,
    print_paragraph,
    print_terms,
    writing,
)
from dpselect.errors import InvalidValue
from dpselect.questions.options import ASKING, PLANNING, QUESTIONS, Named, Option, listed
from dpselect.score_files import PRIVACY, read_public_scores, shown_path

if TYPE_CHECKING:
    from dpselect.questions.plan import Plan
    from dpselect.release import Answer
    from dpselect.tables import Table
    from dpselect.tables.checks import Check, Overview
    from dpselect.tables.domains import Domain
    from dpselect.tables.kinds import Column

_MOST_CANDIDATES = 10**15
_FAILED = 1  # the exit code of a check that found something


# What is stated of a table, of its groups and of who pays, for every question.

_FILE = Option(
    ("file",),
    "FILE",
    "CSV, Parquet or Excel file, a folder or pattern, a database, or - for standard input.",
    is_required=True,
)
_COLUMN = Option(("--column",), "C", "The column that the question is about.", is_required=True)
_PERSON = Option(("--person",), "P", "Column that identifies the person. Default: each row is a person.")
_DATABASE = (
    Option(
        ("--table",), "T", "For a database: the table, such as visits or clinic.visits. For an Excel file: the sheet."
    ),
    Option(("--query",), "SQL", "For a database: a SELECT statement instead of a table."),
)
_VIEW = (
    Option(
        ("--where",),
        "SQL",
        "Count only rows for which this holds, such as \"age >= 18 AND sex = 'f'\". Repeat it: all must hold.",
        is_repeated=True,
    ),
    Option(
        ("--derive",),
        "NAME=SQL",
        'A further column, from each row alone, such as "year=year(visited)". Repeat it for more.',
        is_repeated=True,
    ),
    Option(("--encoding",), "E", "Of text files: utf-8, latin-1, cp1252, ...", default="utf-8"),
    Option(("--delimiter",), "D", "Of text files: one of , ; | : ^ ~ or tab. Default: the header says it."),
    Option(("--decimal",), "M", "The decimal mark of text files: . or ,", default="."),
    Option(("--thousands",), "M", "What separates thousands in text files, such as , or . Default: nothing."),
    Option(("--dates",), "FORM", "How text files write dates, such as %d.%m.%Y. Default: 2026-01-31."),
    Option(
        ("--trusted-query",), "", "You state that each row of --query depends on the rows of one person. Not checked."
    ),
)
_CHECK_FIRST = Option(
    ("--check",),
    "off|warn|stop",
    "Check the rows before the charge, for the data owner, on standard error. stop: end before the charge if the answer"
    " would mean nothing. Default: stop if standard error is a terminal, otherwise off.",
)
_GROUP_BY = Option(
    ("--group-by",), "G", "One answer for each group of this column. Repeat it to combine columns.", is_repeated=True
)
_GROUPS = Option(
    ("--groups",),
    "LIST|FILE",
    "The groups of --group-by, once for each of them. Must be public. found:E,D finds them in the data, at epsilon E"
    " and delta D.",
    is_repeated=True,
)
_ENGINE = Option(("--engine",), "duckdb|spark", "Where to count: on this machine or in Spark.", default="duckdb")
_SPARK, _OFF = "spark", "off"
_PLOT = (
    Option(("--plot",), "FILE", "Also draw the private distribution function: FILE.png, .svg or .pdf."),
    Option(("--people",), "N", "For --plot, the public number of people; draws the accuracy of each level."),
)
_PLANNED_PRICE = (Option(("--epsilon",), "E", "Epsilon of each question; prints its error.", name="epsilon"), PRICE[1])
_ERROR = Option(("--error",), "X", "Acceptable average error in people; prints the price it needs.", name="error")
_MANY = (
    Option(
        ("--budget",),
        "B",
        "What pays for all questions: 1 (epsilon), zcdp:0.5, or 1,1e-6. Alone, it is divided evenly.",
    ),
    Option(("--questions",), "Q", "How many such questions share the budget.", default="1"),
)
_SCORES = (
    Option(("--scores",), "PUBLIC.csv", "Public or synthetic scores; adds exact errors on these scores."),
    *SCORE_COLUMNS,
)
_CHECKED_GROUPS = replace(_GROUPS, help="The public groups of --group-by, once for each of them.")
_SHOW_VALUES = Option(("--show-values",), "", "Also print up to five values of the data for each problem.")
_COSTLY = tuple(Option((flag,), "X", "") for flag in ("--ledger", "--budget", "--epsilon"))
_REFUSED = (*_COSTLY, replace(_ENGINE, help=""))  # hidden, so that a check can say why


def _stated(options: Sequence[Option], given: Given, reader: Any) -> dict[str, Any]:
    by_name: dict[str, Option] = {}
    for option in options:
        if given[option.key] not in (None, False, []):
            first = by_name.setdefault(option.name, option)
            if first is not option:
                flags = f"{first.flags[0]} and {option.flags[0]}"
                raise InvalidValue(f"{flags} exclude each other: give {first.way} or {option.way}")
    # Lists need the table, so they come last.
    in_order = sorted(by_name.values(), key=lambda option: option.read is listed)
    return {option.name: option.is_flag or option.read(given[option.key], option.name, reader) for option in in_order}


# Public lists and rules.


@dataclass(frozen=True)
class _OfColumn:
    """Reads what is stated of a column of a table: lists have its type. The table is opened when it is needed."""

    given: Given
    opened: "Callable[[Given], Table]"

    @cached_property
    def table(self) -> "Table":
        return self.opened(self.given)

    def listed(self, text: str, flag: str) -> list[Any]:
        return public_list(text, _column(self.table, self.given["column"], "column"), flag, self.given["file"])

    def domain(self, text: str) -> "Domain":
        return rule(text)


class _Counted:
    """Reads what is stated for a plan: of lists, only their length."""

    def listed(self, text: str, flag: str) -> int:
        return _number(text, flag.lstrip("-"))

    def domain(self, text: str) -> "Domain":
        return rule(text)


def _column(table: "Table", name: str, what: str) -> "Column":
    from dpselect.tables.kinds import known_column  # noqa: PLC0415 - plans need no tables

    return known_column(table.columns, name, what)


_FROM_TO = re.compile(r"\s*[0-9]+\s*(?:-|\.\.|:)\s*[0-9]+\s*")
_TABLE_ENDINGS = (".csv", ".gz", ".parquet", ".zst")


def public_list(text: str, column: "Column", flag: str, table: str) -> list[Any]:
    """The values of a list such as A,B,C, or of a file with one value per line, in the type of the column."""
    path = Path(text)
    if _is_file(path) and _is_within(path, table):
        raise InvalidValue(f"{flag} is a file of the table itself: give a public list, because errors may quote it")
    texts = _file_lines(path) if _is_file(path) else _items(text, flag)
    if flag == "--groups" and not _is_file(path) and _FROM_TO.fullmatch(text):
        raise InvalidValue(f"{flag} {text[:40]} is one group, not a range: list all groups, such as 1,2,3")
    if flag == "--candidates" and not _is_file(path) and len(texts) == 1:
        raise InvalidValue(
            f"{flag}: there is no file {text[:40]!r}, and one value leaves no choice: give A,B,C with commas, or a"
            " file with one value per line"
        )
    if not texts:
        raise InvalidValue(f"{flag} must name at least one value: give A,B,C or a file with one value per line")
    if column.untyped and all(_NUMBER.fullmatch(item) for item in texts):
        # A list of numbers means numbers: 3.0 and 03 in the file are 3. Codes such as 007 stay text.
        return [Decimal(item) if "." in item else int(item) for item in texts]
    return [column.kind.from_text(item, flag) for item in texts]


_NUMBER = re.compile(r"(?:0|-?[1-9][0-9]{0,17}|-?0(?=\.))(?:\.[0-9]{1,18})?")


def _items(text: str, flag: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line break, or an item that is too long
        raise InvalidValue(f"{flag} must be one line A,B,C, or a file with one value per line") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a list that is too long for a path, or has characters that no path has
        return False


def _is_within(path: Path, source: str) -> bool:
    from dpselect.tables.files import file_of  # noqa: PLC0415 - plans need no tables

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


def _number(text: str, name: str) -> int:
    """How many values there are: a number, a list A,B,C, or a file with one value per line.

    >>> _number("30", "candidates"), _number("I10,E11,J45", "candidates")
    (30, 3)
    """
    path = Path(text)
    if _is_file(path):
        return len(_file_lines(path))
    if "," in text:
        return len(_items(text, f"--{name}"))
    if not is_number(text):
        raise InvalidValue(f"{name} must be a number, a list A,B,C or an existing file, got {text[:40]!r}")
    return _validate.count_in_text(1, _MOST_CANDIDATES, **{name: text})


# What follows the kind of a rule, and what is between two of them. Otherwise it is the ends of a range.
_PARTS = {"text": (("max_bytes", "alphabet"), ":"), "decimal": (("precision", "digits"), ":")}
_RANGE = (("lower", "upper"), "..")
_WHOLE = ("max_bytes", "precision", "digits")


def rule(text: str) -> "Domain":
    """The rule KIND, or one with parameters such as text:8, decimal:9:2 or integer:0..999."""
    from dpselect.tables.domains import every  # noqa: PLC0415 - most plans need no tables

    kind, colon, rest = text.partition(":")
    names, between = _PARTS.get(kind, _RANGE)
    parts = rest.split(between, 1) if colon else []
    given: dict[str, Any] = {name: part for name, part in zip(names, parts, strict=False) if part}
    whole = {
        name: _validate.count_in_text(0, _validate.MANY, **{name: part})
        for name, part in given.items()
        if name in _WHOLE
    }
    return every(kind, **{**given, **whole})


# Asking.


def asking(entry: Named) -> Any:
    """The command that asks a table."""
    own = [option for option in entry.asking if not option.is_shared]
    shared = [option for option in entry.asking if option.is_shared]
    plot = _PLOT if entry.record.has_plot else ()
    table = (*_DATABASE, *_VIEW, _PERSON, _GROUP_BY, _GROUPS, *shared, *LEDGER, _CHECK_FIRST, _ENGINE, JSON)
    made = command(_FILE, _COLUMN, *own, *plot, *PRICE, *table, text=entry.paragraphs(ASKING))
    return made(lambda given: _ask(entry, own, given))


def _ask(entry: Named, own: Sequence[Option], given: Given) -> None:
    kind, column = entry.record, given["column"]
    people = _people_drawn(given["plot"], given["people"]) if kind.has_plot else None
    reader = _OfColumn(given, _opened)
    stated = _stated(own, given, reader)
    table = reader.table
    price = {"epsilon": given["epsilon"], "rho": given["rho"]}
    grouped = _in_groups(
        table, given, lambda by, most: table.draw(entry.name, column, groups_of=by, max_groups=most, **price, **stated)
    )
    answer = grouped.ask(entry.name, column, **price, request_id=given["request_id"], **stated)
    _print_answer(answer, kind.beside(stated), given)
    if kind.has_plot and given["plot"] is not None:
        _draw(answer, stated, table, people, given)


def _opened(given: Given) -> "Table":
    from dpselect.tables import open_table  # noqa: PLC0415 - plans need no tables

    paid = {name: given[name] for name in ("ledger", "budget", "dataset")}
    check_ledger_options(paid["ledger"], budget=paid["budget"], dataset=paid["dataset"], request_id=given["request_id"])
    who = {name: given[name] for name in ("neighbours", "engine")}
    check = given["check"]
    if check is None:  # the person at a terminal has the file, and is its owner
        check = "stop" if sys.stderr.isatty() and given["engine"] != _SPARK else _OFF
    # Finding the groups is a second question, and a check reads the rows, too.
    keep = True if check != _OFF or any(text.startswith(_FOUND) for text in given["groups"] or []) else None
    return open_table(given["file"], **_read_how(given), **who, **paid, check=check, keep=keep)


def _read_how(given: Given) -> dict[str, Any]:
    # What `open_table` takes of a source and how it is read.
    plain = (
        "table",
        "query",
        "trusted_query",
        "person",
        "encoding",
        "delimiter",
        "decimal",
        "thousands",
        "dates",
    )
    derive: dict[str, str] = {}
    for text in given["derive"] or []:
        name, equals, expression = text.partition("=")
        if not (name.strip() and equals and expression.strip()):
            raise InvalidValue(f"--derive must be NAME=EXPRESSION, such as year=year(visited), got {text[:40]!r}")
        if name.strip() in derive:
            raise InvalidValue(f"--derive names {name.strip()[:40]!r} twice: give each column another name")
        derive[name.strip()] = expression
    conditions = given["where"] or []
    where = " AND ".join(f"({each})" for each in conditions) if len(conditions) > 1 else next(iter(conditions), None)
    return {"where": where, "derive": derive, **{name: given[name] for name in plain}}


_FOUND = "found:"


def _in_groups(table: "Table", given: Given, check: Callable[[str, int], Any]) -> "Table":
    # Groups are found only after a check of the question.
    named, texts = given["group_by"] or [], given["groups"] or []
    most = _validate.count_in_text(1, _validate.MANY, max_groups=given["max_groups"])
    if len(named) == 1 and len(texts) == 1 and texts[0].startswith(_FOUND):
        price = _price_of_groups(texts[0])
        check(named[0], most)
        return _found_groups(table, named[0], most, price, given["request_id"])
    return _listed_groups(
        table,
        given,
        "if there is no list, find the groups of a column with --groups found:0.5,1e-9",
        "--groups found: is for one column: find the values of each with dpselect values",
        most,
    )


def _listed_groups(table: "Table", given: Given, without: str, not_found: str, most: int = 1) -> "Table":
    named, texts = given["group_by"] or [], given["groups"] or []
    if len(named) != len(texts):
        raise InvalidValue(
            "--group-by and --groups belong together: name each column, and list its public groups, in the same order;"
            f" {without}"
        )
    for name in named:
        if "," in name and name not in table.columns:
            raise InvalidValue("--group-by names one column: repeat it, and --groups, for each further column")
    if any(text.startswith(_FOUND) for text in texts):
        raise InvalidValue(not_found)
    groups = {
        name: public_list(text, _column(table, name, "--group-by"), "--groups", given["file"])
        for name, text in zip(named, texts, strict=True)
    }
    if len(named) > 1:
        return table.group_by(named, groups=groups, max_groups=most)
    return table.group_by(named[0], groups=groups[named[0]], max_groups=most) if named else table


def _price_of_groups(text: str) -> dict[str, str]:
    epsilon, comma, delta = text.removeprefix(_FOUND).partition(",")
    if not (epsilon.strip() and comma and delta.strip()):
        raise InvalidValue("--groups found: needs the epsilon and the delta of finding them: found:0.5,1e-9")
    return {"epsilon": epsilon.strip(), "delta": delta.strip()}


def _found_groups(table: "Table", column: str, most: int, price: Mapping[str, str], request_id: str | None) -> "Table":
    request = None if request_id is None else f"{request_id} (groups)"
    grouped = table.group_by(column, **price, max_groups=most, request_id=request)
    found = grouped.found
    paid = "" if found is None else "; ".join(filter(None, (str(found.guarantee), found.entry)))
    # The answer itself goes to standard output.
    print_comment(f"{len(grouped.groups):,} groups found: {paid}")
    return grouped


def _print_answer(answer: "Answer", beside: Mapping[str, Any], given: Given) -> None:
    if given["json"]:
        typer.echo(json.dumps({**beside, **answer.to_dict()}))
        return
    if answer.value in (None, []):
        print_comment(_NOTHING)
    else:
        for line in _lines(answer.value, beside.get("levels")):
            print_line(line, "bold green")
    print_comment(answer.estimate)
    if answer.accuracy is not None:
        print_comment(str(answer.accuracy))
    print_terms(answer)


_NOTHING = "nothing was common enough"


def _lines(value: Any, labels: Sequence[str] | None) -> Iterator[str]:
    if not isinstance(value, dict):
        yield from _labelled(value, labels) if labels else _texts(value)
        return
    from dpselect.tables.candidates import group_text  # noqa: PLC0415 - imported with the table

    for group, own in value.items():
        name = group_text(group)
        yield from (
            (f"{name}  {line}" for line in _labelled(own, labels)) if labels else [f"{name}: {', '.join(_texts(own))}"]
        )


def _labelled(value: Any, labels: Sequence[str]) -> list[str]:
    return [f"{label}  {own}" for label, own in zip(labels, value, strict=True)]


def _texts(value: Any) -> list[str]:
    if value is None or value == []:
        return [_NOTHING]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _people_drawn(plot: str | None, people: str | None) -> int | None:
    # The file is checked before anything is charged.
    if plot is None:
        if people is not None:
            raise InvalidValue("--people is for the bars of a plot: name its file with --plot")
        return None
    from dpselect.cli.scores import check_plot  # noqa: PLC0415 - only plots need it

    check_plot(plot)
    return None if people is None else _validate.count_in_text(1, 10**18, people=people)


def _draw(answer: "Answer", stated: Mapping[str, Any], table: "Table", people: int | None, given: Given) -> None:
    from dpselect.tables import plot_quantiles  # noqa: PLC0415 - only plots need it
    from dpselect.tables.kinds import public_span  # noqa: PLC0415 - only plots need it

    lower, upper, step = (stated.get(name) for name in ("lower", "upper", "step"))
    # The number of candidates depends on the type of the column: two dates are days, or the seconds between them.
    span = public_span(lower, upper, step, table.columns[given["column"]], stated["range"])
    asked = {"candidates": max(span.size, 2), "max_rows": stated.get("max_rows"), "neighbours": given["neighbours"]}
    if isinstance(answer.value, dict):
        most = _validate.count_in_text(1, _validate.MANY, max_groups=given["max_groups"])
        asked |= {"groups": len(answer.value), "max_groups": most}
    path = given["plot"]
    with writing(f"--plot {path!r}"):
        plot_quantiles(answer, stated["levels"], path=path, people=people, **asked)
    print_comment(f"Plot: {path}")


# Checking.


def _checked_options() -> list[Option]:
    from dpselect.tables import Table  # noqa: PLC0415 - imported by the command that needs it

    known = inspect.signature(Table.check).parameters
    found = {
        option.key: replace(option, is_required=False)
        for entry in QUESTIONS.values()
        for option in entry.asking
        if option.name in known
    }
    return list(found.values())


_CHECK = """
Print what a question would read and leave out, and why. PRIVATE: for the data owner only.

Run it before the first question. Without --column, it looks at the whole table: what the values of each column look
like, how many are missing, how many cannot be read, and which option reads them. With --column, and the candidates or
the range of a question, it counts what that question would leave out or move, and looks for near misses. The numbers
are exact, so do not publish them, and do not choose candidates or a range by them. Nothing is charged, and nothing is
released.

Exit code 0: what is not missing can be read. Exit code 1: something cannot be read, or is suspicious.

Example: dpselect check visits.csv

Example: dpselect check visits.csv --column cost --lower 0 --upper 100000 --person patient

Example: dpselect check visits.csv --column diagnosis --candidates I10,E11,J45 --person patient
"""
_CHECKED_COLUMN = replace(_COLUMN, is_required=False, help="The column to check. Default: all columns.")


def checking() -> Any:
    """The command that says what a question would read."""
    own = _checked_options()
    table = (*own, *_DATABASE, *_VIEW, _PERSON, _GROUP_BY, _CHECKED_GROUPS, _SHOW_VALUES)
    text = [" ".join(each.split()) for each in _CHECK.strip().split("\n\n")]
    return command(_FILE, _CHECKED_COLUMN, *table, *_REFUSED, JSON, text=text)(lambda given: _check(own, given))


def _check(own: Sequence[Option], given: Given) -> None:
    from dpselect.tables import open_table  # noqa: PLC0415 - plans need no tables

    for option in _COSTLY:
        if given[option.key] is not None:
            raise InvalidValue(f"a check charges nothing, and is for the data owner only: leave {option.flags[0]} out")
    if given["engine"] != _ENGINE.default:  # before Spark is started
        raise InvalidValue("a check runs on this machine only: leave --engine out")
    reader = _OfColumn(given, lambda given: open_table(given["file"], **_read_how(given), keep=True))
    found: Check | Overview
    if given["column"] is None:
        for option in (*own, _GROUP_BY, _CHECKED_GROUPS):
            if given[option.key] not in (None, [], option.default):
                raise InvalidValue(f"{option.flags[0]} is about one column: name it with --column")
        found = reader.table.overview(show_values=given["show_values"])
    else:
        stated = _stated(own, given, reader)
        costs = "--groups found: costs epsilon, and a check is free: give a list of groups"
        grouped = _listed_groups(reader.table, given, "a check finds no groups", costs)
        found = grouped.check(given["column"], **stated, show_values=given["show_values"])
    if given["json"]:
        typer.echo(json.dumps(found.to_dict()))
    else:
        first, *lines = found.report().splitlines()
        print_line(first, "bold red")
        for line in lines:
            print_line(line, "yellow" if line.startswith("suspicious") else "")
    if not found.passed:
        raise typer.Exit(_FAILED)


# Planning.


def planning(entry: Named) -> Any:
    """The command that plans a question."""
    own = [option for option in entry.planning if not option.is_shared]
    shared = [option for option in entry.planning if option.is_shared]
    # What has no choice of a mechanism has no error that could be asked for.
    error = [_ERROR] if any(option.name == "mechanism" for option in own) else []
    price = [replace(each, help=entry.helps.get(each.name, each.help)) for each in (*_PLANNED_PRICE, *error)]
    scores = _SCORES if entry.record.has_scores else ()
    made = command(*own, *price, *_MANY, *scores, *shared, JSON, text=entry.paragraphs(PLANNING))
    return made(lambda given: _plan(entry, [*own, *shared], given))


def _plan(entry: Named, options: Sequence[Option], given: Given) -> None:
    from dpselect import analysis  # noqa: PLC0415 - SciPy takes longer to import than all the rest of the command line

    _check_ways(options, given)
    stated = _stated(options, given, _Counted())
    stated |= {name: given.get(name) for name in ("epsilon", "rho", "error", "budget")}
    file = given.get("scores")
    if file is not None:
        stated["scores"] = read_public_scores(file, given["column"], given["label"])
    elif entry.record.has_scores and (given["column"] or given["label"]):
        raise InvalidValue("--column and --label name columns of a file: give --scores too")
    count = _validate.count_in_text(1, _validate.MANY, questions=given["questions"])
    with busy("Planning ..."):
        planned = analysis.plan(question=entry.method, questions=count, **stated)
    _print_plan(planned, given["json"], file, len(stated.get("scores", ())))


def _check_ways(options: Sequence[Option], given: Given) -> None:
    ways = {option.flags[0]: option for option in options if option.way}
    named = [flag for flag, option in ways.items() if given[option.key] is not None]
    if len(ways) > 1 and len(named) != 1:
        told = f", not {' and '.join(named)}" if named else ""
        *others, last = (f"{flag} ({option.way})" for flag, option in ways.items())
        raise InvalidValue(f"give one of {', '.join(others)} and {last}{told}")


def _print_plan(planned: "Plan", as_json: bool, file: str | None, size: int) -> None:
    if as_json:
        content = planned.to_dict()
        if content.get("proxy") is not None:
            content["proxy"] = {"file": file, **content["proxy"]}
        typer.echo(json.dumps(content))
        return
    print_paragraph(f"{planned.title}:", planned.subject)
    heads, rows = planned.table
    print_figures(heads, rows)
    for title, text in planned.paragraphs.items():
        print_paragraph(f"{title}:", text)
    _print_rounds(planned)
    if file is not None:
        _print_on_scores(planned, file, size)
    print_paragraph("Privacy:", "a plan uses public numbers only and reveals nothing about your data.")


_FIXED = "This holds if the epsilons and the number of selections do not depend on the answers."


def _print_rounds(planned: Any) -> None:
    times, compared = planned.questions, getattr(planned, "equal_rounds", None)
    if compared is None:
        return
    delta = f"{compared.exponential.total.delta:g}"
    together = f"{times:,} selections together" if times > 1 else "One selection"
    print_paragraph(f"{together} as (epsilon, {delta})-DP:", "the exponential mechanism and permute-and-flip")
    rounds = {
        "exponential": compared.exponential,
        "permute-and-flip, same error": compared.equal_error,
        "permute-and-flip, same total": compared.equal_budget,
    }
    print_figures(
        ["\nmechanism", "epsilon\neach", "average\nat most", "total\nepsilon"],
        [
            [name, *(shown(float(cell)) for cell in (own.each.mechanism.epsilon, own.each.average, own.total.epsilon))]
            for name, own in rounds.items()
        ],
    )
    better, error, total = compared.better.each.mechanism, compared.equal_error, compared.equal_budget
    print_paragraph(
        f"For a budget of (epsilon, {delta}), {better.name} is better:",
        f"for the same error, permute-and-flip costs {shown(error.total.epsilon)} instead of"
        f" {shown(compared.exponential.total.epsilon)}, and for the same total, its choice is on average at most"
        f" {shown(total.each.average)} below the best instead of {shown(compared.exponential.each.average)}. {_FIXED}",
    )


def _print_on_scores(planned: Any, file: str, size: int) -> None:
    source = f"on the {size:,} scores of {shown_path(file)}"
    if planned.error is None:
        print_line(f"Exact errors {source} (other data give other numbers):", "bold")
        heads = ["\nmechanism", "\naverage", "95 of 100\nwithin"]
        rows = [[name, shown(found.expected_error), shown(found.error_95)] for name, found in planned.on_scores.items()]
    else:
        wanted = f"an average of {shown(float(planned.error), digits=6)}"
        print_line(f"The epsilon for {wanted} {source} (other data may need more):", "bold")
        heads = ["mechanism", "epsilon"]
        rows = [
            [name, "any" if found.epsilon is None else shown(found.epsilon)]
            for name, found in planned.on_scores.items()
        ]
    print_figures(heads, rows)
    print_paragraph("Scores:", f"{PRIVACY}: give --scores public or synthetic scores only.")


class _Plans(LateCommands):
    """The questions that can be planned."""

    def late(self) -> Mapping[str, Late]:
        return questions(PLANNING)


plan = typer.Typer(cls=_Plans, no_args_is_help=True)


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
