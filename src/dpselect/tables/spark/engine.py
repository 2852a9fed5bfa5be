"""Count with Spark: no row reaches this process, and of most selections only a few numbers do.

The counts of the mode of a list come here, where the list is. Other scores stay in Spark. There are two ways to select
from them, and both are exact.

* Each partition of the candidates becomes a summary on its worker, and the summaries are merged here
  (`mechanisms.summary`): for mechanisms that have summaries.
* A query counts how many candidates have each score. The mechanism selects from these runs of equal scores, here, and
  gets scores and ranks among the candidates that have them. A second query finds the candidates of these ranks, in an
  order that depends on the labels only. By symmetry it does not matter which order. All methods of `dpselect.top_k`
  take this way, except peeling with summaries.

In the second way, two numbers come here for each different count of a group, and then the labels of the answer. L
different counts add up to at least 0 + 1 + ... + (L - 1). So if all counts of a group add up to N, then
L <= (1 + sqrt(1 + 8 N)) / 2, about sqrt(2 N), and L is at most the number of candidates. N is the number of rows with a
candidate or, with people, the sum of how many candidates each of them counts for.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from dpselect._types import Counts, Flags, Lengths
from dpselect.errors import EngineFailure
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.summary import Summary, read_cells
from dpselect.mechanisms.unlisted import Finding
from dpselect.questions.methods import Method
from dpselect.questions.rows import Individuals, Levels, Places, Tally, counted, places_of_groups
from dpselect.tables.candidates import Values
from dpselect.tables.domains import Domain, counted_form
from dpselect.tables.duckdb.source import connect
from dpselect.tables.duckdb.values import Form, OnGrid, different_values, keys_of
from dpselect.tables.kinds import Column, Span
from dpselect.tables.spark import queries
from dpselect.tables.spark.queries import FrameValues, Keyed, Reading, frame_values
from dpselect.tables.spark.source import check_workers, rows_of
from dpselect.tables.spark.workers import SUMMARY_SCHEMA, SparkChooser, SparkFinder
from dpselect.tables.view import AS_IT_IS, View


class SparkEngine:
    """Counts with Spark. It uses only the DataFrame API, so it works with Spark Connect."""

    def __init__(self, source: Any, view: View = AS_IT_IS) -> None:
        self._rows = rows_of(source, view)
        check_workers(self._rows.spark)
        self.columns, self.no_columns = self._rows.columns, dict[str, str]()
        self._connection = connect()  # for public lists only

    def check_source(self) -> None:
        counted(self._rows.check)

    def listed(self, values: Any, column: Column, name: str = "candidates") -> Values:
        return different_values(values, column, self._connection, name)

    def candidates(self, values: Any, column: Column) -> Values:
        """Return a public list, or the candidates in a Spark DataFrame of one column, which stay in Spark."""
        return frame_values(values, column) if isinstance(values, DataFrame) else self.listed(values, column)

    def chosen(
        self, column: Column, candidates: Values, individuals: Individuals, method: Method, mechanism: MechanismBase
    ) -> list[list[Any]]:
        if method.selections == 1 and mechanism.has_summary and are_few(candidates, individuals, method.max_values):
            scores = self.counts_of_list(column, candidates, individuals)
            return [[candidates.listed[position] for position in method.chosen(mechanism, scores)]]

        def choose() -> list[list[Any]]:
            scores = self.scores(column, candidates, individuals, method.max_values)
            is_peeled = mechanism.has_summary and method.selections is not None
            if is_peeled and method.selections == 1:
                return [[label] for label in _selected(scores, mechanism, {})]
            # Several jobs must use the same scores, and Spark should not count them again.
            kept = scores.persist()
            try:
                if is_peeled:
                    return _peeled(kept, method.rounds, mechanism)
                return _chosen_by_level(kept, method, mechanism)
            finally:
                kept.unpersist()

        labels = counted(choose)
        value = candidates.value if isinstance(candidates, FrameValues) else candidates.listed.__getitem__
        ordered = labels if method.ordered else [sorted(own, key=_in_list_order(candidates)) for own in labels]
        return [[value(label) for label in chosen] for chosen in ordered]

    def counts_of_list(self, column: Column, candidates: Values, individuals: Individuals) -> Counts:
        found = counted(lambda: queries.counts(*self._found(column, candidates, individuals), individuals).toArrow())
        scores = np.zeros(len(candidates), np.int64)
        scores[found["label"].to_numpy()] = found["individuals"].to_numpy()
        return scores

    def scores(
        self, column: Column, candidates: Values, individuals: Individuals, max_values: int | None = None
    ) -> DataFrame:
        """Return the number of individuals of every candidate (in every group): grp, label, individuals."""
        limit = max_values if _is_limited(candidates, individuals, max_values) else None
        found, public = self._found(column, candidates, individuals)
        return queries.scores(found, public, individuals, limit, candidates.other_label)

    def _found(self, column: Column, candidates: Values, individuals: Individuals) -> tuple[DataFrame, Keyed]:
        reading = Reading.as_key(column, candidates.kind, "item", all_present=candidates.other is not None)
        found = queries.facts(self._rows, reading, column, individuals)
        if isinstance(candidates, FrameValues):
            return found, candidates.keyed
        return found, queries.public_keys(self._rows.spark, candidates, column, self._connection)

    def places(
        self, column: Column, grid: Span, individuals: Individuals, max_rows: int | None = None
    ) -> Sequence[Places]:
        def count() -> pa.Table:
            found = queries.facts(self._rows, Reading.as_place(column, grid), column, individuals)
            return queries.standing(found, individuals, max_rows).toArrow()

        found = counted(count).sort_by([("grp", "ascending"), ("item", "ascending")])
        place, between = _located(found["item"], OnGrid(column, grid))
        data = Places(place, between, found["individuals"].to_numpy())
        return places_of_groups(data, found["grp"].to_numpy(), individuals.answers, grid)

    @contextmanager
    def tally(
        self, column: Column, domain: Domain | None, individuals: Individuals, max_values: int | None = None
    ) -> Iterator[Tally]:
        limit = None if individuals.person is None else max_values
        found = queries.facts(self._rows, Reading.as_value(column, domain), column, individuals)
        kept = queries.tallied(found, individuals, limit).persist()
        try:
            yield SparkTally(kept, counted_form(column, domain), individuals.answers)
        finally:
            kept.unpersist()

    def content(self, columns: Sequence[Column]) -> str:
        return counted(lambda: self._rows.content(columns))


class SparkTally:
    """The counts of values in a kept frame: grp, label, individuals. Secret."""

    def __init__(self, scores: DataFrame, form: Form, groups: int) -> None:
        self._scores, self._form, self._groups = scores, form, groups

    def levels(self) -> list[Levels]:
        found = _levels(self._scores)
        return [found.get(group, Levels([], [])) for group in range(self._groups)]

    def values(self, wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
        return list(map(self._form.kind.from_key, _of_ranks(self._scores, wanted))) if wanted else []

    def unseen(self, group: int, values: Sequence[Any]) -> list[Any]:
        tried = keys_of(Values(self._form.kind, tuple(values)), self._form, connect())
        frame = self._scores.sparkSession.createDataFrame(tried, "place bigint, key string").toDF("place", "label")
        own = self._scores.where(F.col("grp") == group)
        seen = {row["place"] for row in frame.join(own, "label", "left_semi").select("place").collect()}
        return [value for place, value in enumerate(values) if place not in seen]

    def found(self, finding: Finding) -> list[list[Any]]:
        heads = self._scores.mapInArrow(SparkFinder(finding), "grp bigint, label string").toArrow()
        values, read = [list[Any]() for _ in range(self._groups)], self._form.kind.from_key
        for group, label in zip(heads["grp"].to_pylist(), heads["label"].to_pylist(), strict=True):
            values[group].append(read(label))
        return [sorted(own) for own in values]


def are_few(candidates: Values, individuals: Individuals, max_values: int | None) -> bool:
    """Whether the driver can hold the counts: those of a list, which it holds already, in one group."""
    # Then one selection is drawn there, which takes less time than to start Python in the workers.
    is_simple = individuals.groups is None and candidates.other is None and not isinstance(candidates, FrameValues)
    return is_simple and not _is_limited(candidates, individuals, max_values)


def _is_limited(candidates: Values, individuals: Individuals, max_values: int | None) -> bool:
    return individuals.person is not None and max_values is not None and max_values < len(candidates)


def _selected(scores: DataFrame, mechanism: Any, taken: dict[int, list[Any]]) -> list[Any]:
    # The selection is one job, whose result is drawn and used once.
    summaries = scores.mapInArrow(SparkChooser(mechanism, taken), SUMMARY_SCHEMA).toArrow()
    merged: dict[int, Summary] = {}
    for row in summaries.to_pylist():
        group = row.pop("grp")
        merged[group] = merged.get(group, mechanism.summary()).merge(read_cells(row))
    return [merged[group].result() for group in sorted(merged)]


def _peeled(scores: DataFrame, k: int, mechanism: Any) -> list[list[Any]]:
    taken: dict[int, list[Any]] = {}
    for _ in range(k):
        for group, label in enumerate(_selected(scores, mechanism, taken)):
            taken.setdefault(group, []).append(label)
    return [taken[group] for group in sorted(taken)]


def _chosen_by_level(scores: DataFrame, method: Method, mechanism: MechanismBase) -> list[list[Any]]:
    # Only the different scores, and how many candidates have each, come here.
    wanted = []
    for group, levels in sorted(_levels(scores).items()):
        ends = list(accumulate(levels.values))
        for position in method.chosen(mechanism, levels.individuals, levels.values):
            level = bisect_right(ends, position)
            wanted.append((group, levels.individuals[level], position - (ends[level] - levels.values[level])))
    labels: dict[int, list[Any]] = {}
    for (group, _, _), label in zip(wanted, _of_ranks(scores, wanted), strict=True):
        labels.setdefault(group, []).append(label)
    return list(labels.values())


def _levels(scores: DataFrame) -> dict[int, Levels]:
    found = queries.levels(scores).toArrow().sort_by([("grp", "ascending"), ("individuals", "ascending")])
    levels: dict[int, Levels] = {}
    for group, individuals, candidates in zip(*found.to_pydict().values(), strict=True):
        own = levels.setdefault(group, Levels([], []))
        own.individuals.append(individuals)
        own.values.append(candidates)
    return levels


def _of_ranks(scores: DataFrame, wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
    # The labels of these groups, counts and ranks. They are ranked as `queries.of_ranks` says.
    asked = [(group, turn, count, rank) for turn, (group, count, rank) in enumerate(wanted)]
    found = queries.of_ranks(scores, asked).toArrow().sort_by("turn")
    if found.num_rows != len(wanted):
        raise EngineFailure("the rows changed while they were counted")
    return list(found["label"].to_pylist())


def _in_list_order(candidates: Values) -> Any:
    # Places in a list sort themselves, and labels of a frame sort by their values.
    if not isinstance(candidates, FrameValues):
        return int
    other = candidates.other_label
    # The candidate for other values comes last, and may be of another type.
    return lambda label: (True, 0) if label == other else (False, candidates.value(label))


def _located(items: pa.ChunkedArray, on_grid: OnGrid) -> tuple[Lengths, Flags]:
    if on_grid.is_small:
        return on_grid.located(items.to_numpy())
    wide = [int(item) for item in items.to_pylist() if isinstance(item, Decimal)]
    return np.array([item >> 1 for item in wide], np.uint64), np.array([item & 1 for item in wide], bool)
