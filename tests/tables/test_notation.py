"""How numbers, dates and text of a CSV file are read: what docs/tables.md says under "What is left out, silently"."""

import datetime
from pathlib import Path
from typing import Any

import pytest

import dpselect

# Far more people have what is tested than have the other value. With this epsilon the other one is answered only if
# what is tested does not count.
MANY, FEW, EPSILON = 50, 5, 1000
DAYS = {"lower": datetime.date(2020, 1, 1), "upper": datetime.date(2030, 1, 1)}
OTHER_DAY, DAY = datetime.date(2021, 1, 1), datetime.date(2026, 1, 31)


def table(folder: Path, written: str, other: object) -> dpselect.tables.Table:
    rows = [*[written] * MANY, *[other] * FEW]
    file = folder / "table.csv"
    file.write_text("person;value\n" + "".join(f"{number};{row}\n" for number, row in enumerate(rows)))
    return dpselect.open_table(file, person="person")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[("12.50", 12.5), ("1200.5", 1200.5), ("1e2", 100), (" 7 ", 7), ("1.200", 1.2)],
        *[(text, None) for text in ("12,50", "1.200,50", "1,200.50", "1 200", "12 EUR", "flu")],
    ],
)
def test_numbers_have_a_point_and_no_other_separator(tmp_path: Path, written: str, value: float | None) -> None:
    answer = table(tmp_path, written, 7000).median("value", lower=0, upper=10_000, step=0.01, epsilon=EPSILON)
    assert answer.value == (7000 if value is None else value)


@pytest.mark.parametrize(
    ("written", "value"),
    [("2026-01-31", DAY), ("2026/01/31", DAY), ("31.01.2026", None), ("01/31/2026", None)],
)
def test_dates_are_year_month_day(tmp_path: Path, written: str, value: datetime.date | None) -> None:
    answer = table(tmp_path, written, OTHER_DAY).median("value", **DAYS, epsilon=EPSILON)
    assert answer.value == (OTHER_DAY if value is None else value)


@pytest.mark.parametrize(
    ("written", "counts"),
    [("Grippe", True), ('"Grippe"', True), ("grippe", False), (" Grippe", False), ("Grippe ", False)],
)
def test_text_counts_for_exactly_its_candidate(tmp_path: Path, written: str, counts: bool) -> None:
    answer = table(tmp_path, written, "Husten").mode("value", candidates=["Grippe", "Husten"], epsilon=EPSILON)
    assert answer.value == ("Grippe" if counts else "Husten")


def test_the_median_of_text_is_answered_and_means_nothing(tmp_path: Path) -> None:
    """Every candidate is as good as any other: 20 equal draws of 10**6 + 1 would be a wonder."""
    text = table(tmp_path, "flu", "cold")
    answers: set[Any] = {text.median("value", lower=0, upper=10**6, epsilon=EPSILON).value for _ in range(20)}
    assert len(answers) > 1
