"""Dwork & Roth (2014), Section 3.3, report noisy max: add Laplace noise of scale 1/c to each score, return the largest.

With c = epsilon / score_range, which is epsilon / (2 sensitivity) as in McKenna & Sheldon (2020), Appendix on report
noisy max. In units of 1/c the winner has the largest noise - c (q* - q_r), and is the first arrival (`TwoSided` in
`selection.races`). Sixteen bits for each candidate leave a few contenders; 32 more, in floats with an error bound,
and then exact arithmetic decide among these.

Only pure epsilon is proved here for its privacy loss, and its exact worst case is not known.
"""

import math
from functools import cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Floats, Positions, Selections
from dpselect.mechanisms.laws import WorstErrors, harmonic, log_rivals, noisy_max_by_level, noisy_max_probabilities
from dpselect.mechanisms.privacy import LAPLACE, PrivacyLoss
from dpselect.mechanisms.several import SelectsInOrder
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Gaps, RowGaps
from dpselect.selection.races import DEPTH, HUGE, MARGIN, Arrival, TwoSided, earliest, float_bounds

Words = npt.NDArray[np.uint16]

# The first bits of each V, which bound all noises from above, and those that are revealed of a few contenders.
_WORD_BITS, _MORE_BITS = 16, 32
_WORDS = 2**_WORD_BITS
# For all but two words, the two bounds of a noise differ by ln 2 or less: see `noise_bounds`.
WIDTH = 0.6931471805599454
# The number of candidates per step: large enough to hide the interpreter, small enough for the cache.
_RUN = 16 * 1024
# The computed exponent is within a relative 2**-51; this factor turns it into a lower bound.
_BELOW = 1 - 2.0**-50
_LOG_MANY = 53 * math.log(2)


def _loss_probability(exponent: float, log_n: float) -> float:
    # The largest of very many noises is at the same distance from log n, whatever n is, so those beyond 2**53
    # candidates are counted as 2**53 that are higher: the difference is below 2**-53.
    n = round(math.exp(min(log_n, _LOG_MANY)))
    near = max(exponent - max(log_n - _LOG_MANY, 0.0), 0.0)
    others = noisy_max_by_level(np.array([-near, 0.0]), np.array([n - 1.0, 1.0]))[0]
    return min((n - 1) * float(others), 1.0)


def _averages(log_n: float) -> tuple[float, float]:
    # Bounds: the error on (-x, ..., -x, 0) with x = log n, and the mean of the largest of n noises. The error is at
    # most the largest noise minus that of the best candidate, whose mean is zero.
    return log_n * _loss_probability(log_n, log_n) if log_n else 0.0, _largest_laplace(log_n)


def _tail(x: float, log_n: float) -> float:
    # A union bound: a rival that is x worse wins only if the difference of two Laplace noises is at least x.
    return math.exp(min(log_rivals(log_n) + log_inversion(x), 0.0)) if log_n else 0.0


def log_inversion(x: float) -> float:
    """The logarithm of the probability that one Laplace noise of scale one exceeds another one by x or more.

    >>> math.exp(log_inversion(0.0))
    0.5
    """
    # The difference of the two has the density (1 + y) exp(-y) / 4 at y > 0, whose integral from x on is
    # (1/2 + x / 4) exp(-x). The cap avoids inf - inf.
    far = min(x, 1e300)
    return math.log(0.5 + far / 4) - far


def _largest_laplace(log_n: float) -> float:
    # An upper bound of the mean of the largest of n Laplace variables of scale one, tight to 1e-15. It is the integral
    # of 1 - F**n over x > 0 minus that of F**n over x < 0; with u = F(x) the first is the integral of
    # (1 - u**n) / (1 - u) over [1/2, 1], which is the sum of (1 - 2**-k) / k for k = 1..n, and the second is 2**-n / n.
    if log_n <= math.log(60):
        n = round(math.exp(log_n))
        return math.fsum((1 - 2.0**-k) / k for k in range(1, n + 1)) - 2.0**-n / n
    return harmonic(log_n) - math.fsum(2.0**-k / k for k in range(1, 61))


def choose_noisy_max(gaps: Gaps, draws: Draws) -> int:
    positions, words, uppers = [], [], []
    best = -np.inf
    for start in range(0, gaps.size, _RUN):
        run = gaps.at(slice(start, start + _RUN))
        drawn = draws.words(run.size, _WORD_BITS)
        upper = _upper_bounds(gaps, run, drawn)
        best = max(best, float(_least(np.maximum.reduce(upper))))
        chosen = ((upper >= best) | _is_unbounded(drawn)).nonzero()[0]
        positions.append(start + chosen)
        words.append(drawn[chosen])
        uppers.append(upper[chosen])
    left, drawn = np.concatenate(positions), np.concatenate(words)
    keep = (np.concatenate(uppers) >= best) | _is_unbounded(drawn)
    return int(_settle(gaps, left[keep], drawn[keep], np.zeros(1, np.int64), draws)[0])


def choose_noisy_max_in_rows(gaps: RowGaps, draws: Draws) -> Selections:
    rows, width = gaps.shape
    words = draws.words(gaps.size, _WORD_BITS)
    upper = _upper_bounds(gaps, gaps.at(slice(None)), words).reshape(rows, width)
    best = _least(upper.max(axis=1))
    chosen = ((upper >= best[:, np.newaxis]).ravel() | _is_unbounded(words)).nonzero()[0]
    starts = np.searchsorted(chosen, np.arange(rows) * width)
    winners: Selections = _settle(gaps, chosen, words[chosen], starts, draws) % width
    return winners


@cache
def noise_bounds() -> npt.NDArray[np.float32]:
    # Upper bounds of Laplace noise for each first word w of V; -inf for the first and the last, which leave it open. V
    # lies between w / 2**16 and (w + 1) / 2**16, and the noise, -ln(2 V) up to V = 1/2 and ln(2 (1 - V)) from there on,
    # falls with V.
    ends = np.arange(1, _WORDS // 2) / (_WORDS // 2)  # 2 V, up to V = 1/2
    bounds = np.concatenate([[-np.inf], -np.log(ends), [0.0], np.log(ends[:0:-1]), [-np.inf]]) + MARGIN
    bounds[1:-1] = np.nextafter(bounds[1:-1].astype(np.float32), np.float32(np.inf))
    return bounds.astype(np.float32)


def _is_unbounded(words: Words) -> Flags:
    unbounded: Flags = words + np.uint16(1) <= 1  # modulo 2**16
    return unbounded


def _upper_bounds(gaps: Gaps, run: npt.NDArray[np.generic], words: Words) -> npt.NDArray[np.float64]:
    # Upper bounds of noise - exponent; -inf where the first word gives none.
    with np.errstate(under="ignore"):  # a warning, or an error in its place, would reveal it
        return noise_bounds().take(words) - np.minimum(gaps.approximate(run), gaps.largest_exponent) * _BELOW


def _least(upper: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # A lower bound on the value, given its upper bound. The noise spans at most WIDTH. The float32 table is off by less
    # than 2**-18; the exponent is at most |upper| + 11 and, with the rounding of the difference, within a relative
    # 2**-48. A value beyond HUGE may come from an exponent that overflowed, of which only a lower bound is known.
    with np.errstate(over="ignore"):  # near the largest float: a warning would reveal it
        return np.where(upper < -HUGE, -np.inf, upper - WIDTH - (2.0**-15 + 2.0**-45 * np.abs(upper)))


def _settle(gaps: Gaps, positions: Positions, words: Words, starts: Positions, draws: Draws) -> Selections:
    # The winner of each group of contenders; group i starts at starts[i]. 32 bits more decide between most of them.
    exponents = gaps.exponents(positions)
    prefixes = words * 2.0**_MORE_BITS + draws.words(words.size, _MORE_BITS)
    cell = 2.0 ** (DEPTH - _WORD_BITS - _MORE_BITS)
    finite = np.minimum(exponents.approximate, gaps.largest_exponent)
    low, high = float_bounds(prefixes * cell, finite, np.zeros(words.size), TwoSided, cell)
    earliest_end = np.repeat(np.minimum.reduceat(high, starts), np.diff(starts, append=positions.size))
    left = (low <= earliest_end).nonzero()[0]
    group = np.searchsorted(starts, left, side="right") - 1
    winners = np.empty(starts.size, np.int64)
    winners[group] = positions[left]
    for tied in np.flatnonzero(np.bincount(group, minlength=starts.size) > 1).tolist():
        arrivals: dict[int, Arrival] = {
            int(positions[i]): TwoSided(exponents.exact(i), 1, int(prefixes[i]), _WORD_BITS + _MORE_BITS)
            for i in left[group == tied].tolist()
        }
        winners[tied] = earliest(arrivals, draws)
    return winners


class ReportNoisyMax(SelectsInOrder):
    """Select the candidate with the largest score after Laplace noise of scale score_range / epsilon.

    Formal guarantees:
      * the output is exactly the argmax of real-valued, never rounded, noisy scores, for every finite input;
      * it is epsilon-differentially private. The scale is 2 sensitivity / epsilon, or sensitivity / epsilon for
        monotonic scores.

    Args:
        epsilon, sensitivity, monotonic, score_range: See `PermuteAndFlip`, which also lists the errors.

    >>> ReportNoisyMax(epsilon=1).select([0, 0, 1000])
    2
    """

    name: ClassVar[str] = "noisy-max"
    title: ClassVar[str] = "report noisy max"
    loss: ClassVar[PrivacyLoss] = LAPLACE
    _arrival: ClassVar[type[Arrival]] = TwoSided
    worst: ClassVar[WorstErrors] = WorstErrors(_loss_probability, _averages, _tail, is_exact=False)
    _choose = staticmethod(choose_noisy_max)
    _choose_rows = staticmethod(choose_noisy_max_in_rows)
    _probabilities = staticmethod(noisy_max_probabilities)

    @staticmethod
    def noise(generator: "np.random.Generator", shape: tuple[int, ...]) -> Floats:
        """Return Laplace noise. See `MechanismBase.noise`."""
        return generator.laplace(size=shape)
