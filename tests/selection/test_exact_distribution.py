"""The kernels' distributions, as exact rationals, equal brute force over permutations."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpselect.mechanisms import exponential, permute_and_flip
from dpselect.mechanisms.exponential import choose_by_envelope, choose_by_rejection
from dpselect.mechanisms.permute_and_flip import choose_early, choose_head, choose_head_in_rows
from dpselect.selection import flips, gaps
from dpselect.selection.gaps import Rate, RationalGaps, RowGaps, gaps_of
from tests.reference import pmf_by_permutations, softmax_pmf
from tests.seam import distribution, heads_probability
from tests.selection.samplers import as_list, once

pytestmark = pytest.mark.usefixtures("each_kernel")
UNIT = Rate(Fraction(1))
CASES = [
    [0],
    [0, 0],
    [0, 1],
    [5, 0, 5],
    [0, 7, 1],  # 7 is cold
    [0, 6, 7, 0],
    [9, 0, 13, 1],  # 13 is frozen
    [1, 0, 2, 1],
    [0, 0, 0, 0, 0],
    [7, 1, 0, 1, 6],
]
TYPES = [np.int64, np.float64, np.uint8, Fraction, RationalGaps]


def contest(losses, kind, **options):
    """Gaps of scores that are so far below a best score of 40."""
    scores = [40 - loss for loss in losses]
    if kind is RationalGaps:
        return RationalGaps([Fraction(score) for score in scores], UNIT)
    vector = [Fraction(score) for score in scores] if kind is Fraction else np.array(scores, dtype=kind)
    return gaps_of(vector, UNIT, **options)


def brute_force(losses):
    return pmf_by_permutations([heads_probability(loss) for loss in losses])


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Blocks of two candidates, so that five make a long vector; returns a setter of what counts as a crowd."""
    for module in (gaps, flips):
        monkeypatch.setattr(module, "BLOCK", 2)
    monkeypatch.setattr(permute_and_flip, "MIDDLE", 2)
    monkeypatch.setattr(gaps, "MANY", 1)
    for module in (gaps, exponential):
        monkeypatch.setattr(module, "SHORT", 2)

    def crowded(one_in):
        monkeypatch.setattr(flips, "CROWDED", one_in)
        monkeypatch.setattr(gaps, "_FIRST", 64 if one_in == 1 else 0)

    return crowded


def assert_exact(losses, kind, choose=choose_head, **options):
    outcomes = distribution(lambda draws: choose(contest(losses, kind, **options), draws))
    assert as_list(outcomes, len(losses)) == brute_force(losses)


@pytest.mark.parametrize("few", [0, 512], ids=["octets first", "at once"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("losses", CASES)
def test_hot_and_cold_ones_of_short_vectors_are_exact(losses, kind, few, monkeypatch):
    """However many are hot, they are listed: the others are read only if they start with zeros."""
    for module in (gaps, flips):
        monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(flips, "FEW", few)
    assert_exact(losses, kind)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("losses", CASES)
def test_short_vectors_are_exact(losses, kind):
    assert_exact(losses, kind)


@pytest.mark.parametrize("one_in", [1, 1000], ids=["singles", "crowds"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("losses", [case for case in CASES if len(case) > 2])
def test_long_vectors_are_exact(losses, kind, one_in, tiny_blocks):
    tiny_blocks(one_in)
    assert_exact(losses, kind)


@pytest.mark.parametrize("very_long", [2, 2**22], ids=["by blocks", "of all"])
@pytest.mark.parametrize("zeros", [8, 12])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize(
    "losses", [[9, 0, 12], [0, 11, 12, 6], pytest.param([8, 17, 5, 0, 13], marks=pytest.mark.slow)]
)
def test_a_list_of_hot_ones_at_any_depth_is_exact(
    losses, kind, zeros, very_long, each_kernel, tiny_blocks, monkeypatch
):
    """8 ln 2 = 5.5 and 13 ln 2 = 9.0, or 12 ln 2 = 8.3 and 17 ln 2 = 11.8: the block of 12 is frozen, and 9 is cold."""
    tiny_blocks(1)
    monkeypatch.setattr(flips, "VERY_LONG", very_long)
    for name in ("_DEEP", "_LESS_DEEP"):
        monkeypatch.setattr(gaps, name, zeros)
    listed = contest(losses, kind).listed()
    assert (listed is None) == (each_kernel == "plain")
    assert listed is None or listed.zeros == zeros
    assert_exact(losses, kind)


@pytest.mark.parametrize("visits", [0, 1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("losses", [[0, 1, 2], [1, 0, 2, 1], [1, 1, 9, 0], [2, 2, 0, 1, 3], [2, 1, 0, 50, 1, 2]])
def test_warm_candidates_that_are_flipped_when_visited_are_exact(losses, kind, visits, tiny_blocks, monkeypatch):
    """4 ln 2 = 2.8: blocks of gaps up to 2 are warm. They stand alone, beside crowds and beside cold candidates."""
    tiny_blocks(1000)
    monkeypatch.setattr(flips, "_VISITS", visits)
    monkeypatch.setattr(flips, "_LARGE", 0)
    monkeypatch.setattr(flips, "_RUN", 1)
    assert flips.find_hot(contest(losses, kind)).warm
    assert_exact(losses, kind)


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
@pytest.mark.parametrize("losses", [case for case in CASES if len(case) < 5])
def test_early_exit_is_exact(losses, steps, tiny_blocks):
    assert_exact(losses, np.int64, lambda contest, draws: choose_early(contest, draws, steps))


def test_early_exit_is_exact_in_crowds(tiny_blocks):
    tiny_blocks(1000)
    assert_exact([1, 0, 2, 1], np.int64, lambda contest, draws: choose_early(contest, draws, steps=2))


@pytest.mark.parametrize("many", [1, 5], ids=["hot ones listed", "all"])
def test_rows_are_exact_and_independent(many, monkeypatch):
    for module in (gaps, flips):
        monkeypatch.setattr(module, "MANY", many)
    first, second = [0, 1, 7], [2, 0, 0]
    matrix = 40 - np.array([first, second])
    outcomes = distribution(lambda draws: tuple(choose_head_in_rows(RowGaps(matrix, UNIT), draws)))
    for pair in itertools.product(range(3), repeat=2):
        assert outcomes.get(pair, 0) == brute_force(first)[pair[0]] * brute_force(second)[pair[1]]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("losses", [case for case in CASES if len(case) < 5])
def test_rejection_is_exactly_the_softmax(losses, batch):
    def choose(draws):
        return choose_by_rejection(contest(losses, np.int64), draws, batch)

    outcomes = distribution(once(choose, "indices_below"))
    assert as_list(outcomes, len(losses)) == softmax_pmf([heads_probability(loss) for loss in losses])


@pytest.mark.parametrize("one_in", [1, 1000], ids=["singles", "crowds"])
@pytest.mark.parametrize(
    "losses", [[0, 1, 7], *(pytest.param(more, marks=pytest.mark.slow) for more in ([9, 0, 13, 1], [7, 1, 0, 1, 6]))]
)
def test_the_envelope_is_exactly_the_softmax(losses, one_in, tiny_blocks):
    tiny_blocks(one_in)

    def choose(draws):
        return choose_by_envelope(contest(losses, np.float64), draws, batch=1)

    outcomes = distribution(once(choose, "indices_below"))
    assert as_list(outcomes, len(losses)) == softmax_pmf([heads_probability(loss) for loss in losses])
