"""Files that analysts have, on the command line: what the options state is taken as it is meant, or refused."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROWS = (
    'code,sex,day,pay\n3.0,Male,2024-01-05,"1,5"\n3.0,Male,2024-02-05,"2,5"\n5.5,Female,2024-03-05,"3,5"\n007,Male,,\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS + "3.0,Female,2023-01-01,\n" * 200, encoding="utf-8")
    return path


def counted(run: Run, file: Path, *more: str) -> int:
    return int(json.loads(run("check", file, "--column", "code", "--json", *more).out)["rows"])


def test_every_condition_must_hold(run: Run, file: Path) -> None:
    male, young = ("--where", "sex = 'Male' OR sex = 'male'"), ("--where", "day < DATE '2024-02-01'")
    assert [counted(run, file, *more) for more in ((), male, young, (*male, *young))] == [204, 3, 201, 1]


@pytest.mark.parametrize(
    ("listed", "answer"), [("3,5.5,9", "3"), ("3,5,9", "3"), ("9,3.0", "3.0"), ("3.0,007", "3.0"), ("0.5,3", "3")]
)
def test_a_list_of_numbers_means_numbers(run: Run, file: Path, listed: str, answer: str) -> None:
    assert run("mode", file, "--column", "code", "--candidates", listed, "--epsilon", "5").out == f"{answer}\n"


def test_codes_are_text(run: Run, file: Path) -> None:
    found = run("mode", file, "--column", "code", "--candidates", "3,007", "--epsilon", "5", "--check", "stop")
    assert (found.code, found.out) == (0, "007\n"), "3.0 is not the text 3"
    assert "suspicious in 'code': texts with a point" in found.err


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("day < '2024-02-01'", "write DATE '2024-01-31'"),
        ("day IN ('2024-02-05')", "write DATE '2024-01-31'"),
        ("code = '3'", "write numbers without them, or CAST(code AS VARCHAR) for a code"),
        ("code IN ('3', '4')", "write numbers without them"),
        ("code", "it must be true or false for each row, as in age >= 18"),
        ('sex = "Male"', "If it is a text, write it as 'Male', in single quotes"),
    ],
)
def test_a_condition_that_would_mean_something_else_is_refused(
    run: Run, file: Path, condition: str, words: str
) -> None:
    refused = run(
        "mode", file, "--column", "sex", "--candidates", "Male,Female", "--epsilon", "1", "--where", condition
    )
    assert refused.code == 2
    assert words in refused.err


def test_what_is_written_so_on_purpose_is_taken(run: Run, file: Path) -> None:
    assert counted(run, file, "--where", "code = '007'") == 1
    assert counted(run, file, "--where", "CAST(code AS VARCHAR) = '3'") == 0
    assert counted(run, file, "--where", "code = 3") == 202


def test_near_misses_of_groups_and_of_accents(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    path.write_text("town,sex\n" + "Zürich,Female\n" * 9 + "Ulm,Male\n", encoding="utf-8")
    found = run(
        "check", path, "--column", "town", "--candidates", "Zurich,Ulm", "--group-by", "sex", "--groups", "Femal,Male"
    )
    assert "suspicious in 'sex': nobody is in the group 'Femal', and 9 rows have 'Female'." in found.out
    found = run("check", path, "--column", "town", "--candidates", "Zurich,Ulm")
    assert "nobody has the candidate 'Zurich', and 9 rows have 'Zürich'. Did you mean 'Zürich'?" in found.out


def test_words_for_missing_values_are_no_alarm(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("language\n" + "English\n" * 90 + "unknown\n" * 10, encoding="utf-8")
    found = run("check", path, "--column", "language", "--candidates", "English,French")
    assert (found.code, "Nothing suspicious was found" in found.out) == (0, True)


def test_warn_says_what_stop_would_stop_for(run: Run, file: Path) -> None:
    found = run("mode", file, "--column", "sex", "--candidates", "x,y", "--epsilon", "1", "--check", "warn")
    assert found.code == 0
    assert "The answer would mean nothing: nobody has any of the candidates." in found.err
