"""The privacy unit: which difference between two tables an answer must hide."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpselect.errors import InvalidType, InvalidValue


class Neighbours(StrEnum):
    """Which tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


def neighbours_of(name: Any) -> Neighbours:
    """The relation of this name."""
    try:
        return Neighbours(name)
    except ValueError:
        raise InvalidValue(f"neighbours must be 'add-remove' or 'replace', got {str(name)[:40]!r}") from None


@dataclass(frozen=True, init=False, repr=False)
class PrivacyUnit:
    """What a budget protects: one person or one row, added and removed or replaced.

    Epsilons add up only if they protect the same. So a ledger has one privacy unit.

    Args:
        person: the column that names the person, all of whose rows are protected together. None protects one row.
        neighbours: "add-remove" hides whether somebody is in the table; "replace" hides what their data are.

    Raises:
        InvalidType: `person` is not a text.
        InvalidValue: `neighbours` is not one of the two names.

    >>> print(PrivacyUnit("patient"))
    one person (person='patient', neighbours='add-remove')
    """

    person: str | None
    neighbours: Neighbours

    def __init__(self, person: str | None = None, neighbours: str = Neighbours.ADD_REMOVE) -> None:
        if person is not None and not isinstance(person, str):
            raise InvalidType(f"person must be the name of a column or None, got {type(person).__name__}")
        object.__setattr__(self, "person", person)
        object.__setattr__(self, "neighbours", neighbours_of(neighbours))

    def __repr__(self) -> str:
        return f"PrivacyUnit(person={self.person!r}, neighbours='{self.neighbours}')"

    def __str__(self) -> str:
        protected = "one row" if self.person is None else "one person"
        return f"{protected} (person={self.person!r}, neighbours='{self.neighbours}')"

    def to_dict(self) -> dict[str, str | None]:
        """Return the unit in the types of JSON."""
        return {"person": self.person, "neighbours": self.neighbours.value}
