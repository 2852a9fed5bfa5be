"""The fields of a request from the page: exact numbers, what may be spent, and errors that name the field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpselect import _validate
from dpselect._numbers import UP, exact_text, shown
from dpselect.accounting import largest_belief
from dpselect.accounting.budget import Budget, approximate, pure, zcdp
from dpselect.errors import InvalidType, InvalidValue

Fields = Mapping[str, Any]

EPSILON, RHO, DELTA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER RHO}", "\N{GREEK SMALL LETTER DELTA}"
_FARTHEST = Fraction(10**50)  # far below numbers whose square overflows
_MOST_QUESTIONS = 10_000
_PRIORS = ("0.01", "0.1", "0.5")


@dataclass(frozen=True)
class Currency:
    """A kind of budget: how the page names it, how it is made from an amount and a delta, and the ends of amounts."""

    name: str
    title: str
    symbol: str
    word: str  # the symbol in messages
    budget: Callable[[Fraction, Fraction], Budget]
    written: Callable[[str, str], str]  # the budget as `--budget` takes it
    words: Callable[[str, str], str]
    low: Fraction
    high: Fraction
    has_delta: bool = True


CURRENCIES = {
    currency.name: currency
    for currency in (
        Currency(
            "pure",
            f"pure {EPSILON}",
            EPSILON,
            "epsilon",
            lambda amount, _: pure(amount),
            lambda amount, _: amount,
            lambda amount, _: f"{EPSILON} = {amount}",
            Fraction(1, 10**6),
            Fraction(100),
            has_delta=False,
        ),
        Currency(
            "zcdp",
            f"zCDP {RHO}",
            RHO,
            "rho",
            lambda amount, _: zcdp(amount),
            lambda amount, _: f"zcdp:{amount}",
            lambda amount, _: f"{RHO} = {amount}",
            Fraction(1, 10**12),
            Fraction(100),
        ),
        Currency(
            "approximate",
            f"({EPSILON}, {DELTA})",
            EPSILON,
            "epsilon",
            lambda amount, delta: approximate(amount, delta, share=0),
            lambda amount, delta: f"{amount},{delta},0",
            lambda amount, delta: f"{EPSILON} = {amount} and {DELTA} = {delta}",
            Fraction(1, 10**6),
            Fraction(100),
        ),
    )
}


@dataclass(frozen=True)
class Spending:
    """What may be spent, and the number of questions that share it."""

    currency: Currency
    amount: Fraction
    delta: Fraction
    questions: int

    @cached_property
    def budget(self) -> Budget:
        """Return the budget."""
        return self.currency.budget(self.amount, self.delta)

    @property
    def written(self) -> str:
        """Return the budget as `--budget` takes it."""
        return self.currency.written(exact_text(self.amount), exact_text(self.delta))

    @property
    def words(self) -> str:
        """Return the budget in words.

        >>> spending_of({"currency": "zcdp", "amount": "0.5", "questions": "3"}).words
        '\N{GREEK SMALL LETTER RHO} = 0.5 for 3 questions'
        """
        many = "" if self.questions == 1 else f" for {self.questions:,} questions"
        return f"{self.total}{many}"

    @property
    def total(self) -> str:
        """Return the budget in words, without the number of questions."""
        return self.currency.words(exact_text(self.amount), written(float(self.delta), UP, 3))

    def at(self, amount: Fraction) -> "Spending":
        """Return the same with another amount."""
        return replace(self, amount=amount)

    def beliefs(self) -> dict[str, Any]:
        """Return what the budget means for a person: beliefs before and after, in percent, rounded up."""
        beliefs = [(prior, largest_belief(prior, self.budget, self.delta)) for prior in _PRIORS]
        doubt = f"The belief may be larger with probability {DELTA} = {written(float(self.delta), UP, 3)} at most. "
        return {
            "title": f"What {self.total} means for a person",
            "rows": [[f"{shown(100 * float(prior))} %", f"{_percent(after)} %"] for prior, after in beliefs],
            "about": f"{doubt if self.currency.has_delta else ''}All answers that the budget pays for count together.",
        }


_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def written(number: float, rounding: str = UP, digits: int = 4) -> str:
    """A number for readers: as `shown`, with powers of ten as people write them.

    >>> written(1234.5), written(1e-6) == "10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT SIX}"
    ('1,235', True)
    """
    factor, _, power = shown(number, rounding, digits).partition("e")
    if not power:
        return factor
    times = "" if factor == "1" else f"{factor} \N{MULTIPLICATION SIGN} "
    return f"{times}10{power.lstrip('+').translate(_RAISED)}"


def _percent(belief: float) -> str:
    """Rounded up to three digits; near one hundred, to as many as distinguish it."""
    return shown(100 * belief, UP, 3 if belief < 0.99 else 5)


def spending_of(asked: Fields) -> Spending:
    """The spending that a request states.

    >>> spending_of({"amount": "0.1"}).budget
    pure('0.1')
    """
    name = text(asked, "currency", "pure")
    if name not in CURRENCIES:
        raise InvalidValue(f"currency must be one of {', '.join(CURRENCIES)}")
    currency = CURRENCIES[name]
    amount = positive({currency.word: asked.get("amount", "1")}, currency.word)
    if not currency.low <= amount <= currency.high:
        ends = f"{shown(float(currency.low))} and {shown(float(currency.high))}"
        raise InvalidValue(f"{currency.word} must be between {ends} here")
    delta = positive(asked, "delta", "1e-6")
    if delta > _validate.LARGE_DELTA:  # elsewhere this is a warning, which the page would not show
        raise InvalidValue(
            "delta must be at most 0.001: give much less than one over the number of people, such as 1e-6"
        )
    return Spending(currency, amount, delta, whole(asked, "questions", 1, _MOST_QUESTIONS, "1"))


def positive(asked: Fields, name: str, default: str | None = None) -> Fraction:
    """A positive number of moderate size, written as text."""
    written = text(asked, name, default)
    try:
        number = _validate.exact_positive(**{name: written})
    except InvalidValue:
        raise InvalidValue(f"{name} must be a number above 0, written like 0.5 or 2") from None
    if not 1 / _FARTHEST <= number <= _FARTHEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50: give it in another unit")
    return number


def number(asked: Fields, name: str, default: str | None = None) -> Fraction:
    """A number of either sign and of moderate size, written as text."""
    try:
        found = _validate.exact(**{name: text(asked, name, default)})
    except InvalidValue:
        raise InvalidValue(f"{name} must be a number, written like 12, -3 or 0.5") from None
    if abs(found) > _FARTHEST:
        raise InvalidValue(f"{name} must be between -1e50 and 1e50: give it in another unit")
    return found


def whole(asked: Fields, name: str, least: int, most: int, default: str | None = None) -> int:
    """A whole number, written as text."""
    refusal = InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}")
    try:
        found = _validate.exact_positive(**{name: text(asked, name, default)})
    except InvalidValue:
        raise refusal from None
    if found.denominator != 1 or not least <= found <= most:
        raise refusal
    return int(found)


def optional_whole(asked: Fields, name: str, least: int, most: int) -> int | None:
    """A whole number, or None if the field is empty."""
    return whole(asked, name, least, most) if text(asked, name, "") else None


def text(asked: Fields, name: str, default: str | None = None) -> str:
    """A short string."""
    value = asked.get(name, default)
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be a text")
    if len(value) > 1000:
        raise InvalidValue(f"{name} must be at most 1,000 characters")
    return value.strip()
