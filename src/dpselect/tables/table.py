"""Tables of private rows and the questions about them: `open_table`, `Table`, `GroupedTable`.

A question is checked against the public schema, becomes a frozen record (`questions`), and is answered as a
`Release`, which charges the ledger, lets the engine count, and lets the mechanism choose.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from dpselect import _validate
from dpselect._messages import NO_QUESTIONS, SHOWN_CHARACTERS, check_keywords, question_for, shown_names
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.accounting.charge import PrivacyUnit
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import Neighbours
from dpselect.questions.methods import Draw, free_answer
from dpselect.questions.most import Mode, TopK, check_unlisted
from dpselect.questions.most import Values as UnlistedValues
from dpselect.questions.options import named
from dpselect.questions.quantiles import Quantile, Quantiles
from dpselect.questions.question import OfTable, Question
from dpselect.questions.rows import Engine, Individuals
from dpselect.release import About, Answer, Release
from dpselect.tables.candidates import Groups, Values, found_groups, groups_of_column, groups_of_columns
from dpselect.tables.checks import NOT_CHECKED, Before, Check, Overview, check_column, check_columns
from dpselect.tables.domains import Domain
from dpselect.tables.files import resolved
from dpselect.tables.kinds import Column, Style, known_column, public_span
from dpselect.tables.view import View

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


_AS_COLUMN = "it is a column: name it in a question, such as table.median({!r}, ...)"
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _explained(function: Callable[_P, _R]) -> Callable[_P, _R]:
    # Defined here because doctest skips functions whose wrapper is in another module.
    code = function.__code__
    names, most = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_argcount
    accepted = frozenset(names)

    @wraps(function)
    def checked(*arguments: _P.args, **named: _P.kwargs) -> _R:
        if not named.keys() <= accepted:
            check_keywords(function.__name__, named, accepted)
        if len(arguments) > most:
            first = " and ".join(name for name in names[:most] if name != "self")
            raise InvalidType(
                f"{function.__name__} takes only {first} without a name: name the others, as in epsilon=1"
            )
        return function(*arguments, **named)

    return checked


_AnyTable = TypeVar("_AnyTable", bound="Table")


@dataclass(frozen=True)
class _Asked:
    """What a question learns of the table that it is asked of, before anything is counted (`questions.Asked`)."""

    engine: Engine
    individuals: Individuals
    stated: dict[str, Any]
    span = staticmethod(public_span)

    def among(self, column: Column, candidates: Any, other: Any) -> Values | Domain:
        if isinstance(candidates, Domain):
            check_unlisted(other)
            candidates.check(column)
            return candidates
        listed = self.engine.candidates(candidates, column)
        return listed.with_other(other, column, self.engine.listed)


class Table:
    """A table of private rows. Every answer about it is differentially private for one person.

    Created by `open_table`. Without a person column, each row counts as a person.

    Candidates, groups and ranges must be public: they must not be taken from the data. What is asked is checked against
    the schema first; then the ledger, if there is one, is charged durably; then people are counted and one candidate is
    drawn by the mechanism of the budget. No error depends on the rows.

    With a ledger, a question may have a `request_id`: its answer is stored in the ledger, and asking again with the
    same id returns it and charges nothing, as long as the data that the question reads are the same.

    Raises:
        InvalidValue, InvalidType: an argument is wrong; nothing was charged.
        BudgetExceeded: the ledger's budget is too small; nothing was counted.
        RequestConflict: the request id was used for another question, or on other data.
        RequestUnanswered: the request was charged before, but its answer was not stored.
        LedgerError: the ledger cannot be used; nothing was counted.
        EngineFailure: the rows could not be counted; the charge stays.

    >>> import pyarrow
    >>> import dpselect
    >>> visits = pyarrow.table({"patient": [1, 1, 2, 3], "diagnosis": ["I10", "I10", "I10", "E11"]})
    >>> dpselect.open_table(visits, person="patient")
    Table(columns=['patient', 'diagnosis'], person='patient')
    """

    _engine: Engine
    _individuals: Individuals
    _neighbours: Neighbours
    _ledger: "Ledger | None"
    _view: View
    _check: Before

    def __init__(self) -> None:
        raise InvalidType("a table has no constructor: open one with dpselect.open_table(source)")

    def __repr__(self) -> str:
        columns, person = self.columns, self._individuals.person
        names = shown_names(columns, len(columns))
        shown = len(columns) if names is None else f"[{names}]"
        return f"{type(self).__name__}(columns={shown}, person={None if person is None else person.name!r})"

    if not TYPE_CHECKING:  # a type checker should still find names that do not exist

        def __getattr__(self, name: str) -> NoReturn:
            known = [own for own in dir(type(self)) if not own.startswith("_")]
            private = name.startswith("_")  # also while the object is being made, or copied
            columns = {} if private else {column: _AS_COLUMN.format(column) for column in self.columns}
            meant = "" if private else question_for(name, known, {**columns, **NO_QUESTIONS})
            raise AttributeError(f"a table has no {name[:SHOWN_CHARACTERS]!r}{meant}")

    @property
    def ledger(self) -> "Ledger | None":
        """The ledger that is charged, whose `remaining` is what is left; None if there is none."""
        return self._ledger

    @property
    def columns(self) -> Mapping[str, Column]:
        """The public schema: the columns by name, each with its type and the kind of its values.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [10, 20, 30]}))
        >>> table.columns["cost"].kind.value
        'whole numbers'
        """
        return self._engine.columns

    def ask(  # noqa: PLR0913 - the price, and what the question needs
        self,
        question: str,
        column: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
        **stated: Any,
    ) -> Answer:
        """Ask a question by the name that `dpselect.questions.options.QUESTIONS` gives it.

        Args:
            question: the name, such as "mode".
            column: the column that the question is about.
            stated: what else the question needs. For other parameters, see `Table.mode`.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [40] * 500}))
        >>> table.ask("median", "cost", lower=0, upper=1000, epsilon=1).value
        40
        """
        entry, price = named(question), Price(epsilon, rho, mechanism, delta)
        return self._ask(entry.record, column, price, request_id, **entry.of_table(stated, delta=delta))

    def draw(  # noqa: PLR0913 - as for `ask`
        self,
        question: str,
        column: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        mechanism: str = AUTO,
        groups_of: str | None = None,
        max_groups: int = 1,
        **stated: Any,
    ) -> Draw:
        """Return what would draw the answer of `ask`, after the same checks. It charges nothing and reads no row.

        For other parameters, see `Table.ask`.

        Args:
            groups_of: a column whose groups are not found yet.
            max_groups: in how many of them a person may count.

        Raises:
            InvalidValue, InvalidType: the question would be refused.
            BudgetExceeded: the ledger's budget is too small.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [40] * 500}))
        >>> table.draw("median", "cost", lower=0, upper=1000, epsilon=1).mechanism
        PermuteAndFlip(epsilon=1, sensitivity=1, monotonic=False)
        """
        entry, price, table = named(question), Price(epsilon, rho, mechanism, delta), self
        if groups_of is not None:
            table = self._grouped(found_groups(self._column(groups_of), [None] * max_groups, max_groups))
        record = table._record(entry.record, column, price, entry.of_table(stated, delta=delta))
        draw = record.drawn(price, table._budget)
        if table._budget is not None and not record.is_free:
            table._budget.check(draw.charge(price.rho))
        return draw

    @_explained
    def mode(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        *,
        candidates: Any = None,
        other: Any = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        max_values: int | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return the candidate that most people have. For other parameters, see `Table.quantile`.

        Args:
            column: the column that the question is about.
            candidates: the public list of possible answers, in the type of the column: a list, range, set, NumPy
                array, Series or Arrow array. A candidate that nobody has can win. Values that are not listed, and
                missing values, do not count. Or a rule, such as `dpselect.every("int64")`. If omitted, the values are
                found in the data, which needs a delta.
            other: a further candidate, such as "not listed", for people with a value that is neither listed nor
                missing. It is public, text or of the type of the column, and returned as it is. A person counts for it
                once, and also for the listed candidates that they have. A text in a CSV file that is not a number is
                not missing, so among candidates that are numbers it counts as other.
            delta: without candidates, the largest probability of releasing a value that only one person has. Use much
                less than one over the number of people.
            max_values: without candidates, for how many values a person counts: that many are chosen at random. If
                omitted, a person counts for all of them, which needs more people. Without a person column, a row has
                one value.

        Returns:
            The answer; its value is a candidate. A person counts once for each candidate that they have. Without
            candidates, the value is None if nothing was common enough.

        >>> import pyarrow
        >>> import dpselect
        >>> visits = pyarrow.table({"patient": range(99), "diagnosis": ["I10"] * 90 + ["E11"] * 9})
        >>> table = dpselect.open_table(visits, person="patient")
        >>> table.mode("diagnosis", candidates=["I10", "E11", "J45"], epsilon=1).value
        'I10'
        >>> table.mode("diagnosis", candidates=dpselect.every("text", max_bytes=3), epsilon=1).value
        'I10'
        >>> table.mode("diagnosis", candidates=["E11", "J45"], other="not listed", epsilon=1).value
        'not listed'
        """
        price = Price(epsilon, rho, mechanism, delta)
        among = {"candidates": candidates, "other": other}
        return self._ask(Mode, column, price, request_id, **among, max_values=max_values)

    @_explained
    def top_k(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        k: int | tuple[int, int],
        *,
        candidates: Any = None,
        other: Any = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        method: str = AUTO,
        max_values: int | None = None,
        ordered: bool = False,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return the k candidates that most people have. For other parameters, see `Table.mode`.

        Args:
            column: the column that the question is about.
            k: the number of candidates to return. With method "margin" also a pair of the smallest and the largest
                number, of which the method finds the one with a clear cut.
            candidates: the public list of possible answers or a rule, as for `mode`. If omitted, the values are found
                in the data one after another, which needs a delta.
            other: a further candidate for values that are not listed, as for `mode`. It comes last, and counts towards
                k and `max_values` like any other.
            method: "auto", or "set" (needs max_values), "margin", "one-shot", "peel" or "noisy-counts" (needs
                max_values). docs/top-k.md says which one is taken, and what to expect from each.
            max_values: for how many candidates a person counts. Whether somebody has more is private, so for a person
                with more of them, this many are chosen at random. If omitted, people count for all they have. Without a
                person column, a row has one value.
            ordered: whether to return the candidates in order, best first, which costs accuracy. The methods
                "one-shot", "peel" and "noisy-counts" always do so if they are asked for by name.

        Returns:
            The answer; its value is a list of k candidates. If they are not in order, they are listed as in
            `candidates`: never by count. If k is the number of candidates, all of them, without reading a row or
            charging anything. Without candidates, at most k values in order, best first: fewer if no others were
            common enough.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"colour": ["red"] * 300 + ["blue"] * 200 + ["green"]}))
        >>> table.top_k("colour", 2, candidates=["blue", "green", "red"], epsilon=1).value
        ['blue', 'red']
        >>> table.top_k("colour", 2, candidates=["blue", "green", "red"], epsilon=1, ordered=True).value
        ['red', 'blue']
        """
        price = Price(epsilon, rho, mechanism, delta)
        choices: dict[str, Any] = {"k": k, "candidates": candidates, "other": other, "max_values": max_values}
        return self._ask(TopK, column, price, request_id, **choices, method=method, ordered=ordered)

    @_explained
    def values(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        max_values: int = 1,
        request_id: str | None = None,
    ) -> Answer:
        """Return the values that enough people have. They are public then, and can be candidates or groups.

        For other parameters, see `Table.mode`.

        Args:
            column: the column that the question is about.
            max_values: for how many values a person counts. Whether somebody has more is private, so for a person with
                more of them, this many are chosen at random.

        Returns:
            The answer; its value is a list in ascending order. It may be empty. A value that n people have is in it
            with the largest probability that epsilon and delta allow; `dpselect plan values` says which.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"city": ["Paris"] * 99 + ["Oslo"] * 88 + ["Rome"]}))
        >>> table.values("city", epsilon=1, delta=1e-9).value
        ['Oslo', 'Paris']
        """
        return self._ask(UnlistedValues, column, Price(epsilon, rho, delta=delta), request_id, max_values=max_values)

    @_explained
    def median(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = "full",
        per_person: str = "median",
        max_rows: int | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return a value with about half of the people below it. For other parameters, see `Table.quantile`.

        Args:
            column: the column that the question is about: numbers, dates or timestamps.

        Returns:
            The answer. A person with several rows counts once, at the median of their values: of two middle ones, at
            one of both, chosen at random.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [40] * 500}))
        >>> table.median("cost", lower=0, upper=1000, epsilon=1).value
        40
        >>> table.median("cost", epsilon=1).estimate
        'median over rows'
        """
        ends = {"lower": lower, "upper": upper, "step": step, "range": range}
        counted: dict[str, Any] = {"per_person": per_person, "max_rows": max_rows, "level": Fraction(1, 2)}
        return self._ask(Quantile, column, Price(epsilon, rho, mechanism), request_id, **ends, **counted)

    @_explained
    def quantile(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        level: Number,
        *,
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = "full",
        per_person: str = "median",
        max_rows: int | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return a value with about a share `level` of the people below it.

        Args:
            column: the column that the question is about: numbers, dates or timestamps.
            level: the share, between 0 and 1, taken exactly: 0.9 is nine tenths.
            lower: the smallest candidate, public: a number, date or timestamp, also as text. Smaller values of the data
                count as `lower`. If omitted, it is the smallest value of the column's type.
            upper: the largest candidate, public. Larger values of the data count as `upper`. If omitted, it is the
                largest value of the column's type.
            step: the step between candidates: days for dates, seconds or a timedelta for timestamps. If omitted, it is
                1 with both ends, and otherwise as fine as the column's type.
            range: "full", or "log" for few people. Then values are rounded to two digits, and the candidates are 0 and
                all numbers of two digits times a power of ten, of either sign; for floats from 1e-9 to 1e18.
            per_person: "median": a person counts once, at the median of their own rows. "rows": a person counts with at
                most `max_rows` rows, chosen at random. They estimate different things, and the answer says which.
            max_rows: the maximum number of rows counted per person; needs per_person="rows".
            epsilon: the privacy loss of the whole answer: a number, or a string such as "0.1", which is taken exactly.
            rho: the privacy loss in zCDP; give either epsilon or rho.
            mechanism: "auto" (permute-and-flip, or the exponential mechanism for a ledger whose budget is in zCDP or
                (epsilon, delta)), "permute-and-flip" or "exponential".
            request_id: stores the answer in the ledger, so that a retry gets it and costs nothing.

        Returns:
            The answer; its value is a candidate, in the type of the column. `estimate` says over whom. A person with
            several rows counts once, at the median of their values, unless per_person is "rows". So with a person
            column, the 90 % quantile is one of people and their usual values, not one of all rows.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [40] * 500 + [900] * 2500}))
        >>> table.quantile("cost", 0.9, lower=0, upper=1000, epsilon=1).value
        900
        """
        ends = {"lower": lower, "upper": upper, "step": step, "range": range}
        counted: dict[str, Any] = {"per_person": per_person, "max_rows": max_rows, "level": level}
        return self._ask(Quantile, column, Price(epsilon, rho, mechanism), request_id, **ends, **counted)

    @_explained
    def quantiles(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        levels: Sequence[Number] | str,
        *,
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = "full",
        per_person: str = "median",
        max_rows: int | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return a value for each level, with about that share of the people below it.

        With several levels, a value between two candidates counts as the lower one, so the step should be as fine as
        the values: 0.01 for prices in cents. For the other parameters, see `Table.quantile`.

        Args:
            column: the column that the question is about: numbers, dates or timestamps.
            levels: the shares, between 0 and 1, or "quartiles", "deciles" or "percentiles". At most 999, all different,
                and multiples of 1/n for one n of at most a million.

        Returns:
            The answer; its value is a list with a candidate for each level, in the order of `levels`. Larger levels
            never get smaller values. m levels are found in ceil(log2(m + 1)) steps, which share epsilon equally: nine
            deciles in four. The rows are read once.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [20] * 2000 + [40] * 2000 + [90] * 1000}))
        >>> table.quantiles("cost", [0.1, 0.5, 0.9], lower=0, upper=1000, epsilon=2).value
        [20, 40, 90]
        """
        ends = {"lower": lower, "upper": upper, "step": step, "range": range}
        counted: dict[str, Any] = {"per_person": per_person, "max_rows": max_rows, "levels": levels}
        return self._ask(Quantiles, column, Price(epsilon, rho, mechanism), request_id, **ends, **counted)

    @_explained
    def minimum(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        *,
        level: Number = "0.01",
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = "full",
        per_person: str = "median",
        max_rows: int | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return a value with only few people below it, in place of the minimum.

        A true minimum is the value of one person. An answer that is near it for all data would reveal that person, so
        no private answer has an error that can be bounded. A quantile can be answered with an error of a few people.
        So this answers the quantile of a level near 0. For other parameters, see `Table.quantile`.

        Args:
            column: the column that the question is about: numbers, dates or timestamps.
            level: the level of the quantile. The error is about 2 ln(n) / epsilon people for n candidates, so more
                people than that should be below the answer.

        Returns:
            The answer, as that of `quantile`. `estimate` says which quantile it is.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [20] * 2000 + [90] * 2000}))
        >>> answer = table.minimum("cost", lower=0, upper=1000, epsilon=2)
        >>> answer.value, answer.estimate
        (20, '1 % quantile over rows (in place of the minimum)')
        """
        ends = {"lower": lower, "upper": upper, "step": step, "range": range}
        counted: dict[str, Any] = {"per_person": per_person, "max_rows": max_rows, "level": level}
        price = Price(epsilon, rho, mechanism)
        return self._ask(Quantile, column, price, request_id, **ends, **counted, stands_for="minimum")

    @_explained
    def maximum(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        *,
        level: Number = "0.99",
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = "full",
        per_person: str = "median",
        max_rows: int | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        mechanism: str = AUTO,
        request_id: str | None = None,
    ) -> Answer:
        """Return a value with only few people above it, in place of the maximum: see `Table.minimum`.

        Args:
            column: the column that the question is about: numbers, dates or timestamps.
            level: the level of the quantile, near 1.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"cost": [20] * 2000 + [90] * 2000}))
        >>> answer = table.maximum("cost", lower=0, upper=1000, epsilon=2)
        >>> answer.value, answer.estimate
        (90, '99 % quantile over rows (in place of the maximum)')
        """
        ends = {"lower": lower, "upper": upper, "step": step, "range": range}
        counted: dict[str, Any] = {"per_person": per_person, "max_rows": max_rows, "level": level}
        price = Price(epsilon, rho, mechanism)
        return self._ask(Quantile, column, price, request_id, **ends, **counted, stands_for="maximum")

    @_explained
    def group_by(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str | Sequence[str],
        *,
        groups: Any = None,
        max_groups: int = 1,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        request_id: str | None = None,
    ) -> "GroupedTable":
        """Return a table that answers each question for each public group, even for groups without rows.

        With several columns, a group is a combination of their values. A row with a missing value is in no group.

        Args:
            column: the column that holds the group of a row, or a list of columns.
            groups: the public list of groups, in the type of the column. For a list of columns either a mapping from
                each column to its public list, for all combinations in the order of the columns, or a list of tuples.
                If omitted, the groups of one column are found in the data, as `values` does, which costs epsilon and
                delta at once. What the questions cost comes on top.
            max_groups: in how many groups a person may count. Whether somebody is in several is private, so a
                person with more is counted in `max_groups` of them, chosen at random. The epsilon of a question is the
                total: each group gets epsilon / max_groups.
            epsilon: without groups, the privacy loss of finding them.
            rho: without groups, the same in zCDP; give either epsilon or rho.
            delta: without groups, the probability with which a group of only one person may come out.
            request_id: without groups, stores those that are found in the ledger.

        Returns:
            A table with the same questions, whose answers are dicts from group to value. For a list of columns, even
            of one column, groups are tuples.

        >>> import pyarrow
        >>> import dpselect
        >>> rows = pyarrow.table({"ward": ["a"] * 500 + ["b"] * 500, "cost": [10] * 500 + [90] * 500})
        >>> wards = dpselect.open_table(rows).group_by("ward", groups=["a", "b"])
        >>> wards.median("cost", lower=0, upper=99, epsilon=1).value
        {'a': 10, 'b': 90}
        >>> rows = pyarrow.table({"ward": ["a"] * 500, "sex": ["f", "m"] * 250, "cost": [10, 90] * 250})
        >>> both = dpselect.open_table(rows).group_by(["ward", "sex"], groups={"ward": ["a"], "sex": ["f", "m"]})
        >>> both.median("cost", lower=0, upper=99, epsilon=1).value
        {('a', 'f'): 10, ('a', 'm'): 90}
        """
        most = _validate.count(max_groups=max_groups)
        if most < 1:
            raise InvalidValue("max_groups must be >= 1, got 0")
        if most > 1 and self._individuals.person is None:
            raise InvalidValue("max_groups must be 1 without a person column: a row is in one group only")
        finding: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta, "request_id": request_id}
        if isinstance(column, str) or not isinstance(column, Sequence):
            found = self._column(column)
            if groups is None and delta is not None:
                answer = self.values(column, max_values=most, **finding)
                return self._grouped(found_groups(found, answer.value, most), answer)
            _check_listed_groups(groups, finding)
            return self._grouped(groups_of_column(groups, found, most, self._engine.listed))
        _check_listed_groups(groups, finding, several=True)
        columns = [self._column(name) for name in column]
        return self._grouped(groups_of_columns(groups, columns, most, self._engine.listed))

    @_explained
    def check(  # noqa: PLR0913 - one parameter for each public choice
        self,
        column: str,
        *,
        candidates: Any = None,
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = "full",
        show_values: bool = False,
    ) -> Check:
        """Return what a question about a column would read and leave out, exactly. It is private: for the data owner.

        Questions are silent about rows. This says how many rows are left out and why, how many people there are, and
        which notations look wrong, such as decimal commas. It charges nothing and releases nothing. Do not publish the
        result, and do not choose candidates or a range by it. Groups are those of `group_by`.

        Args:
            column: the column that the question is about.
            candidates: those of `mode` and `top_k`. For the range of a quantile, see `Table.quantile`.
            show_values: whether to include up to five values of the data for each thing that is wrong.

        Returns:
            The check. Its `repr` shows no number; `report()` and `to_dict()` do. A table with a ledger, or in Spark,
            has none.

        >>> import pyarrow
        >>> import dpselect
        >>> table = dpselect.open_table(pyarrow.table({"diagnosis": ["I10", " I10", "E11", None]}))
        >>> check = table.check("diagnosis", candidates=["I10", "E11"])
        >>> check.passed
        False
        >>> print(check.report().splitlines()[-2].partition(".")[0])
        suspicious in 'diagnosis': texts with spaces before or after, such as ' I10 ': 1
        """
        self._refuse_ledger()
        ends = (lower, upper, step, range)
        return check_column(self._engine, self._individuals, self._column(column), candidates, ends, show_values)

    def overview(self, *, show_values: bool = False) -> Overview:
        """Return what can be read of each column, exactly. It is private: for the data owner. See `Table.check`.

        Args:
            show_values: whether to include up to five values of the data for each thing that is wrong.

        Returns:
            The overview: for each column what its values look like, how many are missing, how many cannot be read like
            most of the others, and in which notation they may be written.

        >>> import pyarrow
        >>> import dpselect
        >>> overview = dpselect.open_table(pyarrow.table({"cost": [10, None, 30]})).overview()
        >>> overview
        Overview(columns=1, private)
        >>> overview.passed, overview.checks[0].missing
        (True, 1)
        """
        self._refuse_ledger()
        return check_columns(self._engine, self._individuals, show_values)

    def _refuse_ledger(self) -> None:
        if self._ledger is not None:
            raise InvalidValue(
                "a check is not charged, and is for the data owner only: open the table without a ledger"
            )

    def _column(self, name: str) -> Column:
        return known_column(self._engine.columns, name, "column", self._engine.no_columns)

    @property
    def _budget(self) -> Budget | None:
        return None if self._ledger is None else self._ledger.budget

    def _record(self, kind: type[Question], column: str, price: Price, stated: Mapping[str, Any]) -> OfTable:
        asked = _Asked(self._engine, self._individuals, self._individuals.stated(self._neighbours))
        return kind.about(asked, self._column(column), price, **stated).settled(price, self._budget)

    def _ask(self, kind: type[Question], column: str, price: Price, request_id: str | None, **stated: Any) -> Answer:
        question, engine, individuals = self._record(kind, column, price, stated), self._engine, self._individuals
        estimate, protects = question.estimate(individuals), individuals.one
        if question.is_free or (individuals.groups is not None and not len(individuals.groups)):  # no row is read
            every = individuals.for_each_group(question.free_value if question.is_free else [])
            return replace(free_answer(every, self._ledger, request_id), about=About(estimate, protects))
        engine.check_source()
        draw = question.drawn(price, self._budget)
        # Without a ledger, nobody reads the entry, and the digest of a long list takes time.
        of_whom = individuals.parameters()
        read_how = self._view.entry(of_whom["person"])
        entry = {} if self._ledger is None else {**question.entry(), **of_whom, **read_how}
        asked = {**entry, "neighbours": question.neighbours, "estimate": estimate} if entry else {}
        self._check.run(engine, individuals, question)
        unchecked = [] if self._check.is_on else [NOT_CHECKED]
        about = About(
            estimate,
            protects,
            self._view.provided(individuals.one),
            partial(question.accuracy, draw),
            partial(_notes, question, draw, unchecked),
        )
        return Release(asked, draw.part, draw.count, price.rho, about, draw.delta).draw(
            lambda: question.answer(engine, individuals, draw),
            ledger=self._ledger,
            request_id=request_id,
            content=lambda: engine.content([question.column, *individuals.columns]),
        )

    def _grouped(self, groups: Groups, found: Answer | None = None) -> "GroupedTable":
        individuals = replace(self._individuals, groups=groups)
        return _made(GroupedTable, {**vars(self), "_individuals": individuals, "_found": found})


class GroupedTable(Table):
    """A table that answers each question with a dict: one answer for each public group. `Table.group_by` makes it.

    >>> import pyarrow
    >>> import dpselect
    >>> rows = pyarrow.table({"ward": ["a"] * 500 + ["b"] * 500, "sex": ["f"] * 500 + ["m"] * 500})
    >>> grouped = dpselect.open_table(rows).group_by("ward", groups=["a", "b"])
    >>> grouped.mode("sex", candidates=["f", "m"], epsilon=1).value
    {'a': 'f', 'b': 'm'}
    """

    _found: Answer | None

    def __repr__(self) -> str:
        by = None if self._individuals.groups is None else self._individuals.groups.words
        return f"{super().__repr__()[:-1]}, groups={len(self.groups):,} of {by})"

    @property
    def groups(self) -> list[Any]:
        """The public groups, in the order of answers: values of the column, or tuples for a list of columns."""
        return [] if self._individuals.groups is None else list(self._individuals.groups.names)

    @property
    def found(self) -> Answer | None:
        """The answer of `values` that found the groups in the data, with what it cost; None if they were listed."""
        return self._found

    def group_by(self, *_arguments: Any, **_options: Any) -> NoReturn:
        """Refuse: a table is grouped once. Give all columns to one call. See `Table.group_by`."""
        raise InvalidValue(
            "the table is already grouped: call group_by on the table that open_table returned, with a list of all"
            " columns"
        )


def _made(kind: type[_AnyTable], state: Mapping[str, Any]) -> _AnyTable:
    # The class of a table has no constructor that users could call.
    table = kind.__new__(kind)
    vars(table).update(state)
    return table


def _notes(question: OfTable, draw: Draw, others: Sequence[str], value: Any) -> list[str]:
    return [*question.notes(draw, value), *others]


def _check_listed_groups(groups: Any, finding: Mapping[str, Any], *, several: bool = False) -> None:
    # A rule would have an answer for each of its values.
    if isinstance(groups, Domain):
        raise InvalidType(
            "groups must be a list of values, got a rule: list the groups, or find them in the data with epsilon and"
            " delta"
        )
    given = [name for name, value in finding.items() if value is not None]
    if given and groups is None and several:
        raise InvalidValue("groups of several columns cannot be found together: find the values of each column")
    if groups is None:
        raise InvalidValue(
            "give groups, the public list of groups; without it, finding them in the data needs epsilon and delta, such"
            " as 1e-9"
        )
    if given:
        raise InvalidValue(f"{given[0]} is for groups that nobody listed: leave out either {given[0]} or groups")


_ENGINES = ("duckdb", "spark")


@_explained
def open_table(  # noqa: PLR0913 - the public contract
    source: Any,
    *,
    table: str | Sequence[str] | None = None,
    query: str | None = None,
    person: str | None = None,
    neighbours: str = "add-remove",
    ledger: Any = None,
    budget: Budget | Number | None = None,
    dataset: str | None = None,
    engine: str = "duckdb",
    keep: bool | None = None,
    where: str | None = None,
    derive: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    dates: str | None = None,
    trusted_query: bool = False,
    check: str = "off",
) -> Table:
    """Open a table of private rows.

    Args:
        source: a CSV or Parquet file (also a folder, a pattern such as "visits-*.parquet", or "-" for standard input),
            a DuckDB relation, a pandas DataFrame, a polars DataFrame or LazyFrame, or an Arrow table; with
            engine="spark" also a Spark DataFrame. Or a sheet of an Excel file (.xlsx, .xls, .xlsb, .ods). Or a
            database: "postgresql://user@host/name", "sqlite:///file.db", or the path of an SQLite or DuckDB file.
            Frames and Arrow tables need the extra `arrow`, Excel files `excel`, and PostgreSQL and SQLite `databases`.
            Each file counts once, and folders below the given one that are named key=value are columns of text. The
            schema counts as public: state the types when you make a frame (dtype=, schema=), because types that were
            guessed from the rows reveal something about them.
        table: for a database, the name of the table or view: "visits", or "clinic.visits" with its schema. A tuple such
            as ("clinic", "visits") takes names that have points. Upper and lower case matter in PostgreSQL. For an
            Excel file, the name of the sheet, if there are several.
        query: for a database, a SELECT statement instead of a table, such as "SELECT patient, cost FROM visits WHERE
            cost < 1000". It selects columns of one table and compares them with constants, which is checked on its text
            before anything is read. It is read in a read-only transaction, once for every question.
        trusted_query: True if the query does more, and you state that each of its rows depends on the rows of one
            person only, or on one row without `person`. Then nothing is checked, and the ledger records it.
        person: the column that names the individual. All rows of a person together are protected. Without it, each row
            is a separate individual. Rows without a person are left out.
        neighbours: "add-remove" protects whether somebody is in the table; "replace" protects what their data are, and
            takes the number of individuals as known.
        ledger: a `Ledger` or its path. It is charged before every answer. Without a ledger, you must add up what was
            spent yourself. A new ledger is bound to `person` and `neighbours`; an existing one refuses a table
            that is opened with different ones.
        budget: what the ledger may spend, fixed when it is created: a number for pure epsilon, or `dpselect.zcdp(...)`
            or `dpselect.approximate(...)`.
        dataset: a public name of the data. A new ledger is bound to it, too. A ledger that has a name refuses
            tables without it.
        engine: where to count: "duckdb" on this machine, or "spark" on a cluster. With Spark, the candidates may be a
            Spark DataFrame of one column, which stays there.
        keep: whether to keep the rows of CSV files in memory, so that several questions read them once. True keeps them
            from the first question on, None from the second on, and False never. Files that are compressed, too large
            for this or of more than 500 columns are read for every question, and so are other sources, and files that
            have changed. Answers have the same distribution.
        where: a condition in SQL on the columns of one row, such as "age >= 18 AND origin = 'JFK'". Rows for which it
            is not true do not count. It is public, and checked before anything is read: functions of one row only.
        derive: further columns by name, each an expression in SQL on the columns of one row, such as {"route": "origin
            || '-' || dest"}. A row on which it fails has no value there. docs/tables.md lists what both may use.
        encoding: of text files: "utf-8", or one with a byte for each character, such as "latin-1" or "cp1252".
        delimiter: of text files: one of , ; | : ^ ~ and "tab". If omitted, the header says it.
        decimal: the decimal mark in text files, "." or ",".
        thousands: what separates thousands in text files, such as "," or "."; if omitted, nothing does.
        dates: the form of dates and timestamps in text files, such as "%m/%d/%Y"; if omitted, 2026-01-31.
        check: whether a check of the rows comes before each charge. It prints what would be left out, to standard
            error, for the data owner only. "warn" goes on; "stop" ends before the charge if nothing would count, or at
            most half of what is not missing can be read. With "off", answers say that they were not checked. docs/
            tables.md says what a check reveals, and to whom.

    Raises:
        CheckFailed: by a question, with check="stop"; nothing was charged. For the data owner only.
        InvalidValue, InvalidType: a parameter is invalid, or the source is not a table.
        UnitMismatch: the ledger belongs to another privacy unit or data set.
        LedgerError: the ledger cannot be used; BudgetMismatch if it has a different budget.
        MissingExtra: the source or the engine needs a package that is not installed.

    >>> import pyarrow
    >>> visits = pyarrow.table({"patient": range(99), "diagnosis": ["I10"] * 90 + ["E11"] * 9})
    >>> table = open_table(visits, person="patient")
    >>> table.mode("diagnosis", candidates=["I10", "E11", "J45"], epsilon=1).value
    'I10'
    """
    style = Style(decimal=decimal, thousands=thousands, dates=dates)
    view = View(
        where=where,
        derive=derive or {},
        encoding=encoding,
        delimiter=delimiter,
        style=style,
        query=query if isinstance(query, str) else None,
        trusted_query=trusted_query,
    )
    unit = PrivacyUnit(view.identity(person), neighbours)
    before = Before(check, engine)
    opened = _engine(engine, resolved(source, table, query, is_trusted=bool(trusted_query)), keep, view)
    column = None if person is None else known_column(opened.columns, person, "person", opened.no_columns)
    state = {
        "_engine": opened,
        "_individuals": Individuals(column),
        "_neighbours": unit.neighbours,
        "_ledger": _ledger(ledger, budget, unit, dataset),
        "_view": view,
        "_check": before,
    }
    return _made(Table, state)


def _ledger(ledger: Any, budget: Budget | Number | None, unit: PrivacyUnit, dataset: str | None) -> "Ledger | None":
    if ledger is None:
        for name, value in {"budget": budget, "dataset": dataset}.items():
            if value is not None:
                raise InvalidValue(f"{name} needs a ledger: name its file with ledger=")
        return None
    from dpselect.ledger import Ledger  # noqa: PLC0415 - imported when used

    if isinstance(ledger, Ledger) and budget is None:
        found = ledger
    else:
        path = ledger.path if isinstance(ledger, Ledger) else ledger
        found = Ledger(path, budget, unit=unit, dataset=dataset)
    found.check_table(unit, dataset)
    return found


def _engine(name: str, source: Any, keep: Any, view: View) -> Engine:
    if keep is not None and not isinstance(keep, bool):
        raise InvalidType(f"keep must be True, False or None, got {type(keep).__name__}")
    if name not in _ENGINES:
        raise InvalidValue(f"engine must be one of {', '.join(_ENGINES)}, got {str(name)[:40]!r}")
    if name == "spark":
        from dpselect.tables.spark.engine import SparkEngine  # noqa: PLC0415 - needs pyspark, an extra

        return SparkEngine(source, view)
    from dpselect.tables.duckdb.engine import DuckDBEngine  # noqa: PLC0415 - DuckDB is slow to import

    return DuckDBEngine(source, keep, view)
