"""The record that the mechanisms share: public parameters, and the one way from scores to a selection."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._exact import shortest_text
from dpselect._scores import as_rows, as_vector, copied
from dpselect.errors import InvalidValue, NotConverged
from dpselect.mechanisms.claim import Claim, stated
from dpselect.mechanisms.gaps import SHORT, Gaps, Rate, RowGaps, gaps_of
from dpselect.mechanisms.guarantee import Guarantee
from dpselect.probability.grid import Floats
from dpselect.sampling.draws import Draws

Number = int | float | Fraction | Decimal | str
Selections = npt.NDArray[np.int64]

_CHUNK = 32 * 1024
# Nothing forces the computed probabilities to sum to one, so that their sum is a check of all of them.
_SUM_TOLERANCE = 1e-12


@dataclass(frozen=True, init=False, repr=False)
class SelectionRecord(ABC):
    """Public parameters, kept exactly. All of its fields may be shown to anybody.

    Two records are equal if they state the same. A score range of two draws as a sensitivity of one does, and is
    another statement about the data.
    """

    epsilon: Fraction
    claim: Claim

    def __init__(
        self,
        epsilon: Number,
        sensitivity: Number | None = None,
        monotonic: bool = False,
        *,
        score_range: Number | None = None,
    ) -> None:
        """State epsilon, and how far neighbours are apart.

        Give either `score_range`, or `sensitivity` (1 if not given) and `monotonic`.
        """
        object.__setattr__(self, "epsilon", _validate.exact_positive(epsilon=epsilon))
        object.__setattr__(self, "claim", stated(sensitivity, monotonic, score_range))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={shortest_text(self.epsilon)}, {self.claim.code()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the public parameters only, not the tables that follow from them."""
        return _made, (type(self), self.epsilon, self.claim.arguments())

    @property
    def sensitivity(self) -> Fraction:
        """Return how much one person can change any single score; half of the score range if that was stated."""
        return self.claim.sensitivity

    @property
    def monotonic(self) -> bool:
        """Return whether one person moves all scores in the same direction."""
        return self.claim.monotonic

    @property
    def score_range(self) -> Fraction:
        """Return how much one person can change any difference of two scores."""
        return self.claim.score_range

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return what one selection guarantees."""

    @cached_property
    def _rate(self) -> Rate:
        return Rate(self.claim.rate(self.epsilon))

    @property
    def rate(self) -> Fraction:
        """Return the factor c of exp(-c (q* - q)): epsilon / score_range."""
        return self._rate.exact

    def select(self, scores: Any, *, steady: bool = False) -> int:
        """Return the index of the selected candidate, with randomness from the operating system.

        Only permute-and-flip can be `steady`, that is, take a time that does not depend on the scores.
        """
        if _validate.boolean(steady=steady):
            raise InvalidValue(f"{type(self).__name__} has no steady schedule: use PermuteAndFlip, or leave steady out")
        return self._choose(gaps_of(as_vector(scores), self._rate), Draws())

    def select_rows(self, scores: Any) -> Selections:
        """Return the index of an independent selection for each row of a matrix."""
        return self._selected_rows(scores, self._choose, self._choose_rows)

    def _selected_rows(
        self,
        scores: Any,
        choose: Callable[[Gaps, Draws], int],
        choose_rows: Callable[[RowGaps, Draws], Selections],
        steady: bool = False,
    ) -> Selections:
        """Select in each row: in many short rows at once, or row by row."""
        rows, draws = as_rows(scores), Draws()
        if not (isinstance(rows, np.ndarray) and rows.shape[1] <= SHORT and self._rate.is_moderate):
            return np.array([choose(gaps_of(row, self._rate, steady=steady), draws) for row in rows], dtype=np.int64)
        selected = np.empty(len(rows), np.int64)
        step = max(1, _CHUNK // rows.shape[1])
        for start in range(0, len(rows), step):
            chunk = RowGaps(rows[start : start + step], self._rate, steady=steady)
            selected[start : start + step] = choose_rows(chunk, draws)
        return selected

    def simulate(self, scores: Any, draws: int, seed: int | None = None) -> Selections:
        """Return many independent selections, drawn in floats from a seeded generator.

        For research on public or synthetic scores only. Never release an answer of `simulate`: its floats and its
        generator carry no privacy guarantee.
        """
        count, generator = _validate.count(draws=draws), _generator(seed)
        probabilities = self.pmf(scores)
        # How often each candidate is drawn, then the draws in random order: constant time a draw.
        often = generator.multinomial(count, probabilities / probabilities.sum())
        return generator.permutation(np.repeat(np.arange(often.size), often))

    def pmf(self, scores: Any) -> Floats:
        """Return the probability of selecting each candidate, in float64, within a relative 1e-12.

        The probabilities of private scores are themselves private: for public, synthetic or the owner's own scores.
        """
        gaps = gaps_of(copied(as_vector(scores)), self._rate)
        probabilities = self._probabilities(gaps.approximate(gaps.at(slice(None))))
        if not abs(probabilities.sum() - 1) <= _SUM_TOLERANCE:
            raise NotConverged("the probabilities do not sum to one: please report the shape of these scores")
        return probabilities

    @abstractmethod
    def _choose(self, gaps: Gaps, draws: Draws) -> int:
        """Select one candidate."""

    @abstractmethod
    def _choose_rows(self, gaps: RowGaps, draws: Draws) -> Selections:
        """Select one candidate in each row."""

    @abstractmethod
    def _probabilities(self, exponents: Floats) -> Floats:
        """The probability of each candidate from its exponent c (q* - q)."""


def _made(kind: type[SelectionRecord], epsilon: Fraction, arguments: dict[str, Any]) -> SelectionRecord:
    return kind(epsilon, **arguments)


def _generator(seed: Any) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else _validate.count(seed=seed))
