"""What several commands share: options, and functions that turn their text into numbers, objects and ledgers.

Numbers are read at their exact value. Errors are one line and name the option.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from functools import reduce, wraps
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dpselect import _validate
from dpselect._levels import read_levels
from dpselect._validate import withheld
from dpselect.errors import InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.questions.methods import METHODS

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


def imported(text: str, option: str) -> Any:
    """Import the object MODULE:NAME. Modules in the working directory are found first, as with `python -m`.

    >>> imported("math:inf", "--callable")
    inf
    """
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
    return withheld(lambda: reduce(getattr, name.split("."), found), missing, AttributeError)


def with_options(*records: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of some records. It gets a record of each kind first, and then its own options.

    Each field of a record is an option, as if the command declared it.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[len(records) :]
        shared = [option for record in records for option in inspect.signature(record).parameters.values()]
        options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (*shared[:2], *own, *shared[2:])]

        @wraps(command)
        def run(**given: Any) -> None:
            made = [record(**{field.name: given.pop(field.name) for field in fields(record)}) for record in records]
            command(*made, **given)

        vars(run)["__signature__"] = inspect.Signature(options)
        run.__annotations__ = {option.name: option.annotation for option in options}
        return run

    return decorated


def listed_levels(text: str) -> tuple[Fraction, ...]:
    """The levels of a list such as 0.1,0.5,0.9, or of a name.

    >>> listed_levels("0.1, 1/2") == (Fraction(1, 10), Fraction(1, 2))
    True
    """
    is_name = text.strip().isalpha()
    return read_levels(text.strip() if is_name else [level.strip() for level in text.split(",")])


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


# Results are computed in floats. This is far beyond any use, and far below numbers whose square overflows.
_LARGEST = Fraction(10**50)


def positive(**option: str) -> Fraction:
    """A positive number of a size that floats can compute with."""
    [(name, text)] = option.items()
    number = _validate.exact_positive(**option)
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50, got {text[:40]!r}: give it in another unit")
    return number


def claimed(sensitivity: str | None, monotonic: bool, score_range: str | None) -> Claim:
    """How far neighbours are apart, in numbers of a size that floats can compute with."""
    claim = stated(sensitivity, monotonic, score_range)
    for name, text in (("sensitivity", sensitivity), ("score_range", score_range)):
        if text is not None:
            positive(**{name: text})
    return claim


def mechanism_class(name: str) -> type[MechanismBase]:
    """The mechanism that --mechanism names."""
    if name not in MECHANISMS:
        raise InvalidValue(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {name[:40]!r}")
    return MECHANISMS[name]


def whole(*, least: int, most: int, **option: str) -> int:
    """A whole number from least to most; 1e6 is accepted."""
    [(name, text)] = option.items()
    is_zero = least == 0 and text.strip() == "0"
    number = Fraction(0) if is_zero else _validate.exact_positive(**option)
    if number.denominator != 1 or not least <= number <= most:
        raise InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}, got {text[:40]!r}")
    return int(number)


_MOST_CHOSEN = 10**9


def sizes(k: str) -> int | tuple[int, int]:
    """How many candidates to return: a number K, or an interval LO:HI.

    >>> sizes("3"), sizes("5:20")
    (3, (5, 20))
    """
    parts = [whole(least=1, most=_MOST_CHOSEN, k=part.strip()) for part in k.split(":")]
    if len(parts) > 2:
        raise InvalidValue(f"k must be a number or an interval LO:HI, got {k[:40]!r}: give for example 3 or 5:20")
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])


def limit(max_values: str | None) -> int | None:
    """For how many candidates one person counts; None if that is not limited."""
    return None if max_values is None else whole(least=1, most=_MOST_CHOSEN, max_values=max_values)


def epsilons(text: str, points: str | None) -> list[Fraction]:
    """The epsilons of a range A:B, of a list A,B,C or of a single number.

    >>> [float(epsilon) for epsilon in epsilons("0.01:1", "3")]
    [0.01, 0.1, 1.0]
    """
    if ":" in text:
        return _range(text, whole(least=2, most=10_000, points="25" if points is None else points))
    if points is not None:
        raise InvalidValue("--points needs a range of epsilons: give --epsilon as A:B, for example 0.01:1")
    return [positive(epsilon=part.strip()) for part in text.split(",")]


def _range(text: str, points: int) -> list[Fraction]:
    ends = [positive(epsilon=part.strip()) for part in text.split(":")]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise InvalidValue("epsilon must be a range A:B from a smaller to a larger number: give for example 0.01:1")
    between = np.geomspace(float(ends[0]), float(ends[1]), points)[1:-1]
    return [ends[0], *map(Fraction, between.tolist()), ends[1]]


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
MechanismName = Annotated[
    str,
    typer.Option(metavar="M", help="permute-and-flip or exponential. auto: by the kind of budget."),
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
