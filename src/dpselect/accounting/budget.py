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
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

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
from dpselect.mechanisms.parameters import MECHANISMS, Parameters
from dpselect.mechanisms.privacy import PrivacyLoss, epsilon_of_rho

AUTO = "auto"
_FORM = re.compile(r"(\s*zcdp\s*:)?([^,:;]+)(?:,(\s*cap\s*:)?([^,:;]+))?(?:,([^,:;]+))?", re.IGNORECASE)
_LARGEST_DELTA = Fraction(1, 100)  # in a text, where a cap or a decimal comma may be meant


class Amount(NamedTuple):
    """What was spent, in the units of one budget: epsilon or rho, and the deltas of releases that have one."""

    value: Fraction
    delta: Fraction = Fraction(0)

    def plus(self, other: "Amount") -> "Amount":
        """Return the sum of both."""
        return Amount(self.value + other.value, self.delta + other.delta)


class Budget(ABC):
    """An amount of privacy in one of three currencies: pure epsilon, zCDP, or (epsilon, delta).

    `dpselect.pure`, `dpselect.zcdp` and `dpselect.approximate` make budgets. What a ledger has spent, and what remains,
    are budgets too.

    Attributes:
        epsilon: the exact epsilon; None for zCDP.
        rho: the exact rho of zero-concentrated differential privacy; None for a pure budget.
        delta: the exact delta; 0 for a pure budget.
        mechanism: the name of the mechanism that is the most accurate for this budget.

    >>> zcdp("0.5").rho, zcdp("0.5").epsilon, zcdp("0.5").mechanism
    (Fraction(1, 2), None, 'exponential')
    """

    currency: ClassVar[str]
    mechanism: ClassVar[str]

    def _repr_html_(self) -> str:
        """What a notebook shows: the currency and the exact numbers."""
        stated = self.to_dict()
        derived = {} if self.rho is None or "rho" in stated else {"rho that follows": rounded_down_text(self.rho)}
        return _show.page(_show.facts({**stated, **derived, "best mechanism": self.mechanism}, caption="Budget"))

    @property
    @abstractmethod
    def epsilon(self) -> Fraction | None:
        """Return the exact epsilon; None for zCDP."""

    @property
    @abstractmethod
    def rho(self) -> Fraction | None:
        """Return the exact rho of zCDP; None for a pure budget."""

    @property
    @abstractmethod
    def delta(self) -> Fraction:
        """Return the exact delta; 0 for a pure budget."""

    @property
    @abstractmethod
    def limit(self) -> Amount:
        """Return the largest sums that the filter allows."""

    @abstractmethod
    def amount(self, charge: Charge) -> Amount:
        """Return what a charge costs.

        Args:
            charge: the charge.

        Returns:
            Its cost in the units of this budget.

        Raises:
            InvalidValue: it has no cost in this currency.
        """

    @abstractmethod
    def shown(self, amount: Amount) -> "Budget":
        """Return an amount of this currency as a budget.

        Args:
            amount: a cost, a sum of costs, or what is left.

        Returns:
            The same amount as a budget.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, str]:
        """Return what defines the budget, with exact numbers as text.

        Returns:
            A dict with the currency and the numbers.
        """

    @property
    @abstractmethod
    def words(self) -> str:
        """Return the budget in words, rounded up."""

    @property
    @abstractmethod
    def words_down(self) -> str:
        """Return the budget in words, rounded down: for what is left."""

    def guaranteed(self, spent: Amount) -> str:  # noqa: ARG002 - only pure sums are guarantees
        """Return what holds for everything that was released, even if all was chosen after seeing earlier answers.

        For zCDP and (epsilon, delta) it is the whole budget. What was spent so far is no guarantee: an analyst who
        reads it may stop at a moment that depends on the answers.

        Args:
            spent: the sums of all costs.

        Returns:
            The words.
        """
        return f"the budget, {self.words}"

    def admits(self, spent: Amount) -> bool:
        """Return whether these sums are within the budget.

        Args:
            spent: the sums of all costs.

        Returns:
            Whether no part of them exceeds its limit.
        """
        return spent.value <= self.limit.value and spent.delta <= self.limit.delta

    def rest(self, spent: Amount) -> str:
        """Return how much is left of how much, in words, rounded to the safe side.

        Args:
            spent: the sums of all costs.

        Returns:
            The words.
        """
        left = self.limit.value - spent.value
        words = f"{_down(left)} of {_up(self.limit.value)}"
        if self.limit.delta:
            words += f", and delta {_down(self.limit.delta - spent.delta)} of {_up(self.limit.delta)}"
        return words

    def left(self, spent: Amount) -> "Budget":
        """Return what remains.

        Args:
            spent: the sums of all costs.

        Returns:
            The rest of the budget.
        """
        return self.shown(Amount(self.limit.value - spent.value, self.limit.delta - spent.delta))

    def recorded(self, charge: Charge) -> Charge:
        """Return a charge as a ledger with this budget records it: rounded up, so that sums stay short.

        Args:
            charge: the charge.

        Returns:
            The charge to record. It costs at least as much.
        """
        value, delta = self.limit
        return charge.rounded_up(value.denominator, delta.denominator).with_rho(value.denominator)

    def recorded_last(self, charge: Charge) -> Charge:
        """Return a charge of all that is left as a ledger records it: what ends the sum need not be rounded.

        Args:
            charge: a charge that costs exactly what is left of epsilon or rho.

        Returns:
            The charge to record.
        """
        return charge.with_delta_rounded_up(self.limit.delta.denominator)

    def check(self, charge: Charge) -> None:
        """Refuse a charge that this budget never allows, for another reason than its size.

        Args:
            charge: the charge.

        Raises:
            InvalidValue: the charge has no cost in this currency, or breaks a rule of the budget.
        """
        self.amount(charge)

    @property
    def follows(self) -> Mapping[str, float]:
        """Return the zCDP that follows for all releases together, by mechanism; empty if none does."""
        return {}


class PureBudget(Fraction, Budget):
    """Pure epsilon. It is a Fraction: it compares and computes like its epsilon.

    Args:
        epsilon: the epsilon.
        cap: the largest epsilon of a single release, or None.
    """

    currency = "pure"
    mechanism = "permute-and-flip"
    _cap: Fraction | None

    def __new__(cls, epsilon: Fraction, cap: Fraction | None = None) -> "PureBudget":
        """Make a Fraction with a cap."""
        budget = super().__new__(cls, epsilon)
        budget._cap = cap
        return budget

    def __reduce__(self) -> tuple[Any, ...]:
        return PureBudget, (self.epsilon, self.cap)

    def __copy__(self) -> "PureBudget":
        return self

    def __deepcopy__(self, _: Any) -> "PureBudget":
        return self

    def __repr__(self) -> str:
        return f"pure({_arguments(self)})"

    @property
    def cap(self) -> Fraction | None:
        """Return the largest epsilon of a single release, or None. Like the budget, it never changes."""
        return self._cap

    @property
    def epsilon(self) -> Fraction:
        """Return the exact epsilon."""
        return Fraction(self.numerator, self.denominator)

    @property
    def rho(self) -> None:
        """Return None: pure epsilon has its own sum."""
        return

    @property
    def delta(self) -> Fraction:
        """Return 0."""
        return Fraction(0)

    @property
    def limit(self) -> Amount:
        """Return the largest sum of epsilons."""
        return Amount(self.epsilon)

    def amount(self, charge: Charge) -> Amount:
        """Return the epsilon of a charge."""
        if charge.delta:
            raise InvalidValue(
                "a release with a delta has no pure epsilon: use a ledger whose budget has a delta, such as 1,1e-6 or"
                " zcdp:0.5,1e-9"
            )
        epsilon = charge.epsilon
        if epsilon is None:
            raise InvalidValue(
                "a release of which only rho is known has no pure epsilon: use a ledger whose budget is zCDP or"
                " (epsilon, delta)"
            )
        return Amount(epsilon)

    def recorded(self, charge: Charge) -> Charge:
        """Return a charge with its epsilon rounded up, and its rho stated."""
        rounded = charge.rounded_up(self.limit.value.denominator)
        if (
            self.cap is not None and rounded.each > self.cap
        ):  # the release itself is within the cap, and the cap is on the grid
            rho = rounded.rho if rounded.states_rho else None
            rounded = Charge.recorded(rounded.what, self.cap, rounded.mechanism, rounded.count, rho)
        return rounded.with_rho()

    def check(self, charge: Charge) -> None:
        """Refuse a charge without a pure epsilon, or with a release beyond the cap."""
        self.amount(charge)
        if self.cap is not None and charge.each > self.cap:
            raise InvalidValue(
                f"epsilon of a single release must be at most {exact_text(self.cap)}, the cap of this ledger, got"
                f" {rounded_up_text(charge.each)}"
            )

    def guaranteed(self, spent: Amount) -> str:
        """Return the epsilon that was spent: the log-ratio of any answers is at most the sum of their epsilons."""
        return f"{_up(spent.value)}-DP (pure)"

    def shown(self, amount: Amount) -> Budget:
        """Return an epsilon as a budget."""
        return PureBudget(amount.value)

    def to_dict(self) -> dict[str, str]:
        """Return the epsilon and, if there is one, the cap."""
        cap = {} if self.cap is None else {"cap": exact_text(self.cap)}
        return {"currency": self.currency, "epsilon": exact_text(self.epsilon), **cap}

    @property
    def words(self) -> str:
        """Return the epsilon and the cap in words."""
        cap = "" if self.cap is None else f" (at most {exact_text(self.cap)} for one release)"
        return f"epsilon {_up(self.epsilon)}{cap}"

    @property
    def words_down(self) -> str:
        """Return the epsilon, rounded down."""
        return f"epsilon {_down(self.epsilon)}"

    @property
    def follows(self) -> Mapping[str, float]:
        """Return the zCDP that follows from the cap: rho(e) / e does not fall in e, so it is epsilon / cap rho(cap)."""
        if self.cap is None:
            return {}
        names = {"any": "pure", **{name: name for name in MECHANISMS}}
        times, cap = self.epsilon / self.cap, self.cap
        return {shown: float_above(times * rho_of(name, cap)) for shown, name in names.items()}


class ConcentratedBudget(Budget):
    """Zero-concentrated differential privacy, and a delta for releases that have one.

    Args:
        rho: the rho.
        delta: the sum of deltas of all releases that have one.
    """

    currency = "zcdp"
    mechanism = "exponential"

    def __init__(self, rho: Fraction, delta: Fraction) -> None:
        self._limit = Amount(rho, delta)

    def __repr__(self) -> str:
        return f"zcdp({_arguments(self)})"

    def __str__(self) -> str:
        return self.words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(compact_json(self.to_dict()))

    @property
    def epsilon(self) -> Fraction | None:
        """Return None: zCDP has no single epsilon."""
        return None

    @property
    def rho(self) -> Fraction:
        """Return the exact rho."""
        return self._limit.value

    @property
    def delta(self) -> Fraction:
        """Return the exact delta for releases that have one."""
        return self._limit.delta

    @property
    def limit(self) -> Amount:
        """Return the largest sums of rho and of delta."""
        return self._limit

    def amount(self, charge: Charge) -> Amount:
        """Return the rho and the delta of a charge."""
        if charge.delta and not self.limit.delta:
            raise InvalidValue(
                "this budget has no delta for releases: create a ledger whose budget has one, such as"
                " zcdp:0.5,1e-9 or 1,1e-6"
            )
        return Amount(charge.rho, charge.delta)

    def shown(self, amount: Amount) -> Budget:
        """Return a rho and a delta as a budget."""
        return ConcentratedBudget(*amount)

    def to_dict(self) -> dict[str, str]:
        """Return rho and delta."""
        return {"currency": self.currency, "rho": exact_text(self.rho), "delta": exact_text(self.delta)}

    @property
    def words(self) -> str:
        """Return rho and delta in words."""
        return f"rho {_up(self.rho)}{f', delta {_up(self.delta)}' if self.delta else ''}"

    @property
    def words_down(self) -> str:
        """Return rho and delta, rounded down."""
        return f"rho {_down(self.rho)}{f', delta {_down(self.delta)}' if self.delta else ''}"


class ApproximateBudget(ConcentratedBudget):
    """(epsilon, delta)-differential privacy: a rho that implies epsilon at a part of delta, and the rest of delta.

    Args:
        epsilon: the epsilon of the whole ledger.
        delta: the delta of the whole ledger.
        share: the part of delta for releases that have a delta of their own.
        rho: the rho that was fixed when the ledger was created; computed if None.
    """

    currency = "approximate"

    def __init__(self, epsilon: Fraction, delta: Fraction, share: Fraction, rho: Fraction | None = None) -> None:
        fixed = rho_within(epsilon, delta * (1 - share)) if rho is None else rho
        super().__init__(fixed, delta * share)
        self._stated = epsilon, delta, share

    def __repr__(self) -> str:
        return f"approximate({_arguments(self)})"

    @property
    def epsilon(self) -> Fraction:
        """Return the exact epsilon."""
        return self._stated[0]

    @property
    def delta(self) -> Fraction:
        """Return the exact delta of the whole ledger."""
        return self._stated[1]

    @property
    def share(self) -> Fraction:
        """Return the part of delta for releases that have a delta of their own."""
        return self._stated[2]

    def rest(self, spent: Amount) -> str:
        """Return how much rho is left of how much, and of which epsilon and delta, in words."""
        return f"{super().rest(spent)} (of rho; the budget is epsilon {_up(self.epsilon)}, delta {_up(self.delta)})"

    def to_dict(self) -> dict[str, str]:
        """Return epsilon, delta and the share. The rho follows from them."""
        epsilon, delta, share = map(exact_text, self._stated)
        return {"currency": self.currency, "epsilon": epsilon, "delta": delta, "share": share}

    @property
    def words(self) -> str:
        """Return the budget, and what the filter adds up, in words."""
        kept = f", and delta {_down(self.limit.delta)} for releases that have one" if self.limit.delta else ""
        return f"epsilon {_up(self.epsilon)}, delta {_up(self.delta)} (rho {_down(self.rho)}{kept})"

    words_down = words


def pure(epsilon: Number, *, cap: Number | None = None) -> Budget:
    """Return a budget of pure epsilon.

    Args:
        epsilon: the total epsilon: a number, or a string such as "1", which is taken exactly.
        cap: the largest epsilon of a single release. With it, a zCDP guarantee follows for the whole ledger.

    Returns:
        The budget, for `Ledger(path, budget=...)`.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: an argument is not positive; the cap exceeds the budget, or is an unusual fraction.

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
    return PureBudget(total, most)


def zcdp(rho: Number, *, delta: Number = 0) -> Budget:
    """Return a budget of zero-concentrated differential privacy.

    Args:
        rho: the total rho, taken exactly.
        delta: the largest sum of deltas of releases that have a delta of their own. With 0 they are refused.

    Returns:
        The budget, for `Ledger(path, budget=...)`.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: rho is not positive, or delta is not from 0 to below 1.

    >>> zcdp("0.5", delta="1e-9")
    zcdp('0.5', delta='1e-9')
    """
    return _warned(_concentrated(rho, delta))


def approximate(epsilon: Number, delta: Number, *, share: Number = "1/2") -> Budget:
    """Return a budget of (epsilon, delta)-differential privacy.

    Args:
        epsilon: the epsilon of everything that the ledger pays for, taken exactly.
        delta: the delta of everything, strictly between 0 and 1.
        share: the part of delta that is kept for releases with a delta of their own, from 0 to below 1. The rest turns
            rho into epsilon. Give 0 if no release has a delta.

    Returns:
        The budget, for `Ledger(path, budget=...)`. Its `rho` is the sum that the releases may reach.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: an argument is out of range.

    >>> round(float(approximate("1", "1e-6").rho), 4)
    0.0229
    """
    return _warned(_approximate(epsilon, delta, share))


def _concentrated(rho: Number, delta: Number) -> Budget:
    return ConcentratedBudget(_validate.exact_positive(rho=rho), _below_one(delta=delta))


def _approximate(epsilon: Number, delta: Number, share: Number) -> Budget:
    exact = _validate.exact_positive(epsilon=epsilon)
    failure = _below_one(delta=delta)
    if not failure:
        raise InvalidValue("delta must be > 0: without a delta, the budget is pure('1')")
    return ApproximateBudget(exact, failure, _below_one(share=share))


def _warned(budget: Budget) -> Budget:
    """A budget that is stated now, and not read from a ledger: its author is warned of a large delta."""
    _validate.warn_of_large_delta(budget.delta)
    return budget


def as_budget(budget: Any) -> Budget:
    """The budget that an argument or a text states.

    A number is pure epsilon. A text may also be zcdp:RHO, zcdp:RHO,DELTA, EPSILON,DELTA, EPSILON,DELTA,SHARE, or
    EPSILON,cap:E.

    >>> as_budget("zcdp:0.5"), as_budget("1,1e-6"), as_budget("10,cap:0.1")
    (zcdp('0.5'), approximate('1', '0.000001'), pure('10', cap='0.1'))
    """
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
    try:
        return _budget_of_parts(*form.groups())
    except InvalidValue as error:  # the reader who wrote 0,5 for a half learns that a comma separates two numbers
        raise InvalidValue(f"{wrong}: {error}") from None


def _budget_of_parts(
    concentrated: str | None, first: str, capped: str | None, second: str | None, share: str | None
) -> Budget:
    if concentrated:
        return zcdp(first, delta=second or 0)
    if capped or not second:
        return pure(first, cap=second)
    if _below_one(delta=second) > _LARGEST_DELTA:
        raise InvalidValue(f"delta {second[:40]} protects nobody: write 1,1e-6, or 10,cap:0.1 for a cap on one release")
    return approximate(first, second, **({"share": share} if share else {}))


def stored_text(budget: Budget) -> str:
    """The canonical text in which a ledger keeps a budget forever, with the rho that was fixed."""
    fixed = {"fixed_rho": str(budget.rho)} if budget.currency == ApproximateBudget.currency else {}
    return compact_json({**budget.to_dict(), **fixed})


def budget_from_stored(text: str) -> Budget:
    """The budget of a stored text.

    Raises:
        ValueError: the text was not written by `stored_text`.
    """
    try:
        fields = json.loads(text)
        budget: Budget = _STORED[fields.pop("currency")](**fields)
    except (DPSelectError, NotExact, TypeError, AttributeError, KeyError, RecursionError):
        raise ValueError("not a stored budget") from None
    if stored_text(budget) != text:
        raise ValueError("not in canonical form")
    return budget


def _stored_approximate(epsilon: str, delta: str, share: str, fixed_rho: str) -> Budget:
    """The budget with the rho that was fixed, which must follow from epsilon and delta.

    A version that searches more finely may fix a slightly larger rho. `rho_within` finds all but one part in 10**6.
    """
    known, fixed = _approximate(epsilon, delta, share), rational_from_text(fixed_rho)
    if not 0 < fixed <= known.limit.value * (1 + Fraction(1, 10**6)):
        raise ValueError("the rho does not follow from epsilon and delta")
    exact_epsilon, exact_delta, exact_share = map(rational_from_text, (epsilon, delta, share))
    return ApproximateBudget(exact_epsilon, exact_delta, exact_share, fixed)


_STORED: Mapping[str, Any] = {
    PureBudget.currency: pure,
    ConcentratedBudget.currency: _concentrated,
    ApproximateBudget.currency: _stored_approximate,
}


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho that is known to imply (epsilon, delta), rounded down.

    For one order a the computed bound has an absolute error: each of the logarithms, products and sums has a relative
    error of at most 2**-52 of its own size, and there are fewer than ten of them. ln(a - 1) has an absolute error of
    2**-52 too, as a - 1 is a rounded exponential; the last term is at least 1/(a - 1), which covers it. So 10**-14
    times the sum of the absolute values of all terms is subtracted, which is more than 40 units of the last place.

    With L = 1 - ln delta in place of the slowly growing terms, the best order is a = 1 + (L + sqrt(L(L + epsilon))) /
    epsilon. If epsilon is small and delta is not, they matter, and the best order is near 2. The search covers both.
    """
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
    """Ln delta within a few units of the last place: of a float below delta, or below delta times a power of two."""
    halvings = delta.denominator.bit_length() - delta.numerator.bit_length() if delta < Fraction(1, 2**1000) else 0
    return math.log(float_below(delta * 2**halvings)) - halvings * math.log(2)


def _rho_of_order(epsilon: float, failure: float, step: float) -> float:
    """The rho that order 1 + e**step allows, rounded down."""
    less_one = math.exp(min(step, 700.0))
    order = 1 + less_one
    terms = [epsilon, failure / less_one, min(step, 700.0) / less_one, order * math.log1p(1 / less_one) / less_one]
    # -a ln(1 - 1/a) = a ln(a / (a - 1)) = a ln(1 + 1/(a - 1))
    return (math.fsum(terms) - 1e-14 * math.fsum(map(abs, terms))) / order


@dataclass(frozen=True)
class Price:
    """What a question may cost, and which mechanism draws: exactly one of epsilon and rho, for all draws together.

    Args:
        epsilon: the epsilon, or None.
        rho: the rho of zCDP, or None.
        mechanism: "auto" for the most accurate mechanism of the budget, or the name of one.
        delta: the delta of all draws together, for values that nobody listed; None for pure epsilon.

    Raises:
        InvalidValue: both or none of epsilon and rho are given, there is no such mechanism, or delta is not above 0
            and at most 1/2.
        InvalidType: an argument has the wrong type.

    >>> Price(rho="0.05").drawn_by(zcdp("0.5"), count=1).name
    'exponential'
    """

    epsilon: Any = None
    rho: Any = None
    mechanism: Any = AUTO
    delta: Any = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidValue("give exactly one of epsilon and rho, such as an epsilon of 0.1")
        if not isinstance(self.mechanism, str):
            kind = type(self.mechanism).__name__
            raise InvalidType(f"mechanism must be 'auto' or the name of a mechanism, got {kind}")
        if self.mechanism != AUTO and self.mechanism not in MECHANISMS:
            known = ", ".join([AUTO, *MECHANISMS])
            raise InvalidValue(f"mechanism must be one of {known}, got {self.mechanism[:40]!r}")
        for name in ("epsilon", "rho"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _validate.exact_positive(**{name: getattr(self, name)}))
        if self.delta is not None:
            object.__setattr__(self, "delta", _found_delta(self.delta))

    def drawn_by(self, budget: Budget | None, count: int, **claim: Any) -> Parameters:
        """Return the mechanism for each of `count` draws.

        Args:
            budget: the budget that pays; None without a ledger.
            count: the number of draws that one person can influence.
            **claim: how far apart neighbours are, for the constructor of the mechanism.

        Returns:
            The mechanism, with a share of the price.
        """
        kind = self.kind(budget)
        return kind(self.each(kind.loss, count), **claim)

    def kind(self, budget: Budget | None) -> type[Parameters]:
        """Return the class of the mechanism that draws.

        Args:
            budget: the budget that pays; None without a ledger.

        Returns:
            The class that was named, or the most accurate one for the budget.
        """
        best = (PureBudget if budget is None else budget).mechanism
        return MECHANISMS[best if self.mechanism == AUTO else self.mechanism]

    def each(self, loss: PrivacyLoss, count: int) -> Fraction:
        """Return the epsilon of each of `count` equal releases with this privacy loss.

        Args:
            loss: the privacy loss of a release.
            count: the number of releases that one person can influence.

        Returns:
            A share of epsilon; or the largest epsilon that a share of rho pays for.
        """
        return epsilon_of_rho(loss, self.rho / count) if self.epsilon is None else self.epsilon / count

    def is_concentrated(self, budget: Budget | None) -> bool:
        """Return whether costs add up in zCDP, which makes many small draws cheaper.

        Args:
            budget: the budget that pays; None without a ledger.

        Returns:
            True if the price or the budget is stated in rho, or in epsilon and delta.
        """
        return self.rho is not None if budget is None else budget.rho is not None


def _found_delta(delta: Any) -> Fraction:
    number = _validate.exact(delta=delta)
    if not 0 < number <= Fraction(1, 2):
        raise InvalidValue(
            f"delta must be above 0 and at most 1/2, got {str(delta)[:40]}: use much less than one over the number of"
            " people, such as 1e-9"
        )
    return number


def _below_one(**parameter: Any) -> Fraction:
    [(name, value)] = parameter.items()
    number = _validate.exact(**parameter)
    if not 0 <= number < 1:
        raise InvalidValue(f"{name} must be from 0 to below 1, got {str(value)[:40]}")
    return number


def _arguments(budget: Budget) -> str:
    """The arguments of the function that makes an equal budget."""
    fields = {name: text for name, text in budget.to_dict().items() if name != "currency"}
    if fields.get("delta") == "0":
        del fields["delta"]
    if fields.get("share") == "0.5":
        del fields["share"]
    positional = 2 if budget.currency == ApproximateBudget.currency else 1
    named = enumerate(fields.items())
    return ", ".join(repr(text) if place < positional else f"{name}={text!r}" for place, (name, text) in named)


def _up(number: Fraction) -> str:
    return rounded_up_text(number) if number else "0"


def _down(number: Fraction) -> str:
    return rounded_down_text(number) if number else "0"
