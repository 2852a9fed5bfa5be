"""The command as a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import dpselect
from dpselect import errors
from dpselect.cli.app import app
from dpselect.cli.console import clean_errors
from tests.cli.conftest import Run

PRIVATE = "48151623"
MAIN = (sys.executable, "-c", "from dpselect.cli import main; main()")


def process(*command: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, **environment}, check=False)


def test_version(run: Run) -> None:
    result = run("--version")
    assert (result.code, result.out) == (0, f"dpselect {dpselect.__version__}\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidValue, 2),
        (errors.BudgetMismatch, 2),
        (errors.UnitMismatch, 2),
        (errors.RequestConflict, 2),
        (errors.BudgetExceeded, 3),
        (errors.LedgerError, 4),
        (errors.LedgerCorrupt, 4),
        (errors.RequestUnanswered, 4),
        (errors.MissingExtra, 5),
        (errors.EngineFailure, 6),
    ],
)
def test_each_kind_of_failure_has_an_exit_code(error: type[errors.DPSelectError], code: int) -> None:
    with pytest.raises(typer.Exit) as ended, clean_errors():
        raise error("no")
    assert ended.value.exit_code == code


def test_help_lists_the_exit_codes(run: Run) -> None:
    text = " ".join(run("--help").out.split())
    assert "Exit codes: 0 success" in text
    assert "3 not enough budget left" in text


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_lists_the_commands(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    text = result.out + result.err
    assert "Usage" in text
    assert re.search(r"select\s+Choose one candidate", text)
    assert re.search(r"demo\s+Answer private questions", text)


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("select", ["Example: dpselect select counts.csv", "--epsilon", "--mechanism", "--json", "noisy-max"]),
        ("demo", ["Example: dpselect demo"]),
    ],
)
def test_each_command_has_help_with_an_example(run: Run, command: str, texts: list[str]) -> None:
    result = run(command, "--help")
    assert result.code == 0
    assert [text for text in texts if text not in result.out] == []


@pytest.mark.parametrize("command", ["select", "plan select", "mode", "paper", "study"])
def test_flags_and_defaults_are_shown_plainly(run: Run, command: str) -> None:
    """No `--json <bool>` and no `[default: (1)]`; the line of --help is not ours."""
    text = "".join(line for line in run(*command.split(), "--help").out.splitlines() if "--help" not in line)
    assert "--json" in text
    assert "bool" not in text.lower()
    assert "default: (" not in text


@pytest.mark.parametrize("command", ["paper", "study"])
def test_help_tells_what_a_long_command_needs(run: Run, command: str) -> None:
    text = run(command, "--help").out
    assert "minute" in text
    assert "the extra 'paper'" in text


def test_help_imports_no_command() -> None:
    """The commands need NumPy, and most of them DuckDB; their list needs neither."""
    code = (
        "import sys; sys.argv = ['dpselect', '--help']; from dpselect.cli import main\n"
        "try: main()\n"
        "finally: print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'duckdb', 'scipy', 'pydantic')])"
    )
    assert process(sys.executable, "-c", code).stdout.splitlines()[-1] == b"[]"


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    """Only the group knows the summaries, because the commands are not imported for their list."""
    commands: Any = typer.main.get_command(app)
    assert list(commands.commands) == commands.list_commands(None)
    for name, command in commands.commands.items():
        assert command.name == name
        assert " ".join(command.help.split("\n\n")[0].split()) == commands.late()[name].summary


def test_a_command_that_does_not_exist_is_not_imported(run: Run) -> None:
    result = run("modes")
    assert result.code == 2
    assert "No such command 'modes'. Did you mean 'mode'" in " ".join(result.err.split())


def test_the_library_imports_neither_typer_nor_rich() -> None:
    code = (
        "import sys, dpselect; dpselect.PermuteAndFlip(1);"
        "print(sorted({'typer', 'rich', 'dpselect.cli'} & set(sys.modules)))"
    )
    assert process(sys.executable, "-c", code).stdout.split() == [b"[]"]


def test_a_process_answers_and_fails_with_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(f"a,0\nb,{PRIVATE}\n")
    result = process(*MAIN, "select", str(file), "--epsilon", "1")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.splitlines()[0] == b"b"
    file.write_text(f"a,0\nb,{PRIVATE}x\n")
    result = process(*MAIN, "select", str(file), "--epsilon", "1")
    assert (result.returncode, result.stdout) == (2, b"")
    assert PRIVATE.encode() not in result.stderr


def test_a_label_beyond_the_encoding_of_the_terminal_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("größte,1000000000\nb,0\n", encoding="utf-8")
    result = process(*MAIN, "select", str(file), "--epsilon", "1", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0
    assert result.stdout.splitlines()[0] == rb"gr\xf6\xdfte"


def test_the_traceback_of_a_defect_shows_no_scores(tmp_path: Path) -> None:
    """Typer's own tracebacks can print local variables."""
    file = tmp_path / "scores.csv"
    file.write_text(f"1\n{PRIVATE}\n")
    defect = (
        "import dpselect; dpselect.PermuteAndFlip._choose = dpselect.PermuteAndFlip.select = lambda self, s: 1 // 0"
    )
    result = process(sys.executable, "-c", f"{defect}; {MAIN[-1]}", "select", str(file), "--epsilon", "1")
    assert result.returncode == 1
    assert b"ZeroDivisionError" in result.stderr
    assert PRIVATE.encode() not in result.stdout + result.stderr
    assert b"locals" not in result.stderr


def test_a_pipe_gets_no_progress() -> None:
    result = process(*MAIN, "demo")
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"True answer" in result.stdout
    assert b"Making" not in result.stdout


def test_a_terminal_gets_progress_on_standard_error() -> None:
    pty = pytest.importorskip("pty")
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(
        [*MAIN, "demo"], stdout=subprocess.PIPE, stderr=writer, timeout=60, env=environment, check=True
    )
    os.set_blocking(reader, False)  # a missing spinner must fail the test, not hang it
    shown = os.read(reader, 10_000)
    os.close(writer)
    os.close(reader)
    assert b"Generating the table" in shown
    assert b"Making" not in done.stdout
