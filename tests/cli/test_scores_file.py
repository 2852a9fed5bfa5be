import csv
import io
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.errors import DPSelectError, InvalidValue
from dpselect.score_files import ScoreFile, read_scores
from tests.carried import carried
from tests.cli.conftest import Run

PRIVATE = "48151623"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scores") / "scores.csv"


def read(file: Path, content: str | bytes, **options: str) -> ScoreFile:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_scores(str(file), **options)


@pytest.mark.parametrize(
    "content",
    [
        "a,1\nb,2.5\n",
        "a,1\r\nb,2.5",
        "a,1\rb,2.5\r",
        "\ufeffa,1\nb,2.5\n",
        "\n\na,1\n  \n\nb,2.5\n\n",
        "a , 1\n b,2.5 \n",
    ],
    ids=["plain", "crlf", "cr", "bom", "blank lines", "spaces"],
)
def test_reads_two_columns_however_the_lines_end(file: Path, content: str) -> None:
    candidates = read(file, content)
    assert candidates.labels == ["a", "b"]
    assert candidates.scores == [1, Decimal("2.5")]


@pytest.mark.parametrize("header", ["", "score\n", "\ufeffscore\r\n"])
def test_a_header_of_one_column_is_no_candidate(file: Path, header: str) -> None:
    candidates = read(file, header + "3\n4\n")
    assert candidates.scores == [3, 4]
    assert candidates.labels is None


@pytest.mark.parametrize("header", ["", "label,score\n", "2020,patients\n"])
def test_a_header_is_recognised_by_its_score_field(file: Path, header: str) -> None:
    assert read(file, header + "7,3\n8,4\n").labels == ["7", "8"]


@pytest.mark.parametrize(
    "first", ["nan", "-inf", "NA", "n/a", "null", "None", "12O", '""', "1_000", "\u0663", "$12", "<5"]
)
def test_a_bad_score_in_the_first_row_is_not_silently_a_header(file: Path, first: str) -> None:
    with pytest.raises(InvalidValue, match="the score on line 1 is"):
        read(file, f"{first}\n1\n")


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("header", ["", "label{}score\n", "\n\nlabel{}score\n"])
@pytest.mark.parametrize("options", [{}, {"column": "score"}])
def test_other_marks_than_commas_are_named(file: Path, mark: str, header: str, options: dict[str, str]) -> None:
    line = header.count("\n") or 1
    with pytest.raises(InvalidValue, match=f"the fields of line {line} are not separated by commas: write label,score"):
        read(
            file,
            f"{header.format(mark)}Fieber{mark}12,5\nHusten{mark}9\n" if header else f"Fieber{mark}12\n",
            **options,
        )
    assert read(file, f"a{mark}b,1\n").labels == [f"a{mark}b"]


def test_named_columns_are_taken_wherever_they_are(file: Path) -> None:
    content = "region,year,patients,name\nn,2020,5,x\ns,2021,6,y\n"
    candidates = read(file, content, column="patients", label="name")
    assert candidates.scores == [5, 6]
    assert candidates.labels == ["x", "y"]
    assert read(file, content, column="year").scores == [2020, 2021]
    assert read(file, content, column="year").labels is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993", 2**53 + 1),
        ("-170141183460469231731687303715884105729", -(2**127) - 1),
        ("0" * 5000 + "7", 7),
        ("0.1", Decimal("0.1")),
        ("0.1000000000000000000000000000000000001", Decimal("0.1000000000000000000000000000000000001")),
        ("9007199254740993.5", Decimal("9007199254740993.5")),
        ("1e-4000", Decimal("1e-4000")),
        ("-.5", Decimal("-0.5")),
        ("5.", Decimal(5)),
        ("+3", 3),
        ("0e999999999", Decimal(0)),
    ],
)
def test_values_are_exact(file: Path, text: str, value: int | Decimal) -> None:
    [score] = read(file, f"{text}\n").scores
    assert score == value
    assert type(score) is type(value)


# What is wrong, with the line of a command and the message, by the content of the file.
BAD_FILES = {
    "empty": ("", "", "the file is empty: give one row per candidate"),
    "header only": ("label,score\n", "", "no candidate below the header"),
    "not utf-8": (f"{PRIVATE}\n\xff\xfe\n", "", "not UTF-8 text: save it as CSV in UTF-8"),
    "not a number": (f"a,1\nb,{PRIVATE}x\n", "", "score on line 2 is not a number: write numbers like"),
    "decimal comma": (f'a,1\nb,"{PRIVATE},5"\n', "", "score on line 2 is not a number"),
    "semicolons": (f"a;1\nb;{PRIVATE}\n", "", "fields of line 1 are not separated by commas"),
    "nan": (f"a,{PRIVATE}\nb,NaN\n", "", "score on line 2 is missing, NaN or infinite"),
    "missing": (f"a,{PRIVATE}\nb,\n", "", "score on line 2 is missing, NaN or infinite: drop or replace"),
    "too large": (f"1\n{PRIVATE}e4001\n", "", "score on line 2 is beyond 1e4000"),
    "too small": (f"1\n{PRIVATE}e-9999\n", "", "nearer to zero than 1e-4000"),
    "too many digits": (PRIVATE * 600 + "\n", "", "score on line 1 is beyond 1e4000"),
    "no label": (f"a,1\n,{PRIVATE}\n", "", "line 2 has no label"),
    "too few fields": (f"a,1\n{PRIVATE}\n", "", "line 2 does not have 2 fields"),
    "too many fields": (f"a,1\n\nb,2,{PRIVATE}\n", "", "line 3 does not have 2 fields"),
    "many columns": (f"a,{PRIVATE},3\n", "", "has 3 columns, but one (score) or two (label, score) are expected: name"),
    "open quote": (f'a,1\nb,"{PRIVATE}\n', "", "is not valid CSV: check its quotes"),
    "long field": (f"{PRIVATE}\n{'x' * 140_000}\n", "", "line 2 is not valid CSV"),
    "unknown column": (
        f"name,patients\na,{PRIVATE}\n",
        "--column Patients",
        "no column 'Patients': give --column one of 'name', 'patients'",
    ),
    "unknown label": (
        f"name,patients\na,{PRIVATE}\n",
        "--column patients --label id",
        "no column 'id': give --label one of 'name', 'patients'",
    ),
    "many unknown": (",".join(f"column{i}" for i in range(30)), "--column c", "'column18', 'column19', ..."),
    "a sign and no header": (f"a,${PRIVATE}\nb,2\n", "", "the score on line 1 is not a number"),
    "a sign and a column": (f"a,<{PRIVATE}\nb,2\n", "--column c", "--column needs a header row"),
    "no header": (f"a,{PRIVATE}\nb,2\n", "--column c", "--column needs a header row"),
    "named, not a number": (f"n,p,q\na,{PRIVATE}x,1\n", "--column p", "score on line 2 is not a number"),
    "ambiguous": (f"p,p\n1,{PRIVATE}\n", "--column p", "has 2 columns named 'p': rename one"),
}


@pytest.mark.parametrize(("content", "options", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_without_its_content(
    run: Run, file: Path, content: str, options: str, message: str
) -> None:
    file.write_bytes(content.encode("latin-1"))
    result = run("select", file, "--epsilon", "1", *options.split())
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"error: {file}: ")
    assert message in result.err
    assert PRIVATE not in result.err


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


def test_the_representation_keeps_scores_secret(file: Path) -> None:
    assert PRIVATE not in repr(read(file, f"a,{PRIVATE}\n"))


def test_standard_input_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO("\ufefflabel,score\nä,1\n".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(buffer))
    assert read_scores("-").labels == ["ä"]
    assert not buffer.closed


LABELS = st.text(st.characters(exclude_categories=["Cs"])).map(str.strip).filter(bool)
SCORES = st.integers() | st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: abs(d.adjusted()) < 4000)


@given(rows=st.lists(st.tuples(LABELS, SCORES), min_size=1))
def test_what_csv_writes_is_read_back(file: Path, rows: list[tuple[str, int | Decimal]]) -> None:
    with open(file, "w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream).writerows(rows)
    candidates = read_scores(str(file))
    assert candidates.labels == [label for label, _ in rows]
    assert candidates.scores == [score for _, score in rows]


PIECES = st.sampled_from(
    (
        *("1", "-0.5", "1e9", "nan", "x", "score", "9" * 5000, "x" * 140_000, "1e99999999999999999999", "0e-999999999"),
        *('"', "'", ",", ";", "\r", "\n", "\r\n", " ", "\0", "\ufeff"),
    )
)
TEXT = st.text().map(str.encode) | st.lists(PIECES).map(lambda pieces: "".join(pieces).encode())
NAMES = st.none() | st.sampled_from(["score", "x", "1", ""])


def read_or_refuse(file: Path, **options: str | None) -> ScoreFile | DPSelectError:
    try:
        return read_scores(str(file), **options)
    except DPSelectError as error:
        return error


@given(content=TEXT | st.binary(), column=NAMES, label=NAMES)
def test_any_file_is_read_or_refused(file: Path, content: bytes, column: str | None, label: str | None) -> None:
    file.write_bytes(content)
    outcome = read_or_refuse(file, column=column, label=label)
    if isinstance(outcome, DPSelectError):
        assert len(str(outcome).splitlines()) == 1
        return
    assert outcome.scores
    assert all(type(score) is int or (type(score) is Decimal and score.is_finite()) for score in outcome.scores)
    assert outcome.labels is None or len(outcome.labels) == len(outcome.scores)


DIRTY = st.sampled_from(
    [
        PRIVATE,
        f"{PRIVATE}x",
        f"-{PRIVATE}e",
        f"{PRIVATE}e99999",
        f"x{PRIVATE}",
        f'"{PRIVATE}',
        f'"{PRIVATE}"x',
        f"1,{PRIVATE}",
        "",
    ]
)


@given(rows=st.lists(st.lists(DIRTY, min_size=1, max_size=3).map(",".join), min_size=1, max_size=4))
def test_no_message_contains_a_field(file: Path, rows: list[str]) -> None:
    file.write_text("\n".join(rows))
    outcome = read_or_refuse(file)
    if isinstance(outcome, DPSelectError):
        assert PRIVATE not in carried(outcome)
