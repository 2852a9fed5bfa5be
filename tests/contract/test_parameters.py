"""The public parameters, guarantees and texts of every mechanism, and that no score is shown."""

import math
import os
import pickle
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, Guarantee, Mechanism, PermuteAndFlip, ReportNoisyMax, errors, pure
from dpselect.mechanisms import permute_and_flip
from dpselect.mechanisms.privacy import BOUNDED_RANGE, LAPLACE, PURE_LOSS
from tests.carried import carried
from tests.gumbel import GumbelNoisyMax
from tests.reference import ball

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax, GumbelNoisyMax]
POSITIVE, FINITE, NUMBER, LONG, EITHER = (
    "{} must be > 0",
    "{} must be finite",
    "{} must be a number",
    "{} must have at most 4000 digits",
    "give either score_range, or",
)
# What is refused for a parameter, with which words.
BAD_NUMBERS = [
    *[(number, errors.InvalidValue, POSITIVE) for number in (0, -1, -0.5)],
    *[(number, errors.InvalidValue, FINITE) for number in (math.nan, math.inf, "nan", "1e999999999")],
    *[(number, errors.InvalidValue, NUMBER) for number in ("x", "1/0")],
    *[(number, errors.InvalidValue, LONG) for number in (10**5000, -(10**5000), "0." + "1" * 5000)],
    *[(number, errors.InvalidType, NUMBER) for number in (True, 1j, [1])],
]
NAMES = ("epsilon", "sensitivity", "score_range")
BAD_PARAMETERS = [
    *[
        ({"epsilon": 1, name: number}, error, words.format(name))
        for name in NAMES
        for number, error, words in BAD_NUMBERS
    ],
    ({"epsilon": None}, errors.InvalidType, "epsilon must be a number"),
    ({"epsilon": 1, "monotonic": 1}, errors.InvalidType, "monotonic must be True or False"),
    ({"epsilon": 1, "score_range": 2, "sensitivity": 1}, errors.InvalidValue, EITHER),
    ({"epsilon": 1, "score_range": 1, "monotonic": True}, errors.InvalidValue, EITHER),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("parameters", "error", "words"), BAD_PARAMETERS)
def test_bad_parameters_are_refused(kind, parameters, error, words):
    with pytest.raises(error, match=words):
        kind(**parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_calls_are_refused(kind):
    with pytest.raises(errors.InvalidType, match="draws must be an integer"):
        kind(1).simulate([1], 1.5)
    with pytest.raises(errors.InvalidValue, match="draws must be >= 0"):
        kind(1).simulate([1], -1)
    with pytest.raises(errors.InvalidType, match="seed must be an integer"):
        kind(1).simulate([1], 1, seed="x")
    with pytest.raises(errors.InvalidValue, match="finite"):
        kind(1).simulate([math.nan], 1)


def test_early_exit_is_an_option_of_permute_and_flip(monkeypatch):
    assert PermuteAndFlip(1).select([0, 0, 10**4], early_exit=True) == 2
    monkeypatch.setattr(permute_and_flip, "choose_early", lambda *_: "early")
    assert PermuteAndFlip(1).select([0, 0, 10**4], early_exit=True) == "early"
    assert PermuteAndFlip(1).select([0, 0, 10**4]) == 2
    with pytest.raises(errors.InvalidType, match="early_exit must be True or False"):
        PermuteAndFlip(1).select([0], early_exit="yes")


NUMBERS = [0.1, "0.1", "1/3", 3, Fraction(2, 7), Decimal("0.05"), np.float32(0.25), 5e-324, 1e300]


def exactly(number):
    return Fraction(number) if isinstance(number, str) else Fraction(*number.as_integer_ratio())


def assert_copied(mechanism):
    for copy in (eval(repr(mechanism)), pickle.loads(pickle.dumps(mechanism))):  # noqa: S301, S307 - our own
        assert (copy, hash(copy), repr(copy)) == (mechanism, hash(mechanism), repr(mechanism))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_parameters_are_kept_exactly(kind, number):
    mechanism = kind(number, sensitivity=number)
    assert mechanism.epsilon == mechanism.sensitivity == exactly(number)
    assert_copied(mechanism)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_score_ranges_are_kept_exactly(kind, number):
    mechanism, wanted = kind("0.1", score_range=number), exactly(number)
    assert (mechanism.score_range, mechanism.sensitivity, mechanism.monotonic) == (wanted, wanted / 2, False)
    assert mechanism.rate == Fraction(1, 10) / wanted
    assert "score_range=" in repr(mechanism)
    assert "sensitivity" not in repr(mechanism)
    assert_copied(mechanism)


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_equal_if_they_state_the_same(kind):
    """Three ways to state one mechanism: they draw alike, guarantee alike, and say different things of the data."""
    ways = [kind(1, sensitivity=3), kind(1, sensitivity=6, monotonic=True), kind(1, score_range=6)]
    assert len(set(ways)) == 3
    assert len({(way.rate, way.score_range, way.guarantee) for way in ways}) == 1
    assert len({tuple(way.pmf([3, 1, 0, -4])) for way in ways}) == 1
    assert kind(1) == kind(1, 1) == kind(1, sensitivity="1", monotonic=False, score_range=None)


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_frozen_values(kind):
    mechanism = kind(1, sensitivity=2, monotonic=True)
    with pytest.raises(AttributeError):
        mechanism.epsilon = 5
    assert mechanism == kind("1", Fraction(2), True)
    assert mechanism != kind(1, sensitivity=2)
    assert isinstance(mechanism, Mechanism)
    assert PermuteAndFlip(1) != ExponentialMechanism(1)


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_parameters_keep_privacy_and_sense(kind):
    """Rates beyond the floats are rates all the same: two candidates a tiny or huge step apart share or do not."""
    steep = kind(1, sensitivity=1e-310)
    assert steep.select([0, 0, 1e-300]) == 2
    assert set(steep.select_rows([[0.0, 5e-324]] * 300).tolist()) == {0, 1}
    flat = kind(1e-300, sensitivity=1e308)
    assert set(flat.select_rows([[-1.7e308, 1.7e308]] * 300).tolist()) == {0, 1}
    loud = kind(1e300, sensitivity=1e300)
    assert set(loud.select_rows([[0, 1]] * 300).tolist()) == {0, 1}
    assert kind(1e300).select([0, 1, 0]) == 1
    assert set(kind(1, sensitivity=1e308).select_rows([[-1.7e308, 1.7e308]] * 300).tolist()) == {0, 1}


class Odd(Fraction):
    """A fraction that computes in its own way."""

    def __truediv__(self, other):
        return Fraction(100)

    def __mul__(self, other):
        return Fraction(1, 100)

    __rmul__ = __mul__


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_value_of_a_fraction_counts(kind):
    for number in (Odd(1, 3), pure("1/3")):
        found, plain = kind(number, sensitivity=number), kind(Fraction(1, 3), sensitivity=Fraction(1, 3))
        assert {type(found.epsilon), type(found.sensitivity), type(found.score_range)} == {Fraction}
        assert (found.rate, found.guarantee.times(3)) == (plain.rate, plain.guarantee.times(3))


@given(epsilon=st.fractions(min_value="1/10000000000000", max_value=10**9))
def test_printed_guarantees_are_never_understated(epsilon):
    for kind in KINDS:
        guarantee = kind(epsilon).guarantee
        assert (type(guarantee), guarantee.epsilon) == (Guarantee, epsilon)
        assert "\n" not in str(guarantee)
        shown = str(guarantee).replace("-DP (pure)", "").replace("-zCDP", "").split(", ")
        assert Fraction(shown[0]) >= epsilon
        assert Fraction(shown[1]) >= Fraction(guarantee.zcdp)
        assert float(Fraction(shown[0])) <= float(epsilon) * 1.00002


def test_guarantees_beyond_the_floats_print():
    for kind in KINDS:
        assert "nan" not in str(kind("1e400").guarantee)
        assert "nan" not in str(kind("1e-400").guarantee)


EPSILONS = [Fraction(k, 997) for k in (*range(1, 60), *range(60, 3_000, 7))]
EPSILONS += [Fraction(1, 10**k) for k in range(1, 40)] + [Fraction(7**k) for k in range(12)] + [Fraction(1, 100)]


@pytest.mark.parametrize(
    ("rho", "exact"),
    [
        (LAPLACE.zcdp, lambda x: x + (-x).exp() - 1),
        (BOUNDED_RANGE.zcdp, lambda x: x / x.expm1() - 1 - (x / x.expm1()).log()),
        (PURE_LOSS.zcdp, lambda x: x - 2 * x / (x.exp() + 1)),
    ],
    ids=["Laplace", "bounded range", "pure"],
)
def test_rho_is_never_below_its_formula_and_hardly_above(rho, exact):
    with ctx.workprec(400):
        for epsilon in EPSILONS:
            claimed = rho(epsilon)
            ratio = arb(claimed) / exact(ball(epsilon))
            assert claimed >= epsilon or ratio >= 1, epsilon  # no rho exceeds epsilon
            assert ratio <= 1 + 3e-12, epsilon


@pytest.mark.parametrize("rho", [0.1, 0.125, 5e-324, 1e300])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 10**6])
def test_guarantees_add_up(count, rho):
    together = Guarantee(Fraction(1, 3), rho).times(count)
    assert together.epsilon == Fraction(count, 3)
    assert Fraction(math.nextafter(together.zcdp, 0)) < count * Fraction(rho) <= Fraction(together.zcdp)


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [(Fraction(12345, 678901), "12345/678901"), (Fraction(123451, 678901), "0.18184")],
    ids=["twelve characters", "thirteen"],
)
def test_long_quotients_are_shown_as_decimals_that_are_not_below(epsilon, shown):
    assert str(Guarantee(epsilon, 0.125)) == f"{shown}-DP (pure), 0.125-zCDP"


@pytest.mark.parametrize("count", [1, 2, 10**6])
def test_a_rho_beyond_the_floats_stays_there(count):
    together = Guarantee(Fraction(10) ** 400, math.inf).times(count)
    assert (together.epsilon, together.zcdp) == (count * Fraction(10) ** 400, math.inf)
    assert Guarantee(Fraction(1), 1e308).times(2 * count).zcdp == math.inf


@pytest.mark.parametrize("epsilon", [1e-200, 1e-100, 1e-8, 1e-4, 0.003, 0.01, 1.0, 10.0, 1e100, 1e200, 1e300])
def test_the_rho_of_permute_and_flip_is_between_two_others(epsilon):
    """Between the divergence of one pair of coins and Laplace's rho; those of the others are positive, too."""
    ctx.prec = 4000
    exact = arb(epsilon)
    ours, w, q = PermuteAndFlip(epsilon).guarantee.zcdp, 1 / (1 + exact / 2), (-exact).exp()
    reached = exact + w.log() + (1 - w / 2) * (2 - w).log() + w / 2 * (w.log() - exact - (2 * w - q).log())
    assert ours == math.inf or arb(ours) >= reached
    assert ours <= ReportNoisyMax(epsilon).guarantee.zcdp
    for kind in KINDS:
        assert kind(epsilon).guarantee.zcdp > 0


SECRETS = [731_001.25, 731_002.5, 731_003.75]


@pytest.mark.parametrize("kind", KINDS)
def test_no_score_is_ever_shown(kind):
    """Neither a repr nor any error, whatever comes with the secret."""
    mechanism = kind(1)
    mechanism.select(SECRETS)
    shown = [repr(mechanism), str(mechanism), repr(mechanism.guarantee), repr(vars(mechanism))]
    for poison in (math.nan, None, "text", [1], 1j, Decimal("nan"), {}, math.inf, object()):
        for scores in (
            [*SECRETS, poison],
            np.array([*SECRETS, poison], dtype=object),
            {"a": SECRETS},
            [SECRETS, [poison]],
        ):
            for call in (mechanism.select, mechanism.select_rows, lambda s: mechanism.simulate(s, 1)):
                with pytest.raises((ValueError, TypeError)) as caught:
                    call(scores)
                assert isinstance(caught.value, errors.DPSelectError)
                shown.append(carried(caught.value))
    assert not [text for text in shown if "7310" in text or "731_0" in text]


@pytest.mark.parametrize("kind", KINDS)
def test_simulations_repeat_with_a_seed_and_selections_have_none(kind):
    scores = np.zeros(1000)
    assert np.array_equal(kind(1).simulate(scores, 50, seed=3), kind(1).simulate(scores, 50, seed=3))
    assert not np.array_equal(kind(1).simulate(scores, 50), kind(1).simulate(scores, 50))
    with pytest.raises(TypeError):
        kind(1).select(scores, seed=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seeded_world_does_not_repeat_selections(kind):
    """Global seeds, of Python and NumPy, do not reach a release."""

    def three():
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002 - the global seed is the point
        return [kind(1).select(np.zeros(10**5)) for _ in range(3)]

    assert three() != three()


@pytest.mark.parametrize("kind", KINDS)
def test_a_forked_child_draws_for_itself(kind):
    """Parent and child go on independently from the same state: equal draws would have probability 1e-15."""
    scores = np.zeros(10**5)
    mechanism = kind(1)
    mechanism.select(scores)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr([mechanism.select(scores) for _ in range(3)]).encode())
        os._exit(0)
    ours = [mechanism.select(scores) for _ in range(3)]
    os.waitpid(child, 0)
    theirs = eval(os.read(read, 1000))  # noqa: S307 - our own child's text
    os.close(read)
    os.close(write)
    assert len(theirs) == 3
    assert ours != theirs
