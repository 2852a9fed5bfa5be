"""Sheets of Excel and OpenDocument files: cells are text by public rules, and the columns follow from the header."""

import datetime
import os
import subprocess
import sys
import zipfile
from decimal import Decimal

import pytest
import xlsxwriter
from typer.testing import CliRunner

import dpselect
from dpselect import Ledger
from dpselect.cli.app import app
from dpselect.errors import InvalidType, InvalidValue, RequestConflict
from tests.seam import rows_are_kept_at_once
from tests.tables.looking import counts, places

DAY, MOMENT = datetime.datetime(2024, 1, 31), datetime.datetime(2024, 1, 31, 12, 30, 15)
FORMATS = {
    datetime.datetime: "yyyy-mm-dd hh:mm:ss",
    datetime.date: "yyyy-mm-dd",
    datetime.time: "hh:mm",
    datetime.timedelta: "[h]:mm:ss",
}


class Formula(str):
    """The value of a formula."""


def write(path, rows, sheet="Sheet1", *, more=(), where=(0, 0)):
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        page = book.add_worksheet(sheet)
        formats = {kind: book.add_format({"num_format": text}) for kind, text in FORMATS.items()}
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                place = (where[0] + i, where[1] + j)
                if isinstance(value, Formula):
                    page.write_formula(*place, "=1+1", None, str(value))
                elif type(value) in formats:
                    page.write_datetime(*place, value, formats[type(value)])
                elif isinstance(value, tuple):
                    page.write_number(*place, value[0], book.add_format({"num_format": value[1]}))
                elif value is not None:
                    page.write(*place, value)
        for name, own in more:
            other = book.add_worksheet(name)
            for i, row in enumerate(own):
                other.write_row(i, 0, row)
    return path


def write_ods(path, rows):
    """The smallest OpenDocument spreadsheet."""
    cells = "".join(f"<table:table-row>{''.join(map(cell_of, row))}</table:table-row>" for row in rows)
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    body = f'<office:body><office:spreadsheet><table:table table:name="Sheet1">{cells}</table:table>'
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", "<manifest/>")
        file.writestr(
            "content.xml",
            f"<office:document-content{names}>{body}</office:spreadsheet></office:body></office:document-content>",
        )
    return path


def cell_of(value):
    if isinstance(value, str):
        return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'


# What a cell holds, and the text that it becomes; None if it is missing.
CELLS = {
    "a text": ("I10", "I10"),
    "spaces": (" I10 ", " I10 "),
    "two lines": ("a\nb", "a\nb"),
    "a whole number": (3, "3"),
    "a whole float": (3.0, "3"),
    "minus zero": (-0.0, "0"),
    "a large number": (1e20, "1e+20"),
    "many digits": (0.1, "0.1"),
    "a negative one": (-2.5, "-2.5"),
    "true": (True, "true"),
    "false": (False, "false"),
    "a date": (DAY.date(), "2024-01-31"),
    "a timestamp": (MOMENT, "2024-01-31 12:30:15"),
    "a timestamp at midnight": (DAY, "2024-01-31"),
    "a time": (datetime.time(12, 30), "12:30:00"),
    "a duration": (datetime.timedelta(days=1, hours=18), "42:00:00"),
    "a percentage": ((0.25, "0%"), "0.25"),
    "a number shown as text": ((3.0, "0.00 €"), "3"),
    "a formula": (Formula("7"), "7"),
    "an error": (Formula("#N/A"), None),
    "another error": (Formula("#DIV/0!"), None),
    "an empty text": (Formula(""), None),
    "nothing": (None, None),
    "a text that looks like an error": ("#N/A", "#N/A"),
    "no date": ((3e6, "yyyy-mm-dd"), "3000000"),
}


def test_every_cell_becomes_text_by_its_own_value(tmp_path):
    path = write(tmp_path / "t.xlsx", [["name", "x"], *([name, value] for name, (value, _) in CELLS.items())])
    table = dpselect.open_table(path)
    assert {name: column.untyped for name, column in table.columns.items()} == {"name": True, "x": True}
    texts = list(dict.fromkeys(text for _, text in CELLS.values() if text is not None))
    expected = [sum(text == own for _, own in CELLS.values()) for text in texts]
    assert counts(table, "x", texts) == expected
    assert counts(table, "x", ["none of them"], other="other")[1] == sum(expected)
    for name, (_, text) in CELLS.items():
        own = dpselect.open_table(path, where=f"name = '{name}'")
        assert counts(own, "x", ["-", text or "?"]) == [0, text is not None], name


def test_questions_read_cells_as_they_read_a_csv_file(tmp_path):
    rows = [[1, 3.0, DAY, "x"], [1, 4.5, MOMENT, "y"], [2, "5", "2024-02-01", "x"], [3, None, None, "x"]]
    path = write(tmp_path / "t.xlsx", [["who", "cost", "day", "code"], *rows])
    table = dpselect.open_table(path, person="who")
    assert counts(table, "code", ["x", "y"]) == [3, 1]
    assert counts(dpselect.open_table(path), "cost", [3, 4, 5]) == [1, 0, 1]
    assert counts(dpselect.open_table(path), "cost", [Decimal("4.5")]) == [1]
    assert places(dpselect.open_table(path), "cost", 0, 9) == [(3, False, 1), (4, True, 1), (5, False, 1)]
    assert counts(dpselect.open_table(path), "day", [DAY.date(), datetime.date(2024, 2, 1)])[1] == 1
    assert counts(dpselect.open_table(path, where="cost > 4"), "code", ["x", "y"]) == [1, 1]
    assert counts(dpselect.open_table(path, derive={"twice": "cost * 2"}), "twice", [6, 9, 10]) == [1, 1, 1]
    assert table.check("code", candidates=["x", "y"]) is not None


def test_the_columns_follow_from_the_header_alone(tmp_path):
    """Not from a row that is wider, and not from where the first value is."""
    header = [None, "who", None, "cost", None]
    for i, row in enumerate(([5, 1, 2, 3], [None, 1, 2, 3], [5, 1, 2, 3, 4, 5, 6, "secret"], [], [None, 1])):
        table = dpselect.open_table(write(tmp_path / f"{i}.xlsx", [header, row]))
        assert list(table.columns) == ["column_1", "who", "column_3", "cost"]
        assert counts(table, "who", [1, 2]) == [1 if row else 0, 0]


HEADERS = {
    "no header": ([[1, 2], [3, 4]], "holds numbers"),
    "the same name": ([["cost", "Cost"]], "two columns have the same name"),
    "nothing": ([], "must be a header"),
    "an empty first row": ([[None], ["who", "cost"], [1, 2]], "must be a header"),
    "a control character": ([["who", "a\nb"]], "must be a header"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_wrong_header_is_refused_without_quoting_it(name, tmp_path):
    rows, message = HEADERS[name]
    with pytest.raises(InvalidValue, match=f"t.xlsx: .*{message}"):
        dpselect.open_table(write(tmp_path / "t.xlsx", rows))


def test_sheets_are_named(tmp_path):
    path = write(tmp_path / "t.xlsx", [["a"], ["x"]], "Visits", more=[("Staff", [["b"], ["y"]]), ("Notes 2024", [])])
    with pytest.raises(InvalidValue, match=r"has 3 sheets. Name one, as in table=\"Sheet1\"$"):
        dpselect.open_table(path)  # one of the names may be data
    with pytest.raises(InvalidValue, match="there is no sheet 'visits'"):
        dpselect.open_table(path, table="visits")
    assert counts(dpselect.open_table(path, table="Visits"), "a", ["x", "y"]) == [1, 0]
    assert counts(dpselect.open_table(path, table="Staff"), "b", ["x", "y"]) == [0, 1]
    two = write(tmp_path / "two.xlsx", [["a"], ["x"]], "Visits", more=[("Staff", [["b"]])])
    with pytest.raises(InvalidValue, match=r"has 2 sheets. .* It has 'Visits', 'Staff'$"):
        dpselect.open_table(two)
    with pytest.raises(InvalidType, match="table must be the name of a sheet, got int"):
        dpselect.open_table(path, table=1)
    with pytest.raises(InvalidValue, match="query is for databases"):
        dpselect.open_table(path, query="SELECT * FROM Visits")


def test_a_row_that_cannot_be_read_leaves_only_itself_out(tmp_path, capfd):
    rows = [["a", 1.0], ["b", (1e300, "[h]:mm:ss")], ["c", (-1e300, "yyyy-mm-dd")], ["d", (1e9, "[h]:mm")], ["a", 2]]
    table = dpselect.open_table(write(tmp_path / "t.xlsx", [["code", "n"], *rows]))
    assert counts(table, "code", ["a", "b", "c", "d"]) == [2, 0, 0, 0]
    assert counts(table, "n", [1, 2]) == [1, 1]


def test_a_file_of_another_format(tmp_path):
    table = dpselect.open_table(write_ods(tmp_path / "t.ods", [["code", "cost"], ["a", 3.0], ["b", 2.5], ["a", 1]]))
    assert counts(table, "code", ["a", "b"]) == [2, 1]
    assert counts(table, "cost", [1, 3]) == [1, 1]


def test_files_that_cannot_be_opened(tmp_path):
    for name, content in (("no.xlsx", b"SECRET"), ("no.xls", b""), ("no.ods", b"PK\3\4SECRET"), ("no.xlsb", b"a,b\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidValue, match=f"{name}: this is not a complete Excel") as caught:
            dpselect.open_table(tmp_path / name)
        assert caught.value.__context__ is None
    with pytest.raises(InvalidValue, match=r"there is no such file\. Give the path of one Excel file"):
        dpselect.open_table(tmp_path / "*.xlsx")
    with pytest.raises(InvalidValue, match="has no CSV or Parquet file"):
        dpselect.open_table(tmp_path)
    with pytest.raises(InvalidValue, match="an Excel file is opened alone"):
        dpselect.open_table(tmp_path / "no.xl*")
    path = write(tmp_path / "t.xlsx", [["a"], ["x"]])
    with pytest.raises(InvalidValue, match="decimal is for text files"):
        dpselect.open_table(path, decimal=",")


def test_a_changed_file_is_read_again_and_noticed(tmp_path):
    path, ledger = write(tmp_path / "t.xlsx", [["who", "code"], [1, "a"]]), Ledger(tmp_path / "ledger", budget=9)
    table = dpselect.open_table(path, person="who", ledger=ledger)
    asked = {"candidates": ["a", "b"], "epsilon": 1, "request_id": "r"}
    first = table.mode("code", **asked)
    assert table.mode("code", **asked).value == first.value
    assert len(ledger.entries()) == 1
    write(path, [["who", "code"], [1, "a"], [2, "b"]])
    assert counts(table, "code", ["a", "b"]) == [1, 1]
    with pytest.raises(RequestConflict):
        table.mode("code", **asked)
    write(path, [["code", "who"], ["a", 1]])
    with pytest.raises(InvalidValue, match="source has changed since it was opened"):
        table.mode("code", candidates=["a", "b"], epsilon=1)
    write(path, [["who", "code"], [1, "a"]], "Other", more=[("More", [])])
    with pytest.raises(InvalidValue, match="has 2 sheets"):
        table.mode("code", candidates=["a", "b"], epsilon=1)
    os.remove(path)
    with pytest.raises(InvalidValue, match=r"cannot be read|not a complete Excel"):
        table.mode("code", candidates=["a", "b"], epsilon=1)
    assert len(ledger.entries()) == 1


def test_another_sheet_is_other_data(tmp_path):
    path = write(tmp_path / "t.xlsx", [["a"], ["x"]], "One", more=[("Two", [["a"], ["y"]])])
    ledger = Ledger(tmp_path / "ledger", budget=9)
    asked = {"candidates": ["x", "y"], "epsilon": 1, "request_id": "r"}
    dpselect.open_table(path, table="One", ledger=ledger).mode("a", **asked)
    with pytest.raises(RequestConflict):
        dpselect.open_table(path, table="Two", ledger=ledger).mode("a", **asked)


def test_an_unchanged_file_is_read_once(tmp_path, monkeypatch):
    from dpselect.tables.duckdb import workbooks  # noqa: PLC0415 - needs an extra

    path, opened = write(tmp_path / "t.xlsx", [["a"], ["x"]]), []
    os.utime(path, (1e9, 1e9))
    table = dpselect.open_table(path)
    open_book = workbooks.CalamineWorkbook.from_path

    class Counted:
        @staticmethod
        def from_path(name):
            opened.append(name)
            return open_book(name)

    monkeypatch.setattr(workbooks, "CalamineWorkbook", Counted)
    with rows_are_kept_at_once():
        for _ in range(3):
            assert counts(table, "a", ["x"]) == [1]
    assert len(opened) == 1


def test_spark_is_told_what_to_do(tmp_path):
    path = write(tmp_path / "t.xlsx", [["a"], ["x"]])
    with pytest.raises(InvalidValue, match="leave engine out, or save the sheet as Parquet"):
        dpselect.open_table(path, engine="spark")


def test_without_the_extra(tmp_path):
    path = write(tmp_path / "t.xlsx", [["a"], ["x"]])
    code = (
        "import sys; sys.modules['python_calamine'] = None\n"
        "import dpselect\n"
        "try: dpselect.open_table(sys.argv[1])\n"
        "except dpselect.errors.MissingExtra as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert " -m pip install python-calamine pyarrow" in done.stdout


def test_the_command_line_takes_a_sheet(tmp_path):
    path = write(tmp_path / "t.xlsx", [["who", "code"], *([i, "a"] for i in range(99))], "Visits", more=[("More", [])])
    asked = ["--column", "code", "--candidates", "a,b", "--epsilon", "50", "--person", "who"]
    done = CliRunner().invoke(app, ["mode", str(path), "--table", "Visits", *asked])
    assert (done.exit_code, done.stdout[:2]) == (0, "a\n"), done.output
    done = CliRunner().invoke(app, ["mode", str(path), *asked])
    assert (done.exit_code, "has 2 sheets" in done.output) == (2, True)
