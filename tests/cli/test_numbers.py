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

ASK = "--epsilon 1 --person patient"
MODE = "mode {table} --column ward --candidates 7,8"
COMPARE = "compare {scores} --epsilon"
RANGE = f"--lower 0 --upper 9 {ASK}"
DAYS = f"--lower 2026-01-01 --upper 2026-12-31 {ASK} --step X"

# Every option that takes a number, which is X.
OPTIONS = [
    *[f"select {{scores}} --epsilon 1 {option} X" for option in ("--epsilon", "--sensitivity", "--score-range")],
    *[f"{COMPARE} 0.1:1 {option} X" for option in ("--epsilon", "--points", "--sensitivity", "--score-range")],
    *[f"{COMPARE} 0.1:X", f"{COMPARE} 0.1,X"],
    *[
        f"plan select --candidates 10 --epsilon 1 {option} X"
        for option in ("--epsilon", "--candidates", "--questions", "--delta", "--sensitivity", "--score-range")
    ],
    "plan select --candidates 10 --error X",
    *[
        f"audit --mechanism permute-and-flip --epsilon 1 --runs 100 {option} X"
        for option in ("--epsilon", "--runs", "--false-alarm", "--sensitivity")
    ],
    f"{MODE} --epsilon X",
    *[f"{MODE} {ASK} --column {column} --candidates 7,X" for column in ("ward", "cost", "rate")],
    f"{MODE} {ASK} --group-by ward --groups 7,X",
    f"{MODE} {ASK} --group-by ward --groups 7,8 --max-groups X",
    f"{MODE} {ASK} --max-groups X",
    f"{MODE} {ASK} --ledger {{folder}}/new.ledger --budget X",
    f"top {{table}} --column ward --candidates 7,8 {ASK} -k X",
    *[
        f"median {{{file}}} --column {column} {RANGE} {option} X"
        for option in ("--lower", "--upper", "--step")
        for column in ("ward", "cost", "rate")
        for file in ("table", "csv")
    ],
    *[f"median {{table}} --column {column} {DAYS}" for column in ("day", "moment")],
    f"quantile {{table}} --column ward {RANGE} --level X",
    "ledger show {ledger} --delta X",
    "explore --port X",
    "paper --out {folder}/paper --points X",
]


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


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_a_number_has_ascii_digits_and_a_long_one_is_refused_at_once(
    run: Run, places: dict[str, Path], option: str
) -> None:
    words = option.format(**places).split()
    for text in [*MISWRITTEN, *LONG_TEXTS.values()]:
        with at_once():
            result = run(*words[:-1], words[-1].replace("X", text))
        assert (result.code, result.out, result.err[:7]) == (2, "", "error: "), text[:40]
        assert len(result.err) < 400


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
