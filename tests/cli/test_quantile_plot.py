"""`dpselect quantiles --plot`: the figure is drawn after the answer is printed."""

import datetime
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpselect import tables
from tests.cli.conftest import Run

pytest.importorskip("matplotlib")


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "people.csv"
    file.write_text("who,x,ward\n" + "".join(f"{i},{i % 50},{'ab'[i % 2]}\n" for i in range(200)))
    ledger = ("--ledger", str(tmp_path / "people.ledger"), "--budget", "10")
    return ("quantiles", str(file), "--column", "x", "--step", "1", "--person", "who", "--epsilon", "1", *ledger)


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--people", "200"),
        ("--group-by", "ward", "--groups", "a,b", "--people", "1e2"),
        ("--group-by", "ward", "--groups", "a,b", "--people", "100", "--max-groups", "1e1"),
        ("--per-person", "rows", "--max-rows", "1e1", "--people", "200"),
    ],
)
def test_the_distribution_function_is_drawn(
    run: Run, asked: tuple[str, ...], tmp_path: Path, more: tuple[str, ...]
) -> None:
    path = tmp_path / "figure.svg"
    result = run(*asked, "--levels", "quartiles", "--plot", path, *more)
    assert result.code == 0
    assert "quartiles over " in result.err
    assert path.read_text(encoding="utf-8").startswith("<?xml")


DAY, NOON = datetime.date(2024, 3, 5), datetime.datetime(2024, 3, 5, 12)
RANGES = {
    "days": ("d", "--lower 2024-03-01 --upper 2024-03-10", 10),
    "seconds between days": ("t", "--lower 2024-03-01 --upper 2024-03-10", 9 * 86400 + 1),
    "seconds between a day and a moment": ("t", "--lower 2024-03-01 --upper 2024-03-10T12:00", 9 * 86400 + 43200 + 1),
    "a narrow type": ("n", "", 256),
    "one end of a narrow type": ("n", "--lower 100", 28),
    "magnitudes of a narrow type": ("n", "--range log", 205),
    "a step": ("n", "--lower 0 --upper 100 --step 5", 21),
    "one candidate": ("n", "--lower 7 --upper 7", 2),
}


@pytest.mark.parametrize("name", RANGES)
def test_the_bars_are_for_the_candidates_of_the_column(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dates are days in a column of dates, and moments in one of timestamps; no error comes after the charge."""
    column, ends, size = RANGES[name]
    file, drawn = tmp_path / "people.parquet", Mock(wraps=tables.plot_quantiles)
    pq.write_table(pa.table({"d": [DAY] * 9, "t": [NOON] * 9, "n": pa.array([7] * 9, pa.int8())}), file)
    monkeypatch.setattr(tables, "plot_quantiles", drawn)
    asked = ("quantiles", file, "--column", column, "--levels", "quartiles", "--epsilon", "1", *ends.split())
    result = run(*asked, "--plot", tmp_path / "figure.svg", "--people", "9")
    assert result.code == 0
    assert drawn.call_args.kwargs["candidates"] == size
