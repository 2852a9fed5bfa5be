"""Lazy selections: exactly the distribution of the mechanism for every public bound, by following every outcome."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import expected_evaluations
from dpselect.mechanisms.exponential import choose_by_exponents
from dpselect.selection.draws import Draws
from dpselect.selection.proposals import flip_lazily, reject_lazily
from tests.reference import pmf_by_permutations, softmax_pmf
from tests.seam import Refused, distribution, heads_probability
from tests.selection.samplers import as_list
from tests.statistical.goodness import assert_fits, assert_rejected

CASES = [[0], [0, 0], [0, 1], [3, 0, 3], [0, 7, 1], [2, 0, 1, 0], [1, 0, 2, 1]]
LAZY = [PermuteAndFlip, ExponentialMechanism]


@pytest.mark.parametrize("above", [0, 1, 4], ids=["attained", "one above", "four above"])
@pytest.mark.parametrize("losses", CASES, ids=str)
def test_lazy_flips_are_permute_and_flip_for_every_bound(losses, above):
    def run(draws):
        return flip_lazily(lambda r: Fraction(losses[r] + above), len(losses), draws)

    assert as_list(distribution(run), len(losses)) == pmf_by_permutations([heads_probability(x) for x in losses])


def coins_of(losses, above):
    return [heads_probability(loss + above) for loss in losses]


def started_over(coins):
    """The remedy that starts over when there is no head: permute-and-flip, given that there is one."""
    heads = pmf_by_permutations(coins)
    return [p / sum(heads) for p in heads]


def any_candidate(coins):
    none = math.prod(1 - p for p in coins)
    return [p + none / len(coins) for p in pmf_by_permutations(coins)]


def nothing(coins):
    return [*pmf_by_permutations(coins), math.prod(1 - p for p in coins)]


@pytest.mark.parametrize("remedy", [started_over, any_candidate, nothing])
def test_the_simple_remedies_are_not_private(remedy):
    """A bound that one neighbour attains and the other does not; one step of a score is half of epsilon."""
    odds = 1 / heads_probability(2)  # exp(epsilon)
    assert remedy(coins_of([0, 1], 1))[:2] != pmf_by_permutations(coins_of([0, 1], 0)), "it is not permute-and-flip"
    here, there = remedy(coins_of([0, 9], 0)), remedy(coins_of([1, 8], 0))
    assert any(p > odds * q or q > odds * p for p, q in zip(here, there, strict=True))
    ours, neighbours = (pmf_by_permutations(coins_of(losses, 0)) for losses in ([0, 9], [0, 7]))  # shifted: same gaps
    assert all(1 / odds <= p / q <= odds for p, q in zip(ours, neighbours, strict=True)), "the remedy that is taken"


class AFewProposals:
    """Branching draws that refuse after so many proposals."""

    def __init__(self, draws, most):
        self.draws, self.left = draws, most
        self.flip = draws.flip

    def index(self, bound):
        if not self.left:
            raise Refused
        self.left -= 1
        return self.draws.index(bound)


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("above", [0, 1, 4], ids=["attained", "one above", "four above"])
@pytest.mark.parametrize("losses", [[0], [0, 1], [3, 0, 3], [0, 2, 1]], ids=str)
def test_lazy_proposals_are_the_exponential_mechanism_for_every_bound(losses, above, most):
    """Given that one of the first proposals is accepted, or that all scores are known by then."""
    truth = softmax_pmf([heads_probability(loss) for loss in losses])

    def choose(exponents, draws):
        assert exponents == [loss + above for loss in losses]
        return draws.draws.choose(truth)

    def run(draws):
        few = AFewProposals(draws, most)
        return reject_lazily(lambda r: Fraction(losses[r] + above), len(losses), few, choose)

    assert as_list(distribution(run), len(losses)) == truth


def test_coins_without_heads_end_when_all_are_known():
    """More candidates than Python keeps one object of each number for."""
    n = 300
    found = reject_lazily(lambda r: Fraction(10**9 + r), n, Draws(), lambda exponents, _: len(exponents))
    assert found == n


def test_known_exponents_are_chosen_from_exactly():
    """What is left when all scores are known, far below the bound: the mechanism that sees all."""
    exponents = [Fraction(10**9), Fraction(10**9) + Fraction(1, 3), Fraction(10**9) + 2]
    counts = np.bincount([choose_by_exponents(exponents, Draws()) for _ in range(3000)], minlength=3)
    assert_fits(counts, ExponentialMechanism(1, score_range=1).pmf([0, Fraction(-1, 3), -2]))


SCORES = [9, 8, 8, 5, 12]


@pytest.mark.parametrize("bound", [9, 12, 14, 10**6], ids=["cut", "attained", "above", "far above"])
@pytest.mark.parametrize("kind", LAZY)
def test_the_public_methods_have_the_distribution_of_select(kind, bound):
    """By the operating system's entropy, with scores above the bound cut to it."""
    mechanism, draws = kind("1.5", sensitivity=2), 1500
    truth = mechanism.pmf([min(score, bound) for score in SCORES])
    chosen = [mechanism.select_lazily(SCORES.__getitem__, 5, best=bound) for _ in range(draws)]
    counts = np.bincount(chosen, minlength=5)
    assert_fits(counts, truth)
    wrong = kind(3, sensitivity=2).pmf([min(score, bound) for score in SCORES])
    if bound > 9:
        assert_rejected(counts, wrong, truth=truth)


@pytest.mark.parametrize("kind", LAZY)
@given(
    scores=st.lists(st.integers(-9, 9) | st.fractions(-9, 9) | st.floats(-1e300, 1e300), min_size=1, max_size=9),
    bound=st.integers(-20, 20) | st.floats(-1e300, 1e300),
    epsilon=st.sampled_from([1e-9, 1, 1e9]),
    monotonic=st.booleans(),
)
@settings(max_examples=60)
def test_every_score_is_computed_at_most_once(kind, scores, bound, epsilon, monotonic):
    asked, told = [], []

    def score(candidate):
        asked.append(candidate)
        return scores[candidate]

    mechanism = kind(epsilon, monotonic=monotonic)
    chosen = mechanism.select_lazily(score, len(scores), best=bound, watch=told.append)
    assert chosen in asked
    assert len(asked) == len(set(asked)) <= len(scores)
    assert told == list(range(1, len(asked) + 1))


@pytest.mark.parametrize("kind", LAZY)
def test_few_of_many_candidates_are_asked(kind):
    """Neither time nor memory for 10**15 candidates, a half of which are best."""
    asked = []
    kind(1).select_lazily(lambda r: asked.append(r) or r % 2, 10**15, best=1)
    assert len(asked) < 60


@pytest.mark.parametrize("kind", LAZY)
def test_bad_input_is_refused(kind):
    lazily = kind(1).select_lazily
    refused = {
        "n must be >= 1": lambda: lazily(abs, 0, best=1),
        "n must be >= 0": lambda: lazily(abs, -1, best=1),
        "n must be an integer": lambda: lazily(abs, 1.5, best=1),
        "score must be callable": lambda: lazily([1, 2], 2, best=1),
        "watch must be callable": lambda: lazily(abs, 2, best=1, watch=3),
        "best must be a number": lambda: lazily(abs, 2, best=None),
        "best must be finite": lambda: lazily(abs, 2, best=math.inf),
        "best must have at most 4000 digits": lambda: lazily(abs, 2, best=-(10**5000)),
        "score must return finite numbers": lambda: lazily(lambda _: math.nan, 2, best=1),
        "score must return a number, got a str": lambda: lazily(lambda _: "77", 2, best=1),
        "lazy scores need a sensitivity": lambda: kind(1, score_range=2).select_lazily(abs, 2, best=1),
    }
    for words, call in refused.items():
        with pytest.raises((errors.InvalidValue, errors.InvalidType), match=words) as caught:
            call()
        assert "77" not in str(caught.value)
    with pytest.raises(TypeError):
        lazily(abs, 2)
    with pytest.raises(ZeroDivisionError):  # what score itself raises is passed on
        lazily(lambda r: 1 / (r * 0), 2, best=1)
    assert lazily(lambda r: [0, 10**6][r], 2, best="1e6") == 1


def test_clamping_does_not_keep_a_range():
    """Why a stated range is refused: neighbours of a range of one, cut at zero, are three apart."""
    here, there = [0, -5], [3, -2]
    moves = {b - a for a, b in zip(here, there, strict=True)}
    cut = {min(b, 0) - min(a, 0) for a, b in zip(here, there, strict=True)}
    assert max(moves) - min(moves) == 0
    assert max(cut) - min(cut) == 3


# How many scores are computed.


def visits_by_permutations(coins):
    """Over all orders, the mean number of candidates until the first head."""
    total = Fraction(0)
    for order in itertools.permutations(coins):
        all_tails = Fraction(1)
        for p in order:
            total += all_tails
            all_tails *= 1 - p
    return total / math.factorial(len(coins))


def proposals_by_states(coins):
    """The number of different candidates proposed until one is accepted: over the sets of those already known."""
    n, expected = len(coins), {}
    for size in range(n, -1, -1):
        for known in map(frozenset, itertools.combinations(range(n), size)):
            stays = sum((1 - coins[r]) for r in known)
            new = sum(1 + (1 - coins[r]) * expected[known | {r}] for r in range(n) if r not in known)
            expected[known] = Fraction(0) if size == n else new / (n - stays)
    return expected[frozenset()]


@given(
    exponents=st.lists(st.floats(0, 30) | st.sampled_from([0.0, 0.0, 1e-9, 700.0]), min_size=1, max_size=5),
    attained=st.booleans(),
)
def test_expected_evaluations_equal_brute_force(exponents, attained):
    best = -min(exponents) if attained else 0
    scores = [-x for x in exponents]
    coins = [Fraction(math.exp(-(best - score))) for score in scores]
    for kind, truth in ((PermuteAndFlip, visits_by_permutations), (ExponentialMechanism, proposals_by_states)):
        found = expected_evaluations(kind(1, score_range=1), scores, best)
        assert found == pytest.approx(float(truth(coins)), rel=1e-12)
        if attained:
            assert found == expected_evaluations(kind(1, score_range=1), scores)


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("epsilon", [0.001, 0.1, 3])
def test_expected_evaluations_of_many(n, epsilon):
    """Against the pmf: Pr[r] = p_r g(p_r), so the visits are the sum of Pr[r] / p_r."""
    scores = np.random.default_rng(n).poisson(100, n)
    mechanism = PermuteAndFlip(epsilon)
    coins = np.exp(-float(mechanism.rate) * (scores.max() - scores))
    found = expected_evaluations(mechanism, scores)
    assert found == pytest.approx((mechanism.pmf(scores) / coins).sum(), rel=1e-10)


@pytest.mark.parametrize("best", [None, 103, 99], ids=["attained", "above", "cut"])
@pytest.mark.parametrize("kind", LAZY)
def test_as_many_are_computed_as_expected(kind, best):
    scores = np.random.default_rng(3).integers(80, 101, 60).tolist()
    mechanism, told, runs = kind("0.5"), [], 400
    bound = max(scores) if best is None else best
    for _ in range(runs):
        mechanism.select_lazily(scores.__getitem__, 60, best=bound, watch=told.append)
    expected = expected_evaluations(mechanism, scores, best)
    # The number has a standard deviation below 60 / 2; six of them for the mean of all runs.
    assert abs(len(told) / runs - expected) < 6 * 30 / math.sqrt(runs)
    assert expected_evaluations(mechanism, [100] * 60) < expected / 2, "the power check"


def test_expected_evaluations_refuse_bad_input():
    for refused, words in (
        (
            lambda: expected_evaluations(ReportNoisyMax(1), [1]),
            "mechanism must have select_lazily: ReportNoisyMax needs all",
        ),
        (lambda: expected_evaluations(PermuteAndFlip(1), []), "at least one"),
        (lambda: expected_evaluations(PermuteAndFlip(1), [math.nan]), "finite"),
        (lambda: expected_evaluations(PermuteAndFlip(1), [1], best="x"), "best must be a number"),
        (lambda: expected_evaluations(3, [1]), "mechanism must be one of dpselect's, got int"),
    ):
        with pytest.raises((errors.InvalidValue, errors.InvalidType), match=words):
            refused()
