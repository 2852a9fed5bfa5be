"""The workers of Spark and its sessions: tasks that are tried again, workers that cannot run dpselect, and Connect."""

import functools
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import TaskContext

import dpselect
from dpselect.tables.spark import engine as spark_engine
from dpselect.tables.spark import source as spark_source
from dpselect.tables.spark.workers import SparkChooser
from tests import spark
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import repeated

pytestmark = [*spark.MARKS, pytest.mark.slow]

# Tasks that fail and are tried again: the answer has the same distribution, and every partition draws once for it.

DRAWS = 2_000
BEST = 1 - math.exp(-1) / 2


@dataclass(frozen=True)
class Failing(SparkChooser):
    """Draws, leaves a note of it, and then fails at the first attempt, if it is told to."""

    folder: str = ""
    fails: bool = True

    def __call__(self, batches):
        found = list(super().__call__(batches))
        context = TaskContext.get()
        name = f"{context.stageId()}-{context.partitionId()}-{context.attemptNumber()}"
        (Path(self.folder) / name).write_text(str(sum(batch.num_rows for batch in found)), encoding="utf-8")
        if context.attemptNumber() == 0 and self.fails:
            raise RuntimeError("this task fails for the test")
        yield from found


@pytest.fixture(scope="module", autouse=True)
def session():
    return spark.session()


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Ask a question of many equal groups, with tasks that fail."""

    def ask(*, fails):
        failing = functools.partial(Failing, folder=str(tmp_path), fails=fails)
        monkeypatch.setattr(spark_engine, "SparkChooser", failing)
        table = repeated({"x": ["a", "z"]}, DRAWS, engine="spark")
        answers = list(table.mode("x", candidates=["a", "b"], epsilon=1).value.values())
        notes = [tuple(map(int, note.split("-"))) for note in sorted(os.listdir(tmp_path))]
        return [answers.count("a"), answers.count("b")], notes

    return ask


def test_tasks_that_are_tried_again_do_not_bend_the_answer(asked):
    found, notes = asked(fails=True)
    partitions = {partition for _, partition, _ in notes}
    assert sorted((partition, attempt) for _, partition, attempt in notes) == sorted(
        (partition, attempt) for partition in partitions for attempt in (0, 1)
    )
    assert_fits(found, [BEST, 1 - BEST])
    twice = 1 - math.exp(-2) / 2
    assert_rejected(found, [twice, 1 - twice], truth=[BEST, 1 - BEST])


def test_every_partition_draws_once_for_an_answer(asked):
    """A second action over the same rows would draw anew, and could tell something else."""
    _, notes = asked(fails=False)
    assert len({stage for stage, _, _ in notes}) == 1
    assert len(notes) == len({partition for _, partition, _ in notes})
    assert {attempt for _, _, attempt in notes} == {0}


def test_peeling_draws_once_a_round_from_the_same_scores(monkeypatch, tmp_path):
    monkeypatch.setattr(spark_engine, "SparkChooser", functools.partial(Failing, folder=str(tmp_path), fails=False))
    rows = {"x": ["a"] * 300 + ["b"] * 200 + ["c"] * 100, "y": [1] * 600}
    table = repeated(rows, 2, engine="spark")
    found = table.top_k("x", 3, candidates=list("dcba"), epsilon=100, method="peel").value
    assert found == {0: list("abc"), 1: list("abc")}
    stages = {note.split("-")[0] for note in os.listdir(tmp_path)}
    assert len(stages) == 3


def test_nothing_random_is_sent_to_a_worker():
    """The same question is the same bytes: what is pickled holds public parameters only."""
    from pyspark import cloudpickle  # noqa: PLC0415

    sent = [cloudpickle.dumps(SparkChooser(dpselect.PermuteAndFlip(1), {0: [3]})) for _ in range(2)]
    assert sent[0] == sent[1]
    assert len(sent[0]) < 2_000


# Workers whose Python cannot run dpselect: the table is refused when it is opened, and nothing is charged.

# What the Python of the workers does first, if there is one, and what the error says of it, if that depends on us.
UNFIT = {
    "no dpselect": ("import sys; sys.modules['dpselect'] = None", "which has none that can be imported:"),
    "no Arrow": ("import sys; sys.modules['pyarrow'] = None", ""),
    "another version": ("import dpselect; dpselect.__version__ = '0.0.7'", "which has 0.0.7:"),
    "no Python": (None, ""),
}


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
    monkeypatch.setattr(spark_source, "_checked", set())
    return session.createDataFrame([("a",)] * 300, "v string")


@pytest.mark.parametrize("case", UNFIT)
def test_workers_without_dpselect_cost_nothing(case, tmp_path, ledger, monkeypatch):
    start, said = UNFIT[case]
    python = str(tmp_path / "nowhere") if start is None else python_that_starts_with(tmp_path / case, start)
    rows = rows_of_workers_with(python, monkeypatch)
    with pytest.raises(dpselect.errors.EngineFailure if start is None else dpselect.errors.MissingExtra) as caught:
        dpselect.open_table(rows, engine="spark", ledger=ledger).mode("v", candidates=["a", "b"], epsilon="0.4")
    needed = f"needs dpselect {dpselect.__version__} in the Python of Spark's workers"
    for words in (needed, said, "PYSPARK_PYTHON", "packed environment", "docs/scale.md"):
        assert words in str(caught.value)
    assert ledger.spent == 0


def test_workers_of_another_python_that_has_all_they_need_answer(tmp_path, ledger, monkeypatch):
    rows = rows_of_workers_with(python_that_starts_with(tmp_path / "python", ""), monkeypatch)
    table = dpselect.open_table(rows, engine="spark", ledger=ledger)
    assert table.mode("v", candidates=["a", "b"], epsilon="0.4").value == "a"
    assert str(ledger.spent) == "2/5"


# A real session of Spark Connect, which has the DataFrame API and nothing else of Spark.

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
