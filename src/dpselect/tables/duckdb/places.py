"""DuckDB's SQL for the positions of values on a grid, and how to read them back. None of it can fail on a row.

A value becomes an item, a whole number: items are in the order of values, and NULL does not count. There are two ways.

* If no value can lie between two candidates, the item is the value in units. It is shifted if it would not fit into 64
  bits otherwise; a grid has at most 2**64 candidates, so it always fits.
* Otherwise the item is twice the number of the candidate at or before the value, plus one if the value lies after it.
  It may need more than 64 bits, which DuckDB calls HUGEINT.
"""

import numpy as np

from dpselect._types import Flags, Integers, Lengths
from dpselect.tables.duckdb.expressions import TEXT_DIGITS, compared, from_text, identifier
from dpselect.tables.grids import LARGEST_RANK, Grid
from dpselect.tables.ranges import integer_ends
from dpselect.tables.schema import Column, Kind

_SMALL = 2**62
_INT64 = 2**63


def item(column: Column, grid: Grid) -> str:
    """The item of a value."""
    if _has_no_gaps(column, grid):
        units, shift = _units_of_float(column, grid) if grid.bits else _units(column, grid), _shift(grid)
        return f"CAST({f'CAST({units} AS HUGEINT) - {_literal(shift)}' if shift else units} AS BIGINT)"
    if grid.kind is Kind.FLOAT:
        return _item_of_float(column, grid)
    first, _, step = _in_units(column, grid)
    integer = "BIGINT" if is_small(column, grid) else "HUGEINT"
    offset = f"(CAST({_units(column, grid)} AS {integer}) - {_literal(first)})"
    return f"2 * ({offset} // {step}) + CAST({offset} % {step} <> 0 AS {integer})"


def is_small(column: Column, grid: Grid) -> bool:
    """Whether 64 bits are enough for items."""
    first, last, _ = _in_units(column, grid)
    small = max(abs(first), abs(last), 2 * (last - first) + 1) < _SMALL
    return grid.kind is Kind.FLOAT or _has_no_gaps(column, grid) or small


def located(items: Integers, column: Column, grid: Grid) -> tuple[Lengths, Flags]:
    """The number of steps from `first` to each item, and whether the value lies after that. Items are small."""
    if not _has_no_gaps(column, grid):
        return (items >> 1).view(np.uint64), (items & 1).astype(np.bool_)
    first = np.uint64((grid.first - _shift(grid)) % 2**64)
    with np.errstate(over="ignore"):  # modulo 2**64
        places: Lengths = items.view(np.uint64) - first
    return places, np.zeros(items.size, np.bool_)


def _has_no_gaps(column: Column, grid: Grid) -> bool:
    """Whether every value that the column can hold, as it is read, is a whole number of steps."""
    return bool(grid.bits) or (grid.kind is not Kind.FLOAT and _in_units(column, grid)[2] == 1)


def _shift(grid: Grid) -> int:
    """What is subtracted from units that do not fit into 64 bits with a sign."""
    return 0 if grid.first >= -_INT64 and grid.last < _INT64 else grid.first + _INT64


def _in_units(column: Column, grid: Grid) -> tuple[int, int, int]:
    """First, last and step of the grid in the units in which values of the column are compared."""
    finer = 10 ** (_digits(column, grid) - grid.digits)
    return grid.first * finer, grid.last * finer, grid.step * finer


def _digits(column: Column, grid: Grid) -> int:
    """The number of digits after the decimal point in the units in which values and candidates are compared."""
    if column.kind is Kind.TEXT and grid.kind in (Kind.INTEGER, Kind.DECIMAL):
        return max(TEXT_DIGITS, grid.digits)
    return grid.digits


def _literal(units: int) -> str:
    return f"(CAST('{units}' AS HUGEINT))" if abs(units) >= _SMALL else f"({units})"


def _clamped(x: str, low: str, high: str) -> str:
    """The value between two bounds; NULL stays NULL, which least and greatest would drop."""
    return f"CASE WHEN {x} IS NOT NULL THEN least(greatest({x}, {low}), {high}) END"


def _units(column: Column, grid: Grid) -> str:
    """The value in units, clamped before anything could overflow."""
    first, last, _ = _in_units(column, grid)
    if grid.kind is Kind.DATE:
        x = identifier(column.name) if column.kind is Kind.DATE else from_text(column, Kind.DATE)
        low, high = (f"(DATE '1970-01-01' + ({days}))" for days in (first, last))
        return f"({_clamped(x, low, high)} - DATE '1970-01-01')"
    if grid.kind in (Kind.TIMESTAMP, Kind.ZONED):
        x = from_text(column, Kind.TIMESTAMP) if column.kind is Kind.TEXT else compared(column, grid.kind)
        type_ = "TIMESTAMPTZ" if grid.kind is Kind.ZONED else "TIMESTAMP"
        infinite = f"CASE WHEN {x} = CAST('infinity' AS {type_}) THEN {last} WHEN {x} IS NOT NULL THEN {first} END"
        return f"CASE WHEN isfinite({x}) THEN {_clamped(f'epoch_us({x})', str(first), str(last))} ELSE {infinite} END"
    if column.kind is Kind.INTEGER:
        return _units_of_integer(column, first, last)
    return _units_of_decimal(column, grid, first, last)


def _units_of_integer(column: Column, first: int, last: int) -> str:
    """An integer. One whose type has no value outside the range is not clamped, which would take 128 bits."""
    x, ends = compared(column, Kind.INTEGER), integer_ends(column)
    if ends is not None and first <= ends[0] and ends[1] <= last:
        return x
    return _clamped(x, _literal(first), _literal(last))


def _units_of_decimal(column: Column, grid: Grid, first: int, last: int) -> str:
    """A decimal, or a text that is parsed as one. A text with too many digits is clamped by its float value.

    DuckDB cannot parse 1e40 (too large) or 1e-999999999 (exponent too large) as decimals; the latter is a zero.
    """
    digits = _digits(column, grid)
    low, high = (f"CAST('{_decimal_text(units, digits)}' AS DECIMAL(38,{digits}))" for units in (first, last))
    if column.kind is Kind.DECIMAL:
        return f"{_clamped(identifier(column.name), low, high)} * {10**digits}"
    decimal = f"TRY_CAST({identifier(column.name)} AS DECIMAL(38,{digits}))"
    double = f"TRY_CAST({identifier(column.name)} AS DOUBLE)"
    zero = f"least(greatest(CAST(0 AS DECIMAL(38,{digits})), {low}), {high})"
    finite = f"CASE WHEN {double} >= 1 THEN {high} WHEN {double} <= -1 THEN {low} ELSE {zero} END"
    beyond = _if_a_number(double, finite=finite, low=low, high=high)
    return f"coalesce({_clamped(decimal, low, high)}, {beyond}) * {10**digits}"


def _decimal_text(units: int, digits: int) -> str:
    return f"{units}e-{digits}" if digits else str(units)


def _if_a_number(x: str, *, finite: str, low: str, high: str) -> str:
    """The result for a finite float, the bounds for infinities, and NULL for NaN.

    isnan is not used: DuckDB answers it from the statistics of a Parquet file, which ignore NaN.
    """
    infinities = f"WHEN {x} = CAST('inf' AS DOUBLE) THEN {high} WHEN {x} = CAST('-inf' AS DOUBLE) THEN {low}"
    return f"CASE WHEN {x} * 0 = 0 THEN {finite} {infinities} END"


def _units_of_float(column: Column, grid: Grid) -> str:
    """The rank of a float (`grids`), from its bits. Those of a negative one, without the sign, are its negated rank."""
    x = from_text(column, Kind.FLOAT) if column.kind is Kind.TEXT else identifier(column.name)
    bits = f"CAST(CAST({x} AS BIT) AS {'INTEGER' if grid.bits == 32 else 'BIGINT'})"
    rank = f"CASE WHEN {bits} >= 0 THEN {bits} ELSE -({bits} & {2 ** (grid.bits - 1) - 1}) END"
    low, high = (f"CAST('{units}' AS BIGINT)" for units in (grid.first, grid.last))
    if (grid.first, grid.last) != (-LARGEST_RANK[grid.bits], LARGEST_RANK[grid.bits]):
        rank = f"least(greatest({rank}, {low}), {high})"
    return _if_a_number(x, finite=rank, low=low, high=high)


def _item_of_float(column: Column, grid: Grid) -> str:
    """Compare a float with the candidate nearest to it.

    Candidates are c_i = (first + i step) / 10**digits, one rounding of a quotient of two integers that floats hold
    exactly. Let t = (x - c_0) / d for the true x and d = step / 10**digits. The computed quotient errs by the roundings
    of c_0, of x - c_0, of d and of the quotient: at most four times 2**-53 times |units| / step <= 2**48, so by less
    than 2**-3. Rounding to an integer i leaves |t - i| < 1, hence x lies strictly between c_(i-1) and c_(i+1), and
    comparing it with c_i settles where.
    """
    x = from_text(column, Kind.FLOAT) if column.kind is Kind.TEXT else f"CAST({compared(column, Kind.FLOAT)} AS DOUBLE)"
    low, high = (repr(units / 10**grid.digits) for units in (grid.first, grid.last))
    low, high = (f"CAST({bound} AS DOUBLE)" for bound in (low, high))
    clamped = f"{_if_a_number(x, finite=_clamped(x, low, high), low=low, high=high)}"
    index = f"CAST(round(({clamped} - {low}) / CAST({grid.step / 10**grid.digits!r} AS DOUBLE)) AS BIGINT)"
    nearest = f"(CAST(({grid.first}) + {index} * {grid.step} AS DOUBLE) / CAST({10**grid.digits} AS DOUBLE))"
    return f"2 * {index} + CASE WHEN {clamped} > {nearest} THEN 1 WHEN {clamped} < {nearest} THEN -1 ELSE 0 END"
