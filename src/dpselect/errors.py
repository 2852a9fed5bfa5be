"""The errors of dpselect. A message names the parameter, the rule and the remedy; never a score.

The command line ends with the exit code of an error's kind: 3 for `BudgetExceeded`, 4 for a `LedgerError`, 5 for
`MissingExtra`, 6 for `EngineFailure`, and 2 for bad input, which includes a ledger with another budget or
privacy unit, and a request id that was used for something else.
"""


class DPSelectError(Exception):
    """The base of all errors of this package."""


class InvalidValue(DPSelectError, ValueError):
    """A parameter has the right type and a value outside its domain."""


class ScoresChanged(InvalidValue):
    """The scores changed while they were read. There is no answer."""

    def __init__(self, message: str = "") -> None:
        rule = "the scores changed while they were read"
        super().__init__(message or f"{rule}: give an array that nothing writes to meanwhile, for instance a copy")


class InvalidType(DPSelectError, TypeError):
    """A parameter has a type that cannot be taken at its exact value."""


class NotConverged(DPSelectError, ArithmeticError):
    """A numerical integral missed its promised accuracy. No approximate value is returned."""


class MissingExtra(DPSelectError, ImportError):
    """An optional part of dpselect is not installed; the message says how to install it."""


class EngineFailure(DPSelectError, RuntimeError):
    """The engine that counts failed. Its own message is withheld: it may quote a value of the table."""


class RunFailed(DPSelectError, RuntimeError):
    """A run of a private mechanism failed while its best result was sought. The charge stands.

    Its own message and traceback are withheld: they may quote the data.
    """


class BitsExhausted(DPSelectError, RuntimeError):
    """A finite source of bits is used up. Nothing is decided without the missing bits."""


class LedgerError(DPSelectError, RuntimeError):
    """The ledger cannot be used; nothing is released without one that works."""


class LedgerCorrupt(LedgerError):
    """The ledger is damaged, or an entry was changed, removed, inserted or reordered."""


class BudgetMismatch(LedgerError, ValueError):
    """The ledger was created with another budget, and a budget is fixed at creation."""


class UnitMismatch(LedgerError, ValueError):
    """The ledger keeps the budget of another privacy unit or of another data set; nothing was spent."""


class RequestConflict(LedgerError, ValueError):
    """A request id was used before for another question, or on other data."""


class RequestUnanswered(LedgerError):
    """A request id was charged before, and no answer is stored for it."""


class BudgetExceeded(DPSelectError, RuntimeError):
    """The charge is larger than what is left of the budget; nothing was spent."""


class ProgramTooLarge(InvalidValue):
    """A linear program has more variables than allowed; the message says how many."""


class WrongData(DPSelectError, ValueError):
    """A data file is not the one that was asked for: its SHA-256 sum differs."""


class DataNotAvailable(DPSelectError, RuntimeError):
    """Data could be neither found nor fetched; the message says how to get them."""
