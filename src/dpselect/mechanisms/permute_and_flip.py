"""McKenna & Sheldon (2020), "Permute-and-Flip: A new mechanism for differentially private selection", Algorithm 1.

Visit the candidates in random order, flip a coin with probability of heads exp(-c (q* - q_r)) for each, and return the
first that is heads. The first head in a random order is a uniformly chosen head among all coins, so the kernel flips
them all and chooses one head.

Permute-and-flip is report noisy max with exponential noise (Ding et al. 2021). Its privacy loss is dominated by that of
Laplace noise (theorem 2 of docs/theory.md), and its worst case is known exactly (Proposition 4).
"""

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._scores import as_lengths, as_vector
from dpselect._types import Floats, Number, Positions, Selections
from dpselect.errors import InvalidValue
from dpselect.mechanisms.laws import (
    LARGEST_EXPONENT,
    WorstErrors,
    expected_visits,
    permute_and_flip_probabilities,
)
from dpselect.mechanisms.privacy import PERMUTE_AND_FLIP, PrivacyLoss
from dpselect.mechanisms.several import Events, SelectsSeveral
from dpselect.selection.draws import Draws
from dpselect.selection.flips import (
    choose_in_rows_steadily,
    choose_long,
    flip,
    flip_at_once,
    flip_listed,
    flip_long,
    flip_steadily,
)
from dpselect.selection.gaps import MIDDLE, Gaps, RowGaps, gaps_of
from dpselect.selection.leads import choose_with_gap
from dpselect.selection.proposals import Score, Watch, flip_lazily, lazy_exponents, log_rate_of, wait_for
from dpselect.selection.races import Arrival, Members, choose_in_runs, with_lowest_for_empty, without_empty

if TYPE_CHECKING:  # a selection of one candidate needs no streams
    from dpselect.mechanisms.summary import Summary

_EARLY_STEPS = 64
_TINY = 1e-300


def _loss_probability(exponent: float, log_n: float) -> float:
    # 1 - (1 - (1 - p)**n) / (n p), which cancels where n p is small: there by its series in p. Its k-th term is (n - 1)
    # ... (n - k) p**k / (k + 1)!, with alternating signs. n is known by n p only.
    heads, expected = math.exp(-exponent), math.exp(min(log_n - exponent, LARGEST_EXPONENT))
    if expected < 1e-2:
        terms = itertools.accumulate((heads * k - expected for k in range(1, 8)), lambda term, factor: term * factor)
        return -math.fsum(term / math.factorial(k) for k, term in enumerate(terms, start=2))
    if heads == 1:
        return -math.expm1(-log_n)
    slope = math.log1p(-heads) / heads if heads > _TINY else -1.0
    return 1 + math.expm1(expected * slope) / expected


def _choose_steadily(gaps: Gaps, draws: Draws) -> int:
    return flip_steadily(gaps, draws).choose(draws)


def choose_head(gaps: Gaps, draws: Draws) -> int:
    members = flip_listed(gaps, draws)
    if members is None:
        if gaps.size > MIDDLE:
            return choose_long(gaps, draws)
        members = flip_at_once(gaps, draws)
    return int(members[draws.index(members.size)])


def choose_head_in_rows(gaps: RowGaps, draws: Draws) -> Selections:
    members = flip_listed(gaps, draws)
    heads = np.sort(flip_at_once(gaps, draws) if members is None else members, kind="stable")
    rows, width = gaps.shape
    counts = np.bincount(heads // width, minlength=rows)
    firsts = np.cumsum(counts) - counts
    chosen: Selections = heads[firsts + draws.indices(counts)] % width
    return chosen


def choose_early(gaps: Gaps, draws: Draws, steps: int = _EARLY_STEPS) -> int:
    # The first head in a random order, which is drawn step by step (Algorithm 3 of the paper). After `steps` tails, the
    # rest is flipped at once: given the tails so far, the first head in the rest of the order is a uniform head among
    # the candidates not yet visited.
    visited: list[int] = []
    for candidate in itertools.islice(draws.order(gaps.size), steps):
        if flip(gaps, draws, np.array([candidate]))[0]:
            return candidate
        visited.append(candidate)
    heads = flip_long(gaps, draws)
    heads.discard(np.array(visited, dtype=np.int64))
    return heads.choose(draws)


class PermuteAndFlip(SelectsSeveral):
    """Select a candidate with a high score under epsilon-differential privacy, by permute-and-flip.

    Formal guarantees:
      * the output has exactly the distribution of the paper's Algorithm 1, for every finite input;
      * it is epsilon-differentially private if no difference of two scores changes by more than `score_range` between
        neighbours. This holds if no score changes by more than `sensitivity`, which is half of `score_range`; or, with
        `monotonic=True`, if all scores change in one direction by at most `sensitivity`, which is then `score_range`;
      * its expected error and every tail of its error are at most those of the exponential mechanism.

    Args:
        epsilon: the privacy loss of a selection; smaller is safer. An int, float, Fraction, Decimal or decimal string,
            taken exactly.
        sensitivity: the largest change of any single score when one person changes; 1 if omitted.
        monotonic: whether one person moves all scores in the same direction, as with counts of people.
        score_range: the largest change of the difference of two scores; replaces the other two.

    Raises:
        InvalidType: an argument is not a number, or `monotonic` is not True or False; from a method, the scores cannot
            be read or are not one-dimensional, or an argument has the wrong type.
        InvalidValue: a number is not positive and finite, or `score_range` is given with the other two; from a method,
            there are no scores, a score is not finite, or an argument is out of range.

    >>> PermuteAndFlip(epsilon=1).select([0, 0, 1000])
    2
    """

    name: ClassVar[str] = "permute-and-flip"
    title: ClassVar[str] = "permute-and-flip"
    loss: ClassVar[PrivacyLoss] = PERMUTE_AND_FLIP
    worst: ClassVar[WorstErrors] = WorstErrors(_loss_probability)
    has_runs: ClassVar[bool] = True
    far_below: ClassVar[Fraction | None] = Fraction(1, 2)
    has_steady: ClassVar[bool] = True
    has_summary: ClassVar[bool] = True
    has_one_shot: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    _arrival: ClassVar[type[Arrival]] = Arrival
    _choose = staticmethod(choose_head)
    _choose_rows = staticmethod(choose_head_in_rows)
    _probabilities = staticmethod(permute_and_flip_probabilities)
    _expected_evaluations = staticmethod(expected_visits)

    def select(self, scores: Any, *, early_exit: bool = False, steady: bool = False) -> int:
        """Return the index of the selected candidate, with randomness from the operating system.

        The selection is not recorded anywhere. Use `release` to charge a ledger first.

        Args:
            scores: one score per candidate: a list, NumPy array, pandas or polars Series or Arrow array. Secret.
            early_exit: walk in a random order and stop at the first head. This is faster if many are close to
                the best, but its run time reveals how many. Use it only where nobody can measure the time.
            steady: follow a schedule that does not depend on the scores, for integers and floats in arrays. It takes
                20 to 50 times as long as `argmax`. One timed run hardly distinguished neighbours; docs/limits.md says
                what was measured, and what is not covered.

        >>> PermuteAndFlip(epsilon=1).select([0, 0, 1000], steady=True)
        2
        """
        is_early, is_steady = _validate.boolean(early_exit=early_exit), _validate.boolean(steady=steady)
        if is_early and is_steady:
            raise InvalidValue("early_exit and steady exclude each other: a run that ends early is not steady")
        choose = choose_early if is_early else _choose_steadily if is_steady else choose_head
        return choose(gaps_of(as_vector(scores), self._rate, steady=is_steady), Draws())

    def select_with_gap(self, scores: Any) -> tuple[int, int]:
        """Return the index of the selected candidate, and floor(rate * gap), drawn exactly from their joint law.

        The gap is that of the noisy scores, in the form of the mechanism that adds exponential noise: how far the
        winner is above the second. The pair is epsilon-differentially private, like the index alone. If the winner is
        not a best candidate, rate * gap is exponential with mean one, so exp(-floor) bounds the p-value of "the winner
        is the best" from above (theorem 21 of docs/theory.md). As a part of other budgets than pure epsilon, the pair
        costs more than the index alone: what any release of this epsilon costs.

        Args:
            scores: one score per candidate, of which there are at least two. Secret.

        >>> index, steps = PermuteAndFlip(epsilon=1).select_with_gap([0, 0, 1000])
        >>> index, steps > 400
        (2, True)
        """
        vector = as_vector(scores)
        if len(vector) < 2:
            raise InvalidValue("scores must have at least two candidates: a single one has no gap")
        return choose_with_gap(gaps_of(vector, self._rate), Draws())

    def select_rows(self, scores: Any, *, steady: bool = False) -> Selections:
        """Return the index of an independent selection for each row of a matrix, as int64.

        Each row is a separate selection and costs epsilon. What all of them cost one person depends on how many rows
        that person can influence.

        Args:
            scores: one row of scores per selection: a two-dimensional array or a list of rows. Secret.
            steady: follow a schedule that does not depend on the scores, as in `select`.

        >>> PermuteAndFlip(epsilon=1).select_rows([[0, 1000], [1000, 0]]).tolist()
        [1, 0]
        """
        if not _validate.boolean(steady=steady):
            return super().select_rows(scores)
        return self._selected_rows(scores, _choose_steadily, choose_in_rows_steadily, steady=True)

    def select_runs(self, scores: Any, lengths: Any, *, steady: bool = False) -> int:
        """Return a position in the vector in which each score is repeated, as `select` would on that vector.

        The cost depends on the number of runs, hardly on their lengths, which are integers of any size: a run may
        represent 10**500 candidates. With `steady` and lengths below 2**64 it depends on nothing else; without,
        unlikely runs are skipped.

        Args:
            scores: one score per run of equal scores. Secret.
            lengths: the number of candidates per run; zero is allowed, but not for all. Secret if data-dependent.
            steady: read every run, even unlikely ones.

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

        The output has exactly the distribution of `select` for every public `best`. If some scores exceed it, that
        of `select` on min(score, best). It stops early if `best` is nearly attained; otherwise it may need all
        scores (see `analysis.expected_evaluations`). It needs a mechanism with a sensitivity, not a score range.

        The number of computed scores, and the time they took, depend on the scores and are not protected. Use this only
        where nobody can observe them.

        Args:
            score: computes the score of a candidate from its index; called at most once for each.
            n: the number of candidates. Public.
            best: an upper bound on the scores. It is public and must not be taken from the data.
            watch: called with the number of computed scores after each one. This number is not protected.

        >>> PermuteAndFlip(epsilon=1).select_lazily(lambda index: 1000 if index == 2 else 0, 5, best=1000)
        2
        """
        exponent, count = lazy_exponents(score, n, self.rate, watch, self.claim.by_range, best=best)
        return flip_lazily(exponent, count, Draws())

    def summary(self, *, steady: bool = False) -> "Summary":
        """Return an empty summary, which takes candidates block by block and merges with others.

        Args:
            steady: flip the coins of each block as `select` does with that option. The time of a merge never depends
                on the scores.

        >>> summary = PermuteAndFlip(epsilon=1).summary()
        >>> summary.update([0, 0, 1000], labels=["a", "b", "c"])
        >>> summary.result()
        'c'
        """
        from dpselect.mechanisms.summary import Summary  # noqa: PLC0415 - imported when first used

        return Summary(self, steady=_validate.boolean(steady=steady))

    def _first_event(self, events: Events, mass: Fraction, draws: Draws) -> tuple[int, int]:
        return wait_for(events, log_rate_of(mass), draws)

    def _choose_set(self, gaps: Gaps, lengths: Positions, k: int, draws: Draws) -> Members:
        from dpselect.selection.sets import choose_set_by_waiting  # noqa: PLC0415 - imported when first used

        return choose_set_by_waiting(gaps, lengths, k, draws)

    @staticmethod
    def noise(generator: "np.random.Generator", shape: tuple[int, ...]) -> Floats:
        """Return exponential noise (Ding et al. 2021). See `MechanismBase.noise`."""
        return generator.standard_exponential(shape)
