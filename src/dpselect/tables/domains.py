"""Rules instead of lists of candidates: "every int64", "every text of at most 8 bytes".

A rule is public, and does not come from the data. Values that nobody has are candidates with score zero, all in one
run, so a rule may have any number of values: only their exact number and an order of them are needed.

**Texts** of at most some number of bytes of UTF-8 have numbers by enumerative coding (Cover 1973).
Texts are ordered by their number of bytes, and those of equal length by their characters in the order of Unicode. With
a_w characters of w bytes, the number of texts of n bytes is

    c[0] = 1,    c[n] = a_1 c[n - 1] + a_2 c[n - 2] + a_3 c[n - 3] + a_4 c[n - 4],

because the rest after the first character is any text of the bytes that are left. All of Unicode has a = (128, 1920,
61440, 1048576): surrogates are not characters.
"""

import hashlib
import re
import uuid
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

from dpselect import _validate
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.candidates import Values
from dpselect.tables.duckdb.values import Form, form_of, form_of_span, in_span
from dpselect.tables.kinds import INTEGERS, LARGEST_RANK, Column, Kind, Span, kind_of_value

_SHOWN_CHARACTERS = 64
_COUNTED_LIKE_A_LIST, _MOST_LISTED = 2**12, 10**6
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, repr=False)
class Domain(ABC):
    """All values that a public rule describes, in a fixed order. Made by `every`.

    Attributes:
        words: the rule in words that identify it, for ledgers and answers.
        arguments: those of `every`: the kind, and options by name.
    """

    kind: Kind
    size: int
    words: str
    arguments: tuple[Any, ...]

    @property
    def listed(self) -> list[Any]:
        """All values in order."""
        if self.size > _MOST_LISTED:
            raise InvalidValue(f"k must be at most {_MOST_LISTED:,}: {self.words} has more values than that")
        return list(map(self.value, range(self.size)))

    @property
    def as_list(self) -> Values | None:
        """The values as a list, if they are so few that they are counted like one; otherwise None."""
        return Values(self.kind, tuple(self.listed)) if self.size <= _COUNTED_LIKE_A_LIST else None

    def entry(self) -> dict[str, Any]:
        """What a ledger records of the candidates."""
        return {"candidates": self.words}

    def value(self, index: int) -> Any:
        """The value at a place of the order, from 0 to size - 1."""
        if not 0 <= index < self.size:
            raise InvalidValue("index must be from 0 to the size of the domain less one")
        return self._value(index)

    @abstractmethod
    def _value(self, index: int) -> Any: ...

    @abstractmethod
    def index(self, value: Any) -> int | None:
        """The place of a value; None if the rule does not describe it."""

    def form(self, column: Column) -> Form:
        """The form in which a column is counted. All values of the domain are different in it, or NULL."""
        return form_of(column, self.kind)

    @abstractmethod
    def condition(self, expression: str) -> str:
        """DuckDB's SQL that is true exactly for values of the domain, given a value in its form."""

    def check(self, column: Column) -> None:
        """Refuse a domain that `every` did not make, and a column whose values cannot be compared with those of it."""
        kind, *options = self.arguments
        if self != every(kind, **dict(options)):  # rows would decide whether its size is an error
            raise InvalidValue("candidates must be a rule as every() returns it: call every with what is to change")
        if self.kind not in column.comparable:
            needed = {
                Kind.DECIMAL: f", precision={column.precision or 18}, digits={column.digits}",
                Kind.TEXT: ", max_bytes=8",
            }.get(column.kind, "")
            rule = f"every({column.kind.rule!r}{needed})"
            fitting = f"use {rule}" if column.kind.rule else "no rule fits such a column; use another one"
            raise InvalidType(
                f"candidates are {self.words}, but the column {column.name!r} holds {column.kind.value}: {fitting}"
            )

    def __repr__(self) -> str:
        kind, *options = self.arguments
        return f"every({', '.join([repr(kind), *(f'{name}={value!r}' for name, value in options)])})"


@dataclass(frozen=True, repr=False)
class Ordered(Domain):
    """All values of an ordered kind between two ends. Numbers of other types are counted if they are equal to one."""

    span: Span
    precision: int = 0  # of decimals

    def _value(self, index: int) -> Any:
        return self.span.value(index)

    def index(self, value: Any) -> int | None:
        units = self.span.units(value)
        return None if units is None or not self.span.first <= units <= self.span.last else units - self.span.first

    def form(self, column: Column) -> Form:
        return form_of_span(column, self.span)

    def condition(self, expression: str) -> str:
        return in_span(expression, self.span, self.precision)


@dataclass(frozen=True, repr=False)
class Uuids(Domain):
    """All UUIDs, as text in small letters. A column of text may write them in other ways that DuckDB reads."""

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


Run = tuple[int, int]

# The last code points of one, two, three and four bytes of UTF-8, and all characters in runs of one width.
_LAST_OF_WIDTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_EVERYTHING: tuple[Run, ...] = ((0x0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))


def runs_of(characters: Iterable[str] | None) -> tuple[Run, ...]:
    """Different characters as runs of code points that follow each other, each of one width; None is all of Unicode."""
    if characters is None:
        return _EVERYTHING
    runs: list[Run] = []
    for code in sorted(map(ord, characters)):
        if runs and runs[-1][1] == code - 1 and code - 1 not in _LAST_OF_WIDTH:
            runs[-1] = runs[-1][0], code
        else:
            runs.append((code, code))
    return tuple(runs)


class _Characters:
    """The characters of one width: the runs, and how many characters come before each."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = [range(first, last + 1) for first, last in runs]
        *self._before, self.size = accumulate(map(len, self._runs), initial=0)

    def character(self, place: int) -> int:
        run = bisect_right(self._before, place) - 1
        return self._runs[run][place - self._before[run]]

    def place(self, code: int) -> int | None:
        run = bisect_right(self._runs, code, key=lambda each: each.start) - 1
        return self._before[run] + self._runs[run].index(code) if run >= 0 and code in self._runs[run] else None


def width(code: int) -> int:
    """The number of bytes of a character in UTF-8."""
    return 1 + sum(code > last for last in _LAST_OF_WIDTH)


def _by_width(runs: Iterable[Run]) -> list[_Characters]:
    return [_Characters(run for run in runs if width(run[0]) == w) for w in (1, 2, 3, 4)]


@lru_cache(maxsize=2)
def _counts(sizes: tuple[int, ...], longest: int) -> tuple[int, ...]:
    # For 1,000 bytes these counts take about half a megabyte.
    counts = [1]
    for n in range(1, longest + 1):
        counts.append(sum(size * counts[n - w] for w, size in enumerate(sizes, 1) if w <= n))
    return tuple(counts)


@dataclass(frozen=True, repr=False)
class Texts(Domain):
    """All texts of at most so many bytes in UTF-8, of characters in these runs, in ascending order."""

    # Texts are ordered by their number of bytes, then by characters.

    max_bytes: int
    runs: tuple[Run, ...]

    def condition(self, expression: str) -> str:
        fits = f"strlen({expression}) <= {self.max_bytes}"
        if self.runs == _EVERYTHING:
            return f"({fits})"
        codes = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in self.runs)
        return f"({fits} AND regexp_full_match({expression}, '[{codes}]*'))"

    @cached_property
    def _widths(self) -> list[_Characters]:
        return _by_width(self.runs)

    @property
    def _counts(self) -> tuple[int, ...]:
        return _counts(tuple(characters.size for characters in self._widths), self.max_bytes)

    def _value(self, place: int) -> str:
        counts, length, codes = self._counts, 0, []
        while place >= counts[length]:
            place -= counts[length]
            length += 1
        while length:
            code, place, length = self._first(place, length, counts)
            codes.append(code)
        return "".join(map(chr, codes))

    def _first(self, place: int, length: int, counts: tuple[int, ...]) -> tuple[int, int, int]:
        for w, characters in enumerate(self._widths, 1):
            if w > length:
                break
            block = characters.size * counts[length - w]
            if place < block:
                which, rest = divmod(place, counts[length - w])
                return characters.character(which), rest, length - w
            place -= block
        raise IndexError

    def index(self, text: Any) -> int | None:
        if not isinstance(text, str):
            return None
        codes = [ord(character) for character in text]
        length = sum(map(width, codes))
        if length > self.max_bytes:
            return None
        counts = self._counts
        place = sum(counts[:length])
        for code in codes:
            w = width(code)
            within = self._widths[w - 1].place(code)
            if within is None:
                return None
            narrower = enumerate(self._widths[: w - 1], 1)
            place += sum(characters.size * counts[length - v] for v, characters in narrower)
            length -= w
            place += within * counts[length]
        return place


def texts_of(max_bytes: int, alphabet: str | None = None) -> Texts:
    """All texts of at most so many bytes, of all characters or of those of an alphabet."""
    runs = runs_of(alphabet)
    size = sum(_counts(tuple(characters.size for characters in _by_width(runs)), max_bytes))
    characters, options = "", (("max_bytes", max_bytes), *(() if alphabet is None else (("alphabet", alphabet),)))
    if alphabet is not None and len(alphabet) <= _SHOWN_CHARACTERS:
        characters = f" of the characters {alphabet!a}"
    elif alphabet is not None:
        digest = hashlib.sha256(alphabet.encode()).hexdigest()
        characters = f" of {len(alphabet)} characters with the SHA-256 {digest}"
    words = f"every text of at most {_counted(max_bytes, 'byte')}{characters}"
    return Texts(Kind.TEXT, size, words, ("text", *options), max_bytes, runs)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
    options: dict[str, Any] = {"max_bytes": max_bytes, "alphabet": alphabet, "lower": lower, "upper": upper}
    options |= {"precision": precision, "digits": digits}
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(kind, str):
        raise InvalidType(f"kind must be a text such as 'int64', got {type(kind).__name__}")
    if kind in ("float32", "float16"):
        raise InvalidValue(f"there is no every({kind!r}): use every('float64'), which has all of its values")
    if kind not in _RULES:
        apart = "; give its size apart, such as every('text', max_bytes=8)" if ":" in kind else ""
        raise InvalidValue(f"kind must be one of {', '.join(_RULES)}, got {kind[:40]!r}{apart}")
    rule = _RULES[kind]
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
    return f", or write {_EXAMPLES['integer']}" if kind in INTEGERS and name in ("lower", "upper") else ""


# How `every` makes a domain.


def _all(span: Span, words: str, *arguments: Any) -> Domain:
    return Ordered(span.kind, span.size, words, arguments, span)


# The kinds that need no more than their name.
_WHOLE: dict[str, Domain] = {
    **{name: _all(Span(Kind.INTEGER, *ends), f"every {name}", name) for name, ends in INTEGERS.items()},
    "float64": _all(Span(Kind.FLOAT, -LARGEST_RANK[64], LARGEST_RANK[64], bits=64), "every finite float64", "float64"),
    "uuid": Uuids(Kind.TEXT, 2**128, "every uuid", ("uuid",)),
    "boolean": _all(Span(Kind.BOOLEAN, 0, 1), "every boolean", "boolean"),
}


def _whole(kind: str, _: Mapping[str, Any]) -> Domain:
    return _WHOLE[kind]


def _integers(_: str, given: Mapping[str, Any]) -> Domain:
    span = _limited(Span(Kind.INTEGER, *_HUGEINT), given)
    name = next((name for name, ends in INTEGERS.items() if ends == span.ends), None)
    words = "every integer from {} to {}".format(*span.ends)
    return _all(span, words, "integer", *_stated_ends(span)) if name is None else _WHOLE[name]


def _decimals(_: str, given: Mapping[str, Any]) -> Domain:
    precision, digits = (_validate.count(**{name: given[name]}) for name in ("precision", "digits"))
    if not 1 <= precision <= _MOST_DIGITS:
        raise InvalidValue(f"precision must be from 1 to {_MOST_DIGITS}, got {precision}")
    if digits > precision:
        raise InvalidValue(f"digits must be at most precision, got {digits} and {precision}")
    most = 10**precision - 1
    full = Span(Kind.DECIMAL, -most, most, digits=digits)
    span = _limited(full, given)
    words = f"every decimal of at most {_counted(precision, 'digit')}, {digits} after the point"
    words += "" if span == full else ", from {:f} to {:f}".format(*span.ends)
    arguments = ("decimal", ("precision", precision), ("digits", digits), *_stated_ends(span, full))
    return Ordered(Kind.DECIMAL, span.size, words, arguments, span, precision)


def _times(name: str, given: Mapping[str, Any]) -> Domain:
    kind = next(kind for kind in Kind if kind.rule == name)
    full = Span(kind, *kind.ends)
    span = _limited(full, given)
    return _all(span, "every {} from {} to {}".format(name, *span.ends), name, *_stated_ends(span, full))


def _stated_ends(span: Span, full: Span | None = None) -> list[tuple[str, Any]]:
    return [] if span == full else list(zip(("lower", "upper"), span.ends, strict=True))


def _limited(full: Span, given: Mapping[str, Any]) -> Span:
    ends = {"lower": full.first, "upper": full.last}
    first, last = (_end(name, given[name], full) if name in given else end for name, end in ends.items())
    if first > last:
        raise InvalidValue(f"lower must be <= upper, got {given.get('lower')} and {given.get('upper')}: swap them")
    if first < full.first or last > full.last:
        raise InvalidValue("lower and upper must be within what the kind can hold: give ends that are closer together")
    return replace(full, first=first, last=last)


def _end(name: str, value: Any, full: Span) -> int:
    kind = full.kind
    if isinstance(value, str):
        value = kind.from_text(value, name)
    if kind_of_value(value) not in ({kind, Kind.INTEGER} if kind is Kind.DECIMAL else {kind}):
        raise InvalidType(f"{name} must be one of {kind.value}, got {type(value).__name__}")
    found = full.units(value)
    if found is None:
        raise InvalidValue(f"{name} must be a finite number with no more digits after the point than `digits` says")
    return found


def _texts(_: str, given: Mapping[str, Any]) -> Domain:
    max_bytes = _validate.count(max_bytes=given["max_bytes"])
    if not 1 <= max_bytes <= _MOST_BYTES:
        raise InvalidValue(f"max_bytes must be from 1 to {_MOST_BYTES:,}, got {max_bytes}")
    alphabet = given.get("alphabet")
    if alphabet is None:
        return texts_of(max_bytes)
    if not isinstance(alphabet, str):
        raise InvalidType(f"alphabet must be a text of all characters, such as 'ABC', got {type(alphabet).__name__}")
    if not alphabet:
        raise InvalidValue("alphabet must have at least one character")
    if len(set(alphabet)) != len(alphabet):
        raise InvalidValue("alphabet must have different characters: drop the duplicates")
    if not _validate.is_unicode(alphabet):
        raise InvalidValue("alphabet must be text that can be encoded as UTF-8: drop the lone surrogates")
    return texts_of(max_bytes, "".join(sorted(alphabet)))


@dataclass(frozen=True)
class _Rule:
    make: Callable[[str, Mapping[str, Any]], Domain]
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_RULES = {
    **dict.fromkeys(INTEGERS, _Rule(_whole)),
    "integer": _Rule(_integers, needed=("lower", "upper")),
    "decimal": _Rule(_decimals, needed=("precision", "digits"), optional=("lower", "upper")),
    "float64": _Rule(_whole),
    **dict.fromkeys((kind.rule for kind in Kind if kind.is_time), _Rule(_times, optional=("lower", "upper"))),
    "text": _Rule(_texts, needed=("max_bytes",), optional=("alphabet",)),
    "uuid": _Rule(_whole),
    "boolean": _Rule(_whole),
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
    # NULL for a text that is not valid UTF-8: no table of DuckDB can hold it, and no answer.
    value = f"TRY(decode(encode({form.value})))" if form.kind is Kind.TEXT else form.value
    held = _HELD.get(form.kind, "").format(x=value, type=form.type) if domain is None else domain.condition(value)
    return f"CASE WHEN {held} THEN {value} END" if held else value
