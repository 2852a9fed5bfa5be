"""The scripts of `examples/`: they run, and what they say, and the docs say of them, is so."""

import ast
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import dpselect
from dpselect.analysis import worst_case_error
from dpselect.research.figures import ratio
from tests.dpbench import FOLDER, needs_data
from tests.examples.test_audits import EXAMPLES, example

DOCS = EXAMPLES.parent / "docs"


@pytest.mark.parametrize("name", ["most_common_item", "one_figure"])
def test_scripts_run(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    example(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 5


def test_only_the_public_interface_is_used():
    """Examples use public names, or names that the reference documents: neither moves."""
    reference = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: (dpselect\.\S+)$", reference, re.MULTILINE))
    for path in EXAMPLES.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("import dpselect", "from dpselect")):
                _, home, *names = re.findall(r"[\w.]+", line)
                room = home.removeprefix("dpselect").removeprefix(".")
                public = not room or room in dpselect.__all__
                assert public or {f"{home}.{name}" for name in names[1:]} <= documented, (path.name, line)


def test_the_most_common_item(tmp_path):
    """Bread leads by hundreds of customers, so the answer is sure; the ledger has what it cost."""
    script = example("most_common_item")
    answer = script.release(tmp_path)
    assert answer.value == "bread"
    assert str(answer.epsilon) == "1/20"
    assert dpselect.Ledger(tmp_path / "purchases.ledger").spent == answer.epsilon
    smaller = dpselect.PermuteAndFlip("0.02", monotonic=True)
    assert worst_case_error(smaller, len(script.CATALOGUE)).error > script.MOST_SHORT


def test_the_figure_is_that_of_the_paper(tmp_path, monkeypatch):
    script = example("one_figure")
    curves = script.curves()
    for n, line in curves.items():
        expected = [ratio(float(p), n) for p in script.PROBABILITIES]
        np.testing.assert_allclose(line, expected, rtol=1e-9)
        assert max(line) < 2
    monkeypatch.setattr(sys, "argv", ["one_figure.py", str(tmp_path / "figure.png")])
    script.main()
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_mwem(capsys):
    """Permute-and-flip's selections are better in every round, by less than two; both histograms learn."""
    script = example("mwem")
    found = script.study(40)
    assert found["gains"].shape == (40, script.ROUNDS)
    assert (found["gains"] >= 1).all()
    assert (found["gains"] < 2).all()
    assert found["gains"].mean() > 1.2
    problem = script.make_problem()
    flat = np.full(script.BINS, script.PEOPLE / script.BINS)
    unlearnt = np.abs(problem.queries @ (problem.histogram - flat)).max()
    for kind in script.KINDS:
        assert found[kind.__name__].mean() < unlearnt / 4
    script.main(repeats=3)
    assert "permute-and-flip gains" in capsys.readouterr().out


def test_mwem_has_its_sensitivity():
    """One exchanged person changes no miss by more than one."""
    script = example("mwem")
    problem, generator = script.make_problem(), np.random.default_rng(3)
    flat = np.full(script.BINS, script.PEOPLE / script.BINS)

    def misses(histogram):
        return np.abs(problem.queries @ (histogram - flat))

    largest = 0.0
    for _ in range(200):
        moved = problem.histogram.copy()
        gone, come = generator.choice(np.flatnonzero(moved)), generator.integers(script.BINS)
        moved[gone] -= 1
        moved[come] += 1
        largest = max(largest, float(np.abs(misses(moved) - misses(problem.histogram)).max()))
    assert largest == pytest.approx(1, abs=1e-9)


def test_score_range():
    wide, tight = example("score_range").errors()
    assert wide > 5 * tight


def test_unequal_sensitivities():
    """The docs' table is what the example computes."""
    text = (DOCS / "unequal.md").read_text(encoding="utf-8")
    for row in example("unequal_sensitivities").rows():
        line = f"| {row.name} | {row.largest:,} | {row.epsilon} | {row.common:,.1f} | {row.generalized:,.1f} |"
        assert line in text


def assert_documented(row):
    """All but what was measured is what the docs print."""
    start = f"| {row.task} | {row.bound:,} | {row.epsilon} | {row.candidates:,} | {row.flip:,.1f} | "
    end = f" | {row.exponential:,.1f} | {row.error:,.1f} |"
    lines = (DOCS / "lazy.md").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(start) and line.endswith(end) for line in lines)


@pytest.fixture
def lazy_scores(monkeypatch):
    module = example("lazy_scores")
    monkeypatch.setattr(module, "RUNS", 1)
    return module


MODELS = """
import sys
sys.path.insert(0, sys.argv[1])
import lazy_scores
lazy_scores.RUNS = 1
for row in lazy_scores.model_rows():
    print(repr(tuple(row)))
"""


def test_models_in_the_docs(lazy_scores):
    """In a process of its own, because many threads of linear algebra on few busy processors wait for each other."""
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-c", MODELS, str(EXAMPLES)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=alone)
    rows = [lazy_scores.Row(*ast.literal_eval(line)) for line in done.stdout.splitlines()]
    assert len(rows) == 9
    for row in rows:
        assert_documented(row)


@needs_data
def test_histograms_in_the_docs(lazy_scores):
    rows = list(lazy_scores.histogram_rows(str(FOLDER), ("0.001",)))
    assert len(rows) == 10
    for row in rows:
        assert_documented(row)
    lines = []
    lazy_scores.print_rows(iter(rows), lines.append)
    assert len(lines) == 12
