"""Numbers of the command line have ASCII digits and no underscores, and a long one is refused at once."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
import typer

from dpselect.cli.app import app
from dpselect.ledger import Ledger
from tests.cli.conftest import Run
from tests.numbers import LONG_TEXTS, MISWRITTEN
from tests.watchdog import at_once

Line = Callable[[str], tuple[str, ...]]

ASK = ("--epsilon", "1", "--person", "patient")
MODE = ("mode", "{table}", "--column", "ward", "--candidates", "7,8")
TOP = ("top", "{table}", "--column", "ward", "--candidates", "7,8", *ASK)
RANGE = ("--lower", "0", "--upper", "9")
COMPARE = ("compare", "{scores}")
PLAN = ("plan", "select", "--candidates", "10")
AUDIT = ("audit", "--mechanism", "permute-and-flip", "--epsilon", "1", "--runs", "100")

# Every option that takes a number.
OPTIONS: dict[str, Line] = {
    **{
        f"select {option}": lambda x, option=option: ("select", "{scores}", "--epsilon", "1", option, x)
        for option in ("--epsilon", "--sensitivity", "--score-range")
    },
    **{
        f"compare {option}": lambda x, option=option: (*COMPARE, "--epsilon", "0.1:1", option, x)
        for option in ("--epsilon", "--points", "--sensitivity", "--score-range")
    },
    "range of compare": lambda x: (*COMPARE, "--epsilon", f"0.1:{x}"),
    "list of compare": lambda x: (*COMPARE, "--epsilon", f"0.1,{x}"),
    **{
        f"plan {option}": lambda x, option=option: (*PLAN, "--epsilon", "1", option, x)
        for option in ("--epsilon", "--candidates", "--questions", "--delta", "--sensitivity", "--score-range")
    },
    "plan --error": lambda x: (*PLAN, "--error", x),
    **{f"audit {option}": lambda x, option=option: (*AUDIT, option, x) for option in ("--epsilon", "--runs")},
    **{
        f"audit {option}": lambda x, option=option: (*AUDIT, option, x) for option in ("--false-alarm", "--sensitivity")
    },
    "mode --epsilon": lambda x: (*MODE, "--epsilon", x),
    "mode --candidates": lambda x: (*MODE, *ASK, "--candidates", f"7,{x}"),
    "decimal --candidates": lambda x: (*MODE, *ASK, "--column", "cost", "--candidates", f"7,{x}"),
    "float --candidates": lambda x: (*MODE, *ASK, "--column", "rate", "--candidates", f"7,{x}"),
    "mode --groups": lambda x: (*MODE, *ASK, "--group-by", "ward", "--groups", f"7,{x}"),
    "mode --max-groups": lambda x: (*MODE, *ASK, "--group-by", "ward", "--groups", "7,8", "--max-groups", x),
    "max-groups without groups": lambda x: (*MODE, *ASK, "--max-groups", x),
    "mode --budget": lambda x: (*MODE, *ASK, "--ledger", "{folder}/new.ledger", "--budget", x),
    "top -k": lambda x: (*TOP, "-k", x),
    **{
        f"median {option} of {column} in {file}": lambda x, option=option, column=column, file=file: (
            *("median", f"{{{file}}}", "--column", column, *RANGE, *ASK, option, x),
        )
        for option in ("--lower", "--upper", "--step")
        for column in ("ward", "cost", "rate")
        for file in ("table", "csv")
    },
    "step of days": lambda x: (
        *("median", "{table}", "--column", "day", "--lower", "2026-01-01", "--upper", "2026-12-31", *ASK, "--step", x),
    ),
    "step of moments": lambda x: (
        *("median", "{table}", "--column", "moment", "--lower", "2026-01-01", "--upper", "2026-12-31"),
        *(*ASK, "--step", x),
    ),
    "quantile --level": lambda x: ("quantile", "{table}", "--column", "ward", *RANGE, *ASK, "--level", x),
    "ledger show --delta": lambda x: ("ledger", "show", "{ledger}", "--delta", x),
    "explore --port": lambda x: ("explore", "--port", x),
    "paper --points": lambda x: ("paper", "--out", "{folder}/paper", "--points", x),
    "study --runs": lambda x: ("study", "--out", "{folder}/study", "--runs", x),
    "study --seed": lambda x: ("study", "--out", "{folder}/study", "--seed", x),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("numbers")
    table = pa.table(
        {
            "patient": [1, 2],
            "ward": [7, 8],
            "cost": [Decimal("1.50"), Decimal("2.50")],
            "rate": [1.5, 2.5],
            "day": [datetime.date(2026, 2, 3)] * 2,
            "moment": [datetime.datetime(2026, 2, 3)] * 2,
        }
    )
    found = {"folder": folder, "table": folder / "t.parquet", "csv": folder / "t.csv", "scores": folder / "s.csv"}
    pq.write_table(table, found["table"])
    arrow_csv.write_csv(table, found["csv"])
    found["scores"].write_text("1\n2\n")
    Ledger(folder / "old.ledger", budget=1).spend("0.1", "question")
    return {**found, "ledger": folder / "old.ledger"}


def is_refused(run: Run, places: dict[str, Path], line: tuple[str, ...]) -> bool:
    result = run(*(part.format(**places) if "{" in part else part for part in line))
    assert result.out == ""
    assert len(result.err) < 400
    return result.code == 2 and result.err.startswith("error: ")


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_digits_are_ascii_and_not_parted(run: Run, places: dict[str, Path], option: str) -> None:
    for text in MISWRITTEN:
        assert is_refused(run, places, OPTIONS[option](text)), text


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_a_long_number_is_refused_at_once(run: Run, places: dict[str, Path], option: str) -> None:
    for name, text in LONG_TEXTS.items():
        with at_once():
            assert is_refused(run, places, OPTIONS[option](text)), name


@pytest.mark.parametrize("text", [*MISWRITTEN, *LONG_TEXTS.values()], ids=range(len(MISWRITTEN) + len(LONG_TEXTS)))
@pytest.mark.parametrize("rows", ["1\n{}\n", "a,1\nb,{}\n"])
def test_scores_of_a_file_are_held_to_the_same(run: Run, tmp_path: Path, text: str, rows: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(rows.format(f'"{text}"'), encoding="utf-8")
    with at_once():
        result = run("select", file, "--epsilon", "1")
    assert (result.code, result.out) == (2, "")
    assert "line 2 is" in result.err or "line 2 has" in result.err
    assert len(text) < 3 or text not in result.err


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_long_scores_below_the_length_of_a_field_are_refused_at_once(run: Run, tmp_path: Path, text: str) -> None:
    """The reader of CSV takes fields of up to 131,072 characters."""
    file = tmp_path / "scores.csv"
    file.write_text(f"1\n{text[:60_000]}{text[-60_000:]}\n", encoding="utf-8")
    with at_once():
        result = run("select", file, "--epsilon", "1")
    assert (result.code, result.out) == (2, "")
    assert "score on line 2" in result.err
    assert "777" not in result.err


def callbacks(commands: Mapping[str, Any]) -> Iterator[Callable[..., object]]:
    for command in commands.values():
        yield from callbacks(command.commands) if hasattr(command, "commands") else [command.callback]


def test_no_option_is_read_by_python_s_own_reader_of_numbers() -> None:
    """`int` and `float` take 1_0 and the digits of every script: options are texts, read by our own grammar."""
    commands: Any = typer.main.get_command(app)
    types = [
        hint
        for command in callbacks(commands.commands)
        for name, hint in get_type_hints(command).items()
        if name != "return"
    ]
    assert len(types) > 50
    others = [hint for hint in types if hint not in (str, str | None, bool, list[str] | None)]
    choices = {choice for hint in others for choice in (get_args(hint) or [hint]) if choice is not type(None)}
    assert all(issubclass(choice, StrEnum) for choice in choices)
