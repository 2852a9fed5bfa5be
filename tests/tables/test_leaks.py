"""Only the drawn answer depends on the rows: no error, no message and no warning does, whatever a row holds."""

import datetime
import math
import traceback
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect
from dpselect import every
from dpselect.errors import DPSelectError, EngineFailure
from dpselect.tables.duckdb import files as duckdb_files
from tests.carried import carried
from tests.tables.looking import counts, in_writing, places

CANARY = "canary7310"
DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
ZONED = NOON.replace(tzinfo=datetime.UTC)


def raw(values, type_):
    """Integers as they lie in memory, read as another type: also what no Python object can be."""
    bits = pa.array(values, pa.int32() if type_ == pa.date32() else pa.int64())
    return pa.Array.from_buffers(type_, len(bits), bits.buffers())


def broken_texts(type_):
    """Texts of which some are not UTF-8."""
    whole = [
        b"a",
        b"\xff",
        b"a\xff",
        b"\xed\xa0\x80",
        b"\xe2\x82",
        b"1\xff",
        b"",
        b"\xc3(",
        b"2024-01-01\xff",
        b"x" * 20 + b"\xf0",
    ]
    offsets = np.cumsum([0, *map(len, whole)]).astype(np.int64 if pa.types.is_large_string(type_) else np.int32)
    return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(whole))])


def runs(values):
    """An array of runs of one each, of values that Arrow has not checked."""
    ends, size = pa.array(range(1, len(values) + 1), pa.int32()), len(values)
    return pa.Array.from_buffers(pa.run_end_encoded(ends.type, values.type), size, [None], children=[ends, values])


INT64 = [0, 1, 10**15, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1]
SCHEMA = {
    "text": pa.string(),
    "whole": pa.int64(),
    "unsigned": pa.uint64(),
    "float": pa.float64(),
    "narrow": pa.float32(),
    "decimal": pa.decimal128(38, 2),
    "day": pa.date32(),
    "time": pa.timestamp("us"),
    "nano": pa.timestamp("ns"),
    "milli": pa.timestamp("ms"),
    "zoned": pa.timestamp("us", "UTC"),
    "zoned nano": pa.timestamp("ns", "UTC"),
    "zoned milli": pa.timestamp("ms", "UTC"),
    "zoned second": pa.timestamp("s", "UTC"),
    "second": pa.timestamp("s"),
    "flag": pa.bool_(),
}
TEXTS = ["", " ", CANARY, "1", "-0", "1e400", "-1e400", "1e-400", "nan", "inf", "-inf", "9" * 400, "0x1", "1_0", "1,5"]
TEXTS += ["2024-01-01", "infinity", "-infinity", "epoch", "294248-01-01", "290309-12-22 (BC)", "2024-02-30", "24:00"]
TEXTS += ["2024-01-01 24:00:00", "2024-01-01 00:00:00+99:99", "true", "TRUE", "\x00", "\n", '"', "'", "\u202e", "😀"]
FLOATS = [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, -0.0, 0.1]
# Whatever a row may hold in each column; None for a missing value is added to all.
POISON = {
    "text": pa.array(TEXTS),
    "whole": pa.array(INT64),
    "unsigned": pa.array([0, 2**64 - 1, 2**63], pa.uint64()),
    "float": pa.array(FLOATS),
    "narrow": pa.array(np.array([math.nan, math.inf, -math.inf, 3e38, 1e-45], np.float32)),
    "decimal": pa.array([Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99"), Decimal(0)], pa.decimal128(38, 2)),
    "day": raw([0, 2**31 - 1, -(2**31), -(2**31) + 1, 10**7], pa.date32()),
    "time": raw(INT64, pa.timestamp("us")),
    "nano": raw(INT64, pa.timestamp("ns")),
    "milli": raw(INT64, pa.timestamp("ms")),
    "zoned": raw(INT64, pa.timestamp("us", "UTC")),
    "zoned nano": raw(INT64, pa.timestamp("ns", "UTC")),
    "zoned milli": raw(INT64, pa.timestamp("ms", "UTC")),
    "zoned second": raw(INT64, pa.timestamp("s", "UTC")),
    "second": raw(INT64, pa.timestamp("s")),
    "flag": pa.array([True, False]),
}
# The same in other layouts, asked like the column of that name.
LAYOUTS = {
    "broken text": ("text", broken_texts(pa.string())),
    "broken large text": ("text", broken_texts(pa.large_string())),
    "broken text views": (
        "text",
        broken_texts(pa.string()).cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()),
    ),
    "dictionary of broken texts": (
        "text",
        pa.DictionaryArray.from_arrays([0, 1, 2, 3, 9, None], broken_texts(pa.string())),
    ),
    "runs of broken texts": ("text", runs(broken_texts(pa.string()))),
    "dictionary of moments": ("zoned", pa.DictionaryArray.from_arrays([0, 1, 4, 6, None], POISON["zoned milli"])),
    "runs of moments": ("zoned", runs(POISON["zoned second"])),
    "dictionary of days": ("day", pa.DictionaryArray.from_arrays([0, 1, 2, None], POISON["day"])),
}


INTEGERS = [every("int64"), every("uint64"), every("integer", lower=-(2**127), upper=2**127 - 1)]
DECIMALS = [every("decimal", precision=38, digits=2), every("decimal", precision=30, digits=25, lower=-1, upper=1)]
TIMES, ZONED_TIMES = [every("timestamp")], [every("timestamptz")]
TEXT_RULES = [every("text", max_bytes=2), every("text", max_bytes=30, alphabet="a1\x00😀"), every("uuid")]
# Every rule that fits a column.
RULES = {
    "text": [*TEXT_RULES, *INTEGERS, *DECIMALS, every("float64"), every("date"), *TIMES, every("boolean")],
    "whole": INTEGERS,
    "unsigned": INTEGERS,
    "float": [*INTEGERS, every("float64")],
    "narrow": [*INTEGERS, every("float64")],
    "decimal": [*INTEGERS, *DECIMALS],
    "day": [every("date"), every("date", lower=DAY, upper=DAY.replace(year=2040))],
    **dict.fromkeys(("time", "nano", "milli", "second"), TIMES),
    **dict.fromkeys(("zoned", "zoned nano", "zoned milli", "zoned second"), ZONED_TIMES),
    "flag": [every("boolean")],
}


def questions(column):
    """Every question that can be asked about a column, as functions of a table or of its groups."""
    times, tenths = {"lower": NOON, "upper": NOON.replace(year=2030)}, {"lower": 0, "upper": 9.5, "step": 0.1}
    numbers, days = {"lower": -5, "upper": 10**9}, {"lower": DAY, "upper": DAY.replace(year=2030)}
    cents = {"lower": Decimal("-1.5"), "upper": Decimal("10"), "step": Decimal("0.25")}
    whole, zoned = {"lower": -(2**63), "upper": 2**63 - 1}, {"lower": ZONED, "upper": ZONED.replace(year=2030)}
    every_time = {"lower": datetime.datetime.min, "upper": datetime.datetime.max, "step": 0.000001}
    of_text = [["a", CANARY[:3]], [1, 2], [1.5, 2.0], [Decimal("1.5")], [DAY], [NOON], [True]]
    candidates, ranges = {
        "text": (of_text, [numbers, whole, tenths, cents, days, times]),
        "whole": ([[1, 2]], [numbers, whole, {"lower": 0, "upper": 10, "step": 3}]),
        "unsigned": ([[1, 2**64 - 1]], [numbers, {"lower": 0, "upper": 2**64 - 1}]),
        "float": ([[1.0, 0.1]], [tenths, {"lower": -(2**40), "upper": 2**40}]),
        "narrow": ([[0.5, 1.0]], [tenths]),
        "decimal": ([[Decimal("1.50"), 2]], [cents, {"lower": -(10**16), "upper": 10**16, "step": Decimal("0.01")}]),
        "day": ([[DAY]], [days, {"lower": datetime.date.min, "upper": datetime.date.max, "step": 7}]),
        "time": ([[NOON]], [times, every_time]),
        **dict.fromkeys(("nano", "milli", "second"), ([[NOON]], [times])),
        **dict.fromkeys(("zoned", "zoned nano", "zoned milli", "zoned second"), ([[ZONED]], [zoned])),
        "flag": ([[True, False]], []),
    }[column]
    for values in candidates:
        yield lambda table, values=values: table.mode(column, candidates=values, epsilon=1)
        yield lambda table, values=values: table.mode(column, candidates=values, other="other", epsilon=1)
    for bounds in ranges:
        yield lambda table, bounds=bounds: table.quantile(column, "0.9", **bounds, epsilon=1)
    for rule in RULES[column][:3]:
        yield lambda table, rule=rule: table.mode(column, candidates=rule, epsilon=1)
    yield lambda table: table.top_k(column, 3, epsilon=30, delta="0.4", max_values=1)
    yield lambda table: table.values(column, epsilon=1, delta="0.5")


def outcome(ask):
    """What everybody sees but the choice: that there is an answer, or the error with all of its words."""
    try:
        answer = ask()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"an answer for {len(answer.value) if isinstance(answer.value, dict) else 'all'}, {answer.guarantee}"


def table_with(column, values):
    """A row for each of these values, of different people, after two without a value, the first of nobody."""
    size = len(values) + 2
    filled = pa.concat_arrays([pa.nulls(2, values.type), values])
    return pa.table({column: filled, "who": [None, *range(1, size)], "g": (["p", None] * size)[:size]})


def views(source):
    """All rows, and groups of people."""
    people = in_writing(dpselect.open_table(source, person="who"))
    return [in_writing(dpselect.open_table(source)), people.group_by("g", groups=["p", "q"], max_groups=2)]


UNKNOWN = [("day", "pandas"), ("second", "Parquet"), ("zoned second", "Parquet")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "source"),
    # pandas has no type for dates, and Parquet none for seconds; without PyArrow, milliseconds are refused.
    [
        *((c, s) for c in POISON for s in ("Arrow", "Parquet", "pandas") if (c, s) not in UNKNOWN),
        *((c, "Parquet without PyArrow") for c in [*POISON, "broken text"] if "milli" not in c and "second" not in c),
    ],
)
def test_what_a_row_holds_changes_no_outcome(column, source, tmp_path, monkeypatch):
    monkeypatch.setattr(duckdb_files, "has_arrow", lambda: source != "Parquet without PyArrow")
    column, values = LAYOUTS.get(column, (column, POISON.get(column)))
    poisoned, harmless = table_with(column, values), table_with(column, values.slice(0, 0))

    def opened(table, name):
        if source == "pandas":
            dtypes = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
            return views(table.to_pandas(types_mapper=dtypes.get, date_as_object=False, safe=False))
        if source.startswith("Parquet"):
            pq.write_table(table, tmp_path / name, row_group_size=4)
            return views(tmp_path / name)
        return views(table)

    asked = list(questions(column))
    before = [outcome(lambda t=t, ask=ask: ask(t)) for t in opened(harmless, "1.parquet") for ask in asked]
    after = [outcome(lambda t=t, ask=ask: ask(t)) for t in opened(poisoned, "2.parquet") for ask in asked]
    assert before == after
    assert all(text.startswith("an answer") for text in after)


@pytest.mark.parametrize("source", ["Arrow", "Parquet"])
@pytest.mark.parametrize("column", POISON)
def test_what_is_counted_is_a_value_of_the_rule_or_of_python(column, source, tmp_path):
    """A further value could win, and then there would be no answer: an error that tells that somebody has it."""
    if source == "Parquet" and "second" in column:
        pytest.skip("Parquet has no seconds")
    rows = table_with(column, POISON[column])
    if source == "Parquet":
        pq.write_table(rows, tmp_path / "t.parquet")
        rows = tmp_path / "t.parquet"
    table = in_writing(dpselect.open_table(rows))
    for rule in [None, *RULES[column]]:
        with table._engine.tally(table.columns[column], rule, table._individuals) as tally:
            [levels] = tally.levels()
            sizes = zip(levels.individuals, levels.values, strict=True)
            counted = tally.values([(0, number, rank) for number, size in sizes for rank in range(size)])
            assert len(set(counted)) == sum(levels.values)
            assert not {None, math.inf, -math.inf} & set(counted)
            assert not any(value != value for value in counted)  # noqa: PLR0124 - NaN
            if rule is not None:
                indices = list(map(rule.index, counted))
                assert None not in indices
                assert len(set(indices)) == len(indices)
                assert tally.unseen(0, list(map(rule.value, indices))) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_how_a_column_is_laid_out_changes_no_outcome(layout):
    column, values = LAYOUTS[layout]
    people, groups = list(range(len(values))), (["p", None] * len(values))[: len(values)]
    table = pa.table({column: values, "who": people, "g": groups})
    for source in (table, table.to_batches()[0], pads.dataset(table)):
        for view in views(source):
            for ask in questions(column):
                assert outcome(lambda view=view, ask=ask: ask(view)).startswith("an answer")


@pytest.mark.parametrize("name", [*POISON, *LAYOUTS])
def test_people_may_be_called_anything(name):
    column, values = LAYOUTS.get(name, (name, POISON.get(name)))
    people = dpselect.open_table(pa.table({column: values, "x": ["p"] * len(values)}), person=column)
    assert 1 <= counts(people, "x", ["p"])[0] <= len(values)
    grouped = people.group_by("x", groups=["p", "q"], max_groups=2)
    for ask in questions(column):
        assert outcome(lambda ask=ask: ask(grouped)).startswith("an answer") or column == "text"


@pytest.mark.parametrize("dictionary", [True, False])
def test_broken_text_in_parquet_counts_nowhere_and_stays_apart(dictionary, tmp_path):
    """It equals no candidate, not even one of question marks, and people who are called so stay different people."""
    table = pa.table({"text": broken_texts(pa.string()), "x": ["p"] * 10})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=dictionary)
    opened = in_writing(dpselect.open_table(tmp_path / "t.parquet"))
    assert counts(opened, "text", ["a", "?", "a?", "\ufffd", "a\ufffd", "", "1?"]) == [1, 0, 0, 0, 0, 1, 0]
    for ask in questions("text"):
        assert outcome(lambda ask=ask: ask(opened)).startswith("an answer")
    people = dpselect.open_table(tmp_path / "t.parquet", person="text")
    assert counts(people, "x", ["p"]) == [10]
    grouped = people.group_by("x", groups=["p", "q"], max_groups=2)
    assert counts(grouped, "text", ["a"]) == [[1], [0]]


def test_far_moments_in_parquet_take_nothing_with_them(tmp_path):
    """In files of different units, beside other columns, of people and in groups."""
    moment, far = datetime.datetime(2024, 1, 1, 12), 2**62
    for number, unit in enumerate(("us", "ms")):
        values = pa.concat_arrays([pa.array([moment, None], pa.timestamp(unit)), raw([far], pa.timestamp(unit))])
        rows = {"t": values, "who": pa.array([number, 7, 8]), "g": pa.array(["p", "p", "q"]).dictionary_encode()}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    for files in (tmp_path, tmp_path / "1.parquet"):
        expected = 2 if files == tmp_path else 1
        table = dpselect.open_table(files, person="who")
        assert counts(table, "t", [moment]) == [expected]
        assert counts(dpselect.open_table(files), "t", [moment]) == [expected]
        assert counts(table.group_by("g", groups=["p", "q"]), "t", [moment]) == [[expected], [0]]
        assert counts(table.group_by("t", groups=[moment]), "g", ["p", "q"]) == [[expected, 0]]
        late = places(dpselect.open_table(files), "t", moment, moment.replace(year=2025), 3600)
        assert late[0] == (0, False, expected)


@pytest.mark.parametrize("beside", ["nano", "96 bits", "narrow", "uuid"])
def test_far_moments_beside_what_arrow_has_in_another_type(beside, tmp_path):
    """DuckDB would fail on them, so Arrow reads all columns of the question."""
    noon, far = datetime.datetime(2024, 1, 1, 12), raw([2**62], pa.timestamp("ms"))
    kinds = {"narrow": pa.float16(), "uuid": pa.uuid(), "nano": pa.timestamp("ns"), "96 bits": pa.timestamp("ns")}
    values = {"narrow": [np.float16(0.5), np.float16(2)], "uuid": [bytes(15) + b"\1", bytes(15) + b"\2"]}
    value, other = values.get(beside, [noon, noon.replace(year=2200)])
    rows = {
        "t": pa.concat_arrays([pa.array([noon, noon], pa.timestamp("ms")), far]),
        "who": pa.array([value, value, other], kinds[beside]),
        "g": ["p", "p", "q"],
        "text": broken_texts(pa.string()).slice(0, 3),
    }
    old = {"use_deprecated_int96_timestamps": True} if beside == "96 bits" else {}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet", **old)
    table = dpselect.open_table(tmp_path / "t.parquet", person="who")
    assert counts(table, "t", [noon]) == [1]
    assert counts(table.group_by("g", groups=["p", "q"]), "t", [noon]) == [[1], [0]]
    assert counts(table.group_by("text", groups=["a", "?", "a?"]), "t", [noon]) == [[1], [0], [0]]
    assert counts(dpselect.open_table(tmp_path / "t.parquet", person="text"), "t", [noon]) == [2 - bool(old)]


def test_nan_counts_nowhere_even_where_statistics_hide_it(tmp_path):
    """Parquet's statistics leave NaN out, so that an engine may believe that there is none."""
    pq.write_table(pa.table({"x": [1.0, math.nan, 2.0, math.inf, -math.inf]}), tmp_path / "t.parquet")
    table = dpselect.open_table(tmp_path / "t.parquet")
    assert places(table, "x", 0, 3) == [(0, False, 1), (1, False, 1), (2, False, 1), (3, False, 1)]
    assert counts(table, "x", [1.0, 2.0]) == [1, 1]
    pq.write_table(pa.table({"x": [math.nan] * 3}), tmp_path / "n.parquet")
    assert places(dpselect.open_table(tmp_path / "n.parquet"), "x", 0, 3) == []


@pytest.mark.parametrize("kind", ["CSV", "Arrow", "Parquet"])
def test_an_empty_table_is_answered_like_any_other(kind, tmp_path):
    schema = pa.schema({**SCHEMA, "who": pa.int64(), "g": pa.string()})
    source = schema.empty_table()
    if kind == "CSV":
        source = tmp_path / "t.csv"
        source.write_text(",".join(schema.names), encoding="utf-8")
    elif kind == "Parquet":
        pq.write_table(schema.empty_table(), tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    for table in views(source):
        for column in ["text"] if kind == "CSV" else SCHEMA:
            for ask in questions(column):
                assert outcome(lambda table=table, ask=ask: ask(table)).startswith("an answer")


# Errors show no value of the rows.


def shown(ask):
    with pytest.raises(DPSelectError) as caught:
        ask()
    return "".join(traceback.format_exception(caught.value)) + carried(caught.value)


def test_no_error_shows_a_value(tmp_path):
    rows = {"text": [CANARY, "a"], "who": [CANARY, "b"], "list": [[CANARY], []]}
    table = dpselect.open_table(pa.table(rows), person="who")
    bad = [
        lambda: table.mode("text", candidates=[1.5, "x"], epsilon=1),
        lambda: table.mode("text", candidates=[], epsilon=1),
        lambda: table.mode("list", candidates=["x"], epsilon=1),
        lambda: table.mode("nothing", candidates=["x"], epsilon=1),
        lambda: table.mode("text", candidates=["x"], epsilon=0),
        lambda: table.median("text", lower="a", upper="b", epsilon=1),
        lambda: table.median("text", lower=3, upper=1, epsilon=1),
        lambda: table.group_by("list", groups=["x"]),
        lambda: table.group_by("text", groups=["x"], max_groups=0),
        lambda: dpselect.open_table(pd.DataFrame({"x": [CANARY]}), person="who"),
        lambda: dpselect.open_table([CANARY]),
    ]
    assert not [text for text in map(shown, bad) if CANARY in text]
    for name, data in {"a.csv": f"{CANARY},1\n", "b.csv": f'"{CANARY}\n', "c.csv": f"x,x\n{CANARY},1\n"}.items():
        (tmp_path / name).write_text(data, encoding="utf-8")
        assert CANARY not in shown(lambda name=name: dpselect.open_table(tmp_path / name))


def test_a_failure_of_the_engine_hides_what_the_engine_says(tmp_path):
    """A damaged page, a file that is gone, and a user's own relation that fails on a value."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [CANARY] * 1000}), path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    damaged = dpselect.open_table(path)
    (tmp_path / "gone.csv").write_text(f"x\n{CANARY}\n", encoding="utf-8")
    gone = dpselect.open_table(tmp_path / "gone.csv")
    (tmp_path / "gone.csv").unlink()
    connection = duckdb.connect()
    relation = dpselect.open_table(connection.sql("SELECT CAST($x AS INTEGER) AS x", params={"x": CANARY}))
    for table, candidates in ((damaged, [CANARY]), (gone, ["a"]), (relation, [1])):
        with pytest.raises(EngineFailure, match=r"^the rows could not be counted: check") as caught:
            table.mode("x", candidates=candidates, epsilon=1)
        assert caught.value.__context__ is None
        assert CANARY not in "".join(traceback.format_exception(caught.value)) + carried(caught.value)


# Hypothesis: no content of a table makes a question raise.

PEOPLE = st.none() | st.integers(-3, 3)
CONTENT = {
    "text": st.text(max_size=12) | st.sampled_from(TEXTS),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats(),
    "narrow": st.floats(width=32),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**30), max_value=10**30),
    "day": st.dates(),
    "time": st.datetimes(),
    "flag": st.booleans(),
}


@settings(max_examples=25)
@given(data=st.data(), size=st.integers(0, 8))
def test_no_content_makes_a_question_raise(data, size):
    schema = pa.schema({"who": pa.int64(), "g": pa.string(), **{name: SCHEMA[name] for name in CONTENT}})
    drawn = {"who": PEOPLE, "g": st.none() | st.sampled_from(["p", "q", "r"]), **CONTENT}
    rows = {
        name: data.draw(st.lists(st.none() | values, min_size=size, max_size=size)) for name, values in drawn.items()
    }
    table = in_writing(dpselect.open_table(pa.table(rows, schema), person=data.draw(st.sampled_from([None, "who"]))))
    if data.draw(st.booleans()):
        table = table.group_by("g", groups=["p", "q"])
    for column in data.draw(st.lists(st.sampled_from(list(CONTENT)), min_size=3, max_size=3, unique=True)):
        ask = data.draw(st.sampled_from(list(questions(column))))
        assert outcome(lambda ask=ask: ask(table)).startswith("an answer")
