"""The numbers of runs: their means, and that the best of so many private runs costs no more than they say."""

import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.accounting.repeats import checked_repeats
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tuning import NegativeBinomial, Poisson, geometric, logarithmic

SHAPES = st.fractions(0, 5, max_denominator=20)
STOPS = st.fractions(Fraction(1, 500), Fraction(499, 500), max_denominator=500)
REPEATS = st.builds(NegativeBinomial, SHAPES, STOPS) | st.builds(Poisson, st.fractions(1, 30, max_denominator=10))


def generating(repeats, t):
    """The probability generating function, at high precision."""
    if isinstance(repeats, Poisson):
        return mpmath.exp(mpmath.mpf(repeats.runs.numerator) / repeats.runs.denominator * (t - 1))
    shape, stop = (mpmath.mpf(part.numerator) / part.denominator for part in (repeats.shape, repeats.stop))
    if not shape:
        return mpmath.log(1 - (1 - stop) * t) / mpmath.log(stop)
    return ((1 - (1 - stop) * t) ** -shape - 1) / (stop**-shape - 1)


def is_rounded_up(repeats):
    """Whether the mean is the derivative of the generating function at one, or a little more."""
    with mpmath.workdps(60):
        mean = mpmath.diff(lambda t: generating(repeats, t), 1, h=mpmath.mpf(10) ** -20)
        return 0 < (repeats.mean - mean) / mean < 1e-11


@given(REPEATS)
def test_means_are_those_of_the_generating_function_and_rounded_up(repeats):
    assert is_rounded_up(repeats)


@pytest.mark.parametrize("shape", ["0", "1e-6", "1/2", "1", "5", "1000"])
@pytest.mark.parametrize("stop", ["1e-9", "0.001", "0.4999", "1/2", "0.9", "0.999999999"])
def test_means_near_zero_and_one(shape, stop):
    assert is_rounded_up(NegativeBinomial(shape, stop))


def best_of(repeats, run):
    """The distribution of the best of so many results, with results in ascending order of their scores."""
    sums = [mpmath.mpf(0)]
    for probability in run:
        sums.append(sums[-1] + probability)
    return [generating(repeats, high) - generating(repeats, low) for low, high in itertools.pairwise(sums)]


@settings(max_examples=200)
@given(
    REPEATS,
    st.fractions(Fraction(1, 100), 4, max_denominator=100),
    st.lists(st.integers(1, 50), min_size=1, max_size=4),
    st.data(),
)
def test_the_best_of_private_runs_is_as_private_as_promised(repeats, epsilon, run, data):
    """Neighbouring runs as different as epsilon allows: each result's probability is scaled to one of two extremes."""
    with mpmath.workdps(50):
        ratio = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        raised = data.draw(st.lists(st.booleans(), min_size=len(run), max_size=len(run)))
        first = [mpmath.mpf(weight) * (ratio if up else 1) for weight, up in zip(run, raised, strict=True)]
        second = [mpmath.mpf(weight) for weight in run]
        spread = max(sum(first) / sum(second), sum(second) * ratio / sum(first))
        # After normalising, log-ratios lie between -log(sum ratio) and epsilon - log(sum ratio), both within epsilon.
        assert spread <= ratio * (1 + mpmath.mpf(10) ** -40)
        p, q = ([x / sum(part) for x in part] for part in (first, second))
        loss = max(abs(mpmath.log(x / y)) for x, y in zip(best_of(repeats, p), best_of(repeats, q), strict=True))
        promised = repeats.epsilon(epsilon)
        assert loss <= mpmath.mpf(promised.numerator) / promised.denominator * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize(
    ("repeats", "share"), [(geometric(10**6), 0.99), (logarithmic("1e-6"), 0.99), (Poisson(20), 0.99)]
)
def test_the_promise_is_nearly_attained(repeats, share):
    """A rare best result: on one side as rare as epsilon allows, and all else the other way round."""
    epsilon = Fraction(1, 2)
    with mpmath.workdps(50):
        ratio = mpmath.exp(mpmath.mpf(1) / 2)
        # The kept result is tiny, and the results below it move as much as they can.
        low, tiny = 1 / (1 + ratio), mpmath.mpf(10) ** -12
        p = [ratio * low - ratio * tiny, ratio * tiny, low]
        q = [low - tiny, tiny, ratio * low]
        p, q = ([x / sum(part) for x in part] for part in (p, q))
        losses = [abs(mpmath.log(x / y)) for x, y in zip(best_of(repeats, p), best_of(repeats, q), strict=True)]
        assert max(losses) > share * float(repeats.epsilon(epsilon))


def test_a_fixed_number_of_runs_is_not_as_private():
    """The power check: always ten runs, whose best is kept, cost ten epsilon: the bad result needs ten bad runs."""
    epsilon, runs, bad = 0.5, 10, 1e-3
    loss = math.log((bad * math.exp(epsilon)) ** runs / bad**runs)
    assert loss == pytest.approx(runs * epsilon)
    assert loss > float(geometric(runs).epsilon("0.5"))


def test_the_ends_of_the_parameters():
    assert NegativeBinomial(1, Fraction(1, 10**12)).stop == Fraction(1, 10**12)
    with pytest.raises(InvalidValue, match="stop must be at least 1/1000000000000"):
        NegativeBinomial(1, Fraction(1, 10**12 + 1))
    assert NegativeBinomial(Fraction(1, 10**6), "0.5").shape == Fraction(1, 10**6)
    with pytest.raises(InvalidValue, match="shape must be zero or at least"):
        NegativeBinomial(Fraction(1, 10**6 + 1), "0.5")
    assert Poisson(10**12).runs == 10**12
    with pytest.raises(InvalidValue, match="mean must be at most 1000000000000"):
        Poisson(10**12 + 1)
    assert geometric("1.000001").mean == pytest.approx(1.000001, rel=1e-11)


def test_no_subclass_is_taken():
    """It might state another epsilon."""

    class Cheap(Poisson):
        def epsilon(self, each):
            return Fraction(each) / 10

    for repeats in (geometric(3), Poisson(3)):
        assert checked_repeats(repeats) is repeats
    with pytest.raises(InvalidType, match="got Cheap: a fixed number"):
        checked_repeats(Cheap(3))


def test_costs_are_on_a_grid_so_that_sums_stay_short():
    denominators = [Poisson(mean).epsilon(2).denominator for mean in (3, "7/3", 10, "31/7")]
    assert [10**20 % denominator for denominator in denominators] == [0] * 4
    assert max(denominators) == 10**20


def test_special_cases_and_exact_costs():
    assert geometric("2.5") == NegativeBinomial(1, "0.4")
    assert logarithmic("1/3") == NegativeBinomial(0, "1/3") == NegativeBinomial("0.0", Fraction(1, 3))
    assert [round(float(geometric(mean).epsilon(each)), 4) for mean, each in ((2, "0.1"), (10, "0.1"), (10, 5))] == [
        0.1666,
        0.2636,
        9.4761,
    ]
    assert round(float(logarithmic("0.1").epsilon(1)), 4) == 1.7957
    assert geometric(10).epsilon(Fraction(1, 10**30)) == Fraction(3, 10**30)
    assert geometric(10**12).epsilon(10**4) < 10**4 + Fraction("55.262042231857097")  # 2 ln 10**12
    assert Poisson(8).epsilon(Fraction(1, 10**30)) == Fraction(5, 10**30)
    assert float(Poisson(3).epsilon(2)) == pytest.approx(2 + 3 * math.tanh(1), rel=1e-15)
    assert Poisson(3).epsilon(10**4) == 10**4 + 3
    assert repr(geometric(10)) == "NegativeBinomial(shape=1, stop='0.1')"
    assert pickle.loads(pickle.dumps(Poisson("1.5"))) == Poisson("1.5")  # noqa: S301 - our own


@given(st.fractions(Fraction(1, 1000), 50, max_denominator=1000), st.integers(1, 100))
def test_poisson_costs_are_rounded_up(epsilon, mean):
    with mpmath.workdps(50):
        half = mpmath.mpf(epsilon.numerator) / epsilon.denominator / 2
        exact = 2 * half + mean * mpmath.tanh(half)
        cost = Poisson(mean).epsilon(epsilon)
        assert 0 <= mpmath.mpf(cost.numerator) / cost.denominator / exact - 1 < mpmath.mpf(10) ** -15


@given(st.fractions(Fraction(1, 10**6), 50, max_denominator=10**6), SHAPES, STOPS | st.just(Fraction(1, 10**12)))
def test_negative_binomial_costs_are_rounded_up(epsilon, shape, stop):
    """By the formula with sinh and cosh, at 60 digits; and never above the bound for all numbers of runs."""
    cost = NegativeBinomial(shape, stop).epsilon(epsilon)
    assert epsilon < cost <= (2 + shape) * epsilon
    with mpmath.workdps(60):
        e, h, g = (mpmath.mpf(part.numerator) / part.denominator for part in (epsilon, shape, stop))
        # (E + g)/(1 + g E) = (1 + y)/(1 - y) with y = tanh(e/2) (1 - g)/(1 + g)
        exact = e + 2 * (1 + h) * mpmath.atanh(mpmath.tanh(e / 2) * (1 - g) / (1 + g))
        assert 0 <= mpmath.mpf(cost.numerator) / cost.denominator / exact - 1 < mpmath.mpf(10) ** -13


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: geometric(1), "mean must be > 1"),
        (lambda: geometric("0.5"), "mean must be > 1"),
        (lambda: geometric(-3), "mean must be > 0"),
        (lambda: Poisson("0.5"), "mean must be >= 1"),
        (lambda: logarithmic(1), "stop must be below 1"),
        (lambda: logarithmic(0), "stop must be > 0"),
        (lambda: logarithmic(2), "stop must be below 1"),
        (lambda: NegativeBinomial(-1, "0.5"), "shape must be zero or at least"),
        (lambda: NegativeBinomial("5e-324", "0.2"), "shape must be zero or at least"),
        (lambda: NegativeBinomial(1, "1e-400"), "stop must be at least"),
        (lambda: Poisson("1e400"), "mean must be at most"),
        (lambda: NegativeBinomial(2000, "0.5"), "shape must be at most 1,000"),
        (lambda: NegativeBinomial(float("nan"), "0.5"), "shape must be finite"),
    ],
)
def test_bad_parameters(wrong, words):
    with pytest.raises(InvalidValue, match=words):
        wrong()


def test_bad_types():
    with pytest.raises(InvalidType, match="shape must be a number"):
        NegativeBinomial(False, "0.5")
    with pytest.raises(InvalidType, match="a fixed number of runs is not private"):
        checked_repeats(10)
