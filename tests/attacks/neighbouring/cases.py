"""Random cases: a small table, how it is opened, and questions about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.mechanisms.base import MechanismBase
from dpselect.tables.domains import Domain
from dpselect.tables.table import Table
from tests.attacks.neighbouring.sources import ALIASES, NAMED_BY, SOURCES, Column, Layout, Row, Source
from tests.attacks.neighbouring.values import PLAIN_TYPES, TYPED, WRITTEN, Type

WHO, GROUP, VALUE = "who", "g", "x"
_MISSING = 0.08
_PEOPLE = 3
_ALL = 40  # values of a list, more than there are
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3)]


@dataclass(frozen=True)
class Groups:
    """The arguments of `group_by`."""

    column: str
    listed: tuple[Any, ...]
    max_groups: int
    second: tuple[str, tuple[Any, ...]] | None = None  # another column and its list

    @property
    def arguments(self) -> tuple[Any, Any]:
        """Return the column or columns, and their lists."""
        if self.second is None:
            return self.column, list(self.listed)
        return [self.column, self.second[0]], {self.column: list(self.listed), self.second[0]: list(self.second[1])}

    def of(self, table: Table) -> Any:
        """Return the table in groups."""
        columns, groups = self.arguments
        return table.group_by(columns, groups=groups, max_groups=self.max_groups)


@dataclass(frozen=True)
class Question:
    """A method of a table, and its arguments."""

    method: str
    column: str
    epsilon: str
    listed: tuple[Any, ...] = ()
    others: dict[str, Any] = field(default_factory=dict)
    groups: Groups | None = None
    rule: Domain | None = None

    def ask(self, table: Table, mechanism: str) -> Any:
        """Return the answer by this mechanism; Laplace noise on counts has its own."""
        asked = table if self.groups is None else self.groups.of(table)
        lists = {"candidates": list(self.listed) if self.rule is None else self.rule} if self.listed else {}
        drawn_by = {} if self.others.get("method") == "noisy-counts" else {"mechanism": mechanism}
        return getattr(asked, self.method)(self.column, **lists, **self.others, epsilon=self.epsilon, **drawn_by)

    def with_list(self, listed: tuple[Any, ...]) -> "Question":
        """Return the question with another list, and a k that it has. A rule stays as it is."""
        if self.rule is not None:
            return self
        k = self.others.get("k")
        if isinstance(k, tuple):
            most = max(1, min(k[1], len(listed) - 1))
            k = (min(k[0], most), most)
        elif k is not None:
            k = min(k, len(listed))
        return replace(self, listed=listed, others=self.others if k is None else {**self.others, "k": k})

    def __str__(self) -> str:
        by = ""
        if self.groups is not None:
            columns, groups = self.groups.arguments
            by = f".group_by({columns!r}, groups={groups}, max_groups={self.groups.max_groups})"
        lists = f", candidates={list(self.listed) if self.rule is None else self.rule}" if self.listed else ""
        others = "".join(f", {name}={value!r}" for name, value in self.others.items())
        return f"table{by}.{self.method}({self.column!r}{lists}{others}, epsilon={self.epsilon!r})"


@dataclass(frozen=True)
class Case:
    """A table with its public parameters and the questions; the rows are what neighbours differ in."""

    columns: tuple[Column, ...]
    source: Source
    layout: Layout
    person: str | None
    neighbours: str
    questions: tuple[Question, ...]
    rows: tuple[Row, ...]
    with_ledger: bool = False
    engine: str = "duckdb"
    mechanism: type[MechanismBase] = PermuteAndFlip
    options: dict[str, Any] = field(default_factory=dict)  # of `open_table`: how the source is read
    asked: tuple[Column, ...] = ()  # the columns of questions, if they are others

    def write(self, rows: Sequence[Row], folder: Path) -> Any:
        """Return what `open_table` takes, for these rows."""
        return self.source.write(self.columns, rows, folder, self.layout)


@dataclass(frozen=True)
class Wanted:
    """What the random cases must have; everything by default."""

    sources: Sequence[Source] = tuple(SOURCES)
    grouped_by: Sequence[Type] = (*TYPED, *WRITTEN)
    asked: Sequence[Type] | None = None  # the types of the column that is asked about; by default mostly plain
    persons: Sequence[str | None] = (WHO, None)
    neighbours: Sequence[str] = ("add-remove", "add-remove", "replace")
    methods: Sequence[str] = ("mode", "top_k", "median", "quantile", "quantiles")
    engine: str = "duckdb"
    mechanisms: Sequence[type[MechanismBase]] = (PermuteAndFlip, ExponentialMechanism)  # case by case in turn
    views: bool = False  # with a filter, derived columns and a notation


def random_case(rng: Random, wanted: Wanted) -> Case:
    """A case with a column of groups of any type, and a plain column or one of any type to ask about."""
    source = rng.choice([source for source in wanted.sources if any(map(source.has, wanted.grouped_by))])
    types = [type_ for type_ in (*TYPED, *WRITTEN) if source.has(type_)]
    [plain] = [type_ for type_ in PLAIN_TYPES if (type_.arrow is not None) == source.is_typed]
    grouping = rng.choice([type_ for type_ in wanted.grouped_by if source.has(type_)])
    about = [plain, plain, rng.choice(types)] if wanted.asked is None else wanted.asked
    used = [rng.choice(types), grouping, rng.choice(about)]
    lines = source.has_files and not source.is_typed
    odd = [(), *[rng.sample(source.odd, min(len(source.odd), 1)) for _ in range(2)]]
    named = zip((WHO, GROUP, VALUE), used, odd, strict=True)
    columns = tuple(random_column(name, type_, rng, lines=lines, odd=own) for name, type_, own in named)
    person = rng.choice(wanted.persons)
    return Case(
        columns=columns,
        source=source,
        layout=_random_layout(rng) if source.has_files else Layout(),
        person=person,
        neighbours=rng.choice(wanted.neighbours),
        questions=tuple(random_questions(columns, person, wanted.methods, rng)),
        rows=_random_rows(columns, person, rng),
        with_ledger=rng.random() < 0.1,
        engine=wanted.engine,
    )


def random_column(name: str, type_: Type, rng: Random, *, lines: bool, odd: Sequence[Any]) -> Column:
    """A column around a random base value, with some odd values; in a CSV file no value may hold a line break."""
    cluster = type_.family.near(rng)
    special = [held for value in type_.family.special if type_.arrow is not None for held in type_.held(value)]
    values = [value for abstract in cluster for value in type_.values(abstract)]
    fit = [value for value in values if not (lines and set("\n\r\x1f\0") & set(value))]
    kept = rng.sample(fit, min(len(fit), 5)) + rng.sample(special, min(len(special), 1))
    return Column(name, type_, tuple(cluster), (*kept, *odd))


def random_row(columns: Sequence[Column], rng: Random) -> Row:
    """A row of values of its columns, some of them missing. There are few people, so that some have several rows."""
    [people, *others] = [column.values for column in columns]
    values = [rng.choice(own) if own and rng.random() > _MISSING else None for own in (people[:_PEOPLE], *others)]
    return Row(tuple(values), rng.randrange(6))


def _random_rows(columns: Sequence[Column], person: str | None, rng: Random) -> tuple[Row, ...]:
    """A few rows; without people sometimes many copies of them, so that scores have room to move."""
    rows = tuple(random_row(columns, rng) for _ in range(rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 10])))
    return rows * (1 if person is not None else rng.choice([1, 1, 1, 12]))


def _random_layout(rng: Random) -> Layout:
    alias = rng.choice([None, None, *ALIASES])
    return Layout(rng.choice([1, 1, 2, 3]), rng.choice(NAMED_BY), alias)


def random_questions(
    columns: Sequence[Column], person: str | None, methods: Sequence[str], rng: Random
) -> list[Question]:
    """Two questions by each method, one of them in groups."""
    kinds = [(method, in_groups) for method in methods for in_groups in (False, True)]
    drawn = [_random_question(columns, person, rng, method, in_groups=in_groups) for method, in_groups in kinds]
    return [question for question in drawn if question is not None]


def redrawn(question: Question, case: Case, rng: Random) -> Question:
    """A question of the same kind instead of one that was refused: with shorter lists, or another one."""
    if rng.random() < 0.25:
        groups = question.groups and replace(question.groups, listed=_half(question.groups.listed))
        return replace(question.with_list(_half(question.listed)), groups=groups)
    in_groups = question.groups is not None
    return (
        _random_question(case.asked or case.columns, case.person, rng, question.method, in_groups=in_groups) or question
    )


def _random_question(
    columns: Sequence[Column], person: str | None, rng: Random, method: str, *, in_groups: bool
) -> Question | None:
    who, group, value = columns
    grouped, other = rng.choice([*[(group, value)] * 5, *[(value, group)] * 2, (group, who), (who, value)])
    column = rng.choice([other, other, grouped])
    most = 1 if person is None else rng.choice([1, 1, 2, 3])
    groups = _random_groups(columns, grouped, most, rng) if in_groups else None
    epsilon = rng.choice(["0.1", "1", "2.5"])
    rule_of = column.type.family.rule_of
    if method in ("mode", "top_k") and rule_of is not None and rng.random() < 0.3:
        rule = rule_of(rng.choice(column.cluster), rng)
        others = _random_top(min(rule.size, _ALL), rng) if method == "top_k" else {}
        return Question(method, column.name, epsilon, ("by a rule",), others, groups, rule)
    if method in ("mode", "top_k"):
        listed = _random_list(column, rng)
        others = _random_top(len(listed), rng) if method == "top_k" else {}
        others |= {"other": "not listed"} if rng.random() < 0.25 else {}
        return Question(method, column.name, epsilon, listed, others, groups)
    range_of = column.type.family.range_of
    if range_of is None:
        return None
    levels = {
        "quantile": {"level": rng.choice(LEVELS)},
        "quantiles": {"levels": rng.sample(LEVELS, rng.randint(1, len(LEVELS)))},
    }
    ends = _random_ends(range_of(rng.choice(column.cluster), rng), rng)
    rows = {} if person is None else rng.choice([{}, {"per_person": "rows", "max_rows": rng.choice([1, 2, 3])}])
    return Question(method, column.name, epsilon, (), {**levels.get(method, {}), **ends, **rows}, groups)


def _random_ends(ends: dict[str, Any], rng: Random) -> dict[str, Any]:
    """A public range, most often as it is; or without some of it, or of magnitudes."""
    fewer = {name: end for name, end in ends.items() if rng.random() < 0.5}
    return rng.choice([ends, ends, ends, fewer, {"range": "log"}])


def _random_groups(columns: Sequence[Column], first: Column, most: int, rng: Random) -> Groups:
    """The groups of a column; sometimes its combinations with another one."""
    second = rng.choice([column for column in columns if column is not first])
    other = (second.name, _random_list(second, rng)[:4]) if rng.random() < 0.25 else None
    return Groups(first.name, _random_list(first, rng), most, other)


def _random_top(size: int, rng: Random) -> dict[str, Any]:
    """How several of so many candidates are chosen: any method with any number of candidates."""
    k = rng.choice([rng.randint(1, min(3, size)), rng.randint(1, size)])
    method = rng.choice([None, None, "set", "margin", "interval", "one-shot", "peel", "noisy-counts"])
    limit = rng.choice([1, 1, 2, 3]) if method in ("set", "noisy-counts") else rng.choice([None, None, 1, 2])
    limited = {} if limit is None else {"max_values": limit}
    if method is None:
        return {"k": k, **limited, **rng.choice([{}, {"ordered": True}])}
    if method == "interval":
        least, most = sorted(rng.randint(1, max(1, size - 1)) for _ in range(2))
        return {"k": (least, most), "method": "margin", **limited}
    return {"k": k, "method": method, **limited}


def _random_list(column: Column, rng: Random) -> tuple[Any, ...]:
    """Public values of one kind that are different in Python, as an analyst could list them."""
    writings = [*column.type.family.in_python, *([column.type.family.in_text] if column.type.arrow is None else [])]
    writing = rng.choice(writings)
    written = [value for abstract in column.cluster for value in writing(abstract)]
    if not written:
        written = [value for value in column.values if value == value] or ["nothing"]  # noqa: PLR0124
    different = list(dict.fromkeys(written))
    return tuple(rng.sample(different, min(len(different), rng.choice([2, 4, 8, _ALL, _ALL, _ALL]))))


def _half(listed: tuple[Any, ...]) -> tuple[Any, ...]:
    return listed[: (len(listed) + 1) // 2]
