"""What tables promise beside the law of an answer: who counts, with what, from which rows, and what errors say."""

import os

import duckdb
import pyarrow as pa
import pytest

import dpselect
from dpselect import errors
from tests import seam

CERTAIN = {"epsilon": 10}  # with counts that are far apart
TIMES = 40  # a fair bit is the same in all of them with probability 2**-39


def table_of(person="who", **columns):
    return dpselect.open_table(pa.table(columns), person=person)


def crowd(rows, people=60):
    """The rows of one person, repeated for so many people, who are told apart by their number."""
    return {"who": [i for i in range(people) for _ in rows], "x": [row for _ in range(people) for row in rows]}


# Random choices among the rows of a person.


def test_which_value_of_a_person_counts_is_random():
    """One person with two values, counted for one of them: both are the answer sometimes."""
    table = table_of(who=[1, 1], x=["a", "b"])
    ask = {"candidates": ["a", "b", "c"], "method": "set", "max_values": 1, "epsilon": 10**3}
    with pytest.warns(errors.DoubtfulValue):
        seen = {table.top_k("x", 1, **ask).value[0] for _ in range(TIMES)}
    assert seen == {"a", "b"}


def test_which_group_of_a_person_counts_is_random():
    table = table_of(who=[1, 1], g=["p", "q"], x=["a", "a"]).group_by("g", groups=["p", "q"])
    counted = [seam.counts(table, "x", ["a"]) for _ in range(TIMES)]
    assert {tuple(map(tuple, own)) for own in counted} == {((1,), (0,)), ((0,), (1,))}


def test_which_middle_of_a_person_counts_is_random():
    """Of two middle values neither is preferred."""
    table = table_of(who=[1, 1], x=[0, 9])
    seen = {tuple(seam.places(table, "x", 0, 9)) for _ in range(TIMES)}
    assert seen == {((0, False, 1),), ((9, False, 1),)}


def test_which_row_of_a_person_counts_is_random():
    table = table_of(who=[1] * 3, x=[0, 4, 9])
    seen = {tuple(seam.places(table, "x", 0, 9, max_rows=1)) for _ in range(2 * TIMES)}
    assert seen == {((value, False, 1),) for value in (0, 4, 9)}


# Who counts.


def test_rows_of_nobody_count_nowhere():
    """Their values have no count, not even zero, and no answer can hold them."""
    rows = {"who": [1, 2, None, None], "x": ["a", "a", "z", "a"]}
    for options in ({}, {"max_values": 1}):
        assert seam.tallied(table_of(**rows), "x", **options) == {"a": 2}
        with seam.few_compete(3):
            found = seam.answers(lambda o=options: table_of(**rows).mode("x", epsilon=1, delta="0.1", **o)).law
        assert set(found) == {"a", None}
    assert seam.counts(table_of(**rows), "x", ["a", "z"]) == [2, 0]
    grouped = table_of(**rows, g=["p"] * 4).group_by("g", groups=["p"])
    assert seam.tallied(grouped, "x") == [{"a": 2}]


def test_counts_of_a_tally_are_positive():
    rows = {"who": [1, 1, 2, None], "x": ["a", "b", None, "c"], "n": [1, 2, 3, 4]}
    for column, domain in (("x", None), ("n", None), ("n", dpselect.every("integer", lower=0, upper=9))):
        found = seam.tallied(table_of(**rows), column, domain=domain)
        assert min(found.values()) >= 1
        assert len(found) in (2, 3)


def test_a_person_counts_once_for_a_value():
    table = table_of(who=[1, 1, 1, 2], x=["a", "a", "b", "b"])
    assert seam.counts(table, "x", ["a", "b"]) == [1, 2]
    assert seam.tallied(table, "x") == {"a": 1, "b": 2}
    assert seam.counts(table_of(None, who=[1, 1, 1, 2], x=["a", "a", "b", "b"]), "x", ["a", "b"]) == [2, 2]


def test_a_person_counts_in_so_many_groups():
    rows = {"who": [1] * 4, "g": ["p", "q", "r", "p"], "x": ["a"] * 4}
    for most in (1, 2, 3):
        table = table_of(**rows).group_by("g", groups=["p", "q", "r"], max_groups=most)
        for _ in range(5):
            assert sum(sum(own) for own in seam.counts(table, "x", ["a"])) == most


def test_answers_of_large_crowds_are_certain():
    table = table_of(**crowd([1, 1, 5]))
    assert table.mode("x", candidates=[1, 3], **CERTAIN).value == 1
    assert table.top_k("x", 2, candidates=[1, 3, 5, 7], **CERTAIN).value == [1, 5]
    assert table.median("x", lower=0, upper=9, **CERTAIN).value == 1
    assert table.values("x", max_values=2, delta="1e-6", **CERTAIN).value == [1, 5]
    assert table.mode("x", delta="1e-6", **CERTAIN).value in (1, 5)
    assert table.mode("x", candidates=dpselect.every("int64"), **CERTAIN).value in (1, 5)


@pytest.mark.parametrize("name", ['a"b', "it's", 'x" FROM rows; --', "a\\b", "größe", "a b", "SELECT", '""'])
def test_a_column_may_have_any_name(name):
    """As what is asked about, as the person and as the group; nothing in a name is read as a statement."""
    table = dpselect.open_table(pa.table({name: [1, 1, 2], "x": ["a", "a", "b"]}), person=name)
    assert seam.counts(table, "x", ["a", "b"]) == [1, 1]
    assert seam.counts(table, name, [1, 2, 3]) == [1, 1, 0]
    grouped = dpselect.open_table(pa.table({name: [1, 1, 2], "x": ["a", "a", "b"]})).group_by(name, groups=[1, 2])
    assert seam.counts(grouped, "x", ["a", "b"]) == [[2, 0], [0, 1]]
    assert seam.tallied(table, name) == {1: 1, 2: 1}


# Files that change.


def written(path, rows):
    path.write_text("x\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("keep", [True, None, False])
def test_rows_that_changed_are_read_again(tmp_path, keep):
    """The new file is as long as the old one; only its time and its content differ."""
    path = written(tmp_path / "rows.csv", ["a"] * 200)
    table = dpselect.open_table(path, keep=keep)
    with seam.rows_are_kept_at_once():
        for value in "aabbaa":
            written(path, [value] * 200)
            assert table.mode("x", candidates=["a", "b"], **CERTAIN).value == value


def test_a_file_that_was_replaced_is_read_again(tmp_path):
    """By another file of the same size and time."""
    path = written(tmp_path / "rows.csv", ["a"] * 200)
    table = dpselect.open_table(path, keep=True)
    with seam.rows_are_kept_at_once():
        assert table.mode("x", candidates=["a", "b"], **CERTAIN).value == "a"
        other = written(tmp_path / "other.csv", ["b"] * 200)
        time = path.stat().st_mtime_ns
        os.utime(other, ns=(time, time))
        other.replace(path)
        assert table.mode("x", candidates=["a", "b"], **CERTAIN).value == "b"


# Errors.

QUOTED = "Q7-quoted"


def chain_of(error):
    """All that a traceback would show."""
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__ or error.__context__


def failing(connection, column):
    """A relation that fails on one row, with a message that quotes the row."""
    connection.execute(f"CREATE OR REPLACE TABLE rows AS SELECT * FROM (VALUES ('1'), ('{QUOTED}')) AS t(x)")
    return connection.sql(f"SELECT CAST(x AS INTEGER) AS {column} FROM rows")


QUESTIONS = {
    "mode": lambda table: table.mode("x", candidates=[1, 2], epsilon=1),
    "median": lambda table: table.median("x", lower=0, upper=9, epsilon=1),
    "values": lambda table: table.values("x", epsilon=1, delta="1e-6"),
    "rule": lambda table: table.mode("x", candidates=dpselect.every("int64"), epsilon=1),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_the_engine_says_about_a_row_is_withheld(name):
    with duckdb.connect() as connection:
        table = dpselect.open_table(failing(connection, "x"))
        with pytest.raises(errors.EngineFailure) as caught:
            QUESTIONS[name](table)
    shown = "\n".join(chain_of(caught.value))
    assert QUOTED not in shown
    assert "onversion" not in shown


def test_nothing_shown_depends_on_the_rows():
    """Representations, schemas and accuracies of two tables that share no value."""
    shown = []
    for rows in (crowd(["a"]), crowd(["b", "c"], 3)):
        table = table_of(**rows)
        answer = table.mode("x", candidates=["a", "b"], other="c", epsilon=1)
        shown.append((repr(table), repr(table.columns), str(answer.guarantee), answer.estimate, str(answer.accuracy)))
    assert shown[0] == shown[1]


def test_bad_questions_are_refused_before_the_charge(tmp_path):
    ledger = dpselect.Ledger(tmp_path / "ledger", budget=1)
    table = dpselect.open_table(pa.table({"x": ["a"], "n": [1]}), ledger=ledger)
    refused = [
        lambda: table.mode("nothing", candidates=["a"], epsilon=1),
        lambda: table.mode("x", candidates=[], epsilon=1),
        lambda: table.mode("x", candidates=["a", "a"], epsilon=1),
        lambda: table.mode("x", candidates=["a", "b"], epsilon=0),
        lambda: table.mode("x", candidates=["a", "b"], epsilon=1, rho=1),
        lambda: table.top_k("x", 3, candidates=["a", "b"], epsilon=1),
        lambda: table.median("n", lower=5, upper=1, epsilon=1),
        lambda: table.quantile("n", 2, lower=0, upper=1, epsilon=1),
        lambda: table.values("x", epsilon=1),
        lambda: table.group_by("x", groups=["a"], max_groups=2),
    ]
    for ask in refused:
        with pytest.raises((errors.InvalidValue, errors.InvalidType)):
            ask()
    assert ledger.entries() == []
