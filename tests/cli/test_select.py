import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax
from dpselect.errors import DPSelectError
from tests.cli.conftest import Run

PRIVATE = "48151623"
KIND = type[PermuteAndFlip] | type[ExponentialMechanism] | type[ReportNoisyMax]
MECHANISMS: dict[str, KIND] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
    "noisy-max": ReportNoisyMax,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scores.csv"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_dominating_winner_is_chosen(run: Run, file: Path, mechanism: str) -> None:
    file.write_text("label,score\n" + "loser,0\n" * 30 + "winner,1000000000\n" + "loser,0\n" * 30)
    result = run("select", file, "--epsilon", "1", "--mechanism", mechanism)
    assert result.code == 0
    assert result.err == ""
    guarantee = MECHANISMS[mechanism](1).guarantee
    assert result.out.splitlines() == ["winner", f"chosen by {mechanism}, sensitivity 1; guarantee: {guarantee}"]


def test_without_labels_the_position_is_the_answer(run: Run, file: Path) -> None:
    file.write_text("0\n" * 17 + "1e9\n0\n")
    assert run("select", file, "--epsilon", "1").out.splitlines()[0] == "candidate 17 (counting from 0)"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_json_has_the_answer_and_the_exact_parameters(run: Run, file: Path, mechanism: str) -> None:
    file.write_text("x,0\nä [b],1000000000\n")
    options = ("--epsilon", "0.1", "--sensitivity", "1/3", "--monotonic", "--mechanism", mechanism, "--json")
    result = run("select", file, *options)
    assert result.code == 0
    assert json.loads(result.out) == {
        "candidate": "ä [b]",
        "index": 1,
        "mechanism": mechanism,
        "epsilon": "0.1",
        "sensitivity": "1/3",
        "monotonic": True,
        "guarantee": {"epsilon": "0.1", "zcdp": MECHANISMS[mechanism]("0.1").guarantee.zcdp},
        "ledger_id": None,
        "estimate": "",
        "accuracy": None,
        "repeated": False,
        "charged": None,
        "receipt": None,
    }


def test_a_ledger_is_charged_before_the_choice(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text("label,score\nx,0\nwinner,1000000000\n")
    ledger = tmp_path / "a.ledger"
    ask = ("select", file, "--mechanism", "exponential", "--monotonic", "--ledger", ledger)
    first = run(*ask, "--epsilon", "0.6", "--budget", "1")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines()[0] == "winner"
    assert first.out.endswith("; ledger entry 1 (charged epsilon 0.6)\n")
    [entry] = Ledger(ledger).entries()
    assert (entry.mechanism, entry.epsilon) == ("exponential", Fraction(3, 5))
    assert entry.what == {"question": "select", "candidates": 2, "sensitivity": "1", "monotonic": True}
    refused = run(*ask, "--epsilon", "0.6")
    assert (refused.code, refused.out) == (3, "")
    assert Ledger(ledger).spent == Fraction(3, 5)
    assert run(*ask, "--epsilon", "0.1", "--what", "favourite drink").code == 0
    assert Ledger(ledger).entries()[1].what["question"] == "favourite drink"


def test_a_request_is_repeated_on_the_same_scores_only(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text("\n".join(["1"] * 50))
    ask = ("select", file, "--epsilon", "0.1", "--ledger", tmp_path / "a.ledger", "--request-id", "r", "--json")
    first = run(*ask, "--budget", "1")
    assert json.loads(first.out)["receipt"]["id"] == 1
    repeated = {**json.loads(first.out), "repeated": True}
    assert all(json.loads(run(*ask).out) == repeated for _ in range(5))
    assert run(*ask[:-1]).out.endswith("; ledger entry 1 (repeated, nothing charged)\n")
    file.write_text("\n".join(["1"] * 49 + ["2"]))
    refused = run(*ask)
    assert (refused.code, refused.out) == (2, "")
    assert "on other data" in refused.err
    assert Ledger(tmp_path / "a.ledger").spent == Fraction(1, 10)


def test_a_ledger_of_another_data_set_is_refused(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text("1\n2\n")
    ask = ("select", file, "--epsilon", "0.1", "--ledger", tmp_path / "a.ledger")
    assert run(*ask, "--budget", "1", "--dataset", "survey").code == 0
    assert run(*ask, "--dataset", "survey").code == 0
    for other in ((), ("--dataset", "x")):
        refused = run(*ask, *other)
        assert (refused.code, refused.out) == (2, "")
        assert "belongs to the data set 'survey'" in refused.err


def test_named_columns(run: Run, file: Path) -> None:
    file.write_text("name,year,patients\nfirst,9999,0\nsecond,0,1000000000\n")
    result = run("select", file, "--epsilon", "1", "--column", "patients", "--label", "name")
    assert result.out.splitlines()[0] == "second"


def test_standard_input(run: Run) -> None:
    result = run("select", "-", "--epsilon", "1", stdin="\ufeffa,0\r\nö,1000000000\r\n".encode())
    assert result.out.splitlines()[0] == "ö"


@pytest.mark.parametrize(
    ("lower", "higher", "epsilon"),
    [(str(2**60), str(2**60 + 1), "1e6"), ("0.1", "0.1" + "0" * 30 + "1", "1e40")],
    ids=["integers beyond 2**53", "decimals"],
)
def test_scores_that_floats_cannot_tell_apart(run: Run, file: Path, lower: str, higher: str, epsilon: str) -> None:
    """Rounded to floats all are tied, and the winner would be found once in a thousand times."""
    file.write_text(f"{lower}\n" * 700 + f"{higher}\n" + f"{lower}\n" * 299)
    assert json.loads(run("select", file, "--epsilon", epsilon, "--json").out)["index"] == 700


def test_nothing_else_derived_from_the_scores_is_printed(run: Run, file: Path) -> None:
    file.write_text(f"loser,0\nwinner,{PRIVATE}\n")
    for options in ((), ("--json",)):
        result = run("select", file, "--epsilon", "1", *options)
        assert "winner" in result.out
        assert PRIVATE not in result.out + result.err
        assert "loser" not in result.out + result.err


def test_a_label_is_printed_as_text(run: Run, file: Path) -> None:
    label = "[red]:smile:[/red] \x1b[31m" + "long " * 60 + "end"
    file.write_text(f"{label},1000000000\nx,0\n")
    expected = label.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert run("select", file, "--epsilon", "1").out.splitlines()[0] == expected
    assert json.loads(run("select", file, "--epsilon", "1", "--json").out)["candidate"] == label


BAD_FILES = {
    "empty": (b"", (), "the file is empty: give one row per candidate"),
    "header only": (b"label,score\n", (), "no candidate below the header"),
    "not utf-8": (PRIVATE.encode() + b"\n\xff\xfe\n", (), "not UTF-8 text: save it as CSV in UTF-8"),
    "not a number": (f"a,1\nb,{PRIVATE}x\n".encode(), (), "score on line 2 is not a number: write numbers like"),
    "decimal comma": (f'a,1\nb,"{PRIVATE},5"\n'.encode(), (), "score on line 2 is not a number"),
    "semicolons": (f"a;1\nb;{PRIVATE}\n".encode(), (), "fields of line 1 are not separated by commas"),
    "nan": (f"a,{PRIVATE}\nb,NaN\n".encode(), (), "score on line 2 is missing, NaN or infinite"),
    "missing": (f"a,{PRIVATE}\nb,\n".encode(), (), "score on line 2 is missing, NaN or infinite: drop or replace"),
    "too large": (f"1\n{PRIVATE}e4001\n".encode(), (), "score on line 2 is beyond 1e4000"),
    "too small": (f"1\n{PRIVATE}e-9999\n".encode(), (), "nearer to zero than 1e-4000"),
    "too many digits": ((PRIVATE * 600 + "\n").encode(), (), "score on line 1 is beyond 1e4000"),
    "no label": (f"a,1\n,{PRIVATE}\n".encode(), (), "line 2 has no label"),
    "too few fields": (f"a,1\n{PRIVATE}\n".encode(), (), "line 2 does not have 2 fields"),
    "too many fields": (f"a,1\n\nb,2,{PRIVATE}\n".encode(), (), "line 3 does not have 2 fields"),
    "many columns": (
        f"a,{PRIVATE},3\n".encode(),
        (),
        "has 3 columns, but one (score) or two (label, score) are expected: name",
    ),
    "open quote": (f'a,1\nb,"{PRIVATE}\n'.encode(), (), "is not valid CSV: check its quotes"),
    "long field": (f"{PRIVATE}\n{'x' * 140_000}\n".encode(), (), "line 2 is not valid CSV"),
    "unknown column": (
        f"name,patients\na,{PRIVATE}\n".encode(),
        ("--column", "Patients"),
        "no column 'Patients': give --column one of 'name', 'patients'",
    ),
    "unknown label": (
        f"name,patients\na,{PRIVATE}\n".encode(),
        ("--column", "patients", "--label", "id"),
        "no column 'id': give --label one of 'name', 'patients'",
    ),
    "many unknown": (
        ",".join(f"column{i}" for i in range(30)).encode(),
        ("--column", "c"),
        "'column18', 'column19', ...",
    ),
    "a sign and no header": (f"a,${PRIVATE}\nb,2\n".encode(), (), "the score on line 1 is not a number"),
    "a sign and a column": (f"a,<{PRIVATE}\nb,2\n".encode(), ("--column", "c"), "--column needs a header row"),
    "no header": (f"a,{PRIVATE}\nb,2\n".encode(), ("--column", "c"), "--column needs a header row"),
    "named, not a number": (
        f"n,p,q\na,{PRIVATE}x,1\n".encode(),
        ("--column", "p"),
        "score on line 2 is not a number",
    ),
    "ambiguous": (f"p,p\n1,{PRIVATE}\n".encode(), ("--column", "p"), "has 2 columns named 'p': rename one"),
}


@pytest.mark.parametrize(("content", "options", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_without_its_content(
    run: Run, file: Path, content: bytes, options: tuple[str, ...], message: str
) -> None:
    file.write_bytes(content)
    result = run("select", file, "--epsilon", "1", *options)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(f"error: {file}: ")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert PRIVATE not in result.err


def test_a_missing_file(run: Run, file: Path) -> None:
    result = run("select", file, "--epsilon", "1")
    assert (result.code, result.err) == (2, f"error: {file}: there is no such file: check the path\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows reports a directory as a lack of permission")
def test_a_directory(run: Run, tmp_path: Path) -> None:
    result = run("select", tmp_path, "--epsilon", "1")
    expected = f"error: {tmp_path}: this is a directory: give the path of one CSV file\n"
    assert (result.code, result.err) == (2, expected)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows reports a long name as a missing file")
def test_a_path_that_cannot_be_opened(run: Run, tmp_path: Path) -> None:
    result = run("select", tmp_path / ("y" * 5000), "--epsilon", "1")
    assert result.code == 2
    assert "the file cannot be read (File name too long): check its path and permissions" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", "0"), "error: epsilon must be > 0"),
        (("--epsilon", "much"), "error: epsilon must be a number"),
        (("--epsilon", "1", "--sensitivity", "0"), "error: sensitivity must be > 0"),
        (("--epsilon", "1", "--label", "a"), "error: --label needs --column"),
        (
            ("--epsilon", "1", "--column", "a", "--label", " a"),
            "error: --label and --column must name different columns",
        ),
        (("--epsilon", "1", "--budget", "1"), "error: --budget needs a ledger: name its file with --ledger"),
        (("--epsilon", "1", "--request-id", "r"), "error: --request-id needs a ledger"),
        (("--epsilon", "1", "--dataset", "d"), "error: --dataset needs a ledger"),
        (("--epsilon", "1", "--ledger", "no.ledger"), "error: there is no ledger no.ledger: give --budget to create"),
        (("--epsilon", "1", "--mechanism", "best"), "error: mechanism must be one of auto, permute-and-flip"),
        ((), "error: give exactly one of epsilon and rho"),
        (("--epsilon", "1", "--rho", "1"), "error: give exactly one of epsilon and rho"),
    ],
)
def test_bad_options_are_refused_before_the_file_is_read(
    run: Run, file: Path, options: tuple[str, ...], message: str
) -> None:
    """The file does not exist, and the message is about the option all the same."""
    result = run("select", file, *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert "no such file" not in result.err
    assert "Traceback" not in result.err


def test_an_error_of_the_library_has_no_traceback(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_dry(self: PermuteAndFlip, scores: object) -> int:
        raise DPSelectError("the source of bits ran dry")

    monkeypatch.setattr(PermuteAndFlip, "select", run_dry)
    file.write_text("1\n2\n")
    result = run("select", file, "--epsilon", "1")
    assert (result.code, result.out, result.err) == (2, "", "error: the source of bits ran dry\n")
