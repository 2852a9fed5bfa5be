"""What every selection mechanism offers, and the one way from scores to a selection.

Public parameters are fields; scores are arguments.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._scores import as_rows, as_vector, copied
from dpselect._types import Floats, Selections
from dpselect.accounting.charge import What
from dpselect.errors import InvalidType, InvalidValue, NotConverged
from dpselect.mechanisms.gaps import SHORT, Gaps, RowGaps, gaps_of
from dpselect.mechanisms.parameters import Parameters
from dpselect.mechanisms.privacy import Guarantee
from dpselect.release import Answer, Payer, Release, scores_digest
from dpselect.sampling.draws import Draws


@runtime_checkable
class Mechanism(Protocol):
    """A differentially private selection mechanism."""

    @property
    def epsilon(self) -> Fraction:
        """Return the privacy parameter, exactly."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """Return how much one person can change any single score."""
        ...

    @property
    def monotonic(self) -> bool:
        """Return whether one person moves all scores in the same direction."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """Return what one selection guarantees."""
        ...

    def select(self, scores: Any) -> int:
        """Return the index of the selected candidate."""
        ...

    def select_rows(self, scores: Any) -> npt.NDArray[np.int64]:
        """Return an independent selection for each row."""
        ...

    def pmf(self, scores: Any) -> npt.NDArray[np.float64]:
        """Return the probability of selecting each candidate."""
        ...

    def simulate(self, scores: Any, draws: int, seed: int | None = None) -> npt.NDArray[np.int64]:
        """Return many draws in floats, for research only."""
        ...


_CHUNK = 32 * 1024
# Nothing forces the computed probabilities to sum to one, so that their sum is a check of all of them.
_SUM_TOLERANCE = 1e-12


class MechanismBase(Parameters):
    """A mechanism that selects by the gaps between the scores and the best one."""

    def select(self, scores: Any, *, steady: bool = False) -> int:
        """Return the index of the selected candidate, with randomness from the operating system.

        Only permute-and-flip can be `steady`, that is, take a time that does not depend on the scores.
        """
        if _validate.boolean(steady=steady):
            raise InvalidValue(f"{type(self).__name__} has no steady schedule: use PermuteAndFlip, or leave steady out")
        return self._choose(gaps_of(as_vector(scores), self._rate), Draws())

    def release(
        self,
        scores: Any,
        labels: Sequence[Any] | None = None,
        *,
        ledger: Payer | None = None,
        what: What = "select",
        request_id: str | None = None,
    ) -> Answer:
        """Return a private selection as an answer that a ledger has recorded before it was drawn.

        Args:
            scores: one score per candidate, as for `select`. They are secret.
            labels: the public names of the candidates, one for each score. The answer's value is then the label of
                the selected candidate; without labels it is the index.
            ledger: the `Ledger` that is charged before anything is drawn. None records nothing.
            what: the question for the ledger: a text, or a mapping of public parameters. Never put a score here.
            request_id: makes a retry safe. The same id with the same question and scores returns the stored answer and
                costs nothing. It needs a ledger.

        Returns:
            The answer: its value, what it guarantees, and with a ledger the entry and a receipt.

        Raises:
            InvalidValue, InvalidType: an argument is wrong; nothing was charged.
            BudgetExceeded: the budget is too small; nothing was drawn.
            RequestConflict: the request id was used for another question, or on other scores.
            LedgerError: the ledger cannot be used; nothing was drawn.

        >>> import tempfile
        >>> from dpselect import Ledger, PermuteAndFlip
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/survey.ledger", budget="1")
        ...     answer = PermuteAndFlip("0.1").release(
        ...         [3, 10**6], ["tea", "coffee"], ledger=ledger, what="favourite drink"
        ...     )
        ...     answer.value, answer.ledger_id, ledger.remaining
        ('coffee', 1, Fraction(9, 10))
        """
        vector = copied(as_vector(scores))  # so that what is checked, digested and drawn from is the same
        gaps_of(vector, self._rate)  # refuses scores that are not finite, before anything is charged
        names = None if labels is None else _labels(labels, len(vector))
        asked = {"question": what} if isinstance(what, str) else what
        counted = {"candidates": len(vector), **asked} if isinstance(asked, Mapping) else asked
        answer = Release(counted, self).draw(
            lambda: self.select(vector), ledger=ledger, request_id=request_id, content=lambda: scores_digest(vector)
        )
        return answer if names is None else replace(answer, value=names[answer.value])

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


def _labels(labels: Any, count: int) -> list[Any]:
    """The public names of the candidates, as Python's own objects."""
    names = labels.tolist() if hasattr(labels, "tolist") else labels
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise InvalidType(f"labels must be a list with one label per score, got {type(labels).__name__}")
    listed = list(names)
    if len(listed) != count:
        raise InvalidValue("labels must have one label per score: give both the same length")
    return listed


def _generator(seed: Any) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else _validate.count(seed=seed))
