"""The best of many runs in a ledger: names that read back, and totals that hold."""

import math
from fractions import Fraction

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.accounting.repeats import PREFIX, Repeated, repeated
from dpselect.accounting.totals import total
from dpselect.errors import InvalidValue
from dpselect.ledger import Charge, Ledger
from dpselect.release import Release
from dpselect.tuning import NegativeBinomial, Poisson, best_event, geometric, logarithmic

NUMBERS = st.fractions(Fraction(1, 1000), Fraction(999, 1000))
SHAPES = st.just(0) | st.fractions(Fraction(1, 10**6), 9)
REPEATS = st.builds(NegativeBinomial, SHAPES, NUMBERS) | st.builds(Poisson, st.fractions(1, 90))


@given(REPEATS, NUMBERS)
def test_names_read_back(repeats, epsilon):
    runs = Repeated(repeats, epsilon)
    assert repeated(runs.name) == runs
    charge = Release("question", runs).charge
    assert charge.epsilon == runs.epsilon == repeats.epsilon(epsilon)
    assert Charge("question", runs.epsilon, runs.name) == charge


@pytest.mark.parametrize(
    "name",
    [
        PREFIX,
        f"{PREFIX} geometric mean=10 epsilon=1",
        f"{PREFIX} poisson mean=10",
        f"{PREFIX} poisson mean=10 epsilon=0.1",
        f"{PREFIX} poisson mean=2/4 epsilon=1/10",
        f"{PREFIX} poisson mean=10 epsilon=1/10 ",
        f"{PREFIX} poisson epsilon=1/10 mean=10",
        f"{PREFIX} poisson runs=10 epsilon=1/10",
        f"{PREFIX} negative-binomial shape=1 stop=2 epsilon=1/10",
        f"{PREFIX} negative-binomial shape=1 stop=1/0 epsilon=1/10",
        f"{PREFIX} negative-binomial stop=1/2 shape=1 epsilon=1/10",
    ],
)
def test_other_names_are_refused(name):
    assert repeated(name) is None
    with pytest.raises(InvalidValue, match="mechanism must be one of"):
        Charge("question", 1, name)


def test_a_charge_that_is_too_small_for_its_name_is_refused():
    name = Repeated(geometric(10), "0.1").name
    with pytest.raises(InvalidValue, match="epsilon must be at least that of all runs"):
        Charge("question", "0.1", name)


@pytest.mark.parametrize("repeats", [geometric(10), logarithmic("0.01"), NegativeBinomial("5/2", "0.1"), Poisson(10)])
@pytest.mark.parametrize("epsilon", ["0.001", "1", "40"])
def test_totals(repeats, epsilon):
    """Never above the pure sum; and for the larger pure epsilon of older versions, the accountant's event counts."""
    charge = Release("question", Repeated(repeats, epsilon)).charge
    found = total([charge] * 3, delta=1e-6)
    assert found.epsilon == 3 * charge.epsilon
    assert found.approximate.epsilon <= float(found.epsilon) * (1 + 1e-12)
    if epsilon == "40" and not isinstance(repeats, Poisson):
        old = [Charge("question", (2 + repeats.shape) * 40, charge.mechanism)] * 3
        event = total(old, delta=1e-6).approximate
        assert event.method == "renyi"
        assert found.approximate.epsilon <= event.epsilon < 0.7 * float(total(old).epsilon)


def test_the_event_is_the_one_of_the_accountant():
    """Runs of a mechanism without a pure epsilon, beside the formula of the paper's Theorem 2 in plain floats."""
    run = dp_accounting.GaussianDpEvent(5.0)
    event = best_event(geometric(10), run)
    assert (event.event, event.shape) == (run, 1.0)
    assert 10 <= event.mean < 10 * (1 + 1e-11)
    orders = [1 + x / 10 for x in range(1, 1000)]
    accountant = dp_accounting.rdp.RdpAccountant(orders)
    accountant.compose(event)
    constant = 2 * min((1 - 1 / order) * order / 50 + math.log(10) / order for order in orders)
    epsilons = [order / 50 + constant + math.log(10) / (order - 1) for order in orders]
    best, _ = dp_accounting.rdp.compute_epsilon(orders, epsilons, 1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(best, rel=1e-6)


def test_the_best_of_many_composes_with_the_rest():
    """An accountant that forgot the other charges would say less than each of them alone costs."""
    tuned = Release("tune", Repeated(geometric(10), 5)).charge
    plain = Charge("mode", "0.1", "exponential", 50)
    both = total([tuned, plain], delta=1e-6)
    alone = [total([charge], delta=1e-6).approximate.epsilon for charge in (tuned, plain)]
    assert max(alone) < both.approximate.epsilon <= float(both.epsilon)
    assert both.zcdp >= 9.47


@pytest.mark.parametrize("each", ["1e-8", "1e-9", "1e-200"])
def test_a_tiny_epsilon_does_not_break_the_total(tmp_path, each):
    """The accountant's own formula leaves the floats there; the pure bound is left."""
    ledger = Ledger(tmp_path / "ledger", budget=1)
    ledger.charge(Release("tune", Repeated(Poisson(10), each)).charge)
    assert 0 <= total(ledger, delta=1e-6).approximate.epsilon < 1e-6
