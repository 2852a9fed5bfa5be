"""Partition selection against flint's balls: its probabilities, its guarantee, and its coins, bit by bit."""

import math
import pickle
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.unlisted import Finding
from dpselect.selection.draws import Draws
from tests.reference import ball
from tests.seam import BitsExhausted, ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected

TINY = Fraction(1, 10**300)
SMALL = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 10), Fraction(1, 10**9)),
    (Fraction(1, 2), Fraction(1, 50)),
    (Fraction(7, 3), Fraction(0.1)),
    (Fraction(1, 100), Fraction(1, 1000)),
    (Fraction(3), TINY),
    (Fraction(50), TINY),
    (Fraction(50), Fraction(1, 10**12)),
    (Fraction(1, 3), Fraction(1, 2)),
    (Fraction(1, 10**4), Fraction(49, 100)),
    (Fraction(1, 10**300), Fraction(1, 7)),
    (Fraction(700), Fraction(1, 10)),
]
LARGE = [
    (Fraction(1, 10**4), TINY),
    (Fraction(1, 10**4), Fraction(1, 10**9)),
    (Fraction(1, 10**9), Fraction(1, 10**6)),
    (TINY, TINY),
]
HALF = (Fraction(1, 2), Fraction(1, 50))
PRECISION = 2600


finding_of = cache(Finding)  # which keeps what it computed


def shown(pair):
    return "-".join(f"{float(number):.3g}" for number in pair)


NAMED = pytest.mark.parametrize("pair", SMALL, ids=shown)
EXTREME = pytest.mark.parametrize("pair", [*SMALL, *LARGE], ids=shown)


@pytest.fixture(autouse=True)
def _balls():
    with ctx.workprec(PRECISION):
        yield


@cache
def exponential(epsilon):
    with ctx.workprec(PRECISION):
        return ball(epsilon).exp()


@cache
def recursion(epsilon, delta):
    """pi(0), pi(1) and so on by the recursion of the paper, until pi is one."""
    with ctx.workprec(PRECISION):
        e, delta, found = exponential(epsilon), ball(delta), [arb(0)]
        while not found[-1] >= 1:
            pi = found[-1]
            found.append((e * pi + delta).min(1 - (1 - pi - delta) / e).min(arb(1)))
            if len(found) == 3 and delta == arb(0.5):  # the ball of 1 - (1 - 1/2 - 1/2) / e need not be a point
                found[-1] = arb(1)
        return found


def by_formula(epsilon, delta):
    """n1, n2 and pi of the closed form in the paper (Theorem 2)."""
    e, d, eps = exponential(epsilon), ball(delta), ball(epsilon)
    n1 = 1 + int((((e + 2 * d - 1) / ((e + 1) * d)).log() / eps).floor().unique_fmpz())

    def early(n):
        return (e**n - 1) / (e - 1) * d

    n2 = n1 + int(((1 + (e - 1) / d * (1 - early(n1))).log() / eps).floor().unique_fmpz())

    def pi(n):
        if n <= n1:
            return early(n)
        if n > n2:
            return arb(1)
        return (1 - e ** (n1 - n)) * (1 + d / (e - 1)) + e ** (n1 - n) * early(n1)

    return n1, n2, pi


def sampled(finding, most=40):
    """All counts up to where a value is surely found, or some of them, with those near the ends and the middle."""
    last = finding.surely
    near = {n + d for n in (0, last // 2, last) for d in range(-2, 3)}
    return sorted(n for n in {*near, *range(0, last + 1, max(1, last // most))} if 0 <= n <= last)


def encloses(bracket, truth):
    return not ball(bracket[0]) > truth and not ball(bracket[1]) < truth


@NAMED
def test_brackets_hold_the_recursion(pair):
    finding, truth = Finding(*pair), recursion(*pair)
    assert finding.surely == len(truth) - 1
    for n in sampled(finding):
        for bits in (1, 64, 300):
            low, high = finding.bracket(n, bits)
            assert 0 <= low <= high <= 1
            assert high - low <= Fraction(1, 2**bits)
            assert encloses((low, high), truth[n])
    assert finding.bracket(finding.surely, 10) == finding.bracket(2**62, 10) == (1, 1)
    assert finding.bracket(0, 10) == (0, 0)


@pytest.mark.parametrize("pair", [pair for pair in [*SMALL, *LARGE] if pair[1] != Fraction(1, 2)], ids=shown)
def test_brackets_hold_the_closed_form_of_the_paper(pair):
    finding, (n1, n2, pi) = Finding(*pair), by_formula(*pair)
    assert finding.surely == n2 + 1
    for n in {1, 2, n1 // 2 + 1, n1 - 1, n1, n1 + 1, (n1 + n2) // 2, n2 - 1, n2, n2 + 1}:
        if n >= 1:
            assert encloses(finding.bracket(n, 300), pi(n))


def test_the_closed_form_is_the_recursion():
    for pair in SMALL[:5]:
        _, n2, pi = by_formula(*pair)
        assert all(pi(n).overlaps(value) for n, value in enumerate(recursion(*pair)) if n <= n2)


def violated(epsilon, delta, one, other):
    """Whether two probabilities of neighbours break (epsilon, delta) for one of both outcomes, for certain."""
    e, d = exponential(epsilon), ball(delta)
    pairs = [(one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)]
    return any(p > e * q + d for p, q in pairs)


@NAMED
def test_neighbours_are_hard_to_tell_apart_and_no_value_is_released_more_often(pair):
    """The inequalities hold for both outcomes, and raising any probability a little breaks one of them."""
    finding = Finding(*pair)
    for n in [*sampled(finding), finding.surely + 1]:
        here, after = (ball(low).union(ball(high)) for low, high in (finding.bracket(m, 500) for m in (n, n + 1)))
        assert not violated(*pair, here, after)
        raised = after + ball(Fraction(1, 10**9))
        assert raised > 1 or violated(*pair, here, raised)


@NAMED
def test_more_people_are_found_more_often(pair):
    finding = Finding(*pair)
    bits = 1200 if TINY in pair or pair[0] == 700 else 200
    for n in sampled(finding, 10)[:-1]:
        assert finding.bracket(n, bits)[1] < finding.bracket(n + 1, bits)[0]


@NAMED
def test_floats_of_the_probability_are_right(pair):
    finding = Finding(*pair)
    for n in sampled(finding):
        truth = float(recursion(*pair)[n])
        assert abs(finding.probability(n) - truth) <= 4 * math.ulp(truth)
    assert finding.probability(2**62) == 1.0


@NAMED
@pytest.mark.parametrize("wanted", [Fraction(1, 10**9), 0.1, "1/2", 0.99, Fraction(10**9 - 1, 10**9), 1])
def test_people_for_a_probability(pair, wanted):
    finding, truth = Finding(*pair), recursion(*pair)
    needed = finding.people_for(wanted)
    assert 1 <= needed <= finding.surely
    wanted = ball(Fraction(wanted))
    assert not truth[needed] < wanted
    assert truth[needed - 1] < wanted


def test_people_for_the_probability_of_one_person():
    assert Finding(Fraction(1), Fraction(1, 5)).people_for(Fraction(1, 5)) == 1
    assert Finding(Fraction(1), Fraction(1, 5)).people_for(Fraction(1, 5) + TINY) == 2


# Coins.


def pi_of(pair, n):
    """The probability in a ball, by the recursion or, for long ones, by the formula."""
    if pair in SMALL:
        truth = recursion(*pair)
        return truth[min(n, len(truth) - 1)]
    return by_formula(*pair)[2](n)


def floor_of(pair, n, depth):
    """floor(2**depth pi(n)) for 1 < n < surely, where pi(n) is irrational."""
    return int((pi_of(pair, n) * arb(2) ** depth).floor().unique_fmpz())


def flipped(pair, n, word, width=32, more=""):
    [heads] = finding_of(*pair).found(np.array([n]), ScriptedBits(f"{word:0{width}b}{more}"))
    return bool(heads)


def some_counts(pair):
    last = min(finding_of(*pair).surely, 2**63) - 1
    return sorted(
        {n for n in (2, 3, last // 4, last // 2, last // 2 + 1, last // 2 + 2, last - 1, last) if 1 < n <= last}
    )


COINS = pytest.mark.parametrize(
    ("pair", "n"),
    [
        pytest.param(pair, n, marks=[pytest.mark.slow] if pair == (TINY, TINY) else [])
        for pair in [*SMALL, *LARGE]
        for n in some_counts(pair)
    ],
    ids=lambda value: shown(value) if isinstance(value, tuple) else str(value),
)


@COINS
def test_only_one_word_is_undecided(pair, n):
    boundary = floor_of(pair, n, 32)
    if boundary > 0:
        assert flipped(pair, n, boundary - 1)
        assert flipped(pair, n, 0)
    if boundary < 2**32 - 1:
        assert not flipped(pair, n, boundary + 1)
        assert not flipped(pair, n, 2**32 - 1)
    with pytest.raises(BitsExhausted):
        flipped(pair, n, boundary)


@COINS
def test_the_other_bit_forces_the_decision(pair, n):
    """Follow the binary expansion of pi, then take the other bit: a one where it has a zero is tails."""
    for agreeing in (31, 32, 33, 64, 150):
        expansion = floor_of(pair, n, agreeing + 1)
        other = expansion ^ 1
        for rest in ("0" * 64, "1" * 64):
            assert flipped(pair, n, other, agreeing + 1, rest) is (other < expansion)


def test_a_single_person_is_found_with_probability_delta():
    """pi(1) = delta is rational. At one half the first word decides; at one third a word may be undecided."""
    half, third = (Fraction(1), Fraction(1, 2)), (Fraction(1), Fraction(1, 3))
    assert flipped(half, 1, 2**31 - 1)
    assert not flipped(half, 1, 2**31)
    word = 2**32 // 3
    assert flipped(third, 1, word - 1)
    assert not flipped(third, 1, word + 1)
    assert flipped(third, 1, word, more=f"{word:032b}{0:032b}")
    assert not flipped(third, 1, word, more=f"{word:032b}{word + 1:032b}")
    with pytest.raises(BitsExhausted):
        flipped(third, 1, word, more=f"{word:032b}")


@EXTREME
def test_nobody_is_never_found_and_many_people_always_are(pair):
    finding = Finding(*pair)
    sure = [n for n in (finding.surely, finding.surely + 1, 2**53 + 1, 2**62, 2**63 - 1) if finding.surely <= n < 2**63]
    counts = np.array([0, *sure], np.int64)
    for bit in "01":
        source = ScriptedBits(bit * 32 * len(counts))
        assert finding.found(counts, source).tolist() == [False, *[True] * len(sure)]
        assert source.used == 32 * len(counts)


@EXTREME
def test_floats_leave_few_words_undecided_and_no_truth_outside(pair):
    finding = Finding(*pair)
    last = min(finding.surely - 1, 2**63 - 1)
    pi = by_formula(*pair)[2] if pair in LARGE else partial(pi_of, pair)
    counts = np.unique(np.geomspace(1, last * 0.999, 50).astype(np.int64))
    counts = np.array([*counts[(counts >= 1) & (counts < last)], last])
    low, high = finding._bounds(counts)
    assert (high >= low).all()
    assert (high - low <= 2).all()
    for n, least, most in zip(counts.tolist(), low.tolist(), high.tolist(), strict=True):
        scaled = pi(n) * arb(2) ** 32
        assert not scaled < least
        assert not scaled > most


def test_many_values_are_decided_as_single_ones():
    """Few different counts are computed once each; the coins are the same."""
    finding = Finding(*HALF)
    counts = np.arange(finding.surely + 3)
    boundaries = [2**32 // 50, *(floor_of(HALF, n, 32) for n in range(2, finding.surely))]
    for shift, found in ((-1, True), (1, False)):
        words = [0, *(boundary + shift for boundary in boundaries), 2**32 - 1, 0, 2**31]
        expected = [False, *[found] * len(boundaries), True, True, True]
        script = "".join(f"{word:032b}" for word in words)
        assert finding.found(np.tile(counts, 3), ScriptedBits(script * 3)).tolist() == expected * 3
        assert [flipped(HALF, n, w) for n, w in zip(counts.tolist(), words, strict=True)] == expected


@settings(max_examples=30, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 10**4), 50, max_denominator=10**6),
    exponent=st.integers(1, 300),
    share=st.floats(0, 1.2),
    words=st.lists(st.integers(0, 2**32 - 1), min_size=8, max_size=8),
)
def test_coins_agree_with_the_closed_form(epsilon, exponent, share, words):
    with ctx.workprec(PRECISION):
        delta = Fraction(3, 10**exponent)
        _, n2, pi = by_formula(epsilon, delta)
        n = int(share * (n2 + 1))
        truth = pi(n) if n else arb(0)
        decided = [word for word in words if ball(word + 1) < truth * 2**32 or ball(word) > truth * 2**32]
        got = [flipped((epsilon, delta), n, word) for word in decided]
        assert got == [bool(ball(word + 1) < truth * 2**32) for word in decided]
        assert Finding(epsilon, delta).surely == n2 + 1


# Draws.

DRAWS = 300_000
NUMBERS = [1, 2, 5, 6, 7, 9]


def heads_of(n, pair=HALF):
    heads = int(Finding(*pair).found(np.full(DRAWS, n), Draws()).sum())
    return [heads, DRAWS - heads]


def law(n, pair=HALF):
    pi = float(pi_of(pair, n)) if pair in SMALL else Finding(*pair).probability(n)
    return [pi, 1 - pi]


@pytest.mark.parametrize("n", NUMBERS)
def test_draws_have_the_distribution(n):
    assert_fits(heads_of(n), law(n))


@pytest.mark.parametrize("n", NUMBERS[1:])
@pytest.mark.parametrize("mistake", ["twice the delta", "one person more", "one person less", "half the epsilon"])
def test_a_mistake_would_be_seen(n, mistake):
    epsilon, delta = HALF
    wrong = {
        "twice the delta": (Finding(epsilon, 2 * delta), n),
        "one person more": (Finding(*HALF), n + 1),
        "one person less": (Finding(*HALF), n - 1),
        "half the epsilon": (Finding(epsilon / 2, delta), n),
    }[mistake]
    finding, people = wrong
    heads = int(finding.found(np.full(DRAWS, people), Draws()).sum())
    pi = finding.probability(people)
    assert_rejected([heads, DRAWS - heads], law(n), truth=[pi, 1 - pi])


def test_coins_of_different_values_are_independent():
    """Pairs of neighbouring values, as a table of four cells."""
    n = 6
    heads = Finding(*HALF).found(np.full(2 * DRAWS, n), Draws()).reshape(-1, 2)
    cells = np.bincount(heads[:, 0] * 2 + heads[:, 1], minlength=4)
    pi = law(n)[0]
    assert_fits(cells, [(1 - pi) ** 2, pi * (1 - pi), pi * (1 - pi), pi**2])


# The record.


def test_the_record_is_public_and_carries_nothing_random():
    finding = Finding(Fraction(1, 10), Fraction(1, 10**6))
    finding.found(np.arange(10), Draws())
    copy = pickle.loads(pickle.dumps(finding))  # noqa: S301 - our own bytes
    assert copy == finding
    assert copy.surely == finding.surely
    assert repr(finding) == "Finding(epsilon=Fraction(1, 10), delta=Fraction(1, 1000000))"
    assert Finding.name == "partition-selection"
    assert Finding("0.1", "1e-6") == finding
    assert hash(Finding("0.1", "1e-6")) == hash(finding)


def test_an_epsilon_of_any_size_is_fine():
    """pi(1) = delta, and two people are found but for e^-epsilon."""
    for epsilon in (10**9, 10**300, 10**3000):
        finding = Finding(epsilon, 0.25)
        assert finding.surely == 3
        assert [finding.probability(n) for n in range(4)] == [0, 0.25, 1, 1]
        assert finding.people_for(0.999) == 2
        assert finding.people_for(1) == 3
        heads = finding.found(
            np.array([0, 1, 2, 3]), ScriptedBits(f"{0:032b}{2**30:032b}{2**32 - 2:032b}{2**32 - 1:032b}")
        )
        assert heads.tolist() == [False, False, True, True]


def test_no_values_take_no_bits():
    assert Finding(1, "1e-6").found(np.array([], np.int64), ScriptedBits("")).shape == (0,)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 0.1), (-1, 0.1), (math.inf, 0.1), (1, 0), (1, -0.1), (1, 0.51), (1, 1), (1, math.nan), (1, "1e-301")],
)
def test_parameters_out_of_range_are_refused(epsilon, delta):
    with pytest.raises(InvalidValue, match=r"epsilon|delta"):
        Finding(epsilon, delta)


def test_more_parameters_are_refused():
    with pytest.raises(InvalidType, match="epsilon must be a number"):
        Finding(None, 0.1)
    with pytest.raises(InvalidValue, match="at least 1e-300"):
        Finding("1e-301", 0.1)
    for wrong in (0, -0.1, 1.5):
        with pytest.raises(InvalidValue, match="probability must be"):
            Finding(1, 0.1).people_for(wrong)
