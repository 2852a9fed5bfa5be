"""A row counts in at most one group and for at most one candidate, whatever types the list and the column have.

Values that are different in Python can be equal in the column's type: doubles in a column of 32-bit floats, decimals
beyond the digits of a text, nanoseconds, one moment in two time zones. Two walls keep a row from counting twice: such a
list is refused, and the statement that counts keeps only the first of equal values. Each wall is tried alone, with the
nearly equal values of `tests/attacks/neighbouring/values.py`.
"""

import math
from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.candidates import Groups, public_values
from dpselect.tables.duckdb import values as duckdb_values
from dpselect.tables.duckdb.values import cast_list
from dpselect.tables.table import GroupedTable, _made
from tests import spark
from tests.attacks.neighbouring.values import TYPES
from tests.tables.looking import counted, in_writing, opened

NAMES = [name for name, type_ in TYPES.items() if type_.sql is None and type_.arrow != pa.float16()]
IN_SPARK = ["float", "double", "decimal128(18, 9)", "timestamp[us]", "numbers in writing", "int64"]
FLOAT = float(np.float32(0.1))
ALIKE = [FLOAT, math.nextafter(FLOAT, 1), math.nextafter(FLOAT, 0)]  # in a column of 32-bit floats
SLOW = [*spark.MARKS, pytest.mark.slow]


def cluster_of(name, seed):
    """Nearly equal values, some of which the type can hold."""
    rngs = (Random(f"{name} {seed} {number}") for number in count())
    clusters = (TYPES[name].family.near(rng) for rng in rngs)
    return next(cluster for cluster in clusters if any(map(TYPES[name].values, cluster)))


def lists_of(name, seed):
    """A list for each way of writing the values in Python, and one of texts."""
    family, cluster = TYPES[name].family, cluster_of(name, seed)
    for writing in (*family.in_python, family.in_text):
        yield list(dict.fromkeys(value for abstract in cluster for value in writing(abstract)))


def table_of(name, seed, engine="duckdb", people=None):
    """A table with all that the column g can hold of them, the numbers of its rows in x, and people who take turns."""
    type_ = TYPES[name]
    held = [value for abstract in cluster_of(name, seed) for value in type_.values(abstract)]
    rows = {"g": pa.array(held, type_.arrow or pa.string()), "x": pa.array(range(len(held)))}
    if people is not None:
        rows["who"] = pa.array([people[i % len(people)] for i in range(len(held))])
    table = dpselect.open_table(pa.table(rows), person=None if people is None else "who", engine=engine)
    return in_writing(table) if type_.arrow is None else table, range(len(held))


def unchecked(table, values, most=1):
    """The grouped table that the first wall would refuse: the statement alone must keep a row from counting twice."""
    column = table.columns["g"]
    listed = public_values(values, column)
    groups = Groups((column,), (listed.kind,), listed.items, most)
    return _made(GroupedTable, {**vars(table), "_individuals": replace(table._individuals, groups=groups)})


def numbers_of_groups(grouped, column, values):
    """In how many groups each of these values, of a column that is not grouped by, was counted."""
    lists = counted(grouped._engine, column, public_values(values, column), grouped._individuals)
    return [sum(numbers) for numbers in zip(*lists, strict=True)]


def accepted(table, values):
    """As many of the values as the first wall lets pass together."""
    passed = []
    for value in values:
        try:
            table.group_by("g", groups=[*passed, value])
        except (InvalidType, InvalidValue):
            continue
        passed.append(value)
    return passed


def check_rows(name, seed, engine="duckdb"):
    """Each row is in one group at most, behind each wall. How many rows were counted, and how many values refused."""
    (table, rows), seen = table_of(name, seed, engine), Counter()
    column = table.columns["x"]
    for values in lists_of(name, seed):
        try:
            grouped = unchecked(table, values)
        except (InvalidType, InvalidValue):  # of another kind, or equal in Python already
            continue
        found = numbers_of_groups(grouped, column, rows)
        passed = accepted(table, values)
        again = numbers_of_groups(table.group_by("g", groups=passed), column, rows)
        assert max(*found, *again) <= 1
        seen += Counter(counted=sum(found), refused=len(values) - len(passed), accepted=len(passed))
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_in_one_group(name):
    check_rows(name, 0)


@pytest.mark.slow
def test_a_row_is_in_one_group_whatever_the_values():
    """And both walls have something to do."""
    seen = sum((check_rows(name, seed) for name in NAMES for seed in range(1, 4)), Counter())
    assert min(seen["counted"], seen["refused"], seen["accepted"]) > 100


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) for name in IN_SPARK])
def test_a_row_is_in_one_group_in_spark(name):
    spark.session()
    assert check_rows(name, 0, "spark")["counted"]


@pytest.mark.parametrize("most", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_person_is_in_so_many_groups_at_most(engine, most):
    """Whatever the salt chooses, and also where values of the list are equal in the column's type."""
    reached = 0
    for name in NAMES if engine == "duckdb" else ("float", "numbers in writing"):
        table, _ = table_of(name, 0, engine, people=["Ann", "Bob"])
        for values in lists_of(name, 0):
            try:
                grouped = unchecked(table, values, most)
            except (InvalidType, InvalidValue):
                continue
            reached = max(reached, *numbers_of_groups(grouped, table.columns["who"], ["Ann", "Bob"]))
    assert reached == most


def test_a_refusal_names_both_values_and_charges_nothing(engine, tmp_path):
    session = spark.session() if engine == "spark" else None
    rows = {"g": np.array([0.1], np.float32), "x": ["x"]}
    table = opened(rows, engine, ledger=tmp_path / "l", budget=1)
    near = [ALIKE[0], 0.5, ALIKE[1]]
    with pytest.raises(InvalidValue, match=rf"{near[0]} and {near[2]} are equal when .* the column 'g' .*FLOAT"):
        table.group_by("g", groups=near)
    lists = [near] if session is None else [near, session.createDataFrame([(value,) for value in near], "g double")]
    for question in (table.mode, lambda *_, **options: table.top_k("g", 1, **options)):
        for candidates in lists:
            with pytest.raises(InvalidValue, match=f"{near[0]} and {near[2]} are equal when"):
                question("g", candidates=candidates, epsilon=1)
    assert dpselect.Ledger(tmp_path / "l").spent == 0


def test_without_the_walls_a_row_counts_often(monkeypatch):
    """The tests above can fail: where the statement joins the list as it is, one row is in many groups."""
    monkeypatch.setattr(duckdb_values, "listed", cast_list)
    table = opened({"g": np.array([0.1], np.float32), "x": [0]})
    assert numbers_of_groups(unchecked(table, ALIKE), table.columns["x"], [0]) == [3]
