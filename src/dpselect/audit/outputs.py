"""Outcomes: the output of a run as a hashable value that can be counted, split into features and printed.

Two outputs that an observer can distinguish are different outcomes, even if Python calls them equal: 1, 1.0 and True
are three outcomes, and 0.0 and -0.0 are two. All NaNs of one type are the same outcome. Lists and arrays become tuples.

The features of an outcome are its single values, each with the path that leads to it: positions, names of fields, keys.
"""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from dpselect.errors import InvalidType

Path = tuple[Hashable, ...]
Pairs = tuple[tuple[Hashable, Hashable], ...]

_LONGEST_TEXT = 60
_REMEDY = "return a number, a string, or a tuple, list, set or dict of these"
_UNTYPED = {int, str, bytes, type(None)}  # equal values of these types look the same


@dataclass(frozen=True, slots=True)
class Raised:
    """A run that ended with an exception of this name."""

    name: str


class Typed(NamedTuple):
    """A value with its type, because Python calls values of different types equal."""

    # As in all tuples, the same object is equal to itself, also pandas.NA, whose own comparison has no truth value.

    kind: type
    value: Any
    mark: str = ""  # "nan" or "negative zero", which `==` on the value does not show


@dataclass(frozen=True, slots=True)
class Fields:
    """A dict or a dataclass, as its names and values in order."""

    kind: type
    items: Pairs


_PRESENT = Typed(bool, True)  # the value of an item of a set


@singledispatch
def outcome_of(output: Any) -> Hashable:
    """The output in a hashable form. Two outputs have equal forms if and only if an observer sees no difference."""
    if is_dataclass(output) and not isinstance(output, type) and type(output).__dataclass_params__.eq:  # type: ignore[attr-defined]
        return _fields(output, ((part.name, getattr(output, part.name)) for part in fields(output) if part.compare))
    return _leaf(output)


def _fields(output: Any, items: Iterable[tuple[Any, Any]]) -> Fields:
    return Fields(type(output), tuple((outcome_of(name), outcome_of(value)) for name, value in items))


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


def _float(output: float) -> Hashable:
    is_negative_zero = output == 0 and math.copysign(1, output) < 0
    return Typed(type(output), output, "negative zero") if is_negative_zero else _leaf(output)


def _scalar(output: Any) -> Hashable:
    value = output.item()
    return _leaf(output) if isinstance(value, np.generic) else outcome_of(value)  # a long double has no Python type


_FORMS: dict[Any, Callable[[Any], Hashable]] = {
    **dict.fromkeys(_UNTYPED, lambda output: output if type(output) in _UNTYPED else _leaf(output)),
    float: _float,
    **dict.fromkeys((np.generic, np.str_, np.bytes_), _scalar),
    np.ndarray: lambda output: outcome_of(output.tolist()),
    Sequence: lambda output: tuple(map(outcome_of, output)),
    range: _leaf,
    Raised: lambda raised: raised,
    Set: lambda output: frozenset(map(outcome_of, output)),
    Mapping: lambda output: _fields(output, output.items()),
}
for _kind, _form in _FORMS.items():
    outcome_of.register(_kind, _form)

_PARTS: dict[type, Callable[[Any], Iterable[tuple[Hashable, Hashable]]]] = {
    tuple: enumerate,
    frozenset: lambda outcome: ((item, _PRESENT) for item in outcome),
    Fields: lambda outcome: outcome.items,
}


def parts(outcome: Hashable) -> Pairs:
    """The parts of a tuple, set, dict or dataclass as (position or name, part); empty for a single value."""
    return tuple(_PARTS[type(outcome)](outcome)) if type(outcome) in _PARTS else ()


def features(outcome: Hashable, path: Path = ()) -> Iterator[tuple[Path, Hashable]]:
    """All single values of an outcome, as (path, value)."""
    inner = parts(outcome)
    if not inner:
        yield path, outcome
    for step, part in inner:
        yield from features(part, (*path, step))


def changed(outcome: Hashable, change: Callable[[Path, Hashable], Hashable], path: Path = ()) -> Hashable:
    """The outcome with each single value, and each set, replaced by `change(path, value)`."""
    if type(outcome) is tuple and outcome:
        return tuple(changed(part, change, (*path, step)) for step, part in enumerate(outcome))
    if isinstance(outcome, Fields) and outcome.items:
        return Fields(outcome.kind, tuple((name, changed(part, change, (*path, name))) for name, part in outcome.items))
    return change(path, outcome)


def feature(outcome: Hashable, path: Path, default: Hashable) -> Hashable:
    """The part of an outcome to which a path leads, or the default."""
    for step in path:
        if type(outcome) is tuple:
            outcome = outcome[step] if isinstance(step, int) and step < len(outcome) else default
        else:
            outcome = dict(parts(outcome)).get(step, default)
    return outcome


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


def _gathered(kind: Callable[[Any], Any], items: Iterable[Any]) -> Any:
    # A dict or a set of the items, or a tuple if an item has become unhashable, for example a dict.
    kept = tuple(items)
    try:
        return kind(kept)
    except TypeError:
        return kept


_PLAIN: dict[type, Callable[[Any], Any]] = {
    Raised: lambda outcome: outcome.name,
    Typed: lambda outcome: math.nan if outcome.mark == "nan" else outcome.value,
    Fields: lambda outcome: _gathered(dict, ((plain(name), plain(part)) for name, part in outcome.items)),
    tuple: lambda outcome: tuple(map(plain, outcome)),
    frozenset: lambda outcome: _gathered(frozenset, map(plain, outcome)),
}


def plain(outcome: Hashable) -> Any:
    """The output roughly as f returned it: lists become tuples, a dataclass a dict, and an exception its name."""
    return _PLAIN[type(outcome)](outcome) if type(outcome) in _PLAIN else outcome


def text_of(outcome: Hashable) -> str:
    """A short text for the outcome."""
    if isinstance(outcome, Raised):
        return f"an exception {outcome.name}"
    try:
        text = repr(plain(outcome))
    except Exception:  # a repr may raise anything
        text = f"a {type(plain(outcome)).__name__}"
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def json_of(output: Any) -> Any:
    """The output as a value for JSON; a text if JSON has no form for it."""
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
