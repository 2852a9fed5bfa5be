"""A fourth mechanism, which the package does not know: report noisy max with Gumbel noise.

Its distribution is that of the exponential mechanism (Yellott 1977). It is registered while a test asks for it.
"""

from typing import ClassVar

import numpy as np

from dpselect import ExponentialMechanism
from dpselect._types import Floats, Selections
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import choose_by_envelope, choose_by_rejection, choose_in_rows
from dpselect.mechanisms.laws import WorstErrors, softmax
from dpselect.mechanisms.privacy import BOUNDED_RANGE, PrivacyLoss
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import SHORT, Gaps, RowGaps


class GumbelNoisyMax(MechanismBase):
    """Report noisy max with Gumbel noise of scale score_range / epsilon."""

    name: ClassVar[str] = "gumbel-noisy-max"
    title: ClassVar[str] = "report noisy max with Gumbel noise"
    loss: ClassVar[PrivacyLoss] = BOUNDED_RANGE
    worst: ClassVar[WorstErrors] = ExponentialMechanism.worst

    def _choose(self, gaps: Gaps, draws: Draws) -> int:
        return choose_by_envelope(gaps, draws) if gaps.size > SHORT else choose_by_rejection(gaps, draws)

    def _choose_rows(self, gaps: RowGaps, draws: Draws) -> Selections:
        return choose_in_rows(gaps, draws)

    def _probabilities(self, exponents: Floats) -> Floats:
        return softmax(exponents)

    @staticmethod
    def noise(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return generator.gumbel(size=shape)


del MECHANISMS[GumbelNoisyMax.name]
