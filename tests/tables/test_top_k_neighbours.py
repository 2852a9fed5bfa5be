"""What a top-k tells about one person: all small tables and all their neighbours, with exact probabilities.

The counts are those of the engine, with a fixed salt: if the inequality holds for each salt, it holds for a random one.
The method and the mechanism are those that the table builds, and the epsilon and the rho are those that it charges. The
probabilities of all answers come from `tests.top_k.laws`, by brute force. No log-ratio exceeds epsilon, and somewhere
nearly all of it is used; no Renyi divergence exceeds what rho allows. The same check finds each mistake of a list.
"""

import random
from collections import namedtuple
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy.special import logsumexp

from dpselect import Ledger, zcdp
from dpselect.mechanisms.parameters import Neighbours, stated
from dpselect.questions import Mode, TopK
from dpselect.questions import methods as top_k
from dpselect.tables.duckdb import engine as duckdb_engine
from tests.tables.looking import counts, opened
from tests.top_k.laws import law_of

pytestmark = pytest.mark.slow

CANDIDATES = (0, 1, 2, 3)
PEOPLE = (1, 2, 3)
SALT = 7
ORDERS = np.array([1.01, 2.0, 5.0, 30.0])
SLACK = 1e-9
RELATIONS = list(Neighbours)
SMALL, LARGE = Fraction(1), Fraction(18)  # with a large epsilon few tables are enough to use nearly all of it

# What is asked of k, and of the number of values that are kept of a person.
METHODS = {
    "set": {"k": 2, "method": "set"},
    "set of one": {"k": 1, "method": "set"},
    "margin": {"k": 2, "method": "margin"},
    "margin of an interval": {"k": (1, 3), "method": "margin"},
    "one-shot": {"k": 2, "method": "one-shot"},
    "peel": {"k": 2, "method": "peel"},
    "noisy-counts": {"k": 2, "method": "noisy-counts"},
    "auto": {"k": 2},
    "auto, all but one": {"k": 3},
    "auto, ordered": {"k": 2, "ordered": True},
}
LIMITED = ("set", "set of one", "noisy-counts")
Asked = namedtuple("Asked", ["method", "mechanism", "epsilon", "rho"])


@pytest.fixture(autouse=True)
def salted(monkeypatch):
    """All salts are the same."""
    monkeypatch.setattr("os.urandom", lambda count: bytes([SALT]) * count)


def asked(table, k, **choices):
    """The method and the mechanism of a question, and what is charged for it. Nothing is drawn."""
    seen = []
    right = Mode.answer
    Mode.answer = lambda question, engine, who, draw: seen.append((draw.method, draw.mechanism))
    try:
        answer = table.top_k("x", k, candidates=CANDIDATES, **choices)
    finally:
        Mode.answer = right
    [(method, mechanism)] = seen
    return Asked(method, mechanism, answer.epsilon, answer.guarantee.zcdp)


# All small tables.


def subsets(items, most):
    return list(chain.from_iterable(combinations(items, size) for size in range(most + 1)))


@lru_cache(maxsize=8)
def counted_tables(most, max_values, mistake=None):
    """The engine's counts of every table of three people with at most so many values each, from one statement.

    With a mistake in what is kept they are others. A table is a group, and everybody is kept in all groups. What is
    kept of a person's values does not depend on the group: `test_a_table_alone_has_the_counts_of_its_group` compares.
    """
    tables = list(product(subsets(CANDIDATES, most), repeat=len(PEOPLE)))
    rows = [(t, who, x) for t, own in enumerate(tables) for who, xs in zip(PEOPLE, own, strict=True) for x in xs]
    number, who, x = map(list, zip(*rows, strict=True))
    table = opened({"t": number, "who": who, "x": x}, person="who")
    groups = table.group_by("t", groups=range(len(tables)), max_groups=len(tables))
    return dict(zip(tables, map(tuple, counts(groups, "x", CANDIDATES, max_values)), strict=True))


@lru_cache(maxsize=32)
def all_pairs(most, max_values, relation, mistake=None):
    """The counts of all pairs of neighbours. A person without values is like one who is absent."""
    found = counted_tables(most, max_values, mistake)
    every = subsets(CANDIDATES, most) if relation is Neighbours.REPLACE else [()]
    return {
        renamed(old, found[*table[:place], rows, *table[place + 1 :]])
        for table, old in found.items()
        for place in range(len(table))
        for rows in every
    }


def renamed(old, new):
    """The same pair with the candidates in another order, so that each pair is looked at once. No law depends on it."""
    return tuple(zip(*sorted(zip(old, new, strict=True)), strict=True))


@pytest.mark.parametrize("max_values", [None, 1, 2])
def test_a_table_alone_has_the_counts_of_its_group(max_values):
    found = counted_tables(3, max_values)
    generator = random.Random(max_values)
    for table in generator.sample([table for table in found if any(table)], 25):
        rows = [(who, x) for who, xs in zip(PEOPLE, table, strict=True) for x in xs] * 2
        generator.shuffle(rows)
        alone = opened(
            {"who": [who for who, _ in rows] + [None], "x": [x for _, x in rows] + [2]},
            person="who",
            types={"who": "int64"},
        )
        assert tuple(counts(alone, "x", CANDIDATES, max_values)) == found[table]


@pytest.mark.parametrize("max_values", [1, 2, 3])
def test_everybody_counts_for_as_many_values_as_the_limit_allows(max_values):
    found = counted_tables(3, max_values)
    assert all(sum(own) == sum(min(len(xs), max_values) for xs in table) for table, own in found.items())
    singles = {own: xs for (xs, *others), own in found.items() if not any(others)}
    assert all(own[x] <= (x in xs) for own, xs in singles.items() for x in CANDIDATES)


# The loss.


class Losses:
    """The largest log-ratio and Renyi divergences of an answer between neighbours."""

    def __init__(self, question):
        self.question = question
        self.law = cache(self._law)
        self.of = cache(self._of)

    def _law(self, counts_):
        found = law_of(self.question.method, self.question.mechanism, counts_)
        return np.log(np.array([found[answer] for answer in sorted(found)]))

    def _of(self, old, new):
        """The extreme log-ratios, and the divergence at each order."""
        p, q = self.law(old), self.law(new)
        renyi = logsumexp(np.outer(ORDERS, p) - np.outer(ORDERS - 1, q), axis=1) / (ORDERS - 1)
        return float((p - q).max()), float((p - q).min()), renyi

    def worst(self, pairs):
        """The largest loss of all pairs, and how much of rho is used at most."""
        found = [self.of(old, new) for old, new in pairs if old != new]
        largest = max(max(most, -least) for most, least, _ in found)
        return largest, max(float((renyi / ORDERS).max()) for *_, renyi in found)


def checked_loss(question, pairs):
    """The part of epsilon that is used, after a check that no loss exceeds what is charged."""
    largest, rho = Losses(question).worst(pairs)
    assert largest <= question.epsilon + SLACK
    assert rho <= question.rho + SLACK
    return largest / question.epsilon


def is_beyond(question, pairs):
    """Whether a loss is larger than what is charged."""
    return Losses(question).worst(pairs)[0] > question.epsilon * Fraction(101, 100)


def people(relation, **options):
    return opened({"who": [1], "x": [1]}, person="who", neighbours=relation, **options)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_people_lose_no_more_than_epsilon(name, relation):
    """Three people with up to three of four values. Nearly all of epsilon is used where people can change enough."""
    used = []
    for max_values in (3 if name in LIMITED else None, 1, 2):
        pairs = all_pairs(3, max_values, relation)
        for epsilon in (SMALL, LARGE):
            question = asked(people(relation), **METHODS[name], epsilon=epsilon, max_values=max_values)
            assert question.epsilon == epsilon
            used.append(checked_loss(question, pairs))
    assert max(used) >= 0.9


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_rows_lose_no_more_than_epsilon(name, relation):
    """Without people a row has one value, and so has everybody above with a limit of one row."""
    rows = sorted({tuple(sorted(own)) for size in range(5) for own in product(CANDIDATES, repeat=size)})
    table = opened({"t": [t for t, own in enumerate(rows) for _ in own], "x": [x for own in rows for x in own]})
    found = counts(table.group_by("t", groups=range(len(rows))), "x", CANDIDATES)
    assert found == [[own.count(x) for x in CANDIDATES] for own in rows]
    known = dict(zip(rows, map(tuple, found), strict=True))
    pairs = set()
    for own, old in known.items():
        for place in range(len(own)):
            others = own[:place] + own[place + 1 :]
            changed = [others] if relation is Neighbours.ADD_REMOVE else [(*others, x) for x in CANDIDATES]
            pairs |= {renamed(old, known[tuple(sorted(new))]) for new in changed}
    for epsilon in (SMALL, LARGE):
        question = asked(opened({"x": [1]}, neighbours=relation), **METHODS[name], epsilon=epsilon)
        assert question.method.max_values == 1
        used = checked_loss(question, pairs)
    assert used >= 0.7  # one shot and peeling allow for more than a row that is replaced can change


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_a_ledger_in_zcdp_charges_enough(name, relation, tmp_path):
    """The mechanism of such a budget, the largest epsilon that rho pays for, and its divergences."""
    ledger = Ledger(tmp_path / "ledger", budget=zcdp(10**6))
    for rho, max_values in (("0.05", 1), ("0.5", 2), ("20", 2)):
        question = asked(people(relation, ledger=ledger), **METHODS[name], rho=rho, max_values=max_values)
        assert question.rho <= float(rho)
        checked_loss(question, all_pairs(3, max_values, relation))
    assert ledger.spent.rho == Fraction("20.55")


# Groups: one person may be in several, and change them.

GROUPS = ("f", "g", "h", "i")
OTHERS = [
    [],
    [(2, g, x) for g in "fghi" for x in (0, 0, 1)] + [(3, "g", 0), (3, "h", 0), (3, "h", 2)],
    [(10 * i + who, g, x) for who in range(2, 6) for i, g in enumerate(GROUPS) for x in (0, 1)[: who - 1]],
]


def grouped(rows, relation, max_groups, **options):
    who, g, x = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
    types = {"who": "int64", "g": "string", "x": "int64"}
    table = opened({"who": who, "g": g, "x": x}, person="who", neighbours=relation, types=types, **options)
    return table.group_by("g", groups=GROUPS, max_groups=max_groups)


def data_of_a_person(size):
    """All tables of one person with up to two rows, and some with more."""
    every = list(product(GROUPS[:3], (0, 1)))
    generator = random.Random(size)
    return [*subsets(every, 2), *(tuple(generator.sample(list(product(GROUPS, (0, 1, 3))), n)) for n in range(3, size))]


@lru_cache(maxsize=32)
def counted_groups(number, max_groups, max_values, size):
    """The engine's counts in every group, for some other people and all data of one person."""
    found = {}
    for own in data_of_a_person(size):
        table = grouped([*OTHERS[number], *((1, g, x) for g, x in own)], "add-remove", max_groups)
        found[own] = tuple(map(tuple, counts(table, "x", CANDIDATES, max_values)))
    return found


def worst_of_groups(question, found, relation):
    """The largest sum of log-ratios over the groups, whose answers are drawn independently; and of divergences."""
    losses, largest, used = Losses(question), 0.0, 0.0
    pairs = product(found, found) if relation is Neighbours.REPLACE else product(found, [()])
    for before, after in pairs:
        touched = [losses.of(a, b) for a, b in zip(found[before], found[after], strict=True) if a != b]
        if touched:
            most, least, renyi = (sum(part) for part in zip(*touched, strict=True))
            largest, used = max(largest, most, -least), max(used, float((renyi / ORDERS).max()))
    return largest, used


def check_groups(name, relation, max_groups, max_values, *, numbers, size, used):
    table = grouped([], relation, max_groups)
    for epsilon in (SMALL, LARGE):
        question = asked(table, **METHODS[name], epsilon=epsilon, max_values=max_values)
        assert question.epsilon == epsilon
        found = [
            worst_of_groups(question, counted_groups(number, max_groups, max_values, size), relation)
            for number in numbers
        ]
        assert max(largest for largest, _ in found) <= epsilon + SLACK
        assert max(rho for _, rho in found) <= question.rho + SLACK
    assert max(largest for largest, _ in found) >= used * LARGE


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", [name for name in METHODS if "auto" not in name])
def test_groups_together_lose_no_more_than_epsilon(name, relation):
    check_groups(name, relation, 1, 1, numbers=[2], size=5, used=0.7)


@pytest.mark.slow
@pytest.mark.parametrize("max_values", [1, 2])
@pytest.mark.parametrize("max_groups", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_all_groups_together_lose_no_more_than_epsilon(name, relation, max_groups, max_values):
    check_groups(name, relation, max_groups, max_values, numbers=range(len(OTHERS)), size=12, used=0.5)


# Mistakes.


def a_range_that_is_too_small(monkeypatch):
    right = top_k.Set.claim
    monkeypatch.setattr(
        top_k.Set, "claim", lambda self, monotonic: stated(score_range=right(self, monotonic).score_range - 1)
    )


def a_margin_that_moves_by_one(monkeypatch):
    monkeypatch.setattr(top_k.Margin, "claim", lambda self, monotonic: stated(score_range=1 if monotonic else 2))


def values_that_are_not_limited(monkeypatch):
    kept = "SELECT grp, item FROM ({}) WHERE $salt <> ''"
    monkeypatch.setattr(duckdb_engine, "_kept_values", lambda different, most: kept.format(different))


def one_shot_for_one_less(monkeypatch):
    right = top_k.OneShot.draw

    def draw(self, price, budget, groups, monotonic):
        each = price.epsilon / groups / (self.rounds - 1)
        mechanism = price.kind(budget)(each, **self.claim(monotonic).arguments())
        return replace(right(self, price, budget, groups, monotonic), mechanism=mechanism)

    monkeypatch.setattr(top_k.OneShot, "draw", draw)


def peeling_for_one_less(monkeypatch):
    def draw(self, price, budget, groups, monotonic):
        kind, count = price.kind(budget), (self.rounds - 1) * groups
        drawn = kind(price.each(kind.loss, count), **self.claim(monotonic).arguments())
        return top_k.Draw(drawn, drawn, count, method=self)

    monkeypatch.setattr(top_k.Peel, "draw", draw)


def noise_for_half_of_the_values(monkeypatch):
    monkeypatch.setattr(
        top_k.NoisyCounts,
        "claim",
        lambda self, monotonic: stated(score_range=Fraction(self.values, 2) * (1 if monotonic else 2)),
    )


def replaced_people_count_as_added_ones(monkeypatch):
    for kind in (top_k.Set, top_k.Margin, top_k.OneShot, top_k.Peel, top_k.NoisyCounts):
        monkeypatch.setattr(kind, "claim", lambda self, monotonic, right=kind.claim: right(self, monotonic=True))


ADDED, REPLACED = RELATIONS
MISTAKES = [
    (a_range_that_is_too_small, "set", ADDED, 2),
    (a_range_that_is_too_small, "set", REPLACED, 1),
    (a_range_that_is_too_small, "set", REPLACED, 2),
    (a_margin_that_moves_by_one, "margin", ADDED, None),
    (a_margin_that_moves_by_one, "margin", REPLACED, None),
    (a_margin_that_moves_by_one, "margin of an interval", ADDED, 1),
    (values_that_are_not_limited, "set", ADDED, 1),
    (values_that_are_not_limited, "set", REPLACED, 1),
    (values_that_are_not_limited, "noisy-counts", ADDED, 1),
    (one_shot_for_one_less, "one-shot", ADDED, None),
    (one_shot_for_one_less, "one-shot", REPLACED, 1),
    (peeling_for_one_less, "peel", ADDED, None),
    (noise_for_half_of_the_values, "noisy-counts", ADDED, 1),
    (noise_for_half_of_the_values, "noisy-counts", ADDED, 2),
    (noise_for_half_of_the_values, "noisy-counts", REPLACED, 2),
    (replaced_people_count_as_added_ones, "set", REPLACED, 2),
    (replaced_people_count_as_added_ones, "margin", REPLACED, None),
    (replaced_people_count_as_added_ones, "one-shot", REPLACED, None),
    (replaced_people_count_as_added_ones, "peel", REPLACED, None),
    (replaced_people_count_as_added_ones, "noisy-counts", REPLACED, 1),
]


@pytest.mark.parametrize(("mistake", "name", "relation", "max_values"), MISTAKES)
def test_a_mistake_is_found(mistake, name, relation, max_values, monkeypatch):
    mistake(monkeypatch)
    counted = mistake if mistake is values_that_are_not_limited else None
    question = asked(people(relation), **METHODS[name], epsilon=LARGE, max_values=max_values)
    assert question.epsilon == LARGE
    assert is_beyond(question, all_pairs(3, max_values, relation, counted))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["set", "margin", "one-shot", "peel", "noisy-counts"])
def test_shares_that_are_not_divided_by_groups_are_found(name, relation, monkeypatch):
    """Each group gets the whole epsilon, and only that is charged."""
    right = TopK.draw
    monkeypatch.setattr(
        TopK, "draw", lambda self, price, budget: right(replace(self, groups=None, max_groups=1), price, budget)
    )
    question = asked(grouped([], relation, 2), **METHODS[name], epsilon=LARGE, max_values=1)
    assert question.epsilon == LARGE
    assert worst_of_groups(question, counted_groups(2, 2, 1, 5), relation)[0] > LARGE * Fraction(11, 10)
