"""The one way out: a release is checked, charged durably, drawn, and, if it is a request, stored.

A `Release` states what is asked, which mechanism draws and how often one person is exposed. All of it is public.
`Release.draw` is the only function of the package that charges a ledger and draws. It works in this order:

  1. check: the question and the mechanism make a valid `Charge`; nothing is read yet;
  2. charge: the ledger records the charge on disk, or refuses it, and then nothing is drawn;
  3. draw: `sample` reads the private data and returns the answer's value. If it fails, the charge stays;
  4. store: with a `request_id`, the value goes to the ledger, and a retry on the same data gets it without a charge.

Tables, `tune` and `release` of a mechanism differ only in what they ask and in their `sample`. `select` draws without
a release, and no ledger sees it.
"""

import datetime
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpselect import _show
from dpselect._levels import stated_levels
from dpselect._numbers import decimal_from_text, exact_text, finite, float_near, shortest_text, shown
from dpselect._scores import rationals
from dpselect._types import Floats, Vector
from dpselect._validate import EXACT_IN_FLOATS, warn, warn_of_large_delta
from dpselect.accounting.budget import Budget
from dpselect.accounting.charge import Charge, What, drawn_by
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.privacy import Guarantee

_RECEIPT = 1
_LARGE_LOSS = 10  # e^10 = 22,026: a belief of 1 % can become one of 99.5 %


@dataclass(frozen=True)
class Receipt:
    """The head of a ledger's hash chain after an entry. Kept elsewhere, it proves later that no entry is missing.

    `Ledger.receipt` and `Ledger.verify` return one, and every answer that a ledger paid for has one.

    Args:
        ledger: the identity of the ledger, a random number that was drawn when it was created.
        id: the number of the last entry that the receipt covers.
        head: the hash of everything up to that entry.

    >>> receipt = Receipt(ledger="00ff", id=3, head="ab12")
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    ledger: str
    id: int
    head: str

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt in the types of JSON, with the version of the form (`receipt`)."""
        return {"receipt": _RECEIPT, "ledger": self.ledger, "id": self.id, "head": self.head}

    def to_json(self) -> str:
        """Return the receipt as one line of JSON, to be stored in a different place than the ledger."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """Return the receipt that `to_json` wrote.

        Args:
            text: the line of JSON.

        Raises:
            InvalidValue: the text is not a receipt, or was written by a later version.
        """
        try:
            content = json.loads(text)
            version, fields = content["receipt"], [content["ledger"], content["id"], content["head"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidValue("receipt must be the JSON that `Receipt.to_json` wrote") from None
        if version != _RECEIPT or [type(field) for field in fields] != [str, int, str]:
            raise InvalidValue(f"receipt must have version {_RECEIPT}: use the dpselect that wrote it")
        return cls(*fields)


@dataclass(frozen=True)
class Accuracy:
    """How far an answer may be off. It follows from public numbers alone, and says nothing about the data.

    Attributes:
        average: the expected error is at most this; for unlisted values, a value that this number of people have is
            found with probability 1/2.
        within_95: in 95% of cases, the error is smaller than this; for unlisted values, a value that this number of
            people have is found in 95% of cases.
        unit: the unit of both: people or rows.
        method: what kind of number it is.
        words: what it means, in sentences.
        condition: for which data it holds, such as "if nobody has more than one value"; empty if for any. A question
            that counts a person for some of their values, chosen at random, says nothing about the others.
        needed: about how many people or rows an answer needs to mean something: all of those who are counted, or those
            that `needed_for` names; None if that has no general rule.
        dense: for several quantiles, about how large the error is if values lie densely; otherwise None.
        within_99: in 99% of cases, the error is smaller than this; only in plans.
        all_within_95: in 95% of cases, the errors of all selections of an answer are smaller than this; only in
            plans. It is a union bound: each of k selections exceeds it in at most 5/k % of cases.
        needed_for: who needs them, if it is not the whole table: the value that most people have.

    >>> import pyarrow
    >>> import dpselect
    >>> table = dpselect.open_table(pyarrow.table({"colour": ["red"] * 90}))
    >>> accuracy = table.mode("colour", candidates=["red", "blue"], epsilon=1).accuracy
    >>> print(accuracy)
    at most 0.184 rows off on average, less than 3.689 in 95 of 100 cases
    """

    average: float
    within_95: float
    unit: str
    method: str
    words: str = field(default="", repr=False)
    dense: float | None = None
    condition: str = ""
    needed: int | None = None
    within_99: float | None = None
    all_within_95: float | None = None
    needed_for: str = ""

    def __str__(self) -> str:
        only = f"{self.condition}: " if self.condition else ""
        if not self.method.startswith("bound"):
            half, usual = f"{self.average:,.0f}", f"{self.within_95:,.0f}"
            found = f"a value that {half} {self.unit} have is found in half of all cases, one of {usual} in 95 of 100"
            return f"{only}{found}"
        average, usual = shown(self.average), shown(self.within_95)
        bounds = f"{only}at most {average} {self.unit} off on average, less than {usual} in 95 of 100 cases"
        who = f"{self.needed_for} needs" if self.needed_for else "needs"
        needed = "" if self.needed is None else f"; {who} about {self.needed:,} {self.unit}"
        if self.dense is None:
            return f"{bounds}{needed}"
        dense = f"about {shown(self.dense)} {self.unit} off at each level if values lie densely"
        return f"{dense}; for any data, rounded down to the step, {bounds}{needed}"

    @property
    def bounds(self) -> tuple[float, float, float]:
        """The bounds on average, in 95% and in 99% of cases."""
        return self.average, self.within_95, math.inf if self.within_99 is None else self.within_99

    def to_dict(self) -> dict[str, Any]:
        """Return the accuracy in the types of JSON, without what only plans state."""
        bounds = {"average": finite(self.average), "within_95": finite(self.within_95)}
        others = ("unit", "method", "words", "dense", "condition", "needed", "needed_for")
        return bounds | {name: getattr(self, name) for name in others}


@dataclass(frozen=True)
class About:
    """What is public about an answer beside its price. It follows from public numbers, and remarks from the answer too.

    Args:
        estimate: what the value estimates, in words.
        protects: what the guarantee protects: "one row", or "one patient"; nothing if the caller says it.
        provided: on what the guarantee depends, in words, if on anything that was not checked.
        measured: computes how far the answer may be off.
        remarks: what to know before the answer is used, given its value.

    >>> About("the value that most people have", protects="one patient").protects
    'one patient'
    """

    estimate: str = ""
    protects: str = ""
    provided: str = ""
    measured: Callable[[], Accuracy | None] | None = field(default=None, repr=False, compare=False)
    remarks: Callable[[Any], list[str]] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class Answer:
    """A private answer and what it cost. It holds nothing derived from scores except the choice itself.

    Args:
        value: what was chosen: a candidate, a list of candidates for `top_k`, or a dict with one answer per group for
            a grouped table. It is the only private result; the rest is public.
        mechanism: the name of the mechanism that drew.
        guarantee: what the whole answer guarantees.
        epsilon: the epsilon of the whole answer, exactly.
        ledger_id: the entry that paid for it; None without a ledger.
        receipt: proof of that entry; store it in a different place. None without a ledger.
        charged: what the ledger charged, in the units of its budget; None without a ledger.
        repeated: whether this is the stored answer of an earlier request, for which nothing was charged again.
        about: what is public about it, for questions about tables: `estimate`, `accuracy`, `protects` and `notes`.

    >>> import dpselect
    >>> answer = dpselect.PermuteAndFlip("0.1").release([0, 10**6], labels=["flu", "asthma"])
    >>> answer.value, answer.epsilon
    ('asthma', Fraction(1, 10))
    >>> answer
    Answer(value='asthma', mechanism='permute-and-flip', guarantee='0.1-DP (pure), 0.00476098-zCDP', epsilon='0.1', \
ledger_id=None)
    """

    value: Any
    mechanism: str
    guarantee: Guarantee
    epsilon: Fraction
    ledger_id: int | None = None
    receipt: Receipt | None = None
    charged: Budget | None = None
    repeated: bool = field(default=False, compare=False)
    about: About = About()

    @property
    def estimate(self) -> str:
        """What the value estimates, in words, for questions about tables: "median over rows"."""
        return self.about.estimate

    @property
    def protects(self) -> str:
        """What the guarantee protects: "one row", or "one patient" with a person column; nothing without a table."""
        return self.about.protects

    @property
    def promise(self) -> str:
        """The guarantee in words, with what it protects and on what it depends: "1-DP (pure) for one row, ..."."""
        return f"{self.guarantee.of_whom(self.about.protects)}{self.about.provided and f', {self.about.provided}'}"

    @cached_property
    def notes(self) -> list[str]:
        """What to know before the answer is used. It follows from public numbers and the answer itself."""
        return [] if self.about.remarks is None else self.about.remarks(self.value)

    @cached_property
    def accuracy(self) -> Accuracy | None:
        """How far the answer may be off, from public numbers alone; None if it is not about a table."""
        try:
            return None if self.about.measured is None else self.about.measured()
        except (OverflowError, ZeroDivisionError):  # the bounds of a tiny epsilon are larger than any float
            return None

    def __repr__(self) -> str:
        estimate = f"estimate={self.estimate!r}, " if self.estimate else ""
        estimate += "" if self.accuracy is None else f"accuracy='{self.accuracy}', "
        epsilon = shortest_text(self.epsilon)
        parts = f"mechanism={self.mechanism!r}, guarantee='{self.promise}', epsilon={epsilon}"
        return f"Answer(value={self.value!r}, {estimate}{parts}, ledger_id={self.ledger_id})"

    def _repr_html_(self) -> str:
        known = {
            "estimates": self.estimate,
            "accuracy": "" if self.accuracy is None else str(self.accuracy),
            "mechanism": self.mechanism,
            "guarantee": self.promise,
            "cost": self.entry or "not recorded: there is no ledger",
            "notes": "; ".join(self.notes),
        }
        stated = {name: text for name, text in known.items() if text}
        if not isinstance(self.value, (dict, list)) or not self.value:
            return _show.page(_show.facts({"answer": self._shown(self.value), **stated}))
        return _show.page(self._values(), _show.facts(stated))

    def _values(self) -> str:
        levels = stated_levels(self.estimate)
        if isinstance(self.value, list):
            if len(levels) == len(self.value):
                return _show.table(["level", "answer"], zip(levels, self.value, strict=True))
            return _show.table(["answer"], ([item] for item in self.value))
        if levels and all(isinstance(own, list) and len(own) == len(levels) for own in self.value.values()):
            rows = ([group, *own] for group, own in self.value.items())
            return _show.table(["group", *levels], rows)
        return _show.table(["group", "answer"], ([group, self._shown(own)] for group, own in self.value.items()))

    def _shown(self, value: Any) -> Any:
        return "nothing was common enough" if self.guarantee.delta and value in (None, []) else value

    def to_dict(self) -> dict[str, Any]:
        """Return the answer in the types of JSON.

        Decimals, dates, timestamps and exact epsilons are strings. Answers of groups are a list of pairs, because the
        name of a group need not be text; that of a group of several columns is a list. The guarantee and the receipt
        are objects.
        """
        return {
            "value": _plain(self.value),
            "estimate": self.estimate,
            "accuracy": None if self.accuracy is None else self.accuracy.to_dict(),
            "mechanism": self.mechanism,
            "guarantee": {
                "epsilon": exact_text(self.guarantee.epsilon),
                "zcdp": finite(self.guarantee.zcdp),
                **({"delta": exact_text(self.guarantee.delta)} if self.guarantee.delta else {}),
                **({"provided": self.about.provided} if self.about.provided else {}),
            },
            "protects": self.protects,
            "notes": self.notes,
            "epsilon": exact_text(self.epsilon),
            "ledger_id": self.ledger_id,
            "receipt": None if self.receipt is None else self.receipt.to_dict(),
            "charged": None if self.charged is None else self.charged.to_dict(),
            "repeated": self.repeated,
        }

    @property
    def entry(self) -> str:
        """Which entry of a ledger paid for the answer, and how much, in words; nothing without a ledger."""
        if self.ledger_id is None or self.charged is None:
            return ""
        cost = "repeated, nothing charged" if self.repeated else f"charged {self.charged.words}"
        return f"ledger entry {self.ledger_id} ({cost})"


class Priced(Protocol):
    """What a release needs to know about its mechanism, which may be the best of many private runs."""

    @property
    def name(self) -> str:
        """The name under which ledgers record it."""

    @property
    def epsilon(self) -> Fraction:
        """The pure epsilon of one draw."""

    @property
    def guarantee(self) -> Guarantee:
        """What one draw guarantees."""

    def terms(self) -> Mapping[str, Any]:
        """The public parameters that an entry of a ledger states in addition to name and epsilon."""


@runtime_checkable
class Payer(Protocol):
    """What a release needs of a ledger. `Ledger` documents the methods."""

    def charge(self, charge: Charge, *, request_id: str | None = None, content: str | None = None) -> Any: ...

    def receipt(self, entry: Any) -> Receipt: ...

    def charged(self, entry: Any) -> Budget: ...

    def store_answer(self, id: int, answer: str, *, content: str | None = None) -> None: ...


@dataclass(frozen=True)
class Release:
    """A question, the mechanism that answers it, and how often one person is exposed. Public and inert.

    Args:
        what: the question for the ledger, a string or a mapping of public parameters. Never put a score or count here.
        mechanism: the mechanism that draws.
        count: the number of draws that one person can influence: k for k selections one after another, times the
            number of groups that a person may be in.
        rho: the rho of zCDP that is charged for all draws together, if the question states one. If omitted, it follows
            from the mechanism.
        about: what is public about the answer. A ledger does not record it unless it is part of `what`.
        delta: the delta of all draws together, if they are (epsilon, delta)-differentially private.

    >>> from dpselect import PermuteAndFlip
    >>> release = Release("favourite colour", PermuteAndFlip("0.1"), count=3)
    >>> print(release.guarantee)
    0.3-DP (pure), 0.014283-zCDP
    >>> release.charge.epsilon, release.charge.what["question"], release.draw(lambda: "blue").value
    (Fraction(3, 10), 'favourite colour', 'blue')
    """

    what: What
    mechanism: Priced
    count: int = 1
    rho: Fraction | None = None
    about: About = About()
    delta: Fraction = Fraction(0)

    @property
    def charge(self) -> Charge:
        """The cost. It names the mechanism that draws, whose public parameters are added to the question."""
        what: Any = self.what
        if not isinstance(what, (str, Mapping)):
            raise InvalidType(f"what must be a text or a mapping of public parameters, got {type(what).__name__}")
        terms = self.mechanism.terms()
        if terms:
            what = {**({"question": what} if isinstance(what, str) else what), **terms}
        return Charge(what, self.mechanism.epsilon, self.mechanism.name, self.count, rho=self.rho, delta=self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """What all draws together guarantee."""
        return replace(self.mechanism.guarantee.times(self.count), delta=self.delta)

    def draw(
        self,
        sample: Callable[[], Any],
        *,
        ledger: Payer | None = None,
        request_id: str | None = None,
        content: Callable[[], str] | None = None,
    ) -> Answer:
        """Check, charge durably, draw, store.

        Args:
            sample: a function that draws with the mechanism and returns the value.
            ledger: the ledger, charged before `sample` is called. With None, the caller must add up the costs.
            request_id: makes a retry safe: the same id, question and data return the stored answer and cost nothing.
            content: a function that returns a digest of what `sample` reads, to recognise the same data. A request id
                needs it. It is as secret as the data. The ledger stores only a salted hash of it.

        Raises:
            BudgetExceeded: the budget is too small; nothing was drawn.
            RequestConflict: the request id was used for another question, or on other data.
            RequestUnanswered: the request was charged before, but its answer was not stored.
            LedgerError: the ledger cannot be used; nothing was drawn.
            InvalidValue, InvalidType: an argument is invalid; nothing was charged.
        """
        charge = self.charge
        self._warn_of_large_loss()
        if ledger is None:
            if request_id is not None:
                raise InvalidValue("request_id needs a ledger that stores it: give the ledger too")
            return self._answer(sample())
        if isinstance(ledger, type) or not isinstance(ledger, Payer):
            raise InvalidType(f"ledger must be a Ledger, got {type(ledger).__name__}: open it with Ledger(path)")
        if request_id is not None and content is None:
            raise InvalidValue("request_id needs content, which recognises the same data: give both")
        before = None if request_id is None else self._digest(content)
        entry = ledger.charge(charge, request_id=request_id, content=before)
        paid = replace(
            self._answer(None), ledger_id=entry.id, receipt=ledger.receipt(entry), charged=ledger.charged(entry)
        )
        if entry.answer is not None:
            return replace(paid, value=decode_answer(entry.answer), repeated=True)
        value = sample()
        # If the data changed in the meantime, the answer matches neither state, and no retry returns it.
        if request_id is not None and self._digest(content) == before:
            ledger.store_answer(entry.id, encode_answer(value), content=before)
        return replace(paid, value=value)

    def _warn_of_large_loss(self) -> None:
        # In zCDP, rho is what counts, however large epsilon is.
        loss, name = (self.mechanism.epsilon * self.count, "epsilon") if self.rho is None else (self.rho, "rho")
        if loss > _LARGE_LOSS:
            warn(
                f"{name} {shown(float_near(loss))} hardly protects anybody: above {_LARGE_LOSS}, an answer may show"
                " nearly for sure who is in the data. Usual values are 0.01 to 1"
            )
        warn_of_large_delta(self.delta)

    def _digest(self, content: Callable[[], str] | None) -> str | None:
        # Epsilons and deltas that the ledger rounds alike differ.
        if content is None:
            return None
        stated = f"{self.mechanism.epsilon} {self.delta}" if self.delta else str(self.mechanism.epsilon)
        return f"{stated} {content()}"

    def _answer(self, value: Any) -> Answer:
        mechanism = self.mechanism
        epsilon, drawn = mechanism.epsilon * self.count, drawn_by(mechanism.name)
        return Answer(value, drawn, self.guarantee, epsilon, about=self.about)


def scores_digest(scores: Vector) -> str:
    """The digest of scores in order, for `content`. Equal scores of different types have equal digests."""
    floats = _plain_floats(scores)
    if floats is None:
        exact = rationals(scores)
        near = [float_near(score) for score in exact]
        if all(math.isfinite(one) and Fraction(one) == score for one, score in zip(near, exact, strict=True)):
            floats = np.array(near)
        else:  # base sixteen has no limit of digits
            body = ",".join(f"{score.numerator:x}/{score.denominator:x}" for score in exact).encode("ascii")
            return hashlib.sha256(b"scores rationals:" + body).hexdigest()
    body = (floats + 0.0).astype("<f8").tobytes()  # adding zero turns -0.0 into 0.0
    return hashlib.sha256(b"scores floats:" + body).hexdigest()


def repr_digest(public: Any) -> str:
    """The digest of public objects by their `repr`, for `content`."""
    return hashlib.sha256(repr(public).encode("utf-8", "surrogatepass")).hexdigest()


def _plain_floats(scores: Vector) -> Floats | None:
    # None unless the type alone of the array, or its ends, show that no score is rounded.
    if not isinstance(scores, np.ndarray):
        return None
    if scores.dtype.kind == "f":
        return scores.astype(np.float64) if np.can_cast(scores.dtype, np.float64, "safe") else None
    small = int(scores.min()) >= -EXACT_IN_FLOATS and int(scores.max()) <= EXACT_IN_FLOATS
    return scores.astype(np.float64) if small else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [{"group": _plain(group), "value": _plain(answer)} for group, answer in value.items()]
    if isinstance(value, (list, tuple)):  # a group of several columns is a tuple
        return [_plain(item) for item in value]
    return next((write(value) for kind, write, _ in _KINDS.values() if isinstance(value, kind)), value)


# What JSON lacks, as text and back. Timestamps are dates, too, and come first.
_KINDS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "decimal": (Decimal, str, decimal_from_text),
    "timestamp": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
}


def encode_answer(value: Any) -> str:
    """The value of an answer as JSON text, from which `decode_answer` makes it: types and exact values are kept."""
    return json.dumps(_written(value))


def decode_answer(text: str) -> Any:
    """The value that `encode_answer` wrote."""
    return _read(json.loads(text))


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {"groups": [[_written(group), _written(answer)] for group, answer in value.items()]}
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_written(item) for item in value]}
    return next(({name: write(value)} for name, (kind, write, _) in _KINDS.items() if isinstance(value, kind)), value)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    [(name, content)] = value.items()
    if name == "groups":
        return {_read(group): _read(answer) for group, answer in content}
    if name == "tuple":
        return tuple(_read(item) for item in content)
    return _KINDS[name][2](content)
