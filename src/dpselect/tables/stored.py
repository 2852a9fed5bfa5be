"""Answers as text and back, so that a ledger can repeat one: types and exact values are kept."""

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dpselect._exact import decimal_from_text

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
