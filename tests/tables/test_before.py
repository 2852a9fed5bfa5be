"""A check before the charge: what it stops, what it shows and to whom, and that it changes no answer."""

import logging
from contextlib import nullcontext
from random import Random

import pyarrow as pa
import pytest

import dpselect
from dpselect.errors import BudgetExceeded, CheckFailed, InvalidType, InvalidValue, RequestConflict
from tests import spark
from tests.seam import ScriptedBits, drawing, law, salted

LISTED = ["I10", "E11", "J45"]
FOR_OWNER = "For the data owner only:\n"
CANARY = "4815162342"


@pytest.fixture
def ledger(tmp_path):
    """A ledger that pays for all questions."""
    return dpselect.Ledger(tmp_path / "ledger", budget=dpselect.approximate(100, "1e-3"))


def written(folder, values, name="table.csv"):
    path = folder / name
    path.write_text("who,value,g\n" + "".join(f"{i},{value},a\n" for i, value in enumerate(values)), encoding="utf-8")
    return path


def median(table):
    return table.median("value", lower=0, upper=9, epsilon=1)


def mode(table):
    return table.mode("value", candidates=LISTED, epsilon=1)


def mode_with_other(table):
    return table.mode("value", candidates=LISTED[1:], other="other", epsilon=1)


def mode_of_numbers_with_other(table):
    return table.mode("value", candidates=[1, 2], other="other", epsilon=1)


def of_a_rule(table):
    return table.mode("value", candidates=dpselect.every("text", max_bytes=3), epsilon=1)


def unlisted(table):
    return table.values("value", epsilon=1, delta="1e-6")


def in_listed_group(table):
    return table.group_by("g", groups=["a", "b"]).mode("value", candidates=LISTED, epsilon=1)


def in_other_group(table):
    return table.group_by("g", groups=["A", "B"]).mode("value", candidates=LISTED, epsilon=1)


def found_groups(table):
    return table.group_by("value", epsilon=1, delta="1e-6", max_groups=1)


HALF = "at most half of the values that are not missing can be read"
NOBODY = "nobody has any of the candidates"
NOTHING = "no row has a value, a person and a listed group"
# The question, the values of the table, what stops it (nothing if it goes on), and what is shown (nothing if all is
# well). What is missing is no reason, unless there is nothing else.
CASES = {
    "numbers": (median, ["1", "2", "3.0"], "", ""),
    "half unreadable": (median, ["1", "2", "3", "x", "y", "z"], HALF, "as the question requires: 3"),
    "more than half can be read": (median, ["1", "2", "3", "x", "y"], "", "as the question requires: 2"),
    "most unreadable": (median, ["1", "x", "y"], HALF, "as the question requires: 2"),
    "no row": (median, [], "there is no row", "rows: 0"),
    "only missing values": (median, ["", "", ""], NOTHING, "missing values: 3"),
    "only words for missing values": (median, ["NA", "n/a", "-"], NOTHING, "missing value, such as NA"),
    "mostly missing values": (median, ["1", "", "", "", "NA", "NA"], "", ""),
    "missing values count neither way": (median, ["1", "x", "", "", "NA"], HALF, "a missing value, such as NA"),
    "outside the range": (median, ["20", "30", "5"], "", "most values are outside the range"),
    "candidates": (mode, [*LISTED, "Z00"], "", ""),
    "no candidate": (mode, ["Z00", "Z01"], NOBODY, "not described by the rule: 2 (2 different)"),
    "one has a candidate": (mode, ["Z00"] * 50 + ["I10"], "", ""),
    "near misses": (mode, ["i10", "e11", "J45"], "", "other upper and lower case"),
    "no candidate, and missing": (mode, ["", "", "Z00"], NOBODY, "missing values: 2"),
    "all are other": (mode_with_other, ["Z00", "Z01"], "", ""),
    "texts are other among numbers": (mode_of_numbers_with_other, ["x", "y"], "", ""),
    "missing values are not other": (mode_with_other, ["", ""], NOTHING, "missing values: 2"),
    "a rule": (of_a_rule, ["a", "b", "longer"], "", ""),
    "no value of a rule": (of_a_rule, ["longer", "longer still"], NOBODY, "not described by the rule"),
    "unlisted": (unlisted, ["a", "b"], "", ""),
    "unlisted numbers in another notation": (unlisted, ["1,5", "2,5"], "", "decimal comma"),
    "unlisted dates in another notation": (found_groups, ["31/12/2024"], "", "do not begin with the year"),
    "unlisted, only missing values": (unlisted, ["", ""], NOTHING, "missing values: 2"),
    "a listed group": (in_listed_group, LISTED, "", ""),
    "no listed group": (in_other_group, LISTED, NOTHING, "rows in no listed group: 3"),
    "a listed group, no candidate": (in_listed_group, ["Z00"], NOBODY, ""),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """A question, the file, and what is expected."""
    ask, values, stops, shows = CASES[request.param]
    return ask, written(tmp_path, [f'"{value}"' if "," in value else value for value in values]), stops, shows


def test_stop_ends_before_the_charge(case, ledger, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    ask, path, stops, shows = case
    table = dpselect.open_table(path, person="who", ledger=ledger, check="stop")
    with pytest.raises(CheckFailed, match=f"column 'value': {stops}") if stops else nullcontext():
        ask(table)
    assert (ledger.entries() == []) == bool(stops)
    told = capfd.readouterr()
    assert told.out == ""
    assert shows in told.err
    assert told.err == "" or told.err.startswith(FOR_OWNER)
    assert bool(told.err) == bool(shows or stops)
    assert [each for each in caplog.records if each.name.startswith("dpselect")] == []


def test_warn_shows_the_same_and_goes_on(case, ledger, capfd):
    ask, path, stops, shows = case
    answer = ask(dpselect.open_table(path, person="who", ledger=ledger, check="warn"))
    told = capfd.readouterr()
    assert len(ledger.entries()) == 1
    assert (told.out, bool(told.err)) == ("", bool(shows or stops))
    assert shows in told.err
    if isinstance(answer, dpselect.Answer):
        assert [note for note in answer.notes if "checked" in note] == []


def test_off_shows_nothing_whatever_the_rows_are(case, ledger, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    ask, path, *_ = case
    answer = ask(dpselect.open_table(path, person="who", ledger=ledger))
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""
    if isinstance(answer, dpselect.Answer):
        [note] = [each for each in answer.notes if "checked" in each]
        assert note.startswith("not checked: what cannot be read is left out silently")


# The law of the answer.


ROWS = ["I10"] * 3 + ["E11"] * 2 + ["Z00"]
OPENED = ("off", "warn", "stop")


def test_the_law_of_an_answer_is_that_without_a_check(tmp_path):
    """Every outcome, with its exact probability."""
    path = written(tmp_path, ROWS)
    tables = [dpselect.open_table(path, check=check) for check in OPENED]
    off, warn, stop = (law(lambda: mode(table).value) for table in tables)  # noqa: B023 - called at once
    assert off == warn == stop
    assert len(off) == 3


@pytest.mark.parametrize("ask", [median, mode, of_a_rule, in_listed_group, unlisted])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_bits_choose_the_same(tmp_path, ask, seed):
    """And as many of them are used."""
    values, found = ([*"123", "x"] if ask is median else ROWS), []
    path, bits = written(tmp_path, values), f"{Random(seed).getrandbits(20_000):020000b}"
    for check in OPENED:
        table, scripted = dpselect.open_table(path, person="who", check=check), ScriptedBits(bits)
        with drawing(scripted), salted(7):
            found.append((ask(table).value, scripted.used))
    assert found[0] == found[1] == found[2]
    assert found[0][1] > 0


def test_a_check_changes_neither_the_charge_nor_the_entry(tmp_path):
    path, entries = written(tmp_path, ROWS), []
    for check in OPENED:
        ledger = dpselect.Ledger(tmp_path / check, budget=1)
        mode(dpselect.open_table(path, ledger=ledger, check=check))
        entries.append([(each.charge, ledger.charged(each)) for each in ledger.entries()])
    assert entries[0] == entries[1] == entries[2]


def test_public_mistakes_and_an_empty_budget_come_first(tmp_path, capfd):
    """They do not depend on the rows. What is left of a budget is known without them, too."""
    path = written(tmp_path, ["x"])
    table = dpselect.open_table(path, ledger=dpselect.Ledger(tmp_path / "ledger", budget="0.5"), check="stop")
    with pytest.raises(InvalidValue):
        table.median("value", lower=9, upper=0, epsilon=1)
    with pytest.raises(InvalidValue):
        table.median("no such", lower=0, upper=9, epsilon=1)
    assert capfd.readouterr() == ("", "")
    enough = dpselect.open_table(written(tmp_path, ["3"]), ledger=tmp_path / "ledger", check="stop")
    with pytest.raises(BudgetExceeded):
        median(enough)


def test_a_request_is_stopped_again_until_it_is_mended(tmp_path, ledger):
    """A stop stores nothing, so the id is free. A stored answer is repeated, and was checked."""

    def asked(path, check="stop"):
        table = dpselect.open_table(path, ledger=ledger, check=check)
        return table.median("value", lower=0, upper=9, epsilon=1, request_id="a")

    path = written(tmp_path, ["x", "y"])
    for _ in range(2):
        with pytest.raises(CheckFailed):
            asked(path)
    assert ledger.entries() == []
    mended = written(tmp_path, ["3"] * 60, "mended.csv")
    first, again = asked(mended), asked(mended)
    assert (first.value, first.repeated, again.value, again.repeated) == (3, False, 3, True)
    assert first.notes == again.notes == []
    assert len(ledger.entries()) == 1
    with pytest.raises(RequestConflict):
        asked(path, check="off")


def test_nothing_is_checked_if_no_row_is_read(tmp_path, capfd):
    path = written(tmp_path, ["x"])
    table = dpselect.open_table(path, check="stop")
    assert table.top_k("value", 3, candidates=LISTED, epsilon=1).value == LISTED
    assert capfd.readouterr() == ("", "")


def test_other_sources_and_expressions_are_checked_as_they_are_asked(tmp_path):
    table = pa.table({"value": [1.5, None, float("nan")], "h": ["u", "v", "w"]})
    assert median(dpselect.open_table(table, check="stop")).protects == "one row"
    none = dpselect.open_table(table, check="stop", where="h = 'v'")
    with pytest.raises(CheckFailed, match=NOTHING):
        median(none)
    empty = dpselect.open_table(table, check="stop", where="h = 'x'", derive={"twice": "2 * value"})
    with pytest.raises(CheckFailed, match="there is no row"):
        empty.median("twice", lower=0, upper=9, epsilon=1)
    path = written(tmp_path, ["x", "y", "z", "3", "3.5"])
    with pytest.raises(CheckFailed, match=HALF):
        median(dpselect.open_table(path, check="stop"))
    median(dpselect.open_table(path, check="stop", where="TRY_CAST(value AS DOUBLE) > 0"))


def test_nothing_of_a_row_is_shown_but_near_misses(tmp_path, capfd):
    """Values are shown only if they are nearly one that is listed: the owner sees them, and nobody else."""
    path = written(tmp_path, [f"x{CANARY}"] * 5)
    table = dpselect.open_table(path, check="stop")
    for ask in (median, mode, of_a_rule):
        with pytest.raises(CheckFailed) as stopped:
            ask(table)
        assert CANARY not in str(stopped.value)
        assert CANARY not in repr(stopped.value)
    assert CANARY not in "".join(capfd.readouterr())
    near = written(tmp_path, ["I1O"] * 5, "near.csv")
    with pytest.raises(CheckFailed) as stopped:
        dpselect.open_table(near, check="stop").mode("value", candidates=["I100"], other=None, epsilon=1)
    assert "I1O" not in str(stopped.value)


def test_near_misses_are_of_what_nobody_has(tmp_path):
    """Of candidates, and of groups, also if some rows have none."""
    path = tmp_path / "table.csv"
    path.write_text("value,g\nI10,a\ni10,A\ne11,a\nE12,\n,B\n", encoding="utf-8")
    table = dpselect.open_table(path)
    found = [(each.candidate, each.text) for each in table.check("value", candidates=["I10", "E11"]).near]
    assert found == [("E11", "e11")]
    grouped = table.group_by("g", groups=["a", "b", "c"]).check("value", candidates=["I10", "e11"])
    assert [(each.candidate, each.text, each.number) for each in grouped.near] == [("b", "B", 1)]


@pytest.mark.parametrize("check", ["on", "", "STOP", "x" * 99])
def test_there_are_three_ways(check):
    with pytest.raises(InvalidValue, match="check must be one of off, warn, stop"):
        dpselect.open_table(pa.table({"x": [1]}), check=check)


@pytest.mark.parametrize("check", [None, True, 1])
def test_a_way_is_text(check):
    with pytest.raises(InvalidType, match="check must be text"):
        dpselect.open_table(pa.table({"x": [1]}), check=check)


@pytest.mark.parametrize("check", ["warn", "stop"])
def test_spark_does_not_check(check):
    """Also where Spark is not installed: this is said first."""
    with pytest.raises(InvalidValue, match="works on this machine only: open the table with engine='duckdb', or leave"):
        dpselect.open_table(pa.table({"x": [1]}), engine="spark", check=check)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_an_answer_of_spark_says_that_it_was_not_checked(tmp_path):
    spark.session()
    answer = median(dpselect.open_table(written(tmp_path, ["3"]), engine="spark"))
    assert answer.notes[-1].startswith("not checked: ")


# The overview.


DIRTY = {
    # Also a word for what is missing.
    "cost": (["1.5", "2,5", "3", "NA", "", "7,25", "8", "9", "n/a"], "numbers", 3, 2, ["--decimal ,"]),
    "visited": (
        [*["2024-01-31"] * 6, "31/12/2024", "12/31/2024", ""],
        "dates",
        1,
        2,
        ["do not begin with the year", "'%m/%d/%Y'"],
    ),
    "city": (["Ulm", " Ulm", "ULM", "", "Bonn", "Bonn", "Bonn", "-", "Köln"], "text", 1, 0, ["derive trim(column)"]),
}


def test_an_overview_says_of_each_column_what_can_be_read(tmp_path):
    path = tmp_path / "dirty.csv"
    names, columns = list(DIRTY), [values for values, *_ in DIRTY.values()]
    lines = [";".join(names), *(";".join(row) for row in zip(*columns, strict=True)), "one;two", '"open;;']
    path.write_bytes("\n".join([*lines, ""]).encode() + "é;1;2\n".encode("latin-1"))
    overview = dpselect.open_table(path).overview()
    report = overview.report()
    assert report.startswith("PRIVATE: ")
    for check, (name, (_, looks, missing, unlike, says)) in zip(overview.checks, DIRTY.items(), strict=True):
        assert (check.column, check.looks, check.rows, check.counted) == (name, looks, 12, 12 - 3 - len(_nothing(name)))
        assert (check.missing, check.unlike) == (missing, unlike)
        assert f"  '{name}': {looks}, {missing} missing, {unlike} cannot be read\n" in report
        assert [words for words in says if words not in report] == []
    assert not overview.passed
    for broken in ("1 lines that are not UTF-8", "1 lines with a quotation mark", "1 lines with another number"):
        assert f"suspicious: {broken}" in report
    assert "Ulm" not in report.replace("such as ' I10 '", "")
    assert "31/12/2024" in dpselect.open_table(path).overview(show_values=True).report()
    assert repr(overview) == "Overview(columns=3, private)"


def _nothing(name):
    return [value for value in DIRTY[name][0] if not value]


def test_an_overview_costs_nothing_and_takes_no_ledger(tmp_path, ledger):
    path = written(tmp_path, ["1"])
    with pytest.raises(InvalidValue, match="open the table without a ledger"):
        dpselect.open_table(path, ledger=ledger).overview()
    assert ledger.entries() == []
