"""McKenna & Sheldon (2020), "Permute-and-Flip: A new mechanism for differentially private selection", Algorithm 1.

Visit the candidates in random order, flip a coin with probability of heads exp(-c (q* - q_r)) for each, and return the
first that is heads. The first head in a random order is a uniformly chosen head among all coins, so the kernel flips
them all and chooses one head. Every candidate is visited, whatever the coins say.
"""

import itertools
from typing import Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._scores import as_lengths, as_vector
from dpselect._types import Floats, Number, Selections
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.flips import ALL, flip, flip_long
from dpselect.mechanisms.gaps import SHORT, Gaps, RowGaps, gaps_of
from dpselect.mechanisms.lazy import Score, Watch, flip_lazily, lazy_scores
from dpselect.mechanisms.privacy import Guarantee, laplace_zcdp
from dpselect.mechanisms.runs import choose_in_runs, with_lowest_for_empty, without_empty
from dpselect.mechanisms.steady import choose_in_rows_steadily, choose_steadily
from dpselect.probability.flip_integral import permute_and_flip_probabilities
from dpselect.sampling.bits import random_order
from dpselect.sampling.draws import Draws
from dpselect.streaming.summary import Summary

_EARLY_STEPS = 64


class PermuteAndFlip(MechanismBase):
    """Select a candidate with a high score under epsilon-differential privacy, by permute-and-flip.

    Formal guarantees:
      * the output has exactly the distribution of the paper's Algorithm 1, for every finite input;
      * it is epsilon-differentially private if no difference of two scores changes by more than `score_range` between
        neighbours. That is so if no score changes by more than `sensitivity`, half of it; or, with `monotonic=True`,
        if besides all scores change in the same direction, by all of it;
      * its expected error and every tail of its error are at most those of the exponential mechanism.

    >>> PermuteAndFlip(epsilon=1).select([0, 0, 1000])
    2
    """

    name: ClassVar[str] = "permute-and-flip"

    def select(self, scores: Any, *, early_exit: bool = False, steady: bool = False) -> int:
        """Return the index of the selected candidate, with randomness from the operating system.

        Args:
            scores: one score for each candidate. Secret.
            early_exit: walk a random order and stop at the first head. It is faster where many candidates are close to
                the best, and its run time reveals how many: use it only where nobody can time you.
            steady: follow a schedule that does not depend on the scores, for integers and floats in arrays. It costs
                about fifty times `argmax`. One timed run did not tell neighbours apart; docs/limits.md has what was
                measured, and what is not covered.

        Returns:
            The position of the selected candidate.

        Raises:
            InvalidValue: if there is no score, a score is not finite, or both options are set.

        >>> PermuteAndFlip(epsilon=1).select([0, 0, 1000], steady=True)
        2
        """
        if _validate.boolean(early_exit=early_exit) and _validate.boolean(steady=steady):
            raise InvalidValue("early_exit and steady exclude each other: a run that ends early is not steady")
        if _validate.boolean(steady=steady):
            return choose_steadily(gaps_of(as_vector(scores), self._rate, steady=True), Draws())
        choose = choose_early if early_exit else choose_head
        return choose(gaps_of(as_vector(scores), self._rate), Draws())

    def select_rows(self, scores: Any, *, steady: bool = False) -> Selections:
        """Return the index of an independent selection for each row of a matrix; `steady` as in `select`."""
        if not _validate.boolean(steady=steady):
            return super().select_rows(scores)
        return self._selected_rows(scores, choose_steadily, choose_in_rows_steadily, steady=True)

    def select_runs(self, scores: Any, lengths: Any, *, steady: bool = False) -> int:
        """Return a position of the vector in which each score is repeated so many times, as `select` would.

        The cost depends on the number of runs, not on their lengths: a run may stand for 10**18 candidates. With
        `steady` it depends on nothing else; without, unlikely runs are skipped.

        >>> PermuteAndFlip(epsilon=1).select_runs([0, 1000, 0], [10**15, 1, 10**15]) == 10**15
        True
        """
        vector = as_vector(scores)
        counts = as_lengths(lengths, len(vector))
        if _validate.boolean(steady=steady) and isinstance(vector, np.ndarray):
            gaps = gaps_of(with_lowest_for_empty(vector, counts), self._rate, steady=True)
            return choose_in_runs(gaps, counts, Draws(), steady=True)
        values, counts = without_empty(vector, counts)
        return choose_in_runs(gaps_of(values, self._rate), counts, Draws())

    def select_lazily(self, score: Score, n: int, *, best: Number, watch: Watch | None = None) -> int:
        """Return the selected index of n candidates, computing scores only until the choice is made.

        The output has exactly the distribution of `select` for every public `best`: if some scores exceed it, that
        of `select` on min(score, best). It stops early if `best` is attained or nearly so; otherwise it may need all
        scores (see `analysis.expected_evaluations`).

        How many scores were computed, and how long it took, tells of the scores, and is not protected: use it only
        where nobody can see that.

        Args:
            score: computes the score of a candidate from its index; called at most once for each.
            n: how many candidates there are. Public.
            best: the largest score, or a bound of it. Public: it must not be taken from the data.
            watch: is told how many scores are computed after each; it sees what is not protected.

        >>> PermuteAndFlip(epsilon=1).select_lazily(lambda index: 1000 if index == 2 else 0, 5, best=1000)
        2
        """
        scores, count = lazy_scores(score, n, self.claim, self.rate, watch, best=best)
        return flip_lazily(scores.exponent, count, Draws())

    def summary(self, *, steady: bool = False) -> Summary:
        """Return an empty summary, which sees candidates block by block and merges with others.

        With `steady` the coins of each block are flipped as `select` flips them with that option. What merging takes
        does not depend on the scores.
        """
        return Summary(self, steady=_validate.boolean(steady=steady))

    @property
    def guarantee(self) -> Guarantee:
        """Return pure epsilon, and the zCDP of the Laplace mechanism, which dominates permute-and-flip."""
        return Guarantee(self.epsilon, laplace_zcdp(self.epsilon))

    def _choose(self, gaps: Gaps, draws: Draws) -> int:
        return choose_head(gaps, draws)

    def _choose_rows(self, gaps: RowGaps, draws: Draws) -> Selections:
        return choose_head_in_rows(gaps, draws)

    def _probabilities(self, exponents: Floats) -> Floats:
        return permute_and_flip_probabilities(exponents)


def choose_head(gaps: Gaps, draws: Draws) -> int:
    """A uniform head among the coins of all candidates."""
    if gaps.size > SHORT:
        return flip_long(gaps, draws).choose(draws)
    members = draws.finish(gaps.exponents(ALL), prefixes=0, depths=0).nonzero()[0]
    return int(members[draws.index(members.size)])


def choose_head_in_rows(gaps: RowGaps, draws: Draws) -> Selections:
    """A uniform head in each row."""
    heads = flip(gaps, draws)
    rows, width = gaps.shape
    counts = np.count_nonzero(heads.reshape(rows, width), axis=1)
    firsts = np.cumsum(counts) - counts
    chosen: Selections = np.flatnonzero(heads)[firsts + draws.indices(counts)] % width
    return chosen


def choose_early(gaps: Gaps, draws: Draws, steps: int = _EARLY_STEPS) -> int:
    """The first head of a random order, which is drawn as it is walked (Algorithm 3 of the paper).

    After `steps` tails the rest is flipped in one go: given the tails so far, the first head of what is left of the
    order is a uniform head among the candidates that were not visited.
    """
    visited: list[int] = []
    for candidate in itertools.islice(random_order(gaps.size, draws.index), steps):
        if flip(gaps, draws, np.array([candidate]))[0]:
            return candidate
        visited.append(candidate)
    heads = flip_long(gaps, draws)
    heads.discard(np.array(visited, dtype=np.int64))
    return heads.choose(draws)
