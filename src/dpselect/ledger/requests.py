"""Requests: how an answer is stored for retries, and which retries are refused.

An answer is stored with a salted hash of its data, so that only a retry on the same data gets it.
"""

import json
import secrets
from typing import Any

from dpselect.accounting.charge import Charge, compact_json, hashed
from dpselect.errors import RequestConflict, RequestUnanswered


def seal(entry_head: str, answer: str) -> str:
    """The hash that ties a stored answer to its entry."""
    return hashed(["answer", entry_head, answer])


class UnreadableAnswer(Exception):
    """A stored text is not one that `stored_text` returns."""


def stored_text(answer: str, content: str | None) -> str:
    """The text in which an answer is stored, with a salted hash of the digest of its data, if one is given.

    The digest is a function of private data, so it is not stored itself, and no entry holds its hash.
    """
    salt = secrets.token_hex(16)
    known = None if content is None else _content_hash(salt, content)
    return compact_json({"answer": answer, "salt": salt, "content": known})


def stored_answer(text: str) -> str:
    """The answer in a stored text."""
    return str(_stored(text)["answer"])


def check_repeated(id: int, earlier: Charge, answer: str | None, asked: tuple[Charge, Charge]) -> None:
    """Refuse a retry whose charge, as it was asked and rounded, is not that of the earlier entry, or without an answer.

    A rho that follows from epsilon is not compared: a later version may know a smaller one.
    """
    states_rho = earlier.states_rho and asked[0].states_rho
    has_other_rho = states_rho and earlier.rho not in [charge.rho for charge in asked]
    if earlier not in asked or has_other_rho:
        raise RequestConflict("request_id was used before with a different question or parameters: give a new one")
    if answer is None:
        raise RequestUnanswered(
            f"request_id was charged before, as entry {id}, but its answer was not stored. Nothing is refunded:"
            " to ask again, and pay again, give a new one"
        )


def check_content(id: int, text: str, content: str) -> None:
    """Refuse a retry on data other than those of the stored answer."""
    stored = _stored(text)
    if stored["content"] is None:
        raise RequestConflict(
            f"request_id was used before, and the answer of entry {id} was stored by hand, without a digest of its"
            " data. It may not be this table's answer. Its text is in Ledger.entries(); to ask again, and pay again,"
            " give a new request_id"
        )
    if stored["content"] != _content_hash(stored["salt"], content):
        raise RequestConflict(f"request_id was used before on other data, as entry {id}: give a new one")


def _stored(text: str) -> dict[str, Any]:
    try:
        stored = json.loads(text)
        canonical = compact_json(stored)
    except (ValueError, RecursionError):
        raise UnreadableAnswer from None
    if canonical != text or not isinstance(stored, dict) or stored.keys() != {"answer", "salt", "content"}:
        raise UnreadableAnswer
    return stored


def _content_hash(salt: str, content: str) -> str:
    return hashed(["content", salt, content])
