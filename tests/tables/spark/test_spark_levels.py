"""Selections by level on Spark: how many candidates have each count, and the candidate of a rank among those."""

import os
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import EngineFailure
from dpselect.tables.spark import engine as spark_engine
from dpselect.tables.spark import queries
from dpselect.top_k import Peel, peeled_in_runs
from tests import spark
from tests.tables.looking import answering, opened

pytestmark = spark.MARKS


@pytest.fixture(scope="module", autouse=True)
def session():
    return spark.session()


@pytest.mark.slow
def test_every_rank_is_another_candidate_of_its_level(session, monkeypatch):
    """In any order of the rows, in few buckets and in many."""
    counts = {(group, str(label)): label * 7 % (3 + group) for group in range(2) for label in range(60)}
    rows = [(group, label, number) for (group, label), number in counts.items()]
    frame = session.createDataFrame(rows, "grp bigint, label string, individuals bigint")
    sizes = Counter((group, number) for group, _, number in rows)
    found = queries.levels(frame).toArrow().to_pylist()
    assert {(row["grp"], row["individuals"]): row["candidates"] for row in found} == sizes
    wanted = [(group, 100 * number + rank, number, rank) for (group, number), m in sizes.items() for rank in range(m)]
    for buckets in (1024, 4):
        monkeypatch.setattr(queries, "_BUCKETS", buckets)
        answers = []
        for order in (frame, frame.orderBy("individuals", "label").repartition(3)):
            labels = queries.of_ranks(order, wanted).toArrow().to_pylist()
            answers.append({(row["grp"], row["turn"]): row["label"] for row in labels})
            assert len(labels) == len(answers[-1]) == len(wanted)
        assert answers[0] == answers[1]
        assert sorted((group, label) for (group, _), label in answers[0].items()) == sorted(counts)
        assert all(counts[group, label] == turn // 100 for (group, turn), label in answers[0].items())


class Chosen:
    """A mechanism that selects given positions."""

    def __init__(self, positions):
        self.positions = list(positions)
        self.lengths = []

    def select_runs(self, scores, lengths):
        self.lengths.append(list(lengths))
        return self.positions.pop(0)


def test_peeling_in_runs_is_peeling_of_candidates():
    """Every order in which three of five candidates can be taken, each once."""
    scores, lengths = [4, 5, 9], [2, 0, 3]
    members = [(run, rank) for run, m in enumerate(lengths) for rank in range(m)]
    seen = set()
    for positions in product(range(5), range(4), range(3)):
        mechanism = Chosen(positions)
        chosen = [members[position] for position in peeled_in_runs(scores, lengths, 3, mechanism)]
        left = list(members)
        assert chosen == [left.pop(position) for position in positions]
        assert [sum(own) for own in mechanism.lengths] == [5, 4, 3]
        seen.add(tuple(chosen))
    assert len(seen) == 60


@dataclass(frozen=True)
class Shaking:
    """Returns other rows each time that Spark computes them, and leaves a note."""

    folder: str

    def __call__(self, batches):
        for batch in batches:
            random = np.frombuffer(os.urandom(batch.num_rows), np.uint8).astype(np.int64) % 40
            (Path(self.folder) / f"{TaskContext.get().partitionId()}-{os.urandom(8).hex()}").touch()
            yield pa.RecordBatch.from_arrays([pa.array(random)], ["x"])


@pytest.mark.slow
def test_both_queries_use_the_same_counts(session, tmp_path):
    """If the second one counted again, it would find other counts here."""
    frame = session.range(0, 300, 1, 2).mapInArrow(Shaking(str(tmp_path)), "x bigint")
    table = spark_engine.SparkEngine(frame)
    column, who = table.columns["x"], opened({"x": [1]})._individuals
    for candidates in (list(range(40)), session.range(40)):
        for note in tmp_path.iterdir():
            note.unlink()
        public = table.candidates(candidates, column)
        [chosen] = table.chosen(column, public, who, Peel(5, 40, ordered=True), ExponentialMechanism(10))
        assert len(set(chosen)) == 5
        assert set(chosen) <= set(range(40))
        assert Counter(note.name.split("-")[0] for note in tmp_path.iterdir()) == {"0": 1, "1": 1}


@pytest.mark.slow
def test_counts_that_change_are_an_error(session, monkeypatch):
    """Nothing is answered if a candidate is not found."""
    right = queries.of_ranks
    monkeypatch.setattr(queries, "of_ranks", lambda scores, wanted: right(scores.where("individuals > 5"), wanted))
    table = opened({"x": [1]}, "spark")
    with answering(ExponentialMechanism), pytest.raises(EngineFailure, match="the rows changed"):
        table.mode("x", candidates=[1, 2], epsilon=1)


@pytest.mark.slow
def test_candidates_of_a_frame_are_selected_by_level(session):
    rows = {"x": [1] * 300 + [2] * 200 + [3] * 100, "g": ["p", "q"] * 300, "who": list(range(600))}
    table = opened(rows, "spark", person="who")
    with answering(ExponentialMechanism):
        assert table.top_k("x", 3, candidates=session.range(0, 1000), epsilon=100).value == [1, 2, 3]
        groups = table.group_by("g", groups=["q", "p"])
        assert groups.mode("x", candidates=session.range(0, 1000), epsilon=100).value == {"q": 1, "p": 1}


@pytest.mark.slow
def test_each_mechanism_has_its_way(monkeypatch):
    table = opened({"x": [1] * 100}, "spark")
    for kind, other in {PermuteAndFlip: "_chosen_by_level", ExponentialMechanism: "_selected"}.items():
        with monkeypatch.context() as context, answering(kind):
            context.delattr(spark_engine, other)
            assert table.mode("x", candidates=[1, 2], epsilon=10).value == 1
