"""What a run returned, as a value that can be counted, taken apart and shown.

Two outputs that an observer can tell apart stay apart, even where Python calls them equal: 1, 1.0 and True are three
outputs, and so are 0.0 and -0.0. Every NaN of a type is the same output. Lists and arrays become tuples.
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

Path = tuple[Hashable, ...]  # from the whole output to one part: positions, names of fields and keys

_LONGEST_TEXT = 60
_REMEDY = "return a number, a text, or a tuple, list, set or dict of these"


@dataclass(frozen=True, slots=True)
class Raised:
    """The run ended with an exception of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with its type, because Python calls values of different types equal."""

    kind: type
    value: Any
    mark: str = ""  # what the value does not say: that it is NaN, or a negative zero


@dataclass(frozen=True, slots=True)
class Fields:
    """A dict or a dataclass: its names and values, in order."""

    kind: type
    items: tuple[tuple[Hashable, Hashable], ...]


def outcome_of(output: Any) -> Hashable:
    """The output in a hashable form: equal for two outputs if an observer sees no difference.

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
    except Exception:  # what the output's own code raises may quote it
        has_hash = False
    if not has_hash:
        raise InvalidType(f"f must return something hashable, got {type(output).__name__}: {_REMEDY}")
    return Typed(type(output), None, "nan") if _is_nan(output) else Typed(type(output), output)


def _is_nan(output: Any) -> bool:
    try:
        return bool(output != output)  # noqa: PLR0124 - NaN alone differs from itself
    except Exception:  # pandas.NA does not say
        return False


@_canonical.register(int)
@_canonical.register(str)
@_canonical.register(bytes)
@_canonical.register(type(None))
def _plain_leaf(output: Any) -> Hashable:
    return output if type(output) in _UNTYPED else _leaf(output)


_UNTYPED = {int, str, bytes, type(None)}  # no two values of these are equal and look different


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
    return _leaf(output) if isinstance(plain, np.generic) else _canonical(plain)  # a long double stays one


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
def parts(outcome: Any) -> tuple[tuple[Hashable, Hashable], ...]:  # noqa: ARG001 - what is one value has no parts
    """The parts of a tuple, set, dict or dataclass, each after its position or name; none of what is one value."""
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
    """One of the parts, by its position or name."""
    if isinstance(outcome, tuple):
        return outcome[step] if isinstance(step, int) and step < len(outcome) else default
    return dict(parts(outcome)).get(step, default)


def leaves(outcome: Hashable, path: Path = ()) -> Iterator[tuple[Path, Hashable]]:
    """Every single value of an outcome, after the path to it."""
    inner = parts(outcome)
    if not inner:
        yield path, outcome
    for step, part in inner:
        yield from leaves(part, (*path, step))


def rebuilt(outcome: Hashable, change: Callable[[Path, Hashable], Hashable], path: Path = ()) -> Hashable:
    """The outcome with each single value changed."""
    if isinstance(outcome, tuple) and outcome:
        return tuple(rebuilt(part, change, (*path, step)) for step, part in enumerate(outcome))
    if isinstance(outcome, Fields) and outcome.items:
        items = tuple((name, rebuilt(part, change, (*path, name))) for name, part in outcome.items)
        return Fields(outcome.kind, items)
    return change(path, outcome)


def number_of(leaf: Hashable) -> float | None:
    """The value of a number as a float, infinite beyond the floats; None of NaN and of all else."""
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
    """Whether the outcome is equal to itself alone, as an object without an `__eq__` of its own is."""
    return isinstance(outcome, Typed) and getattr(outcome.kind, "__eq__", None) is object.__eq__


@singledispatch
def plain(outcome: Any) -> Any:
    """The output much as f returned it, with tuples for lists and a dict for a dataclass; the name of an exception."""
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
    """A dict or a set of the items, or a tuple where what they became, such as another dict, has no hash."""
    kept = tuple(items)
    try:
        return kind(kept)
    except TypeError:
        return kept


def text_of(outcome: Hashable) -> str:
    """The outcome in a few words, for a description.

    >>> text_of(Raised("ValueError")), text_of(outcome_of([0.5, "a"]))
    ('an exception ValueError', "(0.5, 'a')")
    """
    if isinstance(outcome, Raised):
        return f"an exception {outcome.name}"
    try:
        text = repr(plain(outcome))
    except Exception:  # whatever a repr raises
        text = f"a {type(plain(outcome)).__name__}"
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def json_of(output: Any) -> Any:
    """What JSON can hold of an output: texts for what it has no form for.

    >>> json_of((1, 0.5, None, math.inf, b"x"))
    [1, 0.5, None, 'inf', "b'x'"]
    """
    if isinstance(output, tuple):
        return [json_of(part) for part in output]
    try:
        json.dumps(output, allow_nan=False)
    except (TypeError, ValueError):  # of another type, not finite, or too long an integer
        return text_of(output)
    return output


def in_order(outcomes: Iterable[Hashable]) -> list[Hashable]:
    """Numbers by size, then other outputs by their text, then exceptions."""

    def place(outcome: Hashable) -> tuple[bool, float, str]:
        number = number_of(outcome)
        return isinstance(outcome, Raised), math.inf if number is None else number, text_of(outcome)

    return sorted(outcomes, key=place)
