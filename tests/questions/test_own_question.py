"""A question that is defined outside the package is asked, planned, checked and charged as the others are.

It is one record with its options, and one call that registers its name. No other file knows of it.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import dpselect
from dpselect import Ledger, analysis
from dpselect.accounting.budget import Budget, Price
from dpselect.cli import main
from dpselect.errors import BudgetExceeded, InvalidType, InvalidValue
from dpselect.explore.answers import asked_of
from dpselect.explore.app import Explorer
from dpselect.explore.scores import made
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.questions import Mode
from dpselect.questions.methods import Peel, negated
from dpselect.questions.options import QUESTIONS, Named, Option, listed, option
from dpselect.questions.question import OF_TABLE, Asked, Draw, OfTable, Question
from dpselect.questions.rows import Engine, Individuals
from tests.behaviour.replay import RELATIONS, apart
from tests.behaviour.test_neighbours import TEXT, TEXT_IN_GROUPS, TEXT_ROWS

LISTED = ["a", "b", "c"]


class Fewest(Peel):
    """One selection by negated counts. One person moves all of them in the same direction, or none."""

    name: ClassVar[str] = "fewest"

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        assert lengths is None
        return [mechanism.select(negated(scores))]


@dataclass(frozen=True, kw_only=True)
class Least(OfTable):
    """The listed value that fewest people have."""

    name: ClassVar[str] = "least"
    candidates: Any = option(
        Option(
            ("--among",),
            "LIST|FILE",
            "The public values to choose from.",
            listed,
            planned={"metavar": "N|LIST|FILE", "help": "Number of values, or the values."},
        )
    )
    among: Any = field(default=None, repr=False, metadata=OF_TABLE)

    @classmethod
    def about(cls, table: Asked, column: Any, price: Price, *, candidates: Any, **given: Any) -> OfTable:
        values = table.among(column, candidates, None)
        return super().about(table, column, price, candidates=values.size, among=values, **given)

    @property
    def size(self) -> int:
        return int(self.candidates)

    @property
    def claim(self) -> Claim:
        return stated(None, self.is_added)

    @property
    def title(self) -> str:
        return f"The least common of {self.candidates:,} candidates{self.in_groups}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        return f"The chosen value has at most {average}, {usual} or {rare} more people than the least common one."

    def entry(self) -> dict[str, Any]:
        return {"question": self.name, "column": self.column.name, **self.among.entry()}

    def estimate(self, individuals: Individuals) -> str:
        return f"the value that fewest {individuals.noun} have{individuals.in_each_group}"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        how = Fewest(1, self.size, ordered=True)
        chosen = engine.chosen(self.column, self.among, individuals, how, draw.mechanism)
        return individuals.by_group([value for [value] in chosen])


NAMED = Named(
    "least",
    Least,
    """
    Return the candidate that fewest people have, privately.

    Example: dpselect least visits.csv --column diagnosis --among I10,E11 --person patient --epsilon 1
    """,
    """
    Plan `dpselect least`: how many more people the chosen value can have than the least common one.

    Example: dpselect plan least --among 30 --epsilon 1
    """,
    title="Least common value",
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, NAMED.name, NAMED)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_with(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dpselect", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run_with


ROWS = pa.table({"who": range(900), "x": ["a"] * 500 + ["b"] * 100 + ["c"] * 300, "g": ["p", "q"] * 450})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    write_csv(ROWS, path)
    return path


def test_a_table_answers_it_and_a_ledger_is_charged(tmp_path: Path) -> None:
    table = dpselect.open_table(ROWS, person="who", ledger=tmp_path / "l", budget=2)
    answer = table.ask("least", "x", candidates=LISTED, epsilon=1, request_id="monday")
    assert (answer.value, answer.estimate) == ("b", "the value that fewest people have")
    planned = analysis.plan(question="least", candidates=3, epsilon=1)
    assert answer.accuracy.average == planned.accuracy["permute-and-flip"].average
    assert table.ask("least", "x", candidates=LISTED, epsilon=1, request_id="monday").repeated
    grouped = table.group_by("g", groups=["p", "q"])
    assert grouped.ask("least", "x", candidates=LISTED, epsilon=1).value == {"p": "b", "q": "b"}
    entries = Ledger(tmp_path / "l").entries()
    assert [entry.what["question"] for entry in entries] == ["least", "least"]
    with pytest.raises(BudgetExceeded):
        table.ask("least", "x", candidates=LISTED, epsilon=1)
    for other, value in (("shade", 1), ("max_groups", 2), ("delta", "1e-9")):
        with pytest.raises(InvalidType, match=f"{other} is not a parameter of least, which takes candidates"):
            table.ask("least", "x", candidates=LISTED, epsilon=1, **{other: value})


@dataclass(frozen=True, kw_only=True)
class Heavy(Mode):
    """It says that one person changes a count by five, and leaves the draw to a question that says by one."""

    name: ClassVar[str] = "heavy"

    @property
    def claim(self) -> Claim:
        return stated(5, self.is_added)


@dataclass(frozen=True, kw_only=True)
class Thrice(Mode):
    """It says that it draws three times, and leaves the price to a question that draws once."""

    name: ClassVar[str] = "thrice"

    @property
    def draws(self) -> int:
        return 3 * self.max_groups


@dataclass(frozen=True, kw_only=True)
class Cheap(Least):
    """It charges for one draw of the two that it claims."""

    name: ClassVar[str] = "cheap"

    @property
    def rounds(self) -> int:
        return 2

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:
        return replace(super().draw(price, budget), count=1)


@pytest.mark.parametrize("record", [Heavy, Thrice, Cheap])
def test_a_question_that_draws_otherwise_than_it_claims_is_refused(
    record: type[OfTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUESTIONS, record.name, Named(record.name, record, "help", "help"))
    table = dpselect.open_table(ROWS, person="who", ledger=tmp_path / "l", budget=2)
    for asking in (table.ask, table.draw):
        with pytest.raises(InvalidValue, match=f"question {record.name} claims"):
            asking(record.name, "x", candidates=LISTED, epsilon=1)
    assert not Ledger(tmp_path / "l").entries()


def test_it_is_planned() -> None:
    planned = analysis.plan(question="least", candidates=30, groups=9, max_groups=2, budget="zcdp:0.5", questions=3)
    assert planned.question == Least(candidates=30, groups=9, max_groups=2)
    assert planned.title.startswith("The least common of 30 candidates in each of 9 groups")
    assert planned.to_dict()["question"] == "least"
    with pytest.raises(InvalidValue, match="least needs candidates"):
        analysis.plan(question="least", epsilon=1)


def test_it_is_a_command(run: Run, file: Path) -> None:
    code, out, err = run("least", file, "--column", "x", "--among", "a,b,c", "--person", "who", "--epsilon", "1")
    assert (code, out) == (0, "b\n")
    assert err.startswith("the value that fewest people have\n")
    options = ("--group-by", "g", "--groups", "p,q", "--json")
    _, out, _ = run("least", file, "--column", "x", "--among", "a,b,c", "--person", "who", "--rho", "0.5", *options)
    assert [own["value"] for own in json.loads(out)["value"]] == ["b", "b"]
    assert run("least", file, "--column", "x", "--epsilon", "1")[0] == 2
    code, out, _ = run("plan", "least", "--among", "x,y,z", "--epsilon", "1")
    assert code == 0
    assert "The least common of 3 candidates" in out
    code, out, _ = run("check", file, "--column", "x", "--among", "a,b", "--person", "who")
    assert code == 0
    assert "300" in out, "the rows with c are left out"


@pytest.mark.parametrize("arguments", [(), ("plan",)])
def test_help_shows_it(run: Run, arguments: tuple[str, ...]) -> None:
    assert "least" in run(*arguments, "--help")[1]
    _, out, _ = run(*arguments, "least", "--help")
    assert "--among" in out
    assert "Example: dpselect" in out


def test_it_has_a_json_form() -> None:
    asked = Least(candidates=30, groups=9, max_groups=2)
    assert Question.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    assert Least.schema()["properties"]["candidates"]["description"] == "Number of values, or the values."
    assert "candidates" in Least.schema()["required"]


def test_the_explorer_shows_it() -> None:
    explorer = Explorer()
    start = explorer.start({})
    form = next(form for form in start["questions"] if form["name"] == "least")
    assert (form["title"], form["data"]) == ("Least common value", "scores")
    asked = {"question": "least", "amount": "0.3", "id": start["scores"]["id"], "low": -2, "high": 1}
    found = explorer.look(asked)
    assert found["taken"] in found["rows"]
    assert sum(explorer.draw({**asked, "draws": "100"})["counts"]) == 100
    shown = asked_of(asked, made("close-race", 30))
    chosen = shown.answers(shown.taken, 100, 60.0)[:, 0]
    losses = shown.data.losses
    assert losses[chosen].mean() > 1.3 * losses.mean(), "those that fewest people have"
    assert explorer.details(asked)["command"].startswith("dpselect plan least --among=")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("world", [TEXT, TEXT_ROWS, TEXT_IN_GROUPS], ids=["people", "rows", "groups"])
def test_neighbours_are_as_near_as_is_charged(world: Any, relation: str) -> None:
    def ask(table: Any) -> Any:
        own = table.group_by("g", groups=["p", "q"], max_groups=2) if "g" in world.columns else table
        return own.ask("least", "x", candidates=LISTED, epsilon="4")

    found = apart(world, ask, relation)
    assert found.is_private
    assert found.share > 0.3
