"""Count with DuckDB: one statement for each question, and no row reaches Python.

A statement counts in four named steps: rows, facts, kept facts, counts. The user's columns are renamed
in the first step, so that no name clashes with one of ours. A fact is that an individual (in a group) has an item: a
candidate, or a place on a grid. While a statement runs, a progress bar is shown on a terminal or in a notebook.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import duckdb
import numpy as np

from dpselect._types import Counts
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.unlisted import Finding
from dpselect.questions.methods import Method
from dpselect.questions.rows import Individuals, Levels, Places, Tally, counted, places_of_groups
from dpselect.selection.draws import Draws
from dpselect.tables.candidates import Groups, Values
from dpselect.tables.checks import Check, Reading
from dpselect.tables.domains import Domain, counted_form, counted_item
from dpselect.tables.duckdb import values as sql
from dpselect.tables.duckdb.checks import checked
from dpselect.tables.duckdb.expressions import Mapped, derived
from dpselect.tables.duckdb.files import Keeper, index_of, source_of
from dpselect.tables.duckdb.source import Query, Source, connect, of_source, progress_shown, read, schema
from dpselect.tables.kinds import Column, Span
from dpselect.tables.view import AS_IT_IS, View


def counting(
    source: str, column: Column, candidates: Values, individuals: Individuals, max_values: int | None = None
) -> str:
    """Individuals for each candidate (in each group). A person counts once, however many rows they have."""
    # With `max_values`, a person counts for at most so many candidates, in each group. The candidate for other values
    # is one of them, and people count once for it, too.
    form = sql.form_of(column, candidates.kind)
    if individuals.groups is None and max_values is None and candidates.other is None:
        # Counting all values first is faster in DuckDB than joining every row.
        of_all = _of_all(source, form.value, individuals)
        return f"SELECT place, individuals FROM ({of_all}) JOIN {sql.candidate(form)}"
    values, item, join = {"item": form.value}, "candidate.place", f"JOIN {sql.candidate(form)}"
    if candidates.other is not None:
        values = {"present": sql.present(column), **values}
        item = f"coalesce(candidate.place, CASE WHEN present THEN {candidates.other_label} END)"
        join = f"LEFT {join}"
    facts, counted = _facts(source, values, individuals, item=item, join=join)
    if individuals.person is not None:
        counted = _different(counted, max_values)
    group = "" if individuals.groups is None else "grp, "
    return f"{facts} SELECT {group}item AS place, count(*) AS individuals FROM {counted} GROUP BY grp, item"


def _different(kept: str, max_values: int | None, named: str = "item") -> str:
    different = f"SELECT DISTINCT grp, person, item FROM {kept}"
    if max_values is None:
        return f"({different})"
    # Values are sorted by a hash of a random salt, the candidate and the person, as groups are in `_kept_facts`: which
    # of them are kept depends only on this person's own rows.
    order = f"md5_number(concat($salt, ':value:', {named}, ':', hash(person)))"
    limit = f"row_number() OVER (PARTITION BY grp, person ORDER BY {order}, item) <= {max_values}"
    return f"(SELECT grp, item FROM ({different}) QUALIFY {limit})"


def _of_all(source: str, value: str, individuals: Individuals, group: str = "", known: str = "item IS NOT NULL") -> str:
    number = "count(*)" if individuals.person is None else "count(DISTINCT person)"
    values = sql.renamed(f"({source})", {"item": value}, individuals.person, individuals.groups)
    return f"SELECT {group}item, {number} AS individuals FROM ({values}) WHERE {known} GROUP BY item"


def tallying(
    source: str, column: Column, domain: Domain | None, individuals: Individuals, max_values: int | None
) -> str:
    """Individuals for each value that somebody has (in each group): grp, item, individuals."""
    value = counted_item(column, domain)
    if individuals.groups is None and max_values is None:
        known = "item IS NOT NULL" if individuals.person is None else "item IS NOT NULL AND person IS NOT NULL"
        return _of_all(source, value, individuals, "0 AS grp, ", known)
    facts, counted = _facts(source, {"item": value}, individuals)
    if individuals.person is not None:
        counted = _different(counted, max_values, "hash(item)")
    return f"{facts} SELECT grp, item, count(*) AS individuals FROM {counted} GROUP BY grp, item"


def placing(source: str, on_grid: sql.OnGrid, individuals: Individuals, max_rows: int | None = None) -> str:
    """Individuals for each place of the grid (in each group), in ascending order."""
    facts, standing = _facts(source, {"item": on_grid.item}, individuals)
    if individuals.person is not None:
        kept = _medians(standing, on_grid.is_small) if max_rows is None else _kept_rows(standing, max_rows)
        standing = f"({kept})"
    group = "" if individuals.groups is None else "grp, "
    counted = f"SELECT {group}item, count(*) AS individuals FROM {standing} GROUP BY {group}item"
    # NumPy has no 128-bit integers, so they are split here.
    split = "CAST(item // 2 AS UBIGINT) AS place, CAST(item % 2 AS UBIGINT) AS behind"
    shown = "item" if on_grid.is_small else split
    return f"{facts} SELECT {group}{shown}, individuals FROM ({counted}) ORDER BY {group}item"


def _medians(kept: str, small: bool) -> str:
    # Of two middle items, a hash of a random salt and the person decides which one counts, so that neither side is
    # favoured and the choice depends on nobody else. Negating all bits reverses the order of items, and with it which
    # of two middle ones is the lower.
    flip = f"-CAST(hash(xor(hash(person), hash($salt))) & 1 AS {'BIGINT' if small else 'HUGEINT'})"
    return f"SELECT grp, xor(quantile_disc(xor(item, {flip}), 0.5), {flip}) AS item FROM {kept} GROUP BY grp, person"


def _kept_rows(kept: str, max_rows: int) -> str:
    # Rows are sorted by a hash of a random salt, the person, the item and, for equal items of a person, their running
    # number. So which of them are kept is random, and depends only on this person's own rows.
    numbered = f"SELECT grp, person, item, row_number() OVER (PARTITION BY grp, person, item) AS copy FROM {kept}"
    order = "hash(xor(hash(person, grp, item, copy), hash($salt))), item, copy"
    limit = f"row_number() OVER (PARTITION BY grp, person ORDER BY {order}) <= {max_rows}"
    return f"SELECT grp, item FROM ({numbered}) QUALIFY {limit}"


def _facts(
    source: str, values: Mapping[str, str], individuals: Individuals, *, item: str = "item", join: str = ""
) -> tuple[str, str]:
    columns, conditions, groups = [f"{item} AS item"], [f"{item} IS NOT NULL"], individuals.groups
    if individuals.person is not None:
        columns.append("person")
        conditions.append("person IS NOT NULL")
    if groups is not None:
        join += f" JOIN {sql.public_group(groups)}"
    columns.append("0 AS grp" if groups is None else "public_group.place AS grp")
    named = sql.renamed("source_rows", values, individuals.person, groups)
    facts = f"SELECT {', '.join(columns)} FROM ({named}) {join} WHERE {' AND '.join(conditions)}"
    rows = f"WITH source_rows AS ({source}), facts AS"
    if groups is None or not is_limited(individuals):
        return f"{rows} ({facts})", "facts"
    # The facts are used twice.
    return f"{rows} MATERIALIZED ({facts}), kept AS ({_kept_facts(groups)})", "kept"


def is_limited(individuals: Individuals) -> bool:
    """Whether people are counted only in some of their groups, which needs a random salt."""
    return individuals.person is not None and individuals.groups is not None


def _kept_facts(groups: Groups) -> str:
    # The groups of a person are sorted by a hash of a random salt, the group and the person. So the choice is random
    # and depends only on this person's own rows. Privacy needs only the latter.
    # The engine's own hash is used because not every timestamp can be written as text.
    order = "md5_number(concat($salt, ':', grp, ':', hash(person)))"
    limit = f"row_number() OVER (PARTITION BY person ORDER BY {order}, grp) <= {groups.max_groups}"
    chosen = f"SELECT person, grp FROM (SELECT DISTINCT person, grp FROM facts) QUALIFY {limit}"
    return f"SELECT facts.* FROM facts SEMI JOIN ({chosen}) AS chosen USING (person, grp)"


class DuckDBEngine:
    """Counts with DuckDB, which streams files and spills to disk when memory is full."""

    def __init__(self, source: Any, keep: bool | None = None, view: View = AS_IT_IS) -> None:
        self._source, self._connection = source_of(source, view), connect()
        self._keeper: Source = Keeper(self._source, self._connection, keep)
        if view.has_expressions:
            expressions = derived(schema(self._source, self._connection), view)
            self._source, self._keeper = (Mapped(each, expressions) for each in (self._source, self._keeper))
        self.columns, self.no_columns = schema(self._source, self._connection), index_of(source)

    def check_source(self) -> None:
        counted(self._source.check)

    def listed(self, values: Any, column: Column, name: str = "candidates") -> Values:
        return sql.different_values(values, column, self._connection, name)

    def candidates(self, values: Any, column: Column) -> Values:
        return self.listed(values, column)

    def chosen(
        self, column: Column, candidates: Values, individuals: Individuals, method: Method, mechanism: MechanismBase
    ) -> list[list[Any]]:
        scores = self.counts(column, candidates, individuals, method.max_values)
        names = candidates.listed
        return [[names[position] for position in method.chosen(mechanism, vector)] for vector in scores]

    def counts(
        self, column: Column, candidates: Values, individuals: Individuals, max_values: int | None = None
    ) -> Sequence[Counts]:
        limited = individuals.person is not None and max_values is not None and max_values < len(candidates)
        limit = max_values if limited else None
        found = self._found(
            lambda rows: counting(rows, column, candidates, individuals, limit),
            column,
            individuals,
            candidates,
            salted=limited,
        )
        scores = np.zeros((individuals.answers, len(candidates)), np.int64)
        group = 0 if individuals.groups is None else found["grp"]
        scores[group, found["place"]] = found["individuals"]
        return list(scores)

    def places(
        self, column: Column, grid: Span, individuals: Individuals, max_rows: int | None = None
    ) -> Sequence[Places]:
        salted, on_grid = individuals.person is not None, sql.OnGrid(column, grid)
        found = self._found(
            lambda rows: placing(rows, on_grid, individuals, max_rows), column, individuals, salted=salted
        )
        if on_grid.is_small:
            place, between = on_grid.located(found["item"])
        else:
            place, between = found["place"], found["behind"] != 0
        data = Places(place, between, found["individuals"])
        return places_of_groups(data, found.get("grp", []), individuals.answers, grid)

    @contextmanager
    def tally(
        self, column: Column, domain: Domain | None, individuals: Individuals, max_values: int | None = None
    ) -> Iterator[Tally]:
        limit = None if individuals.person is None else max_values
        with closing(self._connection.cursor()) as cursor:

            def statement(rows: str) -> str:
                made = tallying(rows, column, domain, individuals, limit)
                return f"CREATE OR REPLACE TEMP TABLE {TALLY} AS {made}"

            self._found(statement, column, individuals, salted=limit is not None, cursor=cursor)
            yield DuckDBTally(cursor, counted_form(column, domain), individuals.answers)

    def content(self, columns: Sequence[Column]) -> str:
        return counted(lambda: of_source(self._source, self._connection, columns))

    def checked(self, reading: Reading, individuals: Individuals) -> Check:
        with closing(self._connection.cursor()) as cursor, progress_shown(cursor, "Counting"):
            return counted(lambda: checked(self._source, cursor, reading, individuals))

    def _found(  # noqa: PLR0913 - what a statement needs
        self,
        statement: Callable[[str], str],
        column: Column,
        individuals: Individuals,
        candidates: Values | None = None,
        *,
        salted: bool,
        cursor: duckdb.DuckDBPyConnection | None = None,
    ) -> sql.Columns:
        # With a cursor, what the statement makes stays there.
        parameters: dict[str, Any] = {"salt": os.urandom(16).hex()} if salted or is_limited(individuals) else {}
        connection = self._connection.cursor() if cursor is None else cursor
        sql.register_lists(connection, column, candidates, individuals.groups)

        def count(rows: Query) -> sql.Columns:
            with progress_shown(connection, "Counting"):
                return connection.execute(statement(rows.text), {**parameters, **rows.parameters}).fetchnumpy()

        return counted(lambda: read(self._keeper, connection, individuals.names(column), count))


TALLY = "dpselect_tally"
_WANTED, _LIST, _FOUND = "dpselect_wanted", "dpselect_tried", "dpselect_found"


class DuckDBTally:
    """The counts of values in a temporary table of one cursor: grp, item, individuals. Secret."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, form: sql.Form, groups: int) -> None:
        self._cursor, self._form, self._groups = cursor, form, groups

    def levels(self) -> list[Levels]:
        query = f"SELECT grp, individuals, count(*) FROM {TALLY} GROUP BY grp, individuals ORDER BY grp, individuals"
        found = self._cursor.sql(query).fetchall()
        levels = [Levels([], []) for _ in range(self._groups)]
        for group, individuals, values in found:
            levels[group].individuals.append(individuals)
            levels[group].values.append(values)
        return levels

    def values(self, wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
        """Return the values of these groups, counts and ranks. Those of one count are ranked in ascending order."""
        groups, counts, ranks = zip(*wanted, strict=True) if wanted else ((), (), ())
        columns = {"grp": groups, "individuals": counts, "place": ranks, "turn": range(len(wanted))}
        self._cursor.register(_WANTED, {name: np.array(own, dtype=np.int64) for name, own in columns.items()})
        ranked = (
            "SELECT grp, individuals, item,"
            " row_number() OVER (PARTITION BY grp, individuals ORDER BY item) - 1 AS place"
            f" FROM {TALLY} SEMI JOIN {_WANTED} USING (grp, individuals)"
        )
        joined = f"SELECT {self._key} FROM ({ranked}) JOIN {_WANTED} USING (grp, individuals, place) ORDER BY turn"
        return list(map(self._form.kind.from_key, self._cursor.sql(joined).fetchnumpy()["key"].tolist()))

    def unseen(self, group: int, values: Sequence[Any]) -> list[Any]:
        tried = Values(self._form.kind, tuple(values))
        self._cursor.register(_LIST, sql.columns_of([tried], {"value": self._form}))
        own = f"SELECT item FROM {TALLY} WHERE grp = {group}"
        query = (
            f"SELECT place FROM ({sql.cast_list(_LIST, {'value': self._form})}) AS tried"
            f" ANTI JOIN ({own}) AS own ON {self._form.equal('own.item', 'tried.value')} ORDER BY place"
        )
        return [tried.items[place] for (place,) in self._cursor.sql(query).fetchall()]

    def found(self, finding: Finding) -> list[list[Any]]:
        counted = self._cursor.sql(f"SELECT rowid, individuals FROM {TALLY}").fetchnumpy()
        heads = finding.found(counted["individuals"].astype(np.int64), Draws())
        self._cursor.register(_FOUND, {"place": counted["rowid"][heads]})
        query = f"SELECT grp, {self._key} FROM {TALLY} SEMI JOIN {_FOUND} ON {TALLY}.rowid = place ORDER BY grp, item"
        values = [list[Any]() for _ in range(self._groups)]
        found = self._cursor.sql(query).fetchnumpy()
        for group, own in zip(found["grp"].tolist(), found["key"].tolist(), strict=True):
            values[group].append(self._form.kind.from_key(own))
        return values

    @property
    def _key(self) -> str:
        return f"{self._form.key('item')} AS key"
