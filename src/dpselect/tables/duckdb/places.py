"""DuckDB's SQL for the positions of values on a grid, and how to read them back. None of it can fail on a row.

A value becomes an item, a whole number: items are in the order of values, and NULL does not count. There are two ways.

* If no value can lie between two candidates, the item is the value in units. It is shifted if it would not fit into 64
  bits otherwise; a grid has at most 2**64 candidates, so it always fits.
* Otherwise the item is twice the number of the candidate at or before the value, plus one if the value lies after it.
  It may need more than 64 bits, which DuckDB calls HUGEINT.

A number that is written as text is a decimal of 38 digits, whose arithmetic is slow in DuckDB. Nearly all texts of most
files can be placed by their floats (`plain_ways`). The others are placed exactly.
"""

import numpy as np

from dpselect._types import Flags, Integers, Lengths
from dpselect.tables.duckdb.values import identifier, value_of
from dpselect.tables.kinds import TEXT_DIGITS, Column, Kind
from dpselect.tables.spans import LARGEST_RANK, Span

_SMALL, _INT64 = 2**62, 2**63
_PLAIN_DIGITS = 15  # two different decimal numbers of 15 digits are different floats
_BETWEEN_DIGITS, _DECIMAL_DIGITS = 7, 28


def item(column: Column, grid: Span) -> str:
    """The item of a value."""
    if _has_no_gaps(column, grid):
        units, shift = _units_of_float(column, grid) if grid.bits else _units(column, grid), _shift(grid)
        return f"CAST({f'CAST({units} AS HUGEINT) - {_literal(shift)}' if shift else units} AS BIGINT)"
    if grid.kind is Kind.FLOAT:
        return _item_of_float(column, grid)
    first, last, step = _in_units(column, grid)
    integer = "BIGINT" if max(abs(first), abs(last), 2 * (last - first) + 1) < _SMALL else "HUGEINT"
    type_ = "BIGINT" if is_small(column, grid) else "HUGEINT"
    exact = _item_of_units(f"CAST({_units(column, grid)} AS {integer})", first, step, type_)
    ways = " ".join(f"WHEN {condition} THEN {place}" for condition, place in plain_ways(column, grid, type_))
    return f"CASE {ways} ELSE {exact} END" if ways else exact


def is_between(column: Column, grid: Span) -> str:
    """Whether a value lies between two candidates, given its `item`. A grid of marks has none that is asked for."""
    return "false" if grid.marks or _has_no_gaps(column, grid) else "item % 2 <> 0"


def is_small(column: Column, grid: Span) -> bool:
    """Whether 64 bits are enough for items."""
    return grid.kind is Kind.FLOAT or _has_no_gaps(column, grid) or 2 * (grid.last - grid.first) // grid.step < _SMALL


def located(items: Integers, column: Column, grid: Span) -> tuple[Lengths, Flags]:
    """The number of steps from `first` to each item, and whether the value lies after that. Items are small."""
    if not _has_no_gaps(column, grid):
        return (items >> 1).view(np.uint64), (items & 1).astype(np.bool_)
    first = np.uint64((grid.first - _shift(grid)) % 2**64)
    with np.errstate(over="ignore"):  # modulo 2**64
        places: Lengths = items.view(np.uint64) - first
    return places, np.zeros(items.size, np.bool_)


def _has_no_gaps(column: Column, grid: Span) -> bool:
    return bool(grid.bits) or (grid.kind is not Kind.FLOAT and _in_units(column, grid)[2] == 1)


def _shift(grid: Span) -> int:
    # For units that do not fit into 64 bits with a sign.
    return 0 if grid.first >= -_INT64 and grid.last < _INT64 else grid.first + _INT64


def compared_digits(column: Column, grid: Span) -> int:
    """The number of digits after the decimal point of the units in which values and candidates are compared."""
    return max(TEXT_DIGITS, grid.digits) if column.is_text and grid.kind.is_number and not grid.bits else grid.digits


def _in_units(column: Column, grid: Span) -> tuple[int, int, int]:
    finer = 10 ** (compared_digits(column, grid) - grid.digits)
    return grid.first * finer, grid.last * finer, grid.step * finer


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


def _units(column: Column, grid: Span) -> str:
    # Clamped before anything could overflow.
    first, last, _ = _in_units(column, grid)
    x = value_of(column, grid.kind)
    if grid.kind is Kind.DATE:
        low, high = (f"(DATE '1970-01-01' + ({days}))" for days in (first, last))
        return f"({_clamped(x, low, high)} - DATE '1970-01-01')"
    if grid.kind.is_moment:
        infinite = (
            f"CASE WHEN {x} = CAST('infinity' AS {grid.kind.type}) THEN {last} WHEN {x} IS NOT NULL THEN {first} END"
        )
        return f"CASE WHEN isfinite({x}) THEN {_clamped(f'epoch_us({x})', str(first), str(last))} ELSE {infinite} END"
    if column.kind is Kind.INTEGER:
        ends = column.integer_ends
        # If its type has no value outside the range, it is not clamped, which would take 128 bits.
        fits = ends is not None and first <= ends[0] and ends[1] <= last
        return x if fits else _clamped(x, _literal(first), _literal(last))
    return _units_of_decimal(column, grid, first, last)


def _units_of_decimal(column: Column, grid: Span, first: int, last: int) -> str:
    # A text with too many digits is clamped by its float value. DuckDB cannot parse 1e40 (too large) or 1e-999999999
    # (exponent too large) as decimals; the latter is a zero.
    x, digits = identifier(column.name), compared_digits(column, grid)
    type_, exponent = f"DECIMAL(38,{digits})", f"e-{digits}" if digits else ""
    low, high = f"CAST('{first}{exponent}' AS {type_})", f"CAST('{last}{exponent}' AS {type_})"
    if column.kind is Kind.DECIMAL:
        return f"{_clamped(x, low, high)} * {10**digits}"
    double = f"TRY_CAST({x} AS DOUBLE)"
    zero = f"least(greatest(CAST(0 AS {type_}), {low}), {high})"
    finite = f"CASE WHEN {double} >= 1 THEN {high} WHEN {double} <= -1 THEN {low} ELSE {zero} END"
    beyond = _if_a_number(double, finite=finite, low=low, high=high)
    return f"coalesce({_clamped(f'TRY_CAST({x} AS {type_})', low, high)}, {beyond}) * {10**digits}"


def plain_ways(column: Column, grid: Span, type_: str) -> list[tuple[str, str]]:
    """When the float x of a text decides its item: pairs of a condition and the item, for numbers of moderate size."""
    # The first condition is that the text has at most 15 bytes, and x is nearest to u / 10**digits for a whole number
    # u. Then the text is u / 10**digits exactly, or both are beyond the same end of the range. Let v be the number that
    # is written. It has at most 15 significant digits, and x is the float nearest to v. Two different numbers of at
    # most 15 significant digits have different nearest floats, unless both are nearly zero. So if abs(u) <= 10**15,
    # either v is u / 10**digits, or u is 0 and v is so small that all its first hundred decimal places are zero, as if
    # it were 0. If u is beyond an end, which is at most 10**15, then x is beyond the float of that end, and so is v.
    #
    # The product of x with 10**digits has two roundings, of at most 2**-53 each, so u is the right whole number up to
    # 2**50. A wrong one beyond is still beyond the range. The difference of infinities and of NaN is NaN, which is not
    # 0.
    #
    # The second condition is that x is well apart from all w = u / 10**digits with whole numbers u, and below 2**21.
    # Let u be the nearest one. Floats below 2**22 are at most 2**-31 apart, so x, the float of w and their difference
    # each err by at most 2**-32: if that difference exceeds 2**-28, v is more than 3e-9 away from w, on the same side
    # as x. The product of x with 10**digits errs by less than 0.01 if there are at most seven digits, so v is also more
    # than 0.4 * 10**-7 away from the next number on that side. Then the ninth decimal place, to which the exact way
    # rounds, does not matter. The text is short enough to be a decimal of 38 digits. Its item is the one after that of
    # the lower number of units, or an end of the range.
    is_moderate = grid.digits <= _PLAIN_DIGITS and max(abs(grid.first), abs(grid.last)) <= 10**_PLAIN_DIGITS
    if not (column.is_text and is_moderate):
        return []
    text, x, scale = identifier(column.name), value_of(column, Kind.FLOAT), f"CAST({10**grid.digits} AS DOUBLE)"
    nearest = f"round({x} * {scale})"
    # Conditions begin with it: DuckDB then computes it once for all of them.
    error = f"({x} - {nearest} / {scale})"
    # DuckDB reads +-1 as a float, though not as a decimal.
    short, decimal = (f"strlen({text}) <= {n} AND NOT contains({text}, '+')" for n in (_PLAIN_DIGITS, _DECIMAL_DIGITS))
    clamped = "CAST(least(greatest({}, {}), {}) AS BIGINT)".format
    at = _item_of_units(clamped(nearest, grid.first, grid.last), grid.first, grid.step, type_)
    ways = [(f"{error} = 0 AND {short}", at)]
    if grid.digits <= _BETWEEN_DIGITS:
        below = clamped(f"{nearest} - CAST({error} < 0 AS INTEGER)", grid.first - 1, grid.last)
        steps = f"({below} - {_literal(grid.first - grid.step)}) // {grid.step}"
        whole, rest = divmod(grid.last - grid.first, grid.step)
        between = f"CAST(least(greatest(2 * ({steps}) - 1, 0), {2 * whole + (rest > 0)}) AS {type_})"
        ways.append((f"abs({error}) > {2.0**-28!r} AND abs({x}) < {2**21} AND {decimal}", between))
    return ways


def _if_a_number(x: str, *, finite: str, low: str, high: str) -> str:
    # isnan is not used: DuckDB answers it from the statistics of a Parquet file, which ignore NaN.
    infinities = f"WHEN {x} = CAST('inf' AS DOUBLE) THEN {high} WHEN {x} = CAST('-inf' AS DOUBLE) THEN {low}"
    return f"CASE WHEN {x} * 0 = 0 THEN {finite} {infinities} END"


def _units_of_float(column: Column, grid: Span) -> str:
    # The rank of a float (`spans`), from its bits. Those of a negative one, unsigned, are its negated rank.
    x = value_of(column, Kind.FLOAT)
    bits = f"CAST(CAST({x} AS BIT) AS {'INTEGER' if grid.bits == 32 else 'BIGINT'})"
    rank = f"CASE WHEN {bits} >= 0 THEN {bits} ELSE -({bits} & {2 ** (grid.bits - 1) - 1}) END"
    low, high = (f"CAST('{units}' AS BIGINT)" for units in (grid.first, grid.last))
    if (grid.first, grid.last) != (-LARGEST_RANK[grid.bits], LARGEST_RANK[grid.bits]):
        rank = f"least(greatest({rank}, {low}), {high})"
    return _if_a_number(x, finite=rank, low=low, high=high)


def _item_of_float(column: Column, grid: Span) -> str:
    # Candidates are c_i = (first + i step) / 10**digits, one rounding of a quotient of two integers that floats hold
    # exactly. Let t = (x - c_0) / d for the true x and d = step / 10**digits. The computed quotient errs by the
    # roundings of c_0, of x - c_0, of d and of the quotient: at most four times 2**-53 times |units| / step <= 2**48,
    # so by less than 2**-3. Rounding to an integer i leaves |t - i| < 1, hence x lies strictly between c_(i-1) and
    # c_(i+1), and comparing it with c_i settles where.
    x = value_of(column, Kind.FLOAT)
    x = x if column.is_text else f"CAST({x} AS DOUBLE)"
    low, high = (repr(units / 10**grid.digits) for units in (grid.first, grid.last))
    low, high = (f"CAST({bound} AS DOUBLE)" for bound in (low, high))
    clamped = f"{_if_a_number(x, finite=_clamped(x, low, high), low=low, high=high)}"
    index = f"CAST(round(({clamped} - {low}) / CAST({grid.step / 10**grid.digits!r} AS DOUBLE)) AS BIGINT)"
    nearest = f"(CAST(({grid.first}) + {index} * {grid.step} AS DOUBLE) / CAST({10**grid.digits} AS DOUBLE))"
    return f"2 * {index} + CASE WHEN {clamped} > {nearest} THEN 1 WHEN {clamped} < {nearest} THEN -1 ELSE 0 END"
