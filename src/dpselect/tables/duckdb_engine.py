"""DuckDB counts: one statement for each question, and no row ever reaches Python."""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpselect.errors import EngineFailure
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.tables import duckdb_queries as queries
from dpselect.tables.content import of_source
from dpselect.tables.duckdb_lists import arrow_list
from dpselect.tables.duckdb_source import connect, schema, source_of
from dpselect.tables.engine import Counts, Individuals, peeled
from dpselect.tables.grid import Grid
from dpselect.tables.keys import different_values
from dpselect.tables.kinds import Column
from dpselect.tables.progress import shown_progress
from dpselect.tables.ranks import Places
from dpselect.tables.values import Values

_NOT_COUNTED = "the table could not be counted: check that it is complete and readable"


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
        counted = self.counts(column, candidates, who)
        return [[candidates.items[position] for position in peeled(scores, k, mechanism)] for scores in counted]

    def counts(self, column: Column, candidates: Values, who: Individuals) -> Sequence[Counts]:
        """Return how many individuals have each candidate: a vector for each group, or one for all."""
        lists = {queries.CANDIDATES: arrow_list(candidates, column)}
        found = self._found(queries.counting(self._source.query, column, candidates, who), lists, who)
        scores = np.zeros((_number_of_groups(who), len(candidates)), np.int64)
        group = 0 if who.groups is None else found["grp"].to_numpy()
        scores[group, found["place"].to_numpy()] = found["individuals"].to_numpy()
        return list(scores)

    def places(self, column: Column, grid: Grid, who: Individuals) -> Sequence[Places]:
        """Return where the individuals' values are on the grid: for each group, or once for all."""
        found = self._found(queries.placing(self._source.query, column, grid, who), {}, who)
        place, between = _split(found)
        individuals = found["individuals"].to_numpy()
        groups = [] if who.groups is None else found["grp"].to_numpy()
        ends = [*np.searchsorted(groups, np.arange(_number_of_groups(who))).tolist(), place.size]
        return [
            Places(place[start:stop], between[start:stop], individuals[start:stop]) for start, stop in pairwise(ends)
        ]

    def content(self, columns: Sequence[Column]) -> str:
        """Return a digest of what a question about these columns reads: equal for equal rows in any order."""
        with suppress(Exception):  # what it says is withheld, as below
            return of_source(self._source, self._connection, columns)
        raise EngineFailure(_NOT_COUNTED)

    def _found(self, query: str, lists: dict[str, pa.Table], who: Individuals) -> pa.Table:
        """The result of a statement. What the engine itself says of a failure is withheld: it may quote a value."""
        parameters = dict(self._source.parameters)
        if who.groups is not None:
            lists = {**lists, queries.GROUPS: arrow_list(who.groups.values, who.groups.column)}
        if queries.is_limited(who):
            parameters["salt"] = os.urandom(16).hex()
        try:
            connection = self._connection.cursor()
            for name, table in lists.items():
                connection.register(name, table)
            self._source.attach(connection)
            with shown_progress(connection.query_progress):
                return connection.sql(query, params=parameters).to_arrow_table()
        except Exception:  # also what a user's own relation or frame raises
            raise EngineFailure(_NOT_COUNTED) from None


def _split(found: pa.Table) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """The number of the candidate at or before each value, and whether the value lies behind it."""
    if "item" not in found.column_names:
        return found["place"].to_numpy(), found["behind"].to_numpy() != 0
    item = found["item"].to_numpy()
    return (item >> 1).view(np.uint64), (item & 1).astype(bool)


def _number_of_groups(who: Individuals) -> int:
    return 1 if who.groups is None else len(who.groups.values)
