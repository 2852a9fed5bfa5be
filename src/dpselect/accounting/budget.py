"""What a ledger may spend: pure epsilon, zCDP, or (epsilon, delta), and the check that no sum of releases exceeds it.

The check is a privacy filter: it is valid if each question, its epsilon and whether it is asked at all depend on the
answers before. `docs/budgets.md` has the proofs.

  pure            the sum of epsilons (Rogers, Roth, Ullman & Vadhan 2016)
  zCDP            the sum of rhos, and apart from it the sum of deltas of releases that have one (Feldman & Zrnic 2021;
                  Whitehouse, Ramdas, Rogers & Wu 2023)
  (epsilon, delta)  the same, with the largest rho that implies (epsilon, part of delta). It is fixed when the budget
                  is made, and the rest of delta is for releases that have a delta of their own.

From rho to (epsilon, delta), for every order a > 1 (Canonne, Kamath & Steinke 2020):

    delta = exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)**a.

Any single order is a proof. Solved for rho, it is

    rho = (epsilon + (ln delta + ln(a - 1) - a ln(1 - 1/a)) / (a - 1)) / a.

What a budget means for a person: somebody believes with probability p that a person is in the data, and then sees an
answer y. Let L = ln(P(y) / Q(y)) be the privacy loss of y, where P is the law of the answers with the person and Q the
law without them. By Bayes' rule the belief becomes

    p e^L / (p e^L + 1 - p) = p / (p + (1 - p) e^-L),

which grows with L. With pure epsilon, L is at most epsilon for every answer. With zCDP it is at most

    rho + 2 sqrt(rho ln(1 / delta)),

except with probability delta (Bun & Steinke 2016): for every order a > 1 the mean of exp((a - 1) L) is at most
exp((a - 1) a rho), so by Markov's inequality L exceeds t with probability at most exp((a - 1)(a rho - t)), which is
exp(-(t - rho)^2 / (4 rho)) for a = (t + rho) / (2 rho). An (epsilon, delta) budget adds up rho, so this holds for it,
too.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from dpselect import _show, _validate
from dpselect._numbers import (
    NotExact,
    exact_text,
    float_above,
    float_below,
    is_number,
    rational_from_text,
    rounded_down_text,
    rounded_up_text,
)
from dpselect._types import Number
from dpselect.accounting.charge import Charge, compact_json, is_on_grid, rho_of
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.mechanisms.base import MECHANISMS, MechanismBase
from dpselect.mechanisms.privacy import PrivacyLoss, epsilon_of_rho

AUTO = "auto"
_FORM = re.compile(r"(\s*zcdp\s*:)?([^,:;]+)(?:,(\s*cap\s*:)?([^,:;]+))?(?:,([^,:;]+))?", re.IGNORECASE)
_LARGEST_DELTA = Fraction(1, 100)  # in a text, where a cap or a decimal comma may be meant
_MOST_ACCURATE = "permute-and-flip"  # where epsilons add up
_COMPOSES_BEST = "exponential"  # where rhos add up


class Amount(NamedTuple):
    """What was spent, in the units of one budget: epsilon or rho, and the deltas of releases that have one."""

    value: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def plus(self, other: "Amount") -> "Amount":
        """The sum of both."""
        return Amount(self.value + other.value, self.delta + other.delta)


@dataclass(frozen=True, repr=False)
class Budget:
    """An amount of privacy of one of three types: pure epsilon, zCDP, or (epsilon, delta).

    `dpselect.pure`, `dpselect.zcdp` and `dpselect.approximate` make budgets. What a ledger has spent, and what remains,
    are budgets too. A pure budget is also the Fraction of its epsilon.

    Attributes:
        currency: "pure", "zcdp" or "approximate".
        epsilon: the exact epsilon; None for zCDP.
        rho: the exact rho of zero-concentrated differential privacy; None for a pure budget.
        delta: the exact delta; 0 for a pure budget.
        share: the part of delta for releases that have a delta of their own; None except for (epsilon, delta).
        cap: the largest epsilon of a single release in a pure budget, or None.

    Raises:
        InvalidValue: a charge has no cost in this type of budget, or breaks a rule of the budget.

    >>> zcdp("0.5").rho, zcdp("0.5").epsilon, zcdp("0.5").mechanism
    (Fraction(1, 2), None, 'exponential')
    """

    currency: str
    epsilon: Fraction | None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)
    share: Fraction | None = None
    cap: Fraction | None = None

    def __repr__(self) -> str:
        leading = ("epsilon", "rho") if self.share is None else ("epsilon", "delta")
        defaults = {("currency", self.currency), ("delta", "0"), ("share", "0.5")}
        stated = [(name, text) for name, text in self.to_dict().items() if (name, text) not in defaults]
        arguments = (repr(text) if name in leading else f"{name}={text!r}" for name, text in stated)
        return f"{self.currency}({', '.join(arguments)})"

    def __str__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        stated = self.to_dict()
        derived = {} if self.rho is None or "rho" in stated else {"rho that follows": rounded_down_text(self.rho)}
        return _show.page(_show.facts({**stated, **derived, "best mechanism": self.mechanism}, caption="Budget"))

    def to_dict(self) -> dict[str, str]:
        """Return what defines the budget, with exact numbers as text, in the order of the constructor's parameters.

        >>> pure("0.1").to_dict()
        {'currency': 'pure', 'epsilon': '0.1'}
        """
        fields = {
            "epsilon": self.epsilon,
            "rho": self.rho if self.share is None else None,
            "delta": None if self.rho is None else self.delta,
            "share": self.share,
            "cap": self.cap,
        }
        stated = {name: exact_text(number) for name, number in fields.items() if number is not None}
        return {"currency": self.currency, **stated}

    @property
    def mechanism(self) -> str:
        """The name of the mechanism that is the most accurate for this budget."""
        return _MOST_ACCURATE if self.rho is None else _COMPOSES_BEST

    @property
    def limit(self) -> Amount:
        """The largest sums that the filter allows: of epsilon or rho, and of delta."""
        value = self.epsilon if self.rho is None else self.rho
        return Amount(Fraction(value or 0), self.delta if self.share is None else self.delta * self.share)

    def of(self, amount: Amount) -> "Budget":
        """Return an amount in the units of this budget as a budget. See `Budget.check`."""
        return _pure(amount.value) if self.rho is None else Budget("zcdp", None, *amount)

    def check(self, charge: Charge) -> Amount:
        """Refuse a charge that this budget never allows, for another reason than its size; return what it costs.

        Args:
            charge: the charge. Other methods have it too, or `spent`, the sums of all costs.
        """
        amount = self.amount(charge)
        if self.cap is not None and charge.each > self.cap:
            raise InvalidValue(
                f"epsilon of a single release must be at most {exact_text(self.cap)}, the cap of this ledger, got"
                f" {rounded_up_text(charge.each)}"
            )
        return amount

    def amount(self, charge: Charge) -> Amount:
        """Return what a charge costs, in the units of this budget. See `Budget.check`."""
        if self.rho is not None:
            if charge.delta and not self.limit.delta:
                raise InvalidValue(
                    "this budget has no delta for releases: create a ledger whose budget has one, such as"
                    " zcdp:0.5,1e-9 or 1,1e-6"
                )
            return Amount(charge.rho, charge.delta)
        if charge.delta:
            raise InvalidValue(
                "a release with a delta has no pure epsilon: use a ledger whose budget has a delta, such as 1,1e-6 or"
                " zcdp:0.5,1e-9"
            )
        if charge.epsilon is None:
            raise InvalidValue(
                "a release of which only rho is known has no pure epsilon: use a ledger whose budget is zCDP or"
                " (epsilon, delta)"
            )
        return Amount(charge.epsilon)

    def recorded(self, charge: Charge) -> Charge:
        """Return a charge as a ledger with this budget records it: rounded up. See `Budget.check`.

        Sums stay short, because every cost is on a grid. It costs at least as much as the charge.
        """
        value, delta = self.limit
        return charge.rounded_up(value.denominator, delta.denominator, self.cap)

    def recorded_last(self, charge: Charge) -> Charge:
        """Return a charge of all that is left as a ledger records it: only delta is rounded up. See `Budget.check`."""
        return charge.with_delta_rounded_up(self.limit.delta.denominator)

    def admits(self, spent: Amount) -> bool:
        """Return whether these sums are within the budget. See `Budget.check`."""
        return spent.value <= self.limit.value and spent.delta <= self.limit.delta

    def left(self, spent: Amount) -> "Budget":
        """Return what remains. See `Budget.check`."""
        return self.of(Amount(self.limit.value - spent.value, self.limit.delta - spent.delta))

    def rest(self, spent: Amount) -> str:
        """Return how much is left of how much, in words, rounded to the safe side. See `Budget.check`."""
        limit = self.limit
        words = f"{_down(limit.value - spent.value)} of {_up(limit.value)}"
        if limit.delta:
            words += f", and delta {_down(limit.delta - spent.delta)} of {_up(limit.delta)}"
        if self.share is None:
            return words
        return f"{words} (of rho; the budget is epsilon {_up(self.epsilon)}, delta {_up(self.delta)})"

    def guaranteed(self, spent: Amount) -> str:
        """Return what holds for everything released, whatever was chosen after earlier answers. See `Budget.check`.

        The sum of pure epsilons bounds the log-ratio of any answers. For zCDP and (epsilon, delta), only the whole
        budget is a guarantee: an analyst who reads what was spent may stop at a moment that depends on the answers.
        """
        return f"{_up(spent.value)}-DP (pure)" if self.rho is None else f"the budget, {self.words}"

    @property
    def words(self) -> str:
        """The budget in words, rounded up."""
        cap = "" if self.cap is None else f" (at most {exact_text(self.cap)} for one release)"
        return f"{self._words(_up)}{cap}"

    @property
    def words_down(self) -> str:
        """The budget in words, rounded down: for what is left."""
        return self._words(_down)

    def _words(self, text: "Callable[[Fraction | None], str]") -> str:
        if self.share is not None:  # a rho that follows is a limit, and rounded down
            kept = f", and delta {_down(self.limit.delta)} for releases that have one" if self.limit.delta else ""
            return f"epsilon {_up(self.epsilon)}, delta {_up(self.delta)} (rho {_down(self.rho)}{kept})"
        if self.rho is None:
            return f"epsilon {text(self.epsilon)}"
        return f"rho {text(self.rho)}{f', delta {text(self.delta)}' if self.delta else ''}"

    @property
    def follows(self) -> Mapping[str, float]:
        """The zCDP that follows from a cap for all releases together, by mechanism; empty without a cap."""
        # As rho(e) / e does not fall in e, it is epsilon / cap times rho(cap).
        if self.cap is None:
            return {}
        names = {"any": "pure", **{name: name for name in MECHANISMS}}
        times, cap = self.limit.value / self.cap, self.cap
        return {shown: float_above(times * rho_of(name, cap)) for shown, name in names.items()}


class _Pure(Fraction, Budget):
    # A pure budget, which compares and computes like its epsilon. Its methods are those of `Budget`.

    def __new__(cls, *_: Any, epsilon: Fraction, **__: Any) -> "_Pure":
        return super().__new__(cls, epsilon)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pure, (self.epsilon, self.cap)

    def __copy__(self) -> "_Pure":
        return self

    def __deepcopy__(self, _: Any) -> "_Pure":
        return self

    __repr__ = Budget.__repr__


def _pure(epsilon: Fraction, cap: Fraction | None = None) -> Budget:
    return _Pure("pure", epsilon=epsilon, cap=cap)


def pure(epsilon: Number, *, cap: Number | None = None) -> Budget:
    """Return a budget of pure epsilon, for `Ledger(path, budget=...)`.

    Args:
        epsilon: the total epsilon: a number, or a string such as "1", which is taken exactly.
        cap: the largest epsilon of a single release. With it, a zCDP guarantee follows for the whole ledger.

    Raises:
        InvalidType, InvalidValue: an argument is not a positive number; the cap exceeds the budget, or is an unusual
            fraction.

    >>> pure("1") == 1
    True
    >>> round(pure("10", cap="0.1").follows["exponential"], 3)
    0.125
    """
    total = _validate.exact_positive(budget=epsilon)
    most = None if cap is None else _validate.exact_positive(cap=cap)
    if most is not None and most > total:
        raise InvalidValue("cap must be at most the budget: it is the largest epsilon of one release")
    if most is not None and not is_on_grid(most, total.denominator):
        raise InvalidValue("cap must be a number that is charged exactly, such as 0.1, 1e-50 or 1/400")
    return _pure(total, most)


def zcdp(rho: Number, *, delta: Number = 0) -> Budget:
    """Return a budget of zero-concentrated differential privacy, for `Ledger(path, budget=...)`.

    Args:
        rho: the total rho, taken exactly.
        delta: the largest sum of deltas of releases that have a delta of their own. With 0 they are refused.

    Raises:
        InvalidType, InvalidValue: an argument is not a number; rho is not positive, or delta is not from 0 to below 1.

    >>> zcdp("0.5", delta="1e-9")
    zcdp('0.5', delta='1e-9')
    """
    return _warned(_checked_zcdp(rho, delta))


def approximate(epsilon: Number, delta: Number, *, share: Number = "1/2") -> Budget:
    """Return a budget of (epsilon, delta)-differential privacy, for `Ledger(path, budget=...)`.

    Args:
        epsilon: the epsilon of everything that the ledger pays for, taken exactly.
        delta: the delta of everything, strictly between 0 and 1.
        share: the part of delta that is kept for releases with a delta of their own, from 0 to below 1. The rest turns
            rho into epsilon. Give 0 if no release has a delta.

    Returns:
        The budget. Its `rho` is the sum that the releases may reach.

    Raises:
        InvalidType, InvalidValue: an argument is not a number, or is out of range.

    >>> round(float(approximate("1", "1e-6").rho), 4)
    0.0229
    """
    return _warned(_checked_approximate(epsilon, delta, share))


def _checked_zcdp(rho: Number, delta: Number) -> Budget:
    return Budget("zcdp", None, _validate.exact_positive(rho=rho), _validate.below_one(delta=delta))


def _checked_approximate(epsilon: Number, delta: Number, share: Number) -> Budget:
    exact = _validate.exact_positive(epsilon=epsilon)
    failure = _validate.below_one(delta=delta)
    if not failure:
        raise InvalidValue("delta must be > 0: without a delta, the budget is pure('1')")
    kept = _validate.below_one(share=share)
    return Budget("approximate", exact, rho_within(exact, failure * (1 - kept)), failure, kept)


def _warned(budget: Budget) -> Budget:
    # A budget that is stated now, and not read from a ledger: its author is warned of a large delta.
    _validate.warn_of_large_delta(budget.delta)
    return budget


def as_budget(budget: Any) -> Budget:
    """The budget that an argument or a text states."""
    # A number is pure epsilon. A text may also be zcdp:RHO, zcdp:RHO,DELTA, EPSILON,DELTA, EPSILON,DELTA,SHARE, or
    # EPSILON,cap:E.
    if isinstance(budget, Budget):
        if budget.limit.value <= 0:  # what remains of another ledger may be nothing
            raise InvalidValue("budget must be > 0: there would be nothing to spend")
        return budget
    if not isinstance(budget, str) or is_number(budget.strip()):
        return pure(budget)
    form = _FORM.fullmatch(budget)
    wrong = f"budget must have a form such as 1, 10,cap:0.1, zcdp:0.5, zcdp:0.5,1e-9 or 1,1e-6, got {budget[:40]!r}"
    if form is None or (form[5] and (form[1] or form[3])) or (form[1] and form[3]):
        raise InvalidValue(wrong)
    concentrated, first, capped, second, share = form.groups()
    try:
        if concentrated:
            return zcdp(first, delta=second or 0)
        if capped or not second:
            return pure(first, cap=second)
        if _validate.below_one(delta=second) > _LARGEST_DELTA:
            rule = f"delta {second[:40]} protects nobody"
            raise InvalidValue(f"{rule}: write 1,1e-6, or 10,cap:0.1 for a cap on one release")
        return approximate(first, second, **({"share": share} if share else {}))
    except InvalidValue as error:  # the reader who wrote 0,5 for a half learns that a comma separates two numbers
        raise InvalidValue(f"{wrong}: {error}") from None


def stored_text(budget: Budget) -> str:
    """The canonical text in which a ledger keeps a budget forever, with the rho that was fixed."""
    fixed = {} if budget.share is None else {"fixed_rho": str(budget.rho)}
    return compact_json({**budget.to_dict(), **fixed})


def budget_from_stored(text: str) -> Budget:
    """The budget of a text that `stored_text` wrote, or a ValueError."""
    # A version that searches more finely may fix a slightly larger rho. `rho_within` finds all but one part in 10**6.
    make: Mapping[str, Callable[..., Budget]] = {
        "pure": pure,
        "zcdp": _checked_zcdp,
        "approximate": _checked_approximate,
    }
    try:
        fields = json.loads(text)
        fixed = fields.pop("fixed_rho", None)
        budget = make[fields.pop("currency")](**fields)
        if fixed is not None:
            known, rho = budget.limit.value, rational_from_text(fixed)
            if not 0 < rho <= known * (1 + Fraction(1, 10**6)):
                raise ValueError("the rho does not follow from epsilon and delta")
            budget = replace(budget, rho=rho)
    except (DPSelectError, NotExact, TypeError, AttributeError, KeyError, RecursionError):
        raise ValueError("not a stored budget") from None
    if stored_text(budget) != text:
        raise ValueError("not in canonical form")
    return budget


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho that is known to imply (epsilon, delta), rounded down."""
    # For one order a the computed bound has an absolute error: each of the logarithms, products and sums has a relative
    # error of at most 2**-52 of its own size, and there are fewer than ten of them. ln(a - 1) has an absolute error of
    # 2**-52 too, as a - 1 is a rounded exponential; the last term is at least 1/(a - 1), which covers it. So 10**-14
    # times the sum of the absolute values of all terms is subtracted, which is more than 40 units of the last place.
    #
    # With L = 1 - ln delta in place of the slowly growing terms, the best order is a = 1 + (L + sqrt(L(L + epsilon))) /
    # epsilon. If epsilon is small and delta is not, they matter, and the best order is near 2. The search covers both.
    failure, value = _log_below(delta), float_below(epsilon)
    if not 0 < value < math.inf:
        raise InvalidValue("epsilon is too small or too large for (epsilon, delta): give a budget in zCDP")
    about = 1 - failure
    middle = math.log(about + math.sqrt(about) * math.sqrt(about + value)) - math.log(value)
    least, most = math.floor(20 * min(middle, 0) - 100), math.ceil(20 * max(middle, 0) + 100)
    steps = [index / 20 for index in range(least, most + 1)]
    best = max(steps, key=lambda step: _rho_of_order(value, failure, step))
    rho = max(_rho_of_order(value, failure, best + index / 2000) for index in range(-100, 101))
    if rho <= 0:
        raise InvalidValue("epsilon and delta are too small to be converted: give a budget in zCDP")
    return Fraction(rho)


def _log_below(delta: Fraction) -> float:
    # Ln delta within a few units of the last place: of a float below delta, or below delta times a power of two.
    halvings = delta.denominator.bit_length() - delta.numerator.bit_length() if delta < Fraction(1, 2**1000) else 0
    return math.log(float_below(delta * 2**halvings)) - halvings * math.log(2)


def _rho_of_order(epsilon: float, failure: float, step: float) -> float:
    # The rho that order 1 + e**step allows, rounded down.
    less_one = math.exp(min(step, 700.0))
    order = 1 + less_one
    terms = [epsilon, failure / less_one, min(step, 700.0) / less_one, order * math.log1p(1 / less_one) / less_one]
    # -a ln(1 - 1/a) = a ln(a / (a - 1)) = a ln(1 + 1/(a - 1))
    return (math.fsum(terms) - 1e-14 * math.fsum(map(abs, terms))) / order


# A few operations in floats, each within 2^-53 relative, of positive terms: far below this.
_ROUNDED_UP = 1 + 1e-14


def largest_loss(budget: Budget, delta: float) -> float:
    # How large the privacy loss can be, except with probability `delta`, which pure epsilon does not need.
    limit = float_above(budget.limit.value)
    return limit if budget.rho is None else (limit + 2 * math.sqrt(limit * -math.log(delta))) * _ROUNDED_UP


def largest_belief(prior: Number, budget: Number | Budget, delta: Number = "1e-6") -> float:
    """Return the largest belief that a person is in the data, after all answers that a budget pays for, rounded up.

    Args:
        prior: the belief before, strictly between 0 and 1.
        budget: a number for pure epsilon, text such as "zcdp:0.5" or "1,1e-6", or a `Budget`.
        delta: the probability with which the belief may be larger, if the budget is not pure epsilon. If releases have
            a delta of their own, that of the budget comes on top of it.

    Raises:
        InvalidType, InvalidValue: `prior` or `delta` is not a number between 0 and 1, or the budget is not valid.

    >>> round(largest_belief("0.5", 1), 4), round(largest_belief("0.01", 1), 4)
    (0.7311, 0.0267)
    >>> round(largest_belief("0.5", "1,1e-6"), 3)
    0.759
    """
    before = _validate.fraction_of_one(prior=prior)
    doubt = _validate.fraction_of_one(delta=delta)
    _validate.warn_of_large_delta(doubt)
    less_likely = math.exp(-largest_loss(as_budget(budget), doubt))
    return min(1.0, before / (before + (1 - before) * less_likely) * _ROUNDED_UP)


@dataclass(frozen=True, init=False)
class Price:
    """What a question may cost, and which mechanism draws: exactly one of epsilon and rho, for all draws together."""

    # The mechanism is a name, or "auto" for the most accurate one of the budget. The delta is for unlisted values.

    epsilon: Fraction | None
    rho: Fraction | None
    mechanism: str
    delta: Fraction | None

    def __init__(
        self,
        epsilon: Number | None = None,
        rho: Number | None = None,
        mechanism: str = AUTO,
        delta: Number | None = None,
    ) -> None:
        if (epsilon is None) == (rho is None):
            raise InvalidValue("give exactly one of epsilon and rho, such as an epsilon of 0.1")
        if not isinstance(mechanism, str):
            raise InvalidType(f"mechanism must be 'auto' or the name of a mechanism, got {type(mechanism).__name__}")
        if mechanism != AUTO and mechanism not in MECHANISMS:
            known = ", ".join([AUTO, *MECHANISMS])
            raise InvalidValue(f"mechanism must be one of {known}, got {mechanism[:40]!r}")
        vars(self).update(
            epsilon=None if epsilon is None else _validate.exact_positive(epsilon=epsilon),
            rho=None if rho is None else _validate.exact_positive(rho=rho),
            mechanism=mechanism,
            delta=None if delta is None else _found_delta(delta),
        )

    def drawn_by(self, budget: Budget | None, count: int, **claim: Any) -> MechanismBase:
        """The mechanism for each of `count` draws that one person can influence, with its part of the price."""
        kind = self.kind(budget)
        return kind(self.each(kind.loss, count), **claim)

    def kind(self, budget: Budget | None) -> type[MechanismBase]:
        """The class of mechanism that was named, or the most accurate one for the budget."""
        best = _MOST_ACCURATE if budget is None else budget.mechanism
        return MECHANISMS[best if self.mechanism == AUTO else self.mechanism]

    def each(self, loss: PrivacyLoss, count: int) -> Fraction:
        """The epsilon of each of `count` equal releases with this privacy loss."""
        if self.rho is not None:
            return epsilon_of_rho(loss, self.rho / count)
        return Fraction(self.epsilon or 0) / count

    def is_concentrated(self, budget: Budget | None) -> bool:
        """Whether costs add up in zCDP, which makes many small draws cheaper."""
        return self.rho is not None if budget is None else budget.rho is not None


def _found_delta(delta: Any) -> Fraction:
    number = _validate.exact(delta=delta)
    if not 0 < number <= Fraction(1, 2):
        raise InvalidValue(
            f"delta must be above 0 and at most 1/2, got {str(delta)[:40]}: use much less than one over the number of"
            " people, such as 1e-9"
        )
    return number


def _up(number: Fraction | None) -> str:
    return rounded_up_text(number) if number else "0"


def _down(number: Fraction | None) -> str:
    return rounded_down_text(number) if number else "0"
