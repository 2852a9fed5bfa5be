"""Why a total of zCDP or (epsilon, delta) is no guarantee for questions whose number depends on the answers.

Releases of randomized response, the worst of all epsilon-DP mechanisms. After each the analyst reads from the ledger
the epsilon of (epsilon, delta) so far, and stops or goes on. Let L be the privacy loss of the answers so far. If what
the ledger shows in the end were a guarantee, then for every rule by which the analyst stops,

    E[(1 - e^(shown - L))_+] <= delta        (Rogers, Roth, Ullman & Vadhan 2016: a valid odometer).

Optimal stopping by backward induction finds the largest value of the left-hand side, without any sampling.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest

from dpselect.accounting.totals import total
from dpselect.ledger import Charge

DELTA = 1e-6
EACH = Fraction(1, 10)
# The largest E[(1 - e^(shown - L))_+] in units of delta, with at most so many questions.
EXCESS = {10: 1.0, 30: 2.7, 100: 7.5}


def chance(epsilon: Fraction) -> float:
    """How likely randomized response tells the truth."""
    return 1 / (1 + math.exp(-float(epsilon)))


def failure(count: int, shown: float, epsilon: Fraction = EACH) -> float:
    """The delta of `count` releases at this epsilon."""
    p = chance(epsilon)
    losses = ((2 * trues - count) * float(epsilon) for trues in range(count + 1))
    weights = (math.comb(count, trues) * p**trues * (1 - p) ** (count - trues) for trues in range(count + 1))
    return math.fsum(w * max(0.0, -math.expm1(shown - loss)) for w, loss in zip(weights, losses, strict=True))


@cache
def exact_epsilon(count: int) -> float:
    """The smallest epsilon of `count` releases at DELTA, by bisection, never below the truth."""
    low, high = 0.0, count * float(EACH)
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if failure(count, middle) <= DELTA else (middle, high)
    return high


def ledger_epsilon(count: int) -> float:
    found = total([Charge("question", EACH, count=count)], DELTA).approximate
    assert found is not None
    return found.epsilon


def largest_failure(most: int, shown: Callable[[int], float]) -> float:
    """The largest E[(1 - e^(shown - L))_+] over all rules that stop after at most so many questions."""
    p, epsilon = chance(EACH), float(EACH)

    def stopped(count: int, trues: int) -> float:
        return max(0.0, -math.expm1(shown(count) - (2 * trues - count) * epsilon))

    values = [stopped(most, trues) for trues in range(most + 1)]
    for count in range(most - 1, 0, -1):
        going_on = [p * values[trues + 1] + (1 - p) * values[trues] for trues in range(count + 1)]
        values = [max(stopped(count, trues), value) for trues, value in enumerate(going_on)]
    return p * values[1] + (1 - p) * values[0]


@pytest.mark.parametrize("most", EXCESS)
def test_a_number_of_questions_that_depends_on_the_answers_breaks_the_total(most: int) -> None:
    assert largest_failure(most, exact_epsilon) / DELTA == pytest.approx(EXCESS[most], abs=0.05)


def test_it_breaks_with_the_very_numbers_that_the_ledger_shows() -> None:
    shown = {count: ledger_epsilon(count) for count in range(1, 41)}
    assert all(failure(count, epsilon) <= DELTA for count, epsilon in shown.items())  # each alone is right
    assert largest_failure(40, shown.__getitem__) > 3 * DELTA


def test_a_number_that_was_fixed_beforehand_keeps_it() -> None:
    for count in (1, 10, 100):
        assert failure(count, exact_epsilon(count)) <= DELTA
        assert failure(count, ledger_epsilon(count)) <= DELTA


def test_the_pure_sum_holds_for_every_rule() -> None:
    """No transcript has a larger loss than the sum of its epsilons: the budget is a filter."""
    assert largest_failure(100, lambda count: count * float(EACH)) == 0


def test_the_order_of_a_fixed_list_may_depend_on_the_answers() -> None:
    """Four releases of 0.1 and four of 0.5, the next one always chosen to do most harm."""
    epsilons = (0.1, 0.5)

    @cache
    def harm(left: tuple[int, int], loss: int, shown: float, adaptive: bool) -> float:
        """The best continuation's E[(1 - e^(shown - L))_+]; the loss so far is in tenths."""
        if left == (0, 0):
            return max(0.0, -math.expm1(shown - loss / 10))
        values = []
        for place, epsilon in enumerate(epsilons):
            if left[place]:
                rest = tuple(number - (place == other) for other, number in enumerate(left))
                p, step = 1 / (1 + math.exp(-epsilon)), round(10 * epsilon)
                further = [harm(rest, loss + sign * step, shown, adaptive) for sign in (1, -1)]  # type: ignore[arg-type]
                values.append(p * further[0] + (1 - p) * further[1])
        return max(values) if adaptive else values[0]

    for shown in (0.5, 1.0, 1.5, 2.0):
        fixed, chosen = (harm((4, 4), 0, shown, adaptive) for adaptive in (False, True))
        assert fixed > 1e-4
        assert chosen == pytest.approx(fixed, rel=1e-12)
