"""`dpselect check`: what is left out of a file, for the data owner only; free, and with an exit code."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROWS = ["1,I10,5,a", "1,I10,7,b", "2,E11,8,a"]
ASKED = ("--person", "who", "--column", "cost", "--lower", "0", "--upper", "9")


def file(folder: Path, *rows: str) -> str:
    path = folder / "visits.csv"
    path.write_text("\n".join(["who,code,cost,ward", *ROWS, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_a_clean_file_passes(run: Run, tmp_path: Path) -> None:
    result = run("check", file(tmp_path), *ASKED)
    assert (result.code, result.err) == (0, "")
    first, *lines = result.out.splitlines()
    assert first.startswith("PRIVATE: ")
    assert lines == [
        "column 'cost', read as whole numbers from 0 to 9",
        "rows: 3",
        "  counted: 3",
        "  left out: 0",
        "people: 2",
        "  with a row that is counted: 2",
        "  several rows for a person: yes, up to 2",
        "Nothing suspicious was found. Nothing was charged, and nothing was released.",
    ]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("3,I10,,a", "    missing values: 1"),
        (",I10,5,a", "    rows without a person: 1"),
        ("3,I10", "    lines with another number of fields than the header: 1"),
        ('3,I10,"1,5",a', "    values that cannot be read as the question requires: 1"),
        ("3,I10,10,a", "    outside the range, counted as its upper end: 1"),
        (
            " 2,I10,5,a",
            "suspicious in 'who': texts with spaces before or after, such as ' I10 ': 1. Fix: remove the spaces.",
        ),
    ],
)
def test_a_file_with_one_problem_fails(run: Run, tmp_path: Path, row: str, line: str) -> None:
    result = run("check", file(tmp_path, row), *ASKED)
    assert (result.code, result.err) == (1, "")
    assert line in result.out.splitlines()


def test_lists_rules_and_groups(run: Run, tmp_path: Path) -> None:
    path = file(tmp_path, "3,i10,5,c")
    result = run("check", path, "--column", "code", "--candidates", "I10,E11", "--json")
    shown = json.loads(result.out)
    assert (result.code, shown["passed"], shown["counted"], shown["left_out"]) == (1, False, 3, {"unlisted": 1})
    assert shown["notices"][0]["notation"] == "case"
    assert shown["private"].startswith("PRIVATE: ")
    assert next(iter(shown)) == "private"
    assert run("check", path, "--column", "code", "--every", "text:3").code == 0
    assert run("check", path, "--column", "cost", "--range", "log").code == 0
    assert run("check", path, "--column", "cost", "--step", "1").code == 0
    rows = run("check", path, "--column", "cost", "--step", "1", "--group-by", "ward", "--groups", "a,b,c", "--json")
    assert json.loads(rows.out)["passed"], "without people"
    for groups in (("--groups", "a,b"), ("--groups", "a,b", "--group-by", "code", "--groups", "I10,E11")):
        shown = json.loads(run("check", path, *ASKED, "--group-by", "ward", *groups, "--json").out)
        assert (shown["counted"], shown["left_out"]) == (3, {"group": 1})


def test_values_are_shown_only_on_request(run: Run, tmp_path: Path) -> None:
    path = file(tmp_path, '3,I10,"71,5",a', "4,I10,\x1b[31mred,a")
    for form in ((), ("--json",)):
        assert "71,5" not in run("check", path, *ASKED, *form).out
        assert "71,5" in run("check", path, *ASKED, *form, "--show-values").out
        assert "\x1b[31m" not in run("check", path, *ASKED, *form, "--show-values").out


def test_the_example_of_the_docs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page breaks long lines, and says so; the words are those that are printed."""
    text = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    said = r"`dpselect (check .*?)` prints the following\n[^`]*?:\n\n```text\n(.*?)```"
    [(lines, command, printed)] = re.findall(rf"```text\n(patient;cost\n.*?)```\n\n{said}", text, re.DOTALL)
    (tmp_path / "costs.csv").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(*command.split()).out.split() == printed.split()
