"""A table of private rows, and the questions that can be asked of it.

`open_table`: from whatever the user has to a table that can be asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpselect import _validate
from dpselect._column_names import shown_names
from dpselect._numbers import NotExact, NotFinite, rational, rational_from_text
from dpselect._types import Number
from dpselect.accounting.charge import PrivacyUnit
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.release import Answer
from dpselect.tables.grid import public_grid
from dpselect.tables.questions import Engine, Groups, Individuals, Neighbours, Quantile, Question, TopK
from dpselect.tables.schema import Column, Kind

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

_FINEST_LEVEL = 10**6
_SHOWN_COLUMNS = 30


@dataclass(frozen=True, repr=False)
class Questions:
    """Private rows. Every answer is differentially private for one person, or for one row if no person is named.

    Candidates, groups and ranges must be public: they must not be taken from the data. What is asked is checked against
    the schema first; then the ledger, if there is one, is charged durably; then individuals are counted, and one
    candidate is drawn by permute-and-flip. No error depends on the rows.

    With a ledger, a question may carry a `request_id`: its answer is stored in the ledger, and asking again with the
    same id returns it and charges nothing, as long as the data that the question reads are the same.
    """

    _engine: Engine
    _who: Individuals
    _neighbours: Neighbours
    _ledger: "Ledger | None" = None

    def __repr__(self) -> str:
        person = None if self._who.person is None else self._who.person.name
        names = shown_names(self._engine.columns, len(self._engine.columns))
        columns = len(self._engine.columns) if names is None else f"[{names}]"
        return f"{type(self).__name__}(columns={columns}, person={person!r})"

    @property
    def columns(self) -> Mapping[str, Column]:
        """Return the public schema: the columns by name."""
        return self._engine.columns

    def mode(self, column: str, *, candidates: Any, epsilon: Number, request_id: str | None = None) -> Answer:
        """Return the candidate that most individuals have, privately.

        Candidates that nobody has can win; values that are no candidates, and missing values, do not count.
        """
        return self._ask(self._top(column, candidates, None), epsilon, request_id)

    def top_k(self, column: str, k: int, *, candidates: Any, epsilon: Number, request_id: str | None = None) -> Answer:
        """Return the k candidates that most individuals have, in order of selection. `epsilon` is the total."""
        return self._ask(self._top(column, candidates, _validate.count(k=k)), epsilon, request_id)

    def median(  # noqa: PLR0913 - the public contract
        self, column: str, *, lower: Any, upper: Any, step: Any = 1, epsilon: Number, request_id: str | None = None
    ) -> Answer:
        """Return a value that splits the individuals in halves, among lower, lower + step, ..., upper."""
        half, ends = Fraction(1, 2), {"lower": lower, "upper": upper, "step": step}
        return self.quantile(column, half, **ends, epsilon=epsilon, request_id=request_id)

    def quantile(  # noqa: PLR0913
        self,
        column: str,
        level: Number,
        *,
        lower: Any,
        upper: Any,
        step: Any = 1,
        epsilon: Number,
        request_id: str | None = None,
    ) -> Answer:
        """Return a value below which a share `level` of the individuals lie, among lower, lower + step, ..., upper.

        Values outside of [lower, upper] are moved to its ends. A person with several rows stands at the lower median
        of their values. `step` is in days for dates and in seconds for timestamps, or a timedelta.
        """
        found = self._column(column)
        grid = public_grid(lower, upper, step, found)
        return self._ask(Quantile(found, grid, _level(level)), epsilon, request_id)

    def _top(self, column: str, candidates: Any, k: int | None) -> TopK:
        found = self._column(column)
        values = self._engine.candidates(candidates, found)
        if k is not None and not 1 <= k <= len(values):
            raise InvalidValue(f"k must be from 1 to the number of candidates, {len(values)}, got {k}")
        return TopK(found, values, k)

    def _column(self, name: str) -> Column:
        return known_column(self, name, "column")

    def _ask(self, question: Question, epsilon: Number, request_id: str | None) -> Answer:
        """Answer a checked question: the one way from a question to a release."""
        total = _validate.exact_positive(epsilon=epsilon)
        groups = self._who.groups
        shares = question.rounds * (1 if groups is None else groups.most)
        bound = question.sensitivity(self._neighbours, in_groups=groups is not None)
        mechanism = PermuteAndFlip(total / shares, bound.largest_change, bound.monotonic)
        empty = Answer(None, mechanism.name, mechanism.guarantee.times(shares), total)
        if self._ledger is not None:
            from dpselect.release import Steps, answered  # noqa: PLC0415 - SQLite is imported when it is used

            what = {**question.parameters(), **self._who.parameters(), "neighbours": self._neighbours.value}
            steps = Steps(
                content=lambda: self._engine.content([question.column, *self._who.columns]),
                draw=lambda: self._drawn(question, mechanism),
            )
            return answered(self._ledger, empty, mechanism, what, request_id, steps)
        if request_id is not None:
            raise InvalidValue("request_id needs a ledger, which remembers it: open the table with ledger=")
        return replace(empty, value=self._drawn(question, mechanism))

    def _drawn(self, question: Question, mechanism: PermuteAndFlip) -> Any:
        """Count and select."""
        answers, groups = question.answers(self._engine, self._who, mechanism), self._who.groups
        return answers[0] if groups is None else dict(zip(groups.values.items, answers, strict=True))


class Table(Questions):
    """A table as it was opened: answers are about all individuals."""

    def group_by(self, column: str, *, candidates: Any, max_groups: int = 1) -> "GroupedTable":
        """Return the table with one answer for each public group, present in the data or not.

        Whether somebody is in several groups is itself private. So a person is kept in at most `max_groups` groups,
        chosen at random, and `epsilon` of a question is the total: each group gets epsilon / max_groups.
        """
        most = _validate.count(max_groups=max_groups)
        if most < 1:
            raise InvalidValue("max_groups must be >= 1, got 0")
        if most > 1 and self._who.person is None:
            raise InvalidValue("max_groups must be 1 without a person column: a row is in one group only")
        found = self._column(column)
        values = self._engine.listed(candidates, found)
        who = replace(self._who, groups=Groups(found, values, min(most, len(values))))
        return GroupedTable(self._engine, who, self._neighbours, self._ledger)


class GroupedTable(Questions):
    """A table whose answers come one for each public group, as a dict."""


class _Schema(Protocol):
    """An engine or a table."""

    @property
    def columns(self) -> Mapping[str, Column]: ...


def known_column(schema: _Schema, name: Any, what: str) -> Column:
    """The column of this name; an error shows the names that exist, which are public, unless they look like data."""
    if not isinstance(name, str):
        raise InvalidType(f"{what} must be the name of a column, got {type(name).__name__}")
    found = schema.columns.get(name)
    if found is None:
        names = shown_names(schema.columns, _SHOWN_COLUMNS)
        has = (
            names or f"{len(schema.columns)} others, which look like data: a table starts with the names of its columns"
        )
        raise InvalidValue(f"{what} {name!r} is not in the table, which has {has}")
    if found.kind is Kind.OTHER:
        raise InvalidType(f"{what} {name!r} has the type {found.type}, about which no question can be asked")
    return found


def _level(level: Any) -> Fraction:
    """A level as it is written: 0.9 is nine tenths, not the float near it."""
    readers: dict[bool, Callable[[Any], Fraction]] = {True: lambda text: rational_from_text(str(text)), False: rational}
    try:
        exact = readers[isinstance(level, (str, float, np.floating))](level)
    except NotExact:
        got = repr(level)[:40] if isinstance(level, str) else type(level).__name__
        raise InvalidType(f"level must be a number between 0 and 1, got {got}: give for instance 0.9") from None
    except NotFinite:
        raise InvalidValue("level must be between 0 and 1: give for instance 0.9") from None
    if not 0 < exact < 1:
        raise InvalidValue("level must be between 0 and 1: give for instance 0.9")
    if exact.denominator > _FINEST_LEVEL:
        raise InvalidValue(f"level must be a multiple of 1/n for some n <= {_FINEST_LEVEL:,}: give fewer digits")
    return exact


_ENGINES = ("duckdb", "spark")


def open_table(  # noqa: PLR0913 - the public contract
    source: Any,
    *,
    person: str | None = None,
    neighbours: str = "add-remove",
    ledger: Any = None,
    budget: Number | None = None,
    dataset: str | None = None,
    engine: str = "duckdb",
) -> Table:
    """Open a table of private rows.

    Args:
        source: a CSV or Parquet file (also a folder or a pattern such as "visits-*.parquet"), a DuckDB relation, a
            pandas or polars DataFrame, or an Arrow table; with engine="spark" also a Spark DataFrame. Each file counts
            once, and folders below the given one that are named key=value are columns of text. The schema counts as
            public: state the types when you make a frame (dtype=, schema=), because types that were guessed from the
            rows reveal something about them.
        person: the column that names the individual. All rows of a person together are protected. Without it, each row
            is an individual of its own. Rows without a person are left out.
        neighbours: "add-remove" protects whether somebody is in the table; "replace" protects what their data are, and
            takes the number of individuals as known.
        ledger: a `Ledger` or the path of one, which is charged before every answer. Without it, adding up what was
            spent is your business. A new ledger is bound to `person` and `neighbours`; an older one refuses a table
            that is opened with others.
        budget: the whole epsilon that the ledger allows, fixed when it is created.
        dataset: a public name of the data, which a new ledger is bound to as well. A ledger that has a name refuses
            tables without it.
        engine: what counts: "duckdb" on this machine, or "spark" on a cluster. With Spark, the candidates may be a
            Spark DataFrame of one column, which stays there.

    Returns:
        The table, which can be asked.

    Raises:
        InvalidValue, InvalidType: a parameter is wrong, or the source is not a table.
        UnitMismatch: the ledger belongs to another privacy unit or data set.
        LedgerError: the ledger cannot be used; BudgetMismatch if its budget is another.

    >>> import pyarrow
    >>> visits = pyarrow.table({"patient": [1, 1, 2, 3], "diagnosis": ["I10", "I10", "I10", "E11"]})
    >>> table = open_table(visits, person="patient")
    >>> table.mode("diagnosis", candidates=["I10", "E11", "J45"], epsilon=50).value
    'I10'
    """
    unit = PrivacyUnit(person, neighbours)
    opened = _engine(engine, source)
    who = Individuals(None if person is None else known_column(opened, person, "person"))
    return Table(opened, who, unit.neighbours, _ledger(ledger, budget, unit, dataset))


def _ledger(ledger: Any, budget: Number | None, unit: PrivacyUnit, dataset: str | None) -> "Ledger | None":
    """The ledger, which must be one for this privacy unit and these data."""
    if ledger is None:
        for name, value in {"budget": budget, "dataset": dataset}.items():
            if value is not None:
                raise InvalidValue(f"{name} belongs to a ledger: name its file with ledger=")
        return None
    from dpselect.ledger import Ledger  # noqa: PLC0415 - imported when used

    if isinstance(ledger, Ledger) and budget is None:
        found = ledger
    else:
        path = ledger.path if isinstance(ledger, Ledger) else ledger
        found = Ledger(path, budget, unit=unit, dataset=dataset)
    found.check_table(unit, dataset)
    return found


def _engine(name: str, source: Any) -> Engine:
    if name not in _ENGINES:
        raise InvalidValue(f"engine must be one of {', '.join(_ENGINES)}, got {str(name)[:40]!r}")
    if name == "spark":
        from dpselect.tables.spark.session import check_pyspark  # noqa: PLC0415 - engines are imported when used

        check_pyspark()
        from dpselect.tables.spark.engine import SparkEngine  # noqa: PLC0415

        return SparkEngine(source)
    from dpselect.tables.duckdb.engine import DuckDBEngine  # noqa: PLC0415

    return DuckDBEngine(source)
