"""The tables that differ from one by one individual: a row, or all rows of a person.

With "add-remove" an individual is gone, or a new one is there; with "replace" the rows of one are exchanged. All
removals are tried, and a few random individuals in the place of nobody and of each.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from tests.attacks.neighbouring.cases import Case, random_row
from tests.attacks.neighbouring.sources import Row

Rows = tuple[Row, ...]


def individuals(rows: Sequence[Row], person: str | None) -> list[Rows]:
    """The rows of each individual; those without a person are nobody's."""
    if person is None:
        return [(row,) for row in rows]
    people: dict[Hashable, list[Row]] = {}
    for row in rows:
        if row.values[0] is not None:
            people.setdefault(identity(row.values[0]), []).append(row)
    return [tuple(own) for own in people.values()]


def without(case: Case, number: int) -> Rows:
    """The rows of a case without one of its individuals."""
    if case.person is None:
        return case.rows[:number] + case.rows[number + 1 :]
    gone = identity(individuals(case.rows, case.person)[number][0].values[0])
    return tuple(row for row in case.rows if row.values[0] is None or identity(row.values[0]) != gone)


def identity(value: Any) -> Hashable:
    """What names the same person: equal values do, and so does one NaN and another."""
    return "NaN" if value != value else value  # noqa: PLR0124


def neighbours_of(case: Case, rng: Random, most: int) -> Iterator[Rows]:
    """Neighbours of the case's table, in random order; their rows are shuffled, as a table has no order."""
    everybody = individuals(case.rows, case.person)
    kept = [list(without(case, i)) for i in range(len(everybody))]
    newcomers = [new for _ in range(3) if (new := _newcomer(case, rng))]
    if case.neighbours == "add-remove":
        tables = [*kept, *([*case.rows, *new] for new in newcomers)]
    else:
        changed = [(others, _changed(case, one, rng)) for others, one in zip(kept, everybody, strict=True)]
        tables = [[*others, *rows] for others, new in changed for rows in (new, *newcomers[:1]) if rows]
    rng.shuffle(tables)
    for table in tables[:most]:
        rng.shuffle(table)
        yield tuple(table)


def _newcomer(case: Case, rng: Random) -> Rows:
    """Somebody who is not in the table."""
    rows = [random_row(case.columns, rng) for _ in range(rng.choice([1, 2, 3]))]
    if case.person is None:
        return tuple(rows[:1])
    present = {identity(row.values[0]) for row in case.rows}
    names = [name for name in case.columns[0].values if identity(name) not in present]
    return _named(rows, rng.choice(names)) if names else ()


def _changed(case: Case, one: Rows, rng: Random) -> Rows:
    """Other rows of the same individual."""
    rows = [random_row(case.columns, rng) for _ in range(rng.choice([1, 2, 3]))]
    return tuple(rows[:1]) if case.person is None else _named(rows, one[0].values[0])


def _named(rows: Sequence[Row], name: Any) -> Rows:
    return tuple(replace(row, values=(name, *row.values[1:])) for row in rows)
