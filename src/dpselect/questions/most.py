"""The most common values, and all that enough people have: of public candidates, or found in the data with a delta.

**Public candidates** are a list, or a public domain that is too large to list. All values of a domain that nobody has
are one run of candidates with score 0, whatever their number. If the choice falls into that run, a uniform value that
nobody has is the answer, drawn again and again until it is one. So the answer has exactly the distribution that it
would have if all values of the domain were listed, at the same pure epsilon. An answer "none of them" would reveal that
nobody has the value.

**Values that nobody listed** (`mechanisms.unlisted`). The most common ones are chosen above a threshold. All that are
common enough are found by coins. Both are (epsilon, delta)-differentially private, and what they
return is public. "Nothing was common enough" is an answer like any other, at the same cost.

**Shares.** A top-k of found values is k selections one after another, each with 1/k of epsilon and of delta; so are
groups. The coins of m values of a person have a share of 1/m each. A person who is replaced changes the counts of up to
m values that they leave and of m that they get: 2 m coins.

**How many people a value needs, by coins.** A value that n people have comes out with the probability pi(n) of
`mechanisms.unlisted`.

**Above "nothing".** "Nothing" has the score s = 1 + T, and the rate is c for each person. A value that n = s + g people
have, g >= 0, and that no other value competes with, loses

    permute-and-flip   exp(-c g) / 2           if "nothing" is asked first, which has probability 1/2, and its coin,
                                               of probability exp(-c g), is heads;
    exponential        x / (1 + x), x = exp(-c g).

In the unlimited version it also loses to `MOST` anonymous candidates of score 0. Their weight is at most
MOST exp(-c n) = exp(-c g) exp(-c) MOST exp(-c T) <= exp(-c g) delta / F, with F >= 1/2 for permute-and-flip and F >= 1
for the exponential mechanism. With permute-and-flip a candidate wins with at most half its weight against a better one
(theorem 18), so all of them win with at most exp(-c g) delta. So with d = delta, or d = 0 in the limited version, the
value loses with probability at most q <= 1/2 if

    permute-and-flip   g >= ln((1/2 + d) / q) / c,
    exponential        g >= ln((1 + d) (1 - q) / q) / c.
"""

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Annotated, Any, ClassVar, NamedTuple, Self, cast

from dpselect import _validate
from dpselect._numbers import LONGEST, first_true, shown
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.accounting.charge import EXPONENTIAL_FOUND, PARTITION_SELECTION
from dpselect.analysis.measures import ErrorsOf
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.privacy import PURE_LOSS
from dpselect.mechanisms.several import sizes_of
from dpselect.mechanisms.unlisted import MOST, Factor, Finding, Threshold, chosen_above, threshold
from dpselect.questions.methods import METHODS, Draw, Method, Peel, Share, checked_limit, is_in_order, method_for
from dpselect.questions.options import ASKING, MAX_VALUES, Field, Option, domain, listed, option, sizes
from dpselect.questions.question import FOUND, OF_TABLE, Asked, OfTable, divided, many_in_words
from dpselect.questions.rows import Engine, Individuals, Levels, Tally, counted
from dpselect.release import Accuracy
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket

_BEST_FIRST = "the most common value comes first"
_NO_ORDER = "the order is that of the candidates, which says nothing about the counts"
_HALF, _RARELY = Fraction(1, 2), Fraction(1, 20)
_DIGITS = 40
_UNIT = Price(1)  # where the method does not depend on the price


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
    returns_one: ClassVar[bool] = True
    needed_for: ClassVar[str] = "the most common value"
    limits_listed: ClassVar[bool] = False  # whether a person may count for a limited number of listed candidates
    candidates: Annotated[Any, {"type": "integer", "minimum": 2}] = option(
        Option(
            ("--candidates",),
            "LIST|FILE",
            "Possible answers: A,B,C, or a file with one per line. Must be public.",
            listed,
            way="a list",
            planned={"metavar": "N|LIST|FILE", "help": "Number of candidates; or A,B,C or a file of them."},
        ),
        Option(
            ("--every",),
            "RULE",
            "A rule instead of a list: int64, integer:0..999, text:8 (at most 8 bytes), text:6:0123456789 (of these"
            " characters), decimal:9:2 (9 digits, 2 of them after the point), date, uuid, ...",
            domain,
            way="a rule",
            planned={"help": "A rule instead of a list, as for dpselect mode: int64, text:8, ..."},
        ),
        is_required=False,
    )
    rule: str | None = None
    other: Any = Option(
        ("--other",), "TEXT", "A further candidate, for people with a value that is not listed."
    ).as_field(forms=(ASKING,), default=None, table=True, repr=False)
    max_values: int | None = MAX_VALUES.as_field(default=None, table=True, repr=False)
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
        limit = table.individuals.limit(max_values)
        if candidates is None and cls.found is not None:
            checked_delta(price)
            check_unlisted(other)
            return cls.found.about(table, column, price, max_values=limit, **stated)
        refused = {"delta": price.delta} if cls.limits_listed else {"delta": price.delta, "max_values": max_values}
        for name in (name for name, value in refused.items() if value is not None):
            raise InvalidValue(f"{name} is for values that nobody listed: leave out either {name} or candidates")
        among = table.among(column, candidates, other)
        stated |= {"among": among, "candidates": among.size, "rule": among.words, "max_values": limit}
        return super().about(table, column, price, **stated)

    @property
    def size(self) -> int:
        return int(self.candidates)

    @property
    def how(self) -> Method:
        """How it is chosen."""
        return self.taken or self.method_at(_UNIT, None)

    @property
    def claim(self) -> Claim:
        return self.how.claim(self.is_added)

    @property
    def rounds(self) -> int:
        return self.how.selections or 1

    @property
    def is_free(self) -> bool:
        return self.how.is_free

    @property
    def free_value(self) -> list[Any]:
        return list(self.among.listed)

    @property
    def draws(self) -> int:
        return self.how.parts * self.max_groups

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:
        # No mechanism takes a longer run. This must be refused before the charge.
        if self.among is not None and self.candidates.bit_length() > LONGEST:
            raise InvalidValue(f"{self.rule} has too many values: give a smaller max_bytes, or an alphabet")
        how = self.taken or self.method_at(price, budget)
        draw = how.draw(price, budget, self.max_groups, self.is_added)
        if how.needs_runs and self.column is not None:
            self.checked(draw.mechanism)
        return draw

    def method_at(self, price: Price, budget: Budget | None) -> Method:  # noqa: ARG002 - for the top k
        """Return how it is chosen at such a price: the mode is one selection."""
        return Peel(1, self.candidates, ordered=True)

    @property
    def errors(self) -> ErrorsOf | None:
        return self.how.bounds

    @property
    def title(self) -> str:
        return f"The most common of {self.of_what}{self.in_groups}"

    @property
    def of_what(self) -> str:
        """What the candidates are, and how many, in words."""
        size = self.candidates
        number = f"{size:,}" if size <= _validate.EXACT_IN_FLOATS else f"about {Decimal(size):.2e}"
        return f"{number} candidates" if self.rule is None else f"{self.rule}, {number} candidates"

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        # With x people it loses to n - 1 values that nobody has with the probability of the mechanism's worst case.
        # Other values that people have only take from that of the n - 1.
        if self.rule is None or not self.returns_one:
            return None
        worst, log_n = mechanism.worst, math.log(self.size)
        exponent = first_true(lambda x: worst.loss_probability(x, log_n) <= _RARELY, 1.0)
        return math.ceil(Fraction(exponent) / mechanism.rate)  # a rate may be beyond all floats

    def need(self, people: int) -> str:
        where = " of the group" if self.is_grouped else ""
        return (
            f"The most common value needs {people:,} people{where}: with fewer, more than 5 of 100 answers may be"
            " values that nobody has."
        )

    def meaning(self, average: str, usual: str, rare: str) -> str:
        return (
            f"On average, the chosen value has at most {average} fewer people than the most common one. In 95 of 100"
            f" cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )

    def remark(self, within_95: float) -> str:
        return self.how.remark(within_95)

    @property
    def read_as(self) -> dict[str, Any]:
        return {"domain": self.among} if self.among.as_list is None else {"values": self.among}

    def remarks(self, values: list[Any], draw: Draw) -> list[str]:  # noqa: ARG002 - none depends on the answer
        if self.rule is None:
            return []
        needed = self.people_needed(draw.mechanism)
        few = (
            ""
            if needed is None
            else f": in more than 5 of 100 cases if fewer than {needed:,} {self.noun} have the best"
        )
        return [f"the candidates follow a rule, so the answer may be a value that nobody has{few}"]

    def entry(self) -> dict[str, Any]:
        return {"question": self.name, "column": self.column.name, **self.among.entry()}

    def estimate(self, individuals: Individuals) -> str:
        which = "" if self.rule is None else f", of {self.rule}"
        return f"the value that most {individuals.noun} have{individuals.in_each_group}{which}"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        return individuals.by_group([self.shown(own) for own in self._chosen(engine, individuals, draw)])

    def _chosen(self, engine: Engine, individuals: Individuals, draw: Draw) -> list[list[Any]]:
        how, listed = draw.method or self.how, self.among.as_list
        if listed is not None:
            return engine.chosen(self.column, listed, individuals, how, draw.mechanism)
        chooser = _Chooser(self.among, how, draw.mechanism, Draws())

        def choose() -> list[list[Any]]:
            with engine.tally(self.column, self.among, individuals, how.max_values) as tally:
                return [chooser.of_group(group, own, tally) for group, own in enumerate(tally.levels())]

        return counted(choose)


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
        method: "auto", "set", "margin", "one-shot", "peel" or "noisy-counts".
        max_values: for how many candidates one person counts at most; None for any number. It is 1 if rows are counted.
        ordered: whether the answer is in order, best first.

    The other arguments are those of `Mode`.

    Raises:
        InvalidType, InvalidValue: an argument is wrong, or the method cannot answer.

    >>> TopK(k=3, candidates=30, method="set", max_values=1).title
    'The 3 most common of 30 candidates, with one value for each person'
    """

    name: ClassVar[str] = "top_k"
    returns_one: ClassVar[bool] = False
    limits_listed: ClassVar[bool] = True
    k: int | tuple[int, int] = Option(
        ("-k",),
        "K|LO:HI",
        "How many candidates to return, or an interval in which to find a clear cut.",
        sizes,
        page=Field("How many, k", example="3"),
        planned={"metavar": "K", "help": "How many candidates to return; LO:HI for the margin."},
    ).as_field()
    method: Annotated[str, {"enum": [AUTO, *METHODS]}] = Option(
        ("--method",),
        "M",
        f"One of {', '.join(METHODS)}. auto: by K, --max-values, --ordered and the kind of budget.",
    ).as_field(default=AUTO)
    max_values: int | None = replace(
        MAX_VALUES,
        help="For how many candidates a person counts: N of theirs, at random. set and noisy-counts need it.",
        page=Field("Values per person", example="1", empty="any number"),
    ).as_field(default=None)
    ordered: bool = Option(
        ("--ordered",), "", "Print the best first. This needs more noise.", page=Field("In order, best first")
    ).as_field(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.taken is None and self.among is None:
            self.method_at(_UNIT, None)  # checks all fields
            least, most = sizes_of(self.k, self.candidates)
            object.__setattr__(self, "k", most if isinstance(self.k, int) else (least, most))

    def settled(self, price: Price, budget: Budget | None) -> Self:
        return replace(self, taken=self.method_at(price, budget))

    def method_at(self, price: Price, budget: Budget | None) -> Method:
        choices = {"method": self.method, "max_values": self.max_values, "ordered": self.ordered}
        return method_for(self.k, self.candidates, **choices, price=price, budget=budget)

    def suits(self, kind: type[MechanismBase]) -> bool:
        return self.how.suits(kind)

    def used(self, price: Price, budget: Budget | None) -> str:
        return str(self.how.draw(price, budget, self.max_groups, self.is_added).mechanism.name)

    @property
    def method_name(self) -> str | None:
        return self.how.name

    def about_method(self, concentrated: bool) -> list[str]:
        told = [self.how.taken_for(concentrated, self.method)]
        if self.condition and not self.how.needs_limit and self.max_values is not None:
            told.append("It does not need max_values: leave it out, and people count for all values that they have.")
        return told

    def applicable(self, price: Price, budget: Budget | None = None) -> dict[str, Draw]:
        # The method that "auto" takes is as "auto" takes it: it may choose the candidates that are left out. If a
        # method is settled, it is one of them.
        automatic = replace(self, method=AUTO).method_at(price, budget)
        found: dict[str, Draw] = {}
        for name in [automatic.name] if automatic.is_free else METHODS:
            with suppress(InvalidType, InvalidValue):
                method = automatic if name == automatic.name else replace(self, method=name).method_at(price, budget)
                found.setdefault(method.name, replace(self, taken=method).draw(price, budget))
        if self.taken is None or automatic.is_free:
            return found
        return {**found, self.taken.name: self.draw(price, budget)}

    @classmethod
    def beside(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        # Candidates that are found in the data are in order.
        method, ordered = stated.get("method", AUTO), stated.get("ordered", False)
        return {"ordered": "candidates" not in stated or is_in_order(method, ordered)}

    @property
    def title(self) -> str:
        number = f"{self.k:,}" if isinstance(self.k, int) else f"{self.k[0]:,} to {self.k[1]:,}"
        limit = {None: "", 1: ", with one value for each person"}
        most = limit.get(self.max_values, f", with at most {self.max_values} values for each person")
        order = ", in order" if self.ordered else ""
        return f"The {number} most common of {self.of_what}{order}{most}{self.in_groups}"

    @property
    def max_values_in_words(self) -> int | None:
        return self.how.limit

    @property
    def shares(self) -> str:
        return self.with_groups(divided(self.draws, self.how.draws_of))

    def meaning(self, average: str, usual: str, rare: str) -> str:
        return self.how.meaning(average, usual, rare)

    def remarks(self, values: list[Any], draw: Draw) -> list[str]:
        order = [_BEST_FIRST if self.how.ordered else _NO_ORDER] if len(values) > 1 else []
        return [*order, *super().remarks(values, draw)]

    def entry(self) -> dict[str, Any]:
        return {**super().entry(), **self.how.parameters()}

    def estimate(self, individuals: Individuals) -> str:
        what = "the value" if self.how.size_words == "1" else f"the {self.how.size_words} values"
        counts, which = individuals.counted_for(self.how.limit), f", by the method {self.how.name}"
        if self.is_free:
            counts, which = "", ""
        if self.rule is not None:
            which = f", of {self.rule}"
        return f"{what} that most {individuals.noun} have{counts}{individuals.in_each_group}{which}"


class People(NamedTuple):
    """How many people must have a value so that it is found: in half of all cases, in 95 of 100, and always."""

    half: int
    usual: int
    surely: int | None = None
    nothing: Fraction | None = None  # the score of "nothing", in people


@dataclass(frozen=True, kw_only=True)
class Unlisted(OfTable):
    """What questions about unlisted values share: for how many values a person counts; None for any number."""

    coins: ClassVar[str] = "selections"  # what one person can influence several of
    max_values: int | None = None

    @classmethod
    def about(cls, table: Asked, column: Any, price: Price, *, max_values: Any = None, **stated: Any) -> OfTable:
        return super().about(table, column, price, max_values=table.individuals.limit(max_values), **stated)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_limit(self.max_values)

    @property
    def size(self) -> int:
        return MOST

    @property
    def claim(self) -> Claim:
        return stated(1, self.is_added)

    def entry(self) -> dict[str, Any]:
        of_table = OfTable.stated_fields()  # which the table states itself
        stated = {name: value for name, value in self.to_dict().items() if name not in of_table and value is not None}
        return {**stated, "column": self.column.name}

    @abstractmethod
    def people(self, draw: Draw) -> People:
        """Return how many people must have a value."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What is found, in words."""

    @property
    def title(self) -> str:
        if self.max_values is None:
            return f"{self.what}, with any number of values for each person"
        limit = "one value" if self.max_values == 1 else f"at most {self.max_values:,} values"
        return f"{self.what}, with {limit} for each person"

    def meaning(self, average: str, usual: str, rare: str) -> str:  # noqa: ARG002 - people that a value needs, no errors
        return ""

    @abstractmethod
    def found_if(self, people: People) -> list[str]:
        """Return in words how many people a value needs."""

    @property
    def counted_people(self) -> str:
        """Whom these numbers count, in words; nothing if everybody counts for all their values."""
        if self.max_values is None:
            return ""
        chosen = many_in_words(self.max_values, "value")
        return f"These are people for whom the value counts: of people with more than {chosen}, some chosen at random."

    def accuracy(self, draw: Draw) -> Accuracy:
        people, limit = self.people(draw), self.max_values if self.noun == "people" else None
        told = " ".join(filter(None, [*self.found_if(people), "" if limit is None else self.counted_people]))
        condition = "" if limit is None else f"if nobody has more than {many_in_words(limit, 'value')}"
        numbers = float(people.half), float(people.usual)
        method = "people who must have a value to be found"
        return self.in_nouns(Accuracy(*numbers, "people", method, told, condition=condition))


@dataclass(frozen=True, kw_only=True)
class UnlistedTopK(Unlisted):
    """The values that most people have, if they are common enough: at most k of them."""

    name: ClassVar[str] = "top_k"
    candidates: Annotated[str, {"const": FOUND}] = field(default=FOUND, init=False, repr=False)
    k: Annotated[Any, {"type": "integer", "minimum": 1, "maximum": MOST}]

    @classmethod
    def about(
        cls, table: Asked, column: Any, price: Price, *, method: str = AUTO, ordered: Any = True, **stated: Any
    ) -> OfTable:
        del ordered  # the answer always is
        if method not in (AUTO, Peel.name):
            raise InvalidValue(f"method must be auto or peel without a list of candidates, got {str(method)[:40]!r}")
        return super().about(table, column, price, **stated)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, (tuple, list)):
            raise InvalidValue("k may be a pair only with a list of candidates: give one number")
        number = _validate.count(k=self.k)
        if not 1 <= number <= MOST:
            raise InvalidValue(f"k must be from 1 to {MOST:,} without a list of candidates, got {number}")

    def remarks(self, values: list[Any], draw: Draw) -> list[str]:  # noqa: ARG002 - none depends on the price
        return [_BEST_FIRST] if len(values) > 1 else []

    @property
    def what(self) -> str:
        return f"Up to {self.k} most common values, found in the data"

    @property
    def rounds(self) -> int:
        return int(self.k)

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:
        delta, kind, count = checked_delta(price), price.kind(budget), self.draws
        is_luce = kind.is_luce
        loss = kind.loss if is_luce else PURE_LOSS
        drawn = self.checked(kind(price.each(loss, count), **self.claim.arguments()))
        if drawn.far_below is None:
            raise InvalidType(f"mechanism {drawn.name} cannot choose among found values: use permute-and-flip")
        factor = Factor(drawn.far_below, replaced=not self.is_added, grouped=self.is_grouped)
        above = threshold(drawn.rate, delta / count, self.max_values, factor)
        part = Share(EXPONENTIAL_FOUND if is_luce else drawn.name, drawn.epsilon, loss, drawn.claim)
        return Draw(drawn, part, count, delta, threshold=above)

    def people(self, draw: Draw) -> People:
        nothing, mechanism, delta = cast("Threshold", draw.threshold), draw.mechanism, draw.delta / draw.count
        half, usual = (_people_above(nothing, mechanism, delta, rarely) for rarely in (_HALF, _RARELY))
        return People(half, usual, nothing=nothing.people)

    def found_if(self, people: People) -> list[str]:
        where = " of a group" if self.is_grouped else ""
        nothing = 0.0 if people.nothing is None else float(people.nothing)
        return [
            f'"Nothing was common enough" competes like a value that {shown(nothing)} people have.',
            f"A value that no other one competes with wins against it with probability 1/2 if {people.half:,}"
            f" people{where} have it, and in 95 of 100 cases if {people.usual:,} have it.",
        ]

    def estimate(self, individuals: Individuals) -> str:
        what, it = ("the value", "it") if self.k == 1 else (f"up to {self.k:,} values", "them")
        counts = individuals.counted_for(self.max_values)
        return f"{what} that most {individuals.noun} have, if enough have {it}{counts}{individuals.in_each_group}"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        above = cast("Threshold", draw.threshold)

        def choose() -> list[list[Any]]:
            with engine.tally(self.column, None, individuals, self.max_values) as tally:
                chosen = [
                    chosen_above(own.individuals, own.values, self.k, above, draw.mechanism) for own in tally.levels()
                ]
                wanted = [(group, *place) for group, places in enumerate(chosen) for place in places]
                values = iter(tally.values(wanted))
                return [[next(values) for _ in places] for places in chosen]

        return individuals.by_group([self.shown(own) for own in counted(choose)])


@dataclass(frozen=True, kw_only=True)
class UnlistedMode(UnlistedTopK):
    """The value that most people have, if it is common enough."""

    name: ClassVar[str] = "mode"
    returns_one: ClassVar[bool] = True
    k: Any = field(default=1, init=False, repr=False, metadata=OF_TABLE)

    @property
    def what(self) -> str:
        return "The most common value, found in the data"


@dataclass(frozen=True, kw_only=True)
class Values(Unlisted):
    """All values that enough people have, as `Table.values` returns them."""

    name: ClassVar[str] = "values"
    priced: ClassVar[tuple[str, ...]] = ("delta",)
    coins: ClassVar[str] = "coins"
    max_values: int = replace(
        MAX_VALUES, planned={"metavar": "M", "help": "For how many values one person counts at most."}
    ).as_field(default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        _needed_limit(self.max_values)

    @classmethod
    def about(cls, table: Asked, column: Any, price: Price, *, max_values: Any = 1, **stated: Any) -> OfTable:
        limit = _needed_limit(max_values)
        if limit > 1 and table.individuals.person is None:
            raise InvalidValue("max_values must be 1 without a person column: a row has one value")
        if price.delta is None:
            raise InvalidValue("values are found in the data, which needs delta: give for example 1e-9")
        return super().about(table, column, price, max_values=limit, **stated)

    @property
    def what(self) -> str:
        return "The values that enough people have"

    @property
    def rounds(self) -> int:
        return self.max_values * (1 if self.is_added else 2)

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:  # noqa: ARG002 - coins suit every budget
        delta, count = checked_delta(price), self.draws
        each = price.each(PURE_LOSS, count)
        return Draw(Finding(each, delta / count), Share(PARTITION_SELECTION, each), count, delta)

    def people(self, draw: Draw) -> People:
        coins: Finding = draw.mechanism
        return People(coins.people_for(_HALF), coins.people_for(1 - _RARELY), coins.surely)

    def found_if(self, people: People) -> list[str]:
        where = " of a group" if self.is_grouped else ""
        return [
            f"A value is found with probability 1/2 if {people.half:,} people{where} have it, in 95 of 100 cases if"
            f" {people.usual:,} have it, and always if {people.surely:,} have it."
        ]

    def estimate(self, individuals: Individuals) -> str:
        counts = individuals.counted_for(self.max_values)
        return f"the values that enough {individuals.noun} have{counts}{individuals.in_each_group}"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:

        def find() -> list[list[Any]]:
            with engine.tally(self.column, None, individuals, self.max_values) as tally:
                return tally.found(draw.mechanism)

        return individuals.by_group(counted(find))


def _needed_limit(max_values: Any) -> int:
    limit = checked_limit(max_values)
    if limit is None:
        raise InvalidValue("max_values must be given: for how many values a person counts")
    return limit


def _people_above(nothing: Threshold, mechanism: MechanismBase, delta: Fraction, rarely: Fraction) -> int:
    # See the docstring of the module.
    anonymous = Fraction(0) if nothing.most is None else delta
    lost = (_HALF + anonymous) / rarely
    if mechanism.is_luce:
        lost = (1 + anonymous) * (1 - rarely) / rarely
    _, high = log_bracket(max(lost, Fraction(1)), _DIGITS)
    return math.ceil(nothing.people + max(high, Fraction(0)) / mechanism.rate)


def checked_delta(price: Price) -> Fraction:
    """The delta of a question about values that nobody listed."""
    if price.delta is None:
        raise InvalidValue(
            "give candidates, the public list of possible answers, or a rule such as dpselect.every('int64');"
            " without them the question needs delta, such as 1e-9"
        )
    delta: Fraction = price.delta
    return delta


Mode.found, TopK.found = UnlistedMode, UnlistedTopK
