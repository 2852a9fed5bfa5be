"""Every question on small tables and on all their neighbours: no answer tells them apart by more than is charged.

The questions go through `open_table`, with real rows and with what the ledger would be charged: epsilon, delta and rho.
What comes back is the exact law of the answer (`replay`). Where the bound is tight, nearly all of what is charged is
lost, so that a smaller charge would be found.
"""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import pytest

from dpselect import every
from tests import seam
from tests.behaviour.replay import ADD_REMOVE, RELATIONS, REPLACE, World, apart, frozen_loss

EPSILON = "4"
LISTED = ("a", "b", "c")


def crowd(people, *row):
    """So many people with one row each, all of them equal."""
    return ((row,),) * people


def rows(*values):
    """The rows of one individual, of one column."""
    return tuple((value,) for value in values)


NOBODY = ()
OTHERS_OF_TEXT = ((), crowd(1, "a") + crowd(2, "b"), crowd(9, "c") + crowd(5, "b"))
TEXT_ROWS = World(("x",), OTHERS_OF_TEXT, (NOBODY, *map(rows, ["a", "b", "c", "z", None])), person=False)
TEXT = World(
    ("x",),
    OTHERS_OF_TEXT,
    (NOBODY, rows("a"), rows("a", "a", "a"), rows("b", "c"), rows("a", "b", "c"), rows("z", None)),
)
OTHERS_OF_NUMBERS = (crowd(1, 0) + crowd(2, 2), crowd(60, 0), crowd(60, 1))
NUMBER_ROWS = World(("n",), OTHERS_OF_NUMBERS, (NOBODY, *map(rows, [0, 1, 2, 7, None])), person=False)
NUMBERS = World(
    ("n",), OTHERS_OF_NUMBERS, (NOBODY, rows(0), rows(2), rows(0, 2), rows(1, 1, 2), rows(2, 2, 2, 2), rows(None))
)

# In groups: a person may be in both, in one of them, or in one that is not asked for.
TEXT_IN_GROUPS = World(
    ("g", "x"),
    (crowd(1, "p", "a") + crowd(2, "q", "b"), crowd(6, "p", "a") + crowd(6, "q", "b")),
    (
        NOBODY,
        (("p", "a"),),
        (("p", "b"), ("q", "a")),
        (("p", "b"), ("p", "b"), ("q", "a"), ("q", "b")),
        (("q", "a"),),
        (("r", "a"),),
    ),
)
NUMBERS_IN_GROUPS = World(
    ("g", "n"),
    (crowd(40, "p", 1) + crowd(40, "q", 0),),
    (NOBODY, (("p", 2),), (("q", 2),), (("p", 0),), (("p", 2), ("q", 2)), (("p", 2), ("p", 2), ("q", 0), ("q", 0))),
)
TEXT_ROWS_IN_GROUPS = World(
    ("g", "x"),
    TEXT_IN_GROUPS.others,
    (NOBODY, (("p", "a"),), (("p", "b"),), (("q", "a"),), (("r", "a"),)),
    person=False,
)
NUMBER_ROWS_IN_GROUPS = World(
    ("g", "n"), NUMBERS_IN_GROUPS.others, (NOBODY, (("p", 2),), (("q", 2),), (("p", 0),)), person=False
)
TEXT_IN_PAIRS = World(
    ("g", "h", "x"),
    (crowd(3, "p", 1, "a") + crowd(3, "q", 2, "b"),),
    (NOBODY, (("p", 1, "b"),), (("p", 1, "b"), ("q", 2, "a")), (("p", 2, "b"), ("q", 1, "a"), ("q", 2, "a"))),
)
PAIRS = {"g": ["p", "q"], "h": [1, 2]}


def question(name, *arguments, **options):
    """A question as a function of a table."""
    options = {"epsilon": EPSILON, **options}
    return lambda table: getattr(table, name)(*arguments, **options)


def top(method, **options):
    return question("top_k", "x", options.pop("k", 2), candidates=LISTED, method=method, **options)


COUNTING = {
    "mode": question("mode", "x", candidates=LISTED),
    "mode, exponential": question("mode", "x", candidates=LISTED, mechanism="exponential"),
    "mode, with others": question("mode", "x", candidates=["a", "b"], other="else"),
    "mode, small domain": question("mode", "x", candidates=every("text", max_bytes=1, alphabet="ab")),
    "set": top("set", max_values=1),
    "set of two values each": top("set", max_values=2),
    "margin": top("margin"),
    "margin of one or two": top("margin", k=(1, 2)),
    "one shot": top("one-shot"),
    "peel": top("peel"),
    "peel, exponential": top("peel", mechanism="exponential"),
    "peel in order, limited": top("peel", max_values=1, ordered=True),
    "noisy counts": top("noisy-counts", max_values=2),
    "any method": top("auto"),
}
ENDS = {"lower": 0, "upper": 2}
TWO = {**ENDS, "step": 2}  # where neither candidate is the quantile of the crowd at 1, both move
ORDERED = {
    "median": question("median", "n", **ENDS),
    "median, exponential": question("median", "n", mechanism="exponential", **ENDS),
    "quantile": question("quantile", "n", "0.9", **ENDS),
    "a quarter": question("quantile", "n", Fraction(1, 4), **ENDS),
    "minimum": question("minimum", "n", **ENDS),
    "maximum": question("maximum", "n", level="0.9", **ENDS),
    "median of two candidates": question("median", "n", **TWO),
    "quantile of two candidates": question("quantile", "n", "0.9", **TWO),
}
BY_ROWS = {
    f"{name}, {most} rows": question(method, "n", *level, per_person="rows", max_rows=most, **TWO)
    for name, method, level, most in [("median", "median", (), 2), ("quantile", "quantile", ("0.9",), 3)]
}


def in_groups(ask, most):
    return lambda table: ask(table.group_by("g", groups=["p", "q"], max_groups=most))


def in_pairs(ask, most):
    return lambda table: ask(table.group_by(["g", "h"], groups=PAIRS, max_groups=most))


def check(world, ask, relation, at_least=0.3):
    """No pair of neighbours is further apart than is charged, and some are nearly as far."""
    found = apart(world, ask, relation)
    assert found.is_private, found
    assert found.share > at_least, found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("world", [TEXT_ROWS, TEXT], ids=["rows", "people"])
def test_counts(world, name, relation):
    check(world, COUNTING[name], relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("world", [NUMBER_ROWS, NUMBERS], ids=["rows", "people"])
def test_quantiles(world, name, relation):
    check(world, ORDERED[name], relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", BY_ROWS)
def test_quantiles_of_several_rows(name, relation):
    check(NUMBERS, BY_ROWS[name], relation, 0.35)


# Sets of two of four candidates: where a person has two of the values, or changes two, a set moves by two or by four.

FOUR = World(
    ("x",),
    ((), crowd(30, "a") + crowd(20, "b") + crowd(20, "c"), crowd(9, "a") + crowd(9, "b")),
    (NOBODY, rows("a"), rows("a", "b"), rows("a", "d"), rows("c", "d"), rows("a", "b", "c"), rows("a", "b", "c", "d")),
)
FOUR_ROWS = World(("x",), FOUR.others, (NOBODY, *map(rows, ["a", "b", "d"])), person=False)
FOUR_IN_GROUPS = World(
    ("g", "x"),
    (crowd(9, "p", "a") + crowd(4, "p", "b") + crowd(9, "q", "b"),),
    (NOBODY, (("p", "a"), ("p", "b")), (("p", "c"), ("p", "d"), ("q", "a"), ("q", "b")), (("q", "c"), ("q", "b"))),
)
LARGE = "18"  # with a large epsilon few tables are enough to use nearly all of it


def of_four(method, k=2, epsilon=LARGE, **options):
    return question("top_k", "x", k, candidates=[*LISTED, "d"], method=method, epsilon=epsilon, **options)


TOP_OF_FOUR = {  # a question, and the share that is used if it is asked about people
    "set": (of_four("set", max_values=3), 0.9),
    "set of two values each": (of_four("set", max_values=2), 0.9),
    "set of one value each": (of_four("set", max_values=1), 0.9),
    "set of one": (of_four("set", 1, max_values=2), 0.9),
    "margin": (of_four("margin"), 0.9),
    "margin of an interval": (of_four("margin", (1, 3)), 0.9),
    "one shot": (of_four("one-shot"), 0.5),
    "one shot of one value each": (of_four("one-shot", max_values=1), 0.4),
    "peel": (of_four("peel"), 0.9),
    "peel, in order": (of_four("peel", ordered=True, max_values=2), 0.9),
    "noisy counts": (of_four("noisy-counts", max_values=2), 0.7),
    "noisy counts of one value each": (of_four("noisy-counts", max_values=1), 0.9),
    "any method, all but one": (of_four("auto", 3), 0.5),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", TOP_OF_FOUR)
def test_top_k_of_four(name, relation):
    ask, at_least = TOP_OF_FOUR[name]
    check(FOUR, ask, relation, at_least)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "name", ["set of one value each", "margin", "one shot", "peel", "noisy counts of one value each"]
)
def test_top_k_of_four_of_rows_and_in_groups(name, relation):
    ask, _ = TOP_OF_FOUR[name]
    check(FOUR_ROWS, ask, relation, 0.3)
    check(FOUR_IN_GROUPS, in_groups(ask, 1), relation, 0.3)
    check(FOUR_IN_GROUPS, in_groups(ask, 2), relation, 0.2)


# Prices in rho.

PRICED = {
    "mode": question("mode", "x", candidates=LISTED, rho="0.3", epsilon=None, mechanism="exponential"),
    "mode, permute-and-flip": question(
        "mode", "x", candidates=LISTED, rho="0.3", epsilon=None, mechanism="permute-and-flip"
    ),
    **{
        f"{method}, {rho}": of_four(method, epsilon=None, rho=rho, max_values=2)
        for method in ("set", "margin", "one-shot", "peel", "noisy-counts")
        for rho in ("0.05", "20")
    },
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", PRICED)
def test_a_price_in_rho_is_enough(name, relation):
    found = apart(FOUR, PRICED[name], relation)
    assert found.is_private, found


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "name", ["mode", "mode, with others", "set", "margin", "noisy counts", "peel in order, limited"]
)
def test_counts_in_groups(name, relation, most):
    check(TEXT_IN_GROUPS, in_groups(COUNTING[name], most), relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["mode", "set"])
def test_counts_of_rows_in_groups(name, relation):
    check(TEXT_ROWS_IN_GROUPS, in_groups(COUNTING[name], 1), relation)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["median of two candidates", "quantile of two candidates", "median, 2 rows"])
def test_quantiles_in_groups(name, relation, most):
    check(NUMBERS_IN_GROUPS, in_groups({**ORDERED, **BY_ROWS}[name], most), relation, 0.35)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["median of two candidates", "quantile of two candidates"])
def test_quantiles_of_rows_in_groups(name, relation):
    check(NUMBER_ROWS_IN_GROUPS, in_groups(ORDERED[name], 1), relation, 0.35)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_groups_of_several_columns(relation, most):
    check(TEXT_IN_PAIRS, in_pairs(question("mode", "x", candidates=["a", "b"]), most), relation)


# Several quantiles have too many answers to follow: their selections are frozen.

THREE = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
SEVERAL = {
    "quartiles": question("quantiles", "n", THREE, **ENDS),
    "two levels": question("quantiles", "n", ["0.5", "0.9"], mechanism="exponential", **ENDS),
    "two rows": question("quantiles", "n", THREE, per_person="rows", max_rows=2, **ENDS),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_quantiles(name, relation):
    assert Fraction(1, 3) < frozen_loss(NUMBERS, SEVERAL[name], relation, seed=1) <= 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_several_quantiles_in_groups(relation):
    ask = in_groups(SEVERAL["quartiles"], 2)
    assert Fraction(1, 4) < frozen_loss(NUMBERS_IN_GROUPS, ask, relation, seed=1) <= 1


# Domains that are too large to list.

DOMAIN = every("text", max_bytes=1, alphabet="abc")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "ask",
    [
        question("mode", "x", candidates=DOMAIN),
        question("top_k", "x", 2, candidates=DOMAIN, method="peel"),
        question("top_k", "x", 2, candidates=DOMAIN, method="set", max_values=1),
    ],
    ids=["mode", "peel", "set"],
)
def test_large_domains(ask, relation):
    with seam.rules_are_tallied():
        check(TEXT, ask, relation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_large_domains_in_groups(relation):
    ask = question("mode", "x", candidates=every("text", max_bytes=1, alphabet="ab"))
    with seam.rules_are_tallied():
        check(TEXT_IN_GROUPS, in_groups(ask, 2), relation)


# Unlisted values: epsilon and delta.

SOME = [crowd(n, "a") + crowd(m, "b") for n, m in [(0, 0), (0, 2), (1, 2), (3, 3)]]
FOUND = World(("x",), (*SOME, crowd(2, "a") + crowd(2, "b") + crowd(2, "c")), TEXT.options[:5])
FOUND_ROWS = World(("x",), FOUND.others, TEXT_ROWS.options[:4], person=False)
FOUND_IN_GROUPS = World(
    ("g", "x"),
    tuple(crowd(n, "p", "a") + crowd(m, "q", "a") for n, m in [(0, 0), (1, 1), (0, 2)]),
    (NOBODY, (("p", "a"),), (("p", "a"), ("q", "a")), (("q", "b"),), (("p", "b"), ("q", "b"))),
)


def found(name, *arguments, epsilon="1.5", delta="0.05", **options):
    return question(name, "x", *arguments, epsilon=epsilon, delta=delta, **options)


UNLISTED = {
    "mode": (found("mode"), 0.2),
    "mode of one value each": (found("mode", max_values=1), 0.5),
    "mode of two values each": (found("mode", max_values=2), 0.2),
    "mode, exponential": (found("mode", mechanism="exponential"), 0.2),
    "mode of one value each, exponential": (found("mode", max_values=1, mechanism="exponential"), 0.2),
    "mode of two values each, exponential": (found("mode", max_values=2, mechanism="exponential"), 0.2),
    "two": (found("top_k", 2, epsilon=3, delta="0.1"), 0.01),
    "two of one value each": (found("top_k", 2, epsilon=3, delta="0.1", max_values=1), 0.01),
    "values": (found("values"), 0.3),
    "two values each": (found("values", max_values=2), 0.2),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", UNLISTED)
def test_unlisted_values(name, relation):
    ask, at_least = UNLISTED[name]
    with seam.few_compete(2):
        check(FOUND, ask, relation, at_least)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["mode", "values"])
def test_unlisted_values_of_rows(name, relation):
    with seam.few_compete(2):
        check(FOUND_ROWS, UNLISTED[name][0], relation, 0.2)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["mode of one value each", "values"])
@pytest.mark.parametrize("most", [1, 2])
def test_unlisted_values_in_groups(name, relation, most):
    check(FOUND_IN_GROUPS, in_groups(UNLISTED[name][0], most), relation, 0.05)


@pytest.mark.parametrize("relation", RELATIONS)
def test_unlisted_groups(relation):
    """The groups that are found are an answer, and are charged."""
    check(FOUND_IN_GROUPS, lambda table: table.group_by("g", epsilon="1.5", delta="0.05").found, relation, 0.2)


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_a_replaced_person_may_bring_a_value_two_closer(mechanism):
    """Their old value falls by one while the first count that is left out rises by one."""
    world = World(("x",), (crowd(1, "c"),), (NOBODY, rows("c"), rows("a", "b")))
    with seam.few_compete(2):
        check(world, found("mode", epsilon=6, delta="0.001", mechanism=mechanism), REPLACE)


def test_what_a_replaced_person_leaves_and_what_they_get_both_count():
    """One value may come out only because of them, and another may stay in only without them: both deltas add up."""
    others = tuple(crowd(n, "a") + crowd(m, "b") for n in range(4) for m in range(4))
    world = World(("x",), others, (NOBODY, rows("a"), rows("b")))
    check(world, found("values", epsilon=4, delta="0.01"), REPLACE, 0.49)


def test_of_one_added_person_all_of_delta_is_lost():
    for name in ("mode of one value each", "values"):
        check(FOUND, UNLISTED[name][0], ADD_REMOVE, 0.99)


# All tables of three people.


def subsets(values):
    return [rows(*own) for size in range(len(values) + 1) for own in combinations(values, size)]


ALL = {name: COUNTING[name] for name in ("mode", "set", "margin", "peel")}
ALL |= {f"unlisted {name}": ask for name, (ask, _) in UNLISTED.items()}


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ALL)
def test_all_tables_of_three_people(name, relation):
    own = subsets("abc")
    world = World(("x",), tuple(combinations_with_replacement(own, 2)), (NOBODY, *own[1:]))
    with seam.few_compete(2):
        found = apart(world, ALL[name], relation, salt=len(name))
    assert found.is_private, found
