"""What a question releases, and nothing else.

Answers as text and back, so that a ledger can repeat one: types and exact values are kept.

The one way to an answer that a ledger pays for: charge durably, then draw, then (for a request) store.
"""

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect._numbers import decimal_from_text, shortest_text
from dpselect.accounting.charge import Charge
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.privacy import Guarantee

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, Receipt


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


_READERS: dict[str, Callable[[str], Any]] = {
    "decimal": decimal_from_text,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
}


def text_of(value: Any) -> str:
    """The answer's value as JSON.

    >>> text_of([datetime.date(2026, 1, 31), "flu"])
    '[{"date": "2026-01-31"}, "flu"]'
    """
    return json.dumps(_written(value))


def value_of(text: str) -> Any:
    """The value that `text_of` wrote.

    >>> value_of('[{"date": "2026-01-31"}, "flu"]')
    [datetime.date(2026, 1, 31), 'flu']
    """
    return _read(json.loads(text))


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {"groups": [[_written(group), _written(answer)] for group, answer in value.items()]}
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, datetime.datetime):
        return {"timestamp": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "groups":
        return {_read(group): _read(answer) for group, answer in content}
    return _READERS[kind](content)


@dataclass(frozen=True)
class Steps:
    """What touches the private rows: a digest of what the question reads, and the draw."""

    content: Callable[[], str]
    draw: Callable[[], Any]


def answered(  # noqa: PLR0913, PLR0917 - each step of the way
    ledger: "Ledger",
    empty: Answer,
    mechanism: PermuteAndFlip,
    what: Mapping[str, Any],
    request_id: str | None,
    steps: Steps,
) -> Answer:
    """The answer, drawn after its charge is on the disk; or the stored answer of the same request on the same data.

    The charge names the very mechanism that draws. If drawing fails, the charge stays: nothing is ever refunded.
    """
    count = int(empty.epsilon / mechanism.epsilon)
    content = None if request_id is None else _content(mechanism, steps)
    entry = ledger.charge(Charge.of(mechanism, what, count), request_id=request_id, content=content)
    paid = replace(empty, ledger_id=entry.id, receipt=ledger.receipt(entry))
    if entry.answer is not None:
        return replace(paid, value=value_of(entry.answer))
    value = steps.draw()
    # If the data changed meanwhile, the answer is of neither state, and is not repeated.
    if request_id is not None and _content(mechanism, steps) == content:
        ledger.store_answer(entry.id, text_of(value), content=content)
    return replace(paid, value=value)


def _content(mechanism: PermuteAndFlip, steps: Steps) -> str:
    """What a request must have in common with the one before. Epsilons that the ledger rounds alike are different."""
    return f"{mechanism.epsilon} {steps.content()}"
