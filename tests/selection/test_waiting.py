"""Waiting: the clock decides as flint does, keeps its bits and runs on; what is accepted has permute-and-flip's law."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect.errors import ScoresChanged
from dpselect.selection.draws import Draws
from dpselect.selection.proposals import Clock, LogRate, wait_for
from tests import reference
from tests.seam import BitsExhausted, ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected

FILL = random.SystemRandom()


def rate_of(value: Fraction, doubt: float | None = None) -> LogRate:
    """The rate whose logarithm is exactly this rational, or a float near it with some doubt."""
    return LogRate(
        float(value), 2.0**-50 * (1 + abs(float(value))) if doubt is None else doubt, lambda _: (value, value)
    )


def bits_of(value, depth, step):
    """The bits of V that a step reveals: 64 of them, from the left."""
    return format(value >> (depth - 64 * (step + 1)) & (2**64 - 1), "064b")


class Deep:
    """Variables V that are known to some multiple of 64 bits, of which a script reveals 64 at a time."""

    def __init__(self, depth, events, new):
        self.depth, self.events, self.new = depth, events, new

    @property
    def script(self):
        """The events' first words, then that of the new variable; then 64 bits more of the new one and of all."""
        first = [*self.events, self.new]
        order = [(first, 0), *(([self.new, *self.events], step) for step in range(1, self.depth // 64))]
        return "".join(bits_of(value, self.depth, step) for values, step in order for value in values)

    def later(self, log_rate):
        """What flint says: whether -ln V exceeds the sum of the others over C, for all of their cells."""
        with ctx.workprec(4 * self.depth + 2000):
            whole = arb(2) ** self.depth
            rate = arb(fmpq(log_rate.numerator, log_rate.denominator)).exp()
            low, high = -((self.new + 1) / whole).log(), -(self.new / whole).log() if self.new else arb("inf")
            least = sum((-((v + 1) / whole).log() for v in self.events), arb(0))
            most = sum((-(v / whole).log() if v else arb("inf") for v in self.events), arb(0))
            if low * rate > most:
                return True
            assert high * rate < least, "the script must decide"
            return False


RATES = [Fraction(0), Fraction(1, 3), Fraction(5, 2), Fraction(-3), Fraction(40), Fraction(700)]
DOUBTS = [None, 1e-6, 1.0, math.inf]


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("events", [1, 2, 7])
def test_random_times_are_compared_as_flint_compares_them(events, doubt):
    for rate in RATES:
        for _ in range(8):
            deep = Deep(192, [FILL.getrandbits(192) for _ in range(events)], FILL.getrandbits(192))
            clock = Clock(rate_of(rate, doubt), ScriptedBits(deep.script))
            clock.pass_events(events)
            assert clock.rings_later() is deep.later(rate)


def boundary(events, depth, log_rate, deep):
    """The first `deep` bits of the V at which the new variable would be exactly at the time."""
    with ctx.workprec(4 * depth + 2000):
        whole = arb(2) ** depth
        total = sum((-((2 * v + 1) / (2 * whole)).log() for v in events), arb(0))
        rate = arb(fmpq(log_rate.numerator, log_rate.denominator)).exp()
        return int(((-total / rate).exp() * arb(2) ** deep).floor().unique_fmpz())


@pytest.mark.parametrize("doubt", [None, math.inf])
@pytest.mark.parametrize("deep", [20, 40, 60, 63, 64, 100, 128, 180])
def test_contests_are_decided_by_bits_far_down(deep, doubt):
    """The new variable agrees with the time in so many bits; a larger V rings earlier."""
    for rate, count in itertools.product(RATES[:4], (1, 3)):
        events = [FILL.getrandbits(320) | 1 << 319 for _ in range(count)]
        near = boundary(events, 320, rate, deep)
        for v, later in ((near - 1, True), (near + 1, False)):
            if 0 <= v < 1 << deep:
                script = Deep(320, events, (v << (320 - deep)) + FILL.getrandbits(320 - deep))
                assert script.later(rate) is later
                clock = Clock(rate_of(rate, doubt), ScriptedBits(script.script))
                clock.pass_events(count)
                assert clock.rings_later() is later


def test_a_rate_that_is_off_by_its_doubt_decides_nothing_wrong():
    """The float may be anywhere within its doubt of the truth, and the bracket as wide as its digits allow."""
    truth = Fraction(1, 3)
    for off, deep in itertools.product((-0.25, 0.25), (2, 4, 8, 30)):
        rate = LogRate(float(truth) + off, 0.25, lambda digits: (truth - Fraction(1, 10**digits), truth))
        events = [FILL.getrandbits(320) | 1 << 319]
        near = boundary(events, 320, truth, deep)
        for v, later in ((near - 1, True), (near + 1, False)):
            if 0 <= v < 1 << deep:
                script = Deep(320, events, (v << (320 - deep)) + FILL.getrandbits(320 - deep))
                clock = Clock(rate, ScriptedBits(script.script))
                clock.pass_events(1)
                assert clock.rings_later() is later


@pytest.mark.parametrize("doubt", [None, math.inf])
def test_words_of_zeros_and_ones_claim_nothing(doubt):
    """V of ones only has -ln V of any size down to zero, and V of zeros up to infinity: the next bits decide."""
    ones, zeros = "1" * 64, "0" * 64

    def rings(script, rate=Fraction(0)):
        clock = Clock(rate_of(rate, doubt), ScriptedBits(script))
        clock.pass_events(1)
        return clock.rings_later()

    assert rings(zeros + ones) is False
    assert rings(ones + zeros) is True
    # Both are ones: then 2**-65 against 2**-128 or so, either way.
    assert rings(ones + ones + "0" * 64 + ones) is True
    assert rings(ones + ones + ones + "0" * 64) is False
    # Both are zeros: 2**-64 and less against 2**-128.
    assert rings(zeros + zeros + zeros + ones) is True
    assert rings(zeros + zeros + ones + zeros) is False
    # However large the rate, a V of ones may be still nearer to one: by e**-710 it must be decided, not before.
    for size in (800, 10**6):
        with pytest.raises(BitsExhausted):
            rings("01" * 32 + ones, Fraction(size))
    assert rings("01" * 32 + ones + "0" * 64 + "01" * 32, Fraction(800)) is True


def test_the_clock_keeps_its_bits_and_runs_on():
    """One word for each event, drawn once, and one for each comparison."""
    half = Fraction(0)
    events = [3 << 62, 1 << 62, 5 << 61]  # V = 0.75, 0.25 and 0.625: times 0.288, 1.674, 2.144
    script = ScriptedBits(
        "".join(format(v, "064b") for v in (events[0], 1 << 63, 15 << 60, *events[1:], 1 << 62, 1 << 60))
    )
    clock = Clock(rate_of(half), script)
    clock.pass_events(1)
    assert clock.rings_later() is True, "0.69 is after 0.288"
    assert script.used == 128
    assert clock.rings_later() is False, "0.065 is before 0.288: the same time as before"
    assert script.used == 192
    clock.pass_events(1)
    clock.pass_events(1)
    assert clock.rings_later() is False, "1.39 is before 2.144, and after the last event alone"
    assert script.used == 192 + 3 * 64
    assert clock.rings_later() is True, "2.77 is after it"
    assert script.used == 192 + 4 * 64


def test_what_was_revealed_exactly_stays_revealed():
    """After an exact comparison the events' further bits are known, and those of later events stand next to them."""
    log_rate, depth = Fraction(1, 3), 192
    first, second = (FILL.getrandbits(depth) | 1 << (depth - 1) for _ in range(2))
    near = boundary([first], depth, log_rate, 100)
    earlier, later = ((near + move) << (depth - 100) for move in (1, -1))
    clear = 1  # a V so small that its time is later than any here
    both = boundary([first, second], depth, log_rate, 50)
    between = [(both + move) << (depth - 50) for move in (1, -1)]
    words = [(first, 0), (earlier, 0), (earlier, 1), (first, 1)]
    words += [(later, 0), (later, 1), (first, 2)]
    words += [(second, 0), (clear, 0), (between[0], 0), (between[1], 0)]
    source = ScriptedBits("".join(bits_of(value, depth, step) for value, step in words))
    clock = Clock(rate_of(log_rate, math.inf), source)
    clock.pass_events(1)
    assert clock.rings_later() is False
    assert source.used == 4 * 64, "128 bits of both"
    assert clock.rings_later() is True
    assert source.used == 7 * 64, "128 bits of the new one, and the third word of the event"
    clock.pass_events(1)
    assert [clock.rings_later() for _ in range(3)] == [True, False, True]
    assert source.used == 11 * 64, "one word of the new event, next to 192 bits of the first, and of each new variable"


def joint(law):
    """The probabilities of what rings later in two calls at the first event, and one at the second.

    `law` gives the expectation of exp(-(a + b + c) X) exp(-c Y), where X and Y are the waits for the two events.
    """
    subsets = list(itertools.product((0, 1), repeat=3))
    return [
        sum((-1) ** (sum(more) - sum(outcome)) * law(*more) for more in subsets if all(map(int.__ge__, more, outcome)))
        for outcome in subsets
    ]


C = 1.5
CLOCKS = {
    "right": lambda a, b, c: C / (C + a + b + c) * C / (C + c),
    "reset": lambda a, b, c: C / (C + a + b) * C / (C + c),
    "fresh time": lambda a, b, c: (C / (C + 1)) ** (a + b + 2 * c),
    "other rate": lambda a, b, c: 2 * C / (2 * C + a + b + c) * 2 * C / (2 * C + c),
}


def test_a_time_is_the_same_for_all_who_ask_and_runs_on():
    """A clock that is reset, a fresh time for each call, or twice the rate, would be seen."""
    rate, counts = rate_of(Fraction(math.log(C))), [0] * 8
    for _ in range(6_000):
        clock = Clock(rate, Draws())
        clock.pass_events(1)
        outcome = [clock.rings_later(), clock.rings_later()]
        clock.pass_events(1)
        outcome.append(clock.rings_later())
        counts[4 * outcome[0] + 2 * outcome[1] + outcome[2]] += 1
    right = joint(CLOCKS["right"])
    assert_fits(counts, right)
    for wrong in ("reset", "fresh time", "other rate"):
        assert_rejected(counts, joint(CLOCKS[wrong]), truth=right)


# The law.


def rate_of_sum(exponents):
    """The logarithm of the sum of exp(-e), with brackets from those of decimals."""

    def bracket(digits):
        with ctx.workprec(4 * digits + 60):
            ball = sum(((-arb(fmpq(e.numerator, e.denominator))).exp() for e in exponents), arb(0)).log()
            middle, radius = (
                Fraction(*map(int, part.as_integer_ratio())) for part in map(exactly, (ball.mid(), ball.rad()))
            )
            return middle - radius, middle + radius

    near = math.log(math.fsum(math.exp(-e) for e in exponents))
    return LogRate(near, 1e-12, bracket)


def exactly(ball):
    """The midpoint of a ball without a radius, as a rational."""
    mantissa, exponent = ball.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def waiting_counts(exponents, sizes, draws):
    """How often a candidate of each level is accepted, from float draws of the exponential mechanism."""
    rate = rate_of_sum([e for e, m in zip(exponents, sizes, strict=True) for _ in range(m)])
    weights = np.array([m * math.exp(-e) for e, m in zip(exponents, sizes, strict=True)])
    generator = np.random.default_rng()
    chosen = iter(generator.choice(len(exponents), size=30 * draws + 300, p=weights / weights.sum()).tolist())
    events = ((1, exponents[level], level) for level in chosen)
    return np.bincount([wait_for(events, rate, Draws()) for _ in range(draws)], minlength=len(exponents))


def law_of(exponents, sizes, rate=1):
    by_level = reference.flip_pmf_by_level(sizes, [float(rate * e) for e in exponents])
    return np.array([m * float(p) for m, p in zip(sizes, by_level, strict=True)])


FAMILIES = {
    "one rival": ([Fraction(0), Fraction(1)], [1, 1]),
    "many rivals": ([Fraction(0), Fraction(2)], [1, 12]),
    "two best": ([Fraction(0), Fraction(1, 2), Fraction(3)], [2, 1, 1]),
    "a crowd near by": ([Fraction(0), Fraction(1, 3), Fraction(2)], [1, 6, 3]),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_accepted_candidate_has_the_law_of_permute_and_flip(family):
    """The exponential mechanism itself would be rejected, and so would another rate."""
    exponents, sizes = FAMILIES[family]
    draws = 2_000 if family != "many rivals" else 4_000
    counts, right = waiting_counts(exponents, sizes, draws), law_of(exponents, sizes)
    assert_fits(counts, right)
    assert_rejected(counts, law_of(exponents, sizes, Fraction(2)), truth=right)
    if family == "many rivals":
        weights = np.array(sizes) * np.exp([-float(e) for e in exponents])
        assert_rejected(counts, weights / weights.sum(), truth=right)


def test_the_best_is_accepted_at_once_and_needs_no_bits():
    events = itertools.repeat((5, Fraction(0), "best"))
    assert wait_for(events, rate_of(Fraction(0)), ScriptedBits("")) == "best"


def test_events_that_end_are_an_error_of_ours():
    with pytest.raises(ScoresChanged):
        wait_for([(1, Fraction(10**6), "never")], rate_of(Fraction(-50)), Draws())
