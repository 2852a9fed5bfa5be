"""The values that individuals have, and how many have each: counted once, and kept in Spark.

Two numbers come to this process for each different count of a group, the labels of an answer, and whether random values
were seen. Coins for values are flipped on the workers, and only those with heads leave them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from dpselect._validate import withheld
from dpselect.errors import EngineFailure
from dpselect.questions.rows import Levels
from dpselect.selection.draws import Draws
from dpselect.selection.finding import Finding
from dpselect.tables.candidates import Values
from dpselect.tables.duckdb.connections import connect
from dpselect.tables.duckdb.values import Form, keys_of
from dpselect.tables.spark import queries


@dataclass(frozen=True)
class SparkFinder:
    """Flips a coin for each value of a partition, and returns those with heads."""

    finding: Finding

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the group and the label of each value with heads."""
        for batch in batches:
            yield withheld(lambda own=batch: self._heads(own), EngineFailure("a worker could not choose"))  # type: ignore[misc]

    def _heads(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        heads = self.finding.found(batch["individuals"].to_numpy().astype(np.int64), Draws())
        return batch.select(["grp", "label"]).filter(pa.array(heads))


class SparkTally:
    """The counts of values in a kept frame: grp, label, individuals. Secret."""

    def __init__(self, scores: DataFrame, form: Form, groups: int) -> None:
        self._scores, self._form, self._groups = scores, form, groups

    def levels(self) -> list[Levels]:
        """Return the different counts of each group, ascending, and how many values have each."""
        found = queries.levels(self._scores).toArrow().sort_by([("grp", "ascending"), ("individuals", "ascending")])
        levels = [Levels([], []) for _ in range(self._groups)]
        for group, individuals, values in zip(*found.to_pydict().values(), strict=True):
            levels[group].individuals.append(individuals)
            levels[group].values.append(values)
        return levels

    def values(self, wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
        """Return the values of these groups, counts and ranks. They are ranked as `queries.of_ranks` says."""
        if not wanted:
            return []
        asked = [(group, turn, count, rank) for turn, (group, count, rank) in enumerate(wanted)]
        found = queries.of_ranks(self._scores, asked).toArrow().sort_by("turn")
        if found.num_rows != len(wanted):
            raise EngineFailure("the rows changed while they were counted")
        return list(map(self._form.kind.from_key, found["label"].to_pylist()))

    def unseen(self, group: int, values: Sequence[Any]) -> list[Any]:
        """Return which of these values nobody in the group has."""
        tried = keys_of(Values(self._form.kind, tuple(values)), self._form, connect())
        frame = self._scores.sparkSession.createDataFrame(tried, "place bigint, key string").toDF("place", "label")
        own = self._scores.where(F.col("grp") == group)
        seen = {row["place"] for row in frame.join(own, "label", "left_semi").select("place").collect()}
        return [value for place, value in enumerate(values) if place not in seen]

    def found(self, finding: Finding) -> list[list[Any]]:
        """Flip a coin for each value of each group, and return those with heads in ascending order."""
        heads = self._scores.mapInArrow(SparkFinder(finding), "grp bigint, label string").toArrow()
        values, read = [list[Any]() for _ in range(self._groups)], self._form.kind.from_key
        for group, label in zip(heads["grp"].to_pylist(), heads["label"].to_pylist(), strict=True):
            values[group].append(read(label))
        return [sorted(own) for own in values]
