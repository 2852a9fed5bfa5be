"""What several commands share: options, and what their text states."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect import _validate
from dpselect.errors import InvalidValue
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.questions.methods import METHODS

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


def check_ledger_options(ledger: str | None, **others: str | None) -> None:
    """Refuse options of a ledger without one, and a ledger that neither exists nor can be created."""
    if ledger is None:
        for name, value in others.items():
            if value is not None:
                raise InvalidValue(f"--{name.replace('_', '-')} needs a ledger: name its file with --ledger")
    elif others.get("budget") is None and not os.path.lexists(ledger):
        raise InvalidValue(f"there is no ledger {ledger}: give --budget to create it")


def open_ledger(path: str, budget: str | None, dataset: str | None) -> "Ledger":
    """Open or create the ledger of this data set."""
    from dpselect.ledger import Ledger  # noqa: PLC0415 - SQLite is imported when it is used

    ledger = Ledger(path, budget, dataset=dataset)
    ledger.check_table(None, dataset)
    return ledger


def claimed(sensitivity: str | None, monotonic: bool, score_range: str | None) -> Claim:
    """How far neighbours are apart, in numbers of a size that floats can compute with."""
    claim = stated(sensitivity, monotonic, score_range)
    for name, text in (("sensitivity", sensitivity), ("score_range", score_range)):
        if text is not None:
            _validate.moderate(**{name: text})
    return claim


# A flag takes no value. With the metavar "", newer versions of typer do not show `<bool>`.
File = Annotated[str, typer.Argument(metavar="SCORES.csv", help="CSV file with the scores; - reads standard input.")]
Sensitivity = Annotated[
    str | None, typer.Option(metavar="D", help="How much one person can change any single score. Default: 1.")
]
Monotonic = Annotated[
    bool,
    typer.Option(
        "--monotonic", metavar="", help="One person moves all scores in the same direction, as in counts of people."
    ),
]
ScoreRange = Annotated[
    str | None,
    typer.Option(metavar="R", help="How much one person can change the difference of two scores; replaces both."),
]
Column = Annotated[str | None, typer.Option(metavar="C", help="Name of the score column; the file needs a header.")]
Label = Annotated[str | None, typer.Option(metavar="L", help="Name of the label column; needs --column.")]
Epsilon = Annotated[
    str,
    typer.Option(metavar="E", help="Privacy loss, exactly as written: 0.1, 1e-3 or 1/3. Smaller is more private."),
]
OptionalEpsilon = Annotated[
    str | None,
    typer.Option(metavar="E", help="Privacy loss, exactly as written: 0.1, 1e-3 or 1/3. Give this or --rho."),
]
Rho = Annotated[
    str | None, typer.Option(metavar="R", help="Privacy loss in zCDP, exactly as written. Give this or --epsilon.")
]
MaxValues = Annotated[
    str | None,
    typer.Option("--max-values", metavar="M", help="For how many candidates one person counts at most. Default: any."),
]
NeighboursName = Annotated[
    str, typer.Option("--neighbours", metavar="N", help="add-remove (hides who is in the table) or replace.")
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print a JSON object.")]
LedgerFile = Annotated[
    str | None, typer.Option("--ledger", metavar="L", help="Ledger file to charge before the answer is drawn.")
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="B", help="Budget of a new ledger, fixed forever: 1 (epsilon), zcdp:0.5, 1,1e-6 or 10,cap:0.1."
    ),
]
Dataset = Annotated[
    str | None, typer.Option(metavar="NAME", help="A public name of the data, which a new ledger is bound to.")
]
RequestId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Store the answer; the same id on the same data repeats it and costs nothing."),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="M", help=f"One of {', '.join(METHODS)}. auto: by K, --max-values, --ordered and the kind of budget."
    ),
]
Ordered = Annotated[bool, typer.Option("--ordered", metavar="", help="Print the best first. This needs more noise.")]
Folder = Annotated[str, typer.Option("--out", metavar="DIR", help="Folder to write to; created if missing.")]
Benchmark = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder with the DPBench files. Default: $DPSELECT_DPBENCH, or download."),
]
