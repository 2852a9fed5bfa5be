"""Summaries: any split and any order of merges give the distribution of one selection, exactly."""

import copy
import itertools
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import PermuteAndFlip
from dpselect._scores import as_vector
from dpselect.errors import InvalidType, InvalidValue, ScoresChanged
from dpselect.mechanisms import summary as part
from dpselect.mechanisms.summary import Stream, merged
from dpselect.selection import flips, gaps
from dpselect.selection.draws import Draws
from tests import reference
from tests.kernels import needs_kernel
from tests.reference import pmf_by_permutations
from tests.seam import distribution, heads_probability
from tests.statistical.goodness import assert_fits, assert_rejected

pytestmark = pytest.mark.usefixtures("each_kernel")

UNIT = PermuteAndFlip(epsilon=2)  # rate one
CASES = [[0, 1, 2], [5, 0, 5, 1], [0, 0, 0, 0], [3, 1, 0, 1, 2], [0, 7, 1, 0], [2, 2, 0, 9, 0]]


def seen(part, mechanism, scores, labels, draws, steady=False):
    """The part with a block of candidates after it."""
    stream = Stream(mechanism, part, steady)
    stream.add(scores, labels, draws)
    return stream.part(draws)


def trees(leaves):
    """All binary trees over the leaves in this order."""
    if len(leaves) == 1:
        yield leaves[0]
    for cut in range(1, len(leaves)):
        for left in trees(leaves[:cut]):
            for right in trees(leaves[cut:]):
                yield left, right


def summarised(tree, scores, draws, kind):
    """The part of a tree: a leaf is a block of candidates, labelled by themselves."""
    if isinstance(tree, tuple):
        return merged(*(summarised(branch, scores, draws, kind) for branch in tree), draws)
    return seen(None, UNIT, as_vector(kind([scores[i] for i in tree])), list(tree), draws)


def as_fractions(scores):
    return [Fraction(score) / 3**40 * 3**40 for score in scores]


def distribution_of(make, size, name="label"):
    outcomes = distribution(lambda draws: getattr(make(draws), name))
    return [outcomes.get(candidate, Fraction(0)) for candidate in range(size)]


def expected(losses):
    return pmf_by_permutations([heads_probability(loss) for loss in losses])


@pytest.mark.parametrize(
    "losses", [pytest.param(case, marks=[pytest.mark.slow] if len(case) > 4 else []) for case in CASES], ids=str
)
def test_every_merge_tree_is_exact(losses):
    """Each candidate a leaf, all shapes of the tree, in several orders of the leaves."""
    scores, truth = [40 - loss for loss in losses], expected(losses)
    orders = list(itertools.permutations(range(len(losses))))
    for order in orders if len(losses) < 4 else orders[:: len(orders) // (6 if len(losses) == 4 else 2)]:
        for tree in trees([(i,) for i in order]):
            flat = _listed(tree)
            assert distribution_of(lambda draws, flat=flat: summarised(flat, scores, draws, list), len(losses)) == truth


def _listed(tree):
    """Leaves as lists, so that a tuple is always a fork."""
    return list(tree) if isinstance(tree[0], int) else tuple(_listed(branch) for branch in tree)


SHORT = [losses for losses in CASES if len(losses) < 5]
LONG = [losses for losses in CASES if len(losses) >= 5]
KINDS = {"array": np.array, "list": list, "fractions": as_fractions}


@pytest.mark.parametrize("steady", [False, True], ids=["fast", "steady"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "losses", [*SHORT, *(pytest.param(losses, marks=pytest.mark.slow) for losses in LONG)], ids=str
)
def test_every_split_into_blocks_is_exact(losses, kind, steady):
    """One summary that sees blocks one after another, with rising and falling maxima."""
    check_every_split(losses, KINDS[kind], steady)


def test_every_split_of_five_candidates_is_exact():
    check_every_split(LONG[0], np.array, steady=False)


def check_every_split(losses, kind, steady):
    scores, truth, size = [40 - loss for loss in losses], expected(losses), len(losses)
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, size), k) for k in range(size)):
        ends = [0, *cuts, size]

        def watched(draws, ends=ends):
            part = None
            for start, stop in itertools.pairwise(ends):
                part = seen(part, UNIT, as_vector(kind(scores[start:stop])), list(range(start, stop)), draws, steady)
            return part

        assert distribution_of(watched, size) == truth


@pytest.fixture
def waits(monkeypatch):
    """Blocks wait if the kernel is there, however many of their candidates are hot. A loss of 6 or more is cold."""
    monkeypatch.setattr(gaps, "MANY", 1)


WAITING = [
    pytest.param([[0, 1], [2]], [np.array] * 2, id="the best first"),
    pytest.param([[9, 2], [1, 0]], [np.array] * 2, id="the best last"),
    pytest.param([[0], [0], [3]], [np.array] * 3, id="two are equal"),
    pytest.param([[0, 7], [6, 9]], [np.float64] * 2, id="cold ones"),
    pytest.param([[1, 1], [0], [1]], [np.array, np.float64, np.array], id="another type"),
    pytest.param([[1], [2], [0, 1]], [np.float64, list, np.array], id="a list between"),
    pytest.param([[1], [0], [2]], [np.array, as_fractions, np.array], id="fractions between"),
]


def fed(blocks, kinds, draws, start=None):
    """The stream of these blocks, all of which may wait."""
    stream = Stream(UNIT, start)
    for losses, kind in zip(blocks, kinds, strict=True):
        stream.add(as_vector(np.atleast_1d(kind([40 - loss for loss in losses]))), None, draws, may_wait=True)
    return stream


@pytest.mark.parametrize("most", [0, 3, 2**15])
@pytest.mark.parametrize(("blocks", "kinds"), WAITING)
@pytest.mark.usefixtures("waits")
def test_blocks_that_wait_are_exact(blocks, kinds, most, monkeypatch):
    """They are flipped together, in groups of a few coins, or one by one."""
    monkeypatch.setattr(part, "_MANY", most)
    truth = expected([loss for losses in blocks for loss in losses])
    assert distribution_of(lambda draws: fed(blocks, kinds, draws).part(draws), len(truth), "head") == truth


@pytest.mark.parametrize("known", [True, False], ids=["hint", "no hint"])
@pytest.mark.parametrize("losses", [[0, 3, 1, 7], [1, 3, 0, 6], [9, 1, 0, 2]], ids=str)
@pytest.mark.usefixtures("waits")
def test_blocks_that_wait_after_others_are_exact(losses, known, monkeypatch):
    """After a part whose best score is larger or smaller; and if the type of the blocks cannot hold that score."""

    def watched(draws):
        first = seen(None, UNIT, np.array([40 - losses[0]]), None, draws)
        with pytest.MonkeyPatch.context() as blind:
            if not known:
                held = gaps._native
                blind.setattr(gaps, "_native", lambda hint, kind: None if hint == first.maximum else held(hint, kind))
            return fed([losses[1:2], losses[2:]], [np.array] * 2, draws, first).part(draws)

    assert distribution_of(watched, 4, "head") == expected(losses)


@pytest.mark.parametrize("may_wait", [True, False])
@pytest.mark.parametrize("very_long", [2, 2**22], ids=["by blocks", "of all"])
@pytest.mark.parametrize("losses", [[14, 15, 14], [13, 14, 14], [9, 14, 14], [3, 14, 9]], ids=str)
@pytest.mark.usefixtures("waits")
def test_blocks_far_below_what_came_before_are_exact(losses, very_long, may_wait, monkeypatch):
    """20 ln 2 = 13.9: the best of a block of 14 needs twenty zeros, and that of 13 needs twelve."""
    for module, name, value in (
        (gaps, "SHORT", 2),
        (gaps, "BLOCK", 2),
        (flips, "BLOCK", 2),
        (flips, "VERY_LONG", very_long),
    ):
        monkeypatch.setattr(module, name, value)

    def watched(draws):
        stream = Stream(UNIT, seen(None, UNIT, np.array([40]), None, draws))
        stream.add(np.array([40 - loss for loss in losses]), None, draws, may_wait=may_wait)
        return stream.part(draws)

    assert distribution_of(watched, 4, "head") == expected([0, *losses])


@needs_kernel
@pytest.mark.usefixtures("waits")
def test_blocks_do_wait(each_kernel, monkeypatch):
    """Otherwise the tests above would be about something else."""
    flipped = []
    stream = fed([[0, 9], [1], [2, 0]], [np.array] * 3, Draws())
    assert stream.candidates == 5
    assert (stream._part is None) == (each_kernel == "compiled")
    monkeypatch.setattr(part, "_flipped", flipped.append)
    assert stream.part(Draws()).candidates == 5
    assert not flipped


@needs_kernel
@pytest.mark.parametrize("wrong", ["depths", "starts", "best"])
@pytest.mark.usefixtures("waits")
def test_wrong_coins_of_blocks_that_wait_are_noticed(wrong, each_kernel, monkeypatch):
    """The power of the enumeration."""
    if each_kernel == "plain":
        pytest.skip("needs a list of the compiled kernel, without which no block waits")
    blocks, kinds = [[1, 9], [0, 2]], [np.array] * 2
    add = part._Waiting.add

    def careless(self, left, gaps, best):
        if wrong == "depths":
            left = left._replace(depths=left.depths - left.depths // 8)
        add(self, left, gaps, best)
        if wrong == "starts":
            self._starts[-1] = 0
        if wrong == "best":
            self.best += 1

    monkeypatch.setattr(part._Waiting, "add", careless)

    def watched(draws):
        first = seen(None, UNIT, np.array([39]), None, draws)
        return fed(blocks, kinds, draws, first).part(draws)

    assert distribution_of(watched, 5, "head") != expected([1, 1, 9, 0, 2])


def test_what_came_before_a_bad_block_is_seen():
    watched = UNIT.summary()
    with pytest.raises(InvalidValue, match="finite"):
        watched.feed([np.array([0.0, 1000.0]), np.array([np.nan]), np.array([2000.0])])
    assert (watched.candidates, watched.result()) == (2, 1)


@pytest.mark.parametrize("size", [1, 5000])
def test_no_more_blocks_wait_than_fit(size, monkeypatch):
    """Far below the best score, a block has no coin to flip, and still takes memory while it waits."""
    most, sizes, add = 16, [], part._Waiting.add
    monkeypatch.setattr(part, "_MANY_BLOCKS", most)
    monkeypatch.setattr(gaps, "MANY", 1)
    monkeypatch.setattr(part._Waiting, "add", lambda self, *rest: (add(self, *rest), sizes.append(len(self._lists))))
    watched = UNIT.summary()
    watched.update([10**6])
    watched.feed(np.zeros(size) for _ in range(100))
    assert (watched.candidates, watched.result()) == (100 * size + 1, 0)
    assert max(sizes, default=0) <= most


@needs_kernel
def test_scores_that_change_while_they_are_listed_leave_a_summary_as_it_was(each_kernel, monkeypatch):
    """A score that becomes larger than the best one, after that was found, is noticed when the coins are flipped."""
    if each_kernel == "plain":
        pytest.skip("needs a list of the compiled kernel, without which no block waits")
    watched, listed = UNIT.summary(), gaps.Gaps.listed

    def changed(self):
        found = listed(self)
        found.hot.scores[0] += 1
        return found

    watched.update([3.0])
    with monkeypatch.context() as patch:
        patch.setattr(gaps.Gaps, "listed", changed)
        with pytest.raises(ScoresChanged):
            watched.feed([np.r_[7.0, 7.0, np.zeros(98)], np.r_[5.0, np.zeros(98)]])
    assert (watched.candidates, watched.result()) == (1, 0)
    watched.update([1000.0])
    assert (watched.candidates, watched.result()) == (2, 1)


def test_a_stream_may_look_at_its_own_summary():
    """A generator that shows how far it is, or asks for a result, or adds candidates."""
    watched, looks = UNIT.summary(), []

    def blocks():
        for best in (0.0, 1000.0, 500.0):
            yield np.array([best, 0.0])
            looks.append((watched.candidates, watched.result() if best else None))
            watched.update(np.array([best + 5000.0]) if best == 500.0 else np.array([0.0]))

    watched.feed(blocks())
    assert looks == [(2, None), (5, 3), (8, 3)]
    assert (watched.candidates, watched.result()) == (9, 8)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_a_copy_made_while_a_stream_is_read_has_the_same_coins(copied):
    copies = []

    def blocks():
        for _ in range(3):
            yield np.zeros(1000)
            copies.append((copied(watched), watched.result()))

    watched = PermuteAndFlip("0.01").summary()
    watched.feed(blocks())
    assert [one.result() for one, _ in copies] == [result for _, result in copies]


def test_long_blocks_are_exact(monkeypatch):
    for module in (gaps, flips):
        monkeypatch.setattr(module, "BLOCK", 2)
    monkeypatch.setattr(part, "MIDDLE", 2)
    losses = [1, 0, 9, 2, 1]
    scores = np.array([40 - loss for loss in losses])

    def watched(draws):
        part = seen(None, UNIT, scores[:2], [0, 1], draws)
        return seen(part, UNIT, scores[2:], [2, 3, 4], draws)

    assert distribution_of(watched, 5) == expected(losses)


def test_a_wrong_merge_is_noticed():
    """The power of the enumeration: a merge that forgets the difference of the best scores has another distribution."""
    losses = [0, 1, 2]

    def careless(draws):
        parts = [seen(None, UNIT, np.array([40 - loss]), [i], draws) for i, loss in enumerate(losses)]
        first, second, third = (replace(part, arrival=draws.arrival(Fraction(-40), 1, draws)) for part in parts)
        return first.merged(second, draws).merged(third, draws)

    assert distribution_of(careless, 3) != expected(losses)


def test_mixed_types_keep_their_exact_value():
    """An int beyond floats, a float, a Fraction and small ints, in any order of blocks: only the best has a chance."""
    blocks = [[2**60 + 1], [float(2**60)], [Fraction(2**61, 2) - 50], np.array([-5], np.int8), np.array([7], np.uint64)]
    for order in itertools.permutations(range(5)):
        watched = PermuteAndFlip(epsilon=2000).summary()
        for number in order:
            watched.update(blocks[number], labels=[number])
        assert watched.result() == 0


@pytest.mark.parametrize("pieces", [1, 5, 16])
def test_many_parts_fit(pieces):
    scores = np.random.default_rng(3).poisson(30, 3_000).astype(float)
    levels, inverse = np.unique(scores, return_inverse=True)
    mechanism, draws = PermuteAndFlip(epsilon="0.5"), 800

    def select():
        parts = []
        for block in np.array_split(scores, pieces):
            part = mechanism.summary()
            part.update(block)
            parts.append(part)
        while len(parts) > 1:
            parts = [
                a.merge(b) for a, b in itertools.zip_longest(parts[::2], parts[1::2], fillvalue=mechanism.summary())
            ]
        return parts[0].result()

    counts = np.bincount(inverse[[select() for _ in range(draws)]], minlength=levels.size)
    by_level = [
        np.bincount(inverse, weights=reference.permute_and_flip_pmf(scores, rate), minlength=levels.size)
        for rate in (0.25, 0.5)
    ]
    assert_fits(counts, by_level[0])
    assert_rejected(counts, by_level[1], truth=by_level[0])


def test_positions_are_counted_from_the_start():
    first, second = UNIT.summary(), UNIT.summary()
    first.update([0, 0])
    first.update([0])
    second.update(np.array([0, 0]))
    second.update([1000, 0])
    assert first.merge(second).result() == 5
    assert second.merge(first).result() == 2
    assert (first.candidates, second.candidates, first.merge(second).candidates) == (3, 4, 7)


def test_empty_summaries_are_the_identity():
    full, empty = UNIT.summary(), UNIT.summary()
    full.update([1, 2, 900], labels=["a", "b", "c"])
    for result in (full.merge(empty), empty.merge(full), empty.merge(full).merge(empty)):
        assert result.result() == "c"
    empty.update([])
    empty.update(np.array([]))
    assert empty.candidates == empty.merge(UNIT.summary()).candidates == 0
    with pytest.raises(InvalidValue, match="seen no candidate"):
        empty.result()


def test_the_result_is_told_once():
    watched = PermuteAndFlip(epsilon="0.001").summary()
    watched.update(np.zeros(1000))
    assert len({watched.result() for _ in range(20)}) == 1


@pytest.mark.parametrize(
    "other",
    [PermuteAndFlip(3), PermuteAndFlip(2, 2), PermuteAndFlip(2, monotonic=True), PermuteAndFlip(2, score_range=2)],
)
def test_other_parameters_do_not_merge(other):
    with pytest.raises(InvalidValue, match="same mechanism"):
        UNIT.summary().merge(other.summary())


def test_only_other_summaries_merge():
    watched = UNIT.summary()
    watched.update([1, 2])
    for other, error, words in ((watched, InvalidValue, "merged once only"), (3, InvalidType, "a Summary, got int")):
        with pytest.raises(error, match=words):
            watched.merge(other)


def test_pickles_are_small_and_exact():
    watched = UNIT.summary()
    watched.update([Fraction(1, 3), Fraction(10**30, 7)], labels=["low", "high"])
    frozen = pickle.dumps(watched)
    assert len(frozen) < 1_000
    thawed = pickle.loads(frozen)  # noqa: S301 - our own
    assert thawed._part == watched._part
    assert thawed.merge(UNIT.summary()).result() == "high"


def test_nothing_secret_is_shown():
    watched = UNIT.summary()
    watched.update([123456789], labels=["canary"])
    assert repr(watched) == "Summary(PermuteAndFlip(epsilon=2, sensitivity=1, monotonic=False))"
    assert "123456789" not in repr(watched._part)


def test_bad_blocks():
    watched = UNIT.summary()
    with pytest.raises(InvalidValue, match="finite"):
        watched.update([1.0, float("nan")])
    with pytest.raises(InvalidValue, match="no column 'missing'"):
        watched.feed(pa.table({"score": [1]}).to_batches(), "missing")
    with pytest.raises(InvalidValue, match="name the column of the scores"):
        watched.feed([], labels="name")
    assert watched.candidates == 0


@given(
    st.lists(
        st.lists(st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False), max_size=4),
        max_size=6,
    )
)
def test_any_stream_selects_a_candidate(blocks):
    watched = PermuteAndFlip("0.1").summary()
    watched.feed(blocks)
    total = sum(map(len, blocks))
    assert watched.candidates == total
    if total:
        assert 0 <= watched.result() < total


@pytest.mark.parametrize(("name", "shown"), [("x" * 40, "x" * 40), ("x" * 39 + "yz", "x" * 39 + "y")])
def test_a_long_name_is_cut_in_the_message(name, shown):
    with pytest.raises(InvalidValue, match=f"no column '{shown}': name"):
        UNIT.summary().feed([{"score": [1]}], name)
