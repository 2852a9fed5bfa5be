"""Decide whether the first row of a CSV file is a header or data, and which names a message may show.

A file without a header starts with somebody's data. So a message lists column names only if all of them look like
names.
"""

import re
from collections.abc import Iterable

# What programs write for a missing number.
NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)|n/?a|<na>|null|none|", re.IGNORECASE)

SHOWN_CHARACTERS = 40


def is_data(field: str) -> bool:
    """Whether a field of the first row is data, not the name of a column: a number, nearly a number, or missing.

    >>> is_data("-1.5"), is_data("$12"), is_data("NaN"), is_data("patients 2024")
    (True, True, True, False)
    """
    first = next((character for character in field if character.isalnum()), "")
    return bool(NO_NUMBER.fullmatch(field)) or field[0] in "+-." or first.isnumeric()


def is_name(field: str) -> bool:
    """Whether a field must be the name of a column: every number in it follows a letter or an underscore.

    >>> is_name("patients"), is_name("score2"), is_name("n=1430"), is_name("2024")
    (True, True, False, False)
    """
    starts = (
        position
        for position, character in enumerate(field)
        if character.isnumeric() and not field[position - 1 : position].isnumeric()
    )
    return not is_data(field) and all(position and _is_letter(field[position - 1]) for position in starts)


def _is_letter(character: str) -> bool:
    return character.isalpha() or character == "_"


def shown_names(names: Iterable[str], most: int) -> str | None:
    """The first few names, quoted, for a message; None if one of them might be data.

    >>> shown_names(["name", "visits", "cost"], most=2)
    "'name', 'visits', ..."
    """
    known = list(names)
    if not all(name and is_name(name) for name in known):
        return None
    shown = [repr(name[:SHOWN_CHARACTERS]) for name in known[:most]]
    return ", ".join(shown + ["..."] * (len(known) > most))
