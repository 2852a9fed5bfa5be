"""What a ledger holds, as inert data: its header, its entries, and the receipts that one can keep of them.

The hash chain (as in Haber & Stornetta 1991): the header's hash is the first head; the head after an entry is the hash
of the head before it and of everything that the entry says. Who changes an entry must change all heads after it.

Compatibility: what a format hashes, and what its fields mean, never changes. Format 2 has a privacy unit and a name of
the data set in its header, each of which may be missing; entries, answers and receipts are those of format 1.
"""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpselect._unit import PrivacyUnit
from dpselect.errors import InvalidValue
from dpselect.ledger.charge import Charge, What, compact_json

FORMAT = 2
_RECEIPT = 1


@dataclass(frozen=True)
class Header:
    """What is fixed when a ledger is created."""

    identity: str
    budget: Fraction
    created: str
    unit: PrivacyUnit | None = None
    dataset: str | None = None
    format: int = FORMAT

    @property
    def unit_text(self) -> str | None:
        """Return the privacy unit as the file holds it."""
        return None if self.unit is None else compact_json(self.unit.to_dict())

    @property
    def head(self) -> str:
        """Return the first head of the chain."""
        bound = [] if self.format == 1 else [self.unit_text, self.dataset]
        return hashed(["dpselect ledger", self.format, self.identity, str(self.budget), self.created, *bound])


@dataclass(frozen=True)
class Entry:
    """One charge. Entries are ordered by `id`, never by the clock.

    `answer` is the stored answer of a request, where answers are stored; it is not a part of the chain.
    """

    COLUMNS: ClassVar = ("id", "time", "what", "mechanism", "epsilon", "each", "count", "request_id", "head")

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
    def epsilon(self) -> Fraction:
        """Return what was spent, exactly."""
        return self.charge.epsilon

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the types of JSON, with exact numbers as texts."""
        costs = (str(self.epsilon), str(self.charge.each), self.charge.count)
        values = (self.id, self.time, self.what, self.mechanism, *costs, self.request_id, self.head)
        return dict(zip(self.COLUMNS, values, strict=True))


def next_head(previous: str, id: int, time: str, charge: Charge, request_id: str | None) -> str:
    """The head of the chain after this entry."""
    return hashed([previous, id, time, charge.text, charge.mechanism, str(charge.each), charge.count, request_id])


def seal(entry_head: str, answer: str) -> str:
    """What ties a stored answer to its entry."""
    return hashed(["answer", entry_head, answer])


@dataclass(frozen=True)
class Receipt:
    """The head of a ledger's chain after an entry: kept elsewhere, it proves later that nothing before it is missing.

    >>> receipt = Receipt(ledger="00ff", id=3, head="ab12")
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    ledger: str
    id: int
    head: str

    def to_json(self) -> str:
        """Return one line of JSON."""
        content = {"receipt": _RECEIPT, "ledger": self.ledger, "id": self.id, "head": self.head}
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """The receipt that `to_json` wrote."""
        try:
            content = json.loads(text)
            version, fields = content["receipt"], [content["ledger"], content["id"], content["head"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidValue("receipt must be the JSON that a receipt of a ledger was written as") from None
        if version != _RECEIPT or [type(field) for field in fields] != [str, int, str]:
            raise InvalidValue(f"receipt must have version {_RECEIPT}: use the dpselect that wrote it")
        return cls(*fields)


def hashed(content: list[Any]) -> str:
    """The hash of everything that the list says."""
    return hashlib.sha256(compact_json(content).encode("ascii")).hexdigest()
