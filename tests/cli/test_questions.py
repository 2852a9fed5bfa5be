"""Questions on the command line: every option reaches the record, and groups and ledgers are those of the library.

What the commands print is in `tests/behaviour/transcripts`, and what they refuse in `test_refusals`.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

from dpselect import Ledger, analysis, every, tables, zcdp
from dpselect.cli.questions import rule
from dpselect.errors import InvalidValue
from dpselect.questions.options import ASKING, PLANNING, QUESTIONS, Named, Option
from tests.cli.conftest import Run

ASKED = [entry for entry in QUESTIONS.values() if entry.paragraphs(ASKING)]

# A text for each option of a question, and what becomes of it: by the name of its flag.
SAMPLES: dict[str, tuple[str, Any]] = {
    "candidates": ("I10,E11", ["I10", "E11"]),
    "every": ("text:3", every("text", max_bytes=3)),
    "other": ("none of them", "none of them"),
    "max_values": ("1e1", 10),
    "k": ("1:2", (1, 2)),
    "method": ("margin", "margin"),
    "ordered": ("", True),
    "lower": ("1/3", "1/3"),
    "upper": ("2026-01-01", "2026-01-01"),
    "step": ("0.5", "0.5"),
    "range": ("log", "log"),
    "per_person": ("rows", "rows"),
    "max_rows": ("3", 3),
    "level": ("1/3", "1/3"),
    "levels": ("0.1, 1/2", (Fraction(1, 10), Fraction(1, 2))),
    "mechanism": ("exponential", "exponential"),
    "delta": ("1e-9", "1e-9"),
    "neighbours": ("replace", "replace"),
    "max_groups": ("2", 2),
    "sensitivity": ("1/2", "1/2"),
    "monotonic": ("", True),
    "score_range": ("3", "3"),
}
PLANNED = {**SAMPLES, "candidates": ("a,b,c", 3), "groups": ("a,b,c", 3)}
OF_TABLE = {
    "person": "who",
    "neighbours": "replace",
    "table": "visits",
    "query": "SELECT 1",
    "engine": "spark",
    "ledger": "x.ledger",
    "budget": "zcdp:1",
    "dataset": "visits 2024",
    "where": "cost > 1",
    "encoding": "latin-1",
    "delimiter": ";",
    "decimal": ",",
    "thousands": ".",
    "dates": "%d.%m.%Y",
    "check": "warn",
}


class Reached(InvalidValue):
    """Ends a command where a question would be asked."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Ninety people have I10, forty have E11, and one has Z99."""
    path = tmp_path / "visits.csv"
    codes = ["I10"] * 90 + ["E11"] * 40 + ["Z99"]
    rows = {"who": range(131), "code": codes, "ward": [who % 2 for who in range(131)], "cost": [7] * 131}
    write_csv(pa.table(rows), path)
    return path


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What reaches a table, or a plan."""
    found: dict[str, Any] = {}

    def reached(*_: Any, **given: Any) -> None:
        found.update(given)
        raise Reached("reached")

    monkeypatch.setattr(tables.Table, "ask", reached)
    monkeypatch.setattr(analysis, "plan", reached)
    return found


def cases(form: str) -> list[Any]:
    entries = QUESTIONS.values() if form == PLANNING else ASKED
    pairs = [(entry, own) for entry in entries for own in (entry.planning if form == PLANNING else entry.asking)]
    return [pytest.param(*pair, id=f"{pair[0].name} {pair[1].key}") for pair in pairs]


def words_of(option: Option, text: str) -> list[str]:
    return [option.flags[-1]] if option.is_flag else [option.flags[-1], text]


def others(options: list[Option], option: Option, samples: dict[str, tuple[str, Any]]) -> list[str]:
    """The options that the question needs beside this one."""
    needed = [other for other in options if other.is_required and other.name != option.name]
    if any(other.way for other in options) and not option.way:
        needed.append(next(other for other in options if other.way))
    return [word for other in needed for word in words_of(other, samples[other.key][0])]


@pytest.mark.parametrize(("entry", "option"), cases(ASKING))
def test_every_option_reaches_the_table(
    run: Run, file: Path, taken: dict[str, Any], entry: Named, option: Option
) -> None:
    text, value = SAMPLES[option.key]
    given = [*words_of(option, text), *others(entry.asking, option, SAMPLES)]
    result = run(entry.name, file, "--column", "code", "--rho", "1/4", "--request-id", "a", *ledger(file), *given)
    assert (result.code, result.err) == (2, "error: reached\n")
    assert (taken["rho"], taken["epsilon"], taken["request_id"]) == ("1/4", None, "a")
    assert option.is_shared or taken[option.name] == value


def ledger(file: Path) -> tuple[str, ...]:
    return ("--ledger", str(file.with_name("x.ledger")), "--budget", "zcdp:1,1e-6")


@pytest.mark.parametrize(("entry", "option"), cases(PLANNING))
def test_every_option_reaches_the_plan(run: Run, taken: dict[str, Any], entry: Named, option: Option) -> None:
    text, value = PLANNED[option.key]
    given = [*words_of(option, text), *others(entry.planning, option, PLANNED)]
    for price in ("epsilon", "rho", "budget", *(["error"] if "mechanism" in entry.record.priced else [])):
        result = run("plan", entry.name, *given, f"--{price}", "0.5", "--questions", "1e3")
        assert (result.code, result.err) == (2, "error: reached\n")
        assert (taken["question"], taken["questions"], taken[price]) == (entry.method, 1000, "0.5")
        assert taken[option.name] == value


def test_every_option_of_the_table_reaches_it(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[str, Any] = {}

    def opened(source: str, **given: Any) -> None:
        taken.update(given, source=source)
        raise Reached("reached")

    monkeypatch.setattr(tables, "open_table", opened)
    given = [word for name, text in OF_TABLE.items() for word in (f"--{name}", text)]
    given += ["--derive", "x=cost + 1", "--trusted-query"]
    result = run("median", file, "--column", "cost", "--epsilon", "1", *given)
    assert result.err == "error: reached\n"
    assert taken == {**OF_TABLE, "derive": {"x": "cost + 1"}, "trusted_query": True, "source": str(file), "keep": True}


def test_groups_are_combined(run: Run, taken: dict[str, Any]) -> None:
    run("plan", "mode", "--candidates", "9", "--epsilon", "1", "--groups", "A,B,C", "--groups", "4")
    assert taken["groups"] == 12


def test_a_list_is_counted_or_read_from_a_file(run: Run, file: Path, taken: dict[str, Any]) -> None:
    codes = file.with_name("codes.txt")
    codes.write_text("\ufeffI10\n\nE11,x\n", encoding="utf-8")
    many = ",".join(f"code{i}" for i in range(2000))
    for text, size in (("3", 3), ("1e3", 1000), ("I10,E11", 2), ('"a,b",c', 2), (codes, 2), (many, 2000)):
        run("plan", "mode", "--candidates", text, "--groups", text, "--epsilon", "1")
        assert (taken["candidates"], taken["groups"]) == (size, size)
    for text, values in ((codes, ["I10", "E11,x"]), ('"a,b", c', ["a,b", "c"])):
        run("mode", file, "--column", "code", "--candidates", text, "--epsilon", "1")
        assert taken["candidates"] == values
    run("mode", file, "--column", "ward", "--candidates", "1,2", "--epsilon", "1")
    assert taken["candidates"] in ([1, 2], ["1", "2"]), "in the type of the column"


def test_rules_as_people_write_them() -> None:
    written = ["int8", "integer:-5..5", "decimal:9:2", "date:2000-01-01..2024-12-31", "uuid", "text:3:ab", "boolean"]
    assert [repr(rule(text)) for text in written] == [
        "every('int8')",
        "every('integer', lower=-5, upper=5)",
        "every('decimal', precision=9, digits=2)",
        "every('date', lower=datetime.date(2000, 1, 1), upper=datetime.date(2024, 12, 31))",
        "every('uuid')",
        "every('text', max_bytes=3, alphabet='ab')",
        "every('boolean')",
    ]
    assert rule("decimal:4:0").size == 2 * 9999 + 1
    assert rule("timestamp:2024-01-01T00:00:00..2024-01-01T00:00:01").size == 1_000_001


@pytest.mark.parametrize(
    ("column", "options", "value"),
    [
        ("cost", "--lower 0 --upper 1000 --step 0.01", "10.50"),
        ("rate", "--lower 0 --upper 1 --step 0.1", "0.3"),
        ("day", "--lower 2020-01-01 --upper 2030-01-01", "2026-02-03"),
        ("moment", "--lower 2020-01-01T00:00:00 --upper 2030-01-01T00:00:00", "2026-02-03 04:05:06"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_values_of_every_type_are_read_and_printed(
    run: Run, tmp_path: Path, ending: str, column: str, options: str, value: str
) -> None:
    path = tmp_path / f"visits.{ending}"
    path.with_suffix(".csv").write_text("cost,rate,day,moment\n" + "10.50,0.3,2026-02-03,2026-02-03T04:05:06\n" * 300)
    if ending == "parquet":
        types = "cost::DECIMAL(9,2) AS cost, rate, day, moment"
        duckdb = pytest.importorskip("duckdb")
        duckdb.sql(f"COPY (SELECT {types} FROM '{path.with_suffix('.csv')}') TO '{path}'")
    result = run("quantile", path, "-q", "1/3", "--column", column, *options.split(), "--epsilon", "9")
    assert (result.code, result.out.splitlines()[0]) == (0, value)


GROUPED = "--person who --group-by code --groups found:2,1e-9"
WRONG = [
    "mode FILE --column ward --epsilon 0 --candidates 0,1",
    "mode FILE --column ward --epsilon 1",
    "mode FILE --column nothing --epsilon 1 --candidates 0,1",
    "top FILE -k 500 --column ward --epsilon 1 --candidates 0,1",
    "median FILE --column ward --epsilon 1 --lower 9 --upper 1",
    "mode FILE --column ward --epsilon 1 --candidates 0,1 --mechanism noisy-max",
    "mode FILE --column ward --epsilon 1 --candidates 0,1 --group-by ward --groups 0,1",
]


@pytest.mark.parametrize("asked", WRONG)
def test_groups_are_not_paid_for_if_the_question_is_wrong(run: Run, file: Path, asked: str) -> None:
    path = file.with_name("ledger")
    Ledger(path, zcdp("9", delta="1e-6"))
    result = run(*f"{asked} {GROUPED}".replace("FILE", str(file)).split(), "--ledger", path)
    assert result.code == 2
    assert list(Ledger(path).entries()) == []


def test_groups_are_found_and_charged_once(run: Run, file: Path) -> None:
    path = file.with_name("ledger")
    Ledger(path, zcdp("9", delta="1e-6"))
    asked = f"mode {file} --column ward --epsilon 1 --candidates 0,1 {GROUPED} --request-id a --ledger {path}"
    first, again = (run(*asked.split()) for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert first.err.startswith("2 groups found: ")
    assert "; ledger entry 1 (charged rho " in first.err
    assert [line.split(":")[0] for line in first.out.splitlines()[:2]] == ["E11", "I10"]
    assert first.out.splitlines()[:3] == again.out.splitlines()[:3]
    assert [float(entry.delta) for entry in Ledger(path).entries()] == [1e-9, 0]


@pytest.mark.parametrize("budget", ["1", "zcdp:0.5", "1,1e-6,0"])
def test_a_budget_without_a_delta_names_budgets_that_have_one(run: Run, file: Path, budget: str) -> None:
    asked = ("values", file, *f"--column code --person who --epsilon 0.1 --delta 1e-9 --budget {budget}".split())
    refused = run(*asked, "--ledger", file.with_name("visits.ledger"))
    assert refused.code == 2
    for named in ("1,1e-6", "zcdp:0.5,1e-9"):
        assert named in refused.err
        assert run(*asked[:-1], named, "--ledger", file.with_name(f"{named}.ledger")).code == 0


def test_a_ledger_is_bound_to_its_unit_and_name(run: Run, file: Path) -> None:
    path = file.with_name("visits.ledger")
    asked = ["mode", file, *["--column", "ward", "--candidates", "0,1", "--epsilon", "0.1", "--ledger"], path]
    bound = ["--person", "who", "--dataset", "visits 2024"]
    assert run(*asked, *bound, "--budget", "1").code == 0
    for other, told in (
        (bound[2:], "has the privacy unit one person (--person who, --neighbours add-remove)"),
        ([*bound, "--neighbours", "replace"], "but this is one person (--person who, --neighbours replace)"),
        (bound[:2], "belongs to the data set 'visits 2024', but no name was given"),
        ([*bound[:2], "--dataset", "x"], "the name given is 'x'"),
    ):
        refused = run(*asked, *other)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
        assert told in refused.err
        assert "nothing was spent" in refused.err
        assert "dataset=" not in refused.err
    assert Ledger(path).spent == Fraction(1, 10)


def test_what_is_asked_is_what_a_ledger_records(run: Run, file: Path) -> None:
    path = file.with_name("visits.ledger")
    asked = (
        "top {} -k 2 --column code --candidates I10,E11,J45 --group-by ward --groups 0,1 --person who --max-values 1"
    )
    assert run(*f"{asked.format(file)} --epsilon 4 --ledger {path} --budget 4".split()).code == 0
    [entry] = Ledger(path).entries()
    recorded = {name: entry.what[name] for name in ("k", "method", "ordered", "max_values", "max_groups")}
    assert recorded == {"k": 2, "method": "peel", "ordered": False, "max_values": 1, "max_groups": 1}


@pytest.mark.parametrize("entry", QUESTIONS.values(), ids=QUESTIONS)
def test_help_has_examples_that_run(run: Run, entry: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("codes.txt").write_text("\n".join(f"c{i}" for i in range(20)))
    Path("items.txt").write_text("\n".join(f"c{i}" for i in range(100)))
    Path("public.csv").write_text("a,5\nb,8\nc,9\n")
    rows = pa.table({"patient": [1, 2], "buyer": [1, 2], "diagnosis": ["I10"] * 2, "cost": [7, 8], "item": ["c1"] * 2})
    for name in ("visits.csv", "sales.csv"):
        write_csv(rows, name)
    pq.write_table(rows, "visits.parquet")
    for form, prefix in ((ASKING, ()), (PLANNING, ("plan",))):
        written = entry.paragraphs(form)
        examples = [
            text.removeprefix("Example: dpselect ") for text in written if text.startswith("Example: dpselect ")
        ]
        assert bool(examples) == bool(written)
        if not written:
            continue
        text = " ".join(run(*prefix, entry.name, "--help").out.split())
        for example in examples:
            assert f"Example: dpselect {example}" in text
            result = run(*example.split())
            assert (result.code, "error" in result.err) == (0, False)
