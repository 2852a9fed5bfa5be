"""DuckDB counts: one statement for each question, and no row ever reaches Python."""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.tables import duckdb_queries as queries
from dpselect.tables.content import of_source
from dpselect.tables.duckdb_lists import arrow_list
from dpselect.tables.duckdb_source import Source, connect, read, schema, source_of
from dpselect.tables.engine import Counts, Individuals, counted, peeled
from dpselect.tables.grid import Grid
from dpselect.tables.keys import different_values
from dpselect.tables.kinds import Column
from dpselect.tables.progress import shown_progress
from dpselect.tables.ranks import Places
from dpselect.tables.values import Values


class DuckDBEngine:
    """Counts with DuckDB, which streams files and uses the disk where memory ends."""

    def __init__(self, source: Any) -> None:
        self._source = source_of(source)
        self._connection = connect()
        self.columns = schema(self._source, self._connection)

    def listed(self, values: Any, column: Column) -> Values:
        """Return a public list of values that are different in the type of their column."""
        return different_values(values, column, self._connection)

    candidates = listed

    def chosen(
        self, column: Column, candidates: Values, who: Individuals, mechanism: PermuteAndFlip, k: int
    ) -> list[list[Any]]:
        """Return k candidates that many individuals have, peeled one after another: for each group, or once for all."""
        scores = self.counts(column, candidates, who)
        return [[candidates.items[position] for position in peeled(vector, k, mechanism)] for vector in scores]

    def counts(self, column: Column, candidates: Values, who: Individuals) -> Sequence[Counts]:
        """Return how many individuals have each candidate: a vector for each group, or one for all."""
        lists = {queries.CANDIDATES: arrow_list(candidates, column)}
        found = self._found(lambda rows: queries.counting(rows, column, candidates, who), column, lists, who)
        scores = np.zeros((_number_of_groups(who), len(candidates)), np.int64)
        group = 0 if who.groups is None else found["grp"].to_numpy()
        scores[group, found["place"].to_numpy()] = found["individuals"].to_numpy()
        return list(scores)

    def places(self, column: Column, grid: Grid, who: Individuals) -> Sequence[Places]:
        """Return where the individuals' values are on the grid: for each group, or once for all."""
        found = self._found(lambda rows: queries.placing(rows, column, grid, who), column, {}, who)
        place, between = _split(found)
        individuals = found["individuals"].to_numpy()
        groups = [] if who.groups is None else found["grp"].to_numpy()
        ends = [*np.searchsorted(groups, np.arange(_number_of_groups(who))).tolist(), place.size]
        return [
            Places(place[start:stop], between[start:stop], individuals[start:stop]) for start, stop in pairwise(ends)
        ]

    def content(self, columns: Sequence[Column]) -> str:
        """Return a digest of what a question about these columns reads: equal for equal rows in any order."""
        return counted(lambda: of_source(self._source, self._connection, columns))

    def _found(
        self, statement: Callable[[str], str], column: Column, lists: dict[str, pa.Table], who: Individuals
    ) -> pa.Table:
        """The result of a statement about rows. What the engine itself says of a failure is withheld."""
        parameters: dict[str, Any] = {"salt": os.urandom(16).hex()} if queries.is_limited(who) else {}
        if who.groups is not None:
            lists = {**lists, queries.GROUPS: arrow_list(who.groups.values, who.groups.column)}

        def count(source: Source) -> pa.Table:
            connection = self._connection.cursor()
            for name, table in lists.items():
                connection.register(name, table)
            source.attach(connection)
            with shown_progress(connection.query_progress):
                bound = {**parameters, **source.parameters}
                return connection.sql(statement(source.query), params=bound).to_arrow_table()

        return counted(lambda: read(self._source, who.names(column), count))


def _split(found: pa.Table) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """The number of the candidate at or before each value, and whether the value lies behind it."""
    if "item" not in found.column_names:
        return found["place"].to_numpy(), found["behind"].to_numpy() != 0
    item = found["item"].to_numpy()
    return (item >> 1).view(np.uint64), (item & 1).astype(bool)


def _number_of_groups(who: Individuals) -> int:
    return 1 if who.groups is None else len(who.groups.values)
