"""Private questions to tables: mode, top-k, median and quantiles, of all or of each public group."""

from dpselect.tables.answer import Answer
from dpselect.tables.opening import open_table
from dpselect.tables.table import GroupedTable, Table

__all__ = ["Answer", "GroupedTable", "Table", "open_table"]
