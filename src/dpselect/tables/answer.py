"""What a question releases, and nothing else."""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect._exact import shortest_text
from dpselect.mechanisms.guarantee import Guarantee

if TYPE_CHECKING:
    from dpselect.ledger import Receipt


@dataclass(frozen=True, repr=False)
class Answer:
    """A private answer with what it cost. It holds nothing that is derived from scores but the choice itself.

    `value` is a candidate, the list of them in order of selection for `top_k`, or a dict with an answer for each group.
    `receipt` proves later that the ledger still holds the charge: keep it away from the ledger.
    """

    value: Any
    mechanism: str
    guarantee: Guarantee
    epsilon: Fraction
    ledger_id: int | None = None
    receipt: "Receipt | None" = None

    def __repr__(self) -> str:
        epsilon = shortest_text(self.epsilon)
        parts = f"mechanism={self.mechanism!r}, guarantee='{self.guarantee}', epsilon={epsilon}"
        return f"Answer(value={self.value!r}, {parts}, ledger_id={self.ledger_id})"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; decimals, dates and timestamps as text.

        Groups are a list of pairs, because the name of a group need not be text.
        """
        return {
            "value": _plain(self.value),
            "mechanism": self.mechanism,
            "guarantee": str(self.guarantee),
            "epsilon": str(self.epsilon),
            "ledger_id": self.ledger_id,
            "receipt": None if self.receipt is None else self.receipt.to_json(),
        }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [{"group": _plain(group), "value": _plain(answer)} for group, answer in value.items()]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date):  # timestamps are dates too
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
