"""The scores that the page shows, and the probabilities that were computed from them."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._score_field import Score
from dpselect._score_lines import Candidates
from dpselect._scores import as_vector, losses
from dpselect.errors import InvalidValue
from dpselect.mechanisms.names import KINDS, MechanismName
from dpselect.probability.grid import Floats

MOST_CANDIDATES = 10_000
_REMEMBERED = 48  # some 4 MB of probabilities at ten thousand candidates


@dataclass(frozen=True, repr=False)
class Known:
    """Probabilities that are known already, in the place of the mechanism that they came from."""

    probabilities: Floats

    def pmf(self, _: Any) -> Floats:
        """Return the probabilities."""
        return self.probabilities


class ScoreSet:
    """Candidates with their exact scores. Its repr says nothing about them."""

    def __init__(
        self, name: str, candidates: Candidates, unit: str = "points", *, shape: str = "", file: str | None = None
    ) -> None:
        if len(candidates.scores) > MOST_CANDIDATES:
            rule = f"the explorer shows at most {MOST_CANDIDATES:,} candidates"
            raise InvalidValue(f"{rule}: use dpselect.analysis for more")
        self.name, self.unit, self.shape, self.file = name, unit, shape, file
        self.exact: Sequence[Score] = candidates.scores
        self.given_labels = None if candidates.labels is None else [_printable(label) for label in candidates.labels]
        self._known: OrderedDict[tuple[MechanismName, Fraction], Known] = OrderedDict()
        self._lock = threading.Lock()
        self.curve_points: dict[tuple[MechanismName, int], float] = {}
        if not np.isfinite(self.losses).all():
            raise InvalidValue("the scores differ by more than a float can hold: give them in another unit")

    @property
    def labels(self) -> list[str]:
        """Return the labels of the candidates, or their positions."""
        return self.given_labels or [f"candidate {index}" for index in range(len(self.exact))]

    @cached_property
    def losses(self) -> Floats:
        """Return how far each candidate is below the best, each rounded once."""
        return losses(as_vector(list(self.exact)))

    @cached_property
    def scores(self) -> Any:
        """Return what is analysed: the scores where an array holds them exactly, else the negated losses.

        Fractions are slow. A loss is rounded by 2^-53 relative, so an exponent of at most 745 (beyond, exp is zero in
        floats) moves by 8.3e-14, and with it a probability: less than the 1e-12 that a pmf promises.
        """
        vector = as_vector(list(self.exact))
        return vector if isinstance(vector, np.ndarray) else -self.losses

    def known(self, name: MechanismName, rate: Fraction) -> Known:
        """Return the probabilities of a mechanism, which depend on its rate alone."""
        key = (name, rate)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = Known(KINDS[name](rate, score_range=1).pmf(self.scores))
        with self._lock:
            self._known[key] = found
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found


def _printable(label: str) -> str:
    """The label without characters that could steer a terminal, into which the code of the page may be pasted."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in label)
