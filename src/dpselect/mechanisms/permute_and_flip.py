"""McKenna & Sheldon (2020), "Permute-and-Flip: A new mechanism for differentially private selection", Algorithm 1.

Visit the candidates in random order, flip a coin with probability of heads exp(-c (q* - q_r)) for each, and return the
first that is heads. The first head in a random order is a uniformly chosen head among all coins, so the kernel flips
them all and chooses one head.

Permute-and-flip is report noisy max with exponential noise (Ding et al. 2021). Its privacy loss is dominated by that of
Laplace noise (theorem 2 of docs/theory.md), and its worst case is known exactly (Proposition 4).
"""

import itertools
import math
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
from dpselect.mechanisms.privacy import LAPLACE, PrivacyLoss
from dpselect.mechanisms.runs import choose_in_runs, with_lowest_for_empty, without_empty
from dpselect.mechanisms.steady import choose_in_rows_steadily, choose_steadily
from dpselect.mechanisms.worst import WorstErrors, logarithmic_averages, logarithmic_tail
from dpselect.probability.flip_integral import expected_visits, permute_and_flip_probabilities
from dpselect.sampling.bits import random_order
from dpselect.sampling.draws import Draws
from dpselect.streaming.summary import Summary

_EARLY_STEPS = 64


def _loss_probability(exponent: float, n: int) -> float:
    """1 - (1 - (1 - p)**n) / (n p), which cancels where n p is small: there by its series in p."""
    heads = math.exp(-exponent)
    if n * heads < 1e-2:
        return math.fsum(-math.comb(n, k + 1) * (-heads) ** k / n for k in range(1, min(n, 8)))
    if heads == 1:
        return 1 - 1 / n
    return 1 + math.expm1(n * math.log1p(-heads)) / (n * heads)


class PermuteAndFlip(MechanismBase):
    """Select a candidate with a high score under epsilon-differential privacy, by permute-and-flip.

    Formal guarantees:
      * the output has exactly the distribution of the paper's Algorithm 1, for every finite input;
      * it is epsilon-differentially private if no difference of two scores changes by more than `score_range` between
        neighbours. That is so if no score changes by more than `sensitivity`, half of it; or, with `monotonic=True`,
        if all scores also change in the same direction, by all of it;
      * its expected error and every tail of its error are at most those of the exponential mechanism.

    Args:
        epsilon: the privacy of one selection; smaller is safer. An int, float, Fraction, Decimal or decimal string,
            kept exactly.
        sensitivity: how much one person can change any single score; 1 if not given.
        monotonic: whether one person moves all scores in the same direction, as in counts of people.
        score_range: how much one person can change any difference of two scores, instead of the other two.

    Raises:
        InvalidType: a number is not a number, or `monotonic` is not True or False.
        InvalidValue: a number is not positive and finite, or `score_range` is given with the other two.

    >>> PermuteAndFlip(epsilon=1).select([0, 0, 1000])
    2
    """

    name: ClassVar[str] = "permute-and-flip"
    title: ClassVar[str] = "permute-and-flip"
    loss: ClassVar[PrivacyLoss] = LAPLACE
    worst: ClassVar[WorstErrors] = WorstErrors(_loss_probability, logarithmic_averages, logarithmic_tail, is_exact=True)

    def select(self, scores: Any, *, early_exit: bool = False, steady: bool = False) -> int:
        """Return the index of the selected candidate, with randomness from the operating system.

        The selection is not recorded anywhere. Charge a ledger before you show it to others.

        Args:
            scores: one score for each candidate: a list, NumPy array, pandas or polars Series or Arrow array. Secret.
            early_exit: walk a random order and stop at the first head. It is faster where many candidates are close to
                the best, and its run time reveals how many: use it only where nobody can time you.
            steady: follow a schedule that does not depend on the scores, for integers and floats in arrays. It costs
                about fifty times `argmax`. One timed run did not tell neighbours apart; docs/limits.md has what was
                measured, and what is not covered.

        Returns:
            The position of the selected candidate, counted from 0.

        Raises:
            InvalidType: the scores cannot be read as numbers of one dimension.
            InvalidValue: there is no score, a score is not finite, or both options are set.

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
        """Return the index of an independent selection for each row of a matrix.

        Each row is a selection of its own, and costs epsilon. What all of them cost one person depends on how many rows
        that person can influence.

        Args:
            scores: a row of scores for each selection: a two-dimensional array, or a list of rows. Secret.
            steady: follow a schedule that does not depend on the scores, as in `select`.

        Returns:
            The position of the selected candidate of each row, as int64.

        Raises:
            InvalidType: the scores cannot be read as numbers of two dimensions.
            InvalidValue: a row has no score, or a score is not finite.

        >>> PermuteAndFlip(epsilon=1).select_rows([[0, 1000], [1000, 0]]).tolist()
        [1, 0]
        """
        if not _validate.boolean(steady=steady):
            return super().select_rows(scores)
        return self._selected_rows(scores, choose_steadily, choose_in_rows_steadily, steady=True)

    def select_runs(self, scores: Any, lengths: Any, *, steady: bool = False) -> int:
        """Return a position of the vector in which each score is repeated, as `select` would on that vector.

        The cost depends on the number of runs, not on their lengths: a run may stand for 10**18 candidates. With
        `steady` it depends on nothing else; without, unlikely runs are skipped.

        Args:
            scores: one score for each run of equal scores. Secret.
            lengths: how many candidates each run has; zero is allowed, but not for all. Secret, if it depends on data.
            steady: read every run, however unlikely.

        Returns:
            A position in the long vector, counted from 0.

        Raises:
            InvalidType: the scores or the lengths cannot be read.
            InvalidValue: there is no candidate, a score is not finite, a length is negative, or there are not as many
                lengths as scores.

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

        How many scores were computed, and how long that took, depends on the scores, and is not protected: use it only
        where nobody can see that.

        Args:
            score: computes the score of a candidate from its index; called at most once for each.
            n: how many candidates there are. Public.
            best: the largest score, or a bound of it. Public: it must not be taken from the data.
            watch: is called with the number of scores computed so far after each; it sees what is not protected.

        Returns:
            The index of the selected candidate.

        Raises:
            InvalidType: `score` or `watch` is not callable, a score is not a number, or `n` is not an integer.
            InvalidValue: `n` is not positive, a score is not finite, or the mechanism was made with a score range.

        >>> PermuteAndFlip(epsilon=1).select_lazily(lambda index: 1000 if index == 2 else 0, 5, best=1000)
        2
        """
        scores, count = lazy_scores(score, n, self.claim, self.rate, watch, best=best)
        return flip_lazily(scores.exponent, count, Draws())

    def summary(self, *, steady: bool = False) -> Summary:
        """Return an empty summary, which sees candidates block by block and merges with others.

        Args:
            steady: flip the coins of each block as `select` does with that option. How long merging takes never depends
                on the scores.

        Returns:
            A summary that has seen no candidate.

        Raises:
            InvalidType: `steady` is not True or False.

        >>> summary = PermuteAndFlip(epsilon=1).summary()
        >>> summary.update([0, 0, 1000], labels=["a", "b", "c"])
        >>> summary.result()
        'c'
        """
        return Summary(self, steady=_validate.boolean(steady=steady))

    def _choose(self, gaps: Gaps, draws: Draws) -> int:
        return choose_head(gaps, draws)

    def _choose_rows(self, gaps: RowGaps, draws: Draws) -> Selections:
        return choose_head_in_rows(gaps, draws)

    def _probabilities(self, exponents: Floats) -> Floats:
        return permute_and_flip_probabilities(exponents)

    def _expected_evaluations(self, exponents: Floats) -> float:
        return expected_visits(exponents)

    @staticmethod
    def noise(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Exponential noise (Ding et al. 2021). For simulations in floats only."""
        return generator.standard_exponential(shape)


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
