"""`dpselect mode|top|median|quantile`: the same answers as in Python, in text and JSON, and clear refusals."""

import datetime
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from dpselect import Ledger, PermuteAndFlip
from tests.cli.conftest import Run

PEOPLE = 300
TOP = "top FILE --column ward --candidates 1,2,3 --epsilon 1"


@pytest.fixture
def visits() -> pa.Table:
    """Every person has asthma, one in three has flu as well; what is asked of it has one clear answer."""
    persons = [*range(PEOPLE), *range(0, PEOPLE, 3)]
    return pa.table(
        {
            "patient": persons,
            "diagnosis": ["asthma, severe"] * PEOPLE + ["flu"] * (PEOPLE // 3),
            "ward": [7] * len(persons),
            "cost": [Decimal("10.50")] * len(persons),
            "rate": [0.3] * len(persons),
            "day": [datetime.date(2026, 2, 3)] * len(persons),
            "moment": [datetime.datetime(2026, 2, 3, 4, 5, 6)] * len(persons),
            "county": ["north" if person % 2 else "south" for person in persons],
        }
    )


@pytest.fixture(params=["csv", "parquet"])
def file(request: pytest.FixtureRequest, visits: pa.Table, tmp_path: Path) -> str:
    path = tmp_path / f"visits.{request.param}"
    (arrow_csv.write_csv if request.param == "csv" else pq.write_table)(visits, path)
    return str(path)


def test_mode_from_a_list_and_from_a_file(run: Run, file: str, tmp_path: Path) -> None:
    rest = ["--column", "diagnosis", "--person", "patient", "--epsilon", "1"]
    result = run("mode", file, "--candidates", 'flu,"asthma, severe",cold', *rest)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "asthma, severe",
        "the value that most people have",
        "at most 0.3258 people off on average, less than 4.095 in 95 of 100 cases",
        "chosen by permute-and-flip; guarantee: 1-DP (pure), 0.32966-zCDP",
    ]
    listed = tmp_path / "codes.txt"
    listed.write_text("flu\n\nasthma, severe\ncold\n", encoding="utf-8-sig")
    assert run("mode", file, "--candidates", str(listed), *rest).out == result.out


def test_numbers_are_taken_in_the_type_of_the_column(run: Run, file: str) -> None:
    result = run("mode", file, "--column", "ward", "--candidates", "7,8", "--epsilon", "1", "--json")
    assert json.loads(result.out)["value"] in (7, "7")


LISTED = ["--candidates", 'flu,"asthma, severe",cold', "--column", "diagnosis", "--epsilon", "4"]


def test_top_is_in_order_if_that_is_asked(run: Run, file: str) -> None:
    for asked in (["--ordered"], ["--method", "peel"], ["--method", "noisy-counts"]):
        result = run("top", file, "-k", "2", *LISTED, *asked)
        assert result.out.splitlines()[:2] == ["asthma, severe", "flu"]
        assert "in the order of" not in result.out
    shown = json.loads(run("top", file, "-k", "2", *LISTED, "--method", "peel", "--json").out)
    accuracy = shown.pop("accuracy")
    assert accuracy["unit"] == "rows"
    assert 0 < accuracy["average"] < accuracy["within_95"]
    assert shown == {
        "value": ["asthma, severe", "flu"],
        "ordered": True,
        "estimate": "the 2 values that most rows have, by the method peel",
        "mechanism": "permute-and-flip",
        "guarantee": {"epsilon": "4", "zcdp": pytest.approx(1.9488449115)},
        "epsilon": "4",
        "ledger_id": None,
        "repeated": False,
        "charged": None,
        "receipt": None,
    }


def test_top_is_in_the_order_of_the_candidates_and_says_so(run: Run, file: str) -> None:
    for asked, method in (([], "peel"), (["--method", "set"], "set"), (["--method", "margin"], "margin")):
        *lines, accuracy, terms = run("top", file, "-k", "2", *LISTED, *asked).out.splitlines()
        assert "rows off on average" in accuracy
        assert [*lines, terms] == [
            "flu",
            "asthma, severe",
            "in the order of --candidates, which says nothing about the counts",
            f"the 2 values that most rows have, by the method {method}",
            f"chosen by permute-and-flip; guarantee: {PermuteAndFlip(4).guarantee}",
        ]
    shown = json.loads(run("top", file, "-k", "2", *LISTED, "--json").out)
    assert (shown["value"], shown["ordered"]) == (["flu", "asthma, severe"], False)
    assert "in the order of" not in run("top", file, "-k", "1", *LISTED).out


def test_top_finds_the_number_of_candidates_with_a_clear_cut(run: Run, file: str) -> None:
    """A hundred people have flu as well as asthma: the margin is largest after the first."""
    for asked in ([], ["--method", "margin"]):
        result = run("top", file, "-k", "1:2", *LISTED, *asked, "--person", "patient")
        assert result.out.splitlines()[:2] == [
            "asthma, severe",
            "the 1 to 2 values that most people have, by the method margin",
        ]
        assert len(result.out.splitlines()) == 4


def test_top_of_all_candidates_costs_nothing(run: Run, file: str, tmp_path: Path) -> None:
    ledger = ["--ledger", str(tmp_path / "visits.ledger"), "--budget", "0.001"]
    result = run("top", file, "-k", "3", *LISTED, *ledger)
    assert result.out.splitlines() == [
        *("flu", "asthma, severe", "cold"),
        "the 3 values that most rows have",
        "these are all candidates: nothing was drawn, and nothing is charged",
    ]
    assert Ledger(tmp_path / "visits.ledger").entries() == []


def test_top_in_groups_with_a_limit_on_values(run: Run, file: str, tmp_path: Path) -> None:
    """Of the values of a person, one counts; a ledger records what was asked, and the method."""
    path = tmp_path / "visits.ledger"
    groups = ["--group-by", "county", "--groups", "north,south", "--person", "patient", "--max-values", "1"]
    result = run("top", file, "-k", "2", *LISTED, *groups, "--ledger", str(path), "--budget", "4")
    assert result.out.splitlines()[:3] == [
        "north: flu, asthma, severe",
        "south: flu, asthma, severe",
        "in the order of --candidates, which says nothing about the counts",
    ]
    [entry] = Ledger(path).entries()
    asked = {name: entry.what[name] for name in ("k", "method", "ordered", "max_values", "max_groups")}
    assert asked == {"k": 2, "method": "peel", "ordered": False, "max_values": 1, "max_groups": 1}


@pytest.mark.parametrize(
    ("column", "options", "value"),
    [
        ("ward", "--lower 0 --upper 1000000000000", "7"),
        ("cost", "--lower 0 --upper 1000 --step 0.01", "10.50"),
        ("rate", "--lower 0 --upper 1 --step 0.1", "0.3"),
        ("day", "--lower 2020-01-01 --upper 2030-01-01", "2026-02-03"),
        ("moment", "--lower 2020-01-01T00:00:00 --upper 2030-01-01T00:00:00", "2026-02-03 04:05:06"),
    ],
)
@pytest.mark.parametrize("question", [("median",), ("quantile", "--level", "0.9"), ("quantile", "--level", "1/3")])
def test_quantiles_of_every_type(run: Run, file: str, column: str, options: str, value: str, question: tuple) -> None:
    """All people have the same value, so with this epsilon the answer is that one."""
    name, *level = question
    result = run(name, file, *level, "--column", column, *options.split(), "--epsilon", "20", "--person", "patient")
    assert result.code == 0
    assert [line.partition(" hardly")[0] for line in result.err.splitlines()] == ["warning: epsilon 20"]
    assert result.out.splitlines()[0] == value


def test_text_has_no_median(run: Run, visits: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "typed.parquet"
    pq.write_table(visits, path)
    result = run(*f"median {path} --column county --lower 1 --upper 5 --epsilon 1".split())
    assert result.code == 2
    assert "column 'county' holds text, which has no quantiles" in result.err


def test_groups(run: Run, file: str) -> None:
    options = ["--column", "ward", "--candidates", "6,7", "--person", "patient", "--epsilon", "4"]
    result = run("mode", file, *options, "--group-by", "county", "--groups", "north,south", "--max-groups", "2")
    assert result.out.splitlines()[:2] == ["north: 7", "south: 7"]
    told = json.loads(run("mode", file, *options, "--group-by", "county", "--groups", "north", "--json").out)
    assert [pair["group"] for pair in told["value"]] == ["north"]
    refused = run("mode", file, *options, "--group-by", "county")
    assert refused.code == 2
    assert "--group-by and --groups belong together" in refused.err


def test_other_is_a_candidate_for_what_is_not_listed(run: Run, file: str) -> None:
    rest = ["--column", "diagnosis", "--candidates", "flu,cold", "--person", "patient", "--epsilon", "4"]
    assert run("mode", file, *rest, "--other", "not listed").out.splitlines()[0] == "not listed"
    top = run("top", file, "-k", "2", *rest, "--other", "not listed")
    assert top.out.splitlines()[:2] == ["flu", "not listed"]
    assert json.loads(run("mode", file, *rest, "--other", "none of them", "--json").out)["value"] == "none of them"
    refused = run("mode", file, *rest, "--other", "flu")
    assert refused.code == 2
    assert "other must not be one of the candidates, but 'flu' is listed" in refused.err


def test_groups_of_two_columns(run: Run, file: str) -> None:
    options = ["--column", "diagnosis", "--candidates", 'flu,"asthma, severe"', "--epsilon", "4", "--person", "patient"]
    grouped = ["--group-by", "county", "--groups", "north,south", "--group-by", "ward", "--groups", "7,8"]
    result = run("mode", file, *options, *grouped, "--max-groups", "2")
    lines = result.out.splitlines()
    assert [line.partition(":")[0] for line in lines[:4]] == ["north, 7", "north, 8", "south, 7", "south, 8"]
    assert (lines[0], lines[2]) == ("north, 7: asthma, severe", "south, 7: asthma, severe")
    assert lines[4] == "the value that most people have, in each group of 'county' and 'ward'"
    pairs = json.loads(run("mode", file, *options, *grouped, "--json").out)["value"]
    assert [[county, str(ward)] for county, ward in (pair["group"] for pair in pairs)][:2] == [
        ["north", "7"],
        ["north", "8"],
    ]
    levels = run("quantiles", file, "--column", "cost", "--levels", "0.5", "--step", "0.5", "--epsilon", "9", *grouped)
    assert levels.out.splitlines()[0].startswith("north, 7  0.5  10.5")
    for wrong, words in (
        (grouped[:-2], "--group-by and --groups belong together"),
        (["--groups", "7"], "--group-by and --groups belong together"),
        (grouped[:4] * 2, "group_by must name different columns"),
    ):
        refused = run("mode", file, *options, *wrong)
        assert refused.code == 2
        assert words in refused.err


def test_a_ledger_is_bound_to_its_unit_and_name(run: Run, file: str, tmp_path: Path) -> None:
    ledger = str(tmp_path / "visits.ledger")
    ask = ["mode", file, "--column", "ward", "--candidates", "6,7", "--epsilon", "0.1", "--ledger", ledger]
    bound = ["--person", "patient", "--dataset", "visits 2024"]
    assert run(*ask, *bound, "--budget", "1").code == 0
    assert run(*ask, *bound).code == 0
    for other, words in (
        (["--dataset", "visits 2024"], "has the privacy unit one person (person='patient', neighbours='add-remove')"),
        ([*bound, "--neighbours", "replace"], "but this is one person (person='patient', neighbours='replace')"),
        (["--person", "patient"], "belongs to the data set 'visits 2024', but no name was given"),
        (["--person", "patient", "--dataset", "x"], "the name given is 'x'"),
    ):
        refused = run(*ask, *other)
        assert (refused.code, refused.out) == (2, "")
        assert words in refused.err
        assert "nothing was spent" in refused.err
        assert "dataset=" not in refused.err
        assert len(refused.err.splitlines()) == 1
    assert Ledger(ledger).spent == Fraction(1, 5)


def test_a_ledger_is_charged_and_ends_the_answers(run: Run, file: str, tmp_path: Path) -> None:
    ledger = str(tmp_path / "visits.ledger")
    ask = ["mode", file, "--column", "ward", "--candidates", "6,7", "--person", "patient", "--ledger", ledger]
    first = run(*ask, "--budget", "1", "--epsilon", "0.6")
    assert (first.code, first.err) == (0, "")
    assert first.out.endswith("ledger entry 1 (charged epsilon 0.6)\n")
    refused = run(*ask, "--epsilon", "0.6")
    assert (refused.code, refused.out) == (3, "")
    assert "exceeds what is left of the budget, 0.4 of 1" in refused.err
    told = json.loads(run(*ask, "--epsilon", "0.4", "--json", "--request-id", "again").out)
    assert told["ledger_id"] == told["receipt"]["id"] == 2
    assert json.loads(run(*ask, "--epsilon", "0.4", "--json", "--request-id", "again").out) == told | {"repeated": True}
    assert run(*ask, "--epsilon", "0.4", "--budget", "2").code == 2
    assert run(*ask[:-2], "--epsilon", "0.4", "--budget", "2").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mode missing.csv --column ward --candidates 1 --epsilon 1", "there is no such file"),
        (
            "mode FILE --column Ward --candidates 1 --epsilon 1",
            "column 'Ward' is not in the table, which has 'patient'",
        ),
        ("mode FILE --column ward --candidates 1,2 --epsilon 0", "epsilon must be > 0"),
        (
            "mode FILE --column ward --candidates 1 --epsilon 1 --person who",
            "person: the column 'who' is not in the table",
        ),
        (
            "mode FILE --column ward --candidates ./codes_typo.txt --epsilon 1",
            "no file './codes_typo.txt'",
        ),
        ("mode FILE --column ward --candidates 1,1 --epsilon 1", "candidates must be different values"),
        (
            "mode FILE --column ward --candidates 1,2 --epsilon 1 --group-by ward --groups 1,1",
            "groups must be different values",
        ),
        ("mode FILE --column ward --candidates 1,2 --epsilon 1 --request-id x", "--request-id needs a ledger"),
        ("mode FILE --column ward --candidates 1,2 --epsilon 1 --ledger no.ledger", "give --budget to create it"),
        ("mode FILE --column ward --candidates 1 --epsilon 1 --neighbours none", "neighbours must be"),
        ("mode FILE --column ward --candidates 1 --epsilon 1 --engine excel", "engine must be"),
        ("top FILE -k 3 --column ward --candidates 1,2 --epsilon 1", "k must be from 1 to the number of candidates"),
        (f"{TOP} -k 0", "k must be > 0"),
        (f"{TOP} -k 2:1", "k must be a pair (lo, hi) with 1 <= lo <= hi <= 2"),
        (f"{TOP} -k 1:3", "k must be a pair (lo, hi) with 1 <= lo <= hi <= 2"),
        (f"{TOP} -k 1:2:3", "k must be a number or an interval LO:HI, got '1:2:3'"),
        (f"{TOP} -k 1:x", "'x': write it as"),
        (f"{TOP} -k 1:2 --method set --max-values 1", "k may be a pair only with method margin"),
        (f"{TOP} -k 2 --method set --ordered", "method set has no order to return"),
        (f"{TOP} -k 2 --method set --person patient", "method set needs max_values"),
        (f"{TOP} -k 2 --max-values 0", "max_values must be > 0"),
        (f"{TOP} -k 2 --max-values some", "'some': write it as"),
        (f"{TOP} -k 2 --method best", "method must be one of auto, set, margin, one-shot, peel, noisy-counts"),
        ("median FILE --column cost --lower 5 --upper 1 --epsilon 1", "lower must be <= upper"),
        ("median FILE --column cost --lower five --upper 6 --epsilon 1", "lower: 'five'"),
        ("median FILE --column day --lower 2020-01-01 --upper 2021-01-01 --step 0 --epsilon 1", "step must be > 0"),
        ("mode FILE --column ward --candidates 1,2 --epsilon 1 --budget 1", "name its file with --ledger"),
        ("mode FILE --column ward --candidates 1,2 --epsilon 1 --dataset x", "--dataset needs a ledger"),
        ("mode FILE --column ward --candidates 1,2 --epsilon 0,1", "'0,1': write 0.1 with a decimal point"),
        ("mode FILE --column ward --candidates 1,2 --epsilon little", "'little': write it as 10, 0.1, 1e-3 or 1/3"),
        ("quantile FILE --level 90% --column cost --lower 1 --upper 5 --epsilon 1", "got '90%': give for example 0.9"),
        ("quantile FILE --level 2 --column cost --lower 1 --upper 5 --epsilon 1", "level must be between 0 and 1"),
    ],
)
def test_refusals_are_one_line(run: Run, file: str, arguments: str, message: str) -> None:
    result = run(*arguments.replace("FILE", file).split())
    assert result.code == 2
    assert result.out == ""
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_a_file_in_another_encoding_is_to_be_saved_in_utf_8(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("fälle\n1\n", encoding="latin-1")
    result = run("mode", file, "--column", "x", "--candidates", "1", "--epsilon", "1")
    assert (result.code, result.out) == (2, "")
    assert "save it as CSV in UTF-8" in result.err


def test_the_table_itself_is_no_list_of_candidates(run: Run, file: str, tmp_path: Path) -> None:
    """An easy slip: an error about the list would quote a row."""
    rest = ["--person", "patient", "--epsilon", "1"]
    for table in (file, str(tmp_path)):
        result = run("mode", table, "--column", "diagnosis", "--candidates", file, *rest)
        assert result.code == 2
        assert "--candidates is a file of the table itself" in result.err
        assert "asthma" not in result.err
    grouped = ["--group-by", "county", "--groups", file]
    result = run("mode", file, "--column", "diagnosis", "--candidates", "flu,cold", *grouped, *rest)
    assert "--groups is a file of the table itself" in result.err
