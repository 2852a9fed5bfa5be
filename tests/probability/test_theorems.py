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


def coin_ratios(epsilon, w):
    """Theorem 6: the two likelihood ratios x_w and y_w."""
    grown = math.exp(epsilon)
    return 1 / (grown * w * (2 - w)), (2 * w * grown - 1) / (w * w * grown)


def ratio_gap(epsilon, scores, moves):
    """By how much the smallest ratio exceeds x_w, in parts of it, where w is the largest one with y_w >= the largest.

    y_w = y is a quadratic equation for 1/w: (1/w)**2 / E - 2/w + y = 0.
    """
    mechanism = PermuteAndFlip(epsilon, score_range=1)
    here, there = mechanism.pmf(scores), mechanism.pmf(np.array(scores) + moves)
    ratios = there / here
    grown, largest = math.exp(epsilon), max(ratios.max(), 2 - math.exp(-epsilon))
    inverse = grown * (1 - math.sqrt(max(0.0, 1 - largest / grown)))
    smallest, _ = coin_ratios(epsilon, 1 / inverse)
    return ratios.min() / smallest - 1


@given(
    epsilon=st.floats(0.05, 6),
    rows=st.lists(st.tuples(st.floats(-2, 2), st.floats(0, 1)), min_size=2, max_size=7),
)
def test_two_candidates_are_the_worst_case(epsilon, rows):
    """Theorem 6: all ratios of neighbours lie between those of one pair of coins."""
    scores, moves = np.array(rows).T
    assert ratio_gap(epsilon, scores / epsilon, moves) >= -1e-6


def test_two_candidates_attain_it_and_a_smaller_epsilon_would_fail():
    for epsilon in (0.1, 1.0, 4.0):
        for share in (0.1, 0.5, 0.9):
            assert abs(ratio_gap(epsilon, [share, 0.0], np.array([-1.0, 0.0]))) < 1e-6
            here, there = (PermuteAndFlip(epsilon, score_range=1).pmf([x, 0.0]) for x in (share, share - 1.02))
            x, y = coin_ratios(epsilon, math.exp(-epsilon * share))
            assert (there / here).min() < x
            assert (there / here).max() > y


unit = st.fractions(0, 1, max_denominator=50)


@given(w=unit, s=unit, low=unit, more=unit, inverse=unit)
def test_the_inequality_of_theorem_6(w, s, low, more, inverse):
    """In exact rationals: g Phi >= 0 for g >= max(1, w s/u), 0 < u <= s <= 1 and 0 <= 1/v <= 1/u."""
    u = s * low
    if not u or not w or more == 1:
        return
    g = max(1, w * s / u) / (1 - more)
    inverse = inverse / u
    first = w * (2 - w) * (s - s * s / 2) - (u - u * u / 2)
    second = (2 * g - 1) * (u - u * u * inverse / 2) - g * w * s + w * w * s * s * inverse / 2
    assert (g - 1) * first + (1 - w) * second >= 0


hazards = st.sampled_from(["exponential", "laplace", "gumbel"])


@given(
    places=st.lists(st.tuples(st.floats(-3, 3), hazards), min_size=1, max_size=6),
    start=st.floats(-6, 6),
    step=st.floats(0, 5),
)
def test_the_tail_of_a_maximum_of_any_noise_with_this_hazard(places, start, step):
    """The remark after theorem 2: Pr[X > x + v] >= e^-v Pr[X > x] for a maximum of mixed noises of hazard one."""
    below = {
        "exponential": lambda z: -math.expm1(-max(z, 0.0)),
        "laplace": lambda z: math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2,
        "gumbel": lambda z: math.exp(-math.exp(-z)),
    }

    def tail(x):
        return 1 - math.prod(below[noise](x - place) for place, noise in places)

    assert tail(start + step) >= math.exp(-step) * tail(start) - 1e-13
