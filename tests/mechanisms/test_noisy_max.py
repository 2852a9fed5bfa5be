"""Report noisy max, bit by bit: sieves never lose the winner, and near ties are settled by the bits that matter."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from dpselect.mechanisms import noisy_max
from dpselect.mechanisms.noisy_max import WIDTH, choose_noisy_max, choose_noisy_max_in_rows, noise_bounds
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate, RowGaps, gaps_of
from dpselect.selection.races import HUGE
from tests.seam import ScriptedBits

UNIT = Rate(Fraction(1))


def true_noise(numerator: int) -> arb:
    """The Laplace noise at V = numerator / 2**16, which is neither zero nor one."""
    ctx.prec = 200
    half = 2**15
    return -(arb(numerator) / half).log() if numerator <= half else (arb(2 * half - numerator) / half).log()


def test_bounds_enclose_the_noise_of_every_first_word():
    table = noise_bounds()
    assert (table.size, table.dtype) == (2**16, np.float32)
    for word in [*range(1, 2**16 - 1, 37), 2**15 - 1, 2**15, 2**15 + 1, 2**16 - 2]:
        bound = float(table[word])
        assert true_noise(word) <= bound
        assert bound < true_noise(word) + 1e-5
        assert bound - WIDTH - 1e-5 < true_noise(word + 1)


def test_the_first_word_and_the_last_are_unbounded():
    words = np.array([0, 1, 2, 2**15 - 1, 2**15, 2**16 - 2, 2**16 - 1], np.uint16)
    assert noisy_max._is_unbounded(words).tolist() == [True, False, False, False, False, False, True]
    assert np.isneginf(noise_bounds()[[0, 2**16 - 1]]).all()


@pytest.mark.parametrize("exponent", [0, 1, 1000, 10**6, 10**12, 2**62])
def test_upper_bounds_are_above_and_close(exponent):
    gaps = gaps_of(np.array([0, -exponent]), UNIT)
    words = np.array([77, 2**15 + 77], np.uint16)
    bounds = noisy_max._upper_bounds(gaps, gaps.at(slice(None))[[1, 1]], words)
    for word, bound in zip(words, bounds.tolist(), strict=True):
        true = Fraction(float(noise_bounds()[word])) - exponent
        assert Fraction(bound) >= true - Fraction(exponent, 2**53)
        assert Fraction(bound) <= true + Fraction(exponent, 2**48)


def test_lower_bounds_of_what_the_upper_bounds_stand_for():
    least = noisy_max._least(np.array([0.0, 5.0, -1e6, -HUGE, -2 * HUGE, -np.inf]))
    assert least[0] == pytest.approx(-WIDTH, abs=1e-4)
    assert least[1] == pytest.approx(5 - WIDTH, abs=1e-4)
    assert least[2] == pytest.approx(-1e6 - WIDTH, abs=1e-4)
    assert np.isfinite(least[3])
    assert np.isneginf(least[4:]).all()
    assert (least[:4] < np.array([0.0, 5.0, -1e6, -HUGE]) + 1e-9).all()


def test_each_row_has_its_own_winner():
    matrix = np.zeros((4, 3), np.int64)
    matrix[[0, 1, 2, 3], [2, 0, 1, 2]] = 10_000
    assert choose_noisy_max_in_rows(RowGaps(matrix, UNIT), Draws()).tolist() == [2, 0, 1, 2]


@pytest.mark.parametrize("rows", [False, True], ids=["one vector", "rows"])
@pytest.mark.parametrize("larger", [0, 1])
@pytest.mark.parametrize("sign", ["0", "1"])
@pytest.mark.parametrize("first", ["000000001100011", "100000001100011"])
def test_a_near_tie_is_settled_by_the_next_bits(first, sign, larger, rows):
    """Equal scores and 48 equal bits of V, below one half or above it: noise falls with V."""
    first_words = (sign + first) * 2
    refined = ["0" * 64, "0" * 64]
    refined[larger] = "1" * 64
    source = ScriptedBits(first_words + "01" * 32 + "".join(refined))
    scores = np.array([3, 3])
    if rows:
        chosen = int(choose_noisy_max_in_rows(RowGaps(scores[np.newaxis], UNIT), source)[0])
    else:
        chosen = choose_noisy_max(gaps_of(scores, UNIT), source)
    assert chosen == 1 - larger
    assert source.used == 32 + 64 + 128


def test_a_word_without_a_one_stays_in_the_contest():
    """V with fifteen zeros bounds nothing yet: the noise may be large enough to win from far behind."""
    gaps = gaps_of(np.array([0, -20]), UNIT)
    first_words = "0" + "1" * 15 + "0" * 16
    source = ScriptedBits(first_words + "1" * 32 + "0" * 31 + "1" + "0" * 64 * 4)
    assert choose_noisy_max(gaps, source) == 1  # E is beyond 46 ln 2 = 31.9


def test_a_word_without_a_one_stays_in_the_contest_of_its_row():
    rows = RowGaps(np.array([[0, -20], [0, -20]]), UNIT)
    first_words = ("0" + "1" * 15 + "0" * 16) + ("0" + "1" * 15) * 2
    source = ScriptedBits(first_words + "1" * 32 + "0" * 31 + "1" + "1" * 32 + "0" * 64 * 4)
    assert choose_noisy_max_in_rows(rows, source).tolist() == [1, 0]


@pytest.mark.parametrize("bit", ["0", "1"])
def test_words_of_equal_bits_are_settled_by_the_bits_after_them(bit):
    """Zeros are a large noise, ones a large negative one: of two, the smaller V has the larger noise."""
    source = ScriptedBits(bit * 32 + ("01" * 16) * 2 + "0" * 63 + "1" + "1" * 64)
    assert choose_noisy_max(gaps_of(np.array([3, 3]), UNIT), source) == 0


def test_overflowed_exponents_win_nothing_and_raise_no_warning():
    """An exponent that left the floats is known from below only. A warning is an error here."""
    largest = np.finfo(float).max
    for word in ("0" * 16, "0" * 13 + "101", "1" * 16):
        source = ScriptedBits(word * 2 + "01" * 32 + "0" * 64 * 8)
        assert choose_noisy_max(gaps_of(np.array([largest, -largest]), UNIT), source) == 0


@pytest.mark.parametrize("louder", [0, 1])
def test_ties_in_several_rows_are_settled_each_by_itself(louder):
    """Each row has two that are tied in 48 bits; in one row the noise is larger, and none of the other's business."""
    rows = RowGaps(np.array([[3, 3, -1000], [-1000, 3, 3]]), UNIT)
    loud, quiet, far = "0" * 14 + "11", "01" + "0" * 14, "01" * 8
    first, second = (loud, quiet) if louder == 0 else (quiet, loud)
    refined = "0" * 64 + "1" * 64 + "1" * 64 + "0" * 64  # positive noise falls with V
    source = ScriptedBits(first * 2 + far * 2 + second * 2 + "01" * 64 + refined)
    assert choose_noisy_max_in_rows(rows, source).tolist() == [0, 2]


@pytest.mark.parametrize("larger", [0, 1])
def test_words_without_a_one_everywhere(larger):
    """No bound of any candidate: all stay, and the next bits decide."""
    fresh = ["0" * 31 + "1", "0" * 31 + "1"]
    fresh[larger] = "1" * 32
    for rows in (False, True):
        draws = ScriptedBits("0" * 32 + "".join(fresh))
        scores = np.array([3, 3])
        if rows:
            chosen = choose_noisy_max_in_rows(RowGaps(scores[np.newaxis], UNIT), draws)[0]
        else:
            chosen = choose_noisy_max(gaps_of(scores, UNIT), draws)
        assert chosen == 1 - larger


def test_few_contenders_are_left_in_rows(monkeypatch):
    seen, settle = [], noisy_max._settle
    monkeypatch.setattr(
        noisy_max,
        "_settle",
        lambda gaps, positions, *rest: seen.append(positions.size) or settle(gaps, positions, *rest),
    )
    matrix = np.random.default_rng(4).poisson(100, (100, 500))
    choose_noisy_max_in_rows(RowGaps(matrix, UNIT), Draws())
    assert seen[0] < 5_000  # of 50,000


def test_long_vectors_keep_their_winner_in_any_run():
    for winner in (0, 20_000, 39_999):
        scores = np.zeros(40_000)
        scores[winner] = 10_000
        assert choose_noisy_max(gaps_of(scores, UNIT), Draws()) == winner


@pytest.mark.parametrize("winner", [0, 50_000, 199_999])
@pytest.mark.parametrize("lead", [10.0, 1e14])
def test_few_contenders_are_left_for_the_exact_road(winner, lead, monkeypatch):
    """Even where the best candidate is read last: the run time and the memory of the rest stay small."""
    scores = np.random.default_rng(3).poisson(100, 200_000).astype(float)
    scores[winner] += lead
    seen = []
    settle = noisy_max._settle

    def watched(gaps, positions, *rest):
        seen.append(positions.size)
        return settle(gaps, positions, *rest)

    monkeypatch.setattr(noisy_max, "_settle", watched)
    kept = []
    unbounded = noisy_max._is_unbounded
    monkeypatch.setattr(noisy_max, "_is_unbounded", lambda words: kept.append(words.size) or unbounded(words))
    choose_noisy_max(gaps_of(scores, Rate(Fraction(1, 2))), Draws())
    assert seen[0] < 200
    assert kept[-1] < 2_000  # what all runs together kept before the last sieve


def test_no_warning_at_the_end_of_the_floats():
    """The best candidate's first word may say nothing, so that the largest upper bound is that of a distant loser."""
    largest = np.finfo(np.float64).max
    with np.errstate(all="raise"):
        assert noisy_max._least(np.array([-largest, -np.inf])).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("upper", [-1e12, -1e6, -100.0, -1.0, 0.0, 1.0, 11.0])
def test_the_least_value_allows_for_every_rounding(upper):
    """As its docstring derives: the width, the float32 table and the exponent, which is at most |upper| + 11."""
    [least] = noisy_max._least(np.array([upper]))
    error = Fraction(1, 2**18) + Fraction(1, 2**48) * (abs(Fraction(upper)) + 11)
    assert Fraction(float(least)) <= Fraction(upper) - Fraction(WIDTH) - error
    assert least > upper - WIDTH - 1e-3 - 1e-12 * abs(upper), "or too many are left for the exact road"


def test_an_exponent_is_bounded_from_below():
    """The computed exponent is within a relative 2**-51, and its product with the factor is rounded."""
    assert Fraction(noisy_max._BELOW) * (1 + Fraction(1, 2**51)) * (1 + Fraction(1, 2**53)) <= 1
