"""What a release costs, for which question, and whom it protects. Public parameters only, never a score or a count."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any

from dpselect import _validate
from dpselect._types import Number
from dpselect.accounting.repeats import PREFIX, repeated
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.mechanisms.base import MECHANISMS, MechanismBase, is_mechanism_name, name_of
from dpselect.mechanisms.parameters import Neighbours, neighbours_of
from dpselect.mechanisms.privacy import CONCENTRATED, PURE_LOSS, PrivacyLoss


@dataclass(frozen=True, init=False, repr=False)
class PrivacyUnit:
    """What a budget protects: one person or one row, added and removed or replaced.

    Epsilons add up only if they protect the same unit. So a ledger has one privacy unit.

    Args:
        person: the column that names the person, all of whose rows are protected together. None protects one row.
        neighbours: "add-remove" hides whether somebody is in the table; "replace" hides what their data are.

    Raises:
        InvalidType: `person` is not a string.
        InvalidValue: `neighbours` is not one of the two names.

    >>> print(PrivacyUnit("patient"))
    one person (person='patient', neighbours='add-remove')
    """

    person: str | None
    neighbours: Neighbours

    def __init__(self, person: str | None = None, neighbours: str = Neighbours.ADD_REMOVE) -> None:
        if person is not None and not isinstance(person, str):
            raise InvalidType(f"person must be the name of a column or None, got {type(person).__name__}")
        vars(self).update(person=person, neighbours=neighbours_of(neighbours))

    def __repr__(self) -> str:
        return f"PrivacyUnit(person={self.person!r}, neighbours='{self.neighbours}')"

    def __str__(self) -> str:
        protected = "one row" if self.person is None else "one person"
        return f"{protected} (person={self.person!r}, neighbours='{self.neighbours}')"

    def to_dict(self) -> dict[str, str | None]:
        """Return the unit in the types of JSON."""
        return {"person": self.person, "neighbours": self.neighbours.value}


# The names of releases of which only the pure epsilon, or only the rho of zCDP, is known; of several candidates in
# order from one draw of exponential noise, of which only the pure epsilon is known, too; of the exponential mechanism
# among values that were found in the data, which it is except for an event of probability delta; and of found values.
PURE = "pure"
ZCDP = "zcdp"
ONE_SHOT = "one-shot"
EXPONENTIAL_FOUND = "exponential-found"
PARTITION_SELECTION = "partition-selection"
_EXPONENTIAL = "exponential"

# The question that is answered level by level. Ledgers keep the name for years.
QUANTILES = "quantiles"

# A charge is recorded exactly if its cost is a multiple of 1/GRID: every float from 1e-70 on, every decimal of at
# most 50 digits after the point, every 1/n with n <= 400, and every sum of these. Any other cost is rounded up to a
# multiple of 1/ROUND. So sums have at most 294 digits of the grid in addition to those of the budget, which has at
# most 4001. Python can print them: it prints integers of up to 4300 digits.
GRID = math.lcm(2**300, 5**50, *range(1, 401))
ROUND = 10**50

_LONGEST_TEXT = 2**20
_MOST_RELEASES = 10**12

What = str | Mapping[str, Any]


def loss_of(mechanism: str) -> PrivacyLoss:
    """The privacy loss for the name in a charge; that of any pure release if it is not the name of a mechanism."""
    if mechanism == ZCDP:
        return CONCENTRATED
    kind = MECHANISMS.get(drawn_by(mechanism))
    return PURE_LOSS if kind is None else kind.loss


def drawn_by(mechanism: str) -> str:
    """The name of the mechanism that draws, for the name in a charge."""
    return _EXPONENTIAL if mechanism == EXPONENTIAL_FOUND else mechanism


def rho_of(mechanism: str, each: Fraction) -> Fraction:
    """The rho of one release under the name in a charge, rounded up."""
    # No divergence exceeds epsilon, which is the rho of a release whose epsilon is beyond all floats.
    loss = loss_of(mechanism)
    rho = loss.zcdp(each) if loss.is_pure else math.inf
    return Fraction(rho) if math.isfinite(rho) else each


@dataclass(frozen=True, init=False)
class Charge:
    """The cost of one question: `count` releases of epsilon `each` by the named mechanism.

    The releases are those that one person can influence: k rounds of a top-k choice are k releases, and an answer for
    each of many groups counts as one release per group that one person may belong to. Each may depend on the
    answers of those before it; their number may not.

    The question comes first here, and epsilon first in `Ledger.spend`: write `each=` to be safe.

    Args:
        what: the question, a string or a mapping of public parameters. Never put a score or a count here.
        each: the epsilon of one release: a number, or a string such as "0.1", which is taken exactly. None if only
            rho is known; then it becomes the rho of one release.
        mechanism: the name of the mechanism; "pure" if only the epsilon is known. `Charge.of` fills it in.
        count: the number of releases.
        rho: the rho of zCDP of all releases together, rounded up. If omitted, it follows from the mechanism and its
            epsilon. With a delta, it is the rho of approximate zCDP: a release that is (epsilon, delta)-differentially
            private is a pure one of that epsilon, except with probability delta.
        delta: the delta of all releases together, if they are (epsilon, delta)-differentially private.

    Raises:
        InvalidValue, InvalidType: an argument is invalid.

    >>> charge = Charge("top 3 of diagnosis", each="0.1", mechanism="permute-and-flip", count=3)
    >>> charge.epsilon
    Fraction(3, 10)
    >>> Charge("counts with Gaussian noise", rho="0.01").rho
    Fraction(1, 100)
    """

    what: What
    each: Fraction
    mechanism: str
    count: int
    rho: Fraction
    delta: Fraction

    def __init__(  # noqa: PLR0913 - everything that a charge states
        self,
        what: What,
        each: Number | None = None,
        mechanism: str = PURE,
        count: int = 1,
        *,
        rho: Number | None = None,
        delta: Number = 0,
    ) -> None:
        question, number = json.loads(canonical_text(what)), _validate.count(count=count)
        if not 1 <= number <= _MOST_RELEASES:
            raise InvalidValue(f"count must be from 1 to {_MOST_RELEASES:,}")
        stated = None if rho is None else _validate.exact_positive(rho=rho)
        if each is not None:
            share = _validate.exact_positive(epsilon=each)
            name = _mechanism_name(mechanism, share)
        elif stated is None:
            raise InvalidValue("give the epsilon of the charge, or its rho")
        elif mechanism != PURE:
            raise InvalidValue("give the epsilon of each release too: a mechanism needs one")
        else:
            share, name = stated / number, ZCDP
        failure = _validate.below_one(delta=delta)
        vars(self).update(what=question, each=share, mechanism=name, count=number, delta=failure)
        vars(self)["rho"] = self.least_rho if stated is None else stated
        self.check_rho()

    @classmethod
    def recorded(  # noqa: PLR0913, PLR0917 - the columns
        cls, what: What, each: Number, mechanism: str, count: int, rho: Fraction, delta: Fraction = Fraction(0)
    ) -> "Charge":
        """Return a charge as a ledger holds it. See `Charge`.

        The mechanism may be one that is defined in another program, which counts as any pure release. The rho stays as
        it was recorded, even if a later version knows a smaller one.

        >>> Charge.recorded("ages", "0.1", "somebody-elses", 1, Fraction(1, 200)).mechanism
        'somebody-elses'
        """
        if rho <= 0:  # a negative cost would be a refund
            raise InvalidValue("rho must be > 0")
        foreign = mechanism not in MECHANISMS and (mechanism == ZCDP or is_mechanism_name(mechanism))
        charge = cls(what, each, PURE if foreign else mechanism, count, delta=delta)
        return charge._with(mechanism=mechanism, rho=rho)

    @classmethod
    def of(cls, mechanism: MechanismBase, what: Mapping[str, Any], count: int = 1) -> "Charge":
        """Return the cost of `count` draws from this mechanism. Its public parameters are added to the question.

        Args:
            mechanism: the mechanism that draws.
            what: a mapping of public parameters.
            count: the number of draws that one person can influence.

        >>> from dpselect import PermuteAndFlip
        >>> charge = Charge.of(PermuteAndFlip("0.1", monotonic=True), {"question": "mode", "column": "diagnosis"})
        >>> charge.mechanism, charge.what["monotonic"]
        ('permute-and-flip', True)
        """
        if not isinstance(what, Mapping):
            raise InvalidType(f"what must be a mapping of public parameters, got {type(what).__name__}")
        return cls({**what, **mechanism.claim.to_dict()}, mechanism.epsilon, name_of(mechanism), count)

    @property
    def text(self) -> str:
        """The canonical JSON of the question."""
        return compact_json(self.what)

    @property
    def epsilon(self) -> Fraction | None:
        """The total epsilon of the charge; None if only its rho is known."""
        return self.each * self.count if loss_of(self.mechanism).is_pure else None

    @property
    def composes_as(self) -> str:
        """The name whose privacy loss bounds that of each release; with a delta, that of any pure one."""
        if self.mechanism == EXPONENTIAL_FOUND:
            return drawn_by(self.mechanism)
        return PURE if self.delta and loss_of(self.mechanism).is_pure else self.mechanism

    @property
    def unit(self) -> PrivacyUnit | None:
        """What the question protects, if it states that. Every question about a table does."""
        return unit_of(self.what)

    @property
    def least_rho(self) -> Fraction:
        """The rho that follows from the name of the mechanism."""
        return rho_of(self.composes_as, self.each) * self.count

    def check_rho(self) -> None:
        """Refuse a rho below that of the mechanism."""
        if self.rho < self.least_rho:
            raise InvalidValue("rho must be at least that of the mechanism: leave it out to let it follow")

    def _with(self, **fields: Any) -> "Charge":
        # The same charge with other fields, which are not checked.
        charge = object.__new__(Charge)
        vars(charge).update(vars(self), **fields)
        return charge

    def asking(self, text: str) -> "Charge":
        """Return the same cost for the question of a canonical text, which is not checked. See `Charge`."""
        return self._with(what=json.loads(text))

    def rounded_up(self, finer: int = 1, finer_delta: int = 1, cap: Fraction | None = None) -> "Charge":
        """Return the charge with a cost whose sums stay short: multiples of 1/(GRID * finer), else of 1/ROUND.

        Args:
            finer: a factor by which the grid of exact epsilons and rhos is refined.
            finer_delta: the same for delta.
            cap: the largest epsilon of one release, a number on the grid that the charge does not exceed.

        >>> Charge("a third", "1/3").rounded_up().epsilon
        Fraction(1, 3)
        >>> Charge("tiny", "1e-4000").rounded_up().epsilon == Fraction(1, ROUND)
        True
        """
        each = _on_grid(self.each * self.count, finer) / self.count
        rounded = self._with(each=each if cap is None else min(each, cap), delta=_on_grid(self.delta, finer_delta))
        rho = _on_grid(max(self.rho, rounded.least_rho), finer)
        return self if (rounded, rho) == (self, self.rho) else rounded._with(rho=rho)

    def with_delta_rounded_up(self, finer: int) -> "Charge":
        """Return the charge with only its delta on the grid. See `Charge.rounded_up`."""
        return self._with(delta=_on_grid(self.delta, finer))


def unit_of(what: What) -> PrivacyUnit | None:
    """The privacy unit that a question states, or None."""
    if not isinstance(what, Mapping) or "person" not in what or "neighbours" not in what:
        return None
    try:
        return _known_unit(what["person"], what["neighbours"])
    except (DPSelectError, TypeError):  # a user's own description
        return None


_known_unit = lru_cache(maxsize=64)(PrivacyUnit)  # a ledger states the same one again and again


def is_on_grid(number: Fraction, finer: int = 1) -> bool:
    """Whether a cost is charged exactly.

    >>> is_on_grid(Fraction(1, 400)), is_on_grid(Fraction(1, 401)), is_on_grid(Fraction(1, 401), finer=401)
    (True, False, True)
    """
    return GRID * finer % number.denominator == 0


def _on_grid(number: Fraction, finer: int) -> Fraction:
    # The number if it is on the grid, otherwise the next multiple of 1/ROUND.
    return number if is_on_grid(number, finer) else Fraction(math.ceil(number * ROUND), ROUND)


def canonical_text(what: What) -> str:
    """The canonical JSON text of a question: sorted keys, no spaces, ASCII."""
    if not isinstance(what, (str, Mapping)):
        raise InvalidType(f"what must be a string or a mapping of public parameters, got {type(what).__name__}")
    text = compact_json(_plain(what))
    if len(text) > _LONGEST_TEXT:
        raise InvalidValue(f"what must be at most {_LONGEST_TEXT:,} characters of JSON: name a long list by its file")
    return text


_COMPACT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def compact_json(value: Any) -> str:
    """JSON with sorted keys, no spaces, ASCII: equal values have equal texts."""
    return _COMPACT.encode(value)


def _plain(value: Any) -> Any:
    # The value in the types of JSON; exact numbers that JSON lacks become strings.
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(_validate.finite(what=value))
    if isinstance(value, (Fraction, Decimal)):
        return str(_validate.finite(what=value))
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    rule = "what must hold strings, finite numbers, True, False, None, lists and mappings with strings as keys"
    raise InvalidType(f"{rule}, got {type(value).__name__}")


def _mechanism_name(name: Any, each: Fraction) -> str:
    known = [*MECHANISMS, PURE, ONE_SHOT, EXPONENTIAL_FOUND, PARTITION_SELECTION]
    if isinstance(name, str) and name in known:
        return str(name)
    runs = repeated(name) if isinstance(name, str) else None
    if runs is None:
        raise InvalidValue(f"mechanism must be one of {', '.join(known)}")
    if each < runs.epsilon:
        raise InvalidValue(f"epsilon must be at least that of all runs of {PREFIX}: let a `Release` state it")
    return str(name)
