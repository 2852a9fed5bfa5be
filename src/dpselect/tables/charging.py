"""The one way to an answer that a ledger pays for: charge durably, then draw, then (for a request) store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpselect.ledger import Charge, Ledger
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.tables.answer import Answer
from dpselect.tables.stored import text_of, value_of


@dataclass(frozen=True)
class Steps:
    """What touches the private rows: a digest of what the question reads, and the draw."""

    content: Callable[[], str]
    draw: Callable[[], Any]


def answered(  # noqa: PLR0913, PLR0917 - each step of the way
    ledger: Ledger,
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
