"""Rules instead of lists of candidates: "every int64", "every text of at most 8 bytes".

A rule is public, and does not come from the data. Values that nobody has are candidates with score zero, all in one
run, so a rule may have any number of values: only their exact number and an order of them are needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpselect import _validate
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.candidates import kind_of_value
from dpselect.tables.rules import (
    INTEGERS,
    NAMES_OF_TIMES,
    Booleans,
    Decimals,
    Domain,
    Floats,
    Integers,
    Texts,
    Times,
    Uuids,
    all_times,
    whole,
)
from dpselect.tables.schema import Kind, value_from_text

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
