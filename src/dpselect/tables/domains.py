"""Rules instead of lists of candidates: "every int64", "every text of at most 8 bytes".

A rule is public, and does not come from the data. Values that nobody has are candidates with score zero, all in one
run, so a rule may have any number of values: only their exact number and an order of them are needed.
"""

import datetime
import hashlib
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpselect import _validate
from dpselect._numbers import NotExact, NotFinite, rational
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.candidates import Values
from dpselect.tables.duckdb.values import Form, form_of
from dpselect.tables.kinds import (
    EPOCH,
    EPOCH_DAY,
    EPOCH_ZONED,
    MICROSECOND,
    Column,
    Kind,
    kind_of_value,
    value_from_text,
)
from dpselect.tables.spans import LARGEST_RANK, float_of_rank, rank_of_float
from dpselect.tables.texts import TextOrder, runs_of

INTEGERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_INT64 = INTEGERS["int64"]
_SHOWN_CHARACTERS = 64
_COUNTED_LIKE_A_LIST, _MOST_LISTED = 2**12, 10**6
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class Domain(ABC):
    """All values that a public rule describes, in a fixed order. Made by `every`."""

    kind: Kind

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the exact number of values."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Return the rule in words that identify it, for ledgers and answers."""

    @property
    def sha256(self) -> str:
        """Return a digest that identifies the rule in a ledger."""
        return hashlib.sha256(self.words.encode()).hexdigest()

    @property
    def listed(self) -> list[Any]:
        """Return all values in order."""
        if self.size > _MOST_LISTED:
            raise InvalidValue(f"k must be at most {_MOST_LISTED:,}: {self.words} has more values than that")
        return list(map(self.value, range(self.size)))

    @property
    def as_list(self) -> Values | None:
        """Return the values as a list, if they are so few that they are counted like one; otherwise None."""
        return Values(self.kind, tuple(self.listed)) if self.size <= _COUNTED_LIKE_A_LIST else None

    def entry(self) -> dict[str, Any]:
        """Return what a ledger records of the candidates."""
        return {"candidates": self.words}

    def value(self, index: int) -> Any:
        """Return the value at a place of the order, from 0 to size - 1."""
        if not 0 <= index < self.size:
            raise InvalidValue("index must be from 0 to the size of the domain less one")
        return self._value(index)

    @abstractmethod
    def _value(self, index: int) -> Any: ...

    @abstractmethod
    def index(self, value: Any) -> int | None:
        """Return the place of a value; None if the rule does not describe it."""

    def form(self, column: Column) -> Form:
        """Return the form in which a column is counted. All values of the domain are different in it, or NULL."""
        return form_of(column, self.kind)

    @abstractmethod
    def condition(self, expression: str) -> str:
        """Return DuckDB's SQL that is true exactly for values of the domain, given a value in its form."""

    def check(self, column: Column) -> None:
        """Refuse a column whose values cannot be compared with those of the domain."""
        if self.kind not in column.comparable:
            raise InvalidType(
                f"candidates are {self.words}, but the column {column.name!r} holds {column.kind.value}:"
                f" {_fitting(column)}"
            )

    @abstractmethod
    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        """The arguments of `every`."""

    def __repr__(self) -> str:
        kind, options = self._arguments()
        return f"every({', '.join([repr(kind), *(f'{name}={value!r}' for name, value in options.items())])})"


def _fitting(column: Column) -> str:
    """What fits a column."""
    rules = {
        Kind.BOOLEAN: "every('boolean')",
        Kind.INTEGER: "every('int64')",
        Kind.DECIMAL: f"every('decimal', precision={column.precision or 18}, digits={column.digits})",
        Kind.FLOAT: "every('float64')",
        Kind.TEXT: "every('text', max_bytes=8)",
        Kind.DATE: "every('date')",
        Kind.TIMESTAMP: "every('timestamp')",
        Kind.ZONED: "every('timestamptz')",
    }
    return f"use {rules[column.kind]}" if column.kind in rules else "no rule fits such a column; use another one"


@dataclass(frozen=True, repr=False)
class _Range(Domain):
    """Values that are whole numbers of units, from the first to the last."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def _value(self, index: int) -> Any:
        return self._of_units(self.first + index)

    def index(self, value: Any) -> int | None:
        units = self.units(value)
        return units - self.first if units is not None and self.first <= units <= self.last else None

    @abstractmethod
    def _of_units(self, units: int) -> Any: ...

    @abstractmethod
    def units(self, value: Any) -> int | None:
        """Return a value in units, within the ends or not; None for what is not a value of this kind."""

    @property
    def _ends(self) -> tuple[Any, Any]:
        return self._of_units(self.first), self._of_units(self.last)

    def _between(self, expression: str, type_: str) -> str:
        written = (f"{end:f}" if isinstance(end, Decimal) else str(end) for end in self._ends)  # 1E-7 is no literal
        lower, upper = (f"CAST('{end}' AS {type_})" for end in written)
        return f"({expression} BETWEEN {lower} AND {upper})"


@dataclass(frozen=True, repr=False)
class Integers(_Range):
    """All whole numbers between two ends. Numbers of other types are counted if they are whole."""

    kind: Kind = field(default=Kind.INTEGER, init=False)

    def _of_units(self, units: int) -> int:
        return units

    def units(self, value: Any) -> int | None:
        return whole(value, (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT))

    @property
    def _type(self) -> str:
        return "BIGINT" if _INT64[0] <= self.first and self.last <= _INT64[1] else "HUGEINT"

    @property
    def _name(self) -> str | None:
        return next((name for name, ends in INTEGERS.items() if ends == (self.first, self.last)), None)

    @property
    def words(self) -> str:
        return f"every {self._name or f'integer from {self.first} to {self.last}'}"

    def form(self, column: Column) -> Form:
        return Form(self.kind, self._type, f"TRY_CAST({form_of(column, self.kind).value} AS {self._type})")

    def condition(self, expression: str) -> str:
        return self._between(expression, self._type)

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        return (self._name, {}) if self._name else ("integer", {"lower": self.first, "upper": self.last})


@dataclass(frozen=True, repr=False)
class Decimals(_Range):
    """All decimals of so many digits between two ends, in units of 10**-digits."""

    precision: int
    digits: int
    kind: Kind = field(default=Kind.DECIMAL, init=False)

    def _of_units(self, units: int) -> Decimal:
        return Decimal(f"{units}e-{self.digits}")  # from text, so no decimal context rounds it

    def units(self, value: Any) -> int | None:
        return whole(value, (Kind.INTEGER, Kind.DECIMAL), 10**self.digits)

    @property
    def _is_full(self) -> bool:
        return (self.first, self.last) == (1 - 10**self.precision, 10**self.precision - 1)

    @property
    def words(self) -> str:
        ends = "" if self._is_full else ", from {:f} to {:f}".format(*self._ends)
        return f"every decimal of at most {_counted(self.precision, 'digit')}, {self.digits} after the point{ends}"

    def condition(self, expression: str) -> str:
        # Comparing decimals of two types may overflow, and fail on a row. Their texts have all digits of the type.
        pattern = rf"-?0*[0-9]{{0,{self.precision - self.digits}}}(?:\.[0-9]{{0,{self.digits}}}0*)?"
        fits = f"regexp_full_match(CAST({expression} AS VARCHAR), '{pattern}')"
        type_ = f"DECIMAL({self.precision},{self.digits})"
        return (
            f"({fits}{'' if self._is_full else ' AND ' + self._between(f'TRY_CAST({expression} AS {type_})', type_)})"
        )

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        ends = {} if self._is_full else dict(zip(("lower", "upper"), self._ends, strict=True))
        return "decimal", {"precision": self.precision, "digits": self.digits, **ends}


@dataclass(frozen=True, repr=False)
class Floats(_Range):
    """All finite floats of 64 bits, in their order. Both zeros are one value."""

    first: int = -LARGEST_RANK[64]
    last: int = LARGEST_RANK[64]
    kind: Kind = field(default=Kind.FLOAT, init=False)

    def _of_units(self, units: int) -> float:
        return float_of_rank(units, 64)

    def units(self, value: Any) -> int | None:
        number = _exact(value, (Kind.INTEGER, Kind.FLOAT))
        if number is None or abs(number) > float_of_rank(self.last, 64):
            return None
        return rank_of_float(float(number), 64) if float(number) == number else None

    @property
    def words(self) -> str:
        return "every finite float64"

    def form(self, column: Column) -> Form:
        # Not in the type of the column: a float of 64 bits would be rounded to one of 32 bits that somebody has.
        return Form(self.kind, "DOUBLE", f"CAST({form_of(column, self.kind).value} AS DOUBLE)")

    def condition(self, expression: str) -> str:
        return f"isfinite({expression})"

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        return "float64", {}


@dataclass(frozen=True, repr=False)
class Times(_Range):
    """All days, or all microseconds, between two ends. Infinite dates are beyond every end."""

    kind: Kind

    def _of_units(self, units: int) -> datetime.date:
        origin, unit = _CLOCKS[self.kind]
        moment: datetime.date = origin + units * unit
        return moment

    def units(self, value: Any) -> int | None:
        return _since_1970(value, self.kind) if kind_of_value(value) is self.kind else None

    @property
    def words(self) -> str:
        lower, upper = self._ends
        return f"every {NAMES_OF_TIMES[self.kind]} from {lower} to {upper}"

    def condition(self, expression: str) -> str:
        # Finite, too: DuckDB may conclude from statistics of nanoseconds that all moments, even -infinity, are late.
        within = self._between(expression, "TIMESTAMPTZ" if self.kind is Kind.ZONED else self.kind.name)
        return f"(isfinite({expression}) AND {within})"

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        is_full = (self.first, self.last) == all_times(self.kind)
        ends = {} if is_full else dict(zip(("lower", "upper"), self._ends, strict=True))
        return NAMES_OF_TIMES[self.kind], ends


_CLOCKS: dict[Kind, tuple[Any, datetime.timedelta]] = {
    Kind.DATE: (EPOCH_DAY, datetime.timedelta(days=1)),
    Kind.TIMESTAMP: (EPOCH, MICROSECOND),
    Kind.ZONED: (EPOCH_ZONED, MICROSECOND),
}
NAMES_OF_TIMES = {Kind.DATE: "date", Kind.TIMESTAMP: "timestamp", Kind.ZONED: "timestamptz"}


def _since_1970(moment: Any, kind: Kind) -> int:
    origin, unit = _CLOCKS[kind]
    return int((moment - origin) // unit)


def all_times(kind: Kind) -> tuple[int, int]:
    """The first and the last moment of the years 1 to 9999, which Python can hold."""
    moments: list[Any] = [datetime.datetime.min, datetime.datetime.max]
    if kind is Kind.DATE:
        moments = [moment.date() for moment in moments]
    if kind is Kind.ZONED:
        moments = [moment.replace(tzinfo=datetime.UTC) for moment in moments]
    return _since_1970(moments[0], kind), _since_1970(moments[1], kind)


@dataclass(frozen=True, repr=False)
class Booleans(Domain):
    """False and true."""

    kind: Kind = field(default=Kind.BOOLEAN, init=False)

    @property
    def size(self) -> int:
        return 2

    @property
    def words(self) -> str:
        return "every boolean"

    def _value(self, index: int) -> bool:
        return bool(index)

    def index(self, value: Any) -> int | None:
        return int(value) if kind_of_value(value) is Kind.BOOLEAN else None

    def condition(self, expression: str) -> str:
        return f"({expression} IS NOT NULL)"

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        return "boolean", {}


@dataclass(frozen=True, repr=False)
class Uuids(Domain):
    """All UUIDs, as text in small letters. A column of text may write them in other ways that DuckDB reads."""

    kind: Kind = field(default=Kind.TEXT, init=False)

    @property
    def size(self) -> int:
        return 2**128

    @property
    def words(self) -> str:
        return "every uuid"

    def _value(self, index: int) -> str:
        return str(uuid.UUID(int=index))

    def index(self, value: Any) -> int | None:
        is_one = isinstance(value, str) and re.fullmatch(_UUID, value)
        return uuid.UUID(value).int if is_one else None

    def form(self, column: Column) -> Form:
        own = form_of(column, self.kind)
        return own if column.type == "UUID" else replace(own, value=f"CAST(TRY_CAST({own.value} AS UUID) AS VARCHAR)")

    def condition(self, expression: str) -> str:
        return f"regexp_full_match({expression}, '{_UUID}')"

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        return "uuid", {}


@dataclass(frozen=True, repr=False)
class Texts(Domain):
    """All texts of at most so many bytes in UTF-8, of all characters or of those of an alphabet, in ascending order.

    They are ordered by their number of bytes, then by characters (`tables.texts`).
    """

    max_bytes: int
    alphabet: str | None = None
    kind: Kind = field(default=Kind.TEXT, init=False)

    @cached_property
    def _order(self) -> TextOrder:
        return TextOrder(self.max_bytes, runs_of(self.alphabet))

    @property
    def size(self) -> int:
        return self._order.size

    @property
    def words(self) -> str:
        return f"every text of at most {_counted(self.max_bytes, 'byte')}{self._characters}"

    @property
    def _characters(self) -> str:
        if self.alphabet is None:
            return ""
        if len(self.alphabet) <= _SHOWN_CHARACTERS:
            return f" of the characters {self.alphabet!a}"
        digest = hashlib.sha256(self.alphabet.encode()).hexdigest()
        return f" of {len(self.alphabet)} characters with the SHA-256 {digest}"

    def _value(self, index: int) -> str:
        return self._order.text(index)

    def index(self, value: Any) -> int | None:
        return self._order.place(value) if isinstance(value, str) else None

    def condition(self, expression: str) -> str:
        fits = f"strlen({expression}) <= {self.max_bytes}"
        if self.alphabet is None:
            return f"({fits})"
        codes = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in self._order.runs)
        return f"({fits} AND regexp_full_match({expression}, '[{codes}]*'))"

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        return "text", {"max_bytes": self.max_bytes, **({} if self.alphabet is None else {"alphabet": self.alphabet})}


def _exact(value: Any, kinds: tuple[Kind, ...]) -> Fraction | None:
    """The exact value of a finite number of one of these kinds; None for anything else."""
    if kind_of_value(value) not in kinds:
        return None
    try:
        return rational(value)
    except (NotExact, NotFinite):
        return None


def whole(value: Any, kinds: tuple[Kind, ...], factor: int = 1) -> int | None:
    """A number times the factor, if that is a whole number."""
    number = _exact(value, kinds)
    scaled = None if number is None else number * factor
    return int(scaled) if scaled is not None and scaled.denominator == 1 else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


__all__ = ["Domain", "every"]

_HUGEINT = (-(2**127), 2**127 - 1)
_MOST_BYTES = 1_000  # the number of such texts has 2,161 digits, and runs may have 4,000
_MOST_DIGITS = 38  # of DuckDB's decimals


def every(  # noqa: PLR0913 - one option for each
    kind: str,
    *,
    max_bytes: int | None = None,
    alphabet: str | None = None,
    lower: Any = None,
    upper: Any = None,
    precision: int | None = None,
    digits: int | None = None,
) -> Domain:
    """A public rule for candidates, instead of a list: every value of a type, or all texts of limited length.

    The rule must not come from the data, as a list must not. A value that nobody has can win, as in a list. The price
    of a large domain is small: a mode needs about ln(size) / epsilon people more than the values that are not common.
    With epsilon 1 that is 44 people for all 2**64 integers of 64 bits, and 40 for all texts of at most 8 bytes.

    Args:
        kind: "int8" to "int64", "uint8" to "uint64", or "integer" with `lower` and `upper`; "decimal" with `precision`
            and `digits`; "float64", all finite ones; "date", "timestamp" or "timestamptz" (with a time zone, in UTC),
            from year 1 to 9999 or from `lower` to `upper`; "text" with `max_bytes`; "uuid"; "boolean".
        max_bytes: the largest number of bytes of a text in UTF-8, from 1 to 1,000.
        alphabet: the characters of which texts consist, such as "0123456789"; all of Unicode if it is left out.
        lower: the smallest value, for "integer", "decimal", "date" and timestamps.
        upper: the largest value, for the same.
        precision: the largest number of digits of a decimal, from 1 to 38.
        digits: how many of them are after the point.

    Returns:
        The rule. It has a `size`, a `value(index)` and an `index(value)`.

    Raises:
        InvalidType: an argument has a type that does not fit.
        InvalidValue: the kind is unknown, an argument is missing, does not apply, or is out of range.

    >>> every("int64").size == 2**64
    True
    >>> every("text", max_bytes=8, alphabet="ABC")
    every('text', max_bytes=8, alphabet='ABC')
    >>> every("decimal", precision=4, digits=2).value(0)
    Decimal('-99.99')
    """
    options = {
        "max_bytes": max_bytes,
        "alphabet": alphabet,
        "lower": lower,
        "upper": upper,
        "precision": precision,
        "digits": digits,
    }
    if not isinstance(kind, str):
        raise InvalidType(f"kind must be a text such as 'int64', got {type(kind).__name__}")
    if kind in ("float32", "float16"):
        raise InvalidValue(f"there is no every({kind!r}): use every('float64'), which has all of its values")
    if kind not in _RULES:
        apart = "; give its size apart, such as every('text', max_bytes=8)" if ":" in kind else ""
        raise InvalidValue(f"kind must be one of {', '.join(_RULES)}, got {kind[:40]!r}{apart}")
    rule = _RULES[kind]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in rule.needed + rule.optional:
            raise InvalidValue(f"{name} does not apply to every({kind!r}): leave it out{_instead(kind, name)}")
    for name in rule.needed:
        if name not in given:
            raise InvalidValue(f"{name} must be given with every({kind!r}): write for example {_EXAMPLES[kind]}")
    return rule.make(kind, given)


# The kinds that need more than their name, in Python and on the command line.
_EXAMPLES = {
    "integer": "every('integer', lower=0, upper=999), or --every integer:0..999",
    "decimal": "every('decimal', precision=9, digits=2), or --every decimal:9:2",
    "text": "every('text', max_bytes=8), or --every text:8",
}


def _instead(kind: str, name: str) -> str:
    """The rule for a range, after one that has none."""
    return f", or write {_EXAMPLES['integer']}" if kind in INTEGERS and name in ("lower", "upper") else ""


# How `every` makes a domain.


def _named_integers(kind: str, _: Mapping[str, Any]) -> Domain:
    return Integers(*INTEGERS[kind])


def _integers(_: str, given: Mapping[str, Any]) -> Domain:
    return Integers(*_ordered(given, Kind.INTEGER, lambda end: whole(end, (Kind.INTEGER,)), _HUGEINT))


def _decimals(_: str, given: Mapping[str, Any]) -> Domain:
    precision, digits = (_validate.count(**{name: given[name]}) for name in ("precision", "digits"))
    if not 1 <= precision <= _MOST_DIGITS:
        raise InvalidValue(f"precision must be from 1 to {_MOST_DIGITS}, got {precision}")
    if digits > precision:
        raise InvalidValue(f"digits must be at most precision, got {digits} and {precision}")
    most = 10**precision - 1
    full = Decimals(-most, most, precision, digits)
    return Decimals(*_ordered(given, Kind.DECIMAL, full.units, (-most, most)), precision, digits)


def _times(kind: str, given: Mapping[str, Any]) -> Domain:
    of_kind = next(known for known, name in NAMES_OF_TIMES.items() if name == kind)
    full = Times(*all_times(of_kind), of_kind)
    return Times(*_ordered(given, of_kind, full.units, (full.first, full.last)), of_kind)


def _ordered(
    given: Mapping[str, Any], kind: Kind, units: Callable[[Any], int | None], ends: tuple[int, int]
) -> tuple[int, int]:
    """Both ends in units: those that are given, or those of the type."""
    found = [_end(name, given, kind, units, end) for name, end in zip(("lower", "upper"), ends, strict=True)]
    if found[0] > found[1]:
        raise InvalidValue(f"lower must be <= upper, got {given.get('lower')} and {given.get('upper')}: swap them")
    if found[0] < ends[0] or found[1] > ends[1]:
        raise InvalidValue("lower and upper must be within what the kind can hold: give ends that are closer together")
    return found[0], found[1]


def _end(name: str, given: Mapping[str, Any], kind: Kind, units: Callable[[Any], int | None], missing: int) -> int:
    if name not in given:
        return missing
    value = given[name]
    if isinstance(value, str):
        value = value_from_text(value, kind, name)
    allowed = {kind, Kind.INTEGER} if kind is Kind.DECIMAL else {kind}
    if kind_of_value(value) not in allowed:
        raise InvalidType(f"{name} must be one of {kind.value}, got {type(value).__name__}")
    found = units(value)
    if found is None:
        raise InvalidValue(f"{name} must be a finite number with no more digits after the point than `digits` says")
    return found


def _texts(_: str, given: Mapping[str, Any]) -> Domain:
    max_bytes = _validate.count(max_bytes=given["max_bytes"])
    if not 1 <= max_bytes <= _MOST_BYTES:
        raise InvalidValue(f"max_bytes must be from 1 to {_MOST_BYTES:,}, got {max_bytes}")
    alphabet = given.get("alphabet")
    if alphabet is None:
        return Texts(max_bytes)
    if not isinstance(alphabet, str):
        raise InvalidType(f"alphabet must be a text of all characters, such as 'ABC', got {type(alphabet).__name__}")
    if not alphabet:
        raise InvalidValue("alphabet must have at least one character")
    if len(set(alphabet)) != len(alphabet):
        raise InvalidValue("alphabet must have different characters: drop the duplicates")
    if not _validate.is_unicode(alphabet):
        raise InvalidValue("alphabet must be text that can be encoded as UTF-8: drop the lone surrogates")
    return Texts(max_bytes, "".join(sorted(alphabet)))


@dataclass(frozen=True)
class _Rule:
    make: Callable[[str, Mapping[str, Any]], Domain]
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_RULES = {
    **dict.fromkeys(INTEGERS, _Rule(_named_integers)),
    "integer": _Rule(_integers, needed=("lower", "upper")),
    "decimal": _Rule(_decimals, needed=("precision", "digits"), optional=("lower", "upper")),
    "float64": _Rule(lambda *_: Floats()),
    **dict.fromkeys(NAMES_OF_TIMES.values(), _Rule(_times, optional=("lower", "upper"))),
    "text": _Rule(_texts, needed=("max_bytes",), optional=("alphabet",)),
    "uuid": _Rule(lambda *_: Uuids()),
    "boolean": _Rule(lambda *_: Booleans()),
}


# What Python's types hold. The values beyond, and infinite ones, are left out.
_HELD = {
    Kind.FLOAT: "isfinite({x})",
    Kind.DATE: "{x} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    **dict.fromkeys(
        (Kind.TIMESTAMP, Kind.ZONED),
        # Finite, too: DuckDB may conclude from statistics of nanoseconds that all moments, even -infinity, are late.
        "isfinite({x}) AND {x} >= CAST('0001-01-01 00:00:00' AS {type})"
        " AND {x} < CAST('10000-01-01 00:00:00' AS {type})",
    ),
}


def counted_form(column: Column, domain: Domain | None) -> Form:
    """The form of the values that are counted: those of a rule, or all of the column's own type."""
    return form_of(column, column.kind) if domain is None else domain.form(column)


def counted_item(column: Column, domain: Domain | None) -> str:
    """The value of a row that is counted; NULL if the row does not count."""
    form = counted_form(column, domain)
    value = _valid(form)
    if domain is not None:
        return f"CASE WHEN {domain.condition(value)} THEN {value} END"
    held = _HELD.get(form.kind)
    if held is None:
        return value
    condition = held.format(x=value, type=form.type)
    return f"CASE WHEN {condition} THEN {value} END"


def _valid(form: Form) -> str:
    """The value, but NULL for a text that is not valid UTF-8: no table of DuckDB can hold it, and no answer."""
    return f"TRY(decode(encode({form.value})))" if form.kind is Kind.TEXT else form.value
