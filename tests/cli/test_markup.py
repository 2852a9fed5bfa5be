"""A path is printed as it is: what looks like markup in it is part of its name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import typer.main

import dpselect
from dpselect.cli import demo
from dpselect.cli.app import app
from tests.cli.conftest import Run

NAME = "[red]x[/]"
SOURCE = Path(dpselect.__file__).parent / "cli"

# A command for every parameter that is a path, in a folder with a file of scores, a table and a ledger.
SCORES, TABLE, LEDGER = f"{NAME}.csv", f"{NAME}t.csv", f"{NAME}.ledger"
ASKED = f"{TABLE} --column d --epsilon 1"
QUESTIONS = {
    "mode": "--candidates a,b",
    "top": "-k 1 --candidates a,b",
    "values": "--delta 1e-9",
    "median": "--lower 0 --upper 9",
    "quantile": "--level 0.5 --lower 0 --upper 9",
    "quantiles": "--levels deciles --lower 0 --upper 9",
    "minimum": "--lower 0 --upper 9",
    "maximum": "--lower 0 --upper 9",
}
PLANS = {"mode": "--candidates 9", "top": "-k 1 --candidates 9", "values": "--delta 1e-9", "median": ""}
PLANS |= {"quantile": "--level 0.5", "quantiles": "--levels deciles", "minimum": "", "maximum": ""}
COMMANDS = {
    **{f"{name} file": f"{name} {NAME}none.csv --column d --epsilon 1 {rest}" for name, rest in QUESTIONS.items()},
    **{
        f"{name} groups": f"{name} {ASKED} {rest} --group-by d --groups {NAME}bad.txt"
        for name, rest in QUESTIONS.items()
    },
    **{
        f"{name} ledger": f"{name} {ASKED} {rest} --ledger {NAME}bad.txt --budget zcdp:1,1e-6"
        for name, rest in QUESTIONS.items()
    },
    **{f"plan {name} groups": f"plan {name} {rest} --groups {NAME}bad.txt --epsilon 1" for name, rest in PLANS.items()},
    "mode candidates": f"mode {ASKED} --candidates {NAME}bad.txt",
    "top candidates": f"top {ASKED} -k 1 --candidates {NAME}bad.txt",
    "quantiles plot": f"quantiles {ASKED} --levels deciles --lower 0 --upper 9 --plot {NAME}none.png",
    "check file": f"check {NAME}none.csv --column d",
    "check candidates": f"check {TABLE} --column d --candidates {NAME}bad.txt",
    "check groups": f"check {TABLE} --column d --group-by d --groups {NAME}bad.txt",
    "check ledger": f"check {NAME}none.csv --column d",  # a ledger is refused, and not opened
    "select file": f"select {NAME}none.csv --epsilon 1",
    "select ledger": f"select {SCORES} --epsilon 1 --ledger {NAME}bad.txt --budget 1",
    "plan select scores": f"plan select --scores {SCORES} --epsilon 1",
    "plan mode candidates": f"plan mode --candidates {NAME}bad.txt --epsilon 1",
    "plan top candidates": f"plan top -k 1 --candidates {NAME}bad.txt --epsilon 1",
    "compare file": f"compare {NAME}none.csv --epsilon 1",
    "compare plot": f"compare {SCORES} --epsilon 1,2 --plot {NAME}.png",
    "explore file": f"explore {NAME}none.csv",
    "paper out": f"paper --out {SCORES}",
    "paper data": f"paper --out out --data {NAME}none",
    "demo save": f"demo --save {NAME}saved.csv",
    "ledger show path": f"ledger show {LEDGER}",
    "ledger verify path": f"ledger verify {LEDGER}",
    "ledger verify receipt": f"ledger verify {LEDGER} --receipt {NAME}none",
    "ledger receipt path": f"ledger receipt {NAME}none",
    "ledger export path": f"ledger export {NAME}none",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # A slash in the name is a folder's.
    (tmp_path / NAME).parent.mkdir(parents=True, exist_ok=True)
    Path(SCORES).write_text("a,1\nb,2\n")
    Path(TABLE).write_text("d\n1\n2\n")
    Path(f"{NAME}bad.txt").write_bytes(b"\xff\n")
    table = dpselect.open_table(pa.table({NAME: ["a"]}), ledger=LEDGER, budget=1)
    table.mode(NAME, candidates=["a"], epsilon="1/2")
    return tmp_path


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_path_is_printed_as_it_is(kind: str, run: Run, folder: Path) -> None:
    result = run(*COMMANDS[kind].split())
    assert NAME in result.out + result.err


def paths_of_commands() -> Iterator[str]:
    """The parameters of all commands that name a file or a folder."""
    group = typer.main.get_command(app)
    groups = {"": group, **{f"{name} ": group.commands[name] for name in ("ledger", "plan")}}
    for prefix, each in groups.items():
        for name, command in each.commands.items():
            for parameter in getattr(command, "params", []):
                shown = f"{parameter.metavar or ''} {parameter.name}".lower()
                if any(word in shown for word in ("file", ".csv", "dir", "ledger", "receipt")):
                    yield f"{prefix}{name} {parameter.name}"


def test_no_command_is_forgotten() -> None:
    assert sorted(paths_of_commands()) == sorted(COMMANDS)


def test_the_command_of_the_demo_is_printed_as_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_command", lambda: "/home/[red]me[/red]/bin/dpselect")
    for slow in ("make_visits", "_ask_mode", "_ask_median", "_ask_counties"):
        monkeypatch.setattr(demo, slow, lambda *_: [])
    out = run("demo").out
    assert "/home/[red]me[/red]/bin/dpselect select --help" in out


def test_what_a_ledger_holds_is_printed_as_it_is(run: Run, folder: Path) -> None:
    shown = run("ledger", "show", LEDGER).out
    assert f"column={NAME}" in shown


def test_only_one_module_prints_and_the_demo_its_own_words() -> None:
    """A Console reads markup in every text that it is given; those of the users go through `commands`."""
    users = {
        path.name
        for path in SOURCE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Console"
    }
    assert users == {"commands.py", "demo.py"}
