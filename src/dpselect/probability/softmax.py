"""McSherry & Talwar (2007): the exponential mechanism's probabilities, exp(-x_r) / sum exp(-x_s)."""

import numpy as np

from dpselect._types import Floats


def softmax(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero.

    All terms are positive and NumPy adds pairwise, so the relative error comes from exp and from the exponents. For
    x <= 700, each exponent is within 3 roundings, and the error is below 3e-13.
    """
    with np.errstate(under="ignore"):
        probabilities = np.exp(-exponents)
        probabilities /= probabilities.sum()
    return probabilities
