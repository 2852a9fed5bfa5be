"""Which candidates are read, and with how many zeros known: what is left unread is never a head that was missed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpselect.selection import flips, gaps
from dpselect.selection.draws import Draws
from dpselect.selection.flips import Heads, OpenCoins, choose_long, find_hot, flip, flip_at_once, flip_long
from dpselect.selection.gaps import BLOCK, Gaps, Rate, RowGaps, gaps_of, maxima_of_parts
from tests.reference import ball
from tests.seam import ScriptedBits, distribution
from tests.selection.samplers import Nobody, Surviving
from tests.statistical.goodness import assert_fits, assert_rejected

pytestmark = pytest.mark.usefixtures("each_kernel")

UNIT = Rate(Fraction(1))


def is_cold(exponent, zeros):
    """Whether exp(-exponent) < 2**-zeros, by balls."""
    with ctx.workprec(200):
        return ball(Fraction(exponent)) > zeros * arb(2).log()


@pytest.mark.parametrize("zeros", [1, 8, 12, 72])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(7, 3), Fraction(1, 2)], ids=str)
@pytest.mark.parametrize("best", [1000, -1000, 2**40])
def test_floors_of_integers_are_safe_and_sharp(best, rate, zeros):
    floor = Gaps(np.array([best, best - 1]), Rate(rate)).floor(zeros)
    assert isinstance(floor, np.int64)
    assert is_cold(rate * (best - int(floor) + 1), zeros)
    assert not is_cold(rate * (best - int(floor)), zeros)


@pytest.mark.parametrize("zeros", [1, 8, 12, 72])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(7, 3), Fraction(1e-9)], ids=str)
@pytest.mark.parametrize("best", [1000.5, -3e-7, 0.0])
def test_floors_of_floats_are_safe_and_sharp(best, rate, zeros):
    floor = Gaps(np.array([best, best]), Rate(rate)).floor(zeros)
    assert is_cold(rate * (Fraction(best) - Fraction(np.nextafter(floor, -np.inf))), zeros)
    assert not is_cold(rate * (Fraction(best) - Fraction(float(floor))) * (1 - Fraction(1, 2**40)), zeros)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("zeros", [8, 12])
def test_no_float_below_a_floor_is_hot(zeros, sign):
    """However the difference is rounded."""
    for best in (sign * k / 7 for k in range(1, 60)):
        floor = Gaps(np.array([best]), UNIT).floor(zeros)
        assert is_cold(Fraction(best) - Fraction(math.nextafter(floor, -math.inf)), zeros)


def test_floors_stay_in_the_type_of_the_scores():
    """Beyond the least score every score is hot; where all are cold, only the largest one counts as hot."""
    slow = Rate(Fraction(1, 100))
    assert Gaps(np.array([-100, -128], np.int8), slow).floor(8) == -128
    assert Gaps(np.array([5, 0], np.uint8), slow).floor(8) == 0
    assert Gaps(np.array([5, 0], np.int8), UNIT, at_least=1000).floor(8) == 127
    assert Gaps(np.array([5, 0], np.uint8), UNIT, at_least=1000).floor(8) == 255
    assert Gaps(np.array([5, 0], np.int8), UNIT, at_least=100).floor(8) == 95  # 8 ln 2 = 5.5


@pytest.mark.parametrize("candidates", [None, [2, 0, 1, 3]], ids=["all", "some"])
@pytest.mark.parametrize("rest", ["0", "1"])
def test_coins_that_an_octet_leaves_open_are_finished(rest, candidates):
    """256 exp(-1) = 94.2: the octet 94 is open, zeros make it heads and ones tails; 93 is heads and 95 tails."""
    scores = np.array([0, -1, -1, -1])
    octets = [94, 255, 93, 95] if candidates else [255, 95, 94, 93]  # the best one is heads whatever it draws
    source = ScriptedBits("".join(f"{octet:08b}" for octet in octets) + rest * 32)
    heads = flip(gaps_of(scores, UNIT), source, None if candidates is None else np.array(candidates))
    is_head = rest == "0"
    assert heads.tolist() == ([is_head, True, True, False] if candidates else [True, False, is_head, True])
    assert source.used == 64


@pytest.fixture
def tiny_blocks(monkeypatch):
    for module in (gaps, flips, flips):
        monkeypatch.setattr(module, "BLOCK", 2)


@pytest.fixture
def any_warm_crowd_is_large(monkeypatch):
    monkeypatch.setattr(flips, "_LARGE", 0)


def opened(scores):
    """The cold candidates that are read if all survive, by how many zeros are known of them."""
    contest, coins = gaps_of(scores, UNIT), OpenCoins()
    flips._add_cold(contest, find_hot(contest), coins, Surviving())
    return {depth: positions.tolist() for depth, positions in zip(coins._depths, coins._positions, strict=True)}


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_blocks_are_frozen_below_twelve_zeros_only(kind, tiny_blocks, monkeypatch):
    """12 ln 2 = 8.3: a block with a gap of 8 needs eight zeros, one with 9 needs twelve. Hot ones are left out."""
    monkeypatch.setattr(flips, "CROWDED", 1)
    scores = 100 - np.array([0, 50, 8, 70, 9, 9, 60, 5, 200], kind)
    assert opened(scores) == {8: [1, 2, 3, 6], 12: [4, 5, 8]}


def test_crowds_are_not_read_again(tiny_blocks):
    """A block of two is a crowd if it holds a hot candidate, and then all of its coins are flipped."""
    scores = 100 - np.array([0, 50, 6, 6, 3, 50])
    assert opened(scores) == {8: [2, 3]}
    assert opened(100 - np.array([0, 0, 50, 60])) == {12: [2, 3]}


def test_no_candidate_behind_the_last_one_is_read(monkeypatch):
    for module in (gaps, flips, flips):
        monkeypatch.setattr(module, "BLOCK", 4)
    scores = 100 - np.array([0, 70, 70, 70, 60])
    assert opened(scores)[12] == [4]


def members(heads):
    """The positions of heads, as flags in runs or as a list."""
    return sorted(distribution(heads.choose)) if isinstance(heads, Heads) else sorted(heads.tolist())


@pytest.mark.parametrize("one_in", [1, 1000], ids=["singles", "crowds"])
@pytest.mark.parametrize("rest", ["0", "1"])
def test_hot_coins_that_an_octet_leaves_open_are_finished(rest, one_in, tiny_blocks, monkeypatch):
    """The best one at 2 is heads; the octet 94 leaves 5 open; 4 and 7 are a head and a tail by their octets."""
    monkeypatch.setattr(flips, "CROWDED", one_in)
    monkeypatch.setattr(flips, "FEW", 0)
    scores = np.array([-50, -50, 0, -50, -1, -1, -50, -1])
    octets = [255, 93, 94, 95] if one_in == 1 else [255, 255, 93, 94, 255, 95]
    source = Nobody("".join(f"{octet:08b}" for octet in octets) + rest * 32)
    heads = flip_long(gaps_of(scores, UNIT), source)
    expected = [2, 4, 5] if rest == "0" else [2, 4]
    assert heads.size == len(expected)
    found = distribution(heads.choose)
    assert found == {position: Fraction(1, len(expected)) for position in expected}
    assert source.used == 8 * len(octets) + 32


@pytest.mark.parametrize("road", [flip_long, flip_at_once])
@pytest.mark.parametrize("rest", ["0", "1"])
def test_few_hot_coins_are_finished_without_an_octet(rest, road, tiny_blocks, monkeypatch):
    """2**32 exp(-1) = 1580030168.7: that word is open and the ones next to it are a head and a tail."""
    monkeypatch.setattr(flips, "CROWDED", 1)
    monkeypatch.setattr(flips, "MANY", 1)
    scores = np.array([-50, -50, 0, -50, -1, -1, -50, -1])
    words = [2**32 - 1, 1580030167, 1580030168, 1580030169]
    source = Nobody("".join(f"{word:032b}" for word in words) + rest * 32)
    heads = road(gaps_of(scores, UNIT), source)
    assert members(heads) == ([2, 4, 5] if rest == "0" else [2, 4])
    assert source.used == 32 * len(words) + 32


@pytest.mark.parametrize(("many", "few"), [(1, 0), (3, 0)], ids=["hot ones", "all"])
def test_many_hot_coins_begin_with_an_octet(many, few, monkeypatch):
    """Five of eight are hot: of these, or of all, the first octets are drawn, and one coin is open."""
    monkeypatch.setattr(flips, "MANY", many)
    monkeypatch.setattr(flips, "FEW", few)
    scores = np.array([-50, 0, -1, -50, -1, -1, -1, -50])
    octets = [255, 93, 94, 95, 95] if many == 1 else [255, 255, 93, 255, 94, 95, 95, 255]
    source = Nobody("".join(f"{octet:08b}" for octet in octets) + "0" * 32)
    heads = flip_at_once(gaps_of(scores, UNIT), source)
    assert members(heads) == [1, 2, 4]
    assert source.used == 8 * len(octets) + 32


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("rows", [False, True], ids=["vector", "rows"])
def test_cold_candidates_that_survive_have_seven_zeros(rows, kind, monkeypatch):
    """7 ln 2 = 4.9: gaps of 4 are hot and of 5 cold; every cold coin survives and then is finished."""
    finished = []

    class Watched(Surviving):
        def finish(self, exponents, prefixes, depths):
            finished.extend(zip(exponents.approximate.tolist(), np.asarray(depths).tolist(), strict=True))
            return np.ones(exponents.approximate.size, np.bool_)

    monkeypatch.setattr(flips, "MANY", 1)
    scores = np.array([0, -4, -5, -9], kind)
    gaps_ = RowGaps(scores[np.newaxis], UNIT) if rows else gaps_of(scores, UNIT)
    assert sorted(flip_at_once(gaps_, Watched()).tolist()) == [0, 1, 2, 3]
    assert sorted(finished) == [(0, 0), (4, 0), (5, 7), (9, 7)]


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(7, 3), Fraction(1, 2000), Fraction(1, 10**12)], ids=str)
@pytest.mark.parametrize("best", [1000, -3, 2**50])
def test_warm_coins_are_heads_once_in_sixteen_or_more_often(best, rate):
    """The largest gaps that are warm, as integers and as floats: exp(-rate gap) >= 1/16, and not for larger ones."""
    whole, below = Rate(rate).warm_gap
    with ctx.workprec(200):
        limit = arb(16).log()
        assert ball(rate * whole) < limit < ball(rate * (whole + 1))
        assert ball(rate * Fraction(below)) < limit < ball(rate * Fraction(below) * (1 + Fraction(1, 2**50)))
    for gap, is_warm in ((whole, True), (whole + 1, False)):
        assert Gaps(np.array([best, best - gap]), Rate(rate)).is_warm(flips.ALL) is is_warm
    for gap, is_warm in ((math.nextafter(below, 0), True), (below, False)):
        assert Gaps(np.array([0.0, -gap]), Rate(rate)).is_warm(flips.ALL) is is_warm
    assert not Gaps(np.array([0.0, -1e308]), Rate(rate)).is_warm(flips.ALL)


class Visiting(Draws):
    """Visits the given slots, counts what is finished, and flips no octets."""

    def __init__(self, slots, script=None):
        self.slots, self.finished = slots, []
        if script is not None:
            self.words = ScriptedBits(script).words

    def indices_below(self, bound, tries):
        return np.array(self.slots) if self.slots is not None else super().indices_below(bound, tries)

    def finish(self, exponents, prefixes, depths):
        self.finished.append(exponents.approximate.tolist())
        return super().finish(exponents, prefixes, depths)

    def first_octets(self, gaps, table):
        assert not gaps.size
        return super().first_octets(gaps, table)


def warm_and_cold(count):
    """Two warm runs of blocks, one below the best score by 1 and one by 2, and a cold block between them."""
    scores = np.full(5 * count, -1.0)
    scores[2 * count : 3 * count] = -100
    scores[3 * count :] = -2
    scores[0] = 0
    return scores


@pytest.mark.parametrize(
    ("slots", "read", "bits", "chosen"),
    [
        ([3, 5], [1, 2], "0" * 32 + "1" * 32, 3),
        ([3, 5], [1, 2], "1" * 32 + "0" * 32, 7),
        ([3, 3, 5, 3], [1, 2], "1" * 32 + "0" * 32, 7),
        ([0, 7], [0, 2], "1" * 64, 0),
        ([7], [2], "0" * 32, 9),
    ],
    ids=["first", "second", "again", "the best", "the last"],
)
def test_the_first_visited_head_is_chosen(slots, read, bits, chosen, tiny_blocks, any_warm_crowd_is_large):
    """Slots are those of the warm candidates alone: a cold one between them has none, and is not heads."""

    class Tails(Visiting):
        def survivors(self, count, zeros):
            return np.empty(0, np.int64)

    draws = Tails(slots, bits)
    assert choose_long(Gaps(warm_and_cold(2), UNIT), draws) == chosen
    assert draws.finished[-1] == read


@pytest.mark.parametrize(("size", "is_large"), [(63 * BLOCK, False), (64 * BLOCK, True)])
def test_small_warm_crowds_are_flipped_like_others(size, is_large):
    found = find_hot(gaps_of(np.zeros(size), UNIT))
    assert (found.warm, found.mixed) == (([(0, size)], []) if is_large else ([], [(0, size)]))
    assert found.crowds == [(0, size)]


def test_few_candidates_of_warm_crowds_are_read():
    draws = Visiting(None)
    choose_long(Gaps(warm_and_cold(128 * BLOCK), UNIT), draws)
    assert sum(map(len, draws.finished)) < 2048 + 100


def test_all_others_are_flipped_if_no_visited_one_is_heads(tiny_blocks, any_warm_crowd_is_large):
    """The visited one is tails, so that it is not chosen, and the others are as likely as each other."""
    contest = Gaps(np.array([0, -2, -2, 0, -1, -1]), UNIT)

    class AllTails(Draws):
        def __init__(self, inner):
            self.index = inner.index

        def indices_below(self, bound, tries):
            return np.array([1, 4])

        def finish(self, exponents, prefixes, depths):
            return np.zeros(exponents.approximate.size, np.bool_)

        def first_octets(self, gaps, table):
            return np.ones(gaps.size, np.bool_), np.empty(0, np.intp), np.empty(0, np.uint8)

    found = distribution(lambda draws: choose_long(contest, AllTails(draws)))
    assert found == {position: Fraction(1, 4) for position in (0, 2, 3, 5)}


@pytest.mark.slow
def test_warm_candidates_are_heads_as_often_as_their_coins():
    """Half of them tie with the best; the others are heads with exp(-2) = 0.135, and not half as often again."""
    scores = np.tile([0.0, -2.0], 2**15)
    contest, runs = Gaps(scores, UNIT), 12_000
    assert contest.is_warm(flips.ALL)
    losers = sum(choose_long(contest, Draws()) % 2 for _ in range(runs))
    p = math.exp(-2)
    truth = [p / (1 + p), 1 / (1 + p)]  # of many heads, the share of the losers is that of their expected number
    assert_fits([losers, runs - losers], truth)
    wrong = p * 3 / 2
    assert_rejected([losers, runs - losers], [wrong / (1 + wrong), 1 / (1 + wrong)], truth=truth)


def test_neighbouring_blocks_are_read_together(monkeypatch):
    monkeypatch.setattr(flips, "_RUN", 4)
    assert flips._runs(np.array([], np.int64)) == []
    assert flips._runs(np.array([0, 1, 2, 3, 4, 6, 7, 9], np.int64)) == [(0, 4), (4, 5), (6, 8), (9, 10)]
    assert flips._runs(np.array([1, 2, 3, 4, 5], np.int64)) == [(1, 5), (5, 6)]
    assert flips._runs(np.array([1000, 1001, 1003], np.int64)) == [(1000, 1002), (1003, 1004)]


@pytest.mark.parametrize(("many", "is_crowd"), [(BLOCK // 32, False), (BLOCK // 32 + 1, True)])
def test_one_in_thirty_two_is_no_crowd_yet(many, is_crowd):
    scores = np.zeros(3 * BLOCK)
    scores[BLOCK + 100 : BLOCK + 100 + many] = 50
    found = find_hot(gaps_of(scores, UNIT))
    assert found.in_crowd.tolist() == [False, is_crowd, False]
    assert found.crowds == ([(BLOCK, 2 * BLOCK)] if is_crowd else [])
    assert found.positions.tolist() == ([] if is_crowd else list(range(BLOCK + 100, BLOCK + 100 + many)))


@pytest.mark.parametrize("one_in", [1, 2, 4, 1000])
@given(st.lists(st.sampled_from([0, 0, 0, 100]), min_size=1, max_size=60))
def test_every_hot_candidate_is_listed_or_in_a_crowd(one_in, scores):
    """In blocks of two, of which three are looked at together: scattered ones, neighbours, and a short last one."""
    scores = np.array([*scores, 100])
    with pytest.MonkeyPatch.context() as patch:
        for module in (gaps, flips):
            patch.setattr(module, "BLOCK", 2)
        patch.setattr(flips, "_SCATTERED", 3)
        patch.setattr(flips, "_RUN", 2)
        patch.setattr(flips, "CROWDED", one_in)
        found = find_hot(gaps_of(scores, UNIT))
    crowd = [position for start, stop in found.crowds for position in range(start, stop)]
    listed = found.positions.tolist()
    assert len({*crowd, *listed}) == len(crowd) + len(listed)
    assert {*np.flatnonzero(scores == 100).tolist()} - {*crowd} == {*listed}
    flags = np.repeat(found.in_crowd, 2)[: scores.size]
    assert sorted(crowd) == np.flatnonzero(flags).tolist()
    if one_in == 1:
        assert all(scores[start:stop].min() == 100 for start, stop in found.crowds)  # a warm run is a crowd anyway


@pytest.mark.parametrize("far", [1, 5], ids=["neighbours", "scattered"])
def test_what_is_just_at_the_floor_is_hot(far):
    """8 ln 2 = 5.5: a whole gap of 5 is hot, and alone in its block; one of 6 is not."""
    scores = np.full(9 * BLOCK, -1000)
    scores[[3, far * BLOCK + 7, far * BLOCK + 8]] = 0, -5, -6
    contest = gaps_of(scores, UNIT)
    assert contest.floor(8) == -5
    assert find_hot(contest).positions.tolist() == [3, far * BLOCK + 7]


def test_blocks_are_looked_at_in_parts_and_a_short_one_by_itself(monkeypatch):
    monkeypatch.setattr(flips, "_SCATTERED", 3)
    found = [part.tolist() for part in flips._parts(np.arange(0, 20, 2), 18)]
    assert found == [[0, 2, 4], [6, 8, 10], [12, 14, 16], [18]]
    assert [part.size for part in flips._parts(np.arange(300), 300)] == [3] * 100
    assert list(flips._parts(np.empty(0, np.int64), 5)) == []


def test_scattered_blocks_that_hold_few_are_read_together(monkeypatch):
    scores = np.zeros(9 * BLOCK + 5)
    places = [3, 2 * BLOCK, 2 * BLOCK + 9, 5 * BLOCK - 1, 9 * BLOCK + 1]
    scores[places] = 50
    monkeypatch.setattr(flips, "_runs", lambda blocks: [(9, 10)] if blocks == [9] else pytest.fail("read one by one"))
    found = find_hot(gaps_of(scores, UNIT))
    assert found.positions.tolist() == places[:-1]
    assert found.crowds == [(9 * BLOCK, 9 * BLOCK + 5)]


def test_the_last_block_may_be_short():
    scores = np.zeros(2 * BLOCK + 3)
    scores[-1] = 50
    found = find_hot(gaps_of(scores, UNIT))
    assert found.crowds == [(2 * BLOCK, 2 * BLOCK + 3)]
    assert found.in_crowd.tolist() == [False, False, True]


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize(
    "size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 64 * BLOCK, 65 * BLOCK + 5, 129 * BLOCK, 257 * BLOCK]
)
@pytest.mark.parametrize("shift", [0, -50])
def test_each_block_has_its_maximum(size, kind, shift):
    values = np.random.default_rng(size).integers(0, 100, size)
    values = (values + (0 if kind is np.uint64 else shift)).astype(kind)
    expected = [values[start : start + BLOCK].max() for start in range(0, size, BLOCK)]
    assert maxima_of_parts(values, BLOCK).tolist() == expected
