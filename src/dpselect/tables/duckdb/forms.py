"""The canonical form of values: the one place that decides whether a value of a column equals a candidate.

Both are cast to one type of DuckDB, which follows from the column and the kind of the candidates, and a cast never
happens unless it is written here: an implicit one once made a float equal to thousands of whole numbers. A value of a
row has at most one form, because a form is an expression of that value. Different candidates of a list have different
forms, because the list keeps one of those with the same form (`duckdb.lists`). So a row equals at most one candidate,
for every type and kind. In Spark, where DuckDB's types do not exist, two forms are equal if their keys are.
"""

from dataclasses import dataclass

from dpselect.tables.duckdb.expressions import TEXT_DIGITS, identifier, is_wide, value_of
from dpselect.tables.schema import COMPARABLE, Column, Kind


@dataclass(frozen=True)
class Form:
    """How the values of a column are compared with values of a kind.

    Attributes:
        kind: the kind of the candidates.
        type: the type of DuckDB in which both sides are compared.
        value: DuckDB's SQL of the column in this type; NULL for a value that equals no value of the kind.
        digits: the number of digits after the point that the type holds, for decimals.
    """

    kind: Kind
    type: str
    value: str
    digits: int = 0

    def cast(self, candidate: str) -> str:
        """DuckDB's SQL of a candidate in this form; NULL if no value can equal it."""
        return f"TRY_CAST({candidate} AS {self.type})"

    def equal(self, value: str, candidate: str) -> str:
        """DuckDB's SQL that compares two forms. No operand has another type, so DuckDB adds no cast of its own."""
        return f"CAST({value} AS {self.type}) = CAST({candidate} AS {self.type})"

    def key(self, expression: str) -> str:
        """DuckDB's SQL of a text that equals another one exactly if the forms do; NULL for infinite moments."""
        if self.kind is Kind.FLOAT:  # there are two zeros
            # DuckDB's own text of a DOUBLE is wrong for some powers of two: that of 2**91 is the text of 2**92.
            exact = f"format('{{:.17g}}', {expression})"
            text = f"CAST({expression} AS VARCHAR)" if self.type == "FLOAT" else exact
            return f"CASE WHEN {expression} = 0 THEN '0' ELSE {text} END"
        if self.kind in (Kind.TIMESTAMP, Kind.ZONED):  # their text would depend on a time zone
            return f"CASE WHEN isfinite({expression}) THEN CAST(epoch_us({expression}) AS VARCHAR) END"
        return f"CAST({expression} AS VARCHAR)"


def form_of(column: Column, kind: Kind) -> Form:
    """The form in which values of a column are compared with values of a kind."""
    if column.kind is Kind.TEXT:
        digits = 2 * TEXT_DIGITS if kind is Kind.DECIMAL else 0
        return _read(column, kind, _TYPES_OF_TEXTS.get(kind, kind.name), digits)
    if kind not in COMPARABLE[column.kind]:
        raise TypeError(f"{column.kind.value} cannot be compared with {kind.value}")
    if kind is Kind.INTEGER:
        return _of_integers(column)
    # In a column of 32-bit floats, the candidate 0.1 is the 32-bit float nearest to 0.1.
    own = column.type if kind in (Kind.DECIMAL, Kind.FLOAT) else _TYPES.get(kind, kind.name)
    return _read(column, kind, own, column.digits)


_TYPES = {Kind.TEXT: "VARCHAR", Kind.ZONED: "TIMESTAMPTZ"}
_TYPES_OF_TEXTS = {
    **_TYPES,
    Kind.INTEGER: "HUGEINT",
    Kind.DECIMAL: f"DECIMAL(38,{2 * TEXT_DIGITS})",
    Kind.FLOAT: "DOUBLE",
}


def _read(column: Column, kind: Kind, type_: str, digits: int = 0) -> Form:
    return Form(kind, type_, f"CAST({value_of(column, kind)} AS {type_})", digits)


def _of_integers(column: Column) -> Form:
    if column.kind is Kind.INTEGER:
        return _read(column, Kind.INTEGER, "HUGEINT" if is_wide(column) else "BIGINT")
    # The cast rounds 12.5, and is refused for NaN and infinities. A whole number comes back as it was, because HUGEINT
    # holds it exactly. Any other number does not: a type that holds 12.5 also holds 12 and 13, or they do not fit.
    x = identifier(column.name)
    rounded = f"TRY_CAST({x} AS HUGEINT)"
    return Form(Kind.INTEGER, "HUGEINT", f"CASE WHEN TRY_CAST({rounded} AS {column.type}) = {x} THEN {rounded} END")
