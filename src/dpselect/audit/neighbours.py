"""Neighbours: two score vectors, or two inputs of any kind, that one person can turn into each other."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect._scores import exact_scores
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import Claim

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
    scores: Any
    neighbour: Any

    def __repr__(self) -> str:
        return f"Pair({self.name!r}, {len(self.scores)} candidates)"

    @property
    def both(self) -> tuple[Any, Any]:
        """Return the two vectors."""
        return self.scores, self.neighbour

    def risers(self) -> list[frozenset[Hashable]]:
        """Return sets of candidates that rise more than all others. For regular mechanisms they reveal the most.

        Returns:
            One set for each of the largest different moves, except the last.
        """
        moves = self.moves()
        levels = sorted(set(moves), reverse=True)[:_MOST_LEVELS]
        return [frozenset(i for i, move in enumerate(moves) if move >= level) for level in levels[:-1]]

    def moves(self) -> list[Fraction]:
        """Return by how much each score rises from `scores` to `neighbour`.

        Returns:
            One exact number for each candidate.
        """
        return [b - a for a, b in zip(exact_scores(self.scores), exact_scores(self.neighbour), strict=True)]


@dataclass(frozen=True, repr=False, eq=False)
class InputPair:
    """Two inputs of any kind. The user vouches that they are neighbours."""

    name: str
    both: tuple[Any, Any]

    def __repr__(self) -> str:
        return f"InputPair({self.name!r})"

    def risers(self) -> list[frozenset[Hashable]]:
        """Return no sets: how the inputs differ is not known."""
        return []


def checked_inputs(inputs: Any) -> list[InputPair]:
    """The pairs of inputs that the user gave: a list of tuples (data, neighbour), or a dict from names to tuples.

    A tuple of pairs is refused because it could also be one pair of inputs that are tuples.
    """
    if not isinstance(inputs, (list, Mapping)):
        raise InvalidType(
            f"inputs must be a list of tuples (data, neighbour), or a dict of them by name, got {type(inputs).__name__}"
        )
    named = inputs.items() if isinstance(inputs, Mapping) else ((f"pair {i}", p) for i, p in enumerate(inputs, start=1))
    checked = [_input_pair(str(name), pair) for name, pair in named]
    if not checked:
        raise InvalidValue("inputs must have at least one pair (data, neighbour)")
    return checked


def _input_pair(name: str, pair: Any) -> InputPair:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidType(f"inputs: {name!r} must be a tuple (data, neighbour), got {type(pair).__name__}")
    return InputPair(name, pair)


def checked_pairs(pairs: Iterable[Any], claim: Claim) -> list[Pair]:
    """The pairs that the user gave, each a `Pair` or (scores, neighbour); refuses vectors that are not neighbours."""
    if isinstance(pairs, (str, bytes, dict)) or not isinstance(pairs, Iterable):
        raise InvalidType(f"pairs must be a list of (scores, neighbour), got {type(pairs).__name__}")
    checked = [_named(pair, number) for number, pair in enumerate(pairs, start=1)]
    if not checked:
        raise InvalidValue("pairs must have at least one pair of score vectors")
    for pair in checked:
        _check(pair, claim)
    return checked


def _named(pair: Any, number: int) -> Pair:
    if isinstance(pair, Pair):
        return pair
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InvalidType(f"pairs: pair {number} must be (scores, neighbour), two vectors of scores")
    return Pair(f"pair {number}", *pair)


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
