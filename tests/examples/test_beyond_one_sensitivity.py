"""The worked examples of score ranges, unequal sensitivities and lazy scores, and the tables that the docs print."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dpbench import FOLDER, needs_data
from tests.examples.test_audits import EXAMPLES, example

DOCS = Path(__file__).parents[2] / "docs"


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
