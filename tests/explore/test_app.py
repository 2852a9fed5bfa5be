"""Scores in, answers out: files that are refused, what stays in memory, and code that gives the same numbers."""

import contextlib
import io
import json
import shlex
import subprocess
import sys
import tempfile
from decimal import Decimal

import pytest

from dpselect import errors
from dpselect.cli import main
from dpselect.explore import app, curves
from dpselect.explore.answers import asked_of
from dpselect.explore.scores import ScoreSet, file_words
from dpselect.score_files import ScoreFile
from tests.explore.serving import KEY, served
from tests.explore.test_answers import cells_of

MARKER = "98765432123"
LABELLED = b'label,score\n"a, ""b""",12\nc,9.5\nd,1e1\n'


def test_scores_are_read_exactly(explorer):
    status, answer = explorer.load(
        "\N{BYTE ORDER MARK}name,x\r\nä,0.1\r\nb,9007199254740993\r\n".encode(), name="f.csv"
    )
    assert status == 200
    assert (answer["name"], answer["candidates"]) == ("f.csv", 2)
    _, found = explorer.ask("look", id=answer["id"], question="select")
    assert found["labels"] == ["ä", "b"]
    assert found["notes"] == ["0.1", "9007199254740993"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (f"{MARKER}\nx{MARKER}\n".encode(), "the score on line 2 is not a number"),
        (f"1,2,{MARKER}\n".encode(), "3 columns.*“Score column”"),
        (f"{MARKER}\xff\n".encode("latin-1"), "not UTF-8"),
        (f"0\n{MARKER}e400\n".encode(), "differ by more than a float"),
        (f"{MARKER}\n".encode() * 10_001, "at most 10,000 candidates"),
    ],
)
def test_a_bad_file_gets_a_clear_message_without_its_contents(explorer, content, message):
    status, answer = explorer.load(content)
    assert status == 400
    with pytest.raises(errors.InvalidValue, match=message):
        raise errors.InvalidValue(answer["error"])
    assert MARKER not in answer["error"]
    assert "--" not in answer["error"]  # the page has fields, not options


def test_columns_are_named(explorer):
    content = b"x,count,who\n1,5,a\n2,6,b\n"
    _, scores = explorer.load(content, column="count", label="who")
    assert explorer.ask("look", id=scores["id"])[1]["labels"] == ["a", "b"]
    status, answer = explorer.load(content, label="who")
    assert status == 400
    assert "“Label column”" in answer["error"]


def test_a_large_file_is_refused(explorer):
    assert explorer.load(b"1\n" * 2**18)[0] == 400  # read, and too many candidates
    status, answer = explorer.load(b"1\n" * (2**19 + 1))
    assert (status, answer["error"]) == (
        413,
        "the file is larger than 1 MB: this page takes scores, one line for each candidate, not the rows of a table",
    )


WRITES = []
WATCHING = []


def watch(event, arguments):
    if not WATCHING:
        return
    if event == "open" and (set(str(arguments[1] or "")) & set("wax+") or (arguments[2] or 0) & 3):
        WRITES.append(event)
    if event.startswith(("tempfile.", "os.mkdir", "shutil.")):
        WRITES.append(event)


def test_an_upload_never_touches_the_disk(explorer):
    """An audit hook of the interpreter sees every file that is opened to be written. It notices a temporary file."""
    sys.addaudithook(watch)  # for good, and silent when nobody watches
    WRITES.clear()
    WATCHING.append(True)
    try:
        assert explorer.load(b"a,1\n" * 9_999)[0] == 200
        assert WRITES == []
        with tempfile.SpooledTemporaryFile(max_size=1) as spooled:  # as a multipart form would do
            spooled.write(b"12")
        assert WRITES
    finally:
        WATCHING.clear()


def test_scores_are_forgotten_and_the_answer_says_so(explorer):
    _, first = explorer.load(b"1\n2\n")
    for _ in range(16):
        explorer.load(b"1\n2\n")
    status, answer = explorer.ask("look", id=first["id"])
    assert (status, answer["error"]) == (404, "these scores are no longer in memory: load them again")
    assert explorer.ask("look", id=first["id"], question="quantiles")[0] == 200, "made-up people need no scores"


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b"\xff", b'{"id": 7}', b'{"id": null}'])
def test_a_request_that_is_no_object_is_refused(explorer, body):
    response, content = explorer.request("POST", f"/{KEY}/look", body)
    assert response.status == 400
    assert json.loads(content)["error"]


def test_a_failure_tells_its_kind_only(explorer, monkeypatch):
    def fails(*_):
        raise RuntimeError(MARKER)

    monkeypatch.setattr(curves, "look", fails)
    _, scores = explorer.load(b"1\n2\n")
    status, answer = explorer.ask("look", id=scores["id"])
    assert (status, answer["error"]) == (500, "the explorer failed (RuntimeError): please report it")


@pytest.mark.parametrize("draws", ["1", "100", "10000"])
def test_draws_land_on_candidates(explorer, draws):
    _, scores = explorer.load(b"0\n1000\n-5\n")
    status, answer = explorer.ask("draw", question="select", id=scores["id"], draws=draws, amount="1")
    assert status == 200
    assert answer["counts"] == [0, int(draws), 0]  # the others have a probability below 1e-200
    assert answer["total"] == int(draws)
    assert explorer.ask("draw", id=scores["id"], draws="7")[0] == 400


def test_draws_follow_the_chosen_mechanism(explorer):
    """Two candidates one apart at epsilon 2, of which the worse is drawn with probability e^-1 / 2 or 1 / (1 + e).

    These are 0.184 and 0.269: in 10,000 draws the counts are nineteen standard deviations of 45 apart.
    """
    _, scores = explorer.load(b"0\n1\n")
    worse = [
        explorer.ask("draw", question="select", id=scores["id"], draws="10000", amount="2", choice=name)[1]["counts"][0]
        for name in ("permute-and-flip", "exponential")
    ]
    assert worse == pytest.approx([1839, 2689], abs=10 * 45)
    assert worse[1] - worse[0] > 400


CASES = [
    (b"5\n-3\n4\n", {"amount": "0.3"}),
    (LABELLED, {"amount": "1/3", "sensitivity": "0.5", "monotonic": True, "choice": "exponential"}),
    (b'a\x1b]0;x\x07,1\n"two\nlines\nEND_OF_SCORES\n",2\n$(touch x),3\n', {"choice": "noisy-max", "currency": "zcdp"}),
]


@pytest.mark.parametrize(("content", "settings"), CASES)
def test_the_code_runs_and_gives_the_same_numbers(explorer, tmp_path, content, settings):
    _, scores = explorer.load(content)
    _, figures = explorer.ask("look", question="select", id=scores["id"], **settings)
    _, code = explorer.ask("details", question="select", id=scores["id"], **settings)
    mechanism = settings.get("choice", "permute-and-flip")
    shown = cells_of(figures, mechanism)

    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code["python"], "copied", "exec"), {})  # noqa: S102 - what a reader would run
    printed = dict(line.split(": ", 1) for line in output.getvalue().splitlines()[:3])
    assert (
        output.getvalue().splitlines()[3:] == "\n".join(asked_sentences(settings, len(figures["labels"]))).splitlines()
    )
    assert float(printed["expected error"]) == pytest.approx(shown["mean"], rel=1e-12)
    assert float(printed["95 times in 100 at most"]) == shown["error_95"]
    assert json.loads(printed["probabilities"]) == pytest.approx(figures["chances"][mechanism], rel=1e-12)

    comparison, answer = map(json.loads, printed_in_shell(code["command"], tmp_path))
    rows = {row["mechanism"]: row for row in comparison["records"]}
    assert rows[mechanism]["expected_error"] == pytest.approx(shown["mean"], rel=1e-12)
    assert rows[mechanism]["error_95"] == shown["error_95"]
    assert answer["mechanism"] == mechanism
    assert answer["candidate"] in figures["labels"] or answer["candidate"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


def asked_sentences(settings, candidates):
    """The sentences of the plan for these settings."""
    scores = ScoreSet("x", ScoreFile(list(range(candidates)), None))
    return asked_of({"question": "select", **settings}, scores).planned.sentences


PLANNED = [
    {"question": "mode", "groups": "12", "max_groups": "2", "questions": "3"},
    {"question": "top_k", "k": "2", "max_values": "1", "currency": "zcdp", "choice": "margin", "ordered": False},
    {"question": "quantiles", "levels": "0.9", "step": "0.5", "currency": "approximate", "neighbours": "replace"},
    {"question": "quantiles", "levels": "0.1, 0.5, 0.9", "choice": "exponential"},
]


@pytest.mark.parametrize("settings", PLANNED, ids=str)
def test_the_plan_is_the_same_as_code_and_as_a_command(explorer, settings, monkeypatch, capsys):
    _, scores = explorer.load(b"5\n3\n4\n")
    _, figures = explorer.ask("look", id=scores["id"], **settings)
    _, code = explorer.ask("details", id=scores["id"], **settings)
    exec(compile(code["python"], "copied", "exec"), {})  # noqa: S102 - what a reader would run
    printed = " ".join(capsys.readouterr().out.splitlines())
    assert figures["words"][0] in printed
    [line] = code["command"].splitlines()
    monkeypatch.setattr(sys, "argv", [*shlex.split(line), "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert figures["words"][0] == " ".join(json.loads(capsys.readouterr().out)["sentences"])[: len(figures["words"][0])]


def printed_in_shell(text, folder):
    """What the commands print, with our interpreter in the place of the entry point and JSON for programs."""
    ours = f'dpselect() {{ {shlex.join([sys.executable, "-m", "dpselect"])} "$@" --json; }}'
    words = ["bash", "-ec", f"{ours}\n{text}"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_file_of_the_command_line_is_named(tmp_path):
    first = ScoreSet("x", ScoreFile([1, 2], None), file=file_words("my file.csv", "a b", None))
    with served(first) as running:
        _, start = running.ask("start")
        _, code = running.ask("details", question="select", id=start["scores"]["id"])
    assert code["command"].startswith("dpselect compare 'my file.csv' '--column=a b' --epsilon 1 ")


def test_the_page_begins_with_a_shape(explorer):
    _, start = explorer.ask("start")
    assert start["scores"]["shape"] == "close-race"
    assert len(start["shapes"]) == 5
    assert [one["name"] for one in start["questions"]] == ["mode", "top_k", "quantiles", "select"]
    assert [one["symbol"] for one in start["currencies"]] == ["ε", "\N{GREEK SMALL LETTER RHO}", "ε"]


@pytest.mark.parametrize(
    ("scores", "question"), [([3, 1], "mode"), ([3, -1], "select"), ([3], "select"), ([Decimal("0.5")], "select")]
)
def test_counts_begin_with_the_most_common_value(scores, question):
    first = ScoreSet("x", ScoreFile(scores, None))
    assert app.Explorer(first).start({})["question"] == question


@pytest.mark.parametrize("ends", [{}, {"low": "x", "high": 1}, {"low": 1, "high": 1}, {"low": -1e9, "high": 0}])
def test_a_curve_without_ends_is_refused(explorer, ends):
    _, start = explorer.ask("start")
    status, answer = explorer.ask("curve", id=start["scores"]["id"], **ends)
    assert (status, answer["error"]) == (400, "low and high must be the ends of the slider, in decades")


def test_control_characters_leave_the_labels(explorer):
    _, scores = explorer.load(CASES[2][0])
    labels = explorer.ask("look", id=scores["id"])[1]["labels"]
    assert len(labels) == 3
    assert all(label.isprintable() for label in labels)
