"""The errors of dpselect. A message names the parameter, the rule and the remedy; never a score."""


class DPSelectError(Exception):
    """The base of all errors of this package."""


class InvalidValue(DPSelectError, ValueError):
    """A parameter has the right type and a value outside its domain."""


class InvalidType(DPSelectError, TypeError):
    """A parameter has a type that cannot be taken at its exact value."""


class NotConverged(DPSelectError, ArithmeticError):
    """A numerical integral is not as accurate as promised; no number is returned instead."""


class MissingExtra(DPSelectError, ImportError):
    """An optional part of dpselect is not installed; the message says how to install it."""


class BitsExhausted(DPSelectError, RuntimeError):
    """A finite source of bits ran dry. It never decides instead of the missing bits."""


class ProgramTooLarge(InvalidValue):
    """A linear program has more variables than allowed; the message says how many."""


class WrongData(DPSelectError, ValueError):
    """A data file is not the one that was asked for: its SHA-256 sum differs."""


class DataNotAvailable(DPSelectError, RuntimeError):
    """Data could be neither found nor fetched; the message says how to get them."""
