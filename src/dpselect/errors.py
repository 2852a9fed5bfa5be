"""The errors of dpselect. A message names the parameter, the rule and the remedy; never a score.

The command line exits with a code for each kind of error: 3 for `BudgetExceeded`, 4 for `LedgerError`, 5 for
`MissingExtra`, 6 for `EngineFailure`, 7 for `CheckFailed`, and 2 for bad input, which includes a ledger with a
different budget or privacy unit, and a request id that was used for something else.
"""


class DPSelectError(Exception):
    """The base of all errors of this package."""


class InvalidValue(DPSelectError, ValueError):
    """A parameter has the right type, but its value is not allowed."""


class DoubtfulValue(UserWarning):
    """A warning: a parameter is allowed, but is probably a mistake. It depends on public parameters only.

    An epsilon above 10 and a delta above 0.001 are such parameters.
    """


class ScoresChanged(InvalidValue):
    """The scores changed while they were read. No candidate was selected."""

    def __init__(self, message: str = "") -> None:
        rule = "the scores changed while they were read"
        super().__init__(message or f"{rule}: give an array that nothing else writes to, for example a copy")


class InvalidType(DPSelectError, TypeError):
    """A parameter has a type that has no exact value."""


class NotConverged(DPSelectError, ArithmeticError):
    """A numerical integral missed its promised accuracy. No approximate value is returned."""


class MissingExtra(DPSelectError, ImportError):
    """An optional part of dpselect is not installed. The message says how to install it."""


class EngineFailure(DPSelectError, RuntimeError):
    """The engine failed while counting. Its own message is withheld because it may quote values of the table."""


class CheckFailed(DPSelectError, ValueError):
    """A check before the charge found that the answer would mean nothing. Nothing was charged, and nothing released.

    Whether it is raised depends on the rows, so only the data owner may see it.
    """


class RunFailed(DPSelectError, RuntimeError):
    """A run of a private mechanism failed during tuning. The charge stays.

    The message and traceback of the cause are withheld because they may quote the data.
    """


class LedgerError(DPSelectError, RuntimeError):
    """The ledger cannot be used. Nothing is released without a working ledger."""


class LedgerCorrupt(LedgerError):
    """The ledger is damaged, or an entry was changed, removed, inserted or reordered."""


class BudgetMismatch(LedgerError, ValueError):
    """The ledger was created with a different budget. A budget is fixed at creation."""


class UnitMismatch(LedgerError, ValueError):
    """The ledger has a different privacy unit or belongs to a different data set. Nothing was spent."""


class RequestConflict(LedgerError, ValueError):
    """A request id was used before for a different question or on different data."""


class RequestUnanswered(LedgerError):
    """A request id was charged before, but no answer is stored for it."""


class BudgetExceeded(DPSelectError, RuntimeError):
    """The charge exceeds what is left of the budget. Nothing was spent."""


class ProgramTooLarge(InvalidValue):
    """A linear program has more variables than allowed. The message says how many."""


class WrongData(DPSelectError, ValueError):
    """A data file is not the expected one: its SHA-256 checksum differs."""


class DataNotAvailable(DPSelectError, RuntimeError):
    """Data could be neither found nor downloaded. The message says how to get them."""
