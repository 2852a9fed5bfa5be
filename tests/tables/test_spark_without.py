"""Workers whose Python cannot run dpselect: the table is refused when it is opened, and nothing is charged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import dpselect
from tests import spark

pytestmark = spark.MARKS

# What the Python of the workers does first.
STARTS = {
    "no dpselect": "import sys; sys.modules['dpselect'] = None",
    "no Arrow": "import sys; sys.modules['pyarrow'] = None",
    "another version": "import dpselect; dpselect.__version__ = '0.0.7'",
    "all it needs": "",
}
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
import dpselect

ledger, pythons, options = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
for case, python in pythons.items():
    os.environ["PYSPARK_PYTHON"] = python
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    rows = session.createDataFrame([("a",)] * 300, "v string")
    try:
        table = dpselect.open_table(rows, engine="spark", ledger=ledger)
        found = ["answer", table.mode("v", candidates=["a", "b"], epsilon="0.4").value]
    except dpselect.errors.DPSelectError as error:
        found = [type(error).__name__, str(error)]
    print(json.dumps([case, *found, str(dpselect.Ledger(ledger).spent)]))
    session.stop()
"""


def python_that_starts_with(folder, start):
    """The Python of the tests, which runs a line of code before anything else."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(start, encoding="utf-8")
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return str(wrapper)


def test_workers_without_dpselect_cost_nothing(tmp_path):
    spark.session()  # or skip
    dpselect.Ledger(tmp_path / "ledger", 1)
    pythons = {case: python_that_starts_with(tmp_path / case, start) for case, start in STARTS.items()}
    pythons = {"no Python": str(tmp_path / "nowhere"), **pythons}
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONWARNINGS": "ignore"}
    words = [str(tmp_path / "ledger"), json.dumps(pythons), json.dumps(spark.OPTIONS)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = {case: rest for case, *rest in map(json.loads, done.stdout.splitlines())}
    assert list(found) == list(pythons), done.stderr[-3000:]
    *kind, spent = found.pop("all it needs")
    assert (kind, spent) == (["answer", "a"], "2/5")
    for case, (error, message, spent) in found.items():
        assert error == ("EngineFailure" if case == "no Python" else "MissingExtra"), case
        assert f"needs dpselect {dpselect.__version__} in the Python of Spark's workers" in message
        assert "PYSPARK_PYTHON" in message
        assert "packed environment" in message
        assert "docs/scale.md" in message
        assert spent == "0", case
    assert "which has 0.0.7:" in found["another version"][1]
    assert "which has none that can be imported:" in found["no dpselect"][1]
