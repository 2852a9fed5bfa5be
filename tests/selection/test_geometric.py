"""Gaps of a Bernoulli process: scripted against exact powers, and by their distribution."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect.selection.draws import SKIP_MARGIN as MARGIN
from dpselect.selection.draws import Draws
from tests.seam import BitsExhausted, ScriptedBits
from tests.statistical.goodness import assert_fits

pytestmark = pytest.mark.usefixtures("each_kernel")


def geometrics(count, zeros, source, margin=MARGIN):
    """The gaps that the filter and the exact arithmetic find for words of 32 bits."""
    return source.skips(source.words(count, 32), zeros, margin)


def cell_boundary(zeros, gap, depth):
    """floor(2**depth a**gap): V below it has a gap of at least `gap`."""
    failure = Fraction(2**zeros - 1, 2**zeros)
    return int(2**depth * failure**gap)


@pytest.mark.parametrize("margin", [MARGIN, 2.0**-12, 1.0])
@pytest.mark.parametrize(("zeros", "gap"), [(1, 0), (1, 17), (4, 2), (4, 60), (8, 0), (8, 1), (8, 300), (12, 9000)])
def test_gaps_change_exactly_at_the_powers(zeros, gap, margin):
    """Words one cell away from a power of 1 - 2**-zeros fall on their own side of it, whatever the filter doubts."""
    boundary = cell_boundary(zeros, gap + 1, 32)
    below, above = boundary - 1, boundary + 1
    words = f"{below:032b}{above:032b}"
    tail = "01" * 400
    assert geometrics(2, zeros, ScriptedBits(words + tail), margin).tolist() == [gap + 1, gap]
    assert ScriptedBits(f"{below:032b}" + tail).skip(zeros) == gap + 1
    assert ScriptedBits(f"{above:032b}" + tail).skip(zeros) == gap


@pytest.mark.parametrize(("zeros", "gap"), [(4, 60), (8, 10), (8, 300), (12, 9000)])
def test_the_cell_of_a_power_is_left_to_further_bits(zeros, gap):
    """The power is in this cell: V at its lower end has the longer gap, V at its upper end the shorter one."""
    boundary = cell_boundary(zeros, gap + 1, 32)
    for bit, expected in (("0", gap + 1), ("1", gap)):
        assert ScriptedBits(bit * 64).skip(zeros, boundary, 32) == expected
        assert geometrics(1, zeros, ScriptedBits(f"{boundary:032b}" + bit * 64)).tolist() == [expected]


@pytest.mark.parametrize("zeros", [1, 4, 8])
def test_small_words_are_decided_only_if_their_whole_cell_is(zeros):
    """Where V is tiny its cell spans several gaps; what one word decides must hold at both ends of its cell."""
    failure = Fraction(2**zeros - 1, 2**zeros)
    decided = 0
    for word in [*range(1, 40), *range(40, 40_000, 997)]:
        try:
            gap = int(geometrics(1, zeros, ScriptedBits(f"{word:032b}"))[0])
        except BitsExhausted:
            continue
        decided += 1
        assert failure ** (gap + 1) <= Fraction(word, 2**32)
        assert Fraction(word + 1, 2**32) <= failure**gap
    assert decided > 0


def test_batches_leave_no_position_out(monkeypatch):
    """One gap of zero after the other, a batch each: every position succeeds."""
    monkeypatch.setattr("dpselect.selection.draws._BATCH", 1)
    monkeypatch.setattr("dpselect.selection.draws._DIRECT", 0)
    word = f"{int(0.999 * 2**32):032b}"
    assert ScriptedBits(word * 6).survivors(5, 8).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("zeros", "expected"), [(8, [0, 3]), (7, [0, 1, 3]), (1, [0, 1, 3, 5]), (0, list(range(6)))])
def test_few_trials_draw_an_octet_each(zeros, expected):
    octets = [0, 1, 255, 0, 128, 127]
    assert ScriptedBits("".join(f"{octet:08b}" for octet in octets)).survivors(6, zeros).tolist() == expected


def test_a_dry_source_never_decides():
    with pytest.raises(BitsExhausted):
        ScriptedBits("0" * 32).skip(8)
    with pytest.raises(BitsExhausted):
        geometrics(1, 8, ScriptedBits("0" * 32))


def test_zero_words_ask_for_more():
    """V below 2**-32 is a gap beyond 5,600: the next word tells which."""
    gap = geometrics(1, 8, ScriptedBits("0" * 32 + "1" * 32))[0]
    failure = Fraction(255, 256)
    assert failure ** int(gap + 1) < Fraction(1, 2**32) < failure ** int(gap)


@pytest.mark.parametrize(
    ("zeros", "margin", "trials", "times"),
    [(3, MARGIN, 2**16, 60), (8, MARGIN, 2**16, 60), (7, MARGIN, 2**11, 1920), (3, 0.05, 2**12, 2)],
)
def test_successes_are_a_bernoulli_process(zeros, margin, trials, times):
    """Every position succeeds with probability 2**-zeros: counts per residue class, and of the totals of pairs."""
    classes = 8
    counts = np.zeros(classes + 1)
    for _ in range(times):
        positions = Draws().survivors(trials, zeros, margin)
        assert np.all(np.diff(positions) > 0)
        assert positions.size == 0 or (positions[0] >= 0 and positions[-1] < trials)
        counts[:classes] += np.bincount(positions % classes, minlength=classes)
        counts[classes] += trials - positions.size
    success = 2.0**-zeros
    assert_fits(counts, np.array([success / classes] * classes + [1 - success]))


def test_batches_continue_where_the_last_one_ended(monkeypatch):
    monkeypatch.setattr("dpselect.selection.draws._BATCH", 3)
    monkeypatch.setattr("dpselect.selection.draws._DIRECT", 0)
    counts = np.zeros(2)
    for _ in range(20):
        positions = Draws().survivors(2000, 3)
        assert np.all(np.diff(positions) > 0)
        counts += [positions.size, 2000 - positions.size]
    assert_fits(counts, np.array([1 / 8, 7 / 8]))


def test_no_trials_no_successes():
    assert Draws().survivors(0, 8).size == 0


def test_the_margin_covers_the_errors_that_its_comment_adds_up():
    assert MARGIN >= 256 * 2.0**-52 + 2 * 2.0**-53
