"""The most common of public candidates: one of them, or the top k by a method of `questions.methods`.

The candidates are a list, or a public domain that is too large to list. All values of a domain that nobody has are one
run of candidates with score 0, whatever their number. If the choice falls into that run, a uniform value that nobody
has is the answer, drawn again and again until it is one. So the answer has exactly the distribution that it would have
if all values of the domain were listed, at the same pure epsilon. An answer "none of them" would reveal that nobody has
the value.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import accumulate
from typing import Any, ClassVar, Self

from dpselect import _validate
from dpselect._numbers import LONGEST, first_true
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.analysis.promises import ErrorsOf
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim
from dpselect.mechanisms.several import sizes_of
from dpselect.questions.methods import METHODS, Method, Peel, is_in_order, method_for
from dpselect.questions.options import MOST_VALUES, Field, Option, domain, listed, option, sizes, whole
from dpselect.questions.question import OF_TABLE, Asked, Draw, OfTable, checked_for_tables, divided
from dpselect.questions.rows import Engine, Individuals, Levels, Tally, counted
from dpselect.questions.unlisted import UnlistedMode, UnlistedTopK, checked_delta
from dpselect.release import Priced
from dpselect.selection.draws import Draws


@dataclass(frozen=True, kw_only=True)
class Mode(OfTable):
    """The candidate that most people have, as `Table.mode` returns it.

    Args:
        candidates: the number of candidates, of any size.
        rule: the rule that they follow, in words, if they are not listed.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Mode(candidates=30, groups=12, max_groups=2).draws
    2
    >>> Mode(candidates=2**64, rule="every int64").title
    'The most common of every int64, about 1.84e+19 candidates'
    """

    name: ClassVar[str] = "mode"
    priced: ClassVar[tuple[str, ...]] = ("delta", "mechanism")
    candidates: Any = option(
        asking=(
            Option(
                ("--candidates",),
                "LIST|FILE",
                "Possible answers: A,B,C, or a file with one per line. Must be public.",
                listed,
                way="a list",
            ),
            Option(
                ("--every",),
                "RULE",
                "A rule instead of a list: int64, integer:0..999, text:8 (at most 8 bytes), text:6:0123456789 (of these"
                " characters), decimal:9:2 (9 digits, 2 of them after the point), date, uuid, ...",
                domain,
                way="a rule",
            ),
        ),
        planning=(
            Option(
                ("--candidates",),
                "N|LIST|FILE",
                "Number of candidates; or A,B,C or a file of them.",
                listed,
                way="a list",
            ),
            Option(
                ("--every",),
                "RULE",
                "A rule instead of a list, as for dpselect mode: int64, text:8, ...",
                domain,
                way="a rule",
            ),
        ),
        is_required=False,
    )
    rule: str | None = None
    other: Any = option(
        asking=Option(("--other",), "TEXT", "A further candidate, for people with a value that is not listed."),
        default=None,
        table=True,
        repr=False,
    )
    max_values: int | None = option(
        asking=Option(
            ("--max-values",),
            "N",
            "For how many of the values that are found a person counts: N of theirs, at random.",
            whole,
        ),
        planning=MOST_VALUES,
        default=None,
        table=True,
        repr=False,
    )
    among: Any = field(default=None, repr=False, metadata=OF_TABLE)  # the list or the domain
    # How it is chosen, once that is settled.
    taken: Method | None = field(default=None, repr=False, compare=False, metadata=OF_TABLE)

    def __post_init__(self) -> None:
        super().__post_init__()
        domain = self.candidates
        if getattr(domain, "words", None) is not None:  # a public domain, of which a plan needs the size
            object.__setattr__(self, "candidates", domain.size)
            object.__setattr__(self, "rule", domain.words)
        if self.among is None and _validate.count(candidates=self.candidates) < 2:
            raise InvalidValue(f"candidates must be a whole number from 2, got {self.candidates}")
        if self.rule is not None and not isinstance(self.rule, str):
            raise InvalidType(f"rule must be text, got {type(self.rule).__name__}")

    @classmethod
    def about(  # noqa: PLR0913 - the candidates, by keyword
        cls,
        table: Asked,
        column: Any,
        price: Price,
        *,
        candidates: Any = None,
        other: Any = None,
        max_values: Any = None,
        **stated: Any,
    ) -> OfTable:
        """Return the question about a column of a table; about unlisted values if there are no candidates."""
        if candidates is None:
            check_unlisted(other)
            return UnlistedMode.about(table, column, price, max_values=max_values, **stated)
        check_listed(delta=price.delta, max_values=max_values)
        return cls.of(table, column, table.among(column, candidates, other), **stated)

    @classmethod
    def of(cls, table: Asked, column: Any, among: Any, **stated: Any) -> Self:
        """Return the question about a column of a table, whose candidates are a list or a domain."""
        return cls(column=column, among=among, candidates=among.size, rule=among.words, **stated, **table.stated)

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return int(self.candidates)

    @property
    def how(self) -> Method:
        """Return how it is chosen: the mode is one selection."""
        return self.taken or Peel(1, self.candidates, ordered=True)

    @property
    def claim(self) -> Claim:
        """Return how much one person can change what is drawn from."""
        return self.how.claim(self.is_added)

    @property
    def rounds(self) -> int:
        """Return the number of selections, if each of them has bounds of its own."""
        return self.how.selections or 1

    @property
    def is_free(self) -> bool:
        """Return whether all candidates are chosen."""
        return self.how.is_free

    @property
    def free_value(self) -> list[Any]:
        """Return all candidates."""
        return list(self.among.listed)

    @property
    def draws(self) -> int:
        """Return the number of parts of a charge."""
        return self.how.parts * self.max_groups

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:
        """Return what draws at this price, and what is charged for it."""
        # No mechanism takes a longer run. This must be refused before the charge.
        if self.among is not None and self.candidates.bit_length() > LONGEST:
            raise InvalidValue(f"{self.rule} has too many values: give a smaller max_bytes, or an alphabet")
        how = (self if self.taken is not None else self.settled(price, budget)).how
        drawn = how.drawn_by(price, budget, self.max_groups, self.is_added)
        if how.needs_runs and self.column is not None:
            checked_for_tables(drawn)
        part, count = how.cost(drawn)
        return Draw(drawn, part, count * self.max_groups, method=how)

    def part(self, mechanism: MechanismBase) -> Priced:
        """Return one of the parts of a charge."""
        return self.how.cost(mechanism)[0]

    @property
    def errors(self) -> ErrorsOf | None:
        """Return the bounds of the method."""
        return self.how.bounds

    @property
    def title(self) -> str:
        """Return the question in words."""
        return f"The most common of {self.of_what}{self.in_groups}"

    @property
    def of_what(self) -> str:
        """Return in words what the candidates are, and how many."""
        size = self.candidates
        number = f"{size:,}" if size <= _validate.EXACT_IN_FLOATS else f"about {Decimal(size):.2e}"
        return f"{number} candidates" if self.rule is None else f"{self.rule}, {number} candidates"

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return how many people the most common value of a rule needs; None for a list.

        With x people it loses to n - 1 values that nobody has with the probability of the mechanism's worst case. Other
        values that people have only take from that of the n - 1.
        """
        if self.rule is None:
            return None
        worst, log_n = mechanism.worst, math.log(self.size)
        exponent = first_true(lambda x: worst.loss_probability(x, log_n) <= 0.05, 1.0)
        return math.ceil(exponent / float(mechanism.rate))

    def need(self, people: int) -> str:
        """Return in words how many people the most common value needs."""
        where = " of the group" if self.is_grouped else ""
        return (
            f"The most common value needs {people:,} people{where}: with fewer, more than 5 of 100 answers may be"
            " values that nobody has."
        )

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return (
            f"On average, the chosen value has at most {average} fewer people than the most common one. In 95 of 100"
            f" cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )

    def remark(self, within_95: float) -> str:
        """Return when the margin finds the true top k."""
        return self.how.remark(within_95)

    def entry(self) -> dict[str, Any]:
        """Return the public parameters that a ledger records."""
        return {"question": self.name, **self._method_entry, "column": self.column.name, **self.among.entry()}

    @property
    def _method_entry(self) -> dict[str, Any]:
        return {}

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        which = f", of {self.rule}" if self.rule is not None else self._by_method
        return f"{self._most(individuals)}{individuals.in_each_group}{which}"

    def _most(self, individuals: Individuals) -> str:
        return f"the value that most {individuals.noun} have"

    @property
    def _by_method(self) -> str:
        return ""

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        """Count and select: return a candidate or several of them, or a dict with that for each group."""
        return individuals.by_group([self._shown(own) for own in self._chosen(engine, individuals, draw)])

    def _shown(self, chosen: list[Any]) -> Any:
        [only] = chosen
        return only

    def _chosen(self, engine: Engine, individuals: Individuals, draw: Draw) -> list[list[Any]]:
        how, listed = draw.method or self.how, self.among.as_list
        if listed is not None:
            return engine.chosen(self.column, listed, individuals, how, draw.mechanism)
        chooser = _Chooser(self.among, how, draw.mechanism, Draws())

        def choose() -> list[list[Any]]:
            with engine.tally(self.column, self.among, individuals, how.max_values) as tally:
                return [chooser.of_group(group, own, tally) for group, own in enumerate(tally.levels())]

        return counted(choose)


def check_listed(**given: Any) -> None:
    """Refuse what only values that nobody listed need."""
    for name, value in given.items():
        if value is not None:
            raise InvalidValue(f"{name} is for values that nobody listed: leave out either {name} or candidates")


def check_unlisted(other: Any) -> None:
    """Refuse a candidate for values that are not listed, if there is no list."""
    if other is not None:
        raise InvalidValue("other is for values that are not on a list: give candidates as a list, or leave other out")


_FIRST_TRIES, _MOST_TRIES = 64, 2**16


@dataclass(frozen=True)
class _Chooser:
    """Chooses from a domain, given how many individuals have each value that somebody has."""

    domain: Any
    how: Method
    mechanism: MechanismBase
    draws: Draws

    def of_group(self, group: int, levels: Levels, tally: Tally) -> list[Any]:
        """Return the values that are chosen in a group."""
        scores, lengths = [0, *levels.individuals], [self.domain.size - sum(levels.values), *levels.values]
        positions = self.how.chosen(self.mechanism, scores, lengths)
        ends = list(accumulate(lengths))
        runs = [bisect_right(ends, position) for position in positions]
        wanted = [
            (group, scores[run], position - ends[run] + lengths[run])
            for run, position in zip(runs, positions, strict=True)
            if run
        ]
        # At least one value is drawn even if none is needed, so that the time does not tell.
        seen, unseen = iter(tally.values(wanted)), iter(self._unseen(group, runs.count(0), tally))
        chosen = [next(seen) if run else next(unseen) for run in runs]
        places = [self._place(value) for value in chosen]
        return [self.domain.value(place) for place in (places if self.how.ordered else sorted(places))]

    def _unseen(self, group: int, count: int, tally: Tally) -> Sequence[Any]:
        """Different uniform values that nobody in the group has, `count` of them."""
        found: dict[int, Any] = {}
        tries = max(_FIRST_TRIES, 2 * count)
        while True:
            drawn = dict.fromkeys(self.draws.index(self.domain.size) for _ in range(tries))
            values = tally.unseen(group, [self.domain.value(index) for index in drawn])
            found.update({self._place(value): value for value in values})
            if len(found) >= count:
                return list(found.values())[:count]
            tries = min(2 * tries, _MOST_TRIES)

    def _place(self, value: Any) -> int:
        index: int | None = self.domain.index(value)
        if index is None:
            raise LookupError("a value that was counted is not in the domain")
        return index


@dataclass(frozen=True, kw_only=True)
class TopK(Mode):
    """The k candidates that most people have, as `Table.top_k` returns them.

    Args:
        k: the number of candidates to return. With the method "margin" also a pair of the smallest and the largest.
        candidates: the number of candidates, of any size.
        rule: the rule that they follow, in words, if they are not listed.
        method: "auto", "set", "margin", "one-shot", "peel" or "noisy-counts".
        max_values: for how many candidates one person counts at most; None for any number. It is 1 if rows are counted.
        ordered: whether the answer is in order, best first.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong, or the method cannot answer.

    >>> TopK(k=3, candidates=30, method="set", max_values=1).title
    'The 3 most common of 30 candidates, with one value for each person'
    """

    name: ClassVar[str] = "top_k"
    k: int | tuple[int, int] = option(
        asking=Option(
            ("-k",), "K|LO:HI", "How many candidates to return, or an interval in which to find a clear cut.", sizes
        ),
        planning=Option(
            ("-k",),
            "K",
            "How many candidates to return; LO:HI for the margin.",
            sizes,
            page=Field("How many, k", example="3"),
        ),
    )
    method: str = option(
        Option(
            ("--method",),
            "M",
            f"One of {', '.join(METHODS)}. auto: by K, --max-values, --ordered and the kind of budget.",
            default=AUTO,
        ),
        default=AUTO,
    )
    max_values: int | None = option(
        asking=Option(
            ("--max-values",),
            "N",
            "For how many candidates a person counts: N of theirs, at random. set and noisy-counts need it.",
            whole,
        ),
        planning=replace(MOST_VALUES, page=Field("Values per person", example="1")),
        default=None,
    )
    ordered: bool = option(
        Option(("--ordered",), "", "Print the best first. This needs more noise.", page=Field("In order, best first")),
        default=False,
    )

    @classmethod
    def about(  # noqa: PLR0913 - the candidates, by keyword
        cls,
        table: Asked,
        column: Any,
        price: Price,
        *,
        candidates: Any = None,
        other: Any = None,
        max_values: Any = None,
        **stated: Any,
    ) -> OfTable:
        """Return the question about a column of a table; about unlisted values if there are no candidates."""
        limit = table.individuals.limit(max_values)
        if candidates is None:
            checked_delta(price)
            check_unlisted(other)
            return UnlistedTopK.about(table, column, price, max_values=limit, **stated)
        check_listed(delta=price.delta)
        return cls.of(table, column, table.among(column, candidates, other), max_values=limit, **stated)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.taken is None and self.among is None:
            self._method(Price(1), None)  # checks all fields
            least, most = sizes_of(self.k, self.candidates)
            object.__setattr__(self, "k", most if isinstance(self.k, int) else (least, most))

    def settled(self, price: Price, budget: Budget | None) -> Self:
        """Return the question with the method that answers at such a price."""
        return replace(self, taken=self._method(price, budget))

    def _method(self, price: Price, budget: Budget | None) -> Method:
        choices = {"method": self.method, "max_values": self.max_values, "ordered": self.ordered}
        return method_for(self.k, self.candidates, **choices, price=price, budget=budget)

    @property
    def how(self) -> Method:
        """Return the method, or the one of a pure budget if that is not settled."""
        return self.taken or self._method(Price(1), None)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of the mechanisms that can draw with this method, in a table."""
        return tuple(name for name in MECHANISMS if self._can_draw(name))

    def _can_draw(self, name: str) -> bool:
        price, how = Price(1, None, name), self.how
        try:
            named = how if how.is_free else replace(self, method=how.name, taken=None)._method(price, None)
            drawn = self.draw(price).mechanism
        except (InvalidType, InvalidValue):
            return False
        return named.name == how.name and (drawn.has_runs or not how.needs_runs)

    def used(self, price: Price, budget: Budget | None) -> str:
        """Return the name of the mechanism that draws at such a price."""
        return str(self.how.drawn_by(price, budget, self.max_groups, self.is_added).name)

    @classmethod
    def beside(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return whether the candidates are in order. Those that are found in the data are."""
        method, ordered = stated.get("method", AUTO), stated.get("ordered", False)
        return {"ordered": "candidates" not in stated or is_in_order(method, ordered)}

    @property
    def method_name(self) -> str | None:
        """Return the name of the method."""
        return self.how.name

    def about_method(self, concentrated: bool) -> list[str]:
        """Return in words which method answers and why."""
        told = [self.how.taken_for(concentrated, self.method)]
        if self.condition and not self.how.needs_limit and self.max_values is not None:
            told.append("It does not need max_values: leave it out, and people count for all values that they have.")
        return told

    def applicable(self, price: Price, budget: Budget | None = None) -> dict[str, Draw]:
        """Return what draws by each method that can answer, by name. A method that refuses these numbers is left out.

        The method that "auto" takes is as "auto" takes it: it may choose the candidates that are left out. If a method
        is settled, it is one of them.

        >>> list(TopK(k=10, candidates=1000).applicable(Price("0.1")))
        ['margin', 'one-shot', 'peel']
        """
        taken = replace(self, method=AUTO, taken=None).settled(price, budget)
        if taken.is_free:
            return {taken.how.name: taken.draw(price, budget)}
        found: dict[str, Draw] = {}
        for name in METHODS:
            try:
                one = taken if name == taken.how.name else replace(self, method=name, taken=None).settled(price, budget)
                found.setdefault(one.how.name, one.draw(price, budget))
            except (InvalidType, InvalidValue):
                continue
        return found if self.taken is None else {**found, self.taken.name: self.draw(price, budget)}

    @property
    def title(self) -> str:
        """Return the question in words."""
        number = f"{self.k:,}" if isinstance(self.k, int) else f"{self.k[0]:,} to {self.k[1]:,}"
        limit = {None: "", 1: ", with one value for each person"}
        most = limit.get(self.max_values, f", with at most {self.max_values} values for each person")
        order = ", in order" if self.ordered else ""
        return f"The {number} most common of {self.of_what}{order}{most}{self.in_groups}"

    @property
    def max_values_in_words(self) -> int | None:
        """Return for how many values a person counts, if they may have more; otherwise None."""
        return self.how.limit

    @property
    def shares(self) -> str:
        """Return in words how the price is divided."""
        return self.with_groups(divided(self.draws, self.how.draws_of))

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return None: what a value needs depends on the method."""
        del mechanism
        return None

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean: of one choice, if one candidate is chosen after another."""
        if self.how.selections is None:
            return self.how.meaning(average, usual, rare)
        return (
            f"On average, the i-th chosen value has at most {average} fewer people than the i-th most common one. In 95"
            f" of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )

    @property
    def _method_entry(self) -> dict[str, Any]:
        return self.how.parameters()

    def _most(self, individuals: Individuals) -> str:
        what = "the value" if self.how.size_words == "1" else f"the {self.how.size_words} values"
        counts = "" if self.is_free else individuals.counted_for(self.how.limit)
        return f"{what} that most {individuals.noun} have{counts}"

    @property
    def _by_method(self) -> str:
        return "" if self.is_free else f", by the method {self.how.name}"

    def _shown(self, chosen: list[Any]) -> Any:
        return chosen
