"""Several quantiles in zCDP: the Rényi divergences of all outcomes, for all neighbours of small tables.

The laws are exact (`small_splits`), and only the divergences are floats. A ledger counts L draws at epsilon / L.
"""

import math

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.mechanisms.parameters import Neighbours
from tests.tables.small_splits import HALVES, depths, price
from tests.tables.test_splitting_neighbours import pairs, world
from tests.top_k.exact import flip_pmf, softmax

ADD_REMOVE, REPLACE = Neighbours
ORDERS = np.array([1.01, 1.5, 2.0, 5.0, 30.0])
KINDS = {"permute-and-flip": (PermuteAndFlip, flip_pmf), "exponential": (ExponentialMechanism, softmax)}


def largest_share(splits, kind, neighbouring):
    """The largest divergence of an order alpha, as a share of alpha rho."""
    laws = {}

    def law(table):
        if table not in laws:
            outcomes = splits.outcomes(table)
            laws[table] = np.log([float(outcomes[outcome]) for outcome in sorted(outcomes)])
        return laws[table]

    epsilon = -splits.price.steps * math.log(splits.odds)
    parts = depths(len(splits.levels))
    rho = parts * kind(epsilon / parts).guarantee.zcdp
    shares = []
    for one, other in neighbouring:
        p, q = law(one), law(other)
        powers = np.exp(np.outer(ORDERS, p) - np.outer(ORDERS - 1, q)).sum(axis=1)
        shares.append(np.log(powers) / (ORDERS - 1) / (ORDERS * rho))
    return np.max(shares)


# How many other people there are, and the largest share of rho that is lost with either mechanism, rounded down.
CASES = {
    (ADD_REMOVE, 2, 1): (3, 0.26, 0.49),
    (ADD_REMOVE, 3, 1): (3, 0.39, 0.75),
    (ADD_REMOVE, 3, 2): (2, 0.37, 0.73),
    (REPLACE, 2, 1): (3, 0.14, 0.29),
    (REPLACE, 3, 1): (2, 0.26, 0.53),
    (REPLACE, 2, 2): (1, 0.09, 0.17),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("neighbours", "count", "rows"), CASES)
def test_no_order_exceeds_rho(neighbours, count, rows, name):
    """Two or three levels, and a person with one row or with at most two."""
    people, *reached = CASES[neighbours, count, rows]
    kind, law = KINDS[name]
    splits = world(HALVES[count], neighbours, law, rows=rows)
    share = largest_share(splits, kind, pairs(splits, people, neighbours, rows))
    assert reached[list(KINDS).index(name)] < share <= 1


@pytest.mark.parametrize("name", KINDS)
def test_a_rate_that_is_too_large_exceeds_rho(name):
    """The price of an added person, paid for one who is replaced."""
    kind, law = KINDS[name]
    cheap = price(HALVES[3], ADD_REMOVE)
    splits = world(HALVES[3], REPLACE, law, mistake=lambda right: right.drawn_at(cheap))
    assert largest_share(splits, kind, pairs(splits, 2, REPLACE)) > 1.01
