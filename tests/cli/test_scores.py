"""`dpselect select` and `dpselect compare`: what they print is what the library returns, and costs what it says."""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpselect import Ledger, PermuteAndFlip
from dpselect._messages import install_command
from dpselect.analysis import compare_top_k, expected_error
from tests.cli.conftest import Run, process

PRIVATE = "48151623"
SCORES = [310, 250, 120.5, 120, 7]
COUNTS = [310, 250, 120, 60, 7, 3]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scores.csv"


def words(text: str) -> str:
    return " ".join(text.split())


# One candidate.


@pytest.mark.parametrize(
    ("content", "options", "chosen"),
    [
        ("0\n" * 17 + "1e9\n0\n", "", "candidate 17 (counting from 0)"),
        ("name,year,patients\nfirst,9999,0\nsecond,0,1000000000\n", "--column patients --label name", "second"),
        ("\ufeffa,0\r\nö,1000000000\r\n", "", "ö"),
        # Rounded to floats all are tied, and the winner would be found once in a thousand times.
        (
            f"{2**60}\n" * 700 + f"{2**60 + 1}\n" + f"{2**60}\n" * 299,
            "--epsilon 1e6",
            "candidate 700 (counting from 0)",
        ),
        ("0.1\n" * 700 + f"0.1{'0' * 30}1\n" + "0.1\n" * 299, "--epsilon 1e40", "candidate 700 (counting from 0)"),
    ],
    ids=["positions", "named columns", "BOM", "integers beyond 2**53", "decimals"],
)
@pytest.mark.parametrize("source", ["file", "standard input"])
def test_the_best_by_exact_scores(run: Run, file: Path, content: str, options: str, chosen: str, source: str) -> None:
    file.write_text(content, encoding="utf-8", newline="")
    asked = ("--epsilon", "1", *options.split())
    given = (file, b"") if source == "file" else ("-", content.encode())
    assert run("select", given[0], *asked, stdin=given[1]).out.splitlines()[0] == chosen


def test_a_request_is_repeated_on_the_same_scores_only(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text("\n".join(["1"] * 50))
    ask = ("select", file, "--epsilon", "0.1", "--ledger", tmp_path / "a.ledger", "--request-id", "r", "--json")
    first = run(*ask, "--budget", "1", "--dataset", "survey")
    assert json.loads(first.out)["receipt"]["id"] == 1
    repeated = {**json.loads(first.out), "repeated": True}
    assert all(json.loads(run(*ask, "--dataset", "survey").out) == repeated for _ in range(5))
    assert run(*ask[:-1], "--dataset", "survey").err.endswith("; ledger entry 1 (repeated, nothing charged)\n")
    file.write_text("\n".join(["1"] * 49 + ["2"]))
    for options, told in ((("--dataset", "survey"), "on other data"), ((), "belongs to the data set 'survey'")):
        refused = run(*ask, *options)
        assert (refused.code, refused.out) == (2, "")
        assert told in refused.err
    assert Ledger(tmp_path / "a.ledger").spent == Fraction(1, 10)


def test_nothing_but_the_label_is_printed_and_as_text(run: Run, file: Path) -> None:
    label = "[red]:smile:[/red] \x1b[31m" + "long " * 60 + "end"
    file.write_text(f"loser,0\n{label},{PRIVATE}\n")
    plain, as_json = run("select", file, "--epsilon", "1"), run("select", file, "--epsilon", "1", "--json")
    assert plain.out.splitlines()[0] == label.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert json.loads(as_json.out)["candidate"] == label
    for text in (PRIVATE, "loser"):
        assert text not in plain.out + plain.err + as_json.out + as_json.err


# Several candidates.


@pytest.fixture
def counts(file: Path) -> Path:
    """Counts whose three largest are far above the others, and in another order than in the file."""
    file.write_text("label,people\nrare,0\nthird,48151\nfirst,90000\nsecond,60000\nrare,1\nnone,0\n")
    return file


def lines(run: Run, *arguments: object) -> list[str]:
    result = run("select", *arguments)
    assert result.code == 0
    return [*result.out.splitlines(), *result.err.splitlines()]


def test_labels_that_occur_twice_have_positions(run: Run, file: Path) -> None:
    file.write_text("a,0\nb,70000\nb,80000\na,0\n")
    shown = json.loads("\n".join(lines(run, file, "-k", "2", "--epsilon", "1", "--method", "peel", "--json")))
    assert (shown["candidates"], shown["indices"], shown["ordered"]) == (["b", "b"], [2, 1], True)


@pytest.mark.parametrize(
    ("asked", "score_range", "count"),
    [
        ("set --max-values 2", "4", 1),
        ("set --max-values 2 --monotonic", "2", 1),
        ("margin", "4", 1),
        ("margin --monotonic", "2", 1),
        ("noisy-counts --max-values 2", "4", 2),
        ("noisy-counts --max-values 2 --monotonic", "2", 2),
    ],
)
def test_without_monotonic_a_person_may_be_replaced(
    run: Run, counts: Path, tmp_path: Path, asked: str, score_range: str, count: int
) -> None:
    path, (method, *options) = tmp_path / "a.ledger", asked.split()
    paid = ("--ledger", path, "--budget", "1")
    lines(run, counts, "-k", "3", "--epsilon", "0.5", "--method", method, *options, *paid)
    [entry] = Ledger(path).entries()
    assert (entry.what["method"], entry.what["score_range"], entry.charge.count) == (method, score_range, count)
    assert entry.epsilon == Fraction(1, 2)


def test_a_request_for_several_is_repeated_with_the_same_options_and_labels_only(
    run: Run, counts: Path, tmp_path: Path
) -> None:
    ask = ("select", counts, "-k", "3", "--monotonic", "--ledger", tmp_path / "a.ledger")
    first = run(*ask, "--epsilon", "0.6", "--budget", "1", "--request-id", "r")
    again = run(*ask, "--epsilon", "0.6", "--request-id", "r")
    assert again.out == first.out.replace("charged epsilon 0.6", "repeated, nothing charged")
    for other in (["-k", "2"], ["--ordered"], ["--method", "margin"], ["--max-values", "5"]):
        conflict = run(*ask, "--epsilon", "0.6", "--request-id", "r", *other)
        assert (conflict.code, conflict.out) == (2, "")
    counts.write_text(counts.read_text().replace("third", "another"))
    assert "on other data" in run(*ask, "--epsilon", "0.6", "--request-id", "r").err


# Comparisons.


@pytest.fixture
def public(file: Path) -> Path:
    file.write_text("".join(f"label{i},{score}\n" for i, score in enumerate(SCORES)))
    return file


@pytest.fixture
def people(file: Path) -> Path:
    file.write_text("".join(f"label{i},{count}\n" for i, count in enumerate(COUNTS)))
    return file


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the table."""
    body = text[text.index("───") :].splitlines()[1:]
    return [line.split() for line in body[: body.index(next(line for line in body if not line.strip()))]]


def number(cell: str) -> float:
    return math.nan if cell == "-" else float(cell.replace(",", ""))


def content(run: Run, *options: object) -> dict[str, Any]:
    result = run(*options, "--json")
    assert (result.code, result.err) == (0, "")
    found: dict[str, Any] = json.loads(result.out)
    return found


def test_a_table_fits_eighty_columns_and_a_narrow_terminal_breaks_no_number(file: Path) -> None:
    for best, epsilons, columns in (
        ("9999.5\n" + "9000\n" * 99, "0.01:1", 80),
        ("1234567.5\n1200000\n", "1e-6:10", 40),
    ):
        file.write_text(f"{best}0\n")
        shown = process("compare", str(file), "--epsilon", epsilons, COLUMNS=str(columns)).stdout.decode()
        assert [len(row) for row in rows(shown)] == [9] * 25
        assert columns == 40 or max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(("ending", "magic"), [("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_the_plot_is_written_in_the_format_of_its_ending(run: Run, public: Path, ending: str, magic: bytes) -> None:
    pytest.importorskip("matplotlib")
    plot = public.with_name(f"errors.{ending}")
    result = run("compare", public, "--epsilon", "0.01:0.1", "--points", "3", "--plot", plot)
    assert (result.code, result.err) == (0, "")
    assert plot.read_bytes().startswith(magic)
    assert f"Plot: {plot}" in words(result.out)
    assert len(rows(result.out)) == 3


def test_without_matplotlib_the_error_says_what_to_install(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the file is read: it does not exist."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("compare", file, "--epsilon", "1", "--plot", file.with_name("a.png"))
    assert (result.code, result.out) == (5, "")
    assert result.err == f"error: --plot needs matplotlib: {install_command('matplotlib')}\n"


def test_the_methods_are_compared_as_in_the_analysis(run: Run, people: Path) -> None:
    result = run(
        "compare", people, *["--epsilon", "0.01,0.5", "-k", "3", "--max-values", "1", "--seed", "5", "--runs", "60"]
    )
    assert (result.code, result.err) == (0, "")
    expected = compare_top_k(COUNTS, 3, ["0.01", "0.5"], max_values=1, runs=60, seed=5)
    text = words(result.out)
    for told in ("3 of 6 candidates: how many fewer people", "epsilon set margin one-shot peel noisy-counts"):
        assert told in text
    for told in (f"The method auto takes {expected.automatic} here.", "60 simulated answers", "are private too"):
        assert told in text
    first = next(line for line in result.out.splitlines() if line.startswith(" 0.01 ")).split()
    for cell, record in zip(first[1:5], expected.records, strict=False):
        assert number(cell) == pytest.approx(record.expected_error, rel=6e-4)
    noisy = expected.records[4]
    assert first[6] == "±"
    assert float(first[5]) == pytest.approx(noisy.expected_error, rel=6e-3)
    assert float(first[7]) == pytest.approx(noisy.high - noisy.expected_error, rel=0.06)
    last = next(line for line in result.out.splitlines() if line.startswith(" 0.5 ")).split()
    assert last[-2] == "<", "no run was short"
    assert float(last[-1]) == pytest.approx(expected.records[9].high, rel=0.06)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("-k 2", {"k": 2}),
        ("-k 2:4", {"k": (2, 4)}),
        ("-k 3 --max-values 2 --ordered", {"k": 3, "max_values": 2, "ordered": True}),
        ("-k 3 --neighbours replace", {"k": 3, "monotonic": False}),
        ("-k 6", {"k": 6}),
    ],
)
def test_json_has_the_records_of_the_methods(run: Run, people: Path, options: str, asked: dict[str, Any]) -> None:
    found = content(run, "compare", people, *f"--epsilon 0.01:1 --points 3 {options} --seed 2".split())
    expected = compare_top_k(COUNTS, epsilons=[0.01, 0.1, 1], **asked, runs=200, seed=2)
    assert [r["method"] for r in found["records"]] == [r.method for r in expected.records]
    for own, record in zip(found["records"], expected.to_dicts(), strict=True):
        assert own["expected_error"] == pytest.approx(record["expected_error"], rel=1e-9)
    assert (found["automatic"], found["candidates"], found["runs"]) == (expected.automatic, 6, 200)
    assert found["k"] == (list(asked["k"]) if isinstance(asked["k"], tuple) else asked["k"])
    assert found["neighbours"] == ("add-remove" if asked.get("monotonic", True) else "replace")


def test_a_score_range_replaces_sensitivity_and_monotonic(run: Run, file: Path) -> None:
    """In every command that takes them."""
    file.write_text("a,30\nb,28\nc,0\n")
    for command, stated in (
        (("plan", "select", "--scores", file, "--epsilon", "1"), ("--sensitivity", "3")),
        (("compare", file, "--epsilon", "0.1,1"), ("--sensitivity", "6", "--monotonic")),
    ):
        ranged, same = content(run, *command, "--score-range", "6"), content(run, *command, *stated)
        assert ranged.pop("score_range") == "6"
        assert (same.pop("sensitivity"), same.pop("monotonic")) == (stated[1], "--monotonic" in stated)
        assert ranged == same
    needed = content(run, "plan", "select", "--scores", file, "--error", "1", "--score-range", "6")
    proxy = needed["proxy"]["mechanisms"][0]
    assert expected_error(PermuteAndFlip(proxy["epsilon"], score_range=6), [30, 28, 0]) == pytest.approx(1, rel=1e-6)
    audited = content(run, "audit", "--epsilon", "1", "--score-range", "2", "--mechanism", "exponential", "--pmf")
    assert (audited["violates"], audited["score_range"]) == (False, "2")
    assert "all move far and alike" in audited["log_ratios"]
