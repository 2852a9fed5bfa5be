"""Expressions over the columns of one row, for `where` and `derive`: checked on their text, then written as SQL anew.

An expression is a map from one row to one value. So neighbouring tables stay neighbours after it: a filter and a
derived column change no sensitivity (docs/tables.md). That holds only if a row can do nothing but have a value. So

* DuckDB parses the text, and only its tree is used. What is not known here is refused: aggregates, windows, subqueries,
  functions that read files, settings or clocks, and functions whose results can be very long.
* The SQL is written anew from the tree. Each operation has kinds for its operands and its result, and a form that has
  a value, or NULL, for all operands of these kinds. A failure would be seen. DuckDB's TRY is not enough: if one row
  fails, it evaluates 2,048 rows one by one, a thousand times slower, which would be seen on the clock. It is around
  all of it nevertheless.
* No row takes much longer or more memory than others: an expression has no value on a row whose texts have more than
  250,000 bytes together, or fewer if it makes longer ones of them. Patterns with many states are refused, and nested
  operations of which each would double the time.

**Kinds.** Whole numbers are those of 64 bits, and sums and products beyond are NULL. All other numbers are floats of 64
bits, and NaN is missing. Sums and differences of dates are those of the years 1 to 9999. Timestamps with a time zone
are read in UTC. A column of a source without types, such as CSV, is read as the operation needs it, by the same rules
as in questions (`values`): as a number next to a number, as text next to text.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb

from dpselect._messages import question_for
from dpselect._validate import is_unicode
from dpselect.errors import InvalidValue
from dpselect.tables.duckdb.source import Cursor, Query, Source, check_names, connect
from dpselect.tables.duckdb.values import identifier, is_wide, present, read_text, text_of, value_of
from dpselect.tables.kinds import PLAIN, Column, Kind, Style
from dpselect.tables.view import View

MOST_CHARACTERS = 5_000
# A row with long texts must not take much more time and memory than others. So a text of an expression is at most so
# many times as long as those of the row, or as a thousand bytes; and where it could be too long, there is no value.
_MOST_GROWTH, _UNIT = 100, 1_000
_MOST_BYTES = 250_000
_MOST_STATES = 500  # of a regular expression, of which each can take time at each character of a text
_MOST_SQL = 200_000
_MOST_DEPTH = 60
_MOST_REPEATS = 200  # of one part in the SQL of another
_MOST_POSITION = 10**6
_MOST_DAYS = 3_660_000  # ten thousand years

_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
# Dates and timestamps beyond have no sums and differences, which could be too large for their types.
_IN_YEARS = "{0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"


class _Value(NamedTuple):
    """A part of an expression: its SQL, whose value on every row is of its kind, or NULL.

    Attributes:
        kind: the kind of its values; None for NULL itself.
        column: the column, if it is one without a type, which can be read as any kind.
        literal: what is written, if it is a literal.
        growth: how many times longer than the texts of a row its texts can be.
        peak: the largest growth of its parts, and its own.
        repeats: how many times DuckDB computes the part that is repeated most; 0 for a column and a literal.
        style: how its texts are written, if it is made of columns without a type.
    """

    sql: str
    kind: Kind | None
    column: Column | None = None
    literal: Any = None
    growth: float = 1.0
    peak: float = 1.0
    repeats: int = 0
    style: Style | None = None


class Refused(InvalidValue):
    """An expression that is not allowed, with the reason. It is public, as the expression is."""


# Columns, literals and kinds.


_KINDS_OF_COLUMNS = {**{kind: kind for kind in _TYPES}, Kind.DECIMAL: Kind.FLOAT, Kind.ZONED: Kind.TIMESTAMP}


def _of_column(column: Column) -> _Value:
    if column.untyped:
        return _Value(value_of(column, Kind.TEXT), Kind.TEXT, column, style=column.style)
    kind = _KINDS_OF_COLUMNS.get(column.kind)
    if kind is None:
        raise Refused(f"the column {column.name!r} has the type {column.type}, which expressions cannot read")
    value = value_of(column, column.kind)
    if kind is Kind.INTEGER and is_wide(column):
        value = f"TRY_CAST({value} AS BIGINT)"
    elif kind is Kind.FLOAT:
        value = f"CASE WHEN {present(column)} THEN CAST({value} AS DOUBLE) END"
    elif column.kind is Kind.ZONED:
        value = f"CASE WHEN isfinite({value}) THEN make_timestamp(epoch_us({value})) END"
    return _Value(value, kind)


def _of_text(text: str, kind: Kind, style: Style) -> str:
    value = read_text(text, kind, style)
    if kind is Kind.FLOAT:
        return f"nullif({value}, CAST('nan' AS DOUBLE))"
    return f"TRY_CAST({value} AS BIGINT)" if kind is Kind.INTEGER else value


def _as(value: _Value, kind: Kind) -> str | None:
    """DuckDB's SQL of a value as another kind, without a loss; None if that means nothing."""
    if value.column is not None:
        return _of_text(value.sql, kind, value.column.style)
    if value.kind is kind:
        return value.sql
    if value.kind is None:
        return f"CAST(NULL AS {_TYPES[kind]})"
    if isinstance(value.literal, str) and kind.is_time:
        moment = kind.from_text(value.literal, "an expression")
        return f"CAST('{moment.isoformat()}' AS {_TYPES[kind]})"
    return f"TRY_CAST({value.sql} AS {_TYPES[kind]})" if (value.kind, kind) in _WIDER else None


_WIDER = {(Kind.INTEGER, Kind.FLOAT), (Kind.DATE, Kind.TIMESTAMP)}


def _all_as(values: Sequence[_Value], kind: Kind) -> list[str]:
    read = [sql for value in values if (sql := _as(value, kind)) is not None]
    if len(read) < len(values):
        raise Refused(f"it needs {kind.value}: CAST what is not")
    return read


def _style_of(values: Sequence[_Value]) -> Style | None:
    return next((value.style for value in values if value.style is not None), None)


def _as_text(value: _Value) -> str:
    return value.sql if value.kind is Kind.TEXT else f"CAST({value.sql} AS VARCHAR)"


def _common(values: Sequence[_Value], is_ordered: bool = False) -> Kind:
    """The kind as which values are compared, or which they are alternatives of."""
    # A column without a type, a literal of text and NULL take the kind of the others.
    open_ = [value for value in values if value.column is not None or isinstance(value.literal, str)]
    kinds = {value.kind for value in values if value.kind is not None and value not in open_}
    for narrow, wide in _WIDER:
        if narrow in kinds and (wide in kinds or any(value.column is not None for value in values)):
            kinds = kinds - {narrow} | {wide}
    written = [value.literal for value in open_ if value.column is None]
    if len(kinds) > 1:
        raise Refused(f"it mixes {' and '.join(sorted(kind.value for kind in kinds))}: CAST one of them")
    kind = kinds.pop() if kinds else Kind.TEXT
    if written and not (kind.is_time or kind is Kind.TEXT):
        raise Refused(f"it mixes text and {kind.value}: write numbers without quotation marks")
    if kind is Kind.TEXT and is_ordered and any(re.fullmatch(r"\s*[-+]?[0-9.,]+\s*", text) for text in written):
        raise Refused("it compares with a number in quotation marks: write numbers without them")
    if kind is Kind.TEXT and any(value.column is not None for value in values):
        # What is in quotation marks is compared as it is written, and not as the table reads numbers and dates.
        if any(_DATE_IN_TEXT.fullmatch(text) for text in written):
            raise Refused("it compares with a date in quotation marks: write DATE '2024-01-31', or TIMESTAMP '...'")
        if any(_NUMBER_IN_TEXT.fullmatch(text) for text in written):
            raise Refused(
                "it compares with a number in quotation marks: write numbers without them, or CAST(code AS VARCHAR)"
                " for a code"
            )
    if is_ordered and all(value.column is not None for value in values):
        raise Refused("it compares texts by < or >: say what they are, as in CAST(cost AS DOUBLE)")
    return kind


_DATE_IN_TEXT = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T].*)?\s*")
_NUMBER_IN_TEXT = re.compile(r"\s*[-+]?(?:0|[1-9][0-9]*)(?:[.,][0-9]+)?\s*")  # 007 is a code


# Operations.


@dataclass(frozen=True)
class _Operation:
    """An operation on values of some kinds.

    Attributes:
        takes: the kinds of its operands, or what literals they must be: `_WRITTEN`, `_POSITION`, or one of some words.
        sql: what makes its SQL of that of its operands.
        repeats: whether it takes any number of operands of the last kind.
        growth: how many times longer than the texts of a row its result can be, given its operands.
    """

    takes: tuple[Any, ...]
    returns: Kind
    sql: Callable[..., str]
    repeats: bool = False
    growth: Callable[[Sequence[_Value]], float] = lambda given: max(each.growth for each in given)

    def of(self, given: Sequence[_Value]) -> _Value | None:
        """The operation on these operands; None if it does not take them."""
        takes = self.takes + self.takes[-1:] * (len(given) - len(self.takes) if self.repeats else 0)
        if len(takes) != len(given):
            return None
        operands = [_operand(value, wanted) for value, wanted in zip(given, takes, strict=True)]
        if None in operands:
            return None
        return _Value(self.sql(*operands), self.returns, growth=self.growth(given), style=_style_of(given))


_WRITTEN, _PATTERN = "text in quotation marks", "a pattern in quotation marks"
_POSITION, _ANY = "a whole number", "anything"


def _operand(value: _Value, wanted: Any) -> str | None:
    if wanted is _ANY:
        return _as_text(value)
    if wanted in (_WRITTEN, _PATTERN):
        if wanted is _PATTERN and isinstance(value.literal, str):
            _check_pattern(value.literal)
        return value.sql if isinstance(value.literal, str) else None
    if wanted is _POSITION:
        return value.sql if isinstance(value.literal, int) and abs(value.literal) <= _MOST_POSITION else None
    if isinstance(wanted, frozenset):
        return value.sql.lower() if isinstance(value.literal, str) and value.literal.lower() in wanted else None
    if value.column is not None and wanted in (Kind.INTEGER, Kind.DATE):
        return None  # a text is read as a number or a timestamp, which lose nothing
    return _as(value, wanted)


def _call(name: str) -> Callable[..., str]:
    return lambda *operands: f"{name}({', '.join(operands)})"


def _infix(operator: str) -> Callable[..., str]:
    return lambda left, right: f"({left} {operator} {right})"


def _check_pattern(pattern: str) -> None:
    # About as many states as the pattern has, with repeated ones written out. DuckDB's regular expressions take linear
    # time, but with many states it is a thousand times longer for some long texts than for others.
    counts = [(end, max(map(int, re.findall("[0-9]+", inner)), default=0)) for end, inner in _REPEATED.findall(pattern)]
    nested = math.prod(max(1, count) for end, count in counts if end == ")")
    states = nested * (len(pattern) + sum(count for end, count in counts if end != ")"))
    if states > _MOST_STATES:
        raise Refused(f"the pattern {pattern[:40]!r} repeats too much, or is too long: use a shorter one")
    _check_by_engine("SELECT regexp_matches('', ?)", [pattern])


def _check_by_engine(query: str, texts: list[str]) -> None:
    # A pattern, or a replacement, that cannot be read would fail on the first row that has a text, and on no other.
    with closing(connect()) as connection, suppress(duckdb.Error):
        connection.execute(query, texts)
        return
    shown = " and ".join(repr(text[:40]) for text in texts)
    raise Refused(f"{shown}: this is not a regular expression that DuckDB reads")


_REPEATED = re.compile(r"(.)\{([0-9]{1,9},?[0-9]{0,9})\}", re.DOTALL)


def _bytes_of(value: _Value) -> int:
    return len(str(value.literal).encode())


def _growth_of_replacement(given: Sequence[_Value]) -> float:
    # Places that are replaced do not overlap.
    replaced, by = _bytes_of(given[1]), _bytes_of(given[2])
    return given[0].growth * (max(1.0, by / replaced) if replaced else 2.0 + by)


def _growth_of_pattern(given: Sequence[_Value]) -> float:
    # Each of the n + 1 places of a text can get the replacement. What it repeats of them, such as \\1, is together at
    # most as long as the text for each of these two characters.
    by = _bytes_of(given[2])
    _check_by_engine("SELECT regexp_replace('', ?, ?)", [str(given[1].literal), str(given[2].literal)])
    return given[0].growth * (2.0 + by if by else 1.0)


def _growth_of_sum(given: Sequence[_Value]) -> float:
    return sum(each.growth for each in given)


def _growth_of_case(given: Sequence[_Value]) -> float:
    return 3 * given[0].growth  # in bytes


_PARTS = frozenset({"year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second"})
_FLAGS = frozenset({"g", "i", "gi", "ig"})
_UNITS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})


class _Operations(dict[str, list[_Operation]]):
    """Operations by name: of those with one name, the first that takes the operands counts."""

    def add(self, names: str, takes: Sequence[Any], returns: Kind, sql: Any = None, **more: Any) -> None:
        for name in names.split():
            form = _call(name) if sql is None else sql.format if isinstance(sql, str) else sql
            self.setdefault(name, []).append(_Operation(tuple(takes), returns, form, **more))


_T, _I, _F, _B, _D, _M = _TYPES  # text, whole numbers, floats, true or false, dates, timestamps


def _of_numbers(add: Callable[..., None]) -> None:
    # The sum and the product of two numbers of 64 bits fit into 128 bits.
    for operator in ("+", "-", "*"):
        wide = f"(CAST({{0}} AS HUGEINT) {operator} CAST({{1}} AS HUGEINT))"
        add(operator, [_I, _I], _I, f"TRY_CAST({wide} AS BIGINT)")
        add(operator, [_F, _F], _F, f"({{0}} {operator} {{1}})")
    add("-", [_I], _I, "TRY_CAST(-CAST({0} AS HUGEINT) AS BIGINT)")
    add("-", [_F], _F, "(-{0})")
    add("/", [_F, _F], _F, "({0} / nullif({1}, 0))")
    for names, operator in (("// divide", "//"), ("% mod", "%")):
        add(names, [_I, _I], _I, f"TRY_CAST((CAST({{0}} AS HUGEINT) {operator} nullif({{1}}, 0)) AS BIGINT)")
    add("abs", [_I], _I, "TRY_CAST(abs(CAST({0} AS HUGEINT)) AS BIGINT)")
    add("abs trunc floor ceil round exp", [_F], _F)
    add("ceiling", [_F], _F, _call("ceil"))
    add("sign", [_F], _I, "CAST(sign({0}) AS BIGINT)")
    add("round", [_F, _POSITION], _F, "round({0}, CAST({1} AS INTEGER))")
    add("sqrt", [_F], _F, "CASE WHEN {0} >= 0 THEN sqrt({0}) END")
    for names, function in (("ln", "ln"), ("log log10", "log10"), ("log2", "log2")):
        add(names, [_F], _F, f"CASE WHEN {{0}} > 0 THEN {function}({{0}}) END")
    add("pow power ^ **", [_F, _F], _F, "nullif(pow({0}, {1}), CAST('nan' AS DOUBLE))")
    for kind in (_I, _D, _F, _M):
        add("greatest least", [kind], kind, repeats=True)


def _of_texts(add: Callable[..., None]) -> None:
    add("lower lcase", [_T], _T, _call("lower"), growth=_growth_of_case)
    add("upper ucase", [_T], _T, _call("upper"), growth=_growth_of_case)
    add("trim ltrim rtrim reverse strip_accents", [_T], _T)
    add("trim ltrim rtrim", [_T, _WRITTEN], _T)
    add("length len", [_T], _I, _call("length"))
    add("left right", [_T, _POSITION], _T)
    add("substring substr", [_T, _POSITION], _T, _call("substring"))
    add("substring substr", [_T, _POSITION, _POSITION], _T, _call("substring"))
    add("split_part", [_T, _WRITTEN, _POSITION], _T)
    add("contains", [_T, _T], _B)
    add("starts_with prefix", [_T, _T], _B, _call("prefix"))
    add("ends_with suffix", [_T, _T], _B, _call("suffix"))
    add("strpos instr position", [_T, _T], _I, _call("strpos"))
    add("replace", [_T, _WRITTEN, _WRITTEN], _T, growth=_growth_of_replacement)
    add("regexp_matches regexp_full_match", [_T, _PATTERN], _B)
    add("regexp_extract", [_T, _PATTERN], _T)
    add("regexp_extract", [_T, _PATTERN, _POSITION], _T, "regexp_extract({0}, {1}, CAST({2} AS INTEGER))")
    add("regexp_replace", [_T, _PATTERN, _WRITTEN], _T, growth=_growth_of_pattern)
    add("regexp_replace", [_T, _PATTERN, _WRITTEN, _FLAGS], _T, growth=_growth_of_pattern)
    for operator, words in (("~~", "LIKE"), ("!~~", "NOT LIKE"), ("~~*", "ILIKE"), ("!~~*", "NOT ILIKE")):
        add(operator, [_T, _WRITTEN], _B, _infix(words))
    add("||", [_ANY, _ANY], _T, _infix("||"), growth=_growth_of_sum)
    add("concat", [_ANY], _T, repeats=True, growth=_growth_of_sum)
    add("concat_ws", [_WRITTEN, _ANY], _T, repeats=True, growth=_growth_of_sum)


def _of_moments(add: Callable[..., None]) -> None:
    # A date is a timestamp at midnight.
    add("year quarter month week day hour minute second dayofweek dayofmonth dayofyear isodow", [_M], _I)
    add("weekday weekofyear isoyear", [_M], _I)
    add("dayname monthname", [_M], _T)
    add("date_part", [_PARTS, _M], _I)
    add("date_trunc", [_UNITS, _M], _M, f"CASE WHEN {_IN_YEARS.format('{1}')} THEN date_trunc({{0}}, {{1}}) END")
    add("date_diff datediff", [_UNITS, _M, _M], _I, _call("date_diff"))
    add("last_day", [_M], _D)
    add("strftime", [_M, _WRITTEN], _T, growth=lambda given: 30.0 * _bytes_of(given[1]) / _UNIT)
    # With %z or %Z, DuckDB's result has a time zone, and with %n nanoseconds. Both are read as such columns are.
    moment = "make_timestamp(epoch_us(try_strptime({0}, {1})))"
    add("strptime try_strptime", [_T, _WRITTEN], _M, moment)
    add("make_date", [_I, _I, _I], _D, "TRY_CAST(concat({0}, '-', {1}, '-', {2}) AS DATE)")
    for operator in ("+", "-"):
        few = f"{_IN_YEARS} AND {{1}} BETWEEN -{_MOST_DAYS} AND {_MOST_DAYS}"
        add(operator, [_D, _I], _D, f"CASE WHEN {few} THEN {{0}} {operator} CAST({{1}} AS INTEGER) END")
    add("-", [_D, _D], _I, f"CASE WHEN {_IN_YEARS} AND {_IN_YEARS.format('{1}')} THEN {{0}} - {{1}} END")


_OPERATIONS = _Operations()
for _add_all in (_of_numbers, _of_texts, _of_moments):
    _add_all(_OPERATIONS.add)
_ORDERS = ("<", ">", "<=", ">=")
_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}
_CASTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Kind.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Kind.FLOAT),
    "VARCHAR": Kind.TEXT,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIMESTAMP,
}
_SAME_TYPES = {
    **dict.fromkeys(("INT", "INT4", "SIGNED"), "INTEGER"),
    **dict.fromkeys(("INT8", "LONG"), "BIGINT"),
    **dict.fromkeys(("TEXT", "STRING", "CHAR"), "VARCHAR"),
    **dict.fromkeys(("REAL", "FLOAT4"), "FLOAT"),
    "FLOAT8": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
}
_DAYS_OF_UNITS = {"day": 1, "week": 7, "month": 31, "year": 366, "hour": 1, "minute": 1, "second": 1}


# The tree, as DuckDB's `json_serialize_sql` writes it.

_Node = Mapping[str, Any]


def _refused(what: str) -> Refused:
    return Refused(f"{what} is not allowed: an expression is computed from the values of one row")


def _checked(value: _Value) -> _Value:
    if value.growth > _MOST_GROWTH:
        raise Refused("its texts can become too long: replace less in one expression")
    if len(value.sql) > _MOST_SQL:
        raise Refused("it becomes too long: use a derived column fewer times")
    return value


def _truth(sql: str, given: Sequence[_Value]) -> _Value:
    return _Value(f"({sql})", Kind.BOOLEAN, style=_style_of(given))


def _compared(given: Sequence[_Value], form: str, is_ordered: bool = False) -> _Value:
    return _truth(form.format(*_all_as(given, _common(given, is_ordered))), given)


def _alternatives(given: Sequence[_Value], form: Callable[[Sequence[str]], str]) -> _Value:
    kind = _common(given)
    return _Value(form(_all_as(given, kind)), kind, growth=max(each.growth for each in given), style=_style_of(given))


def _constant(node: _Node, _: "_Read") -> _Value:
    kind, text = node["literal"]["kind"], node["literal"].get("text", "")
    if kind == "STRING":
        return _Value("'" + text.replace("'", "''") + "'", Kind.TEXT, literal=text, growth=len(text) / _UNIT)
    if kind == "BOOLEAN":
        return _Value(text, Kind.BOOLEAN)
    with suppress(ValueError):  # DuckDB reads 1e, and refuses it later
        if kind == "INTEGER" and abs(int(text)) < 2**63:
            return _Value(f"CAST('{int(text)}' AS BIGINT)", Kind.INTEGER, literal=int(text))
        if kind in ("INTEGER", "NUMERIC") and math.isfinite(float(text)):
            return _Value(f"CAST('{float(text)!r}' AS DOUBLE)", Kind.FLOAT)
    if kind == "NULL_LITERAL":
        return _Value("NULL", None)
    raise Refused(f"the literal {text[:40]!r} is not a number, a text, true, false or NULL")


def _comparison(node: _Node, read: "_Read") -> _Value:
    operator = _COMPARISONS[node["type"]]
    return _compared([read(node["left"]), read(node["right"])], f"{{0}} {operator} {{1}}", operator in _ORDERS)


def _between(node: _Node, read: "_Read") -> _Value:
    return _compared([read(node[name]) for name in ("input", "lower", "upper")], "{0} BETWEEN {1} AND {2}", True)


def _conjunction(node: _Node, read: "_Read") -> _Value:
    given = [read(each) for each in node["children"]]
    word = node["type"].removeprefix("CONJUNCTION_")  # AND, or OR
    return _truth(f" {word} ".join(_all_as(given, Kind.BOOLEAN)), given)


def _operator(node: _Node, read: "_Read") -> _Value:
    name = node["type"]
    if name not in _OPERATORS:
        raise _refused(name.removeprefix("OPERATOR_").lower().replace("_", " "))
    return _OPERATORS[name]([read(each) for each in node["children"]])


def _in(given: Sequence[_Value]) -> _Value:
    return _compared(given, f"{{0}} IN ({', '.join(f'{{{i}}}' for i in range(1, len(given)))})")


_OPERATORS: dict[str, Callable[[Sequence[_Value]], _Value]] = {
    "OPERATOR_NOT": lambda given: _truth(f"NOT {_all_as(given, Kind.BOOLEAN)[0]}", given),
    "OPERATOR_IS_NULL": lambda given: _truth(f"{given[0].sql} IS NULL", given),
    "OPERATOR_IS_NOT_NULL": lambda given: _truth(f"{given[0].sql} IS NOT NULL", given),
    "COMPARE_IN": _in,
    "OPERATOR_COALESCE": lambda given: _alternatives(given, lambda sql: f"coalesce({', '.join(sql)})"),
}


def _chosen(conditions: Sequence[_Value], values: Sequence[_Value]) -> _Value:
    when = _all_as(conditions, Kind.BOOLEAN)

    def form(then: Sequence[str]) -> str:
        ways = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(when, then, strict=False))
        return f"CASE {ways} ELSE {then[-1]} END"

    return _alternatives(values, form)


def _case(node: _Node, read: "_Read") -> _Value:
    ways = [(read(each["when_expr"]), read(each["then_expr"])) for each in node["case_checks"]]
    return _chosen([when for when, _ in ways], [*(then for _, then in ways), read(node["else_expr"])])


def _function(node: _Node, read: "_Read") -> _Value:
    name, given = node["function_name"].lower(), [each["expression"] for each in node["arguments"]]
    has_more = node.get("filter") or node.get("distinct") or any(each.get("name") for each in node["arguments"])
    if has_more or len(node["qualified_name"]["path"]) != 1:
        raise _refused(f"this form of {name[:40]}")
    interval = _interval(given[1]) if name in ("+", "-") and len(given) == 2 else None
    if interval is not None:
        moment = read(given[0])
        [sql] = _all_as([moment], Kind.TIMESTAMP)
        moved = f"CASE WHEN {_IN_YEARS.format(sql)} THEN {sql} {name} {interval} END"
        return _Value(moved, Kind.TIMESTAMP, style=moment.style)
    operands = [read(each) for each in given]
    if name in ("if", "iff") and len(operands) == 3:
        return _chosen(operands[:1], operands[1:])
    if name == "nullif" and len(operands) == 2:
        return _alternatives(operands, lambda sql: f"nullif({', '.join(sql)})")
    operations = _OPERATIONS.get(name, [])
    if not operations:
        raise Refused(f"{_refused(f'the function {name[:40]!r}')}{question_for(name, list(_OPERATIONS), {})}")
    found = next((value for operation in operations if (value := operation.of(operands)) is not None), None)
    if found is None:
        kinds = " or ".join(dict.fromkeys(f"({', '.join(map(_in_words, each.takes))})" for each in operations))
        raise Refused(f"{name} takes {kinds}")
    return found


def _in_words(wanted: Any) -> str:
    return (
        f"one of {', '.join(sorted(wanted))}"
        if isinstance(wanted, frozenset)
        else str(getattr(wanted, "value", wanted))
    )


def _interval(node: _Node) -> str | None:
    # INTERVAL 3 DAY: DuckDB makes to_days(CAST(trunc(CAST(3 AS DOUBLE)) AS INTEGER)) of it.
    unit = node.get("function_name", "").removeprefix("to_").removesuffix("s")
    if node["class"] != "FUNCTION" or unit not in _DAYS_OF_UNITS or len(node["arguments"]) != 1:
        return None
    inner: _Node
    [inner] = (each["expression"] for each in node["arguments"])
    while inner["class"] == "CAST" or inner.get("function_name") == "trunc":
        inner = inner["child"] if inner["class"] == "CAST" else inner["arguments"][0]["expression"]
    text = str(inner["literal"].get("text", "")) if inner["class"] == "CONSTANT" else ""
    if not re.fullmatch(r"-?[0-9]{1,7}", text) or abs(int(text)) * _DAYS_OF_UNITS[unit] > _MOST_DAYS:
        raise Refused("an interval must have a whole number of at most ten thousand years: write INTERVAL 3 DAY")
    return f"INTERVAL ({text}) {unit}"


def _cast(node: _Node, read: "_Read") -> _Value:
    type_ = node["type_expr"]["type_name"].upper()
    type_, given = _SAME_TYPES.get(type_, type_), read(node["child"])
    kind, digits = (
        _CASTS.get(type_),
        [each.get("literal", {}).get("text", "") for each in node["type_expr"]["children"]],
    )
    if kind is None or (digits and (type_ != "DECIMAL" or not all(map(str.isdecimal, digits)))):
        raise Refused(f"a cast to {type_[:40]} is not allowed: use {', '.join(_CASTS)} or DECIMAL(9, 2)")
    if kind is Kind.TEXT:
        style = given.style if given.kind is Kind.TEXT else None  # DuckDB writes others in its own style
        return given._replace(sql=_as_text(given), kind=kind, column=None, literal=None, style=style)
    sql = (
        _of_text(given.sql, kind, given.style or PLAIN)
        if given.kind is Kind.TEXT
        else f"TRY_CAST({given.sql} AS {_TYPES[kind]})"
    )
    if type_ != _TYPES[kind]:
        narrow = f"{type_}({', '.join(digits)})" if digits else type_
        sql = f"CAST(TRY_CAST({sql} AS {narrow}) AS {_TYPES[kind]})"
    return _Value(sql, kind, style=given.style)


_Read = Callable[[_Node], _Value]
_READERS: dict[str, Callable[[_Node, _Read], _Value]] = {
    "CONSTANT": _constant,
    "COMPARISON": _comparison,
    "BETWEEN": _between,
    "CONJUNCTION": _conjunction,
    "OPERATOR": _operator,
    "CASE": _case,
    "FUNCTION": _function,
    "CAST": _cast,
}
_FORMS = {"SUBQUERY": "a subquery", "WINDOW": "a window", "STAR": "*", "LAMBDA": "a function of its own"}


def _value(node: _Node, columns: Mapping[str, "_Value | Column"], depth: int = 0) -> _Value:
    if depth > _MOST_DEPTH:
        raise Refused("it is nested too deeply: derive a part of it as a column of its own")
    if node["class"] == "COLUMN_REF":
        return _named(".".join(node["column_names"]), columns)
    if node["class"] not in _READERS:
        raise _refused(_FORMS.get(node["class"], node["class"].lower().replace("_", " ")))
    parts: list[_Value] = []

    def read(inner: _Node) -> _Value:
        parts.append(_value(inner, columns, depth + 1))
        return parts[-1]

    found = _checked(_READERS[node["class"]](node, read))
    peak = max([found.growth, *(part.peak for part in parts)])
    return found._replace(peak=peak, repeats=_repeats(found.sql, parts))


def _repeats(sql: str, parts: Sequence[_Value]) -> int:
    # An operation has its operand twice if it tests it, and DuckDB makes CASE of nullif, which has it twice, too. So a
    # few nested ones would take longer than all else, and longer for some rows than for others.
    if not parts:
        return 0
    texts = Counter(part.sql for part in parts)
    own = sql.count("nullif(") - sum(sql.count(text) * text.count("nullif(") for text in texts)
    most = max(part.repeats * -(-sql.count(part.sql) // texts[part.sql]) for part in parts)
    repeats: int = max(1, most << min(max(own, 0), 10))
    if repeats > _MOST_REPEATS:
        raise Refused("it computes a part too often: nest fewer divisions, roots, nullif and the like")
    return repeats


def _named(name: str, columns: Mapping[str, "_Value | Column"]) -> _Value:
    found = next((value for known, value in columns.items() if known.lower() == name.lower()), None)
    if found is None:
        meant = (
            question_for(name, list(columns), {}) or f". If it is a text, write it as '{name[:40]}', in single quotes"
        )
        raise Refused(f"{name[:40]!r} is not a column{meant}")
    return _of_column(found) if isinstance(found, Column) else found


# All of it.


_SIMPLE_CASE = re.compile(r"\bcase\b(?!\s+when\b)", re.IGNORECASE)


def _parsed(text: str) -> _Node:
    if not is_unicode(text):
        raise Refused("it cannot be written in UTF-8")
    if len(_SIMPLE_CASE.findall(text)) > 2:
        # DuckDB writes x anew for each WHEN, before there is a tree that could be looked at.
        raise Refused("it has more than two CASE x WHEN: write CASE WHEN x = 1")
    if len(text) > MOST_CHARACTERS:
        raise Refused(f"it has more than {MOST_CHARACTERS:,} characters")
    with closing(connect()) as connection:
        texts = {"text": f"SELECT {text}", "plain": "SELECT 1"}
        [trees] = connection.execute("SELECT json_serialize_sql($text), json_serialize_sql($plain)", texts).fetchall()
    tree, of_plain = map(json.loads, trees)
    if tree["error"]:
        raise Refused(f"it is not an expression of SQL: {tree['error_message'][:200]}")
    found, plain = ([statement["node"] for statement in each["statements"]] for each in (tree, of_plain))
    if len(found) != 1 or found[0].get("type") != "SELECT_NODE" or len(found[0]["select_list"]) != 1:
        raise Refused("it must be one expression")
    expression: _Node
    [expression] = found[0].pop("select_list")
    plain[0].pop("select_list")
    if found[0] != plain[0] or expression.get("alias"):
        raise Refused("it must be one expression, without FROM, WHERE, AS or another clause")
    return expression


def _names(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_names, node))
    if not isinstance(node, dict):
        return set()
    own = {".".join(node["column_names"]).lower()} if node.get("class") == "COLUMN_REF" else set()
    return own.union(*map(_names, node.values()))


@dataclass(frozen=True)
class Derived:
    """What expressions make of each row: further columns, and whether the row counts.

    Attributes:
        columns: those of the source.
        selected: DuckDB's SQL of each derived column.
        kinds: the kind of each derived column.
        untyped: the derived columns of text that can be read as any kind.
        condition: DuckDB's SQL of the filter; nothing if all rows count.
        simple: a column of the source that any engine reads, for what reads none.
        reads: the columns of the source that each derived column reads, and those of the filter by the name "".
    """

    columns: Sequence[str]
    selected: Mapping[str, str]
    kinds: Mapping[str, Kind]
    untyped: frozenset[str]
    condition: str
    simple: str
    reads: Mapping[str, frozenset[str]]

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the source that these columns and the filter need."""
        read = (self.reads.get(name, frozenset({name})) for name in ("", *names))
        return sorted(frozenset[str]().union(*read) - {""}) or [self.simple]  # rows need a column

    def rows(self, source: str, names: Sequence[str] | None) -> str:
        """Return a query of these columns, or of all, over one that has what they need."""
        own = {name: f"{sql} AS {identifier(name)}" for name, sql in self.selected.items()}
        wanted = [*self.columns, *self.selected] if names is None else names
        selected = ", ".join(own.get(name, identifier(name)) for name in wanted) or "1"
        return f"SELECT {selected} FROM ({source})" + (f" WHERE {self.condition}" if self.condition else "")


class Mapped(Source):
    """The rows of another source, with derived columns and a filter."""

    def __init__(self, source: Source, expressions: Derived) -> None:
        self._source, self._expressions = source, expressions
        self.files, self.style, self.check, self.left_out = source.files, source.style, source.check, source.left_out  # type: ignore[method-assign]
        derived = (name for name in expressions.selected if source.needs_arrow & expressions.reads[name])
        self.needs_arrow = source.needs_arrow.union(derived)

    def is_untyped(self, column: str) -> bool:
        if column in self._expressions.selected:
            return column in self._expressions.untyped
        return self._source.is_untyped(column)

    @contextmanager
    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> Iterator[Query]:
        needed = None if names is None else self._expressions.needed(names)
        with self._source.rows(cursor, needed) as query:
            yield Query(self._expressions.rows(query.text, names), query.parameters)

    def quick(self, names: Sequence[str]) -> Query | None:
        query = self._source.quick(self._expressions.needed(names))
        return None if query is None else Query(self._expressions.rows(query.text, names), query.parameters)


def derived(columns: Mapping[str, Column], view: View) -> Derived:
    """Check the expressions of a view on their text, before anything is read."""
    known: dict[str, _Value | Column] = dict(columns)
    reads: dict[str, frozenset[str]] = {}
    selected: dict[str, str] = {}
    kinds: dict[str, Kind] = {}
    untyped: set[str] = set()
    doubtful: set[str] = set()
    for name, text in view.derive.items():
        check_names([name])
        if name.lower() in {each.lower() for each in known}:
            raise InvalidValue(f"derive: the table already has a column {name!r}: choose another name")
        tree, value = _understood(f"derive {name!r}", text, known)
        if value.kind is None:
            raise InvalidValue(f"derive {name!r}: NULL alone has no kind: use an expression of the columns")
        reads[name] = _reads(tree, columns, reads)
        cast = f"CAST({_unless_long(value.sql, value, columns, reads[name])} AS {_TYPES[value.kind]})"
        if not _is_plain(tree, doubtful):
            cast = f"TRY({cast})"
            doubtful.add(name.lower())
        selected[name], kinds[name] = value.sql if value.column is not None else cast, value.kind
        known[name] = value
        if value.style is not None and value.kind is Kind.TEXT:
            untyped.add(name)
    condition = ""
    if view.where is not None:
        tree, value = _understood("where", view.where, known)
        if value.kind is not Kind.BOOLEAN:
            raise InvalidValue("where: it must be true or false for each row, as in age >= 18")
        reads[""] = _reads(tree, columns, reads)
        [truth] = _all_as([value], Kind.BOOLEAN)
        # A comparison makes no text, so it needs no limit of length either. With `coalesce`, DuckDB does not use it to
        # skip parts of a Parquet file by their statistics, which may be wrong: then a row would decide about others.
        if not _is_plain(tree, doubtful):
            truth = f"TRY({_unless_long(truth, value, columns, reads[''])})"
        condition = f"coalesce({truth}, false)"
    simple = min(columns.values(), key=lambda each: (each.needs_arrow, each.kind is Kind.OTHER)).name
    made = Derived(tuple(columns), selected, kinds, frozenset(untyped), condition, simple, reads)
    _bind(made, columns)
    return made


def _unless_long(sql: str, value: _Value, columns: Mapping[str, Column], reads: frozenset[str]) -> str:
    lengths = [f"coalesce(strlen({text_of(columns[name])}), 0)" for name in sorted(reads) if columns[name].is_text]
    most = int(_MOST_BYTES / max(value.peak, 1))
    return f"CASE WHEN {' + '.join(lengths)} <= {most} THEN {sql} END" if lengths else sql


def _understood(what: str, text: str, known: Mapping[str, "_Value | Column"]) -> tuple[_Node, _Value]:
    try:
        tree = _parsed(text)
        return tree, _value(tree, known)
    except Refused as refused:
        reason = str(refused)
    raise InvalidValue(f"{what}: {reason}")


_PLAIN = {"COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN"}
_PLAIN_FUNCTIONS = {"contains", "starts_with", "prefix", "ends_with", "suffix"}


def _is_plain(tree: Any, doubtful: Collection[str]) -> bool:
    # Whether it only compares values of columns, so that no row can make it fail. TRY around other expressions is a
    # second line of defence, because they should not fail either, and doubles the time of a filter.
    if isinstance(tree, list):
        return all(_is_plain(each, doubtful) for each in tree)
    if not isinstance(tree, dict):
        return True
    kind = tree.get("class")
    is_known = kind is None or kind in _PLAIN or tree.get("function_name") in _PLAIN_FUNCTIONS
    names = ".".join(tree.get("column_names", ())).lower()
    return is_known and names not in doubtful and all(_is_plain(each, doubtful) for each in tree.values())


def _reads(tree: _Node, columns: Mapping[str, Column], reads: Mapping[str, frozenset[str]]) -> frozenset[str]:
    names = _names(tree)
    own = frozenset(name for name in columns if name.lower() in names)
    return own.union(*(read for name, read in reads.items() if name.lower() in names))


def _bind(made: Derived, columns: Mapping[str, Column]) -> None:
    # DuckDB's own check of patterns and forms, on a table without rows: so its message is public, too.
    needed = made.needed(list(made.selected))
    types = {name: "VARCHAR" if columns[name].type == "ENUM" else columns[name].type for name in needed}
    nothing = ", ".join(f"CAST(NULL AS {type_}) AS {identifier(name)}" for name, type_ in types.items()) or "1"
    statement = made.rows(f"SELECT {nothing} LIMIT 0", list(made.selected))
    try:
        with closing(connect()) as connection:
            connection.execute(statement)
        return
    except (duckdb.Error, UnicodeError) as error:
        reason = str(error).partition("\n")[0][:200]
    raise InvalidValue(f"where or derive: DuckDB refuses the expression: {reason}")
