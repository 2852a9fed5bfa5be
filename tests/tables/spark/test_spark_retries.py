"""Tasks that fail and are tried again: the answer has the same distribution, and every partition draws once for it."""

import functools
import math
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import TaskContext

import dpselect
from dpselect.tables.spark import engine as spark_engine
from dpselect.tables.spark.workers import SparkChooser
from tests import spark
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import repeated

pytestmark = [*spark.MARKS, pytest.mark.slow]
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
