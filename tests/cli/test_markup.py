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
COMMANDS = {
    "mode file": f"mode {NAME}none.csv --column d --candidates a,b --epsilon 1",
    "mode candidates": f"mode {ASKED} --candidates {NAME}bad.txt",
    "mode groups": f"mode {ASKED} --candidates a,b --group-by d --groups {NAME}bad.txt",
    "mode ledger": f"mode {ASKED} --candidates a,b --ledger {NAME}bad.txt --budget 1",
    "top file": f"top {NAME}none.csv -k 1 --column d --candidates a,b --epsilon 1",
    "top candidates": f"top {ASKED} -k 1 --candidates {NAME}bad.txt",
    "top groups": f"top {ASKED} -k 1 --candidates a,b --group-by d --groups {NAME}bad.txt",
    "top ledger": f"top {ASKED} -k 1 --candidates a,b --ledger {NAME}bad.txt --budget 1",
    "values file": f"values {NAME}none.csv --column d --epsilon 1 --delta 1e-9",
    "values groups": f"values {ASKED} --delta 1e-9 --group-by d --groups {NAME}bad.txt",
    "values ledger": f"values {ASKED} --delta 1e-9 --ledger {NAME}bad.txt --budget zcdp:1,1e-6",
    "median file": f"median {NAME}none.csv --column d --lower 0 --upper 9 --epsilon 1",
    "median groups": f"median {ASKED} --lower 0 --upper 9 --group-by d --groups {NAME}bad.txt",
    "median ledger": f"median {ASKED} --lower 0 --upper 9 --ledger {NAME}bad.txt --budget 1",
    "quantile file": f"quantile {NAME}none.csv --level 0.5 --column d --lower 0 --upper 9 --epsilon 1",
    "quantile groups": f"quantile {ASKED} --level 0.5 --lower 0 --upper 9 --group-by d --groups {NAME}bad.txt",
    "quantile ledger": f"quantile {ASKED} --level 0.5 --lower 0 --upper 9 --ledger {NAME}bad.txt --budget 1",
    "quantiles file": f"quantiles {NAME}none.csv --levels deciles --column d --lower 0 --upper 9 --epsilon 1",
    "quantiles groups": f"quantiles {ASKED} --levels deciles --lower 0 --upper 9 --group-by d --groups {NAME}bad.txt",
    "quantiles plot": f"quantiles {ASKED} --levels deciles --lower 0 --upper 9 --plot {NAME}none.png",
    "quantiles ledger": f"quantiles {ASKED} --levels deciles --lower 0 --upper 9 --ledger {NAME}bad.txt --budget 1",
    "minimum file": f"minimum {NAME}none.csv --column d --lower 0 --upper 9 --epsilon 1",
    "minimum groups": f"minimum {ASKED} --lower 0 --upper 9 --group-by d --groups {NAME}bad.txt",
    "minimum ledger": f"minimum {ASKED} --lower 0 --upper 9 --ledger {NAME}bad.txt --budget 1",
    "maximum file": f"maximum {NAME}none.csv --column d --lower 0 --upper 9 --epsilon 1",
    "maximum groups": f"maximum {ASKED} --lower 0 --upper 9 --group-by d --groups {NAME}bad.txt",
    "maximum ledger": f"maximum {ASKED} --lower 0 --upper 9 --ledger {NAME}bad.txt --budget 1",
    "check file": f"check {NAME}none.csv --column d",
    "check candidates": f"check {TABLE} --column d --candidates {NAME}bad.txt",
    "check groups": f"check {TABLE} --column d --group-by d --groups {NAME}bad.txt",
    "check ledger": f"check {NAME}none.csv --column d",  # a ledger is refused, and not opened
    "select file": f"select {NAME}none.csv --epsilon 1",
    "select ledger": f"select {SCORES} --epsilon 1 --ledger {NAME}bad.txt --budget 1",
    "plan select scores": f"plan select --scores {SCORES} --epsilon 1",
    "plan mode candidates": f"plan mode --candidates {NAME}bad.txt --epsilon 1",
    "plan mode groups": f"plan mode --candidates 9 --groups {NAME}bad.txt --epsilon 1",
    "plan top candidates": f"plan top -k 1 --candidates {NAME}bad.txt --epsilon 1",
    "plan top groups": f"plan top -k 1 --candidates 9 --groups {NAME}bad.txt --epsilon 1",
    "plan values groups": f"plan values --delta 1e-9 --groups {NAME}bad.txt --epsilon 1",
    "plan median groups": f"plan median --groups {NAME}bad.txt --epsilon 1",
    "plan quantile groups": f"plan quantile --level 0.5 --groups {NAME}bad.txt --epsilon 1",
    "plan quantiles groups": f"plan quantiles --levels deciles --groups {NAME}bad.txt --epsilon 1",
    "plan minimum groups": f"plan minimum --groups {NAME}bad.txt --epsilon 1",
    "plan maximum groups": f"plan maximum --groups {NAME}bad.txt --epsilon 1",
    "compare file": f"compare {NAME}none.csv --epsilon 1",
    "compare plot": f"compare {SCORES} --epsilon 1,2 --plot {NAME}.png",
    "explore file": f"explore {NAME}none.csv",
    "paper out": f"paper --out {SCORES}",
    "paper data": f"paper --out out --data {NAME}none",
    "study out": f"study --out {SCORES} --runs 2",
    "study data": f"study --out out --data {NAME}none --runs 2",
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
    out = run("demo").out
    assert "/home/[red]me[/red]/bin/dpselect select --help" in out


def test_what_a_ledger_holds_is_printed_as_it_is(run: Run, folder: Path) -> None:
    shown = run("ledger", "show", LEDGER).out
    assert f"column={NAME}" in shown


def test_only_one_module_prints_and_the_demo_its_own_words() -> None:
    """A Console reads markup in every text that it is given; those of the users go through `console`."""
    users = {
        path.name
        for path in SOURCE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Console"
    }
    assert users == {"console.py", "demo.py"}
