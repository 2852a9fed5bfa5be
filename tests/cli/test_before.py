"""At a terminal: a check before the charge, answers alone on standard output, and `check` of a whole file."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run, on_terminal

FOR_OWNER = "For the data owner only:"
NOT_CHECKED = "note: not checked: "
GOOD, BAD = "value\n" + "3\n" * 60, "value\n" + '"3,5"\n' * 60
MEDIAN = ("--column", "value", "--lower", "0", "--upper", "9", "--epsilon", "1")


def written(folder: Path, text: str, name: str = "table.csv") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "more", "code", "stopped"),
    [
        (GOOD, (), 0, False),
        (BAD, (), 7, True),
        (BAD, ("--check", "warn"), 0, False),
        (BAD, ("--check", "off"), 0, False),
        (BAD, ("--decimal", ",", "--step", "0.1"), 0, False),
        ("value\n", (), 7, True),
    ],
    ids=["good", "bad", "bad, warned", "bad, not checked", "bad, read as it is meant", "empty"],
)
def test_a_terminal_is_checked_before_the_charge(
    tmp_path: Path, text: str, more: tuple[str, ...], code: int, stopped: bool
) -> None:
    ledger = tmp_path / "ledger"
    paid = ("--ledger", str(ledger), "--budget", "1")
    found, out, shown = on_terminal("median", written(tmp_path, text), *MEDIAN, *paid, *more)
    shown = " ".join(shown.split())
    assert found == code
    assert re.fullmatch("" if stopped else "[0-9.]+\n", out)
    is_shown = stopped or (text == BAD and "warn" in more)
    assert (FOR_OWNER in shown, NOT_CHECKED in shown) == (is_shown, "off" in more)
    assert ("Nothing was charged, and nothing was released." in shown) == stopped
    assert ("ledger entry 1" in shown) != stopped
    if text == BAD and is_shown:
        assert "60. Fix: open a text file with decimal=',', or --decimal ,; elsewhere" in shown


@pytest.mark.parametrize("text", [GOOD, BAD, "value\n"], ids=["good", "bad", "empty"])
def test_elsewhere_nothing_is_checked_unless_it_is_asked_for(tmp_path: Path, run: Run, text: str) -> None:
    """A server's log, a pipe and a job see nothing that depends on the rows."""
    path = written(tmp_path, text)
    asked = run("median", path, *MEDIAN)
    assert asked.code == 0
    assert FOR_OWNER not in asked.err
    assert asked.err.splitlines()[-1].startswith(NOT_CHECKED)
    stopped = run("median", path, *MEDIAN, "--check", "stop")
    is_good = text == GOOD
    assert stopped.code == (0 if is_good else 7)
    assert (stopped.out == "", FOR_OWNER in stopped.err) == (not is_good, not is_good)
    assert NOT_CHECKED not in stopped.err


def test_standard_output_has_the_answer_and_nothing_else(tmp_path: Path, run: Run) -> None:
    """So what was found is a list of candidates for the next question."""
    path = written(tmp_path, "value\n" + "I10\n" * 90 + "E11\n" * 60 + "J45\n" * 2)
    found = run("values", path, "--column", "value", "--epsilon", "2", "--delta", "1e-6")
    assert (found.code, sorted(found.out.split("\n"))) == (0, ["", "E11", "I10"])
    assert "guarantee: (2, " in found.err
    assert found.err.splitlines()[0] == "the values that enough rows have"
    listed = written(tmp_path, found.out, "found.txt")
    best = run("mode", path, "--column", "value", "--candidates", listed, "--epsilon", "2")
    assert (best.code, best.out) == (0, "I10\n")
    assert "for one row" in best.err


def test_nothing_that_was_common_enough_is_an_empty_output(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, "value\nI10\nE11\n")
    found = run("values", path, "--column", "value", "--epsilon", "1", "--delta", "1e-9")
    assert (found.code, found.out) == (0, "")
    assert found.err.splitlines()[0] == "nothing was common enough"


def test_json_has_the_notes_and_what_is_protected(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, "who,value\n" + "".join(f"{i},3\n" for i in range(60)))
    asked = run("median", path, *MEDIAN, "--person", "who", "--lower", "5", "--json")
    content = json.loads(asked.out)
    assert asked.err == ""
    assert (content["value"], content["protects"]) == (5, "one who")
    end, not_checked = content["notes"]
    assert end == "the answer is the end of the range: the true median may lie beyond it"
    assert not_checked.startswith("not checked: ")
    checked = run("median", path, *MEDIAN, "--person", "who", "--check", "stop", "--json")
    assert (json.loads(checked.out)["notes"], checked.err) == ([], "")


@pytest.mark.parametrize(
    ("text", "options", "answer"),
    [
        ("value\n" + "4\n" * 60 + "8\n" * 90, ("--where", "value < 5"), "4\n"),
        ("old\n" + "4\n" * 60, ("--derive", "value=old + 1"), "5.0\n"),
        ("old\n" + "4\n" * 60, ("--derive", "twice=2 * old", "--derive", "value=CAST(twice - 1 AS INT)"), "7\n"),
        ("value;x\n" + "4,0;a\n" * 60, ("--decimal", ","), "4.0\n"),
        ("value~x\n" + "4~a\n" * 60, ("--delimiter", "~"), "4\n"),
    ],
)
def test_how_a_file_is_read(tmp_path: Path, run: Run, text: str, options: tuple[str, ...], answer: str) -> None:
    path = written(tmp_path, text)
    step = ("--step", "0.1") if "--decimal" in options else ()
    asked = run("median", path, *MEDIAN[:-1], "10", *step, *options, "--check", "stop")
    assert (asked.code, asked.out) == (0, answer)


@pytest.mark.parametrize("text", ["value", "=value", "value=", " = "])
def test_a_derived_column_has_a_name_and_an_expression(tmp_path: Path, run: Run, text: str) -> None:
    refused = run("median", written(tmp_path, GOOD), *MEDIAN, "--derive", text)
    assert (refused.code, refused.out) == (2, "")
    assert "--derive must be NAME=EXPRESSION" in refused.err


# dpselect check.


CHECKED = {
    "all is well": (GOOD, (), 0, "'value': numbers, 0 missing, 0 cannot be read"),
    "missing values are no alarm": (GOOD + "\nNA\n" + '""\n', (), 0, "'value': numbers, 2 missing, 0 cannot be read"),
    "another notation": (GOOD + '"3,5"\n', (), 1, "or --decimal ,;"),
    "read as it is meant": (GOOD + '"3,5"\n', ("--decimal", ","), 0, "0 cannot be read"),
    "no row": ("value\n", (), 1, "The answer would mean nothing: there is no row."),
    "a broken line": (GOOD + "3,4\n", (), 1, "suspicious: 1 lines with another number of fields"),
    "a column": (GOOD, ("--column", "value", "--lower", "0", "--upper", "9"), 0, "counted: 60"),
    "a column in another notation": (BAD, ("--column", "value", "--lower", "0", "--upper", "9"), 1, "--decimal ,;"),
    "a near miss": ("value\nyes\nno\n", ("--column", "value", "--candidates", "yes,No"), 1, "Did you mean 'no'?"),
    "not listed": ("value\nyes\nno\nmaybe\n", ("--column", "value", "--candidates", "yes,no"), 0, "1 (1 different)"),
    "no such column": (GOOD, ("--column", "no such"), 2, "is not in the table"),
    "an option of a column": (GOOD, ("--lower", "0"), 2, "--lower is about one column: name it with --column"),
    "what costs": (GOOD, ("--epsilon", "1"), 2, "a check charges nothing"),
}


@pytest.mark.parametrize("name", CHECKED)
def test_exit_codes_of_a_check(tmp_path: Path, run: Run, name: str) -> None:
    text, options, code, says = CHECKED[name]
    checked = run("check", written(tmp_path, text), *options)
    assert checked.code == code
    assert says in (checked.err if code == 2 else checked.out)
    if code != 2:
        assert checked.out.startswith("PRIVATE: ")
        assert checked.err == ""
        content = json.loads(run("check", written(tmp_path, text), *options, "--json").out)
        assert content["passed"] == (code == 0)
        assert next(iter(content)) == "private"


def test_a_number_with_a_point_does_not_win_because_it_alone_is_listed_as_it_is_written(
    tmp_path: Path, run: Run
) -> None:
    """A list of numbers means numbers. With `007` it is one of texts, and a check sees that."""
    path = written(tmp_path, "children\n" + "0.0\n" * 90 + "1.0\n" * 40 + "5.5\n" * 10)
    for_mode = ("mode", path, "--column", "children", "--epsilon", "10", "--candidates")
    assert run(*for_mode, "0,1,2,3,4").out == run(*for_mode, "0,1,2,3,5.5").out == "0\n"
    mixed = run("check", path, "--column", "children", "--candidates", "0,1,2,3,4,007")
    assert mixed.code == 1
    assert "texts with a point and zeros that are listed without, such as 5.0 for 5: 130" in mixed.out


def test_the_file_itself_is_no_list_of_candidates(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, "value\n" + "x\ny\n" * 90)
    refused = run("mode", path, "--column", "value", "--candidates", path, "--epsilon", "1")
    assert (refused.code, refused.out) == (2, "")
    assert "is a file of the table itself" in refused.err


@pytest.mark.parametrize(("person", "whom"), [((), "one row"), (("--person", "nr"), "one nr")])
def test_a_guarantee_says_what_it_protects(tmp_path: Path, run: Run, person: tuple[str, ...], whom: str) -> None:
    path = written(tmp_path, "nr,value\n" + "".join(f"{i // 8},3\n" for i in range(800)))
    asked = run("mode", path, "--column", "value", "--candidates", "1,2,3", "--epsilon", "1", *person)
    assert re.search(rf"guarantee: 1-DP \(pure\) for {whom}, .*\n", asked.err)
