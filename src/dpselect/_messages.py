"""Parts of messages: what a user probably meant, how to install what is missing, which column names may be shown.

A CSV file without a header starts with somebody's data. So a message lists column names only if all of them look like
names.
"""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Set
from difflib import get_close_matches
from typing import Any

from dpselect.errors import InvalidType

_NO_SEED = "randomness comes from the operating system, so that nobody can repeat a draw"
_OF_THE_TABLE = "it belongs to the whole table: give it to open_table"
_ENDS = "give the public range as lower and upper"
# Names of keywords that other libraries use, or that belong somewhere else.
_KEYWORDS = {
    "neighbors": "it is spelled neighbours, and belongs to the whole table: open_table(..., neighbours='replace')",
    "neighbours": _OF_THE_TABLE,
    "person": _OF_THE_TABLE,
    "ledger": _OF_THE_TABLE,
    "dataset": _OF_THE_TABLE,
    "budget": f"a question takes epsilon or rho; a budget has a ledger, and {_OF_THE_TABLE}",
    "delta": "it is for values that nobody listed; a budget in (epsilon, delta) belongs to the ledger, as"
    " budget=dpselect.approximate('1', '1e-6')",
    "eps": "it is spelled epsilon",
    "sensitivity": "it follows from the question",
    "bounds": _ENDS,
    "bins": _ENDS,
    "q": "the share is called level, as in quantile(column, 0.9), or levels for several",
    "by": "group the table first: table.group_by(column, groups=[...])",
    "groups": "group the table first: table.group_by(column, groups=[...])",
    "group_by": "group the table first: table.group_by(column, groups=[...])",
    **dict.fromkeys(("seed", "rng", "random_state", "generator"), f"there is no such thing: {_NO_SEED}"),
}

_NO_NUMBERS = (
    "dpselect chooses a value and releases no noisy numbers: ask for a median, quantiles or the most common value; for"
    " sums, counts and means use OpenDP"
)
# Questions that other libraries have, and what to ask here.
NO_QUESTIONS = {
    **dict.fromkeys(("mean", "sum", "std", "var", "count", "histogram", "describe", "size"), _NO_NUMBERS),
    **dict.fromkeys(("max", "min"), "use maximum or minimum, a quantile near the end: the true one is one person's"),
    **dict.fromkeys(("percentile", "percentiles"), "use quantile(column, 0.9), or quantiles for several levels"),
    **dict.fromkeys(("value_counts", "most_common", "nlargest"), "use top_k, which returns values without counts"),
    **dict.fromkeys(("unique", "nunique"), "use values, which returns the values that enough people have"),
    **dict.fromkeys(("filter", "where"), "filter when you open the table: open_table(..., where='age >= 18')"),
    **dict.fromkeys(("head", "rows", "sample"), "the rows are private: table.columns has the schema"),
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like the given one, if there is one. Upper and lower case are the same.

    >>> nearest("Dest", ["origin", "dest"]), nearest("tpo_k", ["mode", "top_k"]), nearest("x", ["mode"])
    ('dest', 'top_k', None)
    """
    by_case = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), by_case, n=1)
    return by_case[close[0]] if close else None


def question_for(word: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """What to write instead of a word: what is known about it, or the most similar known word; or nothing.

    >>> question_for("medain", ["median", "mode"], {})
    ": did you mean 'median'?"
    """
    if word in elsewhere:
        return f": {elsewhere[word]}"
    close = nearest(word, known)
    return "" if close is None else f": did you mean {close!r}?"


def check_keywords(name: str, given: Mapping[str, Any], accepted: Set[str]) -> None:
    """Refuse a keyword that a function does not have, and say what to write instead.

    >>> check_keywords("mode", {"eps": 1}, {"epsilon"})
    Traceback (most recent call last):
    dpselect.errors.InvalidType: mode has no keyword 'eps': it is spelled epsilon
    """
    for word in given:
        if word not in accepted:
            raise InvalidType(f"{name} has no keyword {word[:40]!r}{question_for(word, accepted, _KEYWORDS)}")


def install_command(*packages: str) -> str:
    """The command that installs packages for the Python that runs."""
    # The command names the packages themselves, and never dpselect: a package index may have something else under that
    # name. It names the interpreter, because the `pip` of a shell may belong to another one.
    return shlex.join([sys.executable or "python", "-m", "pip", "install", *packages])


# What programs write for a missing number.
NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)|n/?a|<na>|null|none|", re.IGNORECASE)

SHOWN_CHARACTERS = 40


def is_data(field: str) -> bool:
    """Whether a field of the first row is data, not the name of a column: a number, nearly a number, or missing."""
    first = next((character for character in field if character.isalnum()), "")
    return bool(NO_NUMBER.fullmatch(field)) or field[0] in "+-." or first.isnumeric()


def is_name(field: str) -> bool:
    """Whether a field must be the name of a column: every number in it follows a letter or an underscore."""
    starts = (
        position
        for position, character in enumerate(field)
        if character.isnumeric() and not field[position - 1 : position].isnumeric()
    )
    return not is_data(field) and all(
        position and (field[position - 1].isalpha() or field[position - 1] == "_") for position in starts
    )


def shown_names(names: Iterable[str], most: int) -> str | None:
    """The first few names, quoted, for a message; None if one of them might be data."""
    known = list(names)
    if not all(name and is_name(name) for name in known):
        return None
    shown = [repr(name[:SHOWN_CHARACTERS]) for name in known[:most]]
    return ", ".join(shown + ["..."] * (len(known) > most))


def printable(text: str) -> str:
    """The text without characters that could control a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
