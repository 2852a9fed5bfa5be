"""McKenna & Sheldon (2020), Appendix "Report Noisy Max": its probabilities in linear time, for any scores.

In units of the noise, candidate r has the value v_r = -x_r. With the Laplace density f and distribution function F,

    Pr[r] = integral of f(y - v_r) / F(y - v_r) G(y) dy,    G(y) = prod_s F(y - v_s),

so that all candidates share one grid of y:

* below v_r the ratio f / F is 1, so that part of Pr[r] is the integral of G up to v_r, a cumulative sum;
* above v_r it is sum_{j >= 1} (e**-(y - v_r) / 2)**j, so that part is a sum over j of integrals of e**(-j y) G from
  v_r on, which are cumulative sums from the other end;
* log G needs the count and the sum of the values above y, and power sums of e**(-j (y - v_s)) over those below, which
  are carried from panel to panel.

All terms are positive. Panels are split at the values, where G has kinks, and are at most 1/2 wide. G is analytic
between kinks, so 12 Gauss-Legendre points leave an error far below 1e-15. The series have ratio at most 1/2 and are cut
after 60 terms. The grid ends where G is within e**-45 of 1, and starts where f G has fallen by the same factor. |log G|
is below 100 where G matters, so its roundings leave a relative error near 1e-14; the exponents themselves add 3e-13.
"""

from dataclasses import dataclass

import numpy as np

from dpselect._types import Floats
from dpselect.probability.quadrature import unit_grid

REACH = 45.0
_LOWEST = -745.0
# Candidates this far below the best have probability zero in float64. Capping their distance keeps all sums finite.
_VANISHED = 1e5
_TERMS = 60
_NODES = 12
_WIDTH = 0.5
_POWERS = np.arange(1, _TERMS + 1)


def noisy_max_probabilities(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero."""
    values, inverse, counts = np.unique(-np.minimum(exponents, _VANISHED), return_inverse=True, return_counts=True)
    return noisy_max_by_level(values, counts.astype(np.float64))[inverse]


@dataclass(frozen=True)
class Panels:
    """The grid of y: panel i runs from edges[i] to edges[i + 1], and its nodes are in row i."""

    edges: Floats
    offsets: Floats  # y minus the panel's left edge
    weights: Floats
    halved: Floats  # e**-offset / 2
    decays: Floats  # e**(-j width), j along the columns


def noisy_max_by_level(values: Floats, counts: Floats) -> Floats:
    """The probability of one candidate at each level. `counts` says how many candidates have each ascending value."""
    with np.errstate(under="ignore"):
        panels = _panels(values, float(counts.sum()))
        survival = np.exp(_log_survival(values, counts, panels)) * panels.weights
        upto = np.concatenate([[0.0], np.cumsum(survival.sum(axis=1))])
        beyond = _moments_beyond(survival, panels)
        places = np.searchsorted(panels.edges, values)
        probabilities: Floats = upto[places] + beyond[places].sum(axis=1)
        far = values < panels.edges[0]
        probabilities[far] = np.exp(np.outer(values[far] - panels.edges[0], _POWERS)) @ beyond[0]
    return probabilities


def _panels(values: Floats, size: float) -> Panels:
    """Panels at most _WIDTH wide, with an edge at every value that matters."""
    lowest = max(float(values[0]), _LOWEST) - REACH
    steps = np.arange(lowest, float(values[-1]) + REACH + np.log(size) + _WIDTH, _WIDTH)
    edges = np.unique(np.concatenate([values[values > lowest], steps]))
    nodes, weights = unit_grid(_NODES)
    widths = np.diff(edges)[:, np.newaxis]
    offsets = widths * nodes
    return Panels(edges, offsets, widths * weights, np.exp(-offsets) / 2, np.exp(-widths * _POWERS))


def _log_survival(values: Floats, counts: Floats, panels: Panels) -> Floats:
    """Log G at every node."""
    left = panels.edges[:-1]
    below = np.searchsorted(values, left, side="right")
    # Summed from the top, so that the sums that matter, near the largest value, are small and accurate.
    above, sums = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (counts, counts * values))
    y = left[:, np.newaxis] + panels.offsets
    log_above = above[below, np.newaxis] * (y - np.log(2)) - sums[below, np.newaxis]
    powers = _powers_below(values, counts, panels)
    log_below = np.zeros_like(y)
    for j in range(_TERMS, 0, -1):
        log_below = (log_below + powers[:, j - 1, np.newaxis] / j) * panels.halved
    difference: Floats = log_above - log_below
    return difference


def _powers_below(values: Floats, counts: Floats, panels: Panels) -> Floats:
    """Sums of e**(-j (edge - value)) over the candidates at or below each panel's left edge."""
    edges = panels.edges
    inside = values >= edges[0]
    joining = np.zeros(edges.size)
    joining[np.searchsorted(edges, values[inside])] = counts[inside]
    powers = np.empty((edges.size - 1, _TERMS))
    carried = np.exp(np.outer(_POWERS, values[~inside] - edges[0])) @ counts[~inside]
    for panel in range(edges.size - 1):
        carried = carried + joining[panel]
        powers[panel] = carried
        carried = carried * panels.decays[panel]
    return powers


def _moments_beyond(survival: Floats, panels: Panels) -> Floats:
    """Integrals of (e**-(y - edge) / 2)**j G from each edge on, for each j."""
    moments = np.empty((len(survival), _TERMS))
    power = survival
    for j in range(_TERMS):
        power = power * panels.halved
        moments[:, j] = power.sum(axis=1)
    beyond = np.zeros((len(survival) + 1, _TERMS))
    for panel in range(len(survival) - 1, -1, -1):
        beyond[panel] = moments[panel] + panels.decays[panel] * beyond[panel + 1]
    return beyond
