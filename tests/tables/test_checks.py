"""Checks count exactly what questions read and leave out, against plain Python, and keep it to themselves."""

import datetime
import io
import itertools
import logging
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.tables import Notation, Reason
from tests import spark
from tests.tables.looking import counts, in_writing, places
from tests.tables.test_leaks import broken_texts

LISTED = ["I10", "E11", "J45"]


def written(folder, values, name="table.csv"):
    """A CSV file with one row for each value, and a person who is never missing."""
    path = folder / name
    path.write_text("who;value\n" + "".join(f"{i};{value}\n" for i, value in enumerate(values)), encoding="utf-8")
    return path


def noticed(check):
    return {(notice.column, notice.notation): notice.number for notice in check.notices}


def of_value(*notations):
    return {("value", notation): number for notation, number in notations}


NUMBERS = {
    Notation.DECIMAL_COMMA: ["1,5", "-2,25", ",5", "12,5000", " 3,5 "],
    Notation.THOUSANDS: [
        "1.234,50",
        "1,234.50",
        "1 234",
        "1\u00a0234,5",
        "1'234",
        "1.234.567",
        "12,34,567.8",
        "1,234,567",
    ],
    Notation.COMMA_AND_THREE_DIGITS: ["1,234", "-12,345"],
    Notation.UNIT: ["12 EUR", "12€", "$12", "EUR 12.50", "5 %", "80kg", "7 mg/dl", "20 °C", "12,50 €"],
    Notation.MINUS: ["\u22125", "\u20135.5"],
    Notation.PADDED: ["\u00a05", "7.5\u2003"],
    Notation.MISSING_WORD: ["NA", "n/a", "nan", "-", "?", "NULL"],
}


@pytest.mark.parametrize("notation", NUMBERS)
def test_notations_of_numbers(tmp_path, notation):
    """Also where nothing says that they are numbers, if most values are."""
    texts = NUMBERS[notation]
    table = dpselect.open_table(written(tmp_path, [*texts, *texts, *["7", "8", "1e2"] * len(texts)]))
    check = table.check("value", lower=0, upper=1000, step="0.01")
    assert noticed(check) == of_value((notation, 2 * len(texts)))
    assert (check.rows, check.counted) == (5 * len(texts), 3 * len(texts))
    assert check.left_out == {Reason.UNREADABLE: 2 * len(texts)}
    assert check.passed == (notation is Notation.MISSING_WORD), "missing values are no alarm"
    assert check.missing == (check.passed and 2 * len(texts))
    assert noticed(table.check("value")) == of_value((notation, 2 * len(texts)))


DATES = {
    Notation.DATE_ORDER: ["31/12/2024", "31.12.2024", "1-2-2024", "12/31/2024 10:00", "31 Dec 2024", "Dec 31, 2024"],
    Notation.SHORT_YEAR: ["31/12/24", "31.12.24", "24-01-02"],
    Notation.DATE_WITHOUT_DASHES: ["20241231", "2024.12.31"],
    Notation.MISSING_WORD: ["NaT", "--"],
}


@pytest.mark.parametrize("notation", DATES)
def test_notations_of_dates(tmp_path, notation):
    texts = DATES[notation]
    table = dpselect.open_table(written(tmp_path, [*texts, *["2024-01-31", "2024/02/01"] * len(texts)]))
    for lower, upper in (("2000-01-01", "2030-01-01"), ("2000-01-01T00:00:00", "2030-01-01T00:00:00")):
        check = table.check("value", lower=lower, upper=upper)
        assert noticed(check) == of_value((notation, len(texts)))
        assert check.counted + check.left_out.get(Reason.UNREADABLE, 0) == 3 * len(texts)
    assert noticed(table.check("value")) == of_value((notation, len(texts)))


UINT8 = dpselect.every("uint8")
NEAR = ["I10", " I10", "I10 ", "i10", " e11 ", "J45", "Z00", "z00", "Z00", "NA", "", "e11"]
DAYS = {"lower": "2000-01-01", "upper": "2030-01-01"}
# Values, what is asked, the notices, and how many values count and are left out.
CHECKED = {
    "numbers that are read": (
        ["1", "-1.5", "+2", "1e2", " 7 ", "1.200", ".5", "1_000"],
        {"lower": -9999, "upper": 9999, "step": "0.001"},
        {},
        8,
        {},
    ),
    "a point before three digits, beside commas": (
        ["1.200", "3.400", "5", "7,5"],
        {"lower": 0, "upper": 9999},
        {Notation.DECIMAL_COMMA: 1, Notation.POINT_AND_THREE_DIGITS: 2},
        3,
        {Reason.UNREADABLE: 1},
    ),
    # As pandas writes whole numbers if some are missing.
    "a point": (["5.0", "6", "7.", "7.5"], {"candidates": [5, 6, 7]}, {}, 3, {Reason.UNREADABLE: 1}),
    "a point in text": (
        ["5.0", "6", "7."],
        {"candidates": ["5", "6", "7."]},
        {Notation.POINT_ZERO: 1},
        2,
        {Reason.UNLISTED: 1},
    ),
    "a point in a range": (["5.0", "6", "7."], {"lower": 0, "upper": 9}, {}, 3, {}),
    "a short year, of the first century": (["31/12/24"], DAYS, {Notation.SHORT_YEAR: 1}, 1, {}),
    "codes": (["12A", "AB12", "7 x", "3,5", "Ulm"], {}, {}, 5, {}),
    "a date among names": (["31.12.2024", "Ulm", "Bonn"], {}, {}, 3, {}),
    "texts near the list": (
        NEAR,
        {"candidates": LISTED},
        {Notation.PADDED: 2, Notation.CASE: 3, Notation.MISSING_WORD: 1},
        2,
        {Reason.MISSING: 1, Reason.UNLISTED: 9},
    ),
    "a listed word": (
        ["NA", "DE", "unknown", "-"],
        {"candidates": ["NA", "DE", "unknown"]},
        {Notation.MISSING_WORD: 1},
        3,
        {Reason.UNLISTED: 1},
    ),
    "text candidates that are numbers": (
        ["1.5", "1,5", "2.0"],
        {"candidates": ["1.5", "2"]},
        {Notation.DECIMAL_COMMA: 1, Notation.POINT_ZERO: 1},
        1,
        {Reason.UNLISTED: 2},
    ),
    "padded text": (["Ulm", " Ulm", "Bonn\t"], {}, {Notation.PADDED: 2}, 3, {}),
    "a rule": (
        ["1", "300", "x", "2.5", "", "300", "7"],
        {"candidates": UINT8},
        {},
        2,
        {Reason.MISSING: 1, Reason.UNREADABLE: 2, Reason.UNLISTED: 2},
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_noticed_counted_and_left_out(name, tmp_path):
    values, asked, notices, counted, left_out = CHECKED[name]
    check = dpselect.open_table(written(tmp_path, values)).check("value", **asked)
    assert noticed(check) == of_value(*notices.items())
    assert (check.rows, check.counted, check.left_out) == (len(values), counted, left_out)
    if Reason.UNLISTED in left_out and asked["candidates"] is not UINT8:
        assert check.unlisted == len(set(values) - set(asked["candidates"]) - {""})
    first, *_, last = check.report().splitlines()
    assert first.startswith("PRIVATE: ")
    assert last.endswith("Nothing was charged, and nothing was released.")


def test_people_and_rows():
    who = ["a", "a", "a", "b", None, "c", "c"]
    value = [1, None, 2, 3, 4, None, None]
    check = dpselect.open_table(pa.table({"who": who, "value": value}), person="who").check("value", lower=0, upper=9)
    assert (check.people, check.people_counted, check.most_rows) == (3, 2, 3)
    assert check.left_out == {Reason.PERSON: 1, Reason.MISSING: 3}
    assert "several rows for a person: yes, up to 3" in check.report()
    single = dpselect.open_table(pa.table({"who": ["a", "b"], "value": [1, 2]}), person="who")
    check = single.check("value", lower=0, upper=9)
    assert (check.passed, check.most_rows) == (True, 1)
    assert "several rows for a person: no" in check.report()


def test_names_of_people():
    who = ["17", " 17", "17.0", "Ann", "ann", "NA", "NA", "18"]
    rows = pa.table({"who": who, "value": [1] * 8})
    check = dpselect.open_table(rows, person="who").check("value", lower=0, upper=9)
    expected = {Notation.PADDED: 1, Notation.MISSING_WORD: 2, Notation.SIMILAR_PEOPLE: 3}
    assert noticed(check) == {("who", notation): number for notation, number in expected.items()}
    assert (check.people, check.counted) == (7, 8)


def test_groups():
    rows = {
        "ward": ["a", "A", " a", "b", None, "c", "a", "b"],
        "year": [1, 1, 1, 2, 2, 2, 3, 1],
        "value": [5, 5, 5, None, 5, 5, 5, 5],
    }
    table = dpselect.open_table(pa.table(rows))
    check = table.group_by("ward", groups=["a", "b"]).check("value", lower=0, upper=9)
    assert (check.counted, check.left_out) == (3, {Reason.GROUP: 4, Reason.MISSING: 1})
    assert noticed(check) == {("ward", Notation.PADDED): 1, ("ward", Notation.CASE): 1}
    both = table.group_by(["ward", "year"], groups={"ward": ["a", "b"], "year": [1, 2]})
    check = both.check("value", lower=0, upper=9)
    assert (check.counted, check.left_out) == (2, {Reason.GROUP: 5, Reason.MISSING: 1})
    assert noticed(check) == {("ward", Notation.PADDED): 1, ("ward", Notation.CASE): 1}


# Every kind of column, with values at, just inside and just outside the ends of a range.

DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
TICK = datetime.timedelta(microseconds=1)
TYPED = {
    "int8": (pa.int8(), [-128, 0, 1, 9, 10, 11, 127], 1, 10),
    "int64": (pa.int64(), [-(2**63), 0, 1, 10, 11, 2**63 - 1], 1, 10),
    "uint64": (pa.uint64(), [0, 1, 10, 11, 2**64 - 1], 1, 10),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal(text) for text in ("0.99", "1.00", "1.01", "9.99", "10.00", "10.01")],
        1,
        10,
    ),
    "wide decimal": (
        pa.decimal128(38, 2),
        [Decimal("0.99"), Decimal("1.00"), Decimal("1e35"), Decimal("-1e35")],
        1,
        10,
    ),
    "float": (pa.float32(), [0.5, 1.0, 10.0, 10.5, float("inf"), float("-inf"), float("nan")], 1, 10),
    "double": (pa.float64(), [0.999999, 1.0, 10.0, 10.0001, float("inf"), float("-inf"), float("nan")], 1, 10),
    "date": (
        pa.date32(),
        [DAY + datetime.timedelta(days=i) for i in range(-2, 14)],
        DAY,
        DAY + datetime.timedelta(days=9),
    ),
    "timestamp": (pa.timestamp("us"), [NOON + i * TICK for i in range(-2, 9)], NOON, NOON + 3 * TICK),
    "zoned": (
        pa.timestamp("us", "UTC"),
        [NOON.replace(tzinfo=datetime.UTC) + i * TICK for i in range(-2, 9)],
        NOON.replace(tzinfo=datetime.UTC),
        NOON.replace(tzinfo=datetime.UTC) + 3 * TICK,
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_typed_columns_and_the_ends_of_a_range(name, tmp_path):
    type_, values, lower, upper = TYPED[name]
    random.seed(name)
    rows = [random.choice([*values, None]) for _ in range(300)]
    known = [value for value in rows if value is not None and value == value]  # noqa: PLR0124 - NaN
    table = pa.table({"value": pa.array(rows, type_)})
    pq.write_table(table, tmp_path / "table.parquet")
    step = TICK if isinstance(lower, datetime.datetime) else 1
    for source in (table, tmp_path / "table.parquet"):
        opened = dpselect.open_table(source)
        check = opened.check("value", lower=lower, upper=upper, step=step)
        assert (check.rows, check.counted) == (300, len(known))
        assert check.left_out == {Reason.MISSING: 300 - len(known)}
        assert check.below == sum(value < lower for value in known)
        assert check.above == sum(value > upper for value in known)
        assert check.counted == sum(n for *_, n in places(opened, "value", lower, upper, step))
        assert check.notices == ()


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("end", [0.1, 0.7])
def test_floats_in_the_order_of_their_bits(type_, end):
    """An end is the 32-bit float nearest to it: that of 0.1 is above it, and that of 0.7 is below."""
    table = dpselect.open_table(pa.table({"value": pa.array([end, end - 0.01, end + 0.1, float("inf")], type_)}))
    check = table.check("value", lower=end)
    assert (check.counted, check.below, check.above) == (4, 1, 1)
    assert table.check("value", upper=end).above == 2
    assert table.check("value", range="log").above == 1
    check = table.check("value")  # as `values` would: an infinity is not one of them
    assert (check.counted, check.left_out) == (3, {Reason.UNREADABLE: 1})


WRITTEN = ["-1", "0", "0.99", "1", "1.0", "10", "10.000000001", "10.0000000001", "11", "1e40", "-1e40", "1e-999999999"]


@pytest.mark.parametrize("step", [1, "0.01"])
def test_numbers_in_writing_and_the_ends_of_a_range(tmp_path, step):
    """Digits after the ninth are not read."""
    table = dpselect.open_table(written(tmp_path, [*WRITTEN, "inf", "-inf", "x", ""]))
    check = table.check("value", lower=1, upper=10, step=step)
    exact = [round(Fraction(text), 9) for text in WRITTEN[:-1]] + [Fraction(0)]
    assert check.below == sum(number < 1 for number in exact) + 1
    assert check.above == sum(number > 10 for number in exact) + 1
    assert check.left_out == {Reason.MISSING: 1, Reason.UNREADABLE: 1}
    assert check.counted == sum(n for *_, n in places(table, "value", 1, 10, Decimal(step))) == len(WRITTEN) + 2


@pytest.mark.parametrize("seed", range(3))
def test_what_counts_is_what_questions_count(seed, tmp_path):
    """Random rows of text, with people and groups: all reasons by plain Python."""
    draw = random.Random(seed)
    pools = (["p1", "p2", " p2", ""], ["I10", "E11", "i10", " I10", "Z", "Y", ""], ["a", "b", "A", ""])
    rows = [tuple(draw.choice(pool) for pool in pools) for _ in range(400)]
    path = tmp_path / "rows.csv"
    path.write_text("who,value,ward\n" + "".join(",".join(row) + "\n" for row in rows))
    table = dpselect.open_table(path, person="who").group_by("ward", groups=["a", "b"], max_groups=2)

    def reason(who, value, ward):
        if not who:
            return Reason.PERSON
        if ward not in {"a", "b"}:
            return Reason.GROUP
        if not value:
            return Reason.MISSING
        return None if value in LISTED else Reason.UNLISTED

    expected = Counter(reason(*row) for row in rows)
    check = table.check("value", candidates=LISTED)
    assert check.counted == expected.pop(None)
    assert check.left_out == expected
    assert list(check.left_out) == [each for each in Reason if each in expected]
    assert check.rows == 400
    assert check.people == len({who for who, *_ in rows} - {""})
    assert check.people_counted == len({row[0] for row in rows if reason(*row) is None})
    assert check.most_rows == max(Counter(who for who, *_ in rows if who).values())
    off = {row[1] for row in rows if reason(*row) is Reason.UNLISTED}
    assert check.unlisted == len(off)
    every_row = dpselect.open_table(path)
    assert every_row.check("value", candidates=LISTED).counted == sum(counts(every_row, "value", LISTED))


def test_typed_text_that_is_not_asked_for_numbers():
    """A column that has a type is text, so commas in it are not suspicious."""
    table = dpselect.open_table(pa.table({"value": ["1,5", "2,5"]}))
    assert table.check("value").passed
    assert noticed(in_writing(table).check("value")) == of_value((Notation.DECIMAL_COMMA, 2))
    with pytest.raises(InvalidType, match="no quantiles"):
        dpselect.open_table(pa.table({"value": ["1"]})).check("value", lower=0, upper=1)


def test_an_empty_table_does_not_pass(tmp_path):
    check = dpselect.open_table(written(tmp_path, []), person="who").check("value", lower=0, upper=1)
    assert (check.rows, check.people, check.most_rows, check.left_out, check.passed) == (0, 0, 0, {}, False)


# What it keeps to itself.

CANARY = "canary7310"


def test_nothing_of_a_row_is_shown_unless_asked_for(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    values = [*[CANARY] * 7310, *[f"{CANARY} {i}" for i in range(7)], f" {CANARY}", "3,5"]
    table = dpselect.open_table(written(tmp_path, values), person="who")
    for asked in ({"candidates": ["Ulm", "Bonn"]}, {"lower": 0, "upper": 9}, {}):
        check = table.check("value", **asked)
        shown = f"{check} {check!r} {check.notices} {[check]} {check.notices!r}"
        assert not any(character.isdigit() for character in shown.replace("value", ""))
        stream = io.StringIO()
        print(check, check.notices, file=stream)
        assert CANARY not in stream.getvalue() + shown + check.report()
        assert CANARY not in str(check.to_dict())
        assert check.examples is None
    assert CANARY not in caplog.text
    assert capfd.readouterr() == ("", "")


def test_up_to_five_values_are_shown_if_asked_for(tmp_path):
    values = [f"v{i}" for i in range(9)] + [" I10", "i10"] + ["x" * 1000]
    check = dpselect.open_table(written(tmp_path, values)).check("value", candidates=LISTED, show_values=True)
    [examples] = check.examples.values()
    assert len(examples) == 5
    assert set(examples) <= {value[:60] for value in values}
    assert {notice.notation: notice.examples for notice in check.notices} == {
        Notation.PADDED: (" I10",),
        Notation.CASE: ("i10",),
    }
    assert "[' I10']" in check.report()
    assert check.to_dict()["notices"][0]["examples"] == [" I10"]


def test_every_number_is_in_the_report(tmp_path):
    """Different numbers for everything."""
    values = [*["-1"] * 2, *["99"] * 3, *["5"] * 4, *["1,5"] * 6, *["x"] * 7, *[""] * 11]
    check = dpselect.open_table(written(tmp_path, values), person="who").check("value", lower=0, upper=9)
    lines = check.report().splitlines()
    assert lines[1:] == [
        "column 'value', read as whole numbers from 0 to 9",
        "rows: 33",
        "  counted: 9",
        "    outside the range, counted as its lower end: 2",
        "    outside the range, counted as its upper end: 3",
        "  left out: 24",
        "    missing values: 11",
        "    values that cannot be read as the question requires: 13",
        "people: 33",
        "  with a row that is counted: 9",
        "  several rows for a person: no",
        "suspicious in 'value': numbers with a decimal comma, such as 1,5: 6."
        " Fix: open a text file with decimal=',', or --decimal ,; elsewhere derive replace(column, ',', '.').",
        "suspicious in 'value': most values are outside the range.",
        "The answer would mean nothing: at most half of the values that are not missing can be read."
        " Nothing was charged, and nothing was released.",
    ]


def test_refusals(tmp_path):
    path = written(tmp_path, ["1"])
    table = dpselect.open_table(path)
    with pytest.raises(InvalidValue, match="exclude each other"):
        table.check("value", candidates=LISTED, lower=0)
    with pytest.raises(InvalidValue, match="not in the table"):
        table.check("cost")
    with pytest.raises(InvalidValue, match="what it stands for"):
        table.check("value", range="full", step="2024-01-01")
    ledger = dpselect.open_table(path, ledger=tmp_path / "t.ledger", budget=1)
    with pytest.raises(InvalidValue, match="without a ledger"):
        ledger.check("value")
    assert dpselect.Ledger(tmp_path / "t.ledger").spent == 0


def test_a_failing_source_says_nothing():
    import duckdb  # noqa: PLC0415 - only here

    connection = duckdb.connect()
    relation = connection.sql(f"SELECT CASE WHEN i < 5 THEN 1 ELSE error('{CANARY}') END AS value FROM range(9) t(i)")
    with pytest.raises(EngineFailure) as failed:
        dpselect.open_table(relation).check("value", lower=0, upper=9)
    assert CANARY not in str(failed.value)


@pytest.mark.parametrize("column", ["value", "who", "ward"])
def test_texts_that_are_not_utf8(column, tmp_path):
    """Parquet and Arrow may hold them. They count as texts that are not listed."""
    broken = broken_texts(pa.string())
    rows = {name: pa.array(["a"] * len(broken)) for name in ("value", "who", "ward")}
    table = pa.table({**rows, column: broken})
    pq.write_table(table, tmp_path / "t.parquet")
    whole = 2  # of these texts are UTF-8, and one is empty
    for source in (table, tmp_path / "t.parquet"):
        grouped = dpselect.open_table(source, person="who").group_by("ward", groups=["a", "b"])
        check = grouped.check("value", candidates=["a", "b"], show_values=True)
        assert check.rows == len(broken)
        assert check.people == (len(broken) if column == "who" else 1)
        assert check.counted == (len(broken) if column == "who" else 1)
        assert noticed(check) == {(column, Notation.NOT_UTF8): len(broken) - whole}
        assert not check.passed
        assert dpselect.open_table(source).check("value").passed == (column != "value")


def test_odd_names_of_columns():
    names = ["reason", "written", "item", "person", "below", "line", 'a"b', "member0"]
    rows = pa.table({name: ["I10", "x"] for name in names})
    for column, person in itertools.pairwise([*names, names[0]]):
        check = dpselect.open_table(rows, person=person).check(column, candidates=["I10", "E11"])
        assert (check.counted, check.unlisted) == (1, 1)


@pytest.mark.slow
class TestSpark:
    pytestmark = spark.MARKS

    def test_spark_is_refused(self):
        frame = spark.session().createDataFrame([("I10",)], ["value"])
        with pytest.raises(InvalidValue, match="on this machine only"):
            dpselect.open_table(frame, engine="spark").check("value", candidates=LISTED)


STEPPED = {
    "whole numbers": (pa.array([0, 3, 5, 7, 10, 12, -4, 99, None]), {"lower": 0, "upper": 20, "step": 5}, 3),
    "floats": (pa.array([0.0, 0.25, 0.5, 0.75, 2.0, -1.0, 9.0]), {"lower": 0, "upper": 2, "step": "0.5"}, 2),
    "decimals": (
        pa.array([Decimal("1.00"), Decimal("1.25"), Decimal("1.50")]),
        {"lower": 0, "upper": 2, "step": "0.5"},
        1,
    ),
    "dates": (
        pa.array([datetime.date(2024, 1, day) for day in (1, 2, 8, 9, 15)]),
        {"lower": "2024-01-01", "upper": "2024-01-29", "step": 7},
        2,
    ),
    "every whole number": (pa.array([0, 3, 5, 7]), {"lower": 0, "upper": 20}, 0),
    "a coarse grid": (pa.array([0, 3, 5, 7, 1000]), {"range": "log"}, 0),
}


@pytest.mark.parametrize("case", STEPPED)
def test_values_between_candidates_are_counted(case, tmp_path):
    """As a column with a type and, where text can be read so, in writing; not those outside the range."""
    column, grid, between = STEPPED[case]
    table = dpselect.open_table(pa.table({"value": column}))
    assert table.check("value", **grid).between == between
    if case not in ("dates", "a coarse grid"):
        values = ["" if value is None else str(value) for value in column.to_pylist()]
        in_text = dpselect.open_table(written(tmp_path, values), person="who")
        assert in_text.check("value", **grid).between == between


@pytest.mark.parametrize(("amounts", "passed"), [([0.4, 0.6, 0.9, 1.0], False), ([0.5, 1.0, 2.0], True)])
def test_a_step_that_is_too_coarse_for_most_values_is_suspicious(amounts, passed):
    check = dpselect.open_table(pa.table({"amount": amounts})).check("amount", lower=0, upper=10)
    assert check.passed is passed
    assert "between two candidates" in check.report()
    assert check.to_dict()["between"] == sum(amount % 1 != 0 for amount in amounts)
