"""Workers whose Python cannot run dpselect: the table is refused when it is opened, and nothing is charged."""

import sys

import pytest

import dpselect
from dpselect.tables.spark import session as spark_session
from tests import spark

pytestmark = [*spark.MARKS, pytest.mark.slow]

# What the Python of the workers does first.
STARTS = {
    "no dpselect": "import sys; sys.modules['dpselect'] = None",
    "no Arrow": "import sys; sys.modules['pyarrow'] = None",
    "another version": "import dpselect; dpselect.__version__ = '0.0.7'",
}
# What the error says of the workers; "" where it depends on Spark.
SAID = {
    "no dpselect": "which has none that can be imported:",
    "no Arrow": "",
    "another version": "which has 0.0.7:",
    "no Python": "",
}


@pytest.fixture
def ledger(tmp_path):
    return dpselect.Ledger(tmp_path / "ledger", 1)


def python_that_starts_with(folder, start):
    """The Python of the tests, which runs a line of code before anything else."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(start, encoding="utf-8")
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return str(wrapper)


def rows_of_workers_with(python, monkeypatch):
    """A DataFrame whose session starts workers by this command, as PYSPARK_PYTHON had it when the session began."""
    session = spark.session()
    monkeypatch.setattr(session.sparkContext, "pythonExec", python)
    monkeypatch.setattr(spark_session, "_checked", set())
    return session.createDataFrame([("a",)] * 300, "v string")


@pytest.mark.parametrize("case", SAID)
def test_workers_without_dpselect_cost_nothing(case, tmp_path, ledger, monkeypatch):
    python = python_that_starts_with(tmp_path / case, STARTS[case]) if case in STARTS else str(tmp_path / "nowhere")
    rows = rows_of_workers_with(python, monkeypatch)
    error = dpselect.errors.MissingExtra if case in STARTS else dpselect.errors.EngineFailure
    with pytest.raises(error) as caught:
        dpselect.open_table(rows, engine="spark", ledger=ledger).mode("v", candidates=["a", "b"], epsilon="0.4")
    message = str(caught.value)
    assert f"needs dpselect {dpselect.__version__} in the Python of Spark's workers" in message
    assert SAID[case] in message
    for advice in ("PYSPARK_PYTHON", "packed environment", "docs/scale.md"):
        assert advice in message
    assert ledger.spent == 0


def test_workers_of_another_python_that_has_all_they_need_answer(tmp_path, ledger, monkeypatch):
    rows = rows_of_workers_with(python_that_starts_with(tmp_path / "python", ""), monkeypatch)
    table = dpselect.open_table(rows, engine="spark", ledger=ledger)
    assert table.mode("v", candidates=["a", "b"], epsilon="0.4").value == "a"
    assert str(ledger.spent) == "2/5"
