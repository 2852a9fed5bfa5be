"""The name that a ledger gives to the best of a random number of private runs.

It holds all that an accountant asks for: the distribution of the number of runs and the epsilon of each. A name has one
form, so equal releases have equal names, and it never changes its meaning.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpselect import _validate
from dpselect._exact import NotExact, NotFinite, rational_from_text
from dpselect.errors import DPSelectError
from dpselect.mechanisms.record import Number
from dpselect.mechanisms.repeats import NegativeBinomial, Poisson, Repeats, checked_repeats

PREFIX = "repeat-and-select"
_KINDS: dict[str, type[NegativeBinomial | Poisson]] = {"negative-binomial": NegativeBinomial, "poisson": Poisson}
_FORM = re.compile(rf"{PREFIX} (\S+)((?: \S+=\S+)+)")


@dataclass(frozen=True, init=False)
class Repeated:
    """Runs of epsilon `each`, as many as `repeats` says, of which the best is kept."""

    repeats: Repeats
    each: Fraction

    def __init__(self, repeats: Repeats, each: Number) -> None:
        object.__setattr__(self, "repeats", checked_repeats(repeats))
        object.__setattr__(self, "each", _validate.exact_positive(epsilon=each))

    @property
    def epsilon(self) -> Fraction:
        """Return the pure epsilon of all of it."""
        return self.repeats.epsilon(self.each)

    @property
    def name(self) -> str:
        """Return the name in the ledger.

        >>> Repeated(Poisson(10), "0.1").name
        'repeat-and-select poisson mean=10 epsilon=1/10'
        """
        [kind] = (name for name, kind in _KINDS.items() if type(self.repeats) is kind)
        numbers = {**self.repeats.parameters, "epsilon": self.each}
        return " ".join([PREFIX, kind, *(f"{name}={number}" for name, number in numbers.items())])


@lru_cache(maxsize=256)
def repeated(name: str) -> Repeated | None:
    """What a name stands for; None if it is not the name of such a release.

    >>> repeated("repeat-and-select poisson mean=10 epsilon=1/10")
    Repeated(repeats=Poisson(mean=10), each=Fraction(1, 10))
    """
    match = _FORM.fullmatch(name)
    if match is None or match[1] not in _KINDS:
        return None
    try:
        numbers = {key: rational_from_text(text) for key, text in (part.split("=", 1) for part in match[2].split())}
        each = numbers.pop("epsilon")
        found = Repeated(_KINDS[match[1]](**numbers), each)
    except (NotExact, NotFinite, DPSelectError, KeyError, TypeError):
        return None
    return found if found.name == name else None
