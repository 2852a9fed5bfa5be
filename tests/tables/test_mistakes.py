"""Mistakes of newcomers: every message says what to do, before anything is charged."""

import copy
import datetime
import pickle
import re
import warnings

import pandas as pd
import pyarrow as pa
import pytest

import dpselect
from dpselect._validate import warn
from dpselect.errors import DoubtfulValue, InvalidType, InvalidValue
from tests.tables.looking import counts

ROWS = {"dest": ["ulm", "bonn"] * 60, "delay": [1, 2, 3] * 40, "day": [datetime.date(2026, 1, 1)] * 120}


@pytest.fixture(scope="module")
def table():
    return dpselect.open_table(pa.table(ROWS))


def mode(**given):
    return lambda table: table.mode(**{"column": "dest", "candidates": ["a", "b"], "epsilon": 1, **given})


def median(**given):
    return lambda table: table.median(**{"column": "delay", "lower": 0, "upper": 9, "epsilon": 1, **given})


def opening(**given):
    return lambda _: dpselect.open_table(pa.table(ROWS), **given)


RANGE = r"got .*: give the public range of the column, such as 0 and 100"
MISTAKES = [
    (mode(column="Dest"), InvalidValue, "which has 'dest', 'delay', 'day': did you mean 'dest'\\?$"),
    (mode(column="dets"), InvalidValue, "did you mean 'dest'\\?$"),
    (mode(column="DELAY"), InvalidValue, "did you mean 'delay'\\?$"),
    (mode(column="delays"), InvalidValue, "did you mean 'delay'\\?$"),
    (mode(column="colour"), InvalidValue, r"which has 'dest', 'delay', 'day'$"),
    (mode(neighbors=1), InvalidType, "'neighbors': .*it is spelled neighbours, and belongs to the whole table"),
    (mode(seed=1), InvalidType, "mode has no keyword 'seed': .*randomness comes from the operating system"),
    (mode(random_state=1), InvalidType, "'random_state': .*randomness comes from the operating system"),
    (mode(eps=1), InvalidType, "'eps': .*it is spelled epsilon"),
    (mode(budget=1), InvalidType, "'budget': .*give it to open_table"),
    (mode(bounds=1), InvalidType, "'bounds': .*lower and upper"),
    (mode(candidate=1), InvalidType, "'candidate': .*did you mean 'candidates'"),
    (median(delta=1e-6), InvalidType, r"median has no keyword 'delta': .*dpselect.approximate\('1', '1e-6'\)"),
    (opening(neighbors="replace"), InvalidType, "open_table has no keyword 'neighbors': .*neighbours"),
    (opening(persn="who"), InvalidType, "open_table has no keyword 'persn': .*did you mean 'person'"),
    (lambda table: table.mode("dest", ["a"], 1), InvalidType, "mode takes only column without a name: name the others"),
    (lambda table: table.quantile("delay", 0.5, 0), InvalidType, "quantile takes only column and level without a name"),
    (
        lambda table: table.quantile("delay", [0.1], lower=0, upper=9, epsilon=1),
        InvalidType,
        "use quantiles for several levels",
    ),
    *((median(lower=end), InvalidType, RANGE) for end in ([1], True, type(None))),
    (median(column="day", lower="31.12.2026"), InvalidValue, r"'31.12.2026' cannot be read .*: write it as 2026-01-31"),
]


@pytest.mark.parametrize(("ask", "error", "words"), MISTAKES)
def test_a_mistake_is_named_with_what_to_do(ask, error, words, table):
    with pytest.raises(error, match=words):
        ask(table)


def test_names_that_may_be_data_are_never_suggested():
    looks_like_data = dpselect.open_table(pa.table({"ward 4": [1, 2], "dest": [1, 2]}))
    with pytest.raises(InvalidValue) as refused:
        looks_like_data.median("ward 5", lower=0, upper=9, epsilon=1)
    assert "ward 4" not in str(refused.value)
    assert "did you mean" not in str(refused.value)


def test_only_names_that_are_listed_are_suggested():
    """The list is cut after thirty names, and a name after forty characters."""
    many = dpselect.open_table(
        pa.table({f"{chr(97 + i // 26)}{chr(97 + i % 26)}": [1] for i in range(40)} | {"smith": [1]})
    )
    with pytest.raises(InvalidValue) as refused:
        many.median("smyth", lower=0, upper=9, epsilon=1)
    assert "smith" not in str(refused.value)
    long = dpselect.open_table(pa.table({"x" * 50: [1]}))
    with pytest.raises(InvalidValue) as refused:
        long.median("x" * 10**6, lower=0, upper=9, epsilon=1)
    assert len(str(refused.value)) < 200


def test_the_index_of_a_frame_is_no_column():
    frame = pd.DataFrame(ROWS, index=pd.Index(range(120), name="tail"))
    hint = "'tail' is not in the table.*: it is the index of the frame: give frame.reset_index\\(\\)"
    with pytest.raises(InvalidValue, match=hint):
        dpselect.open_table(frame, person="tail")
    with pytest.raises(InvalidValue, match=hint):
        dpselect.open_table(frame).median("tail", lower=0, upper=9, epsilon=1)
    assert dpselect.open_table(frame.reset_index(), person="tail").columns


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mean", "releases no noisy numbers"),
        ("count", "releases no noisy numbers"),
        ("histogram", "releases no noisy numbers"),
        ("max", "maximum"),
        ("value_counts", "top_k"),
        ("groupby", "did you mean 'group_by'"),
        ("head", "private"),
        ("filter", "when you open"),
        ("dest", "it is a column: .*median"),
    ],
)
def test_questions_of_other_libraries(table, name, hint):
    with pytest.raises(AttributeError, match=f"a table has no '{name}': .*{hint}"):
        getattr(table, name)
    assert not hasattr(table, name)


def test_what_python_looks_for_itself_is_still_missing_quietly(table):
    with pytest.raises(AttributeError, match=r"^a table has no '__deepcopy__'$"):
        table.__deepcopy__  # noqa: B018 - the look-up is what is tested
    assert not hasattr(table, "_repr_pretty_")
    for use in (copy.copy, pickle.dumps):
        try:
            use(table)
        except RecursionError:  # the look-up of names must not look up names
            pytest.fail("a table without attributes calls itself")
        except (TypeError, AttributeError, pickle.PicklingError):
            continue


def test_a_lone_group_is_doubtful(table):
    with pytest.warns(DoubtfulValue, match="groups has one value, '1-12'") as seen:
        table.group_by("dest", groups=["1-12"])
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulValue)
        table.group_by("dest", groups=["ulm", "bonn"])


@pytest.mark.parametrize(("price", "name"), [({"epsilon": "10.1"}, "epsilon"), ({"rho": 11}, "rho")])
def test_a_large_loss_is_doubtful(table, price, name):
    with pytest.warns(DoubtfulValue, match=f"^{name} 1[01].* hardly protects anybody") as seen:
        table.mode("dest", candidates=["ulm", "bonn"], **price)
    assert seen[0].filename == __file__


def test_a_doubtful_loss_that_is_an_error_costs_nothing(tmp_path):
    ledger = dpselect.Ledger(tmp_path / "l.ledger", budget=100)
    table = dpselect.open_table(pa.table(ROWS), ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulValue)
        with pytest.raises(DoubtfulValue):
            table.mode("dest", candidates=["ulm", "bonn"], epsilon=20)
    assert ledger.spent == 0


def test_a_warning_from_the_top_of_the_stack_has_a_place():
    with pytest.warns(DoubtfulValue) as seen:
        warn("doubtful")
    assert seen[0].filename == __file__


def test_several_columns_are_derived_as_one():
    flights = pa.table({"origin": ["JFK", "JFK", "EWR"], "dest": ["LAX", "LAX", "LAX"], "day of": ["a", "b", "c"]})
    table = dpselect.open_table(flights)
    message = (
        """column must be one column. Derive one when you open the table: derive={"both": "origin || '-' || dest"}"""
    )
    for columns in (["origin", "dest"], ("origin", "dest"), ["origin", "nothing"], ["origin", "day of"], [1, 2]):
        with pytest.raises(InvalidType, match=f"^{re.escape(message)}$"):
            table.mode(columns, candidates=["JFK-LAX", "EWR-LAX"], epsilon=1)
    derived = dpselect.open_table(flights, derive={"both": "origin || '-' || dest"})
    assert counts(derived, "both", ["JFK-LAX", "EWR-LAX"]) == [2, 1]
