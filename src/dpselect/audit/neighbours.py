"""Neighbours: two score vectors, or two inputs of any kind, that one person can turn into each other.

`hard_pairs` are scores on which implementations of selection are known to fail. They cover ties, the order of
candidates, exponentials that underflow (Mironov 2012; Ilvento 2020), integers that floats cannot distinguish,
differences that wrap around, and the largest and smallest floats.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_below
from dpselect._scores import exact_scores
from dpselect._types import Number
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import Claim, stated

_MOST_LEVELS = 8


@dataclass(frozen=True, repr=False, eq=False)
class Pair:
    """Two score vectors that one person can turn into each other. The audited callable gets copies of the same type.

    Attributes:
        name: what the pair is called in the findings.
        scores: a vector of scores: a NumPy array, or a list of numbers.
        neighbour: a vector of the same length.

    >>> Pair("a lead that is lost", [1, 0], [0, 1])
    Pair('a lead that is lost', 2 candidates)
    """

    name: str
    scores: Any  # or an input of another kind, of which nothing is known
    neighbour: Any

    def __repr__(self) -> str:
        return f"Pair({self.name!r}, {len(self.scores)} candidates)"

    @property
    def both(self) -> tuple[Any, Any]:
        return self.scores, self.neighbour

    def risers(self) -> list[frozenset[Hashable]]:
        """Return the sets of candidates that rise by one of the largest moves or more.

        For regular mechanisms they reveal the most. The set of all candidates is left out.
        """
        moves = self.moves()
        levels = sorted(set(moves), reverse=True)[:_MOST_LEVELS]
        return [frozenset(i for i, move in enumerate(moves) if move >= level) for level in levels[:-1]]

    def moves(self) -> list[Fraction]:
        """Return by how much each score rises from `scores` to `neighbour`, exactly."""
        return [b - a for a, b in zip(exact_scores(self.scores), exact_scores(self.neighbour), strict=True)]


def checked_inputs(inputs: Any) -> list[Pair]:
    """The pairs of inputs that the user gave: a list of tuples (data, neighbour), or a dict from names to tuples."""
    # A tuple of pairs is refused because it could also be one pair of inputs that are tuples.
    if not isinstance(inputs, (list, Mapping)):
        raise InvalidType(
            f"inputs must be a list of tuples (data, neighbour), or a dict of them by name, got {type(inputs).__name__}"
        )
    named = inputs if isinstance(inputs, Mapping) else {f"pair {i}": pair for i, pair in enumerate(inputs, start=1)}
    for name, pair in named.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidType(f"inputs: {str(name)!r} must be a tuple (data, neighbour), got {type(pair).__name__}")
    if not named:
        raise InvalidValue("inputs must have at least one pair (data, neighbour)")
    return [Pair(str(name), *pair) for name, pair in named.items()]


def checked_pairs(pairs: Iterable[Any], claim: Claim) -> list[Pair]:
    """The pairs that the user gave, each a `Pair` or (scores, neighbour); refuses vectors that are not neighbours."""
    if isinstance(pairs, (str, bytes, dict)) or not isinstance(pairs, Iterable):
        raise InvalidType(f"pairs must be a list of (scores, neighbour), got {type(pairs).__name__}")
    checked: list[Pair] = []
    for number, pair in enumerate(pairs, start=1):
        if not isinstance(pair, Pair) and not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise InvalidType(f"pairs: pair {number} must be (scores, neighbour), two vectors of scores")
        checked.append(pair if isinstance(pair, Pair) else Pair(f"pair {number}", *pair))
    if not checked:
        raise InvalidValue("pairs must have at least one pair of score vectors")
    for pair in checked:
        _check(pair, claim)
    return checked


def _check(pair: Pair, claim: Claim) -> None:
    if len(exact_scores(pair.scores)) != len(exact_scores(pair.neighbour)):
        raise _not_neighbours(pair, "they have different lengths", "give each candidate a score in both")
    moves = pair.moves()
    if claim.by_range:
        if max(moves) - min(moves) > claim.score_range:
            raise _not_neighbours(
                pair, "a difference of scores changes by more than the score range", "change no difference by more"
            )
        return
    if max(map(abs, moves)) > claim.sensitivity:
        raise _not_neighbours(pair, "a score differs by more than the sensitivity", "move no score by more than that")
    if claim.monotonic and min(moves) < 0 < max(moves):
        raise _not_neighbours(pair, "some scores rise and some fall", "monotonic scores move in one direction")


def _not_neighbours(pair: Pair, rule: str, remedy: str) -> InvalidValue:
    return InvalidValue(f"pairs: the vectors of {pair.name!r} are not neighbours, {rule}: {remedy}")


_SHORT = 26  # bits of the unit: its multiples below 2**_SHORT are exact floats
_LARGEST_MULTIPLE = 2**_SHORT
_LARGEST_STEP = 2**10
_FAR = 2**21 - 1  # a move that becomes 2**20 where scores move in one direction only
# exp(x) is zero below the first and infinite above the second.
_UNDERFLOW, _OVERFLOW = -745.1332191019412, 709.782712893384
_TINY, _HUGE = 5e-324, 1.7e308
DEFAULT_LONGEST = 64


def hard_pairs(
    epsilon: Number,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    *,
    score_range: Number | None = None,
    longest: int = DEFAULT_LONGEST,
) -> list[Pair]:
    """About twenty pairs of neighbouring score vectors that are likely to expose a mistake.

    The vectors are NumPy arrays of floats and integers. With a score range, the scores of a pair move in one direction,
    by at most the score range, and one more pair moves all scores far by the same amount.

    Args:
        epsilon: the epsilon that the mechanism promises; some pairs depend on it.
        sensitivity, monotonic, score_range: See `PermuteAndFlip`.
        longest: the number of candidates in the longest vectors.

    Raises:
        InvalidType: an argument has the wrong type.
        InvalidValue: an argument is out of range, or the sensitivity is too large or too small for floats.

    >>> hard_pairs(1)[:2]
    [Pair('ties', 2 candidates), Pair('three ties', 3 candidates)]
    """
    budget = _validate.exact_positive(epsilon=epsilon)
    claim = stated(sensitivity, monotonic, score_range)
    one_way = claim.monotonic or claim.by_range
    largest = claim.score_range if one_way else claim.sensitivity
    size = _validate.count(longest=longest)
    if size < 2:
        raise InvalidValue(f"longest must be >= 2, got {size}: the longest vectors need a winner and a loser")
    unit = _unit(largest)
    exponent = float(claim.rate(budget) * Fraction(unit))
    world = _World(unit, exponent, one_way)
    pairs = [*_floats(world, size), *_ends(largest, world)]
    if largest >= 1:
        pairs += _integers(min(math.floor(largest), _LARGEST_STEP), world)
    if claim.by_range:
        pairs.append(world.pair("all move far and alike", [3, 1, 0], [_FAR, _FAR, _FAR]))
    return checked_pairs(pairs, claim)


def _unit(sensitivity: Fraction) -> float:
    # A number with few bits, at most the sensitivity and close to it. Its multiples are exact floats.
    nearest = float_below(sensitivity)
    significand, exponent = math.frexp(nearest)
    unit = math.ldexp(math.floor(math.ldexp(significand, _SHORT)), exponent - _SHORT)
    if not unit or math.isinf(2.0 * _LARGEST_MULTIPLE * unit):
        raise InvalidValue("sensitivity is too large or too small for floats: give pairs of neighbouring scores")
    return unit


@dataclass(frozen=True)
class _World:
    # What all pairs share: the unit of the scores, the exponent c * unit, and how one person moves scores.

    unit: float
    exponent: float
    monotonic: bool

    def pair(self, name: str, multiples: Sequence[float], moves: Sequence[int]) -> Pair:
        # Scores that are multiples of the unit, and a neighbour. Moves of -1 and 1 become 0 and 1 if monotonic.
        scores, moved = np.array(multiples, float), np.array(moves, float)
        moved = (moved + 1) / 2 if self.monotonic else moved
        return Pair(name, scores * self.unit, (scores + moved) * self.unit)


def _floats(world: _World, longest: int) -> list[Pair]:
    losers = longest - 1
    gap = max(1, round(math.log(longest) / world.exponent))
    pairs = [
        world.pair("ties", [0, 0], [-1, 1]),
        world.pair("three ties", [0, 0, 0], [-1, -1, 1]),
        world.pair("three ties, the first moves", [0, 0, 0], [1, -1, -1]),
        world.pair("four ties, two move", [0, 0, 0, 0], [1, -1, 1, -1]),
        world.pair("near ties", [0.5, 0], [-1, 1]),
        world.pair("a lead that is lost", [1, 0], [-1, 1]),
        world.pair("a lead that grows", [2, 0], [1, -1]),
        world.pair("spread", [0, 1, 2, 3, 5], [1, -1, 1, -1, -1]),
        world.pair("one candidate", [0], [1]),
        world.pair("all move alike", [3, 1, 0], [1, 1, 1]),
    ]
    if gap < _LARGEST_MULTIPLE:
        pairs.append(world.pair("many losers", [0] + [-gap] * losers, [-1] + [1] * losers))
    return [*pairs, *_exponentials(world)]


def _exponentials(world: _World) -> list[Pair]:
    # The winner's exp(c q) underflows or overflows on one side of the pair only; the loser is 1000 / c below it.
    lowest = math.floor(_UNDERFLOW / world.exponent) + 1
    highest = math.floor(_OVERFLOW / world.exponent)
    behind = math.ceil(1000 / world.exponent)
    if max(-lowest, highest) + behind >= _LARGEST_MULTIPLE:
        return []
    underflow, overflow = np.array([lowest, lowest - behind]), np.array([highest, highest - behind])
    return [
        Pair("exponentials that underflow", underflow * world.unit, (underflow - 1) * world.unit),
        Pair("exponentials that overflow", overflow * world.unit, (overflow + 1) * world.unit),
    ]


def _ends(sensitivity: Fraction, world: _World) -> list[Pair]:
    ahead = world.unit * min(math.ceil(30 / world.exponent), _LARGEST_MULTIPLE)
    pairs = [
        Pair("negative zero", np.array([ahead, 0.0, 0.0]), np.array([ahead, -0.0, 0.0])),
        Pair("largest floats", np.array([_HUGE, 0, -_HUGE]), np.array([_HUGE, world.unit, -_HUGE])),
    ]
    if sensitivity >= Fraction(_TINY):  # for a smaller one no two of these are neighbours
        neighbour = [_TINY, _TINY] if world.monotonic else [0, _TINY]
        pairs.append(Pair("subnormal scores", np.array([_TINY, 0.0]), np.array(neighbour)))
    return pairs


def _integers(step: int, world: _World) -> list[Pair]:
    # Integers that float64 cannot distinguish, and differences that do not fit int64 or uint64.
    middle, far, quarter = 2**53, 2**60 + 128, 2**62
    top = quarter if world.monotonic else quarter + 1  # the difference wraps around on one side of the pair only
    ties = [7 * step, 7 * step]
    return [
        _whole("integer ties", ties, [step, -step], world, np.int64),
        _whole("unsigned ties", ties, [step, -step], world, np.uint64),
        _whole("integers beyond 2**53", [middle + 1, middle + 3], [1, -1], world, np.int64),
        _whole("integers beyond 2**60", [far, far + 1], [1, -1], world, np.int64),
        _whole("a difference of 2**63", [top, -quarter], [-1, 1], world, np.int64),
        _whole("a difference of 2**63, unsigned", [2**63, 0], [-1, 1], world, np.uint64),
    ]


def _whole(name: str, scores: list[int], moves: list[int], world: _World, kind: type[np.integer]) -> Pair:
    # A pair of integer vectors. If monotonic, only the first candidate moves.
    taken = [moves[0], 0] if world.monotonic else moves
    moved = [score + move for score, move in zip(scores, taken, strict=True)]
    return Pair(name, np.array(scores, kind), np.array(moved, kind))
