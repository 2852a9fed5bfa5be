"""All figures, in the paper's order."""

from dpselect.paper import (
    both_bars,
    error_by_p,
    five_medians,
    five_modes,
    hepth_median,
    hepth_mode,
    median_bars,
    noisy_max_by_gap,
    optimality_by_k,
    optimality_by_n,
    optimality_exponential,
    ratio_by_p,
    worst_case_by_n,
)
from dpselect.paper.plot import Plot

FIGURES: tuple[Plot, ...] = (
    error_by_p.PLOT,
    ratio_by_p.PLOT,
    worst_case_by_n.PLOT,
    optimality_by_n.PLOT,
    optimality_by_k.PLOT,
    optimality_exponential.PLOT,
    hepth_mode.PLOT,
    hepth_median.PLOT,
    median_bars.PLOT,
    noisy_max_by_gap.PLOT,
    five_modes.PLOT,
    five_medians.PLOT,
    both_bars.PLOT,
)
