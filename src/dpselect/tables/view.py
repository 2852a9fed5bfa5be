"""How a source is read: the notation of text files, derived columns, and a filter.

All of it is public, and the same for every row. A row becomes one row, or none, by its own values alone. So
neighbouring tables stay neighbours, and no sensitivity changes (docs/tables.md).
"""

import codecs
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpselect import _validate
from dpselect._messages import SHOWN_CHARACTERS
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.kinds import PLAIN, Style

DELIMITERS = {",": ",", ";": ";", "\t": "\t", "tab": "\t", "|": "|", ":": ":", "^": "^", "~": "~"}
UTF8 = ("utf-8", "utf-8-sig")


@dataclass(frozen=True, kw_only=True)
class View:
    """How a source is read.

    Attributes:
        where: an expression of SQL; rows for which it is true count. None if all rows do.
        derive: further columns by name, each an expression of SQL.
        encoding: of text files: UTF-8, or one with a byte for each character.
        delimiter: of text files; None if their header says it.
        style: of text files: how numbers and dates are written.
        query: of databases; None if a table is named.
        trusted_query: whether the owner states that each row of a query depends on the rows of one person only.
    """

    where: str | None = None
    derive: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"
    delimiter: str | None = None
    style: Style = PLAIN
    query: str | None = None
    trusted_query: bool = False

    def __post_init__(self) -> None:
        _validate.boolean(trusted_query=self.trusted_query)
        if self.where is not None and not isinstance(self.where, str):
            raise InvalidType(f"where must be text, such as 'age >= 18', got {type(self.where).__name__}")
        names_and_texts = list(self.derive.items()) if isinstance(self.derive, Mapping) else [(None, None)]
        if not all(isinstance(each, str) for pair in names_and_texts for each in pair):
            raise InvalidType("derive must be a dict of names and expressions, such as {'year': 'year(visited)'}")
        object.__setattr__(self, "derive", dict(names_and_texts))  # what was checked: the user's dict can change
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.delimiter is not None:
            found = DELIMITERS.get(self.delimiter) if isinstance(self.delimiter, str) else None
            if found is None:
                one_of = "one of , ; | : ^ ~ and tab"
                raise InvalidValue(f"delimiter must be {one_of}, got {str(self.delimiter)[:SHOWN_CHARACTERS]!r}")
            object.__setattr__(self, "delimiter", found)

    @property
    def is_utf8(self) -> bool:
        """Whether text files are in UTF-8."""
        return self.encoding in UTF8

    @property
    def has_expressions(self) -> bool:
        """Whether rows are filtered, or have derived columns."""
        return self.where is not None or bool(self.derive)

    def identity(self, person: str | None) -> str | None:
        """Return who is protected, for a ledger: the person column, with its expression if it is derived."""
        # Epsilons of people that are derived in different ways do not add up, even if their columns have one name.
        derived = self.derive.get(person) if isinstance(person, str) else None
        return person if derived is None else f"{person} = {derived}"

    def provided(self, one: str) -> str:
        """Return on what a guarantee for `one` depends, in words; nothing if all of it was checked."""
        return f"if each row of the query depends on {one}" if self.trusted_query else ""

    def of_text(self) -> dict[str, str]:
        """Return what is stated about text files, by the names of the options."""
        stated = {"encoding": "" if self.is_utf8 else self.encoding, "delimiter": self.delimiter or ""}
        stated |= {name: getattr(self.style, name) or "" for name in ("thousands", "dates")}
        stated["decimal"] = "" if self.style.decimal == PLAIN.decimal else self.style.decimal
        return {name: value for name, value in stated.items() if value}

    def entry(self, person: str | None = None) -> dict[str, Any]:
        """Return what a ledger records of it: what is stated, and who is protected."""
        stated: dict[str, Any] = {"person": self.identity(person)}
        if self.where is not None:
            stated["where"] = self.where
        if self.derive:
            stated["derive"] = dict(self.derive)
        if self.query is not None:
            stated["query"] = self.query
        return {**stated, **self.of_text(), **({"trusted_query": True} if self.trusted_query else {})}


@functools.cache
def _table(encoding: str) -> str:
    """The character of each byte; U+FFFE, as codecs write it, where there is none."""
    found = (bytes([byte]).decode(encoding, "replace") for byte in range(256))
    return "".join(each.replace("\ufffd", "\ufffe") if len(each) == 1 else "\ufffe" for each in found)


def characters(data: bytes, encoding: str, errors: str = "replace") -> str:
    """Decode each byte by itself, so that no line changes how another one is read, whatever the codec remembers."""
    return codecs.charmap_decode(data, errors, _table(encoding))[0]


_ASCII = "".join(map(chr, range(128)))
# Every pair of two bytes: in an encoding with a byte for each character, none of them means anything else together.
_PAIRS = bytes(byte for first in range(256) for second in range(256) for byte in (first, second))


def _encoding(name: Any) -> str:
    try:
        found = codecs.lookup(name).name
        # ISO 2022 has all of ASCII but the escape alone, which changes what all bytes after it mean.
        is_single = found in UTF8 or (
            _table(found).startswith(_ASCII) and characters(_PAIRS, found) == _PAIRS.decode(found, "replace")
        )
    except (LookupError, TypeError, ValueError):
        found, is_single = "", False
    if not is_single:
        # In others, one wrong byte can change what is read of the lines after it, which are other people's.
        raise InvalidValue(
            f"encoding must be utf-8, or have one byte for each character, such as latin-1 or cp1252, got"
            f" {str(name)[:SHOWN_CHARACTERS]!r}: save the file as CSV in UTF-8"
        )
    return found


AS_IT_IS = View()
