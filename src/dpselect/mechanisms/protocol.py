"""What every selection mechanism offers. Public parameters are fields; scores are arguments."""

from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpselect.mechanisms.guarantee import Guarantee


@runtime_checkable
class Mechanism(Protocol):
    """A differentially private selection mechanism."""

    @property
    def epsilon(self) -> Fraction:
        """Return the privacy parameter, exactly."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """Return how much one person can change any single score."""
        ...

    @property
    def monotonic(self) -> bool:
        """Return whether one person moves all scores in the same direction."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """Return what one selection guarantees."""
        ...

    def select(self, scores: Any) -> int:
        """Return the index of the selected candidate."""
        ...

    def select_rows(self, scores: Any) -> npt.NDArray[np.int64]:
        """Return an independent selection for each row."""
        ...

    def pmf(self, scores: Any) -> npt.NDArray[np.float64]:
        """Return the probability of selecting each candidate."""
        ...

    def simulate(self, scores: Any, draws: int, seed: int | None = None) -> npt.NDArray[np.int64]:
        """Return many draws in floats, for research only."""
        ...
