"""A mechanism that is defined outside the package is taken everywhere, without a change elsewhere.

Its selections are covered by the contract suite, of which it is a part (`KINDS` of the files in this folder).
"""

import json
import sys
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies.procedures import Chooser
from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, accounting, analysis, audit
from dpselect.cli import main
from dpselect.errors import InvalidType, InvalidValue
from dpselect.explore.app import Explorer
from dpselect.ledger import Charge
from dpselect.mechanisms import MECHANISMS
from dpselect.questions.plan import affordable_epsilon
from dpselect.research.plotting import of_bar, of_mechanism
from tests import reference
from tests.gumbel import GumbelNoisyMax
from tests.statistical.goodness import assert_fits, assert_rejected

NAME = "gumbel-noisy-max"
NAMES = ["permute-and-flip", "exponential", "noisy-max"]
SCORES = [10, 8, 8, 5, 0]


@pytest.fixture
def fourth(monkeypatch):
    for name in ("research", "scores"):  # their help, which names the mechanisms, is made when they are imported
        import_module(f"dpselect.cli.{name}")
    monkeypatch.setitem(MECHANISMS, NAME, GumbelNoisyMax)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `dpselect` with these arguments; its exit code and what it prints."""

    def run_with(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpselect", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as exit_info:
            main()
        return exit_info.value.code, "".join(capsys.readouterr())

    return run_with


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("".join(f"label{i},{score}\n" for i, score in enumerate(SCORES)))
    return path


def test_without_the_fixture_there_are_three():
    assert list(MECHANISMS) == NAMES
    with pytest.raises(InvalidType, match="mechanism must be"):
        Charge.of(GumbelNoisyMax(1), {})
    with pytest.raises(InvalidValue, match="mechanism must be one of"):
        Charge("a", 1, NAME)


def test_it_draws_from_its_distribution():
    counts = np.bincount(GumbelNoisyMax(1).select_rows([SCORES] * 200_000), minlength=5)
    truth = reference.exponential_pmf(SCORES, 0.5)
    assert_fits(counts, truth)
    assert_rejected(counts, reference.permute_and_flip_pmf(SCORES, 0.5), truth=truth)
    chosen = Chooser(GumbelNoisyMax, 0.5).choose(
        np.tile(np.array(SCORES, float), (200_000, 1)), np.random.default_rng(1)
    )
    assert_fits(np.bincount(chosen, minlength=5), truth)


@pytest.mark.usefixtures("fourth")
def test_the_accountant_takes_it(tmp_path: Path):
    ledger, twin = (Ledger(tmp_path / name, budget=1) for name in ("a.ledger", "b.ledger"))
    entry = ledger.charge(Charge.of(GumbelNoisyMax("0.1"), {"question": "top"}, count=3))
    twin.charge(Charge.of(ExponentialMechanism("0.1"), {"question": "top"}, count=3))
    assert (entry.mechanism, ledger.spent) == (NAME, Fraction(3, 10))
    assert Ledger(tmp_path / "a.ledger").entries()[0].charge == entry.charge
    assert accounting.total(ledger, delta=1e-6) == accounting.total(twin, delta=1e-6)
    flip = accounting.total([Charge.of(PermuteAndFlip("0.1"), {}, count=3)])
    assert flip.zcdp == pytest.approx(4 * accounting.total(ledger).zcdp, rel=0.05), "bounded range is another loss"
    assert affordable_epsilon(NAME, 20, 1.0, 1e-6) == affordable_epsilon("exponential", 20, 1.0, 1e-6)


@pytest.mark.usefixtures("fourth")
def test_the_analysis_takes_it():
    ours, theirs = GumbelNoisyMax("0.3", 2), ExponentialMechanism("0.3", 2)
    assert analysis.worst_case_error(ours, 50) == analysis.worst_case_error(theirs, 50)
    assert analysis.error_bounds(ours, 50) == analysis.error_bounds(theirs, 50)
    assert analysis.epsilon_for(GumbelNoisyMax, SCORES, expected_error=1) == pytest.approx(
        analysis.epsilon_for(ExponentialMechanism, SCORES, expected_error=1)
    )
    with pytest.raises(InvalidType, match="GumbelNoisyMax needs all scores"):
        analysis.expected_evaluations(ours, SCORES)


@pytest.mark.usefixtures("fourth")
@pytest.mark.parametrize("target", [{"epsilon": "0.5"}, {"error": 3}], ids=str)
def test_plans_take_it(run, file, target):
    planned = analysis.plan(**target, questions=5, delta=1e-6, scores=SCORES)
    assert list(planned.promises) == list(planned.on_scores) == [*NAMES, NAME]
    assert planned.promises[NAME].average == planned.promises["exponential"].average
    options = [f"--{name}={value}" for name, value in target.items()]
    code, text = run("plan", "select", *options, "--questions", 5, "--delta", "1e-6", "--scores", file)
    assert code == 0
    rows = [line for line in text.splitlines() if line.startswith(f" {NAME}")]
    assert len(rows) == 2, "once among the promises, once on the scores"
    _, found = run("plan", "select", *options, "--questions", 5, "--delta", "1e-6", "--scores", file, "--json")
    assert [row["mechanism"] for row in json.loads(found)["mechanisms"]] == [*NAMES, NAME]


@pytest.mark.usefixtures("fourth")
def test_comparisons_and_figures_take_it(run, file, tmp_path):
    compared = analysis.compare(SCORES, [0.1, 1])
    assert [record.mechanism for record in compared.records] == [*NAMES, NAME] * 2
    assert compared.records[3].expected_error == pytest.approx(compared.records[1].expected_error)
    lines = compared.plot(tmp_path / "plot.svg").axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 4
    assert len({of_mechanism(kind.title)["color"] for kind in MECHANISMS.values()}) == 4
    assert of_bar(GumbelNoisyMax.title)["label"] == GumbelNoisyMax.title
    code, text = run("compare", file, "--epsilon", "0.1,1")
    assert (code, "gumbel-" in text) == (0, True)
    rows = [line.split() for line in text[text.index("───") :].splitlines()[1:3]]
    assert [(row[0], len(row)) for row in rows] == [("0.1", 12), ("1", 12)]


@pytest.mark.usefixtures("fourth")
def test_audits_take_it(run):
    assert not audit.audit(GumbelNoisyMax(1), 1, runs=2_000).violates
    assert audit.audit(GumbelNoisyMax(8), 1, runs=2_000).violates
    assert not audit.audit_pmf(GumbelNoisyMax(1)).violates
    assert audit.audit_pmf(GumbelNoisyMax("1.1"), 1).violates
    for options in (["--runs", "200"], ["--runs", "200", "--rows"], ["--pmf"]):
        assert run("audit", "--mechanism", NAME, "--epsilon", 1, *options)[0] == 0


@pytest.mark.usefixtures("fourth")
def test_the_command_line_selects_with_it(run, file):
    code, text = run("select", file, "--epsilon", "1000", "--mechanism", NAME)
    assert (code, text.splitlines()[0]) == (0, "label0")
    assert f"chosen by {NAME}" in text


@pytest.mark.usefixtures("fourth")
def test_the_explorer_takes_it():
    explorer = Explorer()
    scores = {"id": explorer.start({})["scores"]["id"]}
    for currency in ("pure", "zcdp", "approximate"):
        asked = {
            **scores,
            "question": "select",
            "currency": currency,
            "amount": "0.2",
            "choice": NAME,
            "monotonic": True,
        }
        found = explorer.look(asked)
        assert found["taken"] == NAME
        assert found["choices"][-1] == {"name": NAME, "title": "report noisy max with Gumbel noise"}
        assert list(found["rows"]) == [*NAMES, NAME]
        for part in ("rows", "means", "chances", "tails"):
            assert found[part][NAME] == found[part]["exponential"]
        errors = explorer.curve({**asked, "low": -2, "high": 1})["errors"]
        assert list(errors) == [*NAMES, NAME]
        needed = explorer.needed({**asked, "error": "5"})["choices"]
        assert needed[NAME] == needed["exponential"]
        assert explorer.begin(asked) == explorer.begin({**asked, "choice": "exponential"})
        assert sum(explorer.draw({**asked, "draws": "100"})["counts"]) == 100
        details = explorer.details(asked)
        assert "from tests.gumbel import GumbelNoisyMax\n" in details["python"]
        assert f"--mechanism {NAME}" in details["command"]
    for question in ("mode", "top_k", "quantiles"):  # it has no runs and no sets, so a table cannot use it
        assert explorer.look({**scores, "question": question})["taken"] != NAME
