"""How close to optimal permute-and-flip and the exponential mechanism are: the linear program of the paper.

The code is in `dpselect.research.optimality`.
"""

from dpselect.research.optimality import (
    MOST_VARIABLES,
    THRESHOLD,
    Certificate,
    Optimum,
    Ratios,
    certify,
    pareto_ratios,
    solve,
    variable_count,
)

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
