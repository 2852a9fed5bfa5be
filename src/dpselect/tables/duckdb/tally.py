"""The values that individuals have, and how many have each: counted once, and kept in a private table of DuckDB.

What is counted is an expression of the column: every value of its type that an answer can hold, or those of a rule.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

from dpselect.questions.rows import Levels
from dpselect.selection.bits import SystemEntropy
from dpselect.selection.finding import Finding
from dpselect.tables.candidates import Values, value_of_key
from dpselect.tables.domains import Domain
from dpselect.tables.duckdb.forms import Form, form_of
from dpselect.tables.duckdb.lists import cast_list, columns_of_list
from dpselect.tables.schema import Column, Kind

TALLY = "dpselect_tally"
_WANTED, _LIST, _FOUND = "dpselect_wanted", "dpselect_tried", "dpselect_found"
# What Python's types hold. The values beyond, and infinite ones, are left out.
_HELD = {
    Kind.FLOAT: "isfinite({x})",
    Kind.DATE: "{x} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    **dict.fromkeys(
        (Kind.TIMESTAMP, Kind.ZONED),
        # Finite, too: DuckDB may conclude from statistics of nanoseconds that all moments, even -infinity, are late.
        "isfinite({x}) AND {x} >= CAST('0001-01-01 00:00:00' AS {type})"
        " AND {x} < CAST('10000-01-01 00:00:00' AS {type})",
    ),
}


def counted_form(column: Column, domain: Domain | None) -> Form:
    """The form of the values that are counted: those of a rule, or all of the column's own type."""
    return form_of(column, column.kind) if domain is None else domain.form(column)


def item(column: Column, domain: Domain | None) -> str:
    """The value of a row that is counted; NULL if the row does not count."""
    form = counted_form(column, domain)
    value = _valid(form)
    if domain is not None:
        return f"CASE WHEN {domain.condition(value)} THEN {value} END"
    held = _HELD.get(form.kind)
    if held is None:
        return value
    condition = held.format(x=value, type=form.type)
    return f"CASE WHEN {condition} THEN {value} END"


def _valid(form: Form) -> str:
    """The value, but NULL for a text that is not valid UTF-8: no table of DuckDB can hold it, and no answer."""
    return f"TRY(decode(encode({form.value})))" if form.kind is Kind.TEXT else form.value


class DuckDBTally:
    """The counts of values in a temporary table of one cursor: grp, item, individuals. Secret."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, form: Form, groups: int) -> None:
        self._cursor, self._form, self._groups = cursor, form, groups

    def levels(self) -> list[Levels]:
        """Return the different counts of each group, ascending, and how many values have each."""
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
        return self._read(joined)

    def unseen(self, group: int, values: Sequence[Any]) -> list[Any]:
        """Return which of these values nobody in the group has."""
        tried = Values(self._form.kind, tuple(values))
        self._cursor.register(_LIST, columns_of_list(tried, self._form))
        own = f"SELECT item FROM {TALLY} WHERE grp = {group}"
        query = (
            f"SELECT place FROM ({cast_list(_LIST, self._form)}) AS tried"
            f" ANTI JOIN ({own}) AS own ON {self._form.equal('own.item', 'tried.value')} ORDER BY place"
        )
        return [tried.items[place] for (place,) in self._cursor.sql(query).fetchall()]

    def found(self, finding: Finding) -> list[list[Any]]:
        """Flip a coin for each value of each group, and return those with heads in ascending order."""
        counted = self._cursor.sql(f"SELECT rowid, individuals FROM {TALLY}").fetchnumpy()
        heads = finding.found(counted["individuals"].astype(np.int64), SystemEntropy())
        self._cursor.register(_FOUND, {"place": counted["rowid"][heads]})
        query = f"SELECT grp, {self._key} FROM {TALLY} SEMI JOIN {_FOUND} ON {TALLY}.rowid = place ORDER BY grp, item"
        values = [list[Any]() for _ in range(self._groups)]
        found = self._cursor.sql(query).fetchnumpy()
        read = value_of_key(self._form.kind)
        for group, own in zip(found["grp"].tolist(), found["key"].tolist(), strict=True):
            values[group].append(read(own))
        return values

    @property
    def _key(self) -> str:
        return f"{self._form.key('item')} AS key"

    def _read(self, query: str) -> list[Any]:
        return list(map(value_of_key(self._form.kind), self._cursor.sql(query).fetchnumpy()["key"].tolist()))
