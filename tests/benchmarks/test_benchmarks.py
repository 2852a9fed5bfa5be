"""The benchmarks measure each row once and write what they found into the page; none is timed here."""

import re
from pathlib import Path

from benchmarks.__main__ import _REPORTS, every_case
from benchmarks.bars import Figures, at_most_times, no_bar
from benchmarks.case import FAILED, Case, Row, measured
from benchmarks.page import BLOCK, rewritten
from benchmarks.run import Run, loaded
from benchmarks.stopwatch import FULL, QUICK, Effort
from benchmarks.table import grid, markdown, missed

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def case(what, ours=2.0, bar=None, **cells):
    return Case(what, "", bar or at_most_times(3), lambda _: Figures(ours, 1.0), **cells)


CASES = [case("slow", 4.0), case("fast", 2.0), case("free", bar=no_bar())]
TEXT = """# A page

<!-- run: ^(slow|fast) -->
<!-- end -->

Words.

<!-- missed: ^(slow|fast) -->
<!-- end -->

<!-- missed: fast -->
<!-- end -->

<!-- rows: fast -->

| an | old table |

<!-- end -->

<!-- report: errors -->
nothing yet
<!-- end -->

<!-- rows: free -->
kept
<!-- end -->
"""


def ran(*names):
    run = Run("today")
    for one in CASES:
        if one.what in names:
            run.add(measured(one, QUICK))
    return run


def test_a_page_gets_the_rows_that_its_comments_name():
    run = ran("slow", "fast")
    run.reports["errors"] = "a report"
    page = rewritten(TEXT, run, CASES)
    account, missed, none, rows, report, free = page.split("<!-- end -->\n")[:6]
    assert account.endswith("\ntoday\n\n**1 bars met, 1 not met.**\n\n")
    assert "Words." in missed
    assert missed.endswith("\n* slow: 4 x, bar <= 3 x\n\n")
    assert none.endswith("\nNone.\n\n")
    assert rows.endswith("| fast | 2 s | 1 s | 2 x | <= 3 x | met |\n\n")
    assert report.endswith("\na report\n\n")
    assert free.endswith("kept\n")
    assert "old table" not in page
    assert rewritten(page, run, CASES) == page


def test_a_page_keeps_what_was_not_measured_as_a_whole():
    """A page that mixes two runs would compare what cannot be compared. Other tables are replaced alone."""
    for names in ((), ("fast",), ("slow",)):
        assert rewritten(TEXT, ran(*names), CASES) == TEXT
    page = rewritten(TEXT, ran("free"), CASES)
    assert "kept" not in page
    assert "| free |" in page
    assert page.startswith(TEXT.partition("<!-- rows: free -->")[0])


def test_a_run_is_the_same_after_it_was_saved(tmp_path):
    run = ran("slow", "free")
    run.add(Row(case("missing"), None, "not installed"))
    run.reports["errors"] = "ε = 1"
    run.save(tmp_path / "run.json")
    again, cases = loaded(tmp_path / "run.json"), [*CASES, case("missing")]
    assert [row.cells for row in again.rows(cases)] == [row.cells for row in run.rows(cases)]
    assert [row.case.what for row in again.rows(cases)] == ["slow", "free", "missing"]
    assert (again.method, again.reports) == (run.method, run.reports)


def test_a_row_that_fails_does_not_end_the_run(capsys):
    def fail(_):
        raise ZeroDivisionError

    row = measured(Case("broken", "", no_bar(), fail), QUICK)
    assert row.verdict == FAILED
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_rounds_end_when_there_are_enough_or_when_they_take_long():
    effort = Effort(seconds=2, rounds=15, longest=8, fewest=5)
    enough = {(15, 2): True, (5, 8): True, (14, 7.9): False, (1000, 1.9): False, (4, 100): False}
    assert {case: effort.suffices(*case) for case in enough} == enough
    assert [effort.half.suffices(rounds, 1) for rounds in (14, 15)] == [False, True]
    assert (FULL.rounds, FULL.fewest) >= (15, 5)


def test_tables_leave_out_empty_columns_and_show_what_is_missed():
    rows = [measured(one, QUICK) for one in CASES]
    assert markdown(rows).splitlines()[0] == "| what | ours | reference | ratio | bar | verdict |"
    assert missed(rows) == "* slow: 4 x, bar <= 3 x"
    cells = {"epsilon": "1", "n": "10"}
    assert missed([measured(case("slow", 4.0, **cells), QUICK)]) == "* slow, ε = 1, 10: 4 x, bar <= 3 x"
    small = [measured(case("a", 2.0, **cells), QUICK), measured(case("b", 4.0, **cells), QUICK)]
    assert grid(small).splitlines()[2] == "| 10 |  | 2 s, 2 x | **4 s, 4 x: NOT MET** |"


def test_the_page_shows_every_row_and_asks_for_none_that_is_gone():
    cases, text = every_case(), PAGE.read_text(encoding="utf-8")
    assert len({one.label for one in cases}) == len(cases), "the figures of a run are kept by label"
    blocks = [(kind, wanted) for _, kind, wanted, _ in BLOCK.findall(text)]
    assert text.count("<!-- end -->") == len(blocks)
    assert {wanted for kind, wanted in blocks if kind == "report"} <= set(_REPORTS)
    patterns = [(kind, re.compile(wanted)) for kind, wanted in blocks if kind != "report"]
    for _, pattern in patterns:
        assert any(pattern.search(one.label) for one in cases), pattern
    shown = [pattern for kind, pattern in patterns if kind in {"rows", "grid"}]
    assert [one.label for one in cases if not any(pattern.search(one.label) for pattern in shown)] == []
