"""The hash chain of a ledger (as in Haber & Stornetta 1991): what the file holds, and what is hashed.

The header's hash is the first head; the head after an entry is the hash of the head before it and of everything that
the entry holds. Changing an entry changes all heads after it. `reading` confirms it. An answer is stored with a salted
hash of its data, so that only a retry on the same data gets it.

Compatibility: what a format hashes, and what its fields mean, never changes. Format 2 has a privacy unit and a name of
the data set in its header, each of which may be missing; entries, answers and receipts are those of format 1. Format 3
has a budget in any currency (`accounting.budget.stored_text`), and every entry states its rho and its delta, so that no
later and better formula changes what was spent. A ledger of pure epsilon without a cap is still written in format 2.
"""

import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, ClassVar

from dpselect._numbers import exact_text
from dpselect.accounting.budget import Budget
from dpselect.accounting.budget import stored_text as stored_budget
from dpselect.accounting.charge import Charge, PrivacyUnit, What, compact_json
from dpselect.errors import RequestConflict, RequestUnanswered

PURE_FORMAT = 2
FORMAT = 3


@dataclass(frozen=True)
class Header:
    """What is fixed when a ledger is created."""

    identity: str
    budget: Budget
    created: str
    unit: PrivacyUnit | None
    dataset: str | None
    format: int

    @classmethod
    def new(cls, budget: Budget, unit: PrivacyUnit | None, dataset: str | None) -> "Header":
        """Return the header of a new ledger, in the oldest format that can hold its budget."""
        format_ = FORMAT if budget.needs_rho else PURE_FORMAT
        return cls(secrets.token_hex(16), budget, now(), unit, dataset, format_)

    @property
    def budget_text(self) -> str:
        """Return the budget in the form that the file stores."""
        return stored_budget(self.budget) if self.format >= FORMAT else str(self.budget.limit.value)

    @property
    def unit_text(self) -> str | None:
        """Return the privacy unit in the form that the file stores."""
        return None if self.unit is None else compact_json(self.unit.to_dict())

    @property
    def row(self) -> tuple[str | None, ...]:
        """Return the fields that the file stores."""
        return self.identity, self.budget_text, self.created, self.unit_text, self.dataset, self.head

    @property
    def head(self) -> str:
        """Return the first head of the chain."""
        bound = [] if self.format == 1 else [self.unit_text, self.dataset]
        return hashed(["dpselect ledger", self.format, self.identity, self.budget_text, self.created, *bound])

    def next_head(self, previous: str, id: int, time: str, charge: Charge, request_id: str | None) -> str:
        """Return the head of the chain after an entry."""
        return hashed([previous, id, time, charge.text, charge.mechanism, *self._costs(charge), request_id])

    def insertion(self, entry: "Entry") -> tuple[str, tuple[Any, ...]]:
        """Return the statement that stores an entry, and its values."""
        charge = entry.charge
        values = (
            entry.id,
            entry.time,
            charge.text,
            charge.mechanism,
            *self._costs(charge),
            entry.request_id,
            entry.head,
        )
        marks = ", ".join("?" for _ in values)
        return f"INSERT INTO entries VALUES ({marks})", values  # noqa: S608 - question marks only

    def _costs(self, charge: Charge) -> list[Any]:
        recorded = [str(charge.rho), str(charge.delta)] if self.format >= FORMAT else []
        return [str(charge.each), charge.count, *recorded]


@dataclass(frozen=True)
class Entry:
    """One charge in a ledger. `Ledger.charge` and `Ledger.entries` return it.

    Args:
        id: the number of the entry. Entries are ordered by it, never by the clock.
        time: when it was charged, in UTC.
        charge: what was charged.
        request_id: the request that it answers, if it has one.
        head: the hash of this entry and all before it.
        answer: the stored answer of the request, if there is one. It is not part of the chain.

    >>> Entry(1, "2026-01-31T12:00:00Z", Charge("ages", "0.1"), None, "ab12").epsilon
    Fraction(1, 10)
    """

    COLUMNS: ClassVar = (
        *("id", "time", "what", "mechanism", "epsilon", "each", "count", "rho", "delta", "request_id", "head"),
    )

    id: int
    time: str
    charge: Charge
    request_id: str | None
    head: str
    answer: str | None = None

    @property
    def what(self) -> What:
        """Return the question and its public parameters."""
        return self.charge.what

    @property
    def mechanism(self) -> str:
        """Return the name of the mechanism whose distribution is drawn."""
        return self.charge.mechanism

    @property
    def epsilon(self) -> Fraction | None:
        """Return the exact epsilon of what was released; None if only its rho is known."""
        return self.charge.epsilon

    @property
    def rho(self) -> Fraction:
        """Return the rho of zCDP of what was released: as recorded, or rounded up."""
        return self.charge.rho

    @property
    def delta(self) -> Fraction:
        """Return the exact delta of what was released; 0 unless it has one of its own."""
        return self.charge.delta

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the types of JSON.

        Returns:
            The fields by name, with exact numbers as strings. The stored answer is left out.
        """
        charge, epsilon = self.charge, self.epsilon
        total = None if epsilon is None else exact_text(epsilon)
        each = None if epsilon is None else exact_text(charge.each)
        costs = (total, each, charge.count, exact_text(charge.rho), exact_text(charge.delta))
        values = (self.id, self.time, self.what, self.mechanism, *costs, self.request_id, self.head)
        return dict(zip(self.COLUMNS, values, strict=True))


def now() -> str:
    """The time of an entry, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def seal(entry_head: str, answer: str) -> str:
    """The hash that ties a stored answer to its entry."""
    return hashed(["answer", entry_head, answer])


def hashed(content: list[Any]) -> str:
    """The hash of all items of the list."""
    return hashlib.sha256(compact_json(content).encode("ascii")).hexdigest()


# The beginning of the text of an answer that is stored with a hash of its data.
_WITH_CONTENT = "dpselect-answer:"


def stored_text(answer: str, content: str | None) -> str:
    """The text in which an answer is stored, with a salted hash of the digest of its data, if one is given.

    The digest is a function of private data, so it is not stored itself, and no entry holds its hash.
    """
    if content is None and not answer.startswith(_WITH_CONTENT):
        return answer
    salt = secrets.token_hex(16)
    known = None if content is None else _content_hash(salt, content)
    return _WITH_CONTENT + compact_json({"answer": answer, "salt": salt, "content": known})


def stored_answer(text: str) -> str:
    """The answer in a stored text."""
    return str(_stored(text)["answer"])


def check_repeated(earlier: Entry, charge: Charge, rounded: Charge) -> None:
    """Refuse a retry that differs from the earlier request, or that has no stored answer.

    A rho that follows from epsilon is not compared: a later version may know a smaller one.
    """
    states_rho = charge.states_rho and earlier.charge.states_rho
    has_other_rho = states_rho and earlier.rho not in (charge.rho, rounded.rho)
    if earlier.charge not in (charge, rounded) or has_other_rho:
        raise RequestConflict("request_id was used before with a different question or parameters: give a new one")
    if earlier.answer is None:
        raise RequestUnanswered(
            f"request_id was charged before, as entry {earlier.id}, but its answer was not stored. Nothing is refunded:"
            " to ask again, and pay again, give a new one"
        )


def check_content(id: int, text: str, content: str) -> None:
    """Refuse a retry on data other than those of the stored answer."""
    stored = _stored(text)
    if stored["content"] is None:
        raise RequestConflict(
            f"request_id was used before, and the answer of entry {id} was stored without a digest of its data, by"
            " dpselect 0.1 or by hand: it may not be this table's answer. Its text is in Ledger.entries(); to ask"
            " again, and pay again, give a new request_id"
        )
    if stored["content"] != _content_hash(stored["salt"], content):
        raise RequestConflict(f"request_id was used before on other data, as entry {id}: give a new one")


def _stored(text: str) -> dict[str, Any]:
    plain = {"answer": text, "salt": None, "content": None}
    if not text.startswith(_WITH_CONTENT):
        return plain
    try:
        stored = json.loads(text.removeprefix(_WITH_CONTENT))
    except (ValueError, RecursionError):  # a text that a user of dpselect 0.1 stored
        return plain
    return stored if isinstance(stored, dict) and stored.keys() == plain.keys() else plain


def _content_hash(salt: str, content: str) -> str:
    return hashed(["content", salt, content])
