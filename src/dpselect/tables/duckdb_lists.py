"""Public lists of candidates and groups, as tables that DuckDB joins with the rows."""

from decimal import Decimal

import pyarrow as pa

from dpselect.tables.kinds import Column, Kind, digits_after_point
from dpselect.tables.values import Values


def arrow_list(values: Values, column: Column) -> pa.Table:
    """A public list as a table; whole and decimal numbers are text, which the statement casts."""
    if values.kind in (Kind.INTEGER, Kind.DECIMAL):
        items = pa.array([_written(item, column) for item in values.items], pa.string())
    else:
        types = {Kind.TIMESTAMP: pa.timestamp("us"), Kind.ZONED: pa.timestamp("us", "UTC")}
        items = pa.array(values.items, types.get(values.kind))
    return pa.table({"place": pa.array(range(len(values)), pa.int64()), "value": items})


def _written(item: int | Decimal, column: Column) -> str | None:
    """The number in digits; None if it has more digits after the point than the column, and can equal no value."""
    if isinstance(item, Decimal):
        too_fine = column.kind is Kind.DECIMAL and digits_after_point(item) > column.digits
        return None if too_fine else f"{item:f}"
    return str(item)
