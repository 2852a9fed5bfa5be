"""The statements that count, in steps with names of their own: rows, facts, kept facts, counts.

The user's columns are renamed in the first step, so that no name of theirs meets one of ours. A fact is that an
individual (in a group) has an item: a candidate, or a place on a grid.
"""

from dpselect.tables import sql
from dpselect.tables.engine import Groups, Individuals
from dpselect.tables.grid import Grid
from dpselect.tables.kinds import Column
from dpselect.tables.values import Values

CANDIDATES, GROUPS = "dpselect_candidates", "dpselect_groups"


def counting(source: str, column: Column, candidates: Values, who: Individuals) -> str:
    """Individuals for each candidate (in each group). A person counts once, however many rows they have."""
    if who.groups is None:
        return _counting_of_all(source, column, candidates, who)
    facts = _facts(
        source,
        sql.compared(column, candidates.kind),
        who,
        item="candidate.place",
        join=f"JOIN ({listed(CANDIDATES, candidates, column)}) AS candidate ON item = candidate.value",
    )
    counted = "facts" if who.person is None else f"(SELECT DISTINCT grp, person, item FROM {_kept_name(who)})"
    result = f"SELECT grp, item AS place, count(*) AS individuals FROM {counted} GROUP BY grp, item"
    return f"WITH {facts}{_kept(who)} {result}"


def _counting_of_all(source: str, column: Column, candidates: Values, who: Individuals) -> str:
    """Count all values, then pick the candidates: DuckDB is faster so than when every row must find its candidate."""
    person = "" if who.person is None else f", {sql.identifier(who.person.name)} AS person"
    values = f"SELECT {sql.compared(column, candidates.kind)} AS item{person} FROM ({source})"
    number = "count(*)" if who.person is None else "count(DISTINCT person)"
    counted = f"SELECT item, {number} AS individuals FROM ({values}) WHERE item IS NOT NULL GROUP BY item"
    public = listed(CANDIDATES, candidates, column)
    return f"SELECT place, individuals FROM ({counted}) JOIN ({public}) AS candidate ON item = candidate.value"


def placing(source: str, column: Column, grid: Grid, who: Individuals) -> str:
    """Individuals for each place of the grid (in each group), in ascending order."""
    facts = _facts(source, sql.place(column, grid), who, item="item", join="")
    standing = "facts"
    if who.person is not None:
        kept = _kept_name(who)
        standing = f"(SELECT grp, quantile_disc(item, 0.5) AS item FROM {kept} GROUP BY grp, person)"
    counted = f"SELECT grp, item, count(*) AS individuals FROM {standing} GROUP BY grp, item"
    group = "" if who.groups is None else "grp, "
    # Arrow has no integers of 128 bits, so that those are split here.
    split = "CAST(item // 2 AS UBIGINT) AS place, CAST(item % 2 AS UBIGINT) AS behind"
    shown = "item" if sql.is_small(column, grid) else split
    return f"WITH {facts}{_kept(who)} SELECT {group}{shown}, individuals FROM ({counted}) ORDER BY {group}item"


def _facts(source: str, expression: str, who: Individuals, *, item: str, join: str) -> str:
    selected = [f"{expression} AS item"]
    columns, conditions = [f"{item} AS item"], [f"{item} IS NOT NULL"]
    if who.person is not None:
        selected.append(f"{sql.identifier(who.person.name)} AS person")
        columns.append("person")
        conditions.append("person IS NOT NULL")
    if who.groups is not None:
        values, column = who.groups.values, who.groups.column
        selected.append(f"{sql.compared(column, values.kind)} AS member")
        columns.append("public_group.place AS grp")
        join += f" JOIN ({listed(GROUPS, values, column)}) AS public_group ON member = public_group.value"
    else:
        columns.append("0 AS grp")
    facts = (
        f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(selected)} FROM source_rows) {join}"
        f" WHERE {' AND '.join(conditions)}"
    )
    # With a limit on groups the facts are used twice.
    return f"source_rows AS ({source}), facts AS {'MATERIALIZED ' if is_limited(who) else ''}({facts})"


def cast_list(name: str, values: Values, column: Column) -> str:
    """A public list in the type in which it is compared; NULL equals nothing."""
    return f"SELECT place, TRY_CAST(value AS {sql.type_of_candidates(column, values.kind)}) AS value FROM {name}"


def listed(name: str, values: Values, column: Column) -> str:
    """The different values of a public list, each once, so that no row can match two of its items.

    Items that are equal in the column's type are refused before (`keys.different_values`); this is the second wall.
    """
    cast = cast_list(name, values, column)
    return f"SELECT min(place) AS place, value FROM ({cast}) WHERE value IS NOT NULL GROUP BY value"


def is_limited(who: Individuals) -> bool:
    """Whether people are kept in some of their groups only, by a secret salt that the statement then needs."""
    return who.person is not None and who.groups is not None


def _kept_name(who: Individuals) -> str:
    return "kept" if is_limited(who) else "facts"


def _kept(who: Individuals) -> str:
    return f", kept AS ({_kept_facts(who.groups)})" if who.groups is not None and is_limited(who) else ""


def _kept_facts(groups: Groups) -> str:
    """The facts of at most so many groups for each person.

    The groups of a person are put in the order of a hash of a secret salt, the group and the person: random, and a
    matter of this person's own rows, whoever else is in the table. Privacy needs only the latter.
    """
    # By the engine's own hash, as not every moment that a column can hold can be written.
    order = "md5_number(concat($salt, ':', grp, ':', hash(person)))"
    limit = f"row_number() OVER (PARTITION BY person ORDER BY {order}, grp) <= {groups.most}"
    chosen = f"SELECT person, grp FROM (SELECT DISTINCT person, grp FROM facts) QUALIFY {limit}"
    return f"SELECT facts.* FROM facts SEMI JOIN ({chosen}) AS chosen USING (person, grp)"
