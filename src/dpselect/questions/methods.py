"""The methods for the k candidates that most people have: what each costs, how far it is off, and which one is taken.

Counts of people are scored in one of these ways. A person counts for at most m candidates (`max_values`), or for any
number of them. There are d candidates, and c is the number of people that one noise unit is worth, 1/rate.

  set           one choice among all sets of k, by the sum of their counts (theorem 12 of docs/theory.md)
  margin        one choice among all sets of k, by the smallest count inside minus the largest outside (theorem 13)
  one-shot      exponential noise on every count, once; the k largest in order (theorem 15)
  peel          k selections, each among the candidates that are left (Durfee & Rogers 2019)
  noisy-counts  Laplace noise on every count, once; the k largest in order (Dwork & Roth 2014, Section 3.3)

**Score ranges**, if one person is added or removed; twice as much if one is replaced. A set's sum moves by 0 to m, and
a difference of two sums by at most min(m, k, d - k). A margin moves by at most one, so a difference by two. A count
moves by one. All counts together move by at most m, which is what Laplace noise on all of them needs.

**Costs.** A set or a margin is one draw of the mechanism. Peeling is k of them. One shot costs what any release of its
epsilon costs. Laplace noise on m counts costs m times what it costs on one, at epsilon / m each.

If an answer need not be ordered and k > d/2, one shot and peeling choose the d - k candidates that are left out.

**Which method `auto` takes** follows from public numbers only, never from the counts: `automatic` states it.
docs/top-k.md has the measurements.

**Bounds on the error that hold for all data.**

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
from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpselect import _validate
from dpselect._numbers import shown
from dpselect._scores import as_lengths, as_vector
from dpselect._types import Floats, Positions, Vector
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.accounting.charge import ONE_SHOT, Charge
from dpselect.analysis import top_k as laws
from dpselect.analysis.measures import UnitErrors, selection_errors
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.laws import harmonic
from dpselect.mechanisms.noisy_max import ReportNoisyMax, log_inversion
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.privacy import PURE_LOSS, Guarantee, PrivacyLoss
from dpselect.mechanisms.several import (
    MOST_MEMBERS,
    checked_counts,
    selecting_in_order,
    selecting_sets,
    sizes_of,
)
from dpselect.mechanisms.unlisted import Threshold
from dpselect.release import Answer, Payer, Priced
from dpselect.selection.gaps import UNIT_RATE, gaps_of

WHAT = "a planned question"


@dataclass(frozen=True)
class Share:
    """One of several equal parts of a cost, in the form that a release needs."""

    name: str
    epsilon: Fraction
    loss: PrivacyLoss = PURE_LOSS
    claim: Claim | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What one part guarantees."""
        return Guarantee(self.epsilon, self.loss.zcdp(self.epsilon))

    def terms(self) -> dict[str, Any]:
        """Return how far apart neighbours are, for the ledger; nothing if the question says it all."""
        return {} if self.claim is None else self.claim.to_dict()


@dataclass(frozen=True)
class Draw:
    """What draws an answer, and what a ledger records for it. All of it is public.

    Attributes:
        part: one of the equal parts of the charge.
        count: the number of parts, over all groups that one person may be in.
        delta: the delta of all parts together.
        threshold: above what an unlisted value is chosen; None for other questions.
    """

    mechanism: Any
    part: Priced
    count: int
    delta: Fraction = Fraction(0)
    method: "Method | None" = None
    threshold: Threshold | None = None

    def charge(self, rho: Fraction | None = None) -> Charge:
        """Return what a ledger is asked to record for a planned question."""
        return Charge(WHAT, self.part.epsilon, self.part.name, self.count, rho=rho, delta=self.delta)


class Task(NamedTuple):
    """What is chosen from given counts, to compute its error: `size` candidates with high scores, by a mechanism."""

    # A method may choose the candidates that are left out, on negated scores. Their shortfall in total is that of the
    # answer, so per item of the answer it is `share` times as much.

    scores: Floats
    size: Any  # a number, or a pair for margins
    mechanism: MechanismBase
    share: float

    @property
    def rate(self) -> float:
        """The rate c of the noise."""
        return float(self.mechanism.rate)

    @property
    def waits(self) -> bool:
        """Whether the mechanism is permute-and-flip, or the exponential mechanism."""
        return self.mechanism.waits

    def noise(self, generator: "np.random.Generator") -> Callable[[tuple[int, int]], Floats]:
        """Return the noise of the mechanism, of any shape."""
        return partial(self.mechanism.noise, generator)


_FLOAT_BITS = 53
_MOST_EXACT = 300  # larger binomial coefficients are bounded by Stirling's formula


def log_sets(candidates: int, size: int) -> float:
    """The logarithm of the number of sets of this size, or an upper bound that is tight to 1 / (6 * 300)."""
    # With s(d) = sqrt(2 pi d) (d / e)**d, Robbins (1955) has s(d) exp(1 / (12 d + 1)) < d! < s(d) exp(1 / (12 d)). So
    # C(d, k) < s(d) / (s(k) s(d - k)): the other factor, exp(1 / (12 d) - 1 / (12 k + 1) - 1 / (12 (d - k) + 1)), is
    # below one. If k / d < 2**-53, the term -(d - k) ln(1 - k / d) is k in floats, and k bounds it for all d.
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


def _union(factor: Fraction, log_chance: float) -> float:
    # The factor may be beyond all floats.
    if factor <= 0:
        return 0.0
    return math.exp(min(math.log(factor.numerator) - math.log(factor.denominator) + log_chance, 0.0))


@dataclass(frozen=True)
class Method(ABC):
    """A way to choose `k` of so many candidates. All of its fields are public."""

    name: ClassVar[str]
    draws_of: ClassVar[str] = "selections"  # what one person can influence several of
    is_free: ClassVar[bool] = False  # whether the answer follows from public numbers alone
    needs_limit: ClassVar[bool] = False  # whether its noise grows with `max_values`
    needs_runs: ClassVar[bool] = False  # whether an engine that returns levels draws with `select_runs`
    needs_sets: ClassVar[bool] = True  # whether only mechanisms that choose sets can draw
    bounds_cuts: ClassVar[bool] = True  # whether the tail of its bounds is about all choices together
    returns_sets: ClassVar[bool] = False  # whether it has no order to return

    k: int
    candidates: int
    max_values: int | None = None
    ordered: bool = False

    @property
    def values(self) -> int:
        """For how many candidates one person can count."""
        return self.candidates if self.max_values is None else min(self.max_values, self.candidates)

    @property
    def fewer(self) -> int:
        """The number of candidates that are chosen, or left out, whichever is smaller."""
        return min(self.k, self.candidates - self.k)

    @property
    def leaves_out(self) -> bool:
        """Whether the candidates that are left out are chosen."""
        return False

    @property
    def sizes_asked(self) -> Any:
        """How many candidates are chosen: a number, or a pair for an interval."""
        return self.k

    @property
    def rounds(self) -> int:
        """How many draws an answer consists of."""
        return 1

    @property
    def selections(self) -> int | None:
        """The number of selections, each among the candidates that are left; None if it is not done so."""
        return None

    @property
    def parts(self) -> int:
        """The number of equal parts of a charge."""
        return self.rounds

    def claim(self, monotonic: bool) -> Claim:
        """Return how far apart the scores of neighbours are: `monotonic` if one is added or removed, else replaced."""
        return stated(1, monotonic)

    def draw(self, price: Price, budget: Budget | None, groups: int, monotonic: bool) -> Draw:
        """Return what draws, and what is charged, at a price that is divided among groups."""
        claim = self.claim(monotonic).arguments()
        drawn = self.checked(price.drawn_by(budget, self.rounds * groups, **claim))
        return Draw(drawn, drawn, self.parts * groups, method=self)

    def suits(self, kind: type[MechanismBase]) -> bool:
        """Return whether this mechanism can draw on every engine."""
        return (kind.has_sets or not self.needs_sets) and (kind.has_runs or not self.needs_runs)

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        """Return the mechanism, checked to be one that can draw from scores."""
        if self.needs_sets and not mechanism.has_sets:
            raise InvalidType(
                f"mechanism {mechanism.name} cannot draw with method {self.name}: use permute-and-flip or exponential"
            )
        return mechanism

    def check_scores(self, scores: Vector) -> None:
        """Refuse scores that the method cannot take. Called before anything is charged."""
        gaps_of(scores, UNIT_RATE)  # refuses scores that are not finite

    @abstractmethod
    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        """Draw: return positions, in order if that is part of the answer, otherwise ascending.

        With lengths, the positions are those in the vector in which each score is repeated.
        """

    @abstractmethod
    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return bounds on the errors with this mechanism at rate one, for all data.

        `average` is about the shortfall per item. `tail` is about that, too, for sets and for candidates that are left
        out one after another; about a single choice if one after another is chosen; and otherwise about the cut, or
        about all differences of an answer in order.
        """

    def _attained(self, kind: type[MechanismBase], doubtful: int) -> float:
        return selection_errors(kind, math.log(doubtful)).attained / self.k

    # The errors on given counts.

    def task(self, mechanism: MechanismBase, scores: Floats) -> Task:
        """Return what is chosen from these scores."""
        if self.leaves_out:
            return Task(-scores, self.rounds, mechanism, self.rounds / self.k)
        return Task(scores, self.sizes_asked, mechanism, 1.0)

    def shortfall(self, task: Task) -> float | None:  # noqa: ARG002 - for methods that have a formula
        """Return the expected shortfall per item of the task; None where no formula is cheap."""
        return None

    def simulated(self, task: Task, runs: int, generator: "np.random.Generator") -> Positions:
        """Return what is chosen in so many runs, in floats. Never for release."""
        return laws.simulate_once(task.scores, task.size, task.rate, runs, task.noise(generator))

    def inverted(self, task: Task, exponents: Floats) -> Floats | None:  # noqa: ARG002 - for methods that have a bound
        """Return how likely two counts with these differences are inverted, at most; None if that is not known."""
        return np.exp(-exponents)

    # In words.

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        limit = {} if self.max_values is None else {"max_values": self.max_values}
        return {"k": self.k, "method": self.name, "ordered": self.ordered, **limit}

    @property
    def limit(self) -> int | None:
        """For how many candidates a person counts, if they may have more; otherwise None."""
        return None if self.max_values is None or self.max_values >= self.candidates else self.max_values

    @property
    def size_words(self) -> str:
        """How many candidates are chosen, in words."""
        return f"{self.k:,}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the bounds mean: on average, in 95 and in 99 of 100 cases."""
        return (
            f"On average, the mean count of the {self.k:,} chosen values is at most {average} people below that of the"
            f" {self.k:,} most common ones. {self._in_most_cases(usual, rare)}"
        )

    def _in_most_cases(self, usual: str, rare: str) -> str:
        if not self.bounds_cuts:
            return f"In 95 of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        if self.ordered:
            return (
                f"In 95 of 100 cases, each i-th value has less than {usual} fewer people than the i-th most common one,"
                f" for all i together; in 99 of 100, less than {rare}."
            )
        return (
            f"In 95 of 100 cases, every value that is left out has less than {usual} people more than any chosen one;"
            f" in 99 of 100, less than {rare}."
        )

    def remark(self, within_95: float) -> str:  # noqa: ARG002 - for methods that have one
        """Return what else follows from the bound for 95 of 100 cases; usually nothing."""
        return ""

    def taken_for(self, concentrated: bool, asked: str) -> str:
        """Return that this method answers, and why.

        >>> Peel(1, 1000).taken_for(concentrated=False, asked="auto")
        'The method is peel, because one candidate is chosen, so one selection is enough.'
        """
        if asked == self.name:
            return f"The method is {self.name}, as asked."
        if asked == ONE_SHOT:
            return (
                f"The method is {self.name}: with this mechanism, one shot has the law of one selection after another."
            )
        return f"The method is {self.name}, because {self._reason('in zCDP ' if concentrated else '')}."

    @abstractmethod
    def _reason(self, currency: str) -> str:
        """Why `automatic` takes this method. `currency` names zCDP if costs add up in it."""

    @property
    def _counts_for(self) -> str:
        if self.max_values is None:
            return "a person may count for any number of candidates"
        return f"a person counts for at most {'one candidate' if self.values == 1 else f'{self.values:,} candidates'}"


class All(Method):
    """All candidates: nothing is read, and nothing is charged."""

    name: ClassVar[str] = "all"
    is_free: ClassVar[bool] = True
    needs_sets: ClassVar[bool] = False

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:  # noqa: ARG002 - unread
        return list(range(self.candidates))

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:  # noqa: ARG002 - nothing is drawn
        return UnitErrors(0.0, 0.0, lambda _: 0.0)

    def meaning(self, average: str, usual: str, rare: str) -> str:  # noqa: ARG002 - there is no error
        return f"All {self.k:,} candidates are chosen, so the answer has no error."

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        return "all candidates are chosen, so nothing need be drawn or charged"


def free_answer(value: Any, ledger: Payer | None, request_id: str | None) -> Answer:
    """The answer that all candidates are chosen. It costs nothing, so a request is not stored."""
    if request_id is not None and ledger is None:
        raise InvalidValue("request_id needs a ledger that stores it: give the ledger too")
    return Answer(value, "none", Guarantee(Fraction(0), 0.0), Fraction(0))


class Set(Method):
    """One choice among all sets of k candidates, by the sum of their scores."""

    name: ClassVar[str] = "set"
    needs_limit: ClassVar[bool] = True
    bounds_cuts: ClassVar[bool] = False
    returns_sets: ClassVar[bool] = True

    def claim(self, monotonic: bool) -> Claim:
        return stated(score_range=min(self.values, self.fewer) * (1 if monotonic else 2))

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        return selecting_sets(mechanism).select_set(scores, self.k, lengths=lengths)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        total = selection_errors(kind, log_sets(self.candidates, self.k))
        attained = self._attained(kind, self.candidates - self.k + 1)
        return UnitErrors(total.average / self.k, attained, lambda x: total.tail(self.k * x))

    def shortfall(self, task: Task) -> float | None:
        return laws.expected_shortfall_of_sets(task.scores, task.size, task.rate, waits=task.waits)

    def simulated(self, task: Task, runs: int, generator: "np.random.Generator") -> Positions:
        return laws.simulate_sets(task.scores, task.size, task.rate, runs, generator, waits=task.waits)

    def _reason(self, currency: str) -> str:
        less = f"one choice of a whole set needs less noise than {self.fewer:,} selections"
        return f"{self._counts_for}, so {currency}{less}"


@dataclass(frozen=True)
class Margin(Method):
    """One choice among all sets of `least` to `k` candidates, by their margin."""

    name: ClassVar[str] = "margin"
    returns_sets: ClassVar[bool] = True

    least: int | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest size."""
        return self.k if self.least is None else self.least, self.k

    @property
    def sizes_asked(self) -> Any:
        return self.k if self.least is None else self.sizes

    def claim(self, monotonic: bool) -> Claim:
        return stated(score_range=2 if monotonic else 4)

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        return selecting_sets(mechanism).select_margin(scores, self.sizes_asked, lengths=lengths)

    def check_scores(self, scores: Vector) -> None:
        super().check_scores(scores)
        checked_counts(scores)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        d, (least, most) = self.candidates, self.sizes
        cut = selection_errors(kind, log_sets_between(d, least, most))
        share = 1.0 if d >= 2 * least else (d - least) / least
        attained = self._attained(kind, d - most + 1) / 2 if least == most else 0.0
        return UnitErrors(share * cut.average, attained, cut.tail)

    def shortfall(self, task: Task) -> float | None:
        return laws.expected_shortfall_of_margins(task.scores, task.size, task.rate, waits=task.waits)

    def simulated(self, task: Task, runs: int, generator: "np.random.Generator") -> Positions:
        return laws.simulate_margins(task.scores, task.size, task.rate, runs, generator, waits=task.waits)

    def inverted(self, task: Task, exponents: Floats) -> None:  # noqa: ARG002 - no bound is known
        return None

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "k": self.k if self.least is None else list(self.sizes)}

    @property
    def _is_interval(self) -> bool:
        return self.sizes[0] < self.sizes[1]

    @property
    def size_words(self) -> str:
        return super().size_words if self.least is None else f"{self.least} to {self.k}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        if not self._is_interval:
            return super().meaning(average, usual, rare)
        return (
            f"On average, the mean count of the chosen values is at most {average} people below that of the same number"
            f" of most common ones. {self._in_most_cases(usual, rare)}"
        )

    def remark(self, within_95: float) -> str:
        if self._is_interval:
            return ""
        return (
            f"If the k-th most common value leads the next one by {shown(within_95 / 2)} people or more, the"
            f" {self.k:,} most common ones are chosen in 95 of 100 cases."
        )

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        return "a person changes the margin of a set by at most one, however many candidates they count for"


class _OneByOne(Method):
    """What one shot and peeling share: they can choose what is left out instead."""

    @property
    def leaves_out(self) -> bool:
        return not self.ordered and 2 * self.k > self.candidates

    @property
    def rounds(self) -> int:
        return self.candidates - self.k if self.leaves_out else self.k

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        vector = as_vector(scores)
        if not self.leaves_out:
            found = self._in_order(mechanism, vector, lengths)
            return found if self.ordered else sorted(found)
        out = set(self._in_order(mechanism, negated(vector), lengths))
        return [position for position in range(self.candidates) if position not in out]

    @abstractmethod
    def _in_order(self, mechanism: MechanismBase, scores: Vector, lengths: Any) -> list[int]:
        """Draw `rounds` candidates with high scores in order."""


class OneShot(_OneByOne):
    """The candidates with the largest counts after exponential noise."""

    name: ClassVar[str] = ONE_SHOT

    def draw(self, price: Price, budget: Budget | None, groups: int, monotonic: bool) -> Draw:
        # Only the pure epsilon of all candidates together is known: all noises are one release.
        kind, whole = price.kind(budget), price.each(PURE_LOSS, groups)
        drawn = self.checked(kind(whole / self.rounds, **self.claim(monotonic).arguments()))
        return Draw(drawn, Share(self.name, whole, PURE_LOSS, drawn.claim), groups, method=self)

    def suits(self, kind: type[MechanismBase]) -> bool:
        return kind.has_one_shot and super().suits(kind)

    @property
    def parts(self) -> int:
        return 1

    def _in_order(self, mechanism: MechanismBase, scores: Vector, lengths: Any) -> list[int]:
        return selecting_in_order(mechanism).select_order(scores, self.rounds, lengths=lengths)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        d, chosen = self.candidates, self.rounds
        one = selection_errors(kind, math.log(d))
        total = chosen * min(math.log(d) - math.log(chosen), one.average)
        factor = Fraction((d - chosen) * chosen, chosen + 1)
        factor += Fraction(chosen - harmonic(math.log(chosen))) if self.ordered else 0
        attained = self._attained(kind, self.k + 1 if self.leaves_out else d - self.k + 1)
        return UnitErrors(total / self.k, attained, lambda x: _union(factor, -x))

    def shortfall(self, task: Task) -> float | None:
        return laws.expected_shortfall_of_one_shot(task.scores, task.size, task.rate)

    def inverted(self, task: Task, exponents: Floats) -> Floats:  # noqa: ARG002 - one mechanism draws
        return np.exp(-exponents) / 2

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        if self.ordered:
            return (
                f"{self._counts_for}, and for an answer in order, noise that is added to each count once has no larger"
                f" bounds than {self.k:,} selections"
            )
        return (
            f"{self._counts_for}, so a set needs as much noise, and for so few candidates noise that is added to each"
            " count once was better on public data"
        )


class Peel(_OneByOne):
    """One selection after another, each among the candidates that are left."""

    name: ClassVar[str] = "peel"
    needs_runs: ClassVar[bool] = True
    needs_sets: ClassVar[bool] = False
    bounds_cuts: ClassVar[bool] = False

    @property
    def selections(self) -> int | None:
        return None if self.leaves_out else self.rounds

    def _in_order(self, mechanism: MechanismBase, scores: Vector, lengths: Any) -> list[int]:
        if lengths is None:
            return peeled(scores, self.rounds, mechanism)
        return peeled_in_runs(scores, lengths, self.rounds, mechanism)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        one = selection_errors(kind, math.log(self.candidates))
        if not self.leaves_out:
            return one
        share = self.rounds / self.k
        attained = self._attained(kind, self.k + 1)
        return UnitErrors(share * one.average, attained, lambda x: min(1.0, self.rounds * one.tail(x / share)))

    def shortfall(self, task: Task) -> float | None:
        if not task.mechanism.has_sets:
            return None
        return laws.expected_shortfall_of_peeling(task.scores, task.size, task.rate, waits=task.waits)

    def simulated(self, task: Task, runs: int, generator: "np.random.Generator") -> Positions:
        simulate = laws.simulate_once if task.mechanism.is_luce else laws.simulate_rounds
        return simulate(task.scores, task.size, task.rate, runs, task.noise(generator))

    def inverted(self, task: Task, exponents: Floats) -> Floats | None:
        return super().inverted(task, exponents) if task.mechanism.has_sets else None

    def meaning(self, average: str, usual: str, rare: str) -> str:
        if self.leaves_out:
            return super().meaning(average, usual, rare)
        return (
            f"On average, the i-th chosen value has at most {average} fewer people than the i-th most common one. In 95"
            f" of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        if self.rounds == 1:
            return f"one candidate is {'chosen' if self.k == 1 else 'left out'}, so one selection is enough"
        return f"{self._counts_for}, and in zCDP {self.rounds:,} selections need less noise than the other methods"


class NoisyCounts(Method):
    """The candidates with the largest counts after Laplace noise, whose scale follows from all counts of a person."""

    name: ClassVar[str] = "noisy-counts"
    draws_of: ClassVar[str] = "counts"
    needs_limit: ClassVar[bool] = True
    mechanisms: ClassVar[tuple[str, ...]] = (AUTO, ReportNoisyMax.name)  # that may be asked for

    def suits(self, kind: type[MechanismBase]) -> bool:
        return kind is ReportNoisyMax

    def claim(self, monotonic: bool) -> Claim:
        return stated(score_range=self.values * (1 if monotonic else 2))

    def draw(self, price: Price, budget: Budget | None, groups: int, monotonic: bool) -> Draw:  # noqa: ARG002 - one mechanism
        if price.mechanism not in self.mechanisms:
            raise InvalidValue(f"method {self.name} adds Laplace noise: leave mechanism out, or give noisy-max")
        count = self.parts * groups
        each = price.each(ReportNoisyMax.loss, count)
        drawn = ReportNoisyMax(each * self.values, **self.claim(monotonic).arguments())
        return Draw(drawn, Share(drawn.name, each, drawn.loss, drawn.claim), count, method=self)

    @property
    def parts(self) -> int:
        return self.values

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        found = selecting_in_order(mechanism).select_order(scores, self.k, lengths=lengths)
        return found if self.ordered else sorted(found)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        d, k, few = self.candidates, self.k, self.fewer
        total = few * (1 + math.log(d) - math.log(2 * few)) if few else 0.0
        pairs = Fraction(k * (d - k) + (k * (k - 1) // 2 if self.ordered else 0))
        attained = self._attained(kind, d - k + 1)
        return UnitErrors(total / k, attained, lambda x: _union(pairs, log_inversion(x)))

    def inverted(self, task: Task, exponents: Floats) -> Floats:  # noqa: ARG002 - one mechanism draws
        chances: Floats = (0.5 + exponents / 4) * np.exp(-exponents)
        return chances

    def _reason(self, currency: str) -> str:
        smallest = "noise on all counts, which also pays for an order, may be the smallest"
        return f"{self._counts_for}, so {currency}{smallest}"


METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Set, Margin, OneShot, Peel, NoisyCounts)}


def automatic(  # noqa: PLR0913 - one parameter for each public number
    k: int,
    candidates: int,
    max_values: int | None,
    ordered: bool,
    concentrated: bool,
    *,
    sets: bool = True,
    laplace: bool = True,
) -> type[Method]:
    """The method that `auto` takes: the first row that holds. k' = min(k, d - k), and m = d without a limit.

      pure, not ordered    k' = 1: peel;  2 m <= k': set;  k' >= 5: margin;  m < k': set;  otherwise one-shot
      pure, ordered        k = 1: peel;  5 m <= 4 k: noisy-counts;  otherwise one-shot
      zCDP, not ordered    the smallest of sqrt(k') (peel), m (set) and 2 sqrt(m) (noisy-counts)
      zCDP, ordered        the smaller of sqrt(k) (peel) and 2 sqrt(m) (noisy-counts)

    A mechanism that is named must be able to draw. Without `sets` it cannot choose a set or in one shot, and without
    `laplace` it adds no Laplace noise, so noisy-counts is left out. Among more than 2**60 candidates, which a rule may
    have, only peeling can choose.

    In zCDP these are the scales of the noise, up to a common factor: k selections at rho / k, one of range m, or
    Laplace noise on m counts at rho / m. In pure epsilon they are k', m and m; which of two of one size is better, and
    where the margin is better than one shot, was measured on public data (docs/top-k.md).

    >>> automatic(10, 1000, None, ordered=False, concentrated=False).name
    'margin'
    """
    m = candidates if max_values is None else min(max_values, candidates)
    few = k if ordered else min(k, candidates - k)
    if not sets:
        return NoisyCounts if laplace and max_values is not None else Peel
    if concentrated:
        squares: dict[type[Method], int] = {Peel: few, **({NoisyCounts: 4 * m} if laplace else {})}
        squares.update({} if ordered else {Set: m * m})
        return min(squares, key=lambda method: squares[method])
    if few == 1:
        return Peel
    if ordered:
        return NoisyCounts if laplace and 5 * m <= 4 * k else OneShot
    if 2 * m <= few:
        return Set
    return Margin if few >= 5 else Set if m < few else OneShot


def method_for(  # noqa: PLR0913 - one parameter for each public choice
    k: Any,
    candidates: int,
    *,
    method: Any = AUTO,
    max_values: Any = None,
    ordered: Any = False,
    price: Price,
    budget: Budget | None = None,
) -> Method:
    """The method that these public numbers state, checked. `method` is a name or "auto"."""
    limit = checked_limit(max_values)
    in_order = _validate.boolean(ordered=ordered)
    name = _name(method)
    asked = METHODS.get(name, Peel)  # peel stands for auto here, which needs neither
    if in_order and asked.returns_sets:
        raise InvalidValue(f"method {name} has no order to return: leave out either ordered or the method")
    least, most = sizes_of(k, candidates)
    is_pair = isinstance(k, (tuple, list))
    if is_pair and (in_order or name not in (AUTO, Margin.name)):
        raise InvalidValue("k may be a pair only with method margin: give one number")
    if is_pair:
        return Margin(most, candidates, limit, least=least)
    if asked.needs_limit and limit is None:
        raise InvalidValue(
            f"method {name} needs max_values: how many candidates one person may count for. It is public, and must"
            " not be taken from the data"
        )
    explicit_order = is_in_order(name, in_order)
    if most == candidates and not explicit_order:
        return All(most, candidates, limit)
    drawn = price.kind(budget)
    if candidates > MOST_MEMBERS:
        if name not in (AUTO, Peel.name):
            raise InvalidValue(f"method {name} takes at most 2**60 candidates: use method peel, or fewer candidates")
        name = Peel.name
    kind = METHODS.get(name) or automatic(
        most,
        candidates,
        limit,
        in_order,
        price.is_concentrated(budget),
        sets=drawn.has_sets,
        laplace=price.mechanism in NoisyCounts.mechanisms,
    )
    if kind is OneShot and not drawn.has_one_shot:
        kind = Peel  # with Gumbel noise, one shot has the law of one selection after another, and costs less so
    return kind(most, candidates, limit, explicit_order)


def is_in_order(method: str, ordered: bool) -> bool:
    """Whether an answer is in order: if that is asked, or if a method is asked by name that returns an order.

    >>> is_in_order("auto", ordered=False), is_in_order("peel", ordered=False)
    (False, True)
    """
    return ordered or (method in METHODS and not METHODS[method].returns_sets)


def _name(method: Any) -> str:
    if not isinstance(method, str):
        raise InvalidType(f"method must be a name, got {type(method).__name__}")
    if method != AUTO and method not in METHODS:
        raise InvalidValue(f"method must be one of {', '.join([AUTO, *METHODS])}, got {method[:40]!r}")
    return method


def checked_limit(max_values: Any) -> int | None:
    """For how many candidates one person may count; None for any number."""
    if max_values is None:
        return None
    number = _validate.count(max_values=max_values)
    if not number:
        raise InvalidValue("max_values must be >= 1, got 0")
    return number


def negated(scores: Vector) -> Vector:
    """Scores in reverse order, with the same differences: the largest minus each one would be rounded."""
    if isinstance(scores, list):
        return [-score for score in scores]
    return -scores if scores.dtype.kind == "f" else ~scores  # -1 - score, which no integer type lacks


def peeled(scores: Vector, k: int, mechanism: MechanismBase) -> list[int]:
    """Select positions one after another, each from those that are left."""
    # The time does not depend on the scores if the mechanism has a steady schedule.
    left, chosen, values = list(range(len(scores))), [], scores
    for _ in range(k):
        position = mechanism.select(values, steady=mechanism.has_steady)
        chosen.append(left.pop(position))
        values = _without(values, position)
    return chosen


def _without(values: Vector, position: int) -> Vector:
    if isinstance(values, np.ndarray):
        return np.delete(values, position)
    return values[:position] + values[position + 1 :]


def peeled_in_runs(scores: Vector, lengths: Any, k: int, mechanism: MechanismBase) -> list[int]:
    """Select from runs of equal scores one after another, each from the candidates that are left."""
    # Positions are those in the vector in which each score is repeated.
    sizes = [int(length) for length in as_lengths(lengths, len(scores)).tolist()]
    starts = [0, *accumulate(sizes)]
    left, taken = list(sizes), [list[int]() for _ in sizes]
    chosen = []
    for _ in range(k):
        position = mechanism.select_runs(scores, left)
        ends = list(accumulate(left))
        run = bisect_right(ends, position)
        rank = position - (ends[run] - left[run])
        for earlier in taken[run]:  # in ascending order
            rank += earlier <= rank
        insort(taken[run], rank)
        left[run] -= 1
        chosen.append(starts[run] + rank)
    return chosen
