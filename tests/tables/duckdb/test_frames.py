"""Data frames: no row makes a question fail or changes what the others count, and no type is guessed from the rows."""

import datetime
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.duckdb import frames
from tests.tables.looking import counts, places

CANARY = "canary7310"


def raising(*names, base=object, error=ValueError):
    """An object whose methods of these names raise an error that quotes a secret."""

    def fail(*_, **__):
        raise error(CANARY)

    return type("Raising", (base,), dict.fromkeys(names, fail))


class NamelessMeta(type):
    @property
    def __name__(cls):
        raise ValueError(CANARY)


class Nameless(metaclass=NamelessMeta):
    def __str__(self):
        raise ValueError(CANARY)


class Masked:
    """An object that lies about its class, and about everything else."""

    @property
    def __class__(self):
        raise ValueError(CANARY)

    def __getattr__(self, name):
        raise ValueError(CANARY)

    def __str__(self):
        raise ValueError(CANARY)


class Endless:
    def __str__(self):
        return str(self)


class Number:
    def __str__(self):
        return 7  # noqa: PLE0307 - as a careless class does


class Surrogate:
    def __str__(self):
        return "\udc80"


# Each is a missing value: it has no text, or one that UTF-8 cannot write.
HOSTILE = {
    "a lone surrogate": "\ud800",
    "a surrogate in a text": "a\udfffb",
    "a long text with a surrogate": "x" * 10_000 + "\ud800",
    "an object whose text fails": raising("__str__", "__repr__")(),
    "an object without memory": raising("__str__", error=MemoryError)(),
    "an object that ends an iteration": raising("__str__", error=StopIteration)(),
    "an object that is looked up": raising("__str__", error=KeyError)(),
    "an object that cannot be compared": raising("__str__", "__eq__", "__ne__", "__hash__", "__bool__")(),
    "an object that looks like an array": raising("__str__", "__array__", "__len__", "__iter__", "__getitem__")(),
    "an object that looks like a number": raising("__str__", "__float__", "__int__", "__index__", "__complex__")(),
    "a float whose text fails": raising("__str__", "__repr__", "__float__", base=float)(2.5),
    "an integer whose text fails": raising("__str__", "__repr__", "__int__", base=int)(2),
    "a dict whose text fails": raising("__str__", "__repr__", "keys", base=dict)(a=1),
    "a list that holds one": [raising("__repr__")()],
    "a class without a name": Nameless(),
    "an object without a class": Masked(),
    "an endless text": Endless(),
    "a text that is a number": Number(),
    "a text that is a surrogate": Surrogate(),
    "a text of a text that fails": raising("__str__", base=str)("a"),
    "an integer with too many digits": 10 ** (sys.get_int_max_str_digits() + 1),
}
MISSING = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT]
# What an object that is none of these is written as, today and ever since.
WRITTEN = [
    ("a", "a"),
    ("b", "b"),
    (1, "1"),
    (2.5, "2.5"),
    (True, "True"),
    (Decimal("1.50"), "1.50"),
    (b"a", "b'a'"),
    (bytearray(b"a"), "bytearray(b'a')"),
    (datetime.date(2024, 1, 1), "2024-01-01"),
    ((1, "a"), "(1, 'a')"),
    ([1], "[1]"),
    (np.str_("a"), "a"),
    (np.int8(7), "7"),
    (np.float32("nan"), "nan"),
    (np.datetime64("2024-01-01"), "2024-01-01"),
    (pd.Timestamp("2024-01-01"), "2024-01-01 00:00:00"),
]
TEXTS = [*dict.fromkeys(text for _, text in WRITTEN)]
# All of them, with the text that they count for.
OBJECTS = [*WRITTEN, *((value, None) for value in [*MISSING, *HOSTILE.values()])]


def pandas_objects(values):
    return pd.DataFrame({"v": objects(values)})


def polars_objects(values):
    """Polars itself looks at the first object, which is cut off here."""
    return pl.DataFrame({"v": pl.Series(["", *values], dtype=pl.Object)[1:]})


def lazy_objects(values):
    return polars_objects(values).lazy()


def objects(values):
    """A Series of exactly these objects: pandas would look at what is in a list of lists."""
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return pd.Series(array, dtype=object)


LIBRARIES = {"pandas": pandas_objects, "polars": polars_objects, "polars lazy": lazy_objects}
QUESTIONS = {
    "texts": lambda table: table.mode("v", candidates=["a", "b"], epsilon=1),
    "numbers": lambda table: table.mode("v", candidates=[1, 2], epsilon=1),
    "decimals": lambda table: table.median("v", lower=Decimal(0), upper=Decimal(9), step=Decimal("0.5"), epsilon=1),
    "dates": lambda table: table.mode("v", candidates=[datetime.date(2024, 1, 1)], epsilon=1),
    "another column": lambda table: table.mode("w", candidates=["a", "b"], epsilon=1),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_an_odd_object_is_a_missing_value(kind, library):
    good = [value for value, _ in WRITTEN]
    table = dpselect.open_table(LIBRARIES[library]([*good, HOSTILE[kind], *MISSING, *good]))
    assert counts(table, "v", TEXTS) == [2 * [text for _, text in WRITTEN].count(each) for each in TEXTS]
    # Neither a text nor a number for anybody.
    rest = ["", "None", "<NA>", "NaT", "7310", "?", "a?b", "\ufffd", "a\ufffdb"]
    assert counts(table, "v", rest) == [0] * len(rest)
    assert counts(table, "v", [1, 7]) == [2, 2]
    assert places(table, "v", 0, 9) == [(1, False, 2), (1, True, 2), (2, True, 2), (7, False, 2)]


@pytest.mark.slow
@settings(max_examples=60)
@given(
    numbers=st.lists(st.integers(0, len(OBJECTS) - 1), max_size=30),
    library=st.sampled_from([*LIBRARIES]),
    together=st.sampled_from([1, 2, 7, 4_096]),
)
def test_no_object_fails_and_the_others_count_as_without_it(numbers, library, together):
    values, written = [OBJECTS[n][0] for n in numbers], [OBJECTS[n][1] for n in numbers]
    expected = [written.count(text) for text in TEXTS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "_TOGETHER", together)
        frame = LIBRARIES[library](values)
        frame = frame.assign(w="a") if library == "pandas" else frame.with_columns(pl.lit("a").alias("w"))
        table = dpselect.open_table(frame)
        assert counts(table, "v", TEXTS) == expected
        for ask in QUESTIONS.values():
            ask(table)
        people = dpselect.open_table(frame, person="v")
        assert counts(people, "w", ["a"]) == [sum(map(bool, expected))]
        assert counts(people.group_by("v", groups=["a", "b"]), "w", ["a"]) == [[min(1, n)] for n in expected[:2]]


@pytest.mark.parametrize("na", [pd.NA, np.nan])
def test_odd_texts_of_a_string_column_are_missing(na):
    values = ["a", "\ud800", None, "b\udfff", "b", "a"]
    frame = pd.DataFrame({"v": pd.Series(values, dtype=pd.StringDtype("python", na_value=na))})
    assert counts(dpselect.open_table(frame), "v", ["a", "b", "b?", ""]) == [2, 1, 0, 0]


@pytest.mark.parametrize("kind", HOSTILE)
def test_odd_categories_are_missing(kind):
    try:
        categories = pd.Index(["a", HOSTILE[kind], 1, "1"], dtype=object)
        column = pd.Categorical.from_codes([0, 1, 2, 3, -1, 0, 1], categories)
    except Exception:
        pytest.skip("pandas has no such category")
    frame = pd.DataFrame({"v": column, "w": list("aaabbbb")})
    assert counts(dpselect.open_table(frame), "v", ["a", "1", "", "nan"]) == [2, 2, 0, 0]
    assert counts(dpselect.open_table(frame), "w", ["a", "b"]) == [3, 4]
    assert counts(dpselect.open_table(frame, person="v"), "w", ["a", "b"]) == [2, 2]


FRAMES = {
    "objects": lambda values: pd.DataFrame({"v": objects(values)}),
    "categories of objects": lambda values: pd.DataFrame({"v": pd.Categorical(objects(values))}),
    "polars": polars_objects,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_objects_are_always_text(kind):
    """Numbers, dates or nothing at all: no type is guessed from the rows."""
    rows = [[], [None], [1, 2], [1, None], [1.5], ["a"], [datetime.date(2024, 1, 1)], [True], [Decimal(1)]]
    if kind == "categories of objects":
        frames_ = [pd.DataFrame({"v": pd.Categorical(objects(r), pd.Index(objects(r).dropna()))}) for r in rows]
    else:
        frames_ = [FRAMES[kind](values) for values in rows]
    assert {dpselect.open_table(frame).columns["v"].type for frame in frames_} == {"VARCHAR"}


TYPED = {
    "int64": ([1, 2], "BIGINT"),
    "uint8": ([1, 2], "UTINYINT"),
    "float64": ([1.5, 2.5], "DOUBLE"),
    "bool": ([True, False], "BOOLEAN"),
    "datetime64[us]": ([pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")], "TIMESTAMP"),
    "datetime64[us, UTC]": ([pd.Timestamp("2024-01-01", tz="UTC")], "TIMESTAMP WITH TIME ZONE"),
    "str": (["a", "b"], "VARCHAR"),
}


@pytest.mark.parametrize("dtype", TYPED)
def test_a_categorical_has_the_type_of_its_categories(dtype):
    """Whichever of them occur, and whether one is missing."""
    values, type_ = TYPED[dtype]
    categories = pd.Index(values, dtype=dtype)
    for codes in ([], [-1], [0], [0, -1]):
        frame = pd.DataFrame({"v": pd.Categorical.from_codes(codes, categories)})
        assert dpselect.open_table(frame).columns["v"].type == type_


def test_numbers_of_pandas_are_read_as_before():
    """Types and values of every dtype that DuckDB itself reads from pandas."""
    types = {"int8": "TINYINT", "uint64": "UBIGINT", "float16": "FLOAT", "float32": "FLOAT", "float64": "DOUBLE"}
    types |= {"bool": "BOOLEAN", "Int64": "BIGINT", "UInt8": "UTINYINT", "Float32": "FLOAT", "Float64": "DOUBLE"}
    types |= {"boolean": "BOOLEAN", "datetime64[s]": "TIMESTAMP_S", "datetime64[ms]": "TIMESTAMP_MS"}
    types |= {"datetime64[us]": "TIMESTAMP", "datetime64[ns]": "TIMESTAMP_NS", "timedelta64[ns]": "INTERVAL"}
    for dtype, type_ in types.items():
        table = dpselect.open_table(pd.DataFrame({"v": pd.Series([1, 0], dtype=dtype)}))
        assert table.columns["v"].type == type_
        if not dtype.startswith(("date", "time")):
            asked = [True, False] if "bool" in dtype else [1.0, 0.0] if "loat" in dtype else [1, 0]
            assert counts(table, "v", asked) == [1, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "Float64"])
def test_nan_is_nobody(dtype):
    values = pd.Series([1.0, np.nan, np.nan], dtype=dtype)
    if dtype == "Float64":  # which keeps missing values apart from NaN
        values = pd.Series(pd.arrays.FloatingArray(np.array([1.0, np.nan, np.nan]), np.array([False, False, True])))
    frame = pd.DataFrame({"v": values, "w": ["a"] * 3})
    assert counts(dpselect.open_table(frame, person="v"), "w", ["a"]) == [1]


def test_numbers_are_not_copied_and_nothing_is_changed(monkeypatch):
    frame = pd.DataFrame(
        {"n": np.arange(1000), "f": np.arange(1000) / 7, "v": objects(["a", HOSTILE["a lone surrogate"]] * 500)}
    )
    before = frame.copy(deep=True)
    table = frames.frame_of(frame).scanned(["n", "f"])
    for name in ("n", "f"):
        assert table[name].chunk(0).buffers()[1].address == frame[name].to_numpy().ctypes.data
    converted = []
    convert = frames._from_pandas
    monkeypatch.setattr(
        frames, "_from_pandas", lambda series: converted.append((series.name, len(series))) or convert(series)
    )
    opened = dpselect.open_table(frame)
    assert converted == [("n", 0), ("f", 0), ("v", 0)]  # only the types
    converted.clear()
    opened.median("n", lower=0, upper=9, epsilon=1)
    assert converted == [("n", 1000)]
    assert all(a is b for a, b in zip(frame["v"], before["v"], strict=True))
    pd.testing.assert_frame_equal(frame[["n", "f"]], before[["n", "f"]])


@pytest.mark.parametrize("name", ["a.b", ".a", "^a$", "a[0]"])
def test_names_are_no_paths_into_a_column(name, tmp_path):
    moments = pa.array([0, 1000], pa.timestamp("ms"))
    pq.write_table(pa.table({name: moments, "a": [1, 2]}), tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", pads.dataset(pa.table({name: moments.cast(pa.timestamp("ms", "UTC"))}))):
        zone = None if source == tmp_path / "t.parquet" else datetime.UTC
        table = dpselect.open_table(source)
        assert counts(table, name, [datetime.datetime(1970, 1, 1, tzinfo=zone)]) == [1]


# Names and types of columns: odd ones are refused, and never shown.


@pytest.mark.parametrize("name", ["^v.*$", "*", "v w", 'v"w', "v.w", "select", "İ"])
def test_names_are_no_patterns(name):
    rows = {name: ["a", "b"], "vv": ["b", "b"]}
    lazy = pl.LazyFrame({**rows, "o": pl.Series([1, 2], dtype=pl.Object)})
    for source in (pd.DataFrame(rows), pl.DataFrame(rows), lazy, pa.table(rows), pads.dataset(pa.table(rows))):
        assert counts(dpselect.open_table(source), name, ["a", "b"]) == [1, 1]


ODD_NAMES = {
    "integers": (lambda: pd.DataFrame({0: [1], 1: [2]}), InvalidType, "of type int, not text"),
    "tuples": (
        lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("v", CANARY), ("v", 2)])),
        InvalidType,
        "of type tuple, not text",
    ),
    "None": (lambda: pd.DataFrame({None: [1], "v": [2]}), InvalidType, "not text"),
    "dates": (lambda: pd.DataFrame({pd.Timestamp("2024-01-01"): [1]}), InvalidType, "of type Timestamp, not text"),
    "doubled": (lambda: pd.DataFrame([[1, 2]], columns=[CANARY] * 2), InvalidValue, "two columns of the same name"),
    "doubled in Arrow": (lambda: pa.table([[1], [2]], [CANARY] * 2), InvalidValue, "two columns of the same name"),
    "two cases": (lambda: pd.DataFrame({"v": [1], "V": [2]}), InvalidValue, "two columns of the same name"),
    "two cases in polars": (lambda: pl.DataFrame({"v": [1], "V": [2]}), InvalidValue, "two columns of the same name"),
    "empty": (lambda: pd.DataFrame({"": [1]}), InvalidValue, "name is empty"),
    "surrogates": (lambda: pd.DataFrame({"\ud800": [1]}), InvalidValue, "cannot be written in UTF-8"),
}


@pytest.mark.parametrize("kind", ODD_NAMES)
def test_odd_names_of_columns_are_refused_and_not_shown(kind):
    make, error, words = ODD_NAMES[kind]
    try:
        frame = make()
    except UnicodeEncodeError:
        pytest.skip("pandas has no such name")
    with pytest.raises(error, match=words) as caught:
        dpselect.open_table(frame)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.period_range("2024", periods=2, freq="D")),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series([1 + 2j, 0]),
        pd.Series([1, 0], dtype="Sparse[int]"),
    ],
    ids=lambda column: column.dtype.name,
)
def test_types_that_no_question_could_be_asked_about_are_refused(column):
    with pytest.raises(InvalidType, match=r"has a column of the pandas type .*drop or cast it"):
        dpselect.open_table(pd.DataFrame({"v": column, "w": ["a", "b"]}))


STRUCTURED = {
    "a struct": pa.array([{"Alice": 1}, {"Bob": 2}]),
    "a list of structs": pa.array([[{"Alice": 1}]]),
    "a map of structs": pa.array([[("k", {"Alice": 1})]], pa.map_(pa.string(), pa.struct({"Alice": pa.int64()}))),
    "a list of lists": pa.array([[[{"Bob": 1}]]]),
    "a fixed list": pa.array([[{"Bob": 1}]], pa.list_(pa.struct({"Bob": pa.int64()}), 1)),
    "a struct with brackets": pa.array([{"Alice] (Bob": 1}]),
}


@pytest.mark.parametrize("kind", STRUCTURED)
def test_names_inside_of_types_are_not_shown(kind):
    """Arrow makes them of the keys of rows."""
    table = dpselect.open_table(pa.table({"v": STRUCTURED[kind]}))
    with pytest.raises(InvalidType, match=r"has the type (STRUCT|LIST|MAP), about which no question") as caught:
        table.mode("v", candidates=["a"], epsilon=1)
    assert not [name for name in ("Alice", "Bob") if name in f"{caught.value} {table.columns!r} {table!r}"]


@pytest.mark.parametrize(
    "value", ["'x'::t", "['x'::t]", "{'f': 'x'::t}", "map {'x'::t: 1}", "union_value(Alice := 'x'::t)"]
)
def test_members_of_enums_are_not_shown(value):
    connection = duckdb.connect()
    connection.execute("CREATE TYPE t AS ENUM ('x', 'Alice', 'Bob)[]')")
    shown = repr(dpselect.open_table(connection.sql(f"SELECT {value} AS v")).columns)
    assert not [name for name in ("Alice", "Bob") if name in shown]
