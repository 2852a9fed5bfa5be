"""The tables of figures that the commands print."""

from rich.box import SIMPLE_HEAD
from rich.table import Table


def figure_table(first: str, *others: str) -> Table:
    """A table without rows: a first column of names, then columns of numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for other in others:
        table.add_column(other, justify="right", no_wrap=True)
    return table
