"""`dpselect ledger`: show, verify and export a ledger, and print receipts.

Amounts spent are rounded up for display, and amounts left are rounded down. These commands never create a ledger.
"""

import json
import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from dpselect._messages import printable
from dpselect._numbers import exact_text, rounded_up_text
from dpselect._show import csv_text
from dpselect._validate import fraction_of_one
from dpselect.accounting.budget import Budget
from dpselect.accounting.charge import What, compact_json
from dpselect.accounting.totals import Total, total
from dpselect.cli.commands import (
    JSON,
    Given,
    busy,
    clean_errors,
    command,
    print_line,
    print_paragraph,
    print_table,
)
from dpselect.errors import InvalidValue
from dpselect.questions.options import Option

if TYPE_CHECKING:
    from dpselect.ledger import Entry, Ledger, Receipt

ledger = typer.Typer(no_args_is_help=True, help="Show, verify and export the ledger of a data set.")

_PATH = Option(("path",), "LEDGER", "The file of the ledger.", is_required=True)


@ledger.command("show")
@command(_PATH, Option(("--delta",), "D", "Also print (epsilon, D), valid if all was fixed in advance."), JSON)
def show(given: Given) -> None:
    """Show the budget, every entry, and what they add up to.

    The line "Guaranteed" always holds, even if questions and their costs depended on earlier answers: for pure epsilon
    it is what was spent, for zCDP and (epsilon, delta) it is the whole budget.
    The other totals hold only if all questions, their costs and their number were fixed in advance.

    Example: dpselect ledger show hospital.ledger

    Example: dpselect ledger show hospital.ledger --delta 1e-6
    """
    with busy("Reading the ledger ..."):
        failure = None if given["delta"] is None else fraction_of_one(delta=given["delta"])
        opened = _existing(given["path"])
        entries = opened.entries()
        everything = total(entries, failure)
        proof = opened.receipt(entries[-1] if entries else None)
    (_print_json if given["json"] else _print_text)(opened, entries, everything, proof)


@ledger.command("verify")
@command(_PATH, Option(("--receipt",), "FILE", "A receipt. All entries up to it must still be there."), JSON)
def verify(given: Given) -> None:
    """Check that no entry was changed, removed, inserted or reordered.

    Only a receipt can detect that entries were cut off at the end, or that the file is an old copy.

    Example: dpselect ledger verify hospital.ledger

    Example: dpselect ledger verify hospital.ledger --receipt receipt.json
    """
    path = given["path"]
    with busy("Verifying ..."):
        proof = None if given["receipt"] is None else _read_receipt(given["receipt"])
        verified = _existing(path).verify(proof)
    if given["json"]:
        typer.echo(json.dumps({"ledger": path, "entries": verified.id, "receipt": verified.to_dict()}))
        return
    print_line(f"{path}: {_entries(verified.id)}, none changed, removed, inserted or reordered", "bold green")
    if proof is None:
        print_paragraph("", "Only --receipt can detect entries cut off at the end, or an old copy of the file.")
    else:
        print_line(f"all entries up to entry {proof.id:,}, the one of the receipt, are there", "green")


@ledger.command("receipt")
@command(_PATH)
def receipt(given: Given) -> None:
    """Print a receipt of the whole ledger as it is now. Store it in a different place.

    Example: dpselect ledger receipt hospital.ledger > receipt.json
    """
    typer.echo(_existing(given["path"]).verify().to_json())


class ExportFormat(StrEnum):
    """The formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


@ledger.command()
def export(
    path: Annotated[str, typer.Argument(metavar=_PATH.metavar, help=_PATH.help)],
    *,
    format: Annotated[
        ExportFormat, typer.Option(metavar="F", help="jsonl, one JSON object per line, or csv.")
    ] = ExportFormat.JSONL,
) -> None:
    """Print all entries for other programs, with exact numbers. Stored answers are left out.

    Example: dpselect ledger export hospital.ledger --format csv > entries.csv
    """
    with clean_errors():
        entries = _existing(path).entries()
    if format is ExportFormat.CSV:
        _print_csv(entries)
        return
    for entry in entries:
        typer.echo(json.dumps(entry.to_dict()))


def _print_csv(entries: "Sequence[Entry]") -> None:
    # The table is safe to open in a spreadsheet. The question is JSON.
    from dpselect.ledger import Entry  # noqa: PLC0415 - SQLite

    rows = ({**entry.to_dict(), "what": compact_json(entry.what)}.values() for entry in entries)
    typer.echo(csv_text(Entry.COLUMNS, [list(row) for row in rows]), nl=False)


def _existing(path: str) -> "Ledger":
    from dpselect.ledger import Ledger  # noqa: PLC0415 - SQLite

    if not os.path.lexists(path):
        maker = f"dpselect mode ... --ledger {path} --budget 1"
        raise InvalidValue(f"there is no ledger {path}: create one with a question, for example {maker}")
    return Ledger(path)


def _read_receipt(file: str) -> "Receipt":
    from dpselect.ledger import Receipt  # noqa: PLC0415 - SQLite

    try:
        with open(file, encoding="utf-8") as opened:
            return Receipt.from_json(opened.read(10_000))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InvalidValue(f"receipt {file} cannot be read: {reason}") from None


# What show prints.

_LONGEST_QUESTION = 160
_FIRST = ("column", "person", "neighbours")
_IF_FIXED = "If these questions, their costs and their number were fixed in advance"


def _print_text(ledger: "Ledger", entries: "Sequence[Entry]", everything: Total, receipt: "Receipt") -> None:
    budget, spent, left = ledger.budget, ledger.spent, ledger.remaining
    print_paragraph(f"Ledger {ledger.path}:", f"budget {budget.words}, spent {spent.words}, left {left.words_down}")
    if ledger.dataset is not None:
        print_paragraph("Data set:", ledger.dataset)
    unit = ledger.unit
    print_paragraph("Protects:", "not stated yet" if unit is None else str(unit))
    if entries:
        print_table(_table(entries, budget))
    print_paragraph(
        "Guaranteed:",
        f"{ledger.guaranteed}, even if questions, their costs or their number depended on earlier answers",
    )
    for name, rho in budget.follows.items():
        drawn = "for releases of any kind" if name == "any" else f"if every release is by {name}"
        print_paragraph("", f"The cap implies {rounded_up_text(Fraction(rho))}-zCDP for the whole budget, {drawn}.")
    protected = _protected(entries)
    if len(protected) > 1:
        print_paragraph(
            "", f"The entries protect different units: {', '.join(protected)}. The sum holds for the weakest."
        )
    print_paragraph(f"{_IF_FIXED}:", everything.if_fixed)
    if everything.approximate is not None:
        print_paragraph("", f"The epsilon of (epsilon, delta) is computed by: {everything.approximate.method}.")
    print_line(f"verified, {_entries(receipt.id)}, head {receipt.head}", "dim")


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _print_json(ledger: "Ledger", entries: "Sequence[Entry]", everything: Total, receipt: "Receipt") -> None:
    approximate, unit = everything.approximate, ledger.unit
    content = {
        "ledger": str(ledger.path),
        "dataset": ledger.dataset,
        "unit": None if unit is None else unit.to_dict(),
        "budget": ledger.budget.to_dict(),
        "spent": ledger.spent.to_dict(),
        "remaining": ledger.remaining.to_dict(),
        "entries": [entry.to_dict() for entry in entries],
        "total": {
            "epsilon": None if everything.epsilon is None else exact_text(everything.epsilon),
            "zcdp": everything.zcdp,
            "delta": exact_text(everything.delta),
            "approximate": None if approximate is None else vars(approximate),
            "only_if_fixed_beforehand": ["zcdp", "approximate"],
        },
        "receipt": receipt.to_dict(),
    }
    typer.echo(json.dumps(content))


def _protected(entries: "Sequence[Entry]") -> list[str]:
    # Entries charged by hand need not state a unit.
    stated = [entry.what for entry in entries if isinstance(entry.what, Mapping) and "person" in entry.what]
    return list(dict.fromkeys(printable(_unit(what)) for what in stated))


def _unit(what: Mapping[str, Any]) -> str:
    protected = f"people ({_value(what['person'])})" if what.get("person") else "single rows"
    return f"{protected} by replacement" if what.get("neighbours") == "replace" else protected


def _table(entries: "Sequence[Entry]", budget: Budget) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("id", "time (UTC)", "question", "mechanism", "charged", "releases"):
        justify: Literal["left", "right"] = "right" if name in ("id", "releases") else "left"
        table.add_column(name, justify=justify, no_wrap=name != "question", overflow="fold")
    for entry in entries:
        time = printable(entry.time[:19].replace("T", " "))
        releases = f"{entry.charge.count:,}"
        charged = budget.of(budget.amount(entry.charge)).words
        table.add_row(str(entry.id), time, _question(entry.what), entry.mechanism, charged, releases)
    return table


def _question(what: What) -> Text:
    if isinstance(what, str):
        words = [what]
    else:
        words = [_value(what["question"])] if "question" in what else []
        words += [f"{name}={_value(what[name])}" for name in sorted(_shown(what), key=_importance)]
    text = printable(" ".join(words))
    return Text(text if len(text) <= _LONGEST_QUESTION else f"{text[: _LONGEST_QUESTION - 3]}...")


def _shown(what: Mapping[str, object]) -> list[str]:
    # Digests are left out; `export` prints them.
    return [name for name in what if name != "question" and not name.endswith("_sha256")]


def _importance(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
