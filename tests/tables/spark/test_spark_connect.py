"""The engine on a real session of Spark Connect, which has the DataFrame API and nothing else of Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import spark

pytestmark = [*spark.MARKS, pytest.mark.slow]

PROGRAM = """
import sys
import tempfile
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

builder = SparkSession.builder.remote("local[2]")
for name, value in {options!r}.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
assert "connect" in type(session).__module__
import dpselect
from tests.tables.looking import answering

rows = [(i, i % 3 if i % 2 else 0, "p" if i < 150 else "q") for i in range(300)]
frame = session.createDataFrame(rows, ["who", "x", "g"])
table = dpselect.open_table(frame, person="who", engine="spark")
assert "connect" in type(table._engine._rows.select(["x"])).__module__
assert table.mode("x", candidates=[2, 1, 0], epsilon=50).value == 0
assert table.top_k("x", 2, candidates=session.range(3), epsilon=100).value[0] == 0
assert table.median("x", lower=0, upper=10**12, epsilon=50).value == 0
groups = table.group_by("g", groups=["p", "q"])
with answering(dpselect.ExponentialMechanism):
    assert table.top_k("x", 2, candidates=session.range(3), epsilon=100).value[0] == 0
    assert groups.mode("x", candidates=[2, 1, 0], epsilon=50).value == {{"p": 0, "q": 0}}
assert groups.quantile("x", 0.5, lower=0, upper=9, epsilon=50).value == {{"p": 0, "q": 0}}
local = dpselect.open_table(pa.table({{"x": [0.5] * 100}}), engine="spark")
assert local.mode("x", candidates=[0.5, 1.5], epsilon=50).value == 0.5
with tempfile.TemporaryDirectory() as name:
    for year in (2023, 2024):
        Path(name, f"year={{year}}").mkdir()
        pq.write_table(pa.table({{"x": [0] * (100 if year == 2024 else 1)}}), f"{{name}}/year={{year}}/0.parquet")
    years = dpselect.open_table(name, engine="spark")
    assert years.mode("year", candidates=[2023, 2024, 2025], epsilon=50).value == 2024
print("done")
session.stop()
"""


def test_questions_are_answered_through_connect():
    spark.session()  # or skip
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(root), str(root / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    program = PROGRAM.format(options=spark.OPTIONS)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]
