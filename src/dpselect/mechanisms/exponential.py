"""McSherry & Talwar (2007), the exponential mechanism: Pr[r] proportional to exp(c q_r).

It is the coin of permute-and-flip drawn with replacement (McKenna & Sheldon 2020, Algorithm 2): propose a uniform
candidate, accept it with probability exp(-c (q* - q_r)), repeat. If few candidates are hot, nearly all proposals
would be refused, so a proposal comes from an envelope: weight 1 on hot candidates and crowds, 2**-8 on the others,
which are accepted with probability 2**8 exp(-c (q* - q_r)).

The log-ratios of its probabilities span a range of at most epsilon (Durfee & Rogers 2019).
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpselect._scores import as_lengths, as_vector, copied
from dpselect._types import Flags, Floats, Number, Positions, Selections
from dpselect.mechanisms.laws import LARGEST_EXPONENT, WorstErrors, log_rivals, softmax
from dpselect.mechanisms.privacy import BOUNDED_RANGE, PrivacyLoss
from dpselect.mechanisms.several import Events, SelectsSeveral
from dpselect.selection.draws import Draws
from dpselect.selection.flips import Hot, find_hot, flip
from dpselect.selection.gaps import SHORT, UNIT_RATE, ZEROS, Gaps, RowGaps, gaps_of
from dpselect.selection.proposals import Score, Watch, choose_by_tickets, lazy_exponents, reject_lazily
from dpselect.selection.races import Arrival, Members, Tick, without_empty

_FIRST_BATCH, _LARGEST_BATCH = 256, 65536
_MOST_TRIES = 64
_LEAST_PATIENCE = 1 << 20


def _loss_probability(exponent: float, log_n: float) -> float:
    # The probability that one of the n - 1 rivals, of weight exp(-exponent) each, wins against the best candidate.
    return 1 / (1 + math.exp(min(exponent - log_rivals(log_n), LARGEST_EXPONENT)))


def choose_by_exponents(exponents: list[Fraction], draws: Draws) -> int:
    return choose_one(gaps_of([-exponent for exponent in exponents], UNIT_RATE), draws)


def choose_one(gaps: Gaps, draws: Draws) -> int:
    return choose_by_envelope(gaps, draws) if gaps.size > SHORT else choose_by_rejection(gaps, draws)


def choose_by_rejection(gaps: Gaps, draws: Draws, batch: int = _FIRST_BATCH) -> int:
    # The first accepted one of uniform proposals. On average there are at most gaps.size of them.
    while True:
        proposals = draws.indices_below(gaps.size, batch)
        accepted = flip(gaps, draws, proposals)
        if accepted.any():
            return int(proposals[accepted.argmax()])
        batch = min(2 * batch, _LARGEST_BATCH)


def choose_by_envelope(gaps: Gaps, draws: Draws, batch: int = _FIRST_BATCH) -> int:
    # The first accepted one of proposals from the envelope. A proposal is one of `envelope_size` equal tickets.
    #
    # A hot candidate, and every member of a crowd, has 2**8 tickets. Every candidate has one more; a hot one or a
    # member of a crowd that is drawn by its extra ticket is refused.
    #
    # The best candidate is always accepted, so a proposal is accepted with probability at least
    # p = 2**8 / envelope_size. After 64 / p proposals without success (probability below e**-64), the best candidate
    # may be gone because the scores changed. Then start over with a copy of them. This changes no probability because
    # proposals are independent.
    hot = find_hot(gaps)
    hot_tickets = (sum(stop - start for start, stop in hot.crowds) + hot.positions.size) << ZEROS
    patience = max((hot_tickets + gaps.size) << 6 >> ZEROS, _LEAST_PATIENCE)
    while patience > 0:
        tickets = draws.indices_below(hot_tickets + gaps.size, batch)
        is_hot = tickets < hot_tickets
        positions = np.where(is_hot, 0, tickets - hot_tickets)
        positions[is_hot] = _hot_candidates(hot, tickets[is_hot] >> ZEROS)
        accepted = np.zeros(tickets.size, np.bool_)
        accepted[is_hot] = flip(gaps, draws, positions[is_hot])
        accepted[~is_hot] = _flip_cold(gaps, hot, positions[~is_hot], draws)
        if accepted.any():
            return int(positions[accepted.argmax()])
        patience -= tickets.size
        batch = min(2 * batch, _LARGEST_BATCH)
    return choose_by_envelope(gaps.copied(), draws)


def _hot_candidates(hot: Hot, ranks: Positions) -> Positions:
    starts = np.array([0, *(start for start, _ in hot.crowds)])
    sizes = np.array([hot.positions.size, *(stop - start for start, stop in hot.crowds)])
    ends = np.cumsum(sizes)
    groups = np.searchsorted(ends, ranks, side="right")
    positions: Positions = starts[groups] + ranks - (ends - sizes)[groups]
    listed = groups == 0
    positions[listed] = hot.positions[ranks[listed]]
    return positions


def _flip_cold(gaps: Gaps, hot: Hot, positions: Positions, draws: Draws) -> Flags:
    # Accept cold candidates with 2**8 times the probability of their coin, as if eight zeros were already known.
    accepted = hot.is_outsider(gaps, positions)
    cold = positions[accepted]
    accepted[accepted] = draws.finish(gaps.exponents(cold), prefixes=0, depths=ZEROS)
    return accepted


def choose_in_rows(gaps: RowGaps, draws: Draws) -> Selections:
    # One candidate for each row. All rows without one propose together, with more and more candidates each.
    rows, width = gaps.shape
    selected = np.empty(rows, np.int64)
    left, tries = np.arange(rows), 2
    while left.size:
        proposals = draws.indices(np.full(left.size * tries, width)).reshape(left.size, tries)
        accepted = flip(gaps, draws, (left[:, np.newaxis] * width + proposals).ravel()).reshape(left.size, tries)
        done = accepted.any(axis=1)
        selected[left[done]] = proposals[done, accepted[done].argmax(axis=1)]
        left, tries = left[~done], min(2 * tries, _MOST_TRIES)
    return selected


class ExponentialMechanism(SelectsSeveral):
    """Select a candidate with probability proportional to exp(c q_r), under epsilon-differential privacy.

    Formal guarantees:
      * the output has exactly that distribution, with c = epsilon / score_range, which is epsilon / (2 sensitivity), or
        twice that for monotonic scores, for every finite input;
      * it is epsilon-differentially private, and its privacy loss spans a range of at most epsilon, so that it is
        rho-zCDP with a rho below epsilon**2 / 8: over many selections it may compose better than permute-and-flip.

    Args:
        epsilon, sensitivity, monotonic, score_range: See `PermuteAndFlip`, which also lists the errors.

    >>> ExponentialMechanism(epsilon=1).select([0, 0, 1000])
    2
    """

    name: ClassVar[str] = "exponential"
    title: ClassVar[str] = "exponential mechanism"
    loss: ClassVar[PrivacyLoss] = BOUNDED_RANGE
    worst: ClassVar[WorstErrors] = WorstErrors(_loss_probability)
    has_runs: ClassVar[bool] = True
    far_below: ClassVar[Fraction | None] = Fraction(1)
    is_luce: ClassVar[bool] = True
    _arrival: ClassVar[type[Arrival]] = Tick
    _choose = staticmethod(choose_one)
    _choose_rows = staticmethod(choose_in_rows)
    _probabilities = staticmethod(softmax)

    def select_runs(self, scores: Any, lengths: Any, *, steady: bool = False) -> int:
        """Return a position in the vector in which each score is repeated. See `PermuteAndFlip.select_runs`.

        The number of proposals, and so the time, depends on the scores and the lengths, and `steady` must be False.

        >>> ExponentialMechanism(epsilon=1).select_runs([0, 4000, 0], [10**500, 1, 10**500]) == 10**500
        True
        """
        self._refuse_steady(steady)
        vector = as_vector(scores)
        values, counts = without_empty(vector, as_lengths(lengths, len(vector)))
        return choose_by_tickets(gaps_of(copied(values), self._rate), counts, Draws())

    def select_lazily(
        self,
        score: Score,
        n: int,
        *,
        best: Number | None = None,
        watch: Watch | None = None,
    ) -> int:
        """Return the selected index, computing scores only until it is found. See `PermuteAndFlip.select_lazily`.

        The closer the bound `best`, the fewer scores are computed: on average `analysis.expected_evaluations` of them.

        >>> ExponentialMechanism(epsilon=1).select_lazily(lambda index: 1000 if index == 2 else 0, 5, best=1000)
        2
        """
        exponent, count = lazy_exponents(score, n, self.rate, watch, self.claim.by_range, best=best)
        return reject_lazily(exponent, count, Draws(), choose_by_exponents)

    def _first_event(self, events: Events, mass: Fraction, draws: Draws) -> tuple[int, int]:  # noqa: ARG002 - no waiting
        return next(events)[2]

    def _choose_set(self, gaps: Gaps, lengths: Positions, k: int, draws: Draws) -> Members:
        from dpselect.selection.sets import choose_set  # noqa: PLC0415 - imported when first used

        return choose_set(gaps, lengths, k, draws)

    def _expected_evaluations(self, exponents: Floats) -> float:
        with np.errstate(under="ignore"):
            heads = np.exp(-exponents)
        # S - p_r is within S * 2**-51, and 1 + S - p_r is at least S: no term loses digits.
        return float((1 / (1 + (heads.sum() - heads))).sum())

    @staticmethod
    def noise(generator: "np.random.Generator", shape: tuple[int, ...]) -> Floats:
        """Return Gumbel noise (Yellott 1977). See `MechanismBase.noise`."""
        return generator.gumbel(size=shape)
