"""What values that nobody listed tell about one person: all small tables and all their neighbours, exactly.

The counts are those of the engine, with a fixed salt: if the inequality holds for each salt, it holds for a random one.
The mechanism, the threshold and the coins are those that the table builds, and epsilon, delta and rho are those that it
charges. The law of an answer is computed here from the counts. That the hockey-stick divergence at epsilon is at most
delta is checked through the questions themselves (`tests/behaviour/test_neighbours.py`), and mistakes are planted by
`mutation/faults.toml`. Here rho is checked, too.
"""

import math
from collections import namedtuple
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product

import numpy as np
import pytest

from dpselect import Ledger, zcdp
from dpselect.mechanisms import unlisted
from dpselect.mechanisms.parameters import Neighbours
from dpselect.questions import UnlistedTopK, Values
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import opened, tallied

LABELS = ("a", "b", "c")
PEOPLE = (1, 2, 3)
SALT = 7
SLACK = 1e-12
MOST = 2
ORDERS = np.array([1.01, 2.0, 5.0, 30.0])
Asked = namedtuple("Asked", ["drawn", "epsilon", "delta", "rho"])


@pytest.fixture(autouse=True)
def salted(monkeypatch):
    """All salts are the same, and few of the largest counts compete, so that some are left out."""
    monkeypatch.setattr("os.urandom", lambda count: bytes([SALT]) * count)
    monkeypatch.setattr(unlisted, "MOST", MOST)


def subsets(items, most):
    return list(chain.from_iterable(combinations(items, size) for size in range(most + 1)))


@cache
def counted_tables(most, max_values):
    """The engine's counts of every table of three people with at most so many values each, from one statement.

    A table is a group, and everybody is kept in all groups.
    """
    tables = list(product(subsets(LABELS, most), repeat=len(PEOPLE)))
    rows = [(t, who, x) for t, own in enumerate(tables) for who, xs in zip(PEOPLE, own, strict=True) for x in xs]
    number, who, x = map(list, zip(*rows, strict=True))
    table = opened({"t": number, "who": who, "x": x}, person="who")
    groups = table.group_by("t", groups=range(len(tables)), max_groups=len(tables))
    counts = tallied(groups, "x", max_values=max_values)
    return {table: tuple(own.get(x, 0) for x in LABELS) for table, own in zip(tables, counts, strict=True)}


@cache
def all_pairs(most, max_values, relation):
    """The counts of all pairs of neighbours, in both orders. A person without values is like one who is absent."""
    tables = counted_tables(most, max_values)
    every = subsets(LABELS, most) if relation is Neighbours.REPLACE else [()]
    pairs = {
        (old, tables[*table[:place], rows, *table[place + 1 :]])
        for table, old in tables.items()
        for place in range(len(table))
        for rows in every
    }
    return pairs | {(new, old) for old, new in pairs}


def asked(ask, relation, *, ledger=None):
    """The chooser or coins of a question, and what is charged for it. Nothing is drawn."""
    table = opened({"who": [1], "x": ["a"], "g": [0]}, person="who", neighbours=relation, ledger=ledger)
    seen = []
    right = {kind: kind.answer for kind in (UnlistedTopK, Values)}
    for kind in right:
        kind.answer = lambda question, engine, who, draw: seen.append(draw if draw.threshold else draw.mechanism)
    try:
        answer = ask(table)
    finally:
        for kind, own in right.items():
            kind.answer = own
    [drawn] = seen
    return Asked(drawn, answer.epsilon, answer.guarantee.delta, answer.guarantee.zcdp)


# The laws of answers.


def law_of_one(counts, above):
    """The probability of each label, and of None, when one value is chosen above a threshold."""
    mechanism, limit = above.mechanism, above.threshold
    seen = sorted((x for x in LABELS if counts.get(x)), key=lambda x: (-counts[x], x))
    competing, next_count = seen, 0
    if limit.most is not None:
        competing = seen[: limit.most]
        next_count = counts[seen[limit.most]] if len(seen) > limit.most else 0
    anonymous = 0 if limit.most is None else limit.most - len(competing)
    scores = [*(counts[x] for x in competing), *[0] * anonymous, next_count + 1 + limit.distance]
    chances = mechanism.pmf([Fraction(score) for score in scores])
    law = dict(zip(competing, chances, strict=False))
    law[None] = sum(chances[len(competing) :])
    return law


def law_of_several(counts, above, k):
    """The probability of each list of values, which ends before k of them if nothing is chosen."""
    if not k:
        return {(): 1.0}
    law = {}
    for label, chance in law_of_one(counts, above).items():
        if label is None:
            law[()] = law.get((), 0) + chance
            continue
        rest = {x: number for x, number in counts.items() if x != label}
        for tail, inner in law_of_several(rest, above, k - 1).items():
            law[label, *tail] = law.get((label, *tail), 0) + chance * inner
    return law


def divergence(first, second, epsilon):
    """The hockey stick: how much the first exceeds e^epsilon times the second."""
    return sum(max(0.0, mass - math.exp(epsilon) * second.get(out, 0.0)) for out, mass in first.items())


def largest(pairs, law, epsilon):
    """The largest divergence of all pairs of neighbours."""
    laws = {}

    def of(counts):
        if counts not in laws:
            laws[counts] = law(dict(zip(LABELS, counts, strict=True)))
        return laws[counts]

    return max(divergence(of(old), of(new), float(epsilon)) for old, new in pairs)


# Modes and top-k.

EPSILON, DELTA = "1.5", "0.05"


@pytest.mark.parametrize("max_values", [None, 1, 2])
@pytest.mark.parametrize("relation", list(Neighbours))
def test_in_zcdp_the_exponential_mechanism_loses_its_own_rho_except_with_probability_delta(
    tmp_path, relation, max_values
):
    """Given that no value of one person wins, no Renyi divergence exceeds what rho allows."""
    ledger = Ledger(tmp_path / "ledger", zcdp(10, delta="0.5"))
    choice = {"epsilon": EPSILON, "delta": DELTA, "max_values": max_values}
    drawn, _, delta, rho = asked(lambda table: table.mode("x", **choice), relation, ledger=ledger)
    assert drawn.mechanism.name == "exponential"
    assert [entry.rho for entry in ledger.entries()] == pytest.approx([rho], rel=1e-9)
    for old, new in all_pairs(3 if max_values is None else 2, max_values, relation):
        laws = [law_of_one(dict(zip(LABELS, counts, strict=True)), drawn) for counts in (old, new)]
        common = [x for x in laws[0] if x in laws[1]]
        masses = [sum(law[x] for x in common) for law in laws]
        assert min(masses) >= 1 - float(delta) * (1 + SLACK)
        first, second = (np.array([law[x] / mass for x in common]) for law, mass in zip(laws, masses, strict=True))
        for order in ORDERS:
            renyi = math.log(float((first**order * second ** (1 - order)).sum())) / (order - 1)
            assert renyi <= rho * order + 1e-9


# Mistakes.


def above_by(drawn, people):
    return replace(drawn, threshold=replace(drawn.threshold, distance=drawn.threshold.distance + people))


def test_a_full_list_without_the_next_count_is_found():
    """If only the largest counts compete, the threshold must rise with the first that is left out."""
    choice = {"epsilon": EPSILON, "delta": "0.01"}
    drawn, epsilon, delta, _ = asked(lambda table: table.mode("x", **choice), "add-remove")

    def wrong(counts):
        kept = dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MOST])
        return law_of_one(kept, drawn)

    pairs = all_pairs(3, None, Neighbours.ADD_REMOVE)
    assert largest(pairs, wrong, epsilon) > float(delta)


# The code draws by these laws.


def test_permute_and_flip_above_a_threshold_has_the_rho_of_any_pure_release():
    choice = {"epsilon": 1, "delta": "0.01", "mechanism": "permute-and-flip"}
    assert asked(lambda table: table.mode("x", **choice), Neighbours.ADD_REMOVE).rho >= math.tanh(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("max_values", [None, 2])
def test_what_is_chosen_has_the_law(monkeypatch, mechanism, max_values):
    monkeypatch.undo()  # real randomness
    monkeypatch.setattr(unlisted, "MOST", MOST)
    choice = {"epsilon": 3, "delta": "0.1", "max_values": max_values, "mechanism": mechanism}
    above, *_ = asked(lambda table: table.top_k("x", 2, **choice), "add-remove")
    counts = {"a": 2, "b": 3, "c": 2}
    ranks = {(2, 0): "a", (2, 1): "c", (3, 0): "b"}
    draws = 20_000
    drawn = [
        tuple(ranks[place] for place in unlisted.chosen_above([2, 3], [2, 1], 2, above.threshold, above.mechanism))
        for _ in range(draws)
    ]
    law = law_of_several(counts, above, 2)
    outcomes = sorted(law)
    observed = [drawn.count(out) for out in outcomes]
    truth = [law[out] for out in outcomes]
    assert_fits(observed, truth)
    wrong = law_of_several(counts, above_by(above, Fraction(1, 2)), 2)
    assert_rejected(observed, [wrong[out] for out in outcomes], truth=truth)
