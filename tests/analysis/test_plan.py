"""Promises: the errors that hold for all scores."""

from itertools import pairwise

import pytest

from dpselect import ExponentialMechanism, ReportNoisyMax
from dpselect.analysis import error_bounds
from dpselect.analysis.planning import EqualCost, epsilon_promising, equal_cost, promise
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from tests.cli.plans import MECHANISMS, guaranteed


def test_the_epsilon_scales_as_one_over_the_error() -> None:
    """The formula of the command's contract: the worst case at epsilon one, divided by the error."""
    for kind in MECHANISMS.values():
        needed = float(epsilon_promising(kind, 50, error="0.3"))
        assert needed == pytest.approx(guaranteed(kind(1), 50) / 0.3, rel=1.1e-3)
        assert needed >= guaranteed(kind(1), 50) / 0.3


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_one_candidate_has_no_error(kind: type[MechanismBase]) -> None:
    promised = promise(kind(1), 1)
    assert (promised.average, promised.attained, promised.within_95, promised.within_99) == (0, 0, 0, 0)
    with pytest.raises(InvalidValue, match="every epsilon meets the target"):
        epsilon_promising(kind, 1, error=1)


@pytest.mark.parametrize("kind", MECHANISMS.values())
@pytest.mark.parametrize("n", [2, 3, 30, 10**9])
def test_a_promise_is_consistent(kind: type[MechanismBase], n: int) -> None:
    promised = promise(kind("0.3", 2), n)
    assert 0 < promised.attained <= promised.average <= error_bounds(kind("0.3", 2), n).upper
    assert promised.average < promised.within_95 < promised.within_99
    assert (promised.attained == promised.average) == (kind is not ReportNoisyMax)


def test_at_small_epsilon_permute_and_flip_has_half_of_it() -> None:
    equal = equal_cost(ExponentialMechanism("1e-4", "2", monotonic=True), 100)
    mechanism = equal.permute_and_flip.mechanism
    assert float(mechanism.epsilon) == pytest.approx(0.5e-4, rel=1e-4)
    assert (mechanism.sensitivity, mechanism.monotonic) == (2, True)


def test_the_better_one_changes_once_with_epsilon() -> None:
    """Under zCDP the exponential mechanism is better for small epsilons and permute-and-flip for large ones."""

    def is_exponential(equal: EqualCost) -> bool:
        return equal.better is equal.exponential

    choices = [is_exponential(equal_cost(ExponentialMechanism(e / 4), 100)) for e in range(1, 41)]
    assert choices[0]
    assert not choices[-1]
    assert sum(a != b for a, b in pairwise(choices)) == 1
