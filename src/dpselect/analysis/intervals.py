"""Student (1908): a confidence interval of the mean of a sample."""

import math

from scipy.special import stdtrit

from dpselect._types import Floats

LEVEL = 0.95


def half_width(sample: Floats) -> float:
    """Half the width of the interval of the mean, at 95 percent. The sample has at least two values.

    >>> import numpy as np
    >>> round(half_width(np.array([0.0, 1.0])), 3)
    6.353
    """
    spread = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    return float(stdtrit(sample.size - 1, (1 + LEVEL) / 2)) * spread
