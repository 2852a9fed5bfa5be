"""One octet leaves each coin open, whatever its gap; all others decide it rightly."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.selection.enclosure import log_bracket, scaled_exp
from dpselect.selection.lines import Bounds, Distances, GapTable, octet_tables
from tests.seam import ScriptedBits

RATES = [Fraction(1, 2), Fraction(1), Fraction(1, 100), Fraction(0.1), Fraction(1, 10**7), Fraction(7), Fraction(1, 3)]
EXTREME = [Fraction(1, 2**80), Fraction(2**40), Fraction(1, 2**63)]
SPARE = 2**63 + 1  # a word that every bound accepts: the low half of its product is the bound, or more
OCTETS = np.arange(256, dtype=np.uint8)


def line(exponent):
    """The octet that leaves a coin open: floor(256 p), but 255 for p = 1."""
    return min(scaled_exp(exponent, 8), 255)


def decided(lines, level):
    """What each octet says of one level: heads, and open."""
    heads, undecided = lines.decide(np.repeat(level, 256), OCTETS)
    return heads.tolist(), np.isin(OCTETS, undecided).tolist()


def assert_exact(lines, level, exponent):
    expected = line(exponent)
    heads, is_open = decided(lines, level)
    assert heads == [octet < expected for octet in range(256)]
    assert is_open == [octet == expected for octet in range(256)]


def assert_right(lines, level, exponent):
    """Nothing is decided wrongly, and at most one more octet than its own leaves the coin open."""
    own = line(exponent)
    heads, is_open = decided(lines, level)
    assert is_open[own]
    assert sum(is_open) <= 2
    for octet in range(256):
        assert is_open[octet] or heads[octet] == (octet < own)
        assert not (is_open[octet] and heads[octet])


@pytest.mark.parametrize("rate", RATES + EXTREME, ids=str)
def test_whole_gaps(rate):
    lines = Distances(rate).of_whole_gaps
    near = {
        math.floor(math.log(256 / k) / rate) + step for k in (1, 2, 3, 100, 128, 254, 255) for step in (-1, 0, 1, 2)
    }
    for gap in sorted({0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1} | {gap for gap in near if 0 <= gap < 2**64}):
        assert_exact(lines, np.array([gap], np.uint64), rate * gap)


def test_a_short_table_and_bounds_are_both_in_use():
    assert isinstance(Distances(Fraction(1, 100)).of_whole_gaps, GapTable)
    assert isinstance(Distances(Fraction(1, 10**7)).of_whole_gaps, Bounds)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("best", [0.0, 1.0, -3.7, 1e300, 2.0**-1000, 552.0, 5e-324, math.log(2), -(2.0**60)])
def test_float_scores_next_to_each_line(rate, best):
    """Floats beside best - t_k, on both sides, and the best one itself."""
    lines = Distances(rate).of_float_scores(best)
    assert_exact(lines, np.array([best]), Fraction(0))
    for k in (1, 2, 17, 100, 128, 200, 254, 255):
        score = float(Fraction(best) - Fraction(math.log(256 / k)) / rate)
        for _ in range(3):
            score = math.nextafter(score, -math.inf)
        for _ in range(7):
            if score <= best:
                assert_exact(lines, np.array([score]), rate * (Fraction(best) - Fraction(score)))
            score = math.nextafter(score, math.inf)


@settings(max_examples=150)
@given(st.floats(-1e18, 1e18), st.floats(0, 1e18), st.sampled_from(RATES))
def test_float_scores_anywhere(best, loss, rate):
    score = best - loss
    lines = Distances(rate).of_float_scores(best)
    assert_exact(lines, np.array([score]), rate * (Fraction(best) - Fraction(score)))


@pytest.mark.parametrize("digits", [16, 20, 30, 34, 40, 44, 60])
@pytest.mark.parametrize("k", [1, 3, 100, 255])
def test_lines_in_doubt_decide_nothing_wrongly(k, digits):
    """A rate for which the best score is t_k to so many digits: nothing is left of the difference but roundings."""
    rate = (log_bracket(Fraction(256, k), digits)[0] / 100).limit_denominator(10**digits)
    for best in (99.0, 100.0, math.nextafter(100, 101), 101.0):
        lines = Distances(rate).of_float_scores(best)
        for score in (0.0, -0.0, 5e-324, -5e-324, 1e-40, -1e-40, 1e-15, -1e-15, 2e-29, -2e-29, 1.0, best):
            assert_right(lines, np.array([score]), rate * (Fraction(best) - Fraction(score)))


def test_the_work_for_lines_does_not_depend_on_the_best_score(monkeypatch):
    """No rational is asked for, whether the best score is at a line or not: the same steps in floats."""
    distances = Distances(Fraction(1, 10))
    distances.of_float_scores(1.0)
    monkeypatch.setattr("dpselect.selection.lines.log_bracket", None)
    monkeypatch.setattr("dpselect.selection.lines.Fraction", None)
    for best in (math.log(256 / 3) * 10, 1.0, 0.0, 1e300):
        distances.of_float_scores(best)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_rounded_gaps_are_never_decided_wrongly(rate):
    """They are open under their own octet, and at most under one more."""
    lines = octet_tables(rate)[0].as_lines()
    for gap in [
        0.0,
        *(
            float(Fraction(math.log(256 / k)) / rate) * (1 + step * 2.0**-52)
            for k in (1, 128, 255)
            for step in range(-9, 9)
        ),
    ]:
        assert_right(lines, np.array([gap]), rate * Fraction(gap))


@pytest.mark.parametrize("bound", range(1, 9))
def test_an_index_at_once_is_uniform(bound, monkeypatch):
    """All words of four bits: each index comes from equally many, and 16 mod bound words are refused."""
    monkeypatch.setattr("dpselect.selection.draws._WORD", 4)
    found = []
    for word in range(16):
        try:
            found.append(ScriptedBits(f"{word:04b}").index_at_once(bound))
        except Exception:  # the script has no second word
            found.append(None)
    assert found.count(None) == 16 % bound
    assert {found.count(index) for index in range(bound)} == {16 // bound}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(1, 2**32 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=5))
def test_indices_at_once_are_the_high_words_of_products(pairs):
    bounds = np.array([bound for bound, _ in pairs])
    expected = [bound * word >> 64 for bound, word in pairs]
    refused = [bound * word % 2**64 < 2**64 % bound for bound, word in pairs]
    spare = "".join(f"{SPARE:064b}" for _ in pairs)
    found = ScriptedBits("".join(f"{word:064b}" for _, word in pairs) + spare).indices_at_once(bounds)
    for index, bound, wanted, again in zip(found.tolist(), bounds.tolist(), expected, refused, strict=True):
        assert index == (bound * SPARE >> 64 if again else wanted)


def test_a_word_that_would_bend_an_index_is_refused():
    """For the bound 3 the word zero is one too many."""
    script = f"{0:064b}{SPARE:064b}"
    assert ScriptedBits(script).indices_at_once(np.array([3])).tolist() == [1]
    assert ScriptedBits(script).indices_at_once(np.array([1])).tolist() == [0]
