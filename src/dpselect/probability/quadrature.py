"""Gauss-Legendre nodes and weights on the unit interval."""

from functools import cache

import numpy as np

from dpselect._types import Floats


@cache
def unit_grid(count: int) -> tuple[Floats, Floats]:
    """The nodes and weights of Gauss-Legendre quadrature with `count` points on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / weights.sum()
