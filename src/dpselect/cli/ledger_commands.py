"""`dpselect ledger`: what was spent on a data set, whether the record is whole, and what it adds up to."""

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect._validate import fraction_of_one
from dpselect.cli.console import busy, clean_errors
from dpselect.cli.options import Json
from dpselect.errors import InvalidValue, LedgerError

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, Receipt

ledger = typer.Typer(
    no_args_is_help=True, help="Show, verify and export the ledger of a data set: everything that was spent on it."
)

_Path = Annotated[str, typer.Argument(metavar="LEDGER", help="The file of the ledger.")]
_Delta = Annotated[
    str | None, typer.Option(metavar="D", help="Also (epsilon, D), as if all questions had been fixed beforehand.")
]
_Receipt = Annotated[
    str | None, typer.Option(metavar="FILE", help="A receipt: everything up to it must still be in the ledger.")
]


class Format(StrEnum):
    """The formats of an export."""

    JSONL = "jsonl"
    CSV = "csv"


@ledger.command()
def show(path: _Path, *, delta: _Delta = None, as_json: Json = False) -> None:
    """Show the budget, every entry, and what they add up to.

    The pure sum is a guarantee, also if you chose questions and epsilons after earlier answers.
    zCDP and (epsilon, D) are guarantees only if all of them, and their number, were fixed beforehand.

    Example: dpselect ledger show hospital.ledger

    Example: dpselect ledger show hospital.ledger --delta 1e-6
    """
    from dpselect.cli.ledger_report import print_json, print_text  # noqa: PLC0415 - SQLite
    from dpselect.ledger.accounting import total  # noqa: PLC0415

    with clean_errors(), busy("Reading the ledger ..."):
        failure = None if delta is None else fraction_of_one(delta=delta)
        opened = _existing(path)
        entries = opened.entries()
        everything = total(entries, failure)
        proof = opened.receipt(entries[-1] if entries else None)
    (print_json if as_json else print_text)(opened, entries, everything, proof)


@ledger.command()
def verify(path: _Path, *, receipt: _Receipt = None, as_json: Json = False) -> None:
    """Check that no entry was changed, removed, inserted or reordered.

    Entries that were cut off at the end, or an old copy of the file, are found with a receipt only.

    Example: dpselect ledger verify hospital.ledger

    Example: dpselect ledger verify hospital.ledger --receipt receipt.json
    """
    from dpselect.cli.ledger_report import print_verified  # noqa: PLC0415 - SQLite

    with clean_errors(), busy("Verifying ..."):
        proof = None if receipt is None else _read_receipt(receipt)
        verified = _existing(path).verify(proof)
    print_verified(path, verified, proof, as_json)


@ledger.command()
def receipt(path: _Path) -> None:
    """Print a receipt of the whole ledger as it is now: keep it away from the ledger.

    Example: dpselect ledger receipt hospital.ledger > receipt.json
    """
    with clean_errors():
        proof = _existing(path).verify()
    typer.echo(proof.to_json())


@ledger.command()
def export(
    path: _Path,
    *,
    format: Annotated[Format, typer.Option(metavar="F", help="jsonl, one JSON object a line, or csv.")] = Format.JSONL,
) -> None:
    """Print all entries for other programs, with exact numbers; stored answers are left out.

    Example: dpselect ledger export hospital.ledger --format csv > entries.csv
    """
    from dpselect.cli.ledger_report import print_csv, print_lines  # noqa: PLC0415 - SQLite

    with clean_errors():
        entries = _existing(path).entries()
    (print_csv if format is Format.CSV else print_lines)(entries)


def _existing(path: str) -> "Ledger":
    """The ledger of this file; these commands make none."""
    from dpselect.ledger import Ledger  # noqa: PLC0415 - SQLite

    if not os.path.lexists(path):
        maker = f"dpselect mode ... --ledger {path} --budget 1"
        raise LedgerError(f"there is no ledger {path}: a question makes it, for instance {maker}")
    return Ledger(path)


def _read_receipt(file: str) -> "Receipt":
    from dpselect.ledger import Receipt  # noqa: PLC0415 - SQLite

    try:
        with open(file, encoding="utf-8") as opened:
            return Receipt.from_json(opened.read(10_000))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise InvalidValue(f"receipt {file} cannot be read: {reason}") from None
