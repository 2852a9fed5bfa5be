import csv
import io
import math

from dpselect.research.plotting import NumberTable

TABLE = NumberTable(("kind", "x", "y"), (("a", 1, 0.1), ("b", 1, 1 / 3), ("a", 2, 1e-300)))


def test_series_are_grouped_in_the_order_of_the_rows() -> None:
    assert list(TABLE.series("kind", "x", "y")) == [("a", [1, 2], [0.1, 1e-300]), ("b", [1], [1 / 3])]


def test_rows_by_value() -> None:
    assert TABLE.where(kind="a", x=2).rows == (("a", 2, 1e-300),)
    assert TABLE.where(kind="c").rows == ()


def test_csv_keeps_every_digit() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert [float(row["y"]) for row in rows] == [0.1, 1 / 3, 1e-300]
    assert [row["kind"] for row in rows] == ["a", "b", "a"]
    assert math.fsum(float(row["x"]) for row in rows) == 4
