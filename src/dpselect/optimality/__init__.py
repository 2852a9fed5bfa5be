"""How close to optimal permute-and-flip and the exponential mechanism are: the linear program of the paper, its dual.

Nothing here uses data.
"""

from dpselect.optimality.lattice import MOST_VARIABLES, THRESHOLD, Certificate, certify, variable_count
from dpselect.optimality.program import Optimum, Ratios, pareto_ratios, solve

__all__ = [
    "MOST_VARIABLES",
    "THRESHOLD",
    "Certificate",
    "Optimum",
    "Ratios",
    "certify",
    "pareto_ratios",
    "solve",
    "variable_count",
]
