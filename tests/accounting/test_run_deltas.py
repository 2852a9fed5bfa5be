"""Runs that are (epsilon, delta)-DP: the best of them, by its exact distribution, has the epsilon and delta stated."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpselect.accounting.repeats import Repeated
from dpselect.errors import InvalidType, InvalidValue
from dpselect.ledger import Charge
from dpselect.release import Release
from dpselect.tuning import NegativeBinomial, Poisson, geometric, logarithmic
from tests.accounting.test_run_counts import REPEATS, generating

STOPS = st.fractions(Fraction(1, 40), Fraction(39, 40), max_denominator=40)
WHOLE_SHAPES = st.builds(NegativeBinomial, st.integers(1, 3), STOPS)  # their generating functions are rational
EPSILONS = st.fractions(Fraction(1, 100), 3, max_denominator=100)


def exp_below(exponent):
    """A rational number just below the exponential."""
    with mpmath.workdps(60):
        return Fraction(str(mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator))) * (
            1 - Fraction(1, 10**58)
        )


def exp_above(exponent):
    return exp_below(exponent) * (1 + Fraction(1, 10**57))


def hockey_stick(first, second, factor):
    """The largest Pr[S] - factor Pr'[S] over all sets S, as the definition of (epsilon, delta) has it."""
    return sum((max(p - factor * q, Fraction(0)) for p, q in zip(first, second, strict=True)), Fraction(0))


def generated(repeats, t):
    """The generating function for a whole shape, exactly."""
    shape, stop = int(repeats.shape), repeats.stop
    return ((1 - (1 - stop) * t) ** -shape - 1) / (stop**-shape - 1)


def kept(law, scores, generate):
    """The law of what is kept: of the results with the best score the first one, so one of them by its share."""
    found = [Fraction(0)] * len(law)
    for score in sorted(set(scores)):
        below = sum((p for p, own in zip(law, scores, strict=True) if own < score), Fraction(0))
        here = sum((p for p, own in zip(law, scores, strict=True) if own == score), Fraction(0))
        for index, own in enumerate(scores):
            if own == score and here:
                found[index] = law[index] / here * (generate(below + here) - generate(below))
    return found


def test_what_is_kept_is_that_of_runs_one_after_another():
    """The formula with ties, beside a plain simulation of the loop with exact probabilities."""
    law, scores = [Fraction(1, 2), Fraction(1, 8), Fraction(1, 4), Fraction(1, 8)], [0, 1, 1, 2]
    repeats, steps = geometric(mean=2), 120
    state, found = {None: Fraction(1)}, [Fraction(0)] * 4
    for _ in range(steps):
        after = dict.fromkeys(range(4), Fraction(0))
        for (best, weight), (result, p) in itertools.product(state.items(), enumerate(law)):
            after[result if best is None or scores[result] > scores[best] else best] += weight * p
        found = [known + after[result] / 2 for result, known in enumerate(found)]
        state = {best: weight / 2 for best, weight in after.items()}
    exact = kept(law, scores, lambda t: generated(repeats, t))
    assert sum(exact) == 1
    assert all(0 <= one - other <= Fraction(1, 2**steps) for one, other in zip(exact, found, strict=True))


def laws(size):
    return (
        st.lists(st.integers(0, 30), min_size=size, max_size=size)
        .filter(any)
        .map(lambda weights: [Fraction(weight, sum(weights)) for weight in weights])
    )


PAIRS = st.integers(2, 5).flatmap(
    lambda size: st.tuples(laws(size), laws(size), st.lists(st.integers(0, 3), min_size=size, max_size=size))
)


@settings(max_examples=300)
@given(WHOLE_SHAPES, EPSILONS, PAIRS)
@example(
    geometric(2), Fraction(1, 2), ([Fraction(1, 2), 0, Fraction(1, 2)], [0, Fraction(1, 2), Fraction(1, 2)], [0, 1, 2])
)
def test_the_best_of_runs_is_as_private_as_stated(repeats, epsilon, pair):
    """Any two laws of a run, with the delta that they have at this epsilon by definition; all sets of results."""
    first, second, scores = pair
    factor = exp_below(epsilon)
    delta = max(hockey_stick(first, second, factor), hockey_stick(second, first, factor))
    if delta == 1:
        return
    one, other = (kept(law, scores, lambda t: generated(repeats, t)) for law in (first, second))
    most = exp_above(repeats.epsilon(epsilon))
    largest = max(hockey_stick(one, other, most), hockey_stick(other, one, most))
    assert largest <= Repeated(repeats, epsilon, delta).delta


@settings(max_examples=150)
@given(REPEATS, EPSILONS, PAIRS)
def test_the_same_for_numbers_of_runs_without_rational_probabilities(repeats, epsilon, pair):
    """Both laws have a large part in common, so that the delta is small and many runs still guarantee something."""
    *given_laws, scores = pair
    common = [(p + q) / 2 for p, q in zip(*given_laws, strict=True)]
    first, second = ([(49 * p + q) / 50 for p, q in zip(common, law, strict=True)] for law in given_laws)
    with mpmath.workdps(50):

        def generate(t):
            value = generating(repeats, mpmath.mpf(t.numerator) / t.denominator)
            return Fraction(str(value)) - Fraction(str(generating(repeats, mpmath.mpf(0))))

        one, other = (kept(law, scores, generate) for law in (first, second))
    factor = exp_below(epsilon)
    delta = max(hockey_stick(first, second, factor), hockey_stick(second, first, factor))
    try:
        stated = repeats.delta(delta)
    except InvalidValue:  # it rounds to one
        return
    most = exp_above(repeats.epsilon(epsilon))
    largest = max(hockey_stick(one, other, most), hockey_stick(other, one, most))
    assert largest <= stated + Fraction(1, 10**40)


@pytest.mark.parametrize("repeats", [geometric(mean=10), NegativeBinomial(2, "0.1"), NegativeBinomial(3, "0.9")])
@pytest.mark.parametrize("delta", [Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 3)])
def test_the_delta_is_attained_and_one_without_the_number_of_runs_is_not_enough(repeats, delta):
    """The power check: a run that, with probability delta, shows on which side it is, and with the best score."""
    first, second = [1 - delta, delta, Fraction(0)], [1 - delta, Fraction(0), delta]
    one, other = (kept(law, [0, 1, 1], lambda t: generated(repeats, t)) for law in (first, second))
    stated = repeats.delta(delta)
    for factor in (1, exp_above(repeats.epsilon(1)), 10**9):
        found = hockey_stick(one, other, factor)
        assert 0 <= stated - found < Fraction(1, 10**50)
        assert found > delta


def test_an_epsilon_without_the_number_of_runs_is_not_enough():
    """The power check for the epsilon: at that of one run, the delta is larger than stated."""
    epsilon, delta, repeats = Fraction(1), Fraction(1, 10**6), geometric(mean=100)
    ratio, tiny = exp_below(epsilon), Fraction(1, 10**4)
    low = (1 - delta) / (1 + ratio)
    first = [ratio * low - ratio * tiny, ratio * tiny, low, delta]
    second = [low - tiny, tiny, ratio * low, delta]
    one, other = (
        kept([p / sum(law) for p in law], [0, 1, 2, 3], lambda t: generated(repeats, t)) for law in (first, second)
    )
    stated = repeats.delta(delta)
    assert max(hockey_stick(one, other, ratio), hockey_stick(other, one, ratio)) > 2 * stated
    most = exp_above(repeats.epsilon(epsilon))
    assert max(hockey_stick(one, other, most), hockey_stick(other, one, most)) <= stated


def enclosed(repeats, delta):
    """The delta 1 - f(1 - delta) as a ball, from the formulas of the generating functions."""
    d = arb(fmpq(delta.numerator, delta.denominator))
    if isinstance(repeats, Poisson):
        return -(-arb(fmpq(repeats.runs.numerator, repeats.runs.denominator)) * d).expm1()
    h, g = (arb(fmpq(part.numerator, part.denominator)) for part in (repeats.shape, repeats.stop))
    t = 1 - d
    if not repeats.shape:
        return 1 - (1 - (1 - g) * t).log() / g.log()
    return 1 - ((1 - (1 - g) * t) ** -h - 1) / (g**-h - 1)


DELTAS = st.fractions(Fraction(1, 10**15), Fraction(1, 3)) | st.sampled_from(
    [Fraction(1, 10**9), Fraction(1e-6), Fraction(1, 10**45), Fraction(1, 10**300)]
)


@given(REPEATS | st.builds(NegativeBinomial, st.sampled_from(["0", "1e-6", "1/2", "1000"]), STOPS), DELTAS)
@example(NegativeBinomial("1e-6", 1 - Fraction(1, 10**15)), Fraction(1, 10**9))
@example(NegativeBinomial(1000, Fraction(1, 10**12)), Fraction(1, 10**16))
@example(NegativeBinomial(0, Fraction(1, 10**12)), Fraction(1, 10**16))
def test_deltas_are_rounded_up(repeats, delta):
    """Beside balls of 8,000 bits; never below, and never 50 decimals above."""
    ctx.prec = 8000
    exact = enclosed(repeats, delta)
    try:
        found = repeats.delta(delta)
    except InvalidValue:
        assert exact > 1 - arb(10) ** -49
        return
    assert arb(fmpq(found.numerator, found.denominator)) >= exact
    assert arb(fmpq(found.numerator, found.denominator)) - exact < arb(10) ** -49
    assert found <= delta * Fraction(repeats.mean) + Fraction(1, 10**50)


def test_a_stop_next_to_one_is_one_run():
    """Its exact formula would divide by a logarithm of nearly zero."""
    repeats = NegativeBinomial("1/2", 1 - Fraction(1, 10**3000))
    assert 0 < repeats.delta("1e-6") - Fraction(1, 10**6) < Fraction(1, 10**24)


def test_deltas_without_and_with_too_much():
    assert [repeats.delta(0) for repeats in (geometric(3), logarithmic("0.1"), Poisson(3))] == [0, 0, 0]
    assert float(Poisson(3).delta("0.1")) == pytest.approx(-math.expm1(-0.3), rel=1e-15)
    assert geometric(mean=10).delta("0.1") == Fraction(-(-(10**50) * 10 // 19), 10**50)  # 0.1/(0.1 + 0.1 * 0.9)
    for wrong in (1, -1, "1.5"):
        with pytest.raises(InvalidValue, match="delta must be from 0 to below 1"):
            geometric(3).delta(wrong)
    with pytest.raises(InvalidType, match="delta must be a number"):
        Repeated(geometric(3), 1, None)
    with pytest.raises(InvalidValue, match="delta is too large"):
        Repeated(Poisson(10**6), 1, "0.5")


def test_a_charge_states_the_deltas():
    runs = Repeated(geometric(mean=10), "0.1", "1e-9")
    charge = Release("model", runs, delta=runs.delta).charge
    assert charge.what == {"question": "model", "delta_of_each_run": "1e-9"}
    assert (charge.epsilon, charge.delta, charge.composes_as) == (runs.epsilon, runs.delta, "pure")
    assert charge.mechanism == Repeated(geometric(mean=10), "0.1").name
    assert charge.rho == Charge("other", runs.epsilon).rho
    assert runs.guarantee.delta == runs.delta
    plain = Release("model", Repeated(geometric(mean=10), "0.1")).charge
    assert (plain.what, plain.delta) == ("model", 0)
