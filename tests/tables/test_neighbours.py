"""Neighbours of small tables, for what `tests/behaviour` leaves out: a candidate for others, and rho beside a delta.

Every answer is followed with its exact probability (`tests/behaviour/replay.py`).
"""

import math

import pytest

from tests import seam
from tests.behaviour.replay import RELATIONS, SLACK, World, apart
from tests.behaviour.test_neighbours import FOUND, LARGE, NOBODY, check, crowd, found, question, rows
from tests.tables.looking import opened

# Of the values y and z, which nobody listed, a person may have both: they count once for the others.
OTHERS = World(
    ("x",),
    ((), crowd(30, "a") + crowd(20, "z") + crowd(10, "y"), crowd(9, "a") + crowd(9, "b"), crowd(9, "z")),
    (NOBODY, *(rows(*own) for own in ("a", "z", "ab", "yz", "bz", "abyz"))),
)
METHODS = {
    "mode": {},
    "set": {"k": 2, "method": "set", "max_values": 1},
    "set of two values each": {"k": 1, "method": "set", "max_values": 2},
    "margin": {"k": (1, 2), "method": "margin"},
    "peel": {"k": 2, "method": "peel"},
    "noisy-counts": {"k": 2, "method": "noisy-counts", "max_values": 1},
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_a_candidate_for_others(name, relation):
    method = "top_k" if METHODS[name] else "mode"
    ask = question(method, "x", candidates=["a", "b"], other="rest", epsilon=LARGE, **METHODS[name])
    check(OTHERS, ask, relation, 0.9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("max_values", [None, 1, 2])
def test_the_exponential_mechanism_loses_its_own_rho_except_with_probability_delta(relation, max_values):
    """Given an answer that both tables allow, no Rényi divergence exceeds what rho allows."""
    ask = found("mode", mechanism="exponential", max_values=max_values)
    with seam.few_compete(2):
        lost = apart(FOUND, ask, relation)
    assert lost.divergence <= lost.delta
    assert 0.1 * lost.rho < lost.renyi <= lost.rho * (1 + SLACK)
    assert lost.rho < math.tanh(lost.epsilon / 2) * lost.epsilon / 2


def test_permute_and_flip_above_a_threshold_has_the_rho_of_any_pure_release():
    answer = opened({"x": ["a"]}).mode("x", epsilon=1, delta="0.01", mechanism="permute-and-flip")
    assert answer.guarantee.zcdp >= math.tanh(0.5)
