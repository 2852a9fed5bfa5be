"""Steps of the proofs in docs/theory.md, as properties of random scores."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpselect import PermuteAndFlip

# Probabilities are within 1e-12 of the truth.
SLACK = 1e-11
REACH = 45

scores_and_sets = st.integers(2, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-20, 20), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda flags: any(flags) and not all(flags)),
    )
)
distances = st.floats(0, 10)


def winning(scores, members, shift):
    """G(shift): the probability that the winner is a member if all members are lowered by so much, at rate one."""
    return PermuteAndFlip(2).pmf(np.array(scores) - shift * members)[members].sum()


def laplace_tail(scores, members, shift):
    """The tail of Laplace noise of scale one that starts at G(0), after a shift to the right."""
    inside, outside = winning(scores, members, 0), winning(scores, ~members, 0)
    if inside <= outside:
        return inside * math.exp(-shift)
    middle = -math.log(2 * outside)
    return 1 - outside * math.exp(shift) if shift <= middle else 0.5 * math.exp(middle - shift)


@given(case=scores_and_sets, first=distances, further=distances)
def test_a_maximum_falls_no_faster_than_its_noise(case, first, further):
    """Theorem 2, the inequalities (1) and (2)."""
    scores, members = case[0], np.array(case[1])
    before, after = winning(scores, members, first), winning(scores, members, first + further)
    assert after >= math.exp(-further) * before - SLACK
    assert 1 - after <= math.exp(further) * (1 - before) + SLACK * math.exp(further)


@given(case=scores_and_sets, shift=distances)
def test_the_tail_stays_above_that_of_laplace(case, shift):
    """Theorem 2, the comparison G(u) >= L(u)."""
    scores, members = case[0], np.array(case[1])
    assert winning(scores, members, shift) >= laplace_tail(scores, members, shift) - SLACK


def test_laplace_cannot_be_replaced_by_less():
    """For two candidates G is the tail of Laplace noise, so noise of a larger scale would fail."""
    members = np.array([True, False])
    for start in (-3.0, -0.5, 0.0, 0.5, 3.0):
        for shift in (0.1, 1.0, 4.0):
            tail = winning([start, 0.0], members, shift)
            assert math.isclose(tail, laplace_tail([start, 0.0], members, shift), rel_tol=1e-9)
            assert tail < laplace_tail([start, 0.0], members, 0.99 * shift) - SLACK


@given(
    exponents=st.lists(st.floats(0, 40), min_size=1, max_size=300),
    crowd=st.integers(0, 3_000),
    level=st.floats(0, 5),
    place=st.floats(0, 1),
)
def test_the_cut_and_the_number_of_hot_candidates(exponents, crowd, level, place):
    """Theorem 4: S T <= 46, fewer than 736 hot candidates, and what is cut off is below exp(-45)."""
    heads = np.exp(-np.concatenate([[0.0], exponents, np.full(crowd, level)]))
    total = heads.sum()
    cut = min(1.0, REACH / (total - 1)) if total > 1 + REACH else 1.0
    assert total * cut <= 46 * (1 + 1e-12)
    assert np.count_nonzero(heads * cut > 1 / 16) <= 736
    others = np.delete(heads, heads.size // 2)
    t = place * (1 - cut)  # so that t + cut is at most one
    with np.errstate(divide="ignore"):
        fall = np.log1p(-others * t).sum() - np.log1p(-others * min(1.0, t + cut)).sum()
    assert fall >= (total - 1) * cut * (1 - 1e-9)
