"""What docs/tables.md lists about reading text and about expressions is what the code has, no more and no less."""

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import dpselect
from dpselect.errors import InvalidValue
from dpselect.tables.duckdb import expressions
from dpselect.tables.duckdb.expressions import _CASTS, _COMPARISONS, _OPERATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
[LISTED] = re.findall(r"<!-- expressions -->\n(.*?)<!-- end expressions -->", PAGE, re.DOTALL)
NAMES = set(re.findall(r"`([^`]+)`", LISTED))
# As DuckDB's tree calls them, or what the grammar of SQL has.
OF_THE_TREE = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
BESIDE_THE_TABLE = {"||", "IS NOT DISTINCT FROM"}
OF_SQL = {
    *("BETWEEN", "IN", "IS NULL", "IS NOT NULL", "AND", "OR", "NOT", "CASE", "if", "iff", "coalesce", "nullif"),
    *("CAST", "TRY_CAST", "INTERVAL"),
}


def test_the_page_lists_what_is_allowed():
    functions = {OF_THE_TREE.get(name, name) for name in _OPERATIONS}
    allowed = functions | set(_COMPARISONS.values()) | set(_CASTS) | OF_SQL
    assert allowed - BESIDE_THE_TABLE == NAMES
    assert "`a || b`" in PAGE


ROW = {"n": 7, "x": 2.5, "t": "abc", "b": True, "m": "2026-01-31 10:15:00"}
TABLE = pa.table({name: [value] for name, value in ROW.items()})


@pytest.mark.parametrize("name", sorted(name for name in _OPERATIONS if re.fullmatch(r"[a-z_0-9]+", name)))
def test_each_function_can_be_used(name):
    """With some operands, on the text of the expression alone; and a misspelt one is refused."""
    used = 0
    for operation in _OPERATIONS[name]:
        operands = [_operand(wanted) for wanted in operation.takes]
        between = " IN " if name == "position" else ", "  # as SQL writes it
        table = dpselect.open_table(TABLE, derive={"made": f"{name}({between.join(operands)})"})
        used += "made" in table.columns
        table.check("made")  # on a row
    assert used == len(_OPERATIONS[name])
    with pytest.raises(
        InvalidValue, match=rf"derive 'made': the function '{name}x' is not allowed.*: did you mean '{name}'"
    ):
        dpselect.open_table(TABLE, derive={"made": f"{name}x({', '.join(operands)})"})


def _operand(wanted):
    if isinstance(wanted, frozenset):
        return f"'{min(wanted)}'"
    by_words = {
        expressions._WRITTEN: "'a'",
        expressions._PATTERN: "'a'",
        expressions._POSITION: "1",
        expressions._ANY: "t",
    }
    of_kinds = {"text": "t", "whole numbers": "n", "floating-point numbers": "x", "true or false": "b"}
    of_kinds |= {"dates": "CAST(m AS DATE)", "timestamps": "CAST(m AS TIMESTAMP)"}
    return by_words.get(wanted) or of_kinds[wanted.value]


READ = {
    "3.0": 3,
    "3.": 3,
    "+3": 3,
    "03": 3,
    "3e0": 3,
    " 3 ": 3,
    "12.50": Decimal("12.5"),
    "1200.5": Decimal("1200.5"),
    ".5": Decimal("0.5"),
    "1e2": 100,
    "1_000": 1000,
    "1.200": Decimal("1.2"),
    **dict.fromkeys(["12,50", "1.200,50", "1,200.50", "1 200", "12 EUR", "$12", "5 %", "NA", "null", "-", ""]),
}


@pytest.mark.parametrize("text", READ)
def test_texts_are_read_as_the_page_says(tmp_path, text):
    assert not text or f"`{text}`" in PAGE
    path, true = tmp_path / "table.csv", READ[text]
    path.write_text(f'value\n"{text}"\n', encoding="utf-8")
    check = dpselect.open_table(path).check("value", lower=true or 0, upper=(true or 0) + 1, step="0.01")
    assert (check.counted, check.below, check.above) == (true is not None, 0, 0)
    assert dpselect.open_table(path).check("value", candidates=[3]).counted == (true == 3)


NOTED = {
    "comma": ({"decimal": ","}, {"12,50": Decimal("12.5"), "7": 7, "12.50": None, "1.200,50": None}),
    "both": ({"decimal": ",", "thousands": "."}, {"1.200,50": Decimal("1200.5"), "1.200": 1200, "1.25": None}),
    "usual": ({"thousands": ","}, {"1,200.50": Decimal("1200.5"), "1,2": None, "1200.5": Decimal("1200.5")}),
    "spaces": ({"thousands": " "}, {"1 200": 1200, "1\u00a0200": 1200, "1 20": None}),
    "apostrophe": ({"thousands": "'"}, {"1'200": 1200}),
    "underscore": ({"thousands": "_"}, {"1_200": 1200, "1_2": None}),
}


@pytest.mark.parametrize("name", NOTED)
def test_a_notation_is_read_as_the_page_says(tmp_path, name):
    """In a question, and in an expression."""
    options, texts = NOTED[name]
    path = tmp_path / "table.csv"
    for text, true in texts.items():
        path.write_text(f'value\n"{text}"\n', encoding="utf-8")
        table = dpselect.open_table(path, **options, derive={"same": "value", "made": "CAST(value AS DOUBLE)"})
        for column in table.columns:
            check = table.check(column, lower=true or 0, upper=(true or 0) + 1, step="0.01")
            assert (check.counted, check.below, check.above) == (true is not None, 0, 0), (text, column)


FAILING = {
    "a division by zero": "n / (n - 7)",
    "a text that is no number": "CAST(t AS DOUBLE)",
    "a text that is no whole number": "CAST(t AS INT)",
    "a date that does not exist": "make_date(2026, 2, 30)",
    "a number that is too large": "n * 9223372036854775807",
    "a root": "sqrt(0 - n)",
    "a logarithm": "ln(0 * n)",
}


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_is_missing(name):
    table = dpselect.open_table(TABLE, derive={"made": FAILING[name]})
    check = table.check("made")
    assert (check.rows, check.counted, check.missing) == (1, 0, 1)
    assert dpselect.open_table(TABLE, where=f"({FAILING[name]}) IS NOT NULL").check("n").rows == 0
