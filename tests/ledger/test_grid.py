"""No charge, however odd, makes later ones fail or grow: sums stay on a grid, and what is off it is rounded up."""

import math
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpselect import Ledger
from dpselect.accounting.charge import GRID, ROUND
from dpselect.accounting.repeats import Repeated
from dpselect.accounting.totals import total
from dpselect.errors import BudgetExceeded
from dpselect.ledger import Charge
from dpselect.release import Release
from dpselect.tuning import Poisson, geometric, tune

STEP = Fraction(1, 10**50)
BRICK = Fraction(1, 10**4000 - 10**3990 - 1)
LONG = st.integers(1, 10**9).map(lambda less: 10**3980 - less)
SHAPES = st.one_of(
    LONG.map(lambda size: Fraction(1, size)),
    st.tuples(LONG, LONG).map(lambda pair: Fraction(min(pair), 50 * max(pair))),
    st.integers(2, 10**9).map(lambda size: Fraction(1, size)),
    st.integers(1, 4000).map(lambda digits: Fraction(1, 10**digits)),
    st.integers(1, 8000).map(lambda power: Fraction(1, 3**power)),
    st.floats(5e-324, 0.05).map(Fraction),
    st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(1, 20), max_denominator=10**12),
)
KINDS = st.sampled_from(["pure", "permute-and-flip", "exponential", "noisy-max"])
CHARGES = st.builds(Charge, st.just("odd"), SHAPES, KINDS, st.integers(1, 40)) | st.builds(
    lambda each, repeats: Release("tuned", Repeated(repeats, each)).charge,
    SHAPES.filter(lambda each: each.denominator < 10**3990),  # all runs together have an epsilon of more digits
    st.sampled_from([geometric(3), geometric("10.1"), Poisson("7/3")]),
)
HONEST = ["0.1", "1/3", "0.5", 0.25, 0.1, "1e-3", "1/365", "0.001"]


def digits(*numbers: Fraction) -> int:
    """The length of the longest integer in them, which is also what Python must be able to write."""
    return max(len(str(part)) for number in numbers for part in (number.numerator, number.denominator))


@settings(max_examples=60, deadline=None)
@given(st.lists(CHARGES, max_size=8), st.sampled_from(HONEST), st.sampled_from(["3", "1/1009", 1.7, "1e3000"]))
@example([Charge("brick", BRICK)] * 3, "0.1", "3")
@example([Charge("top", Fraction(1, 1009), "permute-and-flip", count=1009)], "1/3", "3")
def test_after_any_charges_an_honest_one_is_taken(charges: Sequence[Charge], honest: str | float, budget: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "a.ledger", budget=budget)
        asked = []
        for charge in charges:
            try:
                recorded = ledger.charge(charge).charge
            except BudgetExceeded:
                assert ledger.spent + charge.epsilon + STEP > ledger.budget
                continue
            asked.append(charge.epsilon)
            assert charge.epsilon <= recorded.epsilon < charge.epsilon + STEP
            assert (recorded.what, recorded.mechanism, recorded.count) == (charge.what, charge.mechanism, charge.count)
        exact = sum(asked, Fraction(0))
        assert exact <= ledger.spent <= exact + len(asked) * STEP
        charge = Charge("honest", honest)
        if charge.epsilon <= ledger.remaining:
            assert ledger.charge(charge).epsilon == charge.epsilon
        # The sum is as short as that of any other ledger of this budget: whatever was charged, the next charge adds
        # numbers of this length.
        most = len(str(GRID)) + digits(ledger.budget)
        assert digits(ledger.spent, ledger.remaining, total(ledger).epsilon) <= most <= sys.get_int_max_str_digits()
        again = Ledger(ledger.path)
        assert (again.verify().id, again.spent) == (len(ledger.entries()), ledger.spent)


@settings(max_examples=200)
@given(
    st.floats(1e-70, 1e300)
    | st.integers(1, 10**60).map(lambda units: Fraction(units, 10**50))
    | st.builds(Fraction, st.integers(1, 10**6), st.integers(1, 400)),
    st.integers(1, 10**12),
)
def test_common_numbers_are_charged_exactly(number: float | Fraction, count: int) -> None:
    charge = Charge("common", Fraction(number) / count, "exponential", count)
    rounded = charge.rounded_up()
    assert (rounded.each, rounded.delta) == (charge.each, 0)
    assert charge.rho <= rounded.rho < charge.rho + Fraction(1, ROUND)


@pytest.mark.parametrize("odd", [Fraction(1, 401), Fraction(1, 10**51), BRICK, Fraction(10**51 + 1, 10**51)])
def test_other_numbers_are_rounded_up_once(odd: Fraction) -> None:
    rounded = Charge("odd", odd).rounded_up()
    assert rounded.epsilon == Fraction(math.ceil(odd * ROUND), ROUND) > odd
    assert rounded.rounded_up() is rounded


@pytest.mark.parametrize("budget", [Fraction(1, 1009), Fraction(2, 7**900), Fraction(10**3999 + 1, 10**3999 - 1)])
def test_the_parts_of_an_odd_budget_use_it_up(path: Path, budget: Fraction) -> None:
    ledger = Ledger(path, budget=budget)
    for _ in range(4):
        ledger.spend(budget / 4, "a quarter")
    assert (ledger.spent, ledger.remaining) == (budget, 0)


@pytest.mark.parametrize("budget", ["1", "1,cap:1"])
def test_the_rho_of_a_pure_entry_is_rounded_up_too(path: Path, budget: str) -> None:
    """The rho of a tiny epsilon has hundreds of digits, which the file need not hold."""
    ledger = Ledger(path, budget=budget)
    ledger.charge(Charge("tiny", "1e-50", "exponential"))
    charged = ledger.charge(Charge("usual", "0.1", "exponential"))
    tiny, usual = ledger.entries()
    assert (tiny.rho, tiny.epsilon) == (Fraction(1, ROUND), Fraction(1, ROUND))
    assert usual.rho == charged.rho == Charge("usual", "0.1", "exponential").rho


def test_tuning_at_an_odd_epsilon_is_charged_and_accounted_for(path: Path) -> None:
    ledger = Ledger(path, budget="1")
    found = tune(lambda _: 1, ["a"], epsilon="1/1009", repeats=geometric(3), score=float, ledger=ledger)
    [entry] = ledger.entries()
    assert found.guarantee is not None
    needed = geometric(3).epsilon("1/1009")
    assert found.guarantee.epsilon == needed < entry.epsilon < needed + STEP
    assert entry.mechanism == Repeated(geometric(3), "1/1009").name
    known = total(Ledger(path), delta=1e-6)
    assert known.epsilon == entry.epsilon
    assert known.approximate is not None
    assert known.approximate.epsilon <= float(entry.epsilon) * (1 + 1e-9)
