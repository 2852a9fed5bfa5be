"""Selections by level on Spark: how many candidates have each count, and the candidate of a rank among those."""

import math
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
from dpselect.questions.methods import Peel, peeled_in_runs
from dpselect.tables.spark import engine as spark_engine
from dpselect.tables.spark import queries
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
@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
def test_candidates_of_a_frame_are_selected_as_those_of_a_list(kind, session):
    rows = {"x": [1] * 300 + [2] * 200 + [3] * 100, "g": ["p", "q"] * 300, "who": list(range(600))}
    table = opened(rows, "spark", person="who")
    with answering(kind):
        assert table.top_k("x", 3, candidates=session.range(0, 1000), epsilon=100).value == [1, 2, 3]
        assert table.top_k("x", 3, candidates=session.range(0, 1000), epsilon=100, ordered=True).value == [1, 2, 3]
        groups = table.group_by("g", groups=["q", "p"])
        assert groups.mode("x", candidates=session.range(0, 1000), epsilon=100).value == {"q": 1, "p": 1}


@pytest.mark.slow
def test_each_mechanism_has_its_way(monkeypatch):
    table = opened({"x": [1] * 100}, "spark")
    for kind, other in {PermuteAndFlip: "_chosen_by_level", ExponentialMechanism: "_selected"}.items():
        with monkeypatch.context() as context, answering(kind):
            context.delattr(spark_engine, other)
            assert table.mode("x", candidates=[1, 2], epsilon=10).value == 1


# How much comes to the driver.


@pytest.fixture
def collected(monkeypatch):
    """The number of rows of each frame that comes to the driver."""
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - the class that the session uses

    right, sizes = DataFrame.toArrow, []

    def to_arrow(frame):
        found = right(frame)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(DataFrame, "toArrow", to_arrow)
    return sizes


def most_levels(total):
    """How many different counts can add up to a total: L (L - 1) / 2 is the least sum of L of them."""
    return (1 + math.isqrt(1 + 8 * total)) // 2


METHODS = {
    "set": {"method": "set", "max_values": 1},
    "margin": {"method": "margin"},
    "one-shot": {"method": "one-shot"},
    "noisy-counts": {"method": "noisy-counts", "max_values": 1},
    "peel": {"method": "peel", "mechanism": "exponential"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_only_different_counts_and_the_answer_come_to_the_driver(name, collected):
    """The worst case: all counts from 0 to 30 occur. 2,000 candidates have none or one of them."""
    rows = {"x": [x for x in range(31) for _ in range(x)] + list(range(1_000, 1_200))}
    table = opened(rows, "spark")
    answer = table.top_k("x", 3, candidates=range(2_000), epsilon=100, **METHODS[name])
    assert len(answer.value) == 3
    levels, labels = collected
    assert (levels, labels) == (31, 3)
    assert levels <= most_levels(len(rows["x"]))
    assert most_levels(sum(range(31))) == 31  # no fewer are possible: without the 200 candidates, this is all


@pytest.mark.slow
def test_the_counts_of_each_group_are_bounded_by_its_own_sum(collected):
    rows = {"x": [x for x in range(20) for _ in range(x)] * 2, "g": ["p"] * 190 + ["q"] * 190}
    table = opened(rows, "spark").group_by("g", groups=["p", "q", "nobody"])
    answer = table.top_k("x", 2, candidates=range(500), epsilon=100, method="set")
    assert list(map(len, answer.value.values())) == [2, 2, 2]
    levels, labels = collected
    assert levels == 2 * most_levels(190) + most_levels(0) == 41
    assert labels == 6


@pytest.mark.slow
def test_people_who_count_once_bound_the_counts(session, collected):
    """Everybody has 50 values, of which one counts: the counts add up to the number of people."""
    rows = {"who": [who for who in range(60) for _ in range(50)], "x": [x for _ in range(60) for x in range(50)]}
    table = opened(rows, "spark", person="who")
    frame = session.range(0, 300)
    table.top_k("x", 4, candidates=frame, epsilon=1, method="margin", max_values=1)
    levels, labels = collected[-2:]
    assert levels <= most_levels(60) == 11
    assert labels == 4


@pytest.mark.slow
def test_peeling_by_summaries_sends_no_counts(collected):
    """One row for each partition and selection."""
    table = opened({"x": [x for x in range(31) for _ in range(x)]}, "spark")
    table.top_k("x", 3, candidates=range(2_000), epsilon=100, method="peel")
    assert len(collected) == 3
    assert max(collected) <= 4
