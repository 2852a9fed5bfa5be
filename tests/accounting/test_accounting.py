"""Totals: never below the truth, as good as the best known bound, and counted k times for k releases."""

import itertools
import math
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import dp_accounting
import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax
from dpselect.accounting.totals import Approximate, Total, loss_epsilon, loss_of, releases_of, renyi_epsilon, total
from dpselect.errors import InvalidType, InvalidValue, MissingExtra
from dpselect.ledger import PURE, Charge
from dpselect.mechanisms import MECHANISMS, MechanismBase
from tests.behaviour.test_costs import hockey_stick, neighbours

Floats = npt.NDArray[np.float64]
NAMES = [*MECHANISMS, PURE]
DELTAS = [1e-3, 1e-6, 1e-9]


def approximate(charges: Sequence[Charge], delta: float) -> float:
    found = total(charges, delta).approximate
    assert found is not None
    return found.epsilon


# Profiles.


def moves(n: int, mechanism: MechanismBase, steps: int) -> list[tuple[float, ...]]:
    """A grid of all neighbours: every direction, and corners and inner points of the box."""
    unit = float(mechanism.sensitivity)
    if not mechanism.monotonic:
        return list(itertools.product(np.linspace(-unit, unit, steps), repeat=n))
    up = list(itertools.product(np.linspace(0, unit, steps), repeat=n))
    return up + [tuple(-move for move in row) for row in up]


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax])
@pytest.mark.parametrize(("n", "steps", "tries"), [(2, 5, 12), (3, 3, 12), (4, 3, 3), (5, 2, 6), (6, 2, 3)], ids=str)
@pytest.mark.parametrize("monotonic", [False, True])
def test_no_neighbours_exceed_the_profile(
    kind: type[MechanismBase], n: int, steps: int, tries: int, monotonic: bool
) -> None:
    """Theorem 2 for permute-and-flip (Laplace's profile), bounded range for the exponential mechanism."""
    generator = np.random.default_rng(n)
    for attempt in range(tries):
        epsilon = [0.1, 1.0, 3.0][attempt % 3]
        mechanism = kind(epsilon, 1, monotonic)
        scores = generator.integers(-4, 5, n) * [0.25, 0.5, 1, 2 / epsilon][attempt % 4]
        here = mechanism.pmf(scores)
        losses = np.linspace(-epsilon, epsilon, 9)
        bounds = kind.loss.profile(epsilon, losses)
        for move in moves(n, mechanism, steps):
            there = mechanism.pmf(scores + np.array(move))
            factors = np.exp(losses)[:, None]
            assert (np.maximum(here - factors * there, 0).sum(axis=1) <= bounds + 1e-12).all()
            assert (np.maximum(there - factors * here, 0).sum(axis=1) <= bounds + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("monotonic", "shift"), [(False, 2), (True, 1)])
def test_two_candidates_reach_laplaces_profile(epsilon: float, monotonic: bool, shift: int) -> None:
    """At each loss for some scores; a smaller profile would be wrong, as the same search shows."""
    mechanism = PermuteAndFlip(epsilon, 1, monotonic)
    losses = np.linspace(0, epsilon, 6)[:-1]
    start = np.linspace(-shift, shift, 401)
    stays = np.array([mechanism.pmf([x, 0]) for x in start])
    moved = np.array([mechanism.pmf([x - shift, 0]) for x in start])
    for loss, bound in zip(losses, loss_of("permute-and-flip").profile(epsilon, losses), strict=True):
        reached = max(hockey_stick(p, q, loss) for p, q in zip(stays, moved, strict=True))
        assert bound * (1 - 1e-4) <= reached <= bound + 1e-12
        smaller = float(loss_of("exponential").profile(epsilon, np.array([loss]))[0])
        assert reached > smaller * 1.05


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_two_candidates_reach_the_profile_of_bounded_range(epsilon: float) -> None:
    mechanism = ExponentialMechanism(epsilon)
    losses = np.linspace(-0.9 * epsilon, 0.9 * epsilon, 7)
    start = np.linspace(-12 / epsilon, 12 / epsilon, 2001)
    stays = np.array([mechanism.pmf([x, 0]) for x in start])
    moved = np.array([mechanism.pmf([x - 2, 0]) for x in start])
    for loss, bound in zip(losses, loss_of("exponential").profile(epsilon, losses), strict=True):
        reached = max(hockey_stick(p, q, loss) for p, q in zip(stays, moved, strict=True))
        assert bound * (1 - 1e-3) <= reached <= bound + 1e-12


@pytest.mark.parametrize("name", NAMES)
@given(epsilon=st.floats(1e-6, 20), share=st.floats(-1, 1))
def test_profiles_are_mirror_images(name: str, epsilon: float, share: float) -> None:
    """delta(a) = 1 - e^a + e^a delta(-a): exchanging the neighbours changes nothing."""
    loss = np.array([epsilon * share, -epsilon * share])
    there, back = loss_of(name).profile(epsilon, loss)
    mirrored = -math.expm1(loss[0]) + math.exp(loss[0]) * back
    assert there == pytest.approx(mirrored, abs=1e-12 * math.exp(max(0.0, loss[0])))


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0, 3.0, 6.0, 20.0])
def test_two_half_shares_cost_no_more_than_one_share(epsilon: float) -> None:
    """Of permute-and-flip, as `questions.rows` needs for people who leave one group and enter another."""
    half = epsilon / 2
    for loss in np.linspace(-epsilon, epsilon, 101):
        assert in_two_parts(half, half, loss) <= laplace(epsilon, loss) + 1e-14
    zcdp = [PermuteAndFlip(Fraction(each)).guarantee.zcdp for each in (half, epsilon)]
    assert 2 * zcdp[0] <= zcdp[1]


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_laplace_noise_in_two_parts_has_the_stated_profile(epsilon: float, share: float) -> None:
    """Lemma 3 of docs/theory.md, and that it is never above the profile of the whole."""
    first, second = epsilon * share, epsilon * (1 - share)
    for loss in np.linspace(0, epsilon, 101):
        stated = 1 - math.exp((loss - epsilon) / 2) * (1 + min(first, second, (epsilon - loss) / 2) / 2)
        assert in_two_parts(first, second, loss) == pytest.approx(stated, abs=1e-14)
        for either in (loss, -loss):
            assert in_two_parts(first, second, either) <= laplace(epsilon, either) + 1e-14


def in_two_parts(first: float, second: float, loss: float) -> float:
    """The profile of Laplace noise at `first` together with noise at `second`, by quadrature.

    The loss of Laplace noise at e is e with probability 1/2, -e with exp(-e)/2, and has the density exp((x - e)/2)/4
    between. The profile of both at a is the mean of the profile of one at a minus the loss of the other.
    """
    both = 0.5 * laplace(second, loss - first) + 0.5 * math.exp(-first) * laplace(second, loss + first)
    nodes, weights = np.polynomial.legendre.leggauss(50)
    kinks = sorted({-first, first, *np.clip([loss - second, loss + second], -first, first)})
    for start, end in itertools.pairwise(kinks):
        inside = start + (end - start) * (nodes + 1) / 2
        density = (end - start) / 2 * weights * np.exp((inside - first) / 2) / 4
        both += float(density @ loss_of("permute-and-flip").profile(second, loss - inside))
    return both


def laplace(epsilon: float, loss: float) -> float:
    return float(loss_of("permute-and-flip").profile(epsilon, np.array([loss]))[0])


@pytest.mark.parametrize("name", NAMES)
def test_profiles_end_where_they_should(name: str) -> None:
    losses = np.array([-50.0, -2.0, 2.0, 50.0])
    assert loss_of(name).profile(2.0, losses).tolist() == [-math.expm1(-50), -math.expm1(-2), 0, 0]
    inner = loss_of(name).profile(2.0, np.nextafter([-2.0, 2.0], 0))
    assert inner == pytest.approx([-math.expm1(-2), 0], abs=1e-15)


# dp_accounting: our distributions are those that it makes itself, and its counts count.


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 1), (0.5, 7), (0.1, 100)])
def test_the_laplace_profile_is_the_laplace_mechanism(epsilon: float, count: int) -> None:
    known = privacy_loss_distribution.from_laplace_mechanism(1 / epsilon, value_discretization_interval=epsilon / 500)
    theirs = known.self_compose(count).get_epsilon_for_delta(1e-6)
    ours = loss_epsilon({("permute-and-flip", Fraction(epsilon)): count}, 1e-6)
    assert theirs * (1 - 1e-6) <= ours <= theirs * (1 + 5e-3)


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 1), (0.5, 7), (0.125, 100)])
def test_the_pure_profile_is_the_pure_mechanism(epsilon: float, count: int) -> None:
    parameters = common.DifferentialPrivacyParameters(epsilon, 0)
    known = privacy_loss_distribution.from_privacy_parameters(parameters, epsilon / 64)
    theirs = known.self_compose(count).get_epsilon_for_delta(1e-6)
    ours = loss_epsilon({(PURE, Fraction(epsilon)): count}, 1e-6)
    assert theirs * (1 - 1e-6) <= ours <= theirs * (1 + 5e-3)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("each", ["0.001", "0.1", "1", "40"])
def test_a_count_of_k_is_a_loop_of_k(name: str, each: str, delta: float) -> None:
    k = 12
    once, loop = [Charge("a", each, name, count=k)], [Charge("a", each, name)] * k
    assert total(once, delta) == total(loop, delta)
    assert releases_of(once) == releases_of(loop) == {(name, Fraction(each)): k}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("accountant", [renyi_epsilon, loss_epsilon])
@pytest.mark.parametrize("each", ["0.005", "0.1", "1", "40"])
def test_each_accountant_counts(accountant: object, name: str, each: str) -> None:
    """The same releases as k different ones: epsilons that differ in the twelfth digit cannot be counted together."""
    assert callable(accountant)
    k, epsilon = 12, Fraction(each)
    together = accountant({(name, epsilon): k}, 1e-6)
    apart = accountant({(name, epsilon * (1 + Fraction(i, 10**12))): 1 for i in range(k)}, 1e-6)
    assert apart == pytest.approx(together, rel=1e-4)
    if math.isfinite(together) and each != "40":
        assert together > 1.5 * accountant({(name, epsilon): 1}, 1e-6)


# Lower bounds: the exact composition of small worst pairs.


def exact_delta(pairs: Sequence[tuple[Floats, Floats]], epsilon: float) -> float:
    """The true delta of independent releases from the pairs, by enumeration of all outcomes."""
    here = there = np.ones(1)
    for p, q in pairs:
        here, there = np.outer(here, p).ravel(), np.outer(there, q).ravel()
    return hockey_stick(here, there, epsilon)


def worst_pairs(name: str, epsilon: float) -> list[tuple[Floats, Floats]]:
    """Distributions of the mechanism itself on neighbours with two and three candidates."""
    if name == PURE:
        heads = 1 / (1 + math.exp(-epsilon))
        return [(np.array([heads, 1 - heads]), np.array([1 - heads, heads]))]
    return neighbours(MECHANISMS[name](epsilon))


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([0.01, 0.1, 0.7, 2.0])), min_size=1, max_size=6))
def test_no_total_of_a_mixture_is_below_the_truth(kinds: list[tuple[str, float]]) -> None:
    charges = [Charge("a", Fraction(epsilon), name) for name, epsilon in kinds]
    pairs = [worst_pairs(name, epsilon)[min(2, len(worst_pairs(name, epsilon)) - 1)] for name, epsilon in kinds]
    for delta in (1e-2, 1e-5):
        assert exact_delta(pairs, approximate(charges, delta)) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "k", "delta"), [(0.1, 30, 1e-6), (0.5, 20, 1e-9), (0.01, 2000, 1e-6)])
def test_randomized_response_is_met_closely(epsilon: float, k: int, delta: float) -> None:
    """Where the truth is a binomial sum the total is above it, and by less than a percent."""
    ctx.prec = 300
    claimed = approximate([Charge("a", Fraction(epsilon), PURE, count=k)], delta)
    heads = arb(1) / (1 + (-arb(epsilon)).exp())

    def truth(at: float) -> float:
        probabilities = [arb(math.comb(k, j)) * heads**j * (1 - heads) ** (k - j) for j in range(k + 1)]
        losses = [epsilon * (2 * j - k) for j in range(k + 1)]
        return float(sum((p * (1 - (arb(at) - arb(loss)).exp()) for p, loss in zip(probabilities, losses, strict=True)
                          if loss > at), arb(0)))  # fmt: skip

    assert truth(claimed) <= delta
    assert truth(claimed * 0.99) > delta


RATIONALS = [
    Fraction(1, 10**9),
    Fraction(1, 1000),
    Fraction(99, 10000),
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(5),
    Fraction(29),
]


@pytest.mark.parametrize("epsilon", RATIONALS, ids=str)
def test_renyi_divergences_are_not_below_the_truth(epsilon: Fraction) -> None:
    """Floats lose digits where epsilon is small: the events' divergences against 400 bits."""
    ctx.prec = 400
    orders = np.array([1.05, 1.5, 2, 8, 64, 1024, 1e5])
    e = arb(epsilon.numerator) / epsilon.denominator

    def laplace(a: arb) -> arb:
        return e + (1 + (a - 1) * ((e * (1 - 2 * a)).exp() - 1) / (2 * a - 1)).log() / (a - 1)

    def coins(here: arb, there: arb, a: arb) -> arb:
        return (here**a * there ** (1 - a) + (1 - here) ** a * (1 - there) ** (1 - a)).log() / (a - 1)

    def response(a: arb) -> arb:
        return coins(1 / (1 + (-e).exp()), 1 / (1 + e.exp()), a)

    def flip(a: arb) -> arb:
        weights = [(-e * k / 16).exp() for k in range(17)]
        return max((coins(1 - w / 2, (-e).exp() / (2 * w), a) for w in weights), key=lambda found: float(found.mid()))

    for name, truth in (("permute-and-flip", flip), (PURE, response), ("noisy-max", laplace)):
        accountant = dp_accounting.rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(loss_of(name).renyi_event(dp_accounting, epsilon), 1)
        for order, claimed in zip(orders, accountant.rdp, strict=True):
            assert claimed * (1 + 1e-9) >= float(truth(arb(float(order))))


# Totals.


def test_the_pure_sum_is_exact_and_zcdp_adds_up(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", budget=5)
    ledger.spend("0.1", "plain")
    for kind in (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax):
        ledger.charge(Charge.of(kind("1/7"), {"question": "top"}, count=3))
    found = total(ledger)
    assert found.epsilon == ledger.spent == Fraction(1, 10) + 9 * Fraction(1, 7)
    rhos = [3 * kind("1/7").guarantee.zcdp for kind in (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax)]
    assert found.zcdp == pytest.approx(sum(rhos) + 0.1 * math.tanh(0.05), rel=1e-9)
    assert found.zcdp >= sum(map(Fraction, rhos)) + Fraction(0.1 * math.tanh(0.05))
    assert found.approximate is None
    assert total(ledger.entries(), 1e-6) == total(ledger, "1e-6")


@settings(max_examples=20)
@example([("noisy-max", "2", 15), ("noisy-max", "2", 40)], 0.001)
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["0.01", "0.3", "2"]), st.integers(1, 40)), max_size=4),
    st.sampled_from(DELTAS),
)
def test_a_total_is_the_smallest_of_its_bounds(kinds: list[tuple[str, str, int]], delta: float) -> None:
    charges = [Charge("a", each, name, count) for name, each, count in kinds]
    found = total(charges, delta)
    assert found.approximate is not None
    assert 0 <= found.approximate.epsilon <= math.nextafter(float(found.epsilon), math.inf)
    if charges:
        bounds = [renyi_epsilon(releases_of(charges), delta), loss_epsilon(releases_of(charges), delta)]
        assert found.approximate.epsilon == min(*bounds, found.approximate.epsilon)
        # More releases cost more, up to the error of the grid of losses, which the smallest release sets.
        more = [*charges, Charge("b", "0.01")]
        assert approximate([*more, Charge("b", "0.3")], delta) >= approximate(more, delta) * (1 - 1e-3)


def test_nothing_costs_nothing() -> None:
    assert total([], 1e-6) == Total(Fraction(0), 0.0, Approximate(0.0, 1e-6, "pure"))
    assert str(total([], 1e-6)) == "0-DP (pure); if fixed beforehand: 0-zCDP, (0, 1e-06)-DP"


def test_over_many_selections_the_exponential_mechanism_composes_better() -> None:
    many = {name: approximate([Charge("a", "0.1", name, count=200)], 1e-6) for name in NAMES}
    assert many["exponential"] < 0.6 * many["permute-and-flip"]
    assert many["permute-and-flip"] <= many["noisy-max"] < many[PURE] < 20


def test_extremes_are_finite() -> None:
    for each, count in (("1e-300", 10**12), ("1e300", 1), ("1e-4", 10**12), ("1000", 1000)):
        for name in NAMES:
            found = total([Charge("a", each, name, count)], 1e-6)
            assert found.approximate is not None
            assert 0 <= found.approximate.epsilon <= float(found.epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("delta", [0, 1, 2, -1e-3, "x"])
def test_a_bad_delta_is_refused(delta: object) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="delta must be"):
        total([Charge("a", 1)], delta)  # type: ignore[arg-type]


def test_only_charges_and_entries_add_up() -> None:
    with pytest.raises(InvalidType, match="spent must be a Ledger or hold charges or entries, got float"):
        total([0.1])  # type: ignore[list-item]


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    assert total([Charge("a", 1)]).epsilon == 1
    with pytest.raises(MissingExtra, match=r" -m pip install dp-accounting$"):
        total([Charge("a", 1)], 1e-6)


def test_the_ledger_imports_neither_dp_accounting_nor_scipy() -> None:
    program = "import sys, dpselect.ledger; print([m for m in sys.modules if m.startswith(('scipy', 'dp_acc'))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
