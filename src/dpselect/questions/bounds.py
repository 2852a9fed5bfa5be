"""Bounds on the error of a top-k answer that hold for all data, for each method of `questions.methods`.

There are d candidates with counts x, of which k are chosen; K is the set of the k largest counts and S the chosen set.
The error is the shortfall per item, (sum of K - sum of S) / k. S and K differ by at most r = min(k, d - k) candidates
on each side. The *cut* of S is the largest count that is not chosen minus the smallest chosen one. If S is not a top k,
some u in K is not in S, and some w in S is not in K. The cut is then largest_out - smallest_in = max x_u - min x_w over
such u and w: a candidate outside K that is not chosen has no more than u, and one of K that is chosen no less than w.
Pair these u and w in any way: the sum of K exceeds that of S by at most r times the cut, if that is positive.

All rates are one here; at the rate c, errors are divided by c.

**set.** One selection among the C(d, k) sets, whose scores are their sums. So the shortfall in total has the mean and
the tails of one selection among that many candidates (`selection_errors`); per item they are divided by k.

**margin.** One selection among all sets, whose scores are their margins u(S), the negated cuts. The best margin is not
negative, because that of K is not. So the cut of S, -u(S), is at most the error of the selection. Per item the
shortfall is at most r / k times that. This holds for the sets of several sizes together, too.

**peel.** One selection after another. In the i-th, one of the i largest counts is left, so the choice falls short of
the i-th most common one by at most the error of a selection among d candidates. If the d - k candidates that are left
out are selected, on negated counts, then the shortfall in total is at most the sum of d - k such errors.

**one-shot.** Exponential noises E, and the largest x + E are chosen. Let T be a number between the noisy counts that
are chosen and the others, and b one between the counts of K and the others. For w in S outside K, x_w + E_w >= T, and
so b - x_w <= E_w - (T - b). For u in K outside S, x_u - b <= (T - b) - E_u. There are as many w as u, so T - b cancels,
and may be replaced by any fixed number a: the shortfall in total is at most the sum of E_w - a over these w plus that
of a - E_u over these u. So it is at most the sum of the positive parts of E_i - a over all d - k candidates outside K
plus that of a - E_i over all k in K, with the means exp(-a) and a - 1 + exp(-a). At a = ln(d / k) this is k ln(d / k).

* *Average.* The shortfall per item is at most ln(d / k); for k = 1, this is Proposition 1 of McKenna & Sheldon (2020).
* *Another average.* Each choice has the bounds of a selection among d candidates by permute-and-flip, as in peeling. By
  theorem 15 of docs/theory.md, the choices are the first arrivals of times that are uniform on [0, 1 / p_j], with p_j =
  exp(x_j - x*). Given that the last choice arrived at z, the others are uniform on [z, 1 / p_j]. So the next one is
  chosen by permute-and-flip with probabilities p'_j of heads that are proportional to 1 / (1 / p_j - z). If m is the
  best one that is left, p'_m / p'_j = (1 / p_j - z) / (1 / p_m - z) >= p_m / p_j. So no difference to the best one is
  larger than a difference of the scores with which permute-and-flip selects, and the bounds hold for all scores.
* *The cut* is at least t only if E_w >= t + min E_u for one of d - k candidates w, because x_u - x_w <= E_w - E_u. The
  smallest of k noises is exponential of rate k, so this has probability at most (d - k) k / (k + 1) exp(-t).
* *In order*, let the i-th choice w have t or more people less than the i-th most common one. One of the i largest
  counts, u, is not among the i - 1 choices before, so E_w - E_u >= t, and w has a rank j above that of u, which is at
  most k. The smallest of min(j - 1, k) noises comes in as before, and the sum over j = 2, ..., d has the factor (d - k)
  k / (k + 1) + k - H_k, where H_k is 1 + 1/2 + ... + 1/k.

If the d - k candidates that are left out are chosen, on negated counts, exchange k and d - k; the cut is the same.

**noisy-counts.** The same with Laplace noises L. Their differences exceed t with probability (1/2 + t / 4) exp(-t). The
means of the positive parts are exp(-a) / 2 and a + exp(-a) / 2 for a >= 0.

* *Average.* The sum of the means is k a + d exp(-a) / 2. For k <= d/2 it is smallest at a = ln(d / (2 k)), and for k >
  d/2 the same holds with -L, -a and d - k. So the shortfall in total is at most r (1 + ln(d / (2 r))).
* *The cut* is at least t only for one of k (d - k) pairs; *in order*, for one of k (d - k) + k (k - 1) / 2 pairs.

**A gap makes the margin sure.** If the k-th largest count leads the next one by g, all other sets of k together have a
probability of at most C(d, k) exp(-2 g) (remark to theorem 14). So the gap that makes the answer right in 95 of 100
cases is half of the bound of the cut.

**What is attained.** With k - 1 counts far above all others, one of the other d - k + 1 candidates is selected: at rate
one, and by margins, which differ by twice as much as counts, at rate two. The shortfall per item is 1 / k of that
error. If the candidates that are left out are selected, let d - k - 1 counts be far below all others: one of k + 1 is
left out.
"""

import math
from fractions import Fraction

from dpselect.analysis.promises import UnitErrors, selection_errors
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.laws import harmonic
from dpselect.mechanisms.noisy_max import log_inversion

_FLOAT_BITS = 53
_MOST_EXACT = 300  # larger binomial coefficients are bounded by Stirling's formula


def log_sets(candidates: int, size: int) -> float:
    """The logarithm of the number of sets of this size, or an upper bound that is tight to 1 / (6 * 300).

    With s(d) = sqrt(2 pi d) (d / e)**d, Robbins (1955) has s(d) exp(1 / (12 d + 1)) < d! < s(d) exp(1 / (12 d)). So
    C(d, k) < s(d) / (s(k) s(d - k)): the other factor, exp(1 / (12 d) - 1 / (12 k + 1) - 1 / (12 (d - k) + 1)), is
    below one. If k / d < 2**-53, the term -(d - k) ln(1 - k / d) is k in floats, and k bounds it for all d.

    >>> log_sets(5, 2) == math.log(10), round(log_sets(2000, 1000) - math.log(math.comb(2000, 1000)), 5)
    (True, 0.00012)
    """
    few = min(size, candidates - size)
    if few <= _MOST_EXACT:
        return math.log(math.comb(candidates, few))
    if candidates >> _FLOAT_BITS > few:
        return few * (math.log(candidates) - math.log(few) + 1) - math.log(2 * math.pi * few) / 2
    share, many = few / candidates, candidates - few
    return -few * math.log(share) - many * math.log1p(-share) - math.log(2 * math.pi * few * (many / candidates)) / 2


def log_sets_between(candidates: int, least: int, most: int) -> float:
    """The logarithm of the number of sets whose size is in an interval, or an upper bound by the most frequent size."""
    if most <= _MOST_EXACT:
        return math.log(sum(math.comb(candidates, size) for size in range(least, most + 1)))
    nearest = min(max(candidates // 2, least), most)
    bound = math.log(most - least + 1) + log_sets(candidates, nearest)
    return bound if candidates > 2**1000 else min(bound, candidates * math.log(2))


def of_sets(kind: type[MechanismBase], candidates: int, k: int) -> UnitErrors:
    """The bounds of one choice among all sets of k candidates.

    >>> from dpselect import PermuteAndFlip
    >>> round(of_sets(PermuteAndFlip, 1000, 10).average, 2)
    4.9
    """
    total = selection_errors(kind, log_sets(candidates, k))
    return UnitErrors(total.average / k, _attained(kind, candidates - k + 1, k), lambda x: total.tail(k * x))


def _attained(kind: type[MechanismBase], doubtful: int, k: int) -> float:
    """The error where only one of so many candidates is in doubt."""
    return selection_errors(kind, math.log(doubtful)).attained / k


def of_margins(kind: type[MechanismBase], candidates: int, least: int, most: int) -> UnitErrors:
    """The bounds of one choice among all sets whose size is in an interval."""
    cut = selection_errors(kind, log_sets_between(candidates, least, most))
    share = 1.0 if candidates >= 2 * least else (candidates - least) / least
    attained = _attained(kind, candidates - most + 1, most) / 2 if least == most else 0.0
    return UnitErrors(share * cut.average, attained, cut.tail)


def of_peeling(kind: type[MechanismBase], candidates: int, k: int, rounds: int, *, leaves_out: bool) -> UnitErrors:
    """The bounds of one selection after another: of each, or of all if those that are left out are selected."""
    one = selection_errors(kind, math.log(candidates))
    if not leaves_out:
        return one
    share = rounds / k
    attained = _attained(kind, k + 1, k)
    return UnitErrors(share * one.average, attained, lambda x: min(1.0, rounds * one.tail(x / share)))


def of_one_shot(kind: type[MechanismBase], candidates: int, k: int, chosen: int, *, ordered: bool) -> UnitErrors:
    """The bounds of exponential noise on all counts, if k candidates, or those that are left out, are chosen."""
    one = selection_errors(kind, math.log(candidates))
    total = chosen * min(math.log(candidates) - math.log(chosen), one.average)
    factor = Fraction((candidates - chosen) * chosen, chosen + 1)
    factor += Fraction(chosen - harmonic(math.log(chosen))) if ordered else 0
    attained = _attained(kind, candidates - k + 1 if chosen == k else k + 1, k)
    return UnitErrors(total / k, attained, lambda x: _union(factor, -x))


def of_noisy_counts(kind: type[MechanismBase], candidates: int, k: int, *, ordered: bool) -> UnitErrors:
    """The bounds of Laplace noise on all counts."""
    few = min(k, candidates - k)
    total = few * (1 + math.log(candidates) - math.log(2 * few)) if few else 0.0
    pairs = Fraction(k * (candidates - k))
    pairs += k * (k - 1) // 2 if ordered else 0
    return UnitErrors(total / k, _attained(kind, candidates - k + 1, k), lambda x: _union(pairs, log_inversion(x)))


def _union(factor: Fraction, log_chance: float) -> float:
    """The chance times the factor, if that is a probability. The factor may be beyond all floats."""
    if factor <= 0:
        return 0.0
    return math.exp(min(math.log(factor.numerator) - math.log(factor.denominator) + log_chance, 0.0))
