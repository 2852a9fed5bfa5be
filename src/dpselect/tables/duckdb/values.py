"""DuckDB's SQL for values: whether one equals a candidate, and where it lies on a grid. None of it can fail on a row.

A value that does not fit is NULL: an expression that raised an error on some rows would reveal that they exist. User
strings appear only as quoted identifiers; everything else is bound or registered.

**The canonical form** is the one place that decides whether a value of a column equals a candidate. Both are cast to
one type of DuckDB, which follows from the column and the kind of the candidates, and a cast never happens unless it is
written here: an implicit one once made a float equal to thousands of whole numbers. A value of a row has at most one
form, because a form is an expression of that value. Different candidates of a list have different forms, because the
list keeps one of those with the same form (`listed`). So a row equals at most one candidate, for every type and kind.
In Spark, where DuckDB's types do not exist, two forms are equal if their keys are.

**On a grid**, a value becomes an item, a whole number: items are in the order of values, and NULL does not count. There
are two ways.

* If no value can lie between two candidates, the item is the value in units. It is shifted if it would not fit into 64
  bits otherwise; a grid has at most 2**64 candidates, so it always fits.
* Otherwise the item is twice the number of the candidate at or before the value, plus one if the value lies after it.
  It may need more than 64 bits, which DuckDB calls HUGEINT.

A number that is written as text is a decimal of 38 digits, whose arithmetic is slow in DuckDB. Nearly all texts of most
files can be placed by their floats (`plain_ways`). The others are placed exactly.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpselect._types import Flags, Integers, Lengths
from dpselect.errors import InvalidValue
from dpselect.tables.candidates import Groups, Values, public_values
from dpselect.tables.kinds import (
    DUCKDB_INTEGERS,
    INTEGERS,
    LARGEST_RANK,
    PLAIN,
    TEXT_DIGITS,
    Column,
    Kind,
    Span,
    Style,
    digits_after_point,
)

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

CANDIDATES, GROUPS = "dpselect_candidates", "dpselect_groups"
_WIDE_INTEGERS = ("UBIGINT", "HUGEINT")
_KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    **dict.fromkeys((*DUCKDB_INTEGERS, "HUGEINT"), Kind.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Kind.FLOAT),
    **dict.fromkeys(("VARCHAR", "UUID"), Kind.TEXT),
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), Kind.ZONED),
}


def identifier(name: str) -> str:
    """A quoted identifier: nothing in the name can end the quotes."""
    return '"' + name.replace('"', '""') + '"'


def column_of(name: str, type_: str, untyped: bool = False) -> Column:
    """The column that DuckDB describes; text is untyped if its source has no types."""
    decimal = re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", type_)
    if decimal is not None:
        return Column(name, type_, Kind.DECIMAL, int(decimal[2]), precision=int(decimal[1]))
    if type_.startswith("ENUM(") and type_.endswith(")"):  # but not a list of enums
        return Column(name, "ENUM", Kind.TEXT)
    kind = _KINDS.get(type_, Kind.OTHER)
    return Column(name, _outer(type_) if kind is Kind.OTHER else type_, kind, untyped=untyped and type_ == "VARCHAR")


def _outer(type_: str) -> str:
    # The members of an enum and the names of fields are data if they were inferred.
    if re.fullmatch(r"[A-Z0-9_ ]+(\([0-9]+,[0-9]+\))?(\[[0-9]*\])*", type_):
        return type_
    return "LIST" if type_.endswith("]") else type_.partition("(")[0].strip('"')


def is_wide(column: Column) -> bool:
    """Whether the integers of a column exceed 64 bits with a sign."""
    return column.type in _WIDE_INTEGERS


def text_of(column: Column) -> str:
    """The text of a row in a column of text."""
    x = identifier(column.name)
    return x if column.type == "VARCHAR" else f"CAST({x} AS VARCHAR)"


def number_in(text: str, style: Style = PLAIN) -> str:
    """DuckDB's SQL of a text as DuckDB writes numbers; NULL for some texts that are no numbers in this style."""
    mark, separator = style.decimal, style.thousands
    if separator is not None:
        spaces = "\u00a0\u202f" if separator == " " else ""  # as programs write them between digits
        one = f"[{separator}{spaces}]"
        grouped = rf"\s*[-+]?[0-9]{{1,3}}(?:{one}[0-9]{{3}})+(?:[{mark}][0-9]*)?\s*"
        without = (
            f"regexp_replace({text}, '{one}', '', 'g')" if spaces else f"replace({text}, '{_quoted(separator)}', '')"
        )
        text = (
            f"CASE WHEN NOT regexp_matches({text}, '[0-9]{_quoted(one)}') THEN {text}"
            f" WHEN regexp_full_match({text}, '{_quoted(grouped)}') THEN {without} END"
        )
    # A point is no decimal mark then.
    return text if mark == "." else f"CASE WHEN NOT contains({text}, '.') THEN replace({text}, '{mark}', '.') END"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def read_text(text: str, kind: Kind, style: Style = PLAIN) -> str:
    """DuckDB's SQL of what a text says as one of a kind; NULL if it says nothing. It cannot fail on a row.

    All texts are read here, and numbers by `number_in`.
    """
    if kind is Kind.TEXT:
        return text
    if kind.is_time and style.dates is not None:
        return f"TRY_CAST(try_strptime(trim({text}), '{_quoted(style.dates)}') AS {kind.type})"
    if not kind.is_number:
        return f"TRY_CAST({text} AS {kind.type})"
    text = number_in(text, style)
    if kind is not Kind.INTEGER:
        return f"TRY_CAST({text} AS {kind.type})"
    # A number with a point or an exponent may be whole, too: pandas writes 3.0 if a column has missing values. It is
    # read as a decimal is. DuckDB would round 12.5.
    read = f"TRY_CAST({text} AS {Kind.DECIMAL.type})"
    whole = f"TRY_CAST({read} AS HUGEINT)"
    return (
        rf"CASE WHEN regexp_full_match({text}, '\s*[-+]?[0-9_]+(?:\.0*)?\s*') THEN TRY_CAST({text} AS HUGEINT)"
        f" WHEN TRY_CAST({whole} AS {Kind.DECIMAL.type}) = {read} THEN {whole} END"
    )


def value_of(column: Column, kind: Kind) -> str:
    """The value of a row, in a text the one of this kind; NULL for what does not fit. It cannot fail on a row."""
    x = identifier(column.name)
    if column.is_text:
        return read_text(text_of(column), kind, column.style)
    if column.kind is Kind.INTEGER:
        return f"TRY_CAST({x} AS HUGEINT)" if is_wide(column) else f"CAST({x} AS BIGINT)"
    return f"TRY_CAST({x} AS {column.kind.type})" if column.kind.is_moment else x


def present(column: Column) -> str:
    """Whether a value is not missing; NULL or false if it is."""
    # A text that cannot be read as a number or a date is not missing. NaN is, and a timestamp that does not fit.
    x = identifier(column.name)
    if column.kind is Kind.FLOAT:  # without isnan, as in `_if_a_number`
        infinite = f"{x} = CAST('inf' AS DOUBLE) OR {x} = CAST('-inf' AS DOUBLE)"
        return f"CASE WHEN {x} * 0 = 0 THEN true ELSE {infinite} END"
    return f"{x if column.is_text else value_of(column, column.kind)} IS NOT NULL"


@dataclass(frozen=True)
class Form:
    """How the values of a column are compared with values of a kind.

    Attributes:
        type: the type of DuckDB in which both sides are compared.
        value: DuckDB's SQL of the column in this type; NULL for a value that equals no value of the kind.
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
        if self.kind.is_moment:  # their text would depend on a time zone
            return f"CASE WHEN isfinite({expression}) THEN CAST(epoch_us({expression}) AS VARCHAR) END"
        return f"CAST({expression} AS VARCHAR)"


def form_of(column: Column, kind: Kind) -> Form:
    """The form in which values of a column are compared with values of a kind."""
    type_, digits = kind.type, column.digits
    if column.is_text:
        digits = 2 * TEXT_DIGITS if kind is Kind.DECIMAL else 0
    elif kind not in column.kind.comparable:
        raise TypeError(f"{column.kind.value} cannot be compared with {kind.value}")
    elif kind is Kind.INTEGER and column.kind is not Kind.INTEGER:
        return Form(kind, type_, _whole(column))
    elif kind is Kind.INTEGER:
        type_ = type_ if is_wide(column) else "BIGINT"
    elif kind.is_number:  # in a column of 32-bit floats, the candidate 0.1 is the 32-bit float nearest to 0.1
        type_ = column.type
    return Form(kind, type_, f"CAST({value_of(column, kind)} AS {type_})", digits)


def _whole(column: Column) -> str:
    # The cast rounds 12.5, and is refused for NaN and infinities. A whole number comes back as it was, because HUGEINT
    # holds it exactly. Any other number does not: a type that holds 12.5 also holds 12 and 13, or they do not fit.
    x = identifier(column.name)
    rounded = f"TRY_CAST({x} AS HUGEINT)"
    return f"CASE WHEN TRY_CAST({rounded} AS {column.type}) = {x} THEN {rounded} END"


# Values of rules, and all values.


def form_of_span(column: Column, span: Span) -> Form:
    """The form in which values of a column are compared with all those of a span."""
    own = form_of(column, span.kind)
    if span.kind is Kind.INTEGER:
        type_ = _integers(span)
        return Form(span.kind, type_, f"TRY_CAST({own.value} AS {type_})")
    # Not in the type of the column: a float of 64 bits would be rounded to one of 32 bits that somebody has.
    return Form(span.kind, "DOUBLE", f"CAST({own.value} AS DOUBLE)") if span.kind is Kind.FLOAT else own


def _integers(span: Span) -> str:
    least, most = INTEGERS["int64"]
    return "BIGINT" if least <= span.first and span.last <= most else "HUGEINT"


def in_span(expression: str, span: Span, precision: int) -> str:
    """DuckDB's SQL that is true exactly for the values of a span, given a value in its form."""
    kind = span.kind
    if kind is Kind.INTEGER:
        return _between(expression, span, _integers(span))
    if kind is Kind.DECIMAL:
        # Comparing decimals of two types may overflow, and fail on a row. Their texts have all digits of the type.
        pattern = rf"-?0*[0-9]{{0,{precision - span.digits}}}(?:\.[0-9]{{0,{span.digits}}}0*)?"
        type_ = f"DECIMAL({precision},{span.digits})"
        is_full = -span.first == span.last == 10**precision - 1
        ends = "" if is_full else " AND " + _between(f"TRY_CAST({expression} AS {type_})", span, type_)
        return f"(regexp_full_match(CAST({expression} AS VARCHAR), '{pattern}'){ends})"
    if kind.is_time:
        # Finite, too: DuckDB may conclude from statistics of nanoseconds that all moments, even -infinity, are late.
        return f"(isfinite({expression}) AND {_between(expression, span, kind.type)})"
    return f"isfinite({expression})" if kind is Kind.FLOAT else f"({expression} IS NOT NULL)"


def _between(expression: str, span: Span, type_: str) -> str:
    written = (f"{end:f}" if isinstance(end, Decimal) else str(end) for end in span.ends)  # 1E-7 is no literal
    lower, upper = (f"CAST('{end}' AS {type_})" for end in written)
    return f"({expression} BETWEEN {lower} AND {upper})"


# Public lists and groups.

Columns: TypeAlias = dict[str, np.ndarray[Any, Any]]  # what DuckDB registers as a table, without PyArrow or pandas
Forms: TypeAlias = Mapping[str, Form]  # by the names of the columns of such a table


def forms_of(groups: Groups) -> Forms:
    """The forms of the columns that make groups: value0, value1 and so on."""
    return {f"value{i}": form_of(*pair) for i, pair in enumerate(zip(groups.columns, groups.kinds, strict=True))}


def columns_of(lists: Sequence[Values], forms: Forms) -> Columns:
    """A public list as a table, which `cast_list` reads: the place of each item, and its value in each column."""
    arrays = {name: _sent(values, form) for values, (name, form) in zip(lists, forms.items(), strict=True)}
    return {"place": np.arange(len(lists[0].items)), **arrays}


def _sent(values: Values, form: Form) -> np.ndarray[Any, Any]:
    # Integers and decimals are text. Days and moments are counted from 1970: in days, and in microseconds.
    kind, items = values.kind, values.items
    if kind in (Kind.INTEGER, Kind.DECIMAL):
        return np.array([_written(item, form) for item in items], dtype=object)
    if kind.is_time:
        origin, unit = kind.clock
        return np.array([(item - origin) // unit for item in items], dtype=np.int64 if kind.is_moment else np.int32)
    types = {Kind.BOOLEAN: np.bool_, Kind.FLOAT: np.float64}
    return np.array(items, dtype=types.get(kind, object))


def _received(name: str, kind: Kind) -> str:
    read = {
        Kind.DATE: f"DATE '1970-01-01' + {name}",
        Kind.TIMESTAMP: f"make_timestamp({name})",
        Kind.ZONED: f"make_timestamptz({name})",
    }
    return read.get(kind, name)


def _written(item: int | Decimal, form: Form) -> str | None:
    # None if the number has more decimal places than the form, whose cast would round it.
    if isinstance(item, Decimal):
        return None if digits_after_point(item) > form.digits else f"{item:f}"
    return str(item)


_LIST = "dpselect_list"
_SHOWN_CHARACTERS = 60


def renamed(rows: str, values: Mapping[str, str], person: Column | None, groups: Groups | None) -> str:
    """Rows under our own names, so that no name clashes with a user's: these values, person, member0 and so on."""
    # Whatever a statement reads of a row, it reads here.
    selected = dict(values)
    if person is not None:
        selected["person"] = identifier(person.name)
    if groups is not None:
        selected |= {f"member{i}": form.value for i, form in enumerate(forms_of(groups).values())}
    return f"SELECT {', '.join(f'{expression} AS {name}' for name, expression in selected.items())} FROM {rows}"


def register_lists(
    cursor: "duckdb.DuckDBPyConnection", column: Column, candidates: Values | None, groups: Groups | None
) -> None:
    """Hand over the public lists that `candidate` and `public_group` join with renamed rows."""
    if candidates is not None:
        cursor.register(CANDIDATES, columns_of([candidates], {"value": form_of(column, candidates.kind)}))
    if groups is not None:
        cursor.register(GROUPS, columns_of(groups.members, forms_of(groups)))


def candidate(form: Form) -> str:
    """DuckDB's SQL to join rows with the candidate that equals their item."""
    return f"({listed(CANDIDATES, {'value': form})}) AS candidate ON {form.equal('item', 'candidate.value')}"


def public_group(groups: Groups) -> str:
    """DuckDB's SQL to join rows with the group that they are in."""
    forms = forms_of(groups)
    same = (form.equal(f"member{i}", f"public_group.{name}") for i, (name, form) in enumerate(forms.items()))
    return f"({listed(GROUPS, forms)}) AS public_group ON {' AND '.join(same)}"


def cast_list(table: str, forms: Forms) -> str:
    """A public list in its forms; NULL equals nothing."""
    casts = (f"{form.cast(_received(name, form.kind))} AS {name}" for name, form in forms.items())
    return f"SELECT place, {', '.join(casts)} FROM {table}"


def listed(table: str, forms: Forms) -> str:
    """The distinct items of a public list in their forms, so that no row can match two of them."""
    # Items with the same form were refused before (`different_values`); this is a second safeguard.
    return _first_of_equal(cast_list(table, forms), forms, "place")


def _first_of_equal(items: str, names: Collection[str], place: str) -> str:
    known, every = " AND ".join(f"{name} IS NOT NULL" for name in names), ", ".join(names)
    return f"SELECT min(place) AS {place}, {every} FROM ({items}) WHERE {known} GROUP BY {every}"


def keys_of(values: Values, form: Form, connection: "duckdb.DuckDBPyConnection") -> "pa.Table":
    """The position and the key of every item of a public list."""
    # Of several items with the same key, only the first keeps it, so that no row can match two of them.
    if _are_texts(values, form):
        import pyarrow as pa  # noqa: PLC0415 - keys are for engines that need it

        return pa.table({"place": np.arange(len(values.items)), "key": pa.array(values.items, pa.string())})
    listed = f"SELECT place, {form.key('value')} AS key FROM ({cast_list(_LIST, {'value': form})})"
    first = f"SELECT place, CASE WHEN place = min(place) OVER (PARTITION BY key) THEN key END AS key FROM ({listed})"
    return _over_list([values], {"value": form}, connection).sql(first).to_arrow_table()


def keys_of_groups(groups: Groups, connection: "duckdb.DuckDBPyConnection") -> "pa.Table":
    """The position of every group, and a key for each of its columns: grp, member0, member1 and so on."""
    # Groups that no row can match are left out. Of several groups with the same keys, only the first is there.
    forms = forms_of(groups)
    keys = {f"member{i}": form.key(name) for i, (name, form) in enumerate(forms.items())}
    listed = ", ".join(["place", *(f"{key} AS {member}" for member, key in keys.items())])
    first = _first_of_equal(f"SELECT {listed} FROM ({cast_list(_LIST, forms)})", keys, "grp")
    return _over_list(groups.members, forms, connection).sql(first).to_arrow_table()


def different_values(
    values: Any, column: Column, connection: "duckdb.DuckDBPyConnection", name: str = "candidates"
) -> Values:
    """A public list, checked against the kind of its column. No two items are equal in the type of the column."""
    # Otherwise a row could be in two groups and count twice at the cost of one.
    listed = public_values(values, column, name)
    form = form_of(column, listed.kind)
    if _are_texts(listed, form):
        return listed
    equal = (
        f"SELECT min(place), max(place) FROM ({cast_list(_LIST, {'value': form})})"
        " WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
    )
    for first, second in _over_list([listed], {"value": form}, connection).sql(equal).fetchall():
        raise same_value(listed.items[first], listed.items[second], column, name)
    return listed


def _are_texts(values: Values, form: Form) -> bool:
    # Items that are compared as texts: then different ones are different for DuckDB too.
    are_plain = values.kind is Kind.TEXT and set(map(type, values.items)) == {str}
    return are_plain and form.type == "VARCHAR"


def same_value(first: Any, second: Any, column: Column, name: str = "candidates") -> InvalidValue:
    """The error for two items of a public list that are equal in the type of the column."""
    shown = " and ".join(str(item)[:_SHOWN_CHARACTERS] for item in (first, second))
    return InvalidValue(
        f"{name} must be different values: {shown} are equal when compared with the column"
        f" {column.name!r} ({column.kind.value}, {column.type}): keep one of the two"
    )


def _over_list(
    lists: Sequence[Values], forms: Forms, connection: "duckdb.DuckDBPyConnection"
) -> "duckdb.DuckDBPyConnection":
    cursor = connection.cursor()
    cursor.register(_LIST, columns_of(lists, forms))
    return cursor


# Positions on a grid.


_SMALL, _INT64 = 2**62, 2**63
_PLAIN_DIGITS = 15  # two different decimal numbers of 15 digits are different floats
_BETWEEN_DIGITS, _DECIMAL_DIGITS = 7, 28


class OnGrid:
    """Where the values of a column lie on a grid.

    Attributes:
        digits: the number of digits after the decimal point of the units in which values and candidates are compared.
        has_no_gaps: whether no value can lie between two candidates.
        is_small: whether 64 bits are enough for items.
    """

    def __init__(self, column: Column, grid: Span) -> None:
        self._column, self._grid = column, grid
        is_written = column.is_text and grid.kind.is_number and not grid.bits
        self.digits = max(TEXT_DIGITS, grid.digits) if is_written else grid.digits
        finer = 10 ** (self.digits - grid.digits)
        self._first, self._last, self._step = grid.first * finer, grid.last * finer, grid.step * finer
        is_float = grid.kind is Kind.FLOAT
        self.has_no_gaps = bool(grid.bits) or (not is_float and self._step == 1)
        self.is_small = is_float or self.has_no_gaps or 2 * (grid.last - grid.first) // grid.step < _SMALL
        self._type = "BIGINT" if self.is_small else "HUGEINT"
        # For units that do not fit into 64 bits with a sign.
        self._shift = 0 if grid.first >= -_INT64 and grid.last < _INT64 else grid.first + _INT64

    @property
    def item(self) -> str:
        """The item of a value."""
        first, last = self._first, self._last
        if self.has_no_gaps:
            units = self._units_of_float() if self._grid.bits else self._units()
            if self._shift:
                units = f"CAST({units} AS HUGEINT) - {_literal(self._shift)}"
            return f"CAST({units} AS BIGINT)"
        if self._grid.kind is Kind.FLOAT:
            return self._item_of_float()
        integer = "BIGINT" if max(abs(first), abs(last), 2 * (last - first) + 1) < _SMALL else "HUGEINT"
        exact = _item_of_units(f"CAST({self._units()} AS {integer})", first, self._step, self._type)
        ways = " ".join(f"WHEN {condition} THEN {place}" for condition, place in self.plain_ways())
        return f"CASE {ways} ELSE {exact} END" if ways else exact

    @property
    def is_between(self) -> str:
        """Whether a value lies between two candidates, given its item. Marks have none that is asked for."""
        return "false" if self._grid.marks or self.has_no_gaps else "item % 2 <> 0"

    def located(self, items: Integers) -> tuple[Lengths, Flags]:
        """Return the number of steps from `first` to each small item, and whether the value lies after that."""
        if not self.has_no_gaps:
            return (items >> 1).view(np.uint64), (items & 1).astype(np.bool_)
        first = np.uint64((self._grid.first - self._shift) % 2**64)
        with np.errstate(over="ignore"):  # modulo 2**64
            places: Lengths = items.view(np.uint64) - first
        return places, np.zeros(items.size, np.bool_)

    def _units(self) -> str:
        # Clamped before anything could overflow.
        column, kind, first, last = self._column, self._grid.kind, self._first, self._last
        x = value_of(column, kind)
        if kind is Kind.DATE:
            low, high = (f"(DATE '1970-01-01' + ({days}))" for days in (first, last))
            return f"({_clamped(x, low, high)} - DATE '1970-01-01')"
        if kind.is_moment:
            infinite = (
                f"CASE WHEN {x} = CAST('infinity' AS {kind.type}) THEN {last} WHEN {x} IS NOT NULL THEN {first} END"
            )
            finite = _clamped(f"epoch_us({x})", str(first), str(last))
            return f"CASE WHEN isfinite({x}) THEN {finite} ELSE {infinite} END"
        if column.kind is Kind.INTEGER:
            ends = column.integer_ends
            # If its type has no value outside the range, it is not clamped, which would take 128 bits.
            fits = ends is not None and first <= ends[0] and ends[1] <= last
            return x if fits else _clamped(x, _literal(first), _literal(last))
        return self._units_of_decimal()

    def _units_of_decimal(self) -> str:
        # A text with too many digits is clamped by its float value. DuckDB cannot parse 1e40 (too large) or
        # 1e-999999999 (exponent too large) as decimals; the latter is a zero.
        column, digits = self._column, self.digits
        type_, exponent = f"DECIMAL(38,{digits})", f"e-{digits}" if digits else ""
        low, high = f"CAST('{self._first}{exponent}' AS {type_})", f"CAST('{self._last}{exponent}' AS {type_})"
        if column.kind is Kind.DECIMAL:
            return f"{_clamped(identifier(column.name), low, high)} * {10**digits}"
        double = value_of(column, Kind.FLOAT)
        zero = f"least(greatest(CAST(0 AS {type_}), {low}), {high})"
        finite = f"CASE WHEN {double} >= 1 THEN {high} WHEN {double} <= -1 THEN {low} ELSE {zero} END"
        beyond = _if_a_number(double, finite=finite, low=low, high=high)
        exact = f"TRY_CAST({number_in(text_of(column), column.style)} AS {type_})"
        return f"coalesce({_clamped(exact, low, high)}, {beyond}) * {10**digits}"

    def plain_ways(self) -> list[tuple[str, str]]:
        """Return when the float x of a text decides its item: conditions and items, for numbers of moderate size."""
        # The first condition is that the text has at most 15 bytes, and x is nearest to u / 10**digits for a whole
        # number u. Then the text is u / 10**digits exactly, or both are beyond the same end of the range. Let v be the
        # number that is written. It has at most 15 significant digits, and x is the float nearest to v. Two different
        # numbers of at most 15 significant digits have different nearest floats, unless both are nearly zero. So if
        # abs(u) <= 10**15, either v is u / 10**digits, or u is 0 and v is so small that all its first hundred decimal
        # places are zero, as if it were 0. If u is beyond an end, which is at most 10**15, then x is beyond the float
        # of that end, and so is v.
        #
        # The product of x with 10**digits has two roundings, of at most 2**-53 each, so u is the right whole number up
        # to 2**50. A wrong one beyond is still beyond the range. The difference of infinities and of NaN is NaN, which
        # is not 0.
        #
        # The second condition is that x is well apart from all w = u / 10**digits with whole numbers u, and below
        # 2**21. Let u be the nearest one. Floats below 2**22 are at most 2**-31 apart, so x, the float of w and their
        # difference each err by at most 2**-32: if that difference exceeds 2**-28, v is more than 3e-9 away from w, on
        # the same side as x. The product of x with 10**digits errs by less than 0.01 if there are at most seven digits,
        # so v is also more than 0.4 * 10**-7 away from the next number on that side. Then the ninth decimal place, to
        # which the exact way rounds, does not matter. The text is short enough to be a decimal of 38 digits. Its item
        # is the one after that of the lower number of units, or an end of the range.
        column, grid = self._column, self._grid
        is_moderate = grid.digits <= _PLAIN_DIGITS and max(abs(grid.first), abs(grid.last)) <= 10**_PLAIN_DIGITS
        if not (column.is_text and is_moderate):
            return []
        text, x, scale = (
            number_in(text_of(column), column.style),
            value_of(column, Kind.FLOAT),
            f"CAST({10**grid.digits} AS DOUBLE)",
        )
        nearest = f"round({x} * {scale})"
        # Conditions begin with it: DuckDB then computes it once for all of them.
        error = f"({x} - {nearest} / {scale})"
        # DuckDB reads +-1 as a float, though not as a decimal.
        short, decimal = (
            f"strlen({text}) <= {n} AND NOT contains({text}, '+')" for n in (_PLAIN_DIGITS, _DECIMAL_DIGITS)
        )
        clamped = "CAST(least(greatest({}, {}), {}) AS BIGINT)".format
        at = _item_of_units(clamped(nearest, grid.first, grid.last), grid.first, grid.step, self._type)
        ways = [(f"{error} = 0 AND {short}", at)]
        if grid.digits <= _BETWEEN_DIGITS:
            below = clamped(f"{nearest} - CAST({error} < 0 AS INTEGER)", grid.first - 1, grid.last)
            steps = f"({below} - {_literal(grid.first - grid.step)}) // {grid.step}"
            whole, rest = divmod(grid.last - grid.first, grid.step)
            between = f"CAST(least(greatest(2 * ({steps}) - 1, 0), {2 * whole + (rest > 0)}) AS {self._type})"
            ways.append((f"abs({error}) > {2.0**-28!r} AND abs({x}) < {2**21} AND {decimal}", between))
        return ways

    def _units_of_float(self) -> str:
        # The rank of a float (`kinds`), from its bits. Those of a negative one, unsigned, are its negated rank.
        x, grid = value_of(self._column, Kind.FLOAT), self._grid
        bits = f"CAST(CAST({x} AS BIT) AS {'INTEGER' if grid.bits == 32 else 'BIGINT'})"
        rank = f"CASE WHEN {bits} >= 0 THEN {bits} ELSE -({bits} & {2 ** (grid.bits - 1) - 1}) END"
        low, high = (f"CAST('{units}' AS BIGINT)" for units in (grid.first, grid.last))
        if (grid.first, grid.last) != (-LARGEST_RANK[grid.bits], LARGEST_RANK[grid.bits]):
            rank = f"least(greatest({rank}, {low}), {high})"
        return _if_a_number(x, finite=rank, low=low, high=high)

    def _item_of_float(self) -> str:
        # Candidates are c_i = (first + i step) / 10**digits, one rounding of a quotient of two integers that floats
        # hold exactly. Let t = (x - c_0) / d for the true x and d = step / 10**digits. The computed quotient errs by
        # the roundings of c_0, of x - c_0, of d and of the quotient: at most four times 2**-53 times |units| / step <=
        # 2**48, so by less than 2**-3. Rounding to an integer i leaves |t - i| < 1, hence x lies strictly between
        # c_(i-1) and c_(i+1), and comparing it with c_i settles where.
        x, grid = value_of(self._column, Kind.FLOAT), self._grid
        x = x if self._column.is_text else f"CAST({x} AS DOUBLE)"
        low, high = (f"CAST({units / 10**grid.digits!r} AS DOUBLE)" for units in (grid.first, grid.last))
        clamped = _if_a_number(x, finite=_clamped(x, low, high), low=low, high=high)
        index = f"CAST(round(({clamped} - {low}) / CAST({grid.step / 10**grid.digits!r} AS DOUBLE)) AS BIGINT)"
        nearest = f"(CAST(({grid.first}) + {index} * {grid.step} AS DOUBLE) / CAST({10**grid.digits} AS DOUBLE))"
        return f"2 * {index} + CASE WHEN {clamped} > {nearest} THEN 1 WHEN {clamped} < {nearest} THEN -1 ELSE 0 END"


def _item_of_units(units: str, first: int, step: int, type_: str) -> str:
    offset = f"({units} - {_literal(first)})"
    if step == 1:
        return f"CAST(2 * {offset} AS {type_})"
    return f"CAST(2 * ({offset} // {step}) + CAST({offset} % {step} <> 0 AS INTEGER) AS {type_})"


def _literal(units: int) -> str:
    return f"(CAST('{units}' AS HUGEINT))" if abs(units) >= _SMALL else f"({units})"


def _clamped(x: str, low: str, high: str) -> str:
    # NULL stays NULL, which least and greatest would drop.
    return f"CASE WHEN {x} IS NOT NULL THEN least(greatest({x}, {low}), {high}) END"


def _if_a_number(x: str, *, finite: str, low: str, high: str) -> str:
    # isnan is not used: DuckDB answers it from the statistics of a Parquet file, which ignore NaN.
    infinities = f"WHEN {x} = CAST('inf' AS DOUBLE) THEN {high} WHEN {x} = CAST('-inf' AS DOUBLE) THEN {low}"
    return f"CASE WHEN {x} * 0 = 0 THEN {finite} {infinities} END"
