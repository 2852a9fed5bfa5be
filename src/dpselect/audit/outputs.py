"""Outcomes: the output of a run as a hashable value that can be counted, split into parts and printed.

Two outputs that an observer can distinguish are different outcomes, even if Python calls them equal: 1, 1.0 and True
are three outcomes, and 0.0 and -0.0 are two. All NaNs of one type are the same outcome. Lists and arrays become tuples.
"""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from dpselect.errors import InvalidType

Path = tuple[Hashable, ...]  # leads from the whole output to one part: positions, names of fields and keys

_LONGEST_TEXT = 60
_REMEDY = "return a number, a string, or a tuple, list, set or dict of these"


@dataclass(frozen=True, slots=True)
class Raised:
    """A run that ended with an exception of this name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A value with its type, because Python calls values of different types equal."""

    kind: type
    value: Any
    mark: str = ""  # "nan" or "negative zero", which `==` on the value does not show

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, as in tuples: the same object is equal to itself, also pandas.NA.

        `pandas.NA == pandas.NA` has no truth value, and the comparison that a dataclass has on Python 3.13 needs one.
        """
        if not isinstance(other, Typed):
            return NotImplemented
        return (self.kind, self.value, self.mark) == (other.kind, other.value, other.mark)

    def __hash__(self) -> int:
        return hash((self.kind, self.value, self.mark))


@dataclass(frozen=True, slots=True)
class Fields:
    """A dict or a dataclass, as its names and values in order."""

    kind: type
    items: tuple[tuple[Hashable, Hashable], ...]


def outcome_of(output: Any) -> Hashable:
    """The output in a hashable form. Two outputs have equal forms if and only if an observer sees no difference.

    >>> outcome_of([1, np.int64(2)]), outcome_of(math.nan) == outcome_of(-math.nan), outcome_of(1) == outcome_of(True)
    ((1, 2), True, False)
    """
    return _canonical(output)


@singledispatch
def _canonical(output: Any) -> Hashable:
    if is_dataclass(output) and not isinstance(output, type) and _compares_by_fields(output):
        return Fields(
            type(output), tuple((part.name, _canonical(getattr(output, part.name))) for part in _compared(output))
        )
    return _leaf(output)


def _compares_by_fields(output: Any) -> bool:
    return bool(type(output).__dataclass_params__.eq)


def _compared(output: Any) -> Iterator[Any]:
    return (part for part in fields(output) if part.compare)


def _leaf(output: Any) -> Hashable:
    has_hash = True
    try:
        hash(output)
    except Exception:  # raised by code of the output, so its message may quote the output
        has_hash = False
    if not has_hash:
        raise InvalidType(f"f must return something hashable, got {type(output).__name__}: {_REMEDY}")
    return Typed(type(output), None, "nan") if _is_nan(output) else Typed(type(output), output)


def _is_nan(output: Any) -> bool:
    try:
        return bool(output != output)  # noqa: PLR0124 - only NaN differs from itself
    except Exception:  # pandas.NA has no truth value
        return False


@_canonical.register(int)
@_canonical.register(str)
@_canonical.register(bytes)
@_canonical.register(type(None))
def _plain_leaf(output: Any) -> Hashable:
    return output if type(output) in _UNTYPED else _leaf(output)


_UNTYPED = {int, str, bytes, type(None)}  # equal values of these types look the same


@_canonical.register
def _float(output: float) -> Hashable:
    if output == 0 and math.copysign(1, output) < 0:
        return Typed(type(output), output, "negative zero")
    return _leaf(output)


@_canonical.register(np.generic)
@_canonical.register(np.str_)
@_canonical.register(np.bytes_)
def _scalar(output: Any) -> Hashable:
    plain = output.item()
    return _leaf(output) if isinstance(plain, np.generic) else _canonical(plain)  # a long double has no Python type


@_canonical.register
def _array(output: np.ndarray) -> Hashable:
    return _canonical(output.tolist())


@_canonical.register
def _sequence(output: Sequence) -> Hashable:  # type: ignore[type-arg]
    return tuple(map(_canonical, output))


@_canonical.register
def _set(output: Set) -> Hashable:  # type: ignore[type-arg]
    return frozenset(map(_canonical, output))


@_canonical.register
def _mapping(output: Mapping) -> Hashable:  # type: ignore[type-arg]
    return Fields(type(output), tuple((_canonical(key), _canonical(value)) for key, value in output.items()))


@_canonical.register(range)
def _range(output: range) -> Hashable:
    return _leaf(output)


@singledispatch
def parts(outcome: Any) -> tuple[tuple[Hashable, Hashable], ...]:  # noqa: ARG001 - a single value has no parts
    """The parts of a tuple, set, dict or dataclass as (position or name, part); empty for a single value."""
    return ()


@parts.register
def _parts_of_tuple(outcome: tuple) -> Any:  # type: ignore[type-arg]
    return tuple(enumerate(outcome))


@parts.register
def _parts_of_fields(outcome: Fields) -> Any:
    return outcome.items


@parts.register
def _parts_of_set(outcome: frozenset) -> Any:  # type: ignore[type-arg]
    return tuple((item, _PRESENT) for item in outcome)


_PRESENT = Typed(bool, True)


def part_of(outcome: Hashable, step: Hashable, default: Hashable) -> Hashable:
    """The part with this position or name, or the default."""
    if isinstance(outcome, tuple):
        return outcome[step] if isinstance(step, int) and step < len(outcome) else default
    return dict(parts(outcome)).get(step, default)


def leaves(outcome: Hashable, path: Path = ()) -> Iterator[tuple[Path, Hashable]]:
    """All single values of an outcome, as (path, value)."""
    inner = parts(outcome)
    if not inner:
        yield path, outcome
    for step, part in inner:
        yield from leaves(part, (*path, step))


def rebuilt(outcome: Hashable, change: Callable[[Path, Hashable], Hashable], path: Path = ()) -> Hashable:
    """The outcome with each single value replaced by `change(path, value)`."""
    if isinstance(outcome, tuple) and outcome:
        return tuple(rebuilt(part, change, (*path, step)) for step, part in enumerate(outcome))
    if isinstance(outcome, Fields) and outcome.items:
        items = tuple((name, rebuilt(part, change, (*path, name))) for name, part in outcome.items)
        return Fields(outcome.kind, items)
    return change(path, outcome)


def number_of(leaf: Hashable) -> float | None:
    """The value of a number as a float, infinite if it overflows; None for NaN and for anything else."""
    value = leaf.value if isinstance(leaf, Typed) else leaf
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal, np.floating)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_new_object(outcome: Hashable) -> bool:
    """Whether the outcome is equal only to itself, as an object is that does not define `__eq__`."""
    return isinstance(outcome, Typed) and getattr(outcome.kind, "__eq__", None) is object.__eq__


@singledispatch
def plain(outcome: Any) -> Any:
    """The output roughly as f returned it: lists become tuples, a dataclass a dict, and an exception its name."""
    return outcome


@plain.register
def _plain_name(outcome: Raised) -> str:
    return outcome.name


@plain.register
def _plain_value(outcome: Typed) -> Any:
    return math.nan if outcome.mark == "nan" else outcome.value


@plain.register
def _plain_fields(outcome: Fields) -> Any:
    return _gathered(dict, ((plain(name), plain(part)) for name, part in outcome.items))


@plain.register
def _plain_tuple(outcome: tuple) -> Any:  # type: ignore[type-arg]
    return tuple(map(plain, outcome))


@plain.register
def _plain_set(outcome: frozenset) -> Any:  # type: ignore[type-arg]
    return _gathered(frozenset, map(plain, outcome))


def _gathered(kind: Callable[[Any], Any], items: Iterable[Any]) -> Any:
    """A dict or a set of the items, or a tuple if an item has become unhashable, for example a dict."""
    kept = tuple(items)
    try:
        return kind(kept)
    except TypeError:
        return kept


def text_of(outcome: Hashable) -> str:
    """A short text for the outcome.

    >>> text_of(Raised("ValueError")), text_of(outcome_of([0.5, "a"]))
    ('an exception ValueError', "(0.5, 'a')")
    """
    if isinstance(outcome, Raised):
        return f"an exception {outcome.name}"
    try:
        text = repr(plain(outcome))
    except Exception:  # a repr may raise anything
        text = f"a {type(plain(outcome)).__name__}"
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def json_of(output: Any) -> Any:
    """The output as a value for JSON; a text if JSON has no form for it.

    >>> json_of((1, 0.5, None, math.inf, b"x"))
    [1, 0.5, None, 'inf', "b'x'"]
    """
    if isinstance(output, tuple):
        return [json_of(part) for part in output]
    try:
        json.dumps(output, allow_nan=False)
    except (TypeError, ValueError):  # another type, not finite, or an integer with too many digits
        return text_of(output)
    return output


def in_order(outcomes: Iterable[Hashable]) -> list[Hashable]:
    """The outcomes sorted: numbers by size, then other outputs by their text, then exceptions."""

    def place(outcome: Hashable) -> tuple[bool, float, str]:
        number = number_of(outcome)
        return isinstance(outcome, Raised), math.inf if number is None else number, text_of(outcome)

    return sorted(outcomes, key=place)
