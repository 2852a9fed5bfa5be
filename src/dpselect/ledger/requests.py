"""Requests that may be repeated: what a retry gets, and how an answer is stored so that only its own data get it."""

import json
import secrets
from collections.abc import Collection
from typing import Any

from dpselect.errors import RequestConflict, RequestUnanswered
from dpselect.ledger.charge import Charge, compact_json
from dpselect.ledger.entry import Entry, hashed

# Begins the text of an answer that is stored with a hash of its data.
_WITH_CONTENT = "dpselect-answer:"


def stored_text(answer: str, content: str | None) -> str:
    """An answer as it is stored, with a salted hash of the digest of the data that it came from, if that is given.

    The digest is a function of private data, so it is not stored itself, and no entry holds its hash.
    """
    if content is None and not answer.startswith(_WITH_CONTENT):
        return answer
    salt = secrets.token_hex(16)
    known = None if content is None else _content_hash(salt, content)
    return _WITH_CONTENT + compact_json({"answer": answer, "salt": salt, "content": known})


def stored_answer(text: str) -> str:
    """The answer of a stored text."""
    return str(_stored(text)["answer"])


def check_repeated(earlier: Entry, charges: Collection[Charge]) -> None:
    """Refuse a retry that is not one of the earlier charge, or that has no stored answer."""
    if earlier.charge not in charges:
        raise RequestConflict("request_id was used before with another question or other parameters: give a new one")
    if earlier.answer is None:
        raise RequestUnanswered(
            f"request_id was charged before, as entry {earlier.id}, and its answer was not stored: nothing is refunded;"
            " to ask again, and pay again, give a new one"
        )


def check_content(id: int, text: str, content: str) -> None:
    """Refuse a retry on other data than those of the stored answer."""
    stored = _stored(text)
    if stored["content"] is None:
        raise RequestConflict(
            f"request_id was used before, and the answer of entry {id} was stored without a digest of its data, by"
            " dpselect 0.1 or by hand: whether it is this table's is not known. Its text is in Ledger.entries(); to ask"
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
    except (ValueError, RecursionError):  # the words of somebody who used dpselect 0.1
        return plain
    return stored if isinstance(stored, dict) and stored.keys() == plain.keys() else plain


def _content_hash(salt: str, content: str) -> str:
    return hashed(["content", salt, content])
