"""What every engine must do. A new engine is added to the fixture `engine`, and all of this is asked of it."""

import datetime
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.kinds import Kind
from tests import spark
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import answering, counts, opened, places, quantile_scores, repeated, standings, tallied

MECHANISMS = [PermuteAndFlip, ExponentialMechanism]
EXAMPLES = {"duckdb": 30, "spark": 3}
DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
ZONED = NOON.replace(tzinfo=datetime.UTC)
KINDS = {
    "text": (["a", "b", "a", None], Kind.TEXT),
    "whole": ([1, 2, 1, None], Kind.INTEGER),
    "float": ([0.1, 0.2, 0.1, None], Kind.FLOAT),
    "decimal": ([Decimal("0.10"), Decimal("0.20"), Decimal("0.10"), None], Kind.DECIMAL),
    "flag": ([True, False, True, None], Kind.BOOLEAN),
    "day": ([DAY, DAY.replace(day=2), DAY, None], Kind.DATE),
    "time": ([NOON, NOON.replace(hour=1), NOON, None], Kind.TIMESTAMP),
    "zoned": ([ZONED, ZONED.replace(hour=1), ZONED, None], Kind.ZONED),
    "list": ([[1], [2], [1], None], Kind.OTHER),
}
TYPES = {"who": "int64", "g": "string", "h": "int64", "x": "int64"}
RANGES = {
    "whole": (0, 3, 1, [(1, False, 2), (2, False, 1)]),
    "float": (0.0, 0.3, 0.1, [(1, False, 2), (2, False, 1)]),
    "decimal": (0, Decimal("0.30"), Decimal("0.04"), [(2, True, 2), (5, False, 1)]),
    "day": (DAY.replace(year=2023), DAY, 1, [(365, False, 3)]),
    "time": (NOON.replace(hour=0), NOON, 1800, [(2, False, 1), (24, False, 2)]),
    "zoned": (ZONED.replace(hour=0), ZONED, datetime.timedelta(hours=5), [(0, True, 1), (2, True, 2)]),
}


@pytest.fixture
def mechanism(request):
    """All questions of the test are answered by this mechanism."""
    with answering(request.param):
        yield request.param


def with_every_mechanism(*, slow):
    """Run a test on every engine with every mechanism: in the slow suite on Spark with some of them."""
    engines = {"duckdb": [], "spark": spark.MARKS}
    cases = [
        pytest.param(engine, kind, marks=[*marks, *([pytest.mark.slow] if marks and kind in slow else [])])
        for engine, marks in engines.items()
        for kind in MECHANISMS
    ]
    return pytest.mark.parametrize(("engine", "mechanism"), cases, indirect=True)


def for_random(engine, check, **strategies):
    """Try a check with random arguments, with as many as the engine can answer in a few seconds."""
    quick = settings(max_examples=EXAMPLES[engine], suppress_health_check=[HealthCheck.too_slow])
    quick(given(**strategies)(lambda **arguments: check(engine, **arguments)))()


@pytest.fixture
def every_kind(engine):
    return opened({"who": [1, 2, 3, 4], **{name: values for name, (values, _) in KINDS.items()}}, engine)


def test_the_schema_is_told_in_kinds(every_kind):
    found = {name: column.kind for name, column in every_kind.columns.items()}
    assert found == {"who": Kind.INTEGER, **{name: kind for name, (_, kind) in KINDS.items()}}
    assert every_kind.columns["decimal"].digits == 2


def test_values_of_every_kind_are_counted(every_kind):
    for name, (values, kind) in KINDS.items():
        if kind is not Kind.OTHER:
            assert counts(every_kind, name, values[:2]) == [2, 1]
            assert counts(every_kind.group_by(name, groups=values[:2]), "who", [1, 2, 3, 4]) == [
                [1, 0, 1, 0],
                [0, 1, 0, 0],
            ]


def test_values_of_every_ordered_kind_have_places(every_kind):
    for name, (lower, upper, step, found) in RANGES.items():
        assert places(every_kind, name, lower, upper, step) == found


def test_what_cannot_be_asked_is_refused(every_kind):
    with pytest.raises(InvalidType, match="no question can be asked"):
        every_kind.mode("list", candidates=[1], epsilon=1)
    with pytest.raises(InvalidValue, match="which has 'who', 'text'"):
        every_kind.mode("lists", candidates=[1], epsilon=1)
    with pytest.raises(InvalidValue, match="lower: 'a' is neither a number nor a date"):
        every_kind.median("text", lower="a", upper="b", epsilon=1)
    with pytest.raises(InvalidType, match="holds true or false, which have no quantiles"):
        every_kind.median("flag", lower="a", upper="b", epsilon=1)


def test_people_count_once_and_missing_people_never(engine):
    rows = {"who": ["a", "a", "a", "b", None, None], "x": [1, 1, 2, 1, 1, 2]}
    assert counts(opened(rows, engine, person="who"), "x", [1, 2, 3]) == [2, 1, 0]
    assert counts(opened(rows, engine), "x", [1, 2, 3]) == [4, 2, 0]
    assert places(opened(rows, engine, person="who"), "x", 0, 5) == [(1, False, 2)]


def test_an_empty_table_is_a_table(engine):
    table = opened({"who": [], "x": [], "g": []}, engine, person="who", types=TYPES)
    assert counts(table, "x", [1, 2]) == [0, 0]
    assert places(table, "x", 0, 9) == []
    groups = table.group_by("g", groups=["p", "q"], max_groups=2)
    assert counts(groups, "x", [1, 2]) == [[0, 0], [0, 0]]
    assert places(groups, "x", 0, 9) == [[], []]
    assert set(groups.median("x", lower=0, upper=9, epsilon=1).value) == {"p", "q"}


def test_steps_and_places_beyond_64_bits(engine):
    table = opened({"x": [0, 2**63 - 1, -(2**63)]}, engine)
    assert places(table, "x", 0, 2**64 - 1, 2**63 + 5) == [(0, False, 2), (0, True, 1)]
    assert places(table, "x", -(2**63), 2**63 - 1) == [(0, False, 1), (2**63, False, 1), (2**64 - 1, False, 1)]


def test_tiny_numbers_in_writing_stand_at_zero(engine):
    """No engine takes an exponent that it cannot read for a number below the range."""
    table = opened({"x": ["1e-999999999", "-1e-999999999", "1e999999999", "-1e40"]}, engine)
    assert places(table, "x", -5, 5) == [(0, False, 1), (5, False, 2), (10, False, 1)]


def pairs_of_top_two(scores, mechanism):
    """The probability of every ordered pair of positions."""
    first, found = mechanism.pmf(scores), {}
    for i in range(len(scores)):
        left = [j for j in range(len(scores)) if j != i]
        second = mechanism.pmf([scores[j] for j in left])
        found.update({(i, j): first[i] * p for j, p in zip(left, second, strict=True)})
    return found


@with_every_mechanism(slow=MECHANISMS)
def test_drawn_pairs_fit_the_exact_probabilities(engine, mechanism):
    """Also the candidates that nobody has, and those with equal counts, are as likely as they should be."""
    table = repeated({"x": ["a", "b", "a", "z", "c"]}, 3_000, engine=engine)
    candidates, scores = ["c", "d", "a", "e", "b"], [1, 0, 2, 0, 1]
    answers = table.top_k("x", 2, candidates=candidates, epsilon=4, method="peel").value
    right, wrong = (pairs_of_top_two(scores, mechanism(epsilon, monotonic=True)) for epsilon in (2, "1.5"))
    found = dict.fromkeys(right, 0)
    for pair in answers.values():
        found[tuple(candidates.index(label) for label in pair)] += 1
    assert_fits(list(found.values()), list(right.values()))
    assert_rejected(list(found.values()), list(wrong.values()), truth=list(right.values()))


@with_every_mechanism(slow=MECHANISMS)
def test_drawn_medians_fit_the_exact_probabilities(engine, mechanism):
    table = repeated({"x": [1, 1, 4]}, 3_000, engine=engine)
    answers = list(table.median("x", lower=0, upper=5, epsilon=3).value.values())
    scores = quantile_scores(opened({"x": [1, 1, 4]}), "x", Fraction(1, 2), lower=0, upper=5)
    right, wrong = (mechanism(epsilon).pmf(scores) for epsilon in (3, 2))
    found = [answers.count(value) for value in range(6)]
    assert_fits(found, right)
    assert_rejected(found, wrong, truth=right)


def test_mechanisms_without_runs_are_refused(engine, tmp_path):
    """Before anything is charged; also where the candidates that are left out would be selected."""
    rows, asked = {"who": [1, 2], "x": [1, 2]}, {"epsilon": 1, "mechanism": "noisy-max"}
    table = opened(rows, engine, person="who", ledger=tmp_path / "ledger", budget=9)
    for ask in (
        lambda: table.mode("x", candidates=[1, 2], **asked),
        lambda: table.median("x", lower=0, upper=9, **asked),
        lambda: table.top_k("x", 2, candidates=[1, 2, 3], **asked),
        lambda: table.top_k("x", 2, candidates=[1, 2, 3], method="peel", **asked),
        lambda: table.top_k("x", 2, candidates=[1, 2, 3], method="one-shot", **asked),
    ):
        with pytest.raises(InvalidType, match="noisy-max cannot answer questions about tables"):
            ask()
    for method in ("set", "margin"):
        with pytest.raises(InvalidType, match=f"noisy-max cannot draw with method {method}: use permute-and-flip"):
            table.top_k("x", 2, candidates=[1, 2, 3], method=method, max_values=1, **asked)
    assert table._ledger.spent == 0


# A random table against a plain model of all that is counted.

ROW = st.tuples(
    st.none() | st.integers(0, 3),
    st.none() | st.sampled_from("pqr"),
    st.none() | st.sampled_from([1, 2, 9]),
    st.none() | st.integers(-3, 12),
)
BOTH = {"g": ["q", "p"], "h": [1, 2, 3]}
SOME = [("q", 2), ("p", 1), ("z", 9)]
GROUPINGS = {  # the arguments of `group_by`, and what tells the rows of each group
    "all": (None, [()]),
    "a column": (("g", ["q", "p", "z"]), [("q",), ("p",), ("z",)]),
    "all combinations": ((["g", "h"], BOTH), list(product(*BOTH.values()))),
    "some combinations": ((["g", "h"], SOME), SOME),
}


def test_random_tables_are_counted_like_the_model(engine):
    drawn = {
        "grouping": st.sampled_from(list(GROUPINGS)),
        "person": st.sampled_from([None, "who"]),
        "rows": st.lists(ROW, max_size=14),
        "step": st.integers(1, 4),
        "level": st.fractions("1/20", "19/20", max_denominator=20),
    }
    for_random(engine, check_the_counts_of_a_table, **drawn)


def check_the_counts_of_a_table(name, grouping, person, rows, step, level):
    """Of rows, and of people whom no limit leaves out: of a list, of others too, unlisted, and at places of a range."""
    grouped_by, names = GROUPINGS[grouping]
    columns = dict(zip(TYPES, zip(*rows, strict=True), strict=True)) if rows else {name: [] for name in TYPES}
    table = opened(columns, name, person=person, types=TYPES)
    if grouped_by is not None:
        table = table.group_by(grouped_by[0], groups=grouped_by[1], max_groups=len(names) if person else 1)
    parts = [[(row[0], row[3]) for row in rows if row[1 : 1 + len(own)] == own] for own in names]
    if person is not None:
        check_counts(table, [{(who, x) for who, x in part if who is not None} for part in parts], name)
        if grouped_by is None:
            check_places_of_people(table, rows, step, level)
        return
    check_counts(table, parts, name)
    stood = [counted_places([x + 9 for _, x in part if x is not None], step) for part in parts]
    found = in_lists(places(table, "x", -9, 20, step), grouped_by)
    assert found == [[(*place, n) for place, n in sorted(own.items())] for own in stood]


def in_lists(found, grouped_by):
    return [found] if grouped_by is None else found


def check_counts(table, parts, name):
    candidates, grouped_by = [3, 0, 11, 50], table._individuals.groups
    listed = [[sum(x == c for _, x in part) for c in candidates] for part in parts]
    assert in_lists(counts(table, "x", candidates), grouped_by) == listed
    known = [[(who, x if x in candidates else "rest") for who, x in part if x is not None] for part in parts]
    others = [{own for own in part if own[1] == "rest"} if table._individuals.person else part for part in known]
    rest = [sum(x == "rest" for _, x in part) for part in others]
    assert in_lists(counts(table, "x", candidates, other="rest"), grouped_by) == [
        [*own, more] for own, more in zip(listed, rest, strict=True)
    ]
    if name == "duckdb":
        tallies = [dict(Counter(x for _, x in part if x is not None)) for part in parts]
        assert in_lists(tallied(table, "x"), grouped_by) == tallies


def check_places_of_people(people, rows, step, level):
    """They stand at one of their middle values, or with all of their rows."""
    everybody = {row[0] for row in rows if row[0] is not None}
    own = [[min(max(x, 0), 10) for who, *_, x in rows if who == one and x is not None] for one in everybody]
    possible = standings(own)
    assert placed(places(people, "x", 0, 10, step)) in [counted_places(stood, step) for stood in possible]
    found = quantile_scores(people, "x", level, lower=0, upper=10, step=step)
    assert found in [model_scores(stood, range(0, 11, step), level) for stood in possible]
    every_row = [x for values in own for x in values]
    assert placed(places(people, "x", 0, 10, step, max_rows=14)) == counted_places(every_row, step)


def placed(found):
    return {(place, behind): number for place, behind, number in found}


def counted_places(stood, step):
    return Counter((s // step, s % step > 0) for s in stood)


def model_scores(stood, candidates, level):
    a, b = level.numerator, level.denominator
    scores = []
    for c in candidates:
        below, at = sum(s < c for s in stood), sum(s == c for s in stood)
        above = len(stood) - below - at
        scores.append(-max(0, (b - a) * below - a * (at + above), a * above - (b - a) * (below + at)))
    return scores


# Random valid questions: the answer is a candidate, and costs what was asked.

TOPS = [
    {},
    {"ordered": True},
    {"max_values": 2},
    {"max_values": 1, "ordered": True},
    {"method": "set", "max_values": 1},
    {"method": "set", "max_values": 3},
    {"method": "margin"},
    {"method": "one-shot"},
    {"method": "peel", "max_values": 1},
    {"method": "noisy-counts", "max_values": 2},
]
EPSILONS = st.fractions("1/1000", 50) | st.floats(1e-300, 1e300) | st.sampled_from(["0.1", "1e-9", Decimal("0.5"), 3])


def test_random_questions_are_answered_with_candidates(engine):
    relations = st.sampled_from(["add-remove", "replace"])
    for_random(engine, check_a_random_question, data=st.data(), epsilon=EPSILONS, relation=relations)


def check_a_random_question(name, data, epsilon, relation):
    generator = random.Random(data.draw(st.integers(0, 2**32)))
    size = generator.randrange(6)
    rows = {"who": [generator.randrange(3) for _ in range(size)], "g": generator.choices("pq", k=size)}
    rows["x"] = [generator.randrange(-5, 20) for _ in range(size)]
    person = data.draw(st.sampled_from([None, "who"]))
    table = opened(rows, name, person=person, neighbours=relation, types=TYPES)
    if data.draw(st.booleans()):
        most = data.draw(st.integers(1, 4)) if person else 1
        table = table.group_by("g", groups=data.draw(st.permutations(["p", "q", "r"])), max_groups=most)
    values = data.draw(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=6, unique=True))
    k = data.draw(st.integers(1, len(values)))
    top = data.draw(st.sampled_from(TOPS))
    lower, span, step = data.draw(st.tuples(st.integers(-(2**63), 0), st.integers(0, 2**63), st.integers(1, 2**40)))
    level = data.draw(st.fractions("1/1000", "999/1000", max_denominator=1000))
    domain = range(lower, lower + span + 1, step)
    with answering(data.draw(st.sampled_from(MECHANISMS))):
        answers = {
            "mode": table.mode("x", candidates=values, epsilon=epsilon),
            "top": table.top_k("x", k, candidates=values, epsilon=epsilon, **top),
            "quantile": table.quantile("x", level, lower=lower, upper=lower + span, step=step, epsilon=epsilon),
        }
    is_free = k == len(values) and not top.get("ordered") and top.get("method") in (None, "set", "margin")
    for kind, answer in answers.items():
        paid = 0 if kind == "top" and is_free else Fraction(epsilon)
        assert answer.epsilon == answer.guarantee.epsilon == paid
        for value in answer.value.values() if isinstance(answer.value, dict) else [answer.value]:
            if kind == "top":
                assert len(set(value)) == k
                assert set(value) <= set(values)
            else:
                assert value in (values if kind == "mode" else domain)
