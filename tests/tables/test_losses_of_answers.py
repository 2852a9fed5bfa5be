"""What all selections of an answer tell about one person, with both mechanisms: log-ratios, ranges and divergences.

Small tables are enumerated with all their neighbours, and the probabilities of all answers are computed from the scores
of the model in `test_sensitivity`, which is compared with the engine there. A ledger counts n selections with a share
of epsilon each, and so epsilon, and n times the rho of a share.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.mechanisms.parameters import Neighbours, of_quantile
from dpselect.questions import Mode
from dpselect.questions.quantiles import OverRange
from tests.tables.looking import of_kind
from tests.tables.test_sensitivity import ABSENT, CANDIDATES, count_scores, grouped, kept_data, level_scores, opened
from tests.top_k.exact import margin, sets, total

EPSILON = Fraction(3, 2)
ORDERS = np.array([1.01, 2.0, 5.0, 30.0])
SLACK = 1e-9
OTHERS = [(), ((0,), (0,), (1,), (2,)), ((0,),) * 12, ((2,),) * 12, ((1,),) * 30]
COUNTED, STANDING = [(0,), (2,), (0, 2)], [(0,), (1,), (2,)]


def scores_of_sets(score, people):
    """The scores of all sets of two candidates."""
    return tuple(score(count_scores(people), chosen) for chosen in sets(3, 2))


def top_two(table, **choices):
    return table.top_k("x", 2, candidates=CANDIDATES, epsilon=EPSILON, **choices)


QUESTIONS = {
    "mode": (1, count_scores, COUNTED, lambda table: table.mode("x", candidates=CANDIDATES, epsilon=EPSILON)),
    "top two": (2, count_scores, COUNTED, lambda table: top_two(table, method="peel")),
    "set of two": (
        1,
        lambda people: scores_of_sets(total, people),
        COUNTED,
        lambda table: top_two(table, method="set", max_values=2),
    ),
    "margin": (
        1,
        lambda people: scores_of_sets(margin, people),
        COUNTED,
        lambda table: top_two(table, method="margin"),
    ),
    "median": (
        1,
        lambda people: level_scores(people, Fraction(1, 2)),
        STANDING,
        lambda table: table.median("x", lower=0, upper=2, epsilon=EPSILON),
    ),
    "quantile": (
        1,
        lambda people: level_scores(people, Fraction(9, 10)),
        STANDING,
        lambda table: table.quantile("x", Fraction(9, 10), lower=0, upper=2, epsilon=EPSILON),
    ),
}


@pytest.fixture
def share_of(monkeypatch):
    """The mechanism of a share with the parameters that the table gives it."""
    seen = []
    for question in (Mode, OverRange):
        monkeypatch.setattr(question, "answer", lambda _, engine, who, draw: seen.append(draw.mechanism))

    def get(ask, table, kind):
        ask(table)
        return of_kind(kind, seen.pop())

    return get


def rounds_of(pmf, old, new, k):
    """The log-probabilities of every sequence of k candidates on both tables, and the ranges of all rounds."""
    sequences, ranges = [((), 0.0, 0.0)], []
    for _ in range(k):
        longer = []
        for taken, p, q in sequences:
            left = [c for c in range(len(old)) if c not in taken]
            own = [pmf(tuple(scores[c] for c in left)) for scores in (old, new)]
            ratios = own[0] - own[1]
            ranges.append(ratios.max() - ratios.min())
            longer += [((*taken, c), p + own[0][i], q + own[1][i]) for i, c in enumerate(left)]
        sequences = longer
    return np.array([p for _, p, _ in sequences]), np.array([q for _, _, q in sequences]), max(ranges)


def losses_of_answers(question, mechanism, neighbours, most):
    """For each pair of neighbours: the extreme log-ratios, the largest range of a round, their sum, the divergences."""
    k, score, options, _ = QUESTIONS[question]
    pmf = cache(lambda scores: np.log(mechanism.pmf(scores)))
    # Without groups, a person under "replace" may have no value that counts, like one who is absent.
    data = [{}, *({"g": rows} for rows in options)] if most is None else kept_data(options, most)
    pairs = [(a, b) for a, b in product(data, data) if neighbours is Neighbours.REPLACE or not (a and b)]
    for others in OTHERS:
        scores = cache(lambda own, others=others: score((*others, own)))

        def losses(before, after, scores=scores):
            p, q, widest = rounds_of(pmf, scores(before), scores(after), k)
            renyi = np.log(np.exp(np.outer(ORDERS, p) - np.outer(ORDERS - 1, q)).sum(axis=1)) / (ORDERS - 1)
            return (p - q).max(), (p - q).min(), widest, renyi

        losses = cache(losses)
        for before, after in pairs:
            touched = [losses(before.get(g, ABSENT), after.get(g, ABSENT)) for g in {*before, *after}]
            if touched:
                most_, least, widest, renyi = zip(*touched, strict=True)
                yield sum(most_), sum(least), max(widest), sum(widest), sum(renyi)


@pytest.mark.parametrize("most", [None, 1, 2], ids=["together", "one group", "two groups"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("kind", [pytest.param(PermuteAndFlip, marks=pytest.mark.slow), ExponentialMechanism])
@pytest.mark.parametrize("question", QUESTIONS)
def test_no_answer_costs_more_than_is_counted(question, kind, neighbours, most, share_of):
    table = opened({"x": [0]}, neighbours=neighbours) if most is None else grouped(neighbours, most)
    rounds, *_, ask = QUESTIONS[question]
    share = share_of(ask, table, kind)
    count = rounds * (most or 1)
    assert share.epsilon * count == EPSILON
    rho = count * share.guarantee.zcdp
    found = list(losses_of_answers(question, share, neighbours, most))
    for largest, least, widest, wide, renyi in found:
        assert max(largest, -least) <= EPSILON + SLACK
        assert (renyi <= ORDERS * rho + SLACK).all()
        if kind is ExponentialMechanism:
            assert widest <= share.epsilon + SLACK
            if rounds == 1:  # independent selections: the log-ratio of the whole answer
                assert largest - least == pytest.approx(wide, abs=SLACK)
                assert wide <= EPSILON + SLACK
    if most is not None and rounds == 1 and kind is ExponentialMechanism:  # no epsilon is left unused
        assert max(wide for *_, wide, _ in found) == pytest.approx(float(EPSILON))
    if question == "mode":  # nor most of rho
        assert max((renyi / ORDERS).max() for *_, renyi in found) > rho / 4


def test_half_the_sensitivity_is_found(share_of):
    """The check is not idle: with the sensitivity of one table, a person who changes groups costs too much."""
    _, _, _, ask = QUESTIONS["quantile"]
    alone = share_of(ask, opened({"x": [0]}, neighbours="replace"), ExponentialMechanism)
    assert alone.sensitivity < of_quantile(Fraction(9, 10), Neighbours.REPLACE, in_groups=True).largest_change
    found = list(losses_of_answers("quantile", alone, Neighbours.REPLACE, 1))
    assert max(wide for *_, wide, _ in found) > EPSILON * Fraction(3, 2)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 20.0])
def test_two_halves_of_bounded_range_cost_no_more_than_the_whole(epsilon):
    """For the rho that is charged, and for the exact one: a - 1 - ln a with a = e / (exp(e) - 1)."""

    def exact(e):
        ratio = e / math.expm1(e)
        return ratio - 1 - math.log(ratio)

    charged = [ExponentialMechanism(e).guarantee.zcdp for e in (epsilon / 2, epsilon)]
    assert 2 * charged[0] <= charged[1]
    assert 2 * exact(epsilon / 2) <= exact(epsilon)
