"""Private questions about tables: mode, top-k, median and quantiles, for all people or for each public group."""

from dpselect.release import Answer
from dpselect.tables.checks import Check, Near, Notation, Notice, Overview, Reason
from dpselect.tables.kinds import Column
from dpselect.tables.plots import plot_quantiles
from dpselect.tables.table import GroupedTable, Table, open_table

__all__ = [
    "Answer",
    "Check",
    "Column",
    "GroupedTable",
    "Near",
    "Notation",
    "Notice",
    "Overview",
    "Reason",
    "Table",
    "open_table",
    "plot_quantiles",
]
