"""`dpselect plan select`: options and files that are wrong, and the extremes of those that are right."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ALL_COMMANDS, Run
from tests.cli.plans import plan, words

PRIVATE = "48151623"
N = ("--candidates", "10")
BAD_OPTIONS = {
    "both": (("--epsilon", "1", "--error", "1", *N), "give exactly one of epsilon, rho and error"),
    "neither": (N, "give exactly one of epsilon, rho and error"),
    "no candidates": (("--epsilon", "1"), "give candidates, the number of candidates, or public scores"),
    "one candidate": (("--epsilon", "1", "--candidates", "1"), "candidates must be a whole number from 2 to"),
    "half a candidate": (("--epsilon", "1", "--candidates", "2.5"), "candidates must be a whole number from 1 to"),
    "too many candidates": (("--epsilon", "1", "--candidates", "1e16"), "candidates must be a whole number from 1 to"),
    "no number of candidates": (("--epsilon", "1", "--candidates", "few"), "candidates must be a number"),
    "negative epsilon": (("--epsilon", "-1", *N), "epsilon must be > 0"),
    "text as epsilon": (("--epsilon", "x", *N), "epsilon must be a number"),
    "tiny epsilon": (("--epsilon", "1e-4000", *N), "epsilon must be between 1e-50 and 1e50"),
    "zero error": (("--error", "0", *N), "error must be > 0"),
    "infinite error": (("--error", "inf", *N), "error must be finite"),
    "huge error": (("--error", "1e51", *N), "error must be between 1e-50 and 1e50"),
    "zero sensitivity": (("--epsilon", "1", "--sensitivity", "0", *N), "sensitivity must be > 0"),
    "huge sensitivity": (("--epsilon", "1", "--sensitivity", "1e400", *N), "sensitivity must be between"),
    "zero questions": (("--epsilon", "1", "--questions", "0", *N), "questions must be > 0"),
    "half a question": (("--epsilon", "1", "--questions", "1/2", *N), "questions must be a whole number from 1 to"),
    "zero delta": (("--epsilon", "1", "--delta", "0", *N), "delta must be > 0"),
    "delta of one": (("--epsilon", "1", "--delta", "1", *N), "delta must be between 0 and 1"),
    "column without scores": (("--epsilon", "1", "--column", "a", *N), "--column and --label name columns of a file"),
    "label without scores": (("--epsilon", "1", "--label", "a", *N), "--column and --label name columns of a file"),
    "no such file": (("--epsilon", "1", "--scores", "/no/such.csv"), "/no/such.csv: there is no such file: check"),
}


@pytest.mark.parametrize("extra", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_one_line_and_code_two(
    run: Run, options: tuple[str, ...], message: str, extra: tuple[str, ...]
) -> None:
    result = run("plan", "select", *options, *extra)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert len(result.err.splitlines()) == 1


BAD_FILES = {
    "not a number": (f"a,1\nb,{PRIVATE}x\n", "score on line 2 is not a number"),
    "missing": (f"a,{PRIVATE}\nb,\n", "score on line 2 is missing"),
    "one candidate": (f"{PRIVATE}\n", "candidates must be a whole number from 2"),
    "beyond floats": (f"1\n{PRIVATE}e400\n", "the scores differ by more than a float can hold"),
    "wide": (f"a,b,{PRIVATE}\n", "name the score column with --column"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_without_its_content(run: Run, tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(content)
    result = run("plan", "select", "--epsilon", "1", "--scores", file)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert PRIVATE not in result.err


def test_the_extremes_of_the_options_have_finite_figures(run: Run) -> None:
    options = ("--candidates", "1e15", "--sensitivity", "1e50", "--questions", "1e9")
    for target in (("--epsilon", "1e-50"), ("--epsilon", "1e50"), ("--error", "1e-50"), ("--error", "1e50")):
        for row in plan(run, "select", *options, *target)["mechanisms"]:
            assert all(0 < value < float("inf") for key, value in row.items() if key != "mechanism")


def test_help_has_examples(run: Run) -> None:
    result = run("plan", "select", "--help")
    assert result.code == 0
    assert len(re.findall(r"Example: dpselect plan select --(?:candidates|scores)", words(result.out))) == 5
    assert "are private too" in words(result.out)


def test_other_commands_do_not_wait_for_scipy() -> None:
    code = ALL_COMMANDS.format(prefixes=("scipy", "dpselect.analysis.error"))
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() == [b"[]"]
