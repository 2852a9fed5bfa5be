"""What every engine must do for a top-k: keep some values of a person, answer by every method, charge for it."""

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpselect import Ledger, PermuteAndFlip, ReportNoisyMax, approximate, pure, zcdp
from dpselect.errors import InvalidValue
from dpselect.questions.methods import Margin, NoisyCounts, OneShot, Set
from tests import spark
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import counts, opened, repeated
from tests.top_k.laws import law_of

SLOW_SPARK = pytest.param("spark", marks=[*spark.MARKS, pytest.mark.slow])
NAN = float("nan")
TYPES = {"who": "int64", "g": "string", "x": "int64"}


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=spark.MARKS)])
def engine(request):
    if request.param == "spark":
        spark.session()
    return request.param


slow_on_spark = pytest.mark.parametrize("engine", ["duckdb", SLOW_SPARK], indirect=True)


# What is kept of a person.


def random_rows(seed, size):
    generator = random.Random(seed)
    return [
        (generator.choice([1, 2, 3, 4, None]), generator.choice(["p", "q", None]), generator.choice([0, 1, 2, 3, 9]))
        for _ in range(size)
    ]


def columns_of(rows):
    return {"who": [who for who, _, _ in rows], "g": [g for _, g, _ in rows], "x": [x for _, _, x in rows]}


@pytest.mark.parametrize("max_values", [1, 2])
def test_nobody_counts_for_more_values_than_the_limit(engine, max_values):
    """For all people, for each of them as a group, and in each of two groups."""
    rows, candidates, people = random_rows(max_values, 60), [3, 0, 1, 50], [1, 2, 3, 4]
    table = opened(columns_of(rows), engine, person="who", types=TYPES)
    had = {(who, x) for who, _, x in rows if who is not None and x in candidates}
    sizes = {who: min(max_values, sum(other == who for other, _ in had)) for who in people}
    together = counts(table, "x", candidates, max_values)
    assert sum(together) == sum(sizes.values())
    everything = counts(table, "x", candidates)
    assert all(kept <= every for kept, every in zip(together, everything, strict=True))
    own = counts(table.group_by("who", groups=people), "x", candidates, max_values)
    assert [sum(vector) for vector in own] == [sizes[who] for who in people]
    assert all(
        n <= ((who, x) in had)
        for who, vector in zip(people, own, strict=True)
        for x, n in zip(candidates, vector, strict=True)
    )
    grouped = counts(table.group_by("g", groups=["p", "q"], max_groups=2), "x", candidates, max_values)
    facts = {(who, g, x) for who, g, x in rows if who is not None and x in candidates}
    found = Counter((who, g) for who, g, _ in facts)
    assert [sum(vector) for vector in grouped] == [
        sum(min(max_values, n) for (_, g), n in found.items() if g == group) for group in ("p", "q")
    ]


@slow_on_spark
def test_a_limit_that_nobody_reaches_changes_nothing(engine):
    rows = random_rows(3, 80)
    table = opened(columns_of(rows), engine, person="who", types=TYPES)
    for one in (table, table.group_by("g", groups=["q", "p"], max_groups=2)):
        everything = counts(one, "x", [0, 1, 2, 3])
        assert counts(one, "x", [0, 1, 2, 3], 4) == counts(one, "x", [0, 1, 2, 3], 10**30) == everything


@slow_on_spark
def test_only_public_candidates_use_up_the_limit(engine):
    """Values that are not listed, and missing ones, do not push out those that count."""
    rows = {"who": [1] * 6, "x": [7, None, 8, 5, 9, 5]}
    for _ in range(4):
        assert counts(opened(rows, engine, person="who"), "x", [5, 6], 1) == [1, 0]


@slow_on_spark
@pytest.mark.parametrize("people", [[0.0, -0.0, 0.0, -0.0], [NAN, NAN, NAN, NAN]], ids=["zeros", "NaN"])
def test_people_who_are_written_in_two_ways_are_one(engine, people):
    table = opened({"who": [*people, None], "x": [0, 1, 2, 3, 3]}, engine, person="who")
    for max_values in (1, 2, 3):
        assert sum(counts(table, "x", [0, 1, 2, 3], max_values)) == max_values


def test_rows_without_people_have_one_value(engine):
    rows = {"x": [0, 0, 1, 2, None]}
    assert counts(opened(rows, engine), "x", [0, 1, 2], 1) == [2, 1, 1]


@slow_on_spark
def test_what_is_kept_of_a_person_depends_on_nobody_else(engine, monkeypatch):
    """With one salt, the counts are the sums of what each person has alone, together and in groups."""
    monkeypatch.setattr("os.urandom", lambda count: b"\x05" * count)
    rows = [row for row in random_rows(8, 50) if row[0] is not None]

    def scores(who):
        table = opened(columns_of([row for row in rows if who in (None, row[0])]), engine, person="who", types=TYPES)
        return counts(table, "x", range(4), 2), *counts(table.group_by("g", groups=["p", "q"]), "x", range(4), 1)

    alone = np.array([scores(who) for who in (1, 2, 3, 4)])
    assert (np.array(scores(None)) == alone.sum(axis=0)).all()
    assert alone.sum() > 8


# Answers.

CLEAR = {
    "set": {"method": "set", "max_values": 1},
    "margin": {"method": "margin"},
    "interval": {"k": (1, 3), "method": "margin"},
    "one-shot": {"method": "one-shot"},
    "peel": {"method": "peel"},
    "noisy-counts": {"method": "noisy-counts", "max_values": 1},
    "auto": {},
    "auto with a limit": {"max_values": 1},
    "auto in order": {"ordered": True},
    "by the exponential mechanism": {"mechanism": "exponential"},
    "set by the exponential mechanism": {"method": "set", "max_values": 2, "mechanism": "exponential"},
    "margin by the exponential mechanism": {"method": "margin", "mechanism": "exponential"},
    "peeled by the exponential mechanism": {"method": "peel", "mechanism": "exponential"},
}
ORDERED = ("one-shot", "peel", "noisy-counts", "auto in order", "peeled by the exponential mechanism")
QUICK_ON_SPARK = ("set", "noisy-counts")
CASES = [
    *(("duckdb", name) for name in CLEAR),
    *(
        pytest.param("spark", name, marks=[*spark.MARKS, *([] if name in QUICK_ON_SPARK else [pytest.mark.slow])])
        for name in CLEAR
    ),
]


def clear_rows():
    """Two groups in which the two best are far ahead, in another order."""
    p, q = [5] * 300 + [1] * 200 + [9] * 2, [9] * 300 + [5] * 200 + [1] * 2
    return {"who": range(len(p + q)), "g": ["p"] * len(p) + ["q"] * len(q), "x": p + q}


@pytest.mark.parametrize(("engine", "name"), CASES, indirect=["engine"])
def test_clear_questions_have_clear_answers(engine, name):
    """For all people, in groups, and with candidates of a frame, which are listed in ascending order."""
    asked = {"k": 2, "epsilon": 30, **CLEAR[name]}
    table = opened(clear_rows(), engine, person="who")
    groups = table.group_by("g", groups=["q", "p"])
    lists = [[1, 2, 9, 5, 3]]
    if engine == "spark":
        lists.append(spark.session().createDataFrame([(x,) for x in (9, 3, 2, 1, 5)], "x bigint"))
    for candidates in lists:
        listed = candidates if isinstance(candidates, list) else [1, 2, 3, 5, 9]
        best = {"q": [9, 5], "p": [5, 1]}
        if name not in ORDERED:
            best = {group: sorted(own, key=listed.index) for group, own in best.items()}
        answer = groups.top_k("x", candidates=candidates, **asked)
        assert answer.value == best
        assert list(answer.value) == ["q", "p"]
        assert answer.epsilon == 30
    together = table.top_k("x", candidates=lists[-1], **asked).value
    if name in ORDERED:
        assert together == [5, 9]
    else:  # 500, 302 and 202 people: the cut is clearest after three
        assert set(together) == ({1, 5, 9} if name == "interval" else {5, 9})


@slow_on_spark
@pytest.mark.parametrize("method", ["set", "margin", None])
def test_a_set_is_listed_as_the_candidates_are(engine, method):
    """In any order of the list, and for any order of the counts."""
    rows = {"x": [1] * 90 + [2] * 80 + [3] * 70}
    for candidates in ([3, 2, 1, 4], [4, 1, 2, 3], [2, 4, 3, 1]):
        choices = {} if method is None else {"method": method}
        found = opened(rows, engine).top_k("x", 3, candidates=candidates, epsilon=20, **choices).value
        assert found == [x for x in candidates if x != 4]


DRAWN = {
    "set": (Set(2, 5, 1), lambda epsilon: PermuteAndFlip(epsilon, score_range=1)),
    "margin": (Margin(2, 5), lambda epsilon: PermuteAndFlip(epsilon, score_range=2)),
    "one-shot": (OneShot(2, 5, ordered=True), lambda epsilon: PermuteAndFlip(epsilon / 2, monotonic=True)),
    "noisy-counts": (NoisyCounts(2, 5, 1, ordered=True), lambda epsilon: ReportNoisyMax(epsilon, score_range=1)),
}


@pytest.mark.slow
@slow_on_spark
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_answers_fit_the_exact_probabilities(engine, name):
    """Also the candidates that nobody has, and those with equal counts, are as likely as they should be."""
    table = repeated({"x": ["a", "b", "a", "z", "c"]}, 1_500, engine=engine)
    candidates, numbers = ["c", "d", "a", "e", "b"], (1, 0, 2, 0, 1)
    answers = table.top_k("x", 2, candidates=candidates, epsilon=3, method=name).value
    method, mechanism = DRAWN[name]
    right, wrong = (law_of(method, mechanism(Fraction(epsilon)), numbers) for epsilon in (3, "1.6"))
    drawn = Counter(tuple(candidates.index(label) for label in answer) for answer in answers.values())
    found = [drawn[answer] for answer in right]
    assert sum(found) == len(answers)
    assert_fits(found, list(right.values()))
    assert_rejected(found, list(wrong.values()), truth=list(right.values()))


FREE = [{}, {"method": "set", "max_values": 1}, {"method": "margin"}, {"max_values": 2}, {"mechanism": "exponential"}]


@slow_on_spark
@pytest.mark.parametrize("choices", FREE, ids=str)
def test_all_candidates_are_free(engine, choices, tmp_path, monkeypatch):
    """In all three currencies nothing is charged, and nothing is read."""
    opened({"x": [1]}, engine)  # what a first table checks
    for number, budget in enumerate([pure("0.001"), zcdp("1e-9"), approximate("0.001", "1e-9")]):
        ledger = Ledger(tmp_path / f"{number}.ledger", budget=budget)
        table = opened({"who": [1], "g": ["p"], "x": [1]}, engine, person="who", ledger=ledger)
        with monkeypatch.context() as context:
            for name in ("counts", "scores", "content", "chosen"):
                context.setattr(type(table._engine), name, None, raising=False)
            answer = table.top_k("x", 3, candidates=[3, 1, 2], epsilon=1, request_id="r", **choices)
            groups = table.group_by("g", groups=["p", "q"]).top_k("x", 3, candidates=[3, 1, 2], rho=1, **choices)
        assert answer.value == [3, 1, 2]
        assert groups.value == {"p": [3, 1, 2], "q": [3, 1, 2]}
        assert groups.value["p"] is not groups.value["q"]
        assert (answer.epsilon, answer.guarantee.epsilon, answer.guarantee.zcdp) == (0, 0, 0)
        assert (answer.mechanism, answer.ledger_id, answer.receipt, answer.charged) == ("none", None, None, None)
        assert ledger.entries() == []


@pytest.mark.parametrize("choices", [{"ordered": True}, {"method": "one-shot"}, {"method": "peel"}], ids=str)
def test_an_order_of_all_candidates_is_charged(choices, tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=1)
    table = opened({"x": [1] * 60 + [2] * 30}, ledger=ledger)
    answer = table.top_k("x", 3, candidates=[3, 1, 2], epsilon=1, **choices)
    assert sorted(answer.value) == [1, 2, 3]
    assert answer.epsilon == ledger.spent == 1


def test_a_request_id_needs_a_ledger_even_where_nothing_is_charged():
    with pytest.raises(InvalidValue, match="request_id needs a ledger"):
        opened({"x": [1]}).top_k("x", 2, candidates=[1, 2], epsilon=1, request_id="r")


BUDGETS = {"pure": pure(1), "zcdp": zcdp(1), "approximate": approximate(1, "1e-6", share=0)}


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
@pytest.mark.parametrize("ordered", [False, True])
def test_auto_takes_a_method_that_the_mechanism_has(mechanism, budget, ordered, tmp_path):
    """Whatever the limit; Laplace noise would be another mechanism."""
    table = opened(
        {"who": [1, 1, 2, 3, 4], "x": [1, 2, 1, 3, 1]}, person="who", ledger=tmp_path / "ledger", budget=budget
    )
    price = {"epsilon": "0.01"} if budget.rho is None else {"rho": "0.001"}
    for max_values in (None, 1, 2, 6):
        answer = table.top_k(
            "x", 4, candidates=range(9), mechanism=mechanism, ordered=ordered, max_values=max_values, **price
        )
        assert answer.mechanism == mechanism or (mechanism, answer.mechanism) == ("permute-and-flip", "one-shot")
