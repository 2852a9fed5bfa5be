"""One selection in each of many rows of scores, in floats: the argmax of the scores with noise.

Exponential noise gives permute-and-flip (Ding et al. 2021), Gumbel noise the exponential mechanism (Yellott 1977).
For research only, as `simulate`: nothing here is private.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.mechanisms.names import MechanismName

Choices = npt.NDArray[np.intp]
MECHANISMS = (MechanismName.PERMUTE_AND_FLIP, MechanismName.EXPONENTIAL)


@dataclass(frozen=True)
class Chooser:
    """A mechanism of a rate c = epsilon / (2 sensitivity), or twice that for monotonic scores."""

    mechanism: MechanismName
    rate: float

    def choose(self, scores: npt.NDArray[Any], generator: np.random.Generator) -> Choices:
        """The position of an independent selection in each row."""
        if self.mechanism == MechanismName.PERMUTE_AND_FLIP:
            noise = generator.standard_exponential(scores.shape)
        else:
            noise = generator.gumbel(size=scores.shape)
        chosen: Choices = (self.rate * scores + noise).argmax(axis=1)
        return chosen
