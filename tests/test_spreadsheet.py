"""No text of a CSV file that dpselect writes is a formula in a spreadsheet."""

import ast
import csv
import io
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import dpselect
from dpselect._show import csv_text
from dpselect.demo_data import make_visits
from dpselect.research.plotting import NumberTable

SIGNS = ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
BEFORE = ["", " ", "\u00a0", "\u3000", "'", '"', "''", "\"'", "\u201c", " '", "\ufeff", "\u200b", "\0", "\u2066"]
FORMULAS = [f"{before}{sign}1+1|cmd" for sign in SIGNS for before in BEFORE]
HARMLESS = [
    "",
    "a",
    "1-1",
    "a=b",
    "person@example.org",
    "'quoted'",
    '{"a":"=1"}',
    "2026-03-01/6",
    "3/10",
    "()",
    "#",
    "_-",
]


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_texts_that_could_be_formulas_have_an_apostrophe_and_others_stay_as_they_are() -> None:
    """It can be taken away again: no two texts are written as one."""
    for formula in FORMULAS:
        for text in (
            csv_text([formula, "b"], [["x", formula]]),
            NumberTable((formula, "b"), [("x", formula)]).to_csv(),
        ):
            [[header, _], [_, cell]] = cells(text)
            assert header == cell == f"'{formula}"
    for text in HARMLESS:
        assert cells(csv_text(["a"], [[text, 1]])) == [["a"], [text, "1"]]
    texts = [*FORMULAS, *HARMLESS, *(f"'{text}" for text in FORMULAS)]
    assert len({cells(csv_text(["a"], [[text]]))[1][0] if text else "" for text in texts}) == len(set(texts))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", ["a\r=1+1", "a\n=1+1", 'a"\r\n=1+1', "a,=1+1", 'a";=1+1'])
def test_no_text_begins_a_new_cell_or_line(text: str, end: str) -> None:
    written = csv_text(["a", "b"], [[text, "x"]], end=end)
    assert cells(written)[1:] == [[text, "x"]]
    assert written == f'a,b{end}"{text.replace(chr(34), chr(34) * 2)}",x{end}'


@pytest.mark.parametrize("number", [-1, -0.5, Fraction(-1, 2), float("-inf"), None, True])
def test_numbers_stay_numbers(number: object) -> None:
    assert cells(csv_text(["a", "b"], [[number, "x"]]))[1] == ["" if number is None else str(number), "x"]


def test_the_visits_of_the_demo_have_no_such_text() -> None:
    """They are written by DuckDB."""
    visits = pa.table(make_visits().columns())
    for column in visits.columns:
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            values = column.unique().to_pylist()
            assert cells(csv_text(["a"], [[value] for value in values]))[1:] == [[value] for value in values]


def test_no_other_code_writes_csv() -> None:
    """Except the lines of a shell command that the explorer shows: dpselect reads them again."""
    folder = Path(dpselect.__file__).parent
    writers = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("writer", "DictWriter", "write_csv", "to_csv"):
                owner = ast.unparse(node.value)
                if owner == "csv" or node.attr == "write_csv" or owner in ("frame", "df"):
                    writers.add(path.relative_to(folder).as_posix())
    assert writers == {"_show.py", "cli/demo.py", "explore/scores.py"}
