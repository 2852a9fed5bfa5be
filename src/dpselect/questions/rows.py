"""What a question needs of rows: who is counted (`Individuals`), what is counted, and by which engine (`Engine`).

The sensitivity of every question is derived in `mechanisms.parameters`. `Engine` says what DuckDB and Spark do, and who
draws.

**Groups.** A person is kept in at most m groups, and each group gets a share of 1/m of the price.

A ledger counts m releases of a share e. A group that the person stays in costs one share. For each remaining share
they leave one group and enter one, at e/2 each. With permute-and-flip, two releases at e/2 cost no more than one at e
in pure epsilon; in zCDP, where rho(e) >= 2 rho(e/2) (theorem 7 of docs/theory.md); and in loss distributions, where
permute-and-flip counts as Laplace noise, and noise at e dominates two at e/2 (lemma 3 of docs/theory.md). But the pair
is not a post-processing of one selection at e, so totals do not use the recursion for such questions
(`PrivacyLoss.joins_halves`).

The exponential mechanism at e has log-ratios that span a range of at most e (Durfee & Rogers 2019), because they are
c (q_r - q'_r) plus a constant. The same bounds of score differences hold, so in a group that the person leaves or
enters the range is at most e/2. The selections of two groups are independent, so the log-ratios of the pair are sums,
and span at most e. Hence the pair is a mechanism of bounded range e, like the one share that is counted, and costs no
more than it in every currency: e in pure epsilon, rho(e) in zCDP (so 2 rho(e/2) <= rho(e), for the exact rho of the
family), and the profile of bounded range in loss distributions. For top-k by peeling this holds in every round: given
the candidates taken before, the selections of a round in the two groups are independent. A set and a margin are one
selection each, and their ranges for a replaced person are twice those for an added one. One shot costs what any release
of its pure epsilon costs, and two of half of it compose to that. Laplace noise on m counts is m shares.

**Parts.** The same holds for several quantiles, where the parts of a depth are like groups. A person who counts with
several rows may be in more than two of them, at parts of a share that add up to it. Ranges add up for any such parts.
For permute-and-flip, rho is convex and zero at zero, so it is not smaller than the sum over the parts. And Laplace
noise at e dominates that at any parts that add up to e (lemma 3).

Between two values of the data, all candidates of a quantile have the same score, so a table with d different values has
at most 2 d + 1 runs of equal scores, and `quantile_score_runs` returns those instead of the scores.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dpselect._types import Array, Integers, Lengths
from dpselect._validate import withheld
from dpselect.errors import EngineFailure
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Neighbours
from dpselect.mechanisms.unlisted import Finding
from dpselect.questions.methods import Method, checked_limit

if TYPE_CHECKING:
    from dpselect.tables.candidates import Groups, Values
    from dpselect.tables.domains import Domain
    from dpselect.tables.kinds import Column, Span


@dataclass(frozen=True, repr=False)
class Places:
    """The positions of the data's values among the candidates, in ascending order, and the individuals at each. Secret.

    A value is equal to the candidate `places[i]` or, if `between[i]`, lies between it and the next one.
    """

    places: Lengths
    between: npt.NDArray[np.bool_]
    individuals: Integers


def places_of_groups(data: Places, groups: Sequence[int] | Integers, number: int, grid: "Span") -> list[Places]:
    """The positions among the candidates in each group, given those on the units of a grid, in the order of groups."""
    ends = [*np.searchsorted(groups, np.arange(1, number)).tolist(), data.places.size]
    parts = [
        Places(data.places[start:stop], data.between[start:stop], data.individuals[start:stop])
        for start, stop in pairwise([0, *ends])
    ]
    return [_rounded(part, grid) for part in parts] if grid.marks else parts


def _rounded(data: Places, grid: "Span") -> Places:
    if not data.places.size:
        return data
    places, starts = np.unique(grid.located(data.places), return_index=True)
    return Places(places, np.zeros(places.size, np.bool_), np.add.reduceat(data.individuals, starts))


_LARGEST_SCORE = 2**63 - 1


def quantile_score_runs(data: Places, size: int, level: Fraction) -> tuple[Array, Lengths]:
    """The score of each run of candidates, and the number of candidates in it, of `size` in total."""
    # The scores are 64-bit integers, or Python's integers if these could be too short.
    if not data.places.size:  # the length of one run of 2**64 candidates would not fit
        return np.zeros(2, np.int64), np.array([size // 2, size - size // 2], np.uint64)
    # With n individuals, (b - a) L - a (E + G) = b L - a n, and a G - (b - a) (L + E) = a n - b (L + E). At a value of
    # the data L and L + E are the running totals before and after it; between two values both are the same.
    a, b = level.numerator, level.denominator
    totals: Array = np.zeros(data.places.size + 1, np.int64)
    np.cumsum(data.individuals, out=totals[1:])
    n = int(totals[-1])
    if b * n > _LARGEST_SCORE:  # no number below is larger; the denominators of several levels may be long together
        totals = totals.astype(object)
    excess = b * totals - a * n
    scores = np.empty(2 * data.places.size + 1, totals.dtype)
    scores[0::2] = -np.abs(excess)
    scores[1::2] = np.minimum(np.minimum(-excess[:-1], excess[1:]), 0)
    return scores, _lengths(data, size)


def _lengths(data: Places, size: int) -> Lengths:
    # The numbers of candidates before the first value, at it, between it and the next, and so on to the end. Between
    # two values at places i and j lie the candidates i + 1 to j - 1, and also j if the next value comes after it. The
    # differences are computed modulo 2**64; none is negative or larger than that.
    lengths = np.zeros(2 * data.places.size + 1, np.uint64)
    behind = data.between.astype(np.uint64)
    lengths[1::2] = ~data.between
    lengths[0] = data.places[0] + behind[0]
    one = np.uint64(1)
    with np.errstate(over="ignore"):
        lengths[2:-1:2] = data.places[1:] - data.places[:-1] - one + behind[1:]
    lengths[-1] = size - 1 - int(data.places[-1])
    return lengths


_Counted = TypeVar("_Counted")


@dataclass(frozen=True)
class Individuals:
    """Who is counted: people or rows, together or in groups."""

    person: "Column | None"
    groups: "Groups | None" = None

    @property
    def noun(self) -> str:
        """The word for those who are counted."""
        return "rows" if self.person is None else "people"

    @property
    def one(self) -> str:
        """One of those who are counted, in words: what a guarantee protects."""
        return "one row" if self.person is None else f"one {self.person.name}"

    def limit(self, max_values: Any) -> int | None:
        """Return for how many values one individual counts: a row has one."""
        limit = checked_limit(max_values)
        return 1 if self.person is None else limit

    @property
    def in_each_group(self) -> str:
        """The end of a phrase: that it holds for each group, if there are groups."""
        return "" if self.groups is None else f", in each group of {self.groups.words}"

    def counted_for(self, max_values: int | None) -> str:
        """Return the end of a phrase: for how many values a person counts; nothing if for all that they have."""
        if self.person is None or max_values is None:
            return ""
        some = "one" if max_values == 1 else f"at most {max_values:,}"
        return f", each person counted for {some} of theirs, chosen at random"

    @property
    def columns(self) -> "list[Column]":
        """The columns that determine who is counted and in which group."""
        groups = () if self.groups is None else self.groups.columns
        return [*filter(None, [self.person]), *groups]

    def names(self, column: "Column") -> list[str]:
        """Return the names of all columns that a question about this column reads, without duplicates."""
        return list(dict.fromkeys(each.name for each in (column, *self.columns)))

    def by_group(self, answers: Sequence[Any]) -> Any:
        """Return the only answer, or the answers by the names of their groups."""
        if self.groups is None:
            [only] = answers
            return only
        return dict(zip(self.groups.names, answers, strict=True))

    def stated(self, neighbours: Neighbours) -> dict[str, Any]:
        """Return of whom it is asked, as fields of a question."""
        groups = {} if self.groups is None else {"groups": len(self.groups) or 1, "max_groups": self.groups.max_groups}
        return {"noun": self.noun, "neighbours": neighbours.value, **groups}

    @property
    def answers(self) -> int:
        """The number of answers: one, or one for each group."""
        return 1 if self.groups is None else len(self.groups)

    def for_each_group(self, answer: list[Any]) -> Any:
        """Return this list, or a copy of it for each group."""
        return answer if self.groups is None else self.by_group([list(answer) for _ in range(self.answers)])

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        named = {"person": None if self.person is None else self.person.name}
        return named if self.groups is None else {**named, **self.groups.parameters()}


def counted(count: Callable[[], _Counted]) -> _Counted:
    """Return the counts. The messages of a failing engine, and of a user's relation, are withheld."""
    failure = EngineFailure("the rows could not be counted: check that the table is complete and readable")
    return withheld(count, failure)


@dataclass(frozen=True, repr=False)
class Levels:
    """The different numbers of individuals of a group's values, ascending, and how many values have each. Secret."""

    individuals: list[int]
    values: list[int]


class Tally(Protocol):
    """The values that individuals have, and how many have each, in each group. Counted once. Secret."""

    def levels(self) -> list[Levels]:
        """Return the different counts of each group, and how many values have each."""
        ...

    def values(self, wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
        """Return the values of these groups, counts, and ranks among the values that have the count in the group.

        They are ranked in an order that depends on the values only.
        """
        ...

    def unseen(self, group: int, values: Sequence[Any]) -> list[Any]:
        """Return which of these values nobody in the group has, in their order."""
        ...

    def found(self, finding: Finding) -> list[list[Any]]:
        """Flip a coin for each value of each group, and return those with heads in ascending order."""
        ...


class Engine(Protocol):
    """Counts individuals. Everything that it returns except the schema is secret.

    Who draws: the mechanism, always, and from counts that only the engine's side has seen. For a choice among listed
    candidates the engine hands the counts to the mechanism itself (`chosen`), because Spark leaves them on its workers:
    permute-and-flip draws there, and no count reaches this process. The exponential mechanism draws here, from the
    different counts and how many candidates have each. For a quantile the engine returns positions on the grid
    (`places`), and the question hands their scores to the mechanism here. All of it happens inside `sample` of
    `Release.draw`, after the charge.
    """

    @property
    def columns(self) -> "Mapping[str, Column]":
        """The public schema."""
        ...

    @property
    def no_columns(self) -> Mapping[str, str]:
        """Names that look like columns and are not, such as the index of a frame, and what to do."""
        ...

    def check_source(self) -> None:
        """Refuse the source, before a charge, if its public columns have changed since it was opened."""
        ...

    def listed(self, values: Any, column: "Column", name: str = "candidates") -> "Values":
        """Return a public list of values, checked to be distinct in the type of their column. Messages use the name."""
        ...

    def candidates(self, values: Any, column: "Column") -> "Values":
        """Return a public list of candidates, in a form that the engine takes."""
        ...

    def chosen(
        self, column: "Column", candidates: "Values", individuals: Individuals, method: Method, mechanism: MechanismBase
    ) -> list[list[Any]]:
        """Return candidates that many individuals have, as the method chooses them: for each group, or for all.

        A person counts for at most `method.max_values` candidates, in each group.
        """
        ...

    def places(
        self, column: "Column", grid: "Span", individuals: Individuals, max_rows: int | None = None
    ) -> Sequence[Places]:
        """Return the positions of the individuals' values on the grid: for each group, or for all.

        A person counts once, at the median of their own rows: of two middle values, at one of both, by a random bit of
        that person. With `max_rows`, a person counts with at most that many rows instead, chosen at random, in each
        group. What is chosen of a person depends on their own rows only.
        """
        ...

    def tally(
        self, column: "Column", domain: "Domain | None", individuals: Individuals, max_values: int | None = None
    ) -> AbstractContextManager[Tally]:
        """Count the individuals of every value that somebody has: those of a rule, or all.

        A person counts for at most `max_values` values, in each group, chosen at random. What is chosen depends on
        their own rows only.
        """
        ...

    def content(self, columns: "Sequence[Column]") -> str:
        """Return a digest of the rows that a question about these columns reads; the order of rows does not matter."""
        ...
