import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpselect._messages import install_command
from dpselect.analysis import compare
from tests.cli.conftest import Result, Run

PRIVATE = "48151623"
MAIN = (sys.executable, "-c", "from dpselect.cli import main; main()")
SCORES = [310, 250, 120.5, 120, 7]
NAMES = ["permute-and-flip", "exponential", "noisy-max"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "public.csv"
    path.write_text("".join(f"label{i},{score}\n" for i, score in enumerate(SCORES)))
    return path


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the table."""
    body = text[text.index("───") :].splitlines()[1:]
    return [line.split() for line in body[: body.index(next(line for line in body if not line.strip()))]]


def words(text: str) -> str:
    return " ".join(text.split())


def number(cell: str) -> float:
    return math.nan if cell == "-" else float(cell.replace(",", ""))


def records(run: Run, *options: object) -> list[dict[str, Any]]:
    result = run("compare", *options, "--json")
    assert (result.code, result.err) == (0, "")
    found: list[dict[str, Any]] = json.loads(result.out)["records"]
    return found


def is_refused(result: Result, message: str, code: int = 2) -> bool:
    one_line = len(result.err.splitlines()) == 1
    return result.code == code and result.out == "" and one_line and result.err.startswith(f"error: {message}")


@pytest.mark.parametrize("options", [(), ("--sensitivity", "3", "--monotonic")])
def test_the_table_has_the_figures_of_the_analysis(run: Run, file: Path, options: tuple[str, ...]) -> None:
    epsilons = [0.01, 0.05, 0.2]
    result = run("compare", file, "--epsilon", "0.01,0.05, 0.2", *options)
    assert (result.code, result.err) == (0, "")
    found = rows(result.out)
    assert [number(row[0]) for row in found] == epsilons
    expected = compare(SCORES, epsilons, *([3, True] if options else [])).records
    for i, row in enumerate(found):
        best, exponential, noisy = expected[3 * i : 3 * i + 3]
        averages, tails, ratios = (row[1], row[3], row[6]), (row[2], row[4], row[7]), (row[5], row[8])
        for record, average, tail in zip((best, exponential, noisy), averages, tails, strict=True):
            assert record.expected_error <= number(average) < record.expected_error * 1.0011
            assert number(tail) == record.error_95
        assert [number(ratio) for ratio in ratios] == pytest.approx([exponential.ratio, noisy.ratio], rel=6e-4)


def test_a_range_is_spaced_by_a_constant_factor(run: Run, file: Path) -> None:
    found = records(run, file, "--epsilon", "0.01:1", "--points", "5")
    epsilons = [record["epsilon"] for record in found if record["mechanism"] == "exponential"]
    assert epsilons == pytest.approx([10 ** (-2 + i / 2) for i in range(5)], rel=1e-12)
    assert (epsilons[0], epsilons[-1]) == (0.01, 1)


def test_a_range_has_25_points_unless_told(run: Run, file: Path) -> None:
    assert len(records(run, file, "--epsilon", "1/100:1")) == 75
    assert len(rows(run("compare", file, "--epsilon", "0.01:1").out)) == 25


def test_json_is_the_comparison_unrounded(run: Run, file: Path) -> None:
    result = run("compare", file, "--epsilon", "0.01,0.3", "--sensitivity", "1/3", "--monotonic", "--json")
    content = json.loads(result.out)
    expected = compare(SCORES, ["0.01", "0.3"], "1/3", True).to_dicts()
    assert content.pop("records") == [
        {key: value if isinstance(value, str) else pytest.approx(value, rel=1e-12) for key, value in record.items()}
        for record in expected
    ]
    assert content == {"candidates": 5, "sensitivity": "1/3", "monotonic": True, "plot": None}


def test_without_any_error_there_is_no_ratio(run: Run, file: Path) -> None:
    file.write_text("7\n7\n")
    found = records(run, file, "--epsilon", "1")
    assert [(record["expected_error"], record["ratio"]) for record in found] == [(0, None)] * 3
    assert rows(run("compare", file, "--epsilon", "1").out) == [["1", "0", "0", "0", "0", "-", "0", "0", "-"]]


def test_the_table_says_how_to_read_it_and_that_it_is_private(run: Run, file: Path) -> None:
    text = words(run("compare", file, "--epsilon", "0.1").out)
    assert "5 candidates: how far the choice is below the best, in units of the scores" in text
    assert "95 of 100 selections stay within the error" in text
    assert "ratio is the average relative to permute-and-flip's" in text
    assert "results computed from private scores are private too" in text
    assert "Plot:" not in text


def test_the_table_fits_eighty_columns(file: Path) -> None:
    file.write_text("9999.5\n" + "9000\n" * 99 + "0\n")
    shown = process("compare", str(file), "--epsilon", "0.01:1", COLUMNS="80").stdout.decode()
    assert max(map(len, shown.splitlines())) <= 80


def test_a_narrow_terminal_breaks_no_number(file: Path) -> None:
    file.write_text("1234567.5\n" + "1200000\n" * 99 + "0\n")
    shown = process("compare", str(file), "--epsilon", "1e-6:10", COLUMNS="40").stdout.decode()
    assert [len(row) for row in rows(shown)] == [9] * 25


@pytest.mark.parametrize(("ending", "magic"), [("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_the_plot_is_written_in_the_format_of_its_ending(
    run: Run, file: Path, tmp_path: Path, ending: str, magic: bytes
) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / f"errors.{ending}"
    result = run("compare", file, "--epsilon", "0.01:0.1", "--points", "3", "--plot", plot)
    assert (result.code, result.err) == (0, "")
    assert plot.read_bytes().startswith(magic)
    assert f"Plot: {plot}" in words(result.out)
    assert len(rows(result.out)) == 3


def test_without_matplotlib_the_error_says_what_to_install(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the file is read: it does not exist."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("compare", tmp_path / "none.csv", "--epsilon", "1", "--plot", tmp_path / "a.png")
    assert is_refused(result, f"--plot needs matplotlib: {install_command('matplotlib')}", code=5)


def test_without_a_plot_matplotlib_is_not_imported(file: Path) -> None:
    code = (
        "import sys\nfrom dpselect.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print('matplotlib' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, "compare", str(file), "--epsilon", "1"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == b"False"


def test_a_plot_that_cannot_be_written(run: Run, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "folder.png"
    folder.mkdir()
    result = run("compare", file, "--epsilon", "1", "--plot", folder)
    assert is_refused(result, f"--plot '{folder}': the file cannot be written (")


RANGE = "epsilon must be a range A:B from a smaller to a larger number"
BAD_OPTIONS = {
    "falling range": (("--epsilon", "1:0.1"), RANGE),
    "empty range": (("--epsilon", "1:1"), RANGE),
    "range from zero": (("--epsilon", "0:1"), "epsilon must be > 0"),
    "hole in a list": (("--epsilon", "0.1,,1"), "epsilon must be a number"),
    "huge": (("--epsilon", "1e4000"), "epsilon must be between 1e-50 and 1e50"),
    "points of a list": (("--epsilon", "0.1,1", "--points", "9"), "--points needs a range of epsilons"),
    "one point": (("--epsilon", "0.1:1", "--points", "1"), "points must be a whole number from 2 to 10,000"),
    "wrong ending": (("--epsilon", "1", "--plot", "a.jpg"), "--plot must end in .png, .svg, .pdf: got 'a.jpg'"),
    "no folder": (("--epsilon", "1", "--plot", "/no/dir/a.png"), "--plot '/no/dir/a.png': there is no such folder"),
    "label alone": (("--epsilon", "1", "--label", "a"), "--label needs --column"),
}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused_before_the_file_is_read(
    run: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert is_refused(run("compare", tmp_path / "none.csv", *options), message)


BAD_FILES = {
    "beyond floats": (f"1\n{PRIVATE}e400\n", "the scores differ by more than a float can hold"),
    "far apart": (f"1.{PRIVATE}e308\n-1.{PRIVATE}e308\n", "the scores differ by more than a float can hold"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_without_its_content(run: Run, file: Path, content: str, message: str) -> None:
    file.write_text(content)
    result = run("compare", file, "--epsilon", "1")
    assert is_refused(result, f"{file}: {message}")
    assert PRIVATE not in result.err


def process(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    command, variables = [*MAIN, *arguments], {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, timeout=60, env=variables, check=True)


def test_a_pipe_gets_the_table_alone(file: Path) -> None:
    done = process("compare", str(file), "--epsilon", "0.1:1")
    assert done.stderr == b""
    assert b"Comparing" not in done.stdout
    assert re.search(rb"permute-", done.stdout)


def read_terminal(reader: int) -> bytes:
    """All that is written to a terminal until its last writer is gone. Its buffer is small: read while they write."""
    seen = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # how Linux says that nobody is left to write
            return seen
        if not part:
            return seen
        seen += part


def test_a_terminal_gets_a_progress_bar_on_standard_error(file: Path) -> None:
    pty = pytest.importorskip("pty")
    reader, writer = pty.openpty()
    at_once = "from dpselect import _show; _show._SILENT_SECONDS = _show._STEP_SECONDS = 0"
    main = (sys.executable, "-c", f"{at_once}; from dpselect.cli import main; main()")
    command = [*main, "compare", str(file), "--epsilon", "0.1:1", "--points", "40"]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, env=environment) as child:
        os.close(writer)
        seen = read_terminal(reader)
        shown, _ = child.communicate(timeout=60)
    os.close(reader)
    assert child.returncode == 0
    assert b"Comparing" in seen
    assert b"98%" in seen  # 39 of 40 epsilons
    assert b"Comparing" not in shown
