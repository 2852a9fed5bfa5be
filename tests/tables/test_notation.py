"""Real text files in all notations: the same rows give the same counts as a clean file, in every question."""

import csv
import datetime
import gc
import gzip
import io
import itertools
import os
import shutil
import threading

import pytest

from dpselect import Ledger, every, open_table
from dpselect.errors import InvalidValue
from dpselect.tables.duckdb.files import Copies
from tests import spark
from tests.tables.looking import counts, places

DAY = datetime.date
ROWS = [  # who, town, age, cost, seen; None is missing
    ("anna", "Köln", 3, 1234.5, DAY(2026, 3, 4)),
    ("bob", "Zürich", 3, 1234.5, DAY(2026, 4, 3)),
    ("carl", 'a "b"', 30, -0.25, DAY(2026, 3, 4)),
    ("çelik", "x;y,z|w", 1234567, 12000.0, DAY(2025, 12, 31)),
    ("çelik", None, None, None, None),
    ("dora", "Köln", 0, 12.0, DAY(1999, 1, 13)),
    (None, "Köln", 3, 1234.5, DAY(2026, 3, 4)),
]
NAMES = ["who", "town", "age", "cost", "seen"]


def number(value, decimal, thousands):
    written = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return written.translate({ord(","): thousands or "", ord("."): decimal})


def write(path, *, encoding="utf-8", delimiter=",", decimal=".", thousands=None, dates="%Y-%m-%d", bom=b"", end="\n"):
    """The rows as a program writes them that was told this notation."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if delimiter == "tab" else delimiter, lineterminator=end)
    writer.writerow(NAMES)
    for who, town, age, cost, seen in ROWS:
        numbers = ["" if value is None else number(value, decimal, thousands) for value in (age, cost)]
        writer.writerow([who or "", town or "", *numbers, seen.strftime(dates) if seen else ""])
    data = bom + text.getvalue().encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


TOWNS = ["Köln", "Zürich", 'a "b"', "x;y,z|w", "Bern"]
DAYS = sorted({row[4] for row in ROWS if row[4]})


def seen_of(table):
    """What every question counts."""
    groups = table.group_by("town", groups=TOWNS[:2], max_groups=2)
    derived = table.columns.keys() - set(NAMES)
    return {
        "columns": list(table.columns)[:5],
        "mode": counts(table, "town", TOWNS),
        "other": counts(table, "town", TOWNS[:1], other="others"),
        "whole": counts(table, "age", [0, 3, 30, 1234567]),
        "others than whole": counts(table, "age", [3], other=-1),
        "floats": counts(table, "cost", [1234.5, -0.25, 12.0, 12000.0]),
        "days": counts(table, "seen", DAYS),
        "groups": counts(groups, "age", [0, 3]),
        "groups of days": counts(table.group_by("seen", groups=DAYS, max_groups=3), "age", [3]),
        "median": places(table, "age", 0, 2_000_000, 1),
        "of decimals": places(table, "cost", -10, 20_000, "0.25"),
        "of days": places(table, "seen", DAY(1999, 1, 1), DAY(2026, 12, 31), 1),
        "derived": [counts(table, name, [1, 2, 3, 4, 5]) for name in sorted(derived)],
        "rule": table.mode("age", candidates=every("integer", lower=0, upper=9), epsilon=500).value,
    }


NOTATIONS = {
    "latin-1, German": {"encoding": "latin-1", "delimiter": ";", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"},
    "cp1252, American": {"encoding": "cp1252", "thousands": ",", "dates": "%m/%d/%Y"},
    "Swiss": {"delimiter": ";", "thousands": "'", "dates": "%d.%m.%y"},
    "French": {"delimiter": ";", "decimal": ",", "thousands": " ", "dates": "%d/%m/%Y"},
    "French, no-break spaces": {"decimal": ",", "thousands": "\u202f"},
    "tabs": {"delimiter": "tab", "dates": "%Y%m%d"},
    "bars": {"delimiter": "|", "decimal": ","},
    "carets": {"delimiter": "^", "thousands": "_"},
    "tildes": {"delimiter": "~", "decimal": ",", "dates": "%d %b %Y"},
    "colons": {"delimiter": ":", "dates": "%j %Y"},
    "a mark at the beginning": {"bom": b"\xef\xbb\xbf"},
    "carriage returns": {"end": "\r\n", "delimiter": ";", "encoding": "mac_roman"},
}
NOT_OPTIONS = ("bom", "end")
DERIVE = {"month": "CAST(month(CAST(seen AS DATE)) AS INTEGER)", "small": "CAST(CAST(age AS INTEGER) / 10 AS INTEGER)"}


def stated(notation):
    """The options of `open_table`: a space stands for all spaces."""
    options = {name: value for name, value in notation.items() if name not in NOT_OPTIONS}
    return options | ({"thousands": " "} if options.get("thousands") == "\u202f" else {})


@pytest.mark.filterwarnings("ignore:epsilon")
@pytest.mark.parametrize("ending", ["csv", pytest.param("csv.gz", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NOTATIONS)
def test_a_notation_changes_no_count(tmp_path, name, ending):
    assert_same(tmp_path, name, ending, "duckdb")


def assert_same(tmp_path, name, ending, engine):
    notation = NOTATIONS[name]
    clean, noted = tmp_path / "clean.csv", tmp_path / f"noted.{ending}"
    view = {"engine": engine, "person": "who", "derive": DERIVE, "where": "age IS NULL OR age < 2000000"}
    expected = seen_of(open_table(write(clean), **view))
    assert expected["mode"] == [2, 1, 1, 1, 0]
    assert seen_of(open_table(write(noted, **notation), **stated(notation), **view)) == expected


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore:epsilon", "ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("name", ["latin-1, German", "French, no-break spaces"])
def test_a_notation_changes_no_count_of_spark(tmp_path, name):
    spark.session()
    assert_same(tmp_path, name, "csv", "spark")


def test_without_its_notation_a_file_is_refused_or_read_as_it_stands(tmp_path):
    """Nothing is guessed from rows."""
    path = write(tmp_path / "rows.csv", **NOTATIONS["latin-1, German"])
    table = open_table(path)
    assert counts(table, "cost", [1234.5, 12.0]) == [0, 0]
    assert counts(table, "seen", DAYS) == [0, 0, 0, 0]
    path.write_bytes("Größe;x\n1;2\n".encode("latin-1"))
    with pytest.raises(InvalidValue, match=r"not a CSV file in UTF-8.*state its encoding, such as latin-1 or cp1252"):
        open_table(path)
    assert list(open_table(path, encoding="latin-1").columns) == ["Größe", "x"]


# What programs write for whole numbers, and what none writes.

THREE = ["3", "3.0", "3.", "+3", "03", " 3", "3 ", "3e0", "3.00", "30e-1", "0003.000"]
NOT_THREE = ["3.5", "3,0", "0x3", "three", "3 3", "--3", "1e400", "nan", "inf", "٣", "3.0000000001", ""]


def test_every_question_reads_the_same_whole_numbers(tmp_path, engine):
    path = tmp_path / "rows.csv"
    path.write_text("x;g\n" + "".join(f"{text};1.0\n" for text in THREE + NOT_THREE), encoding="utf-8")
    table = open_table(path, engine=engine, delimiter=";")
    read, missing = len(THREE), NOT_THREE.count("")
    assert counts(table, "x", [3]) == [read]
    assert counts(table, "x", [3], other=-1) == [read, len(NOT_THREE) - missing]
    assert counts(table, "x", [3.0]) == [read]
    assert counts(table.group_by("x", groups=[3, 4]), "g", [1, 2]) == [[read, 0], [0, 0]]
    assert counts(table.group_by("g", groups=[1]), "x", [3]) == [[read]]
    assert (3, False, read) in [(p, b, n - ("3.0000000001" in NOT_THREE)) for p, b, n in places(table, "x", 0, 9)]
    assert open_table(path, engine=engine, delimiter=";", where="x = 3").columns.keys() == {"x", "g"}
    assert counts(open_table(path, engine=engine, delimiter=";", where="x = 3"), "g", [1]) == [read]
    assert counts(open_table(path, engine=engine, delimiter=";", where="CAST(x AS INTEGER) = 3"), "g", [1]) == [read]


MARKED = {
    (".", ","): (
        ["1,234.5", "+1,234.50", "1234.5", " 1,234.5 "],
        ["12,34.5", "1.234,5", ",234.5", "1,2345", "1 234.5"],
    ),
    (",", "."): (["1.234,5", "1234,5", "1.234,50"], ["1234.5", "1,234.5", "1.2345", "12.34,5"]),
    (",", " "): (["1 234,5", "1\u00a0234,5", "1\u202f234,5", "1234,5"], ["1234.5", "1  234,5", "12 34,5", "1 234.5"]),
    (".", "'"): (["1'234.5", "1234.5"], ["1\u2019234.5", "12'34.5", "1''234.5"]),
    (",", None): (["1234,5", "1234,50", "12345e-1"], ["1234.5", "1,234,5", "1.234,5"]),
}


@pytest.mark.parametrize("marks", MARKED, ids=str)
def test_marks_stand_where_a_number_has_them(tmp_path, marks):
    (decimal, thousands), (good, bad) = marks, MARKED[marks]
    path = tmp_path / "rows.csv"
    path.write_text("x;g\n" + "".join(f"{text};1\n" for text in good + bad), encoding="utf-8")
    table = open_table(path, delimiter=";", decimal=decimal, thousands=thousands)
    assert counts(table, "x", [1234.5]) == [len(good)]
    assert sum(n for place, _, n in places(table, "x", 1234, 1235, "0.5") if place == 1) == len(good)
    where = open_table(path, delimiter=";", decimal=decimal, thousands=thousands, where="x = 1234.5")
    assert counts(where, "g", [1]) == [len(good)]


FORMS = {
    "%d.%m.%Y": (["04.03.2026", "4.3.2026"], ["2026-03-04", "03/04/2026", "31.02.2026", "04.03.26 x"]),
    "%m/%d/%Y": (["03/04/2026", "3/4/2026"], ["13/04/2026", "2026-03-04", "03/04/26x", "02/30/2026"]),
    "%Y-%m-%d %H:%M": (["2026-03-04 00:00", "2026-03-04 10:30"], ["2026-03-04", "2026-03-04 25:00"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_dates_have_their_form_or_are_none(tmp_path, form):
    good, bad = FORMS[form]
    path = tmp_path / "rows.csv"
    path.write_text("d;g\n" + "".join(f"{text};1\n" for text in good + bad))
    for options in ({}, {"where": "CAST(d AS DATE) = '2026-03-04'"}, {"where": "CAST(d AS DATE) IS NOT NULL"}):
        table = open_table(path, delimiter=";", dates=form, **options)
        assert counts(table, "d", [DAY(2026, 3, 4)]) == [len(good)]
        if options:
            assert counts(table, "g", [1]) == [len(good)]


# Headers.


def test_an_index_without_a_name_is_a_column(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(",age\n0,3\n1,4\n")
    table = open_table(path, where="column_1 < 1")
    assert list(table.columns) == ["column_1", "age"]
    assert counts(table, "age", [3, 4]) == [1, 0]


@pytest.mark.parametrize("line", ["1,5;2,5", "1.234,50;a", "a;1'234", "3;4", "a;2026.5"])
def test_numbers_in_any_notation_are_no_header(tmp_path, line):
    """The first row of a file without a header would be shown as names."""
    path = tmp_path / "rows.csv"
    path.write_text(f"{line}\n")
    with pytest.raises(InvalidValue, match="the first line holds numbers, not names of columns") as refused:
        open_table(path, delimiter=";")
    assert line not in str(refused.value)


WRONG = [
    ({"encoding": "utf-16"}, "encoding must be utf-8, or have one byte for each character"),
    ({"encoding": "nothing"}, "save the file as CSV in UTF-8"),
    ({"delimiter": "ab"}, "delimiter must be one of"),
    ({"delimiter": '"'}, "delimiter must be one of"),
    ({"decimal": "'"}, "decimal must be '.' or ','"),
    ({"thousands": "."}, "thousands must be one of ',' ' '"),
    ({"thousands": "0"}, "thousands must be one of"),
    ({"dates": "%d.%m."}, "dates must have a day, a month and a year, as in '%m/%d/%Y'"),
    ({"dates": "%d.%m.%Y %Z"}, "dates must have a day"),
    ({"dates": "%d.%m.%Y %"}, "dates must have a day"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[str(options) for options, _ in WRONG])
def test_a_wrong_notation_is_refused_with_the_right_ones(tmp_path, options, message):
    with pytest.raises(InvalidValue) as refused:
        open_table(write(tmp_path / "rows.csv"), **options)
    assert message in str(refused.value)


# Copies of files in other encodings.


def test_copies_follow_their_files(tmp_path):
    path = tmp_path / "rows.csv"
    table = open_table(write(path, encoding="latin-1"), encoding="latin-1")
    assert counts(table, "town", ["Köln"]) == counts(table, "town", ["Köln"]) == [3]
    ROWS.append(("emil", "Köln", 1, 1.0, DAY(2026, 3, 4)))
    try:
        write(path, encoding="latin-1")
    finally:
        ROWS.pop()
    assert counts(table, "town", ["Köln"]) == [4]
    write(path, encoding="latin-1", delimiter=";")
    with pytest.raises(InvalidValue, match="source has changed"):
        counts(table, "town", ["Köln"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_copies_end_with_their_table_but_not_in_a_forked_process(tmp_path):
    copies = [Copies([write(tmp_path / "rows.csv", encoding="latin-1")], "latin-1")]
    [copy] = copies[0].paths()
    child = os.fork()
    if child == 0:
        copies.clear()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert copies[0].paths() == [copy]
    assert copy.read_text(encoding="utf-8").count("Köln") == 3
    shutil.rmtree(copy.parent)  # by somebody who cleans up
    [copy] = copies[0].paths()
    assert copy.exists()
    copies.clear()
    gc.collect()
    assert not copy.parent.exists()


def test_several_threads_read_one_copy(tmp_path):
    table = open_table(write(tmp_path / "rows.csv", encoding="latin-1"), encoding="latin-1", keep=False)
    found = []
    threads = [threading.Thread(target=lambda: found.append(counts(table, "town", ["Köln"]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[3]] * 4


def test_the_ledger_records_what_is_stated(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=10)
    for number_, (name, notation) in enumerate(itertools.islice(NOTATIONS.items(), 3)):
        path = write(tmp_path / f"{number_}.csv", **notation)
        open_table(path, ledger=ledger, **stated(notation)).mode("age", candidates=[3, 4], epsilon=1)
        recorded = list(ledger.entries())[-1].charge.what
        assert {key: recorded[key] for key in stated(notation)}.items() <= recorded.items(), name
        assert recorded.get("dates") == notation.get("dates")
