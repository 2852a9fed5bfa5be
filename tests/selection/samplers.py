"""One harness for the laws of samplers: draws against a law and wrong ones, single proposals, and who survives."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect.selection.draws import Draws
from dpselect.selection.races import Arrival, Tick, TwoSided
from tests.seam import Refused, ScriptedBits
from tests.statistical.goodness import THRESHOLD, assert_fits, assert_rejected, power

FILL = random.SystemRandom()


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def random_bits(count):
    return format(FILL.getrandbits(count), f"0{count}b") if count else ""


def assert_drawn(draw, draws, right, *wrong):
    """Outcomes have the right law, a dictionary of probabilities, and would not pass for any of the wrong laws."""
    found = Counter(draw() for _ in range(draws))
    counts, truth = [found[outcome] for outcome in right], list(right.values())
    assert sum(counts) == draws, "nothing else is drawn"
    assert_fits(counts, truth)
    for other in wrong:
        assert_rejected(counts, [other[outcome] for outcome in right], truth=truth)


# Other rates, in units of the right one: the nearest first.
FACTORS = [Fraction(factor) for factor in ("1.001", "1.01", "1.05", "1.1", "1.2", "1.5", "2", "3", "5", "1/4", "0")]


def assert_law(draw, draws, law, *others):
    """Outcomes have the law at the right rate, which is `law(1)`, and not at the nearest rate that so many can tell."""
    right = law(1)
    truth = list(right.values())
    wrong = next(
        own for own in map(law, FACTORS) if power(draws, truth, [own[outcome] for outcome in right]) > 1 - THRESHOLD
    )
    assert_drawn(draw, draws, right, wrong, *others)


def once(choose, asked="index"):
    """A run of a rejection sampler that stops when it would propose again."""

    def run(draws):
        propose, proposals = getattr(draws, asked), []

        def first(*bounds):
            proposals.append(bounds)
            if len(proposals) > 1:
                raise Refused
            return propose(*bounds)

        setattr(draws, asked, first)
        return choose(draws)

    return run


def as_list(outcomes, size):
    return [outcomes.get(candidate, Fraction(0)) for candidate in range(size)]


class Surviving(Draws):
    """Every coin, or run, survives its zeros."""

    def survivors(self, count, zeros):
        return np.arange(count)


class Nobody(ScriptedBits):
    """None survives."""

    def survivors(self, count, zeros):
        return np.empty(0, np.int64)


def sets_of(count, sizes):
    return [chosen for k in sizes for chosen in itertools.combinations(range(count), k)]


def law_over_sets(scores, score, sizes, rate, pmf):
    """The probability of each set of positions, from that of a candidate among candidates."""
    chosen = sets_of(len(scores), sizes)
    utilities = [score([Fraction(own) for own in scores], own) for own in chosen]
    probabilities = pmf([Fraction(rate) * (max(utilities) - own) for own in utilities])
    return dict(zip(chosen, map(float, probabilities), strict=True))


def total(scores, chosen):
    return sum(scores[i] for i in chosen)


def margin(scores, chosen):
    return min(scores[i] for i in chosen) - max(x for i, x in enumerate(scores) if i not in chosen)


# The definition of ln T without its exponent, for a run of `size` at V = end / 2**depth; None where it is infinite.


def log_head(size, end, depth):
    if not end:
        return None
    left = arb(fmpq((1 << depth) - end, 1 << depth))
    return (1 - left ** (1 / arb(size))).log() if end < 1 << depth else arb(0)


def log_tick(size, end, depth):
    whole = 1 << depth
    return None if end in (0, whole) else (-arb(fmpq(whole - end, whole)).log() / arb(size)).log()


def log_two_sided(size, end, depth):
    """The negative of Laplace noise whose tail has the probability V."""
    whole = 1 << depth
    assert size == 1
    if end in (0, whole):
        return None
    return arb(fmpq(2 * end, whole)).log() if 2 * end <= whole else -arb(fmpq(2 * (whole - end), whole)).log()


LOG_TIMES = {Arrival: log_head, Tick: log_tick, TwoSided: log_two_sided}


def time_in_cell(kind, exponent, size, prefix, depth):
    """Floats below and above ln T in a cell of V."""
    with ctx.workprec(300 + 2 * int(size).bit_length()):
        low, high = (LOG_TIMES[kind](size, prefix + end, depth) for end in (0, 1))
        return (
            -math.inf if low is None else float(low) + float(exponent) - 1e-9,
            math.inf if high is None else float(high) + float(exponent) + 1e-9,
        )


def first_of_cells(intervals, k=1):
    """The first k of these intervals in order, if they are certain; else None."""
    order = sorted(range(len(intervals)), key=intervals.__getitem__)[: k + 1]
    if any(intervals[place][1] >= intervals[following][0] for place, following in itertools.pairwise(order)):
        return None
    rest = [intervals[i][0] for i in range(len(intervals)) if i not in order[:k]]
    return order[:k] if all(intervals[order[k - 1]][1] < low for low in rest) else None
