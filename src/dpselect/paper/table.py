"""The numbers of a figure, as they are drawn and as they are written to a CSV file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpselect._spreadsheet import csv_text

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """Rows under named columns."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def series(self, label: str, x: str, y: str) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """For each distinct label, in the order of the rows: the label, the x and the y values.

        >>> list(Table(("kind", "x", "y"), (("a", 1, 2), ("a", 2, 3), ("b", 1, 5))).series("kind", "x", "y"))
        [('a', [1, 2], [2, 3]), ('b', [1], [5])]
        """
        labels, xs, ys = self.column(label), self.column(x), self.column(y)
        for wanted in dict.fromkeys(labels):
            chosen = [index for index, found in enumerate(labels) if found == wanted]
            yield wanted, [xs[index] for index in chosen], [ys[index] for index in chosen]

    def where(self, **wanted: Any) -> "Table":
        """The rows that have these values."""
        places = {self.columns.index(name): value for name, value in wanted.items()}
        return Table(self.columns, tuple(row for row in self.rows if all(row[i] == v for i, v in places.items())))

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_csv(self) -> str:
        """The table as CSV, floats with all their digits."""
        return csv_text(self.columns, self.rows, end="\n")
