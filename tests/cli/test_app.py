"""The command as a process of its own."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

import dpselect
from dpselect import errors
from dpselect.cli.app import app
from dpselect.cli.commands import clean_errors
from tests.cli.conftest import MAIN, Run, on_terminal, process

PRIVATE = "48151623"


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
        (errors.CheckFailed, 7),
    ],
)
def test_each_kind_of_failure_has_an_exit_code(error: type[errors.DPSelectError], code: int) -> None:
    with pytest.raises(typer.Exit) as ended, clean_errors():
        raise error("no")
    assert ended.value.exit_code == code


def test_without_arguments_it_prints_its_help(run: Run) -> None:
    """What helps say is in the transcripts."""
    result = run()
    assert re.search(r"select\s+Choose one candidate", result.out + result.err)


@pytest.mark.parametrize(
    ("program", "modules"),
    [
        # The commands need NumPy, and most of them DuckDB; their list needs neither.
        (
            f"import sys; sys.argv = ['dpselect', '--help']\ntry: {MAIN}\nexcept SystemExit: 0",
            "numpy duckdb scipy pydantic",
        ),
        ("import dpselect; dpselect.PermuteAndFlip(1)", "typer rich dpselect.cli"),
        (
            "import typer; from dpselect.cli.app import app; dict(typer.main.get_command(app).commands)",
            "matplotlib scipy pooch sqlite3 dpselect.ledger dpselect.analysis.error",
        ),
    ],
    ids=["help", "library", "all commands"],
)
def test_what_takes_long_is_imported_when_it_is_used(program: str, modules: str) -> None:
    found = f"import sys; print('imported', [name for name in {modules.split()} if name in sys.modules])"
    assert process(program=f"{program}\n{found}").stdout.splitlines()[-1] == b"imported []"


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


def test_a_process_answers_and_fails_with_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(f"a,0\nb,{PRIVATE}\n")
    result = process("select", str(file), "--epsilon", "1")
    assert (result.returncode, result.stdout) == (0, b"b\n")
    assert result.stderr.startswith(b"chosen by permute-and-flip")
    file.write_text(f"a,0\nb,{PRIVATE}x\n")
    result = process("select", str(file), "--epsilon", "1")
    assert (result.returncode, result.stdout) == (2, b"")
    assert PRIVATE.encode() not in result.stderr


def test_a_label_beyond_the_encoding_of_the_terminal_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("größte,1000000000\nb,0\n", encoding="utf-8")
    result = process("select", str(file), "--epsilon", "1", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0
    assert result.stdout.splitlines()[0] == rb"gr\xf6\xdfte"


def test_the_traceback_of_a_defect_shows_no_scores(tmp_path: Path) -> None:
    """Typer's own tracebacks can print local variables."""
    file = tmp_path / "scores.csv"
    file.write_text(f"1\n{PRIVATE}\n")
    defect = (
        "import dpselect; dpselect.PermuteAndFlip._choose = dpselect.PermuteAndFlip.select = lambda self, s: 1 // 0"
    )
    result = process("select", str(file), "--epsilon", "1", program=f"{defect}; {MAIN}")
    assert result.returncode == 1
    assert b"ZeroDivisionError" in result.stderr
    assert PRIVATE.encode() not in result.stdout + result.stderr
    assert b"locals" not in result.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("a,310\nb,250\nc,7\n")
    Path("flights.csv").write_text("dest,delay\n" + "ulm,4\n" * 300)
    return tmp_path


RANGE = "--lower 0 --upper 10 --epsilon 1"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "busy", "answer"),
    [
        ("demo --save visits.parquet", ["Generating the table"], "200,000 visits written"),
        ("compare scores.csv --epsilon 0.1:1 --points 40", ["Comparing", "98%"], "permute-"),  # 39 of 40 epsilons
        ("audit --epsilon 1 --mechanism exponential --runs 100 --rows --json", ["Auditing"], '"violates": false'),
        (f"median flights.csv --column delay {RANGE}", ["median over rows"], "4"),
        pytest.param(
            "paper --out report --points 3",
            ["Linear programs", "Figures", "Claims", "43%"],
            "7 figures, ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_terminal_gets_progress_and_hints_on_standard_error_and_a_pipe_none(
    monkeypatch: pytest.MonkeyPatch, command: str, busy: list[str], answer: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("cache").absolute()))
    for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):  # no figure of the paper needs a network
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.delenv("DPSELECT_DPBENCH", raising=False)
    code, shown, seen = on_terminal(*command.split())
    assert code == 0
    assert answer in shown
    for part in busy:
        assert part in " ".join(seen.split())
        assert part not in " ".join(shown.split())
    if command.startswith("paper"):
        text = " ".join(shown.split())
        assert "10 not checked." in text
        assert "Missing: Figure 3 (a), Figure 3 (b), Figure 3 (c), Figure 5, Figure 6, Figure 7:" in text
        assert "Give --data DIR" in text
        assert Path("report", "report.html").is_file()
        return
    piped = process(*command.split())
    assert piped.returncode == 0
    assert b"error" not in piped.stderr
    assert answer in piped.stdout.decode()
