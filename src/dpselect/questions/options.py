"""What users can ask by name, and how they state it as text: what command lines and forms are derived from.

A field of a record carries its options (`option`): flags, help, and how text is read. `QUESTIONS` has the names, each
with the record that it makes, the fields that it fixes, and its help. A question that is added to it, even by a test,
can be asked and planned by its name.
"""

import importlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Protocol

from dpselect.errors import InvalidType, InvalidValue


class Reader(Protocol):
    """Reads what needs more than its text: a form knows whether a list is counted, or is in the type of a column."""

    def listed(self, text: str, flag: str) -> Any:
        """Return the public values of a list, or their number."""
        ...

    def domain(self, text: str) -> Any:
        """Return the public domain that a rule describes."""
        ...


Read = Callable[[Any, str, Any], Any]  # makes a parameter of the text of an option, its name, and a Reader


def as_it_is(text: str, name: str, reader: Reader) -> Any:  # noqa: ARG001 - for other readers
    """The text: numbers are read exactly by the record."""
    return text


def whole(text: str, name: str, reader: Reader | None = None) -> int:  # noqa: ARG001 - for other readers
    """A whole number from 1; 1e6 is accepted."""
    from dpselect import _validate  # noqa: PLC0415 - NumPy is slow to import, and names need none

    return _validate.count_in_text(1, _validate.MANY, **{name: text})


def sizes(text: str, name: str = "k", reader: Reader | None = None) -> int | tuple[int, int]:  # noqa: ARG001 - as above
    """How many candidates to return: a number K, or an interval LO:HI.

    >>> sizes("3"), sizes("5:20")
    (3, (5, 20))
    """
    parts = [whole(part.strip(), name) for part in text.split(":")]
    if len(parts) > 2:
        raise InvalidValue(
            f"{name} must be a number or an interval LO:HI, got {text[:40]!r}: give for example 3 or 5:20"
        )
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])


def listed_levels(text: str, name: str = "levels", reader: Reader | None = None) -> tuple[Fraction, ...]:  # noqa: ARG001 - as above
    """The levels of a list such as 0.1,0.5,0.9, or of a name.

    >>> listed_levels("0.1, 1/2") == (Fraction(1, 10), Fraction(1, 2))
    True
    """
    from dpselect._levels import read_levels  # noqa: PLC0415 - NumPy is slow to import, and names need none

    is_name = text.strip().isalpha()
    return read_levels(text.strip() if is_name else [level.strip() for level in text.split(",")])


# Somebody who means a decimal fraction leaves out zeros at its end.
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}\.[0-9]{2}0")


def end(text: str, name: str, reader: Reader | None = None) -> str:  # noqa: ARG001 - for other readers
    """The text of a number or date. It warns of 1.500, which may be meant as one thousand five hundred."""
    if _THOUSANDS.fullmatch(text):
        from dpselect._validate import warn  # noqa: PLC0415 - NumPy is slow to import, and names need none

        warn(f"--{name} {text} is read with a decimal point: for a thousands separator, leave the point out")
    return text


def listed(text: str, name: str, reader: Reader) -> Any:
    """A public list, as the form reads it."""
    return reader.listed(text, f"--{name.replace('_', '-')}")


def combined(texts: list[str], name: str, reader: Reader) -> int:
    """The number of combinations of several public lists."""
    return math.prod(listed(text, name, reader) for text in texts)


def domain(text: str, name: str, reader: Reader) -> Any:  # noqa: ARG001 - for other readers
    """A public domain."""
    return reader.domain(text)


@dataclass(frozen=True)
class Field:
    """How a page shows an option.

    Attributes:
        hint: what is said below it; nothing if omitted.
        example: what is filled in first; the default of the option if omitted.
        empty: what an empty field means, in words; None if it must be filled in.
        choices: what is offered to choose from: values, with words.
    """

    label: str = ""
    hint: str = ""
    example: str | None = None
    empty: str | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    is_shown: bool = True


HIDDEN = Field(is_shown=False)


@dataclass(frozen=True)
class Option:
    """How users state a parameter of a question as text.

    Attributes:
        read: what makes the parameter of the text, its name and the form.
        name: the parameter of `Table.ask` and `plan`.
        default: the text if it is not given; None if it may be left out.
        is_shared: whether all questions about tables have it.
        way: what it states, in words, if another option states the same in another way.
        page: how a page shows it; by its name, and with its help, if omitted.
        planned: what of it differs where the question is planned.
    """

    flags: tuple[str, ...]
    metavar: str
    help: str
    read: Read = as_it_is
    name: str = ""
    default: str | None = None
    is_required: bool = False
    is_shared: bool = False
    is_repeated: bool = False
    way: str = ""
    page: Field | None = None
    planned: Mapping[str, Any] = field(default_factory=dict)

    def of(self, form: str) -> "Option":
        """Return the option as a form has it: where a table is asked, or where it is planned."""
        return self if form == ASKING else replace(self, planned={}, **self.planned)

    def as_field(self, **settings: Any) -> Any:
        """Return a field of a record that users state by this option alone. See `option`."""
        return option(self, **settings)

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return not self.metavar

    @property
    def key(self) -> str:
        """The name of its text among those of a form."""
        return self.flags[0].lstrip("-").replace("-", "_")


ASKING, PLANNING = "asking", "planning"


def option(
    *options: Option,
    default: Any = MISSING,
    forms: tuple[str, ...] = (ASKING, PLANNING),
    is_required: bool = True,
    table: bool = False,
    **settings: Any,
) -> Any:
    """A field that users can state, with its options where a table is asked and where it is planned, or in one of them.

    Several options are ways to state the same thing. With `table`, plans do not state it.
    """
    by_form = {form: tuple(each.of(form) for each in options) for form in forms}
    metadata = {**by_form, "is_required": is_required, **({"of_table": True} if table else {})}
    return field(default=default, metadata=metadata, **settings)


MAX_VALUES = Option(
    ("--max-values",),
    "N",
    "For how many of the values that are found a person counts: N of theirs, at random.",
    whole,
    planned={"metavar": "M", "help": "For how many candidates one person counts at most. Default: any."},
)
# What a price adds to the fields of a question.
_PRICED = {
    "mechanism": Option(
        ("--mechanism",), "M", "permute-and-flip or exponential. auto: by the kind of budget.", default="auto"
    ),
    "delta": Option(
        ("--delta",),
        "D",
        "Find the values in the data. D is the probability with which a value that only one person has may come"
        " out, such as 1e-9: much less than one over the number of people.",
        planned={
            "help": "Values are found in the data; prints how many people a value needs.",
            "way": "values are found in the data",
        },
    ),
}


@dataclass(frozen=True)
class Named:
    """What users can ask by name.

    Attributes:
        kind: the record, or its name in `dpselect.questions`.
        help: what `dpselect NAME --help` says before the options; nothing if it cannot be asked of a table.
        method: the name of the question in `plan` and of the method of `Table`; that of the command if omitted.
        fixed: the fields that the name fixes.
        defaults: texts of options that need not be given.
        helps: help of options that the name has in other words, in plans.
        title: what a page calls it; by its name if omitted, and None if no page offers it.
    """

    name: str
    kind: str | type[Any]
    help: str = ""
    plan_help: str = ""
    method: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    helps: Mapping[str, str] = field(default_factory=dict)
    title: str | None = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", self.method or self.name)

    @property
    def record(self) -> type[Any]:
        """The record that it makes, imported when it is first used."""
        if not isinstance(self.kind, str):
            return self.kind
        found: type[Any] = getattr(importlib.import_module("dpselect.questions"), self.kind)
        return found

    def paragraphs(self, form: str) -> list[str]:
        """Return what a form says before the options; nothing if there is no such form."""
        text = {ASKING: self.help, PLANNING: self.plan_help}[form].strip()
        return [" ".join(each.split()) for each in text.split("\n\n")] if text else []

    def of_table(self, parameters: Mapping[str, Any], **price: Any) -> dict[str, Any]:
        """Return what is stated of a table, with what the name fixes. The question must have what the price needs."""
        known = {each.name for each in self.asking if not each.is_shared}
        for name in (*parameters, *(name for name, value in price.items() if value is not None)):
            if name not in known:
                raise InvalidType(f"{name} is not a parameter of {self.method}, which takes {', '.join(sorted(known))}")
        return {**self.defaults, **parameters, **self.fixed}

    @property
    def asking(self) -> list[Option]:
        """The options where a table is asked."""
        return self._options(ASKING)

    @property
    def planning(self) -> list[Option]:
        """The options where it is planned."""
        return [replace(each, help=self.helps.get(each.name, each.help)) for each in self._options(PLANNING)]

    def _options(self, form: str) -> list[Option]:
        found = [
            replace(
                each,
                name=own.name,
                default=self.defaults.get(own.name, _text_of(own.default)),
                is_required=own.metadata["is_required"] and own.default is MISSING and own.name not in self.defaults,
            )
            for own in fields(self.record)
            for each in own.metadata.get(form, ())
            if own.name not in self.fixed
        ]
        priced = [replace(_PRICED[name].of(form), name=name) for name in self.record.priced]
        return [*sorted(found, key=lambda each: (each.is_shared, not each.is_required)), *priced]


def _text_of(default: Any) -> str | None:
    # A flag that is not given is false, and anything else may be left out.
    return str(default) if isinstance(default, (int, str)) and not isinstance(default, bool) else None


_ALL = [
    Named(
        "mode",
        "Mode",
        """
        Return the candidate that most people have, privately.

        Candidates must be public: a list taken from the data would leak. A candidate that nobody has can win. Values
        that are not listed do not count, unless --other names a candidate for them. Without a list, give a rule with
        --every, or --delta to find the values in the data.

        Example: dpselect mode visits.csv --column diagnosis --candidates I10,E11,J45 --person patient --epsilon 0.5

        Example: dpselect mode visits.csv --column diagnosis --every text:3 --person patient --epsilon 0.5

        Example: dpselect mode visits.csv --column diagnosis --delta 1e-9 --person patient --epsilon 0.5
        """,
        """
        Plan `dpselect mode`: how many fewer people the chosen value can have than the most common one.

        Give one of --epsilon, --rho and --error, or only --budget. With --every, the candidates follow a rule. With
        --delta, they are found in the data: the plan says how many people must have a value, and --max-values limits
        for how many values a person counts.

        Example: dpselect plan mode --candidates 30 --epsilon 0.1

        Example: dpselect plan mode --every int64 --epsilon 0.1

        Example: dpselect plan mode --delta 1e-9 --max-values 1 --epsilon 0.1

        Example: dpselect plan mode --candidates I10,E11,J45 --error 100 --budget 1

        Example: dpselect plan mode --candidates 30 --groups 12 --max-groups 2 --budget 1,1e-6 --questions 10
        """,
        title="Most common value",
    ),
    Named(
        "top",
        "TopK",
        """
        Return the K candidates that most people have, privately.

        They are printed as --candidates lists them, which says nothing about their counts. With --ordered or --delta,
        the best is first. Epsilon is the total for the whole answer. If K is the number of candidates, nothing is
        counted or charged. With an interval LO:HI, the number of candidates is chosen too, by the margin to those that
        are left out. A person counts for all candidates that they have. With --max-values 1, a person with several
        counts for one of them, at random: there is less noise, but it is another question, and its top K may differ.

        Example: dpselect top visits.csv -k 3 --column diagnosis --candidates codes.txt --person patient --epsilon 1

        Example: dpselect top sales.csv -k 20 --column item --candidates items.txt --person buyer --max-values 5
        --epsilon 1

        Example: dpselect top sales.csv -k 10:30 --column item --candidates items.txt --person buyer --epsilon 1

        Example: dpselect top sales.csv -k 10 --column item --delta 1e-9 --person buyer --max-values 5 --epsilon 1
        """,
        """
        Plan `dpselect top`: how many fewer people the K chosen values can have than the K most common ones.

        The price is for the whole answer. The plan says which method auto takes, and compares the methods at this
        price. If your table has no person column, give --max-values 1: a row has one value. With --every, the
        candidates follow a rule. With --delta, they are found in the data, and the plan says how many people must have
        a value.

        Example: dpselect plan top -k 3 --candidates 30 --epsilon 1

        Example: dpselect plan top -k 10 --delta 1e-9 --max-values 1 --epsilon 1

        Example: dpselect plan top -k 10 --candidates codes.txt --max-values 1 --epsilon 0.1

        Example: dpselect plan top -k 10 --candidates codes.txt --budget zcdp:0.5 --questions 20
        """,
        method="top_k",
        title="Top k",
    ),
    Named(
        "values",
        "Values",
        """
        Return the values that enough people have, privately. They are public then.

        Use them as candidates or groups of later questions. dpselect plan values says how many people a value needs.

        Example: dpselect values visits.csv --column diagnosis --person patient --epsilon 1 --delta 1e-9
        """,
        """
        Plan `dpselect values`: how many people must have a value so that it is found.

        Groups that are found in the data are planned in the same way: --max-values is their --max-groups.

        Example: dpselect plan values --epsilon 1 --delta 1e-9

        Example: dpselect plan values --rho 0.05 --delta 1e-9 --max-values 3 --budget zcdp:0.5,1e-8
        """,
        title=None,
    ),
    Named(
        "median",
        "Quantile",
        """
        Return a value with about half of the people below it, privately.

        The candidates are lower, lower + step, ..., upper. Values outside this range count as its nearest end. A
        person with several rows counts once, at the median of their values, unless --per-person is rows.

        Example: dpselect median visits.csv --column cost --lower 0 --upper 1000000 --person patient --epsilon 0.5

        Example: dpselect median visits.csv --column cost --step 1 --person patient --epsilon 0.5
        """,
        """
        Plan `dpselect median`: how many people the answer can be away from the median.

        Example: dpselect plan median --lower 0 --upper 50000 --epsilon 0.1

        Example: dpselect plan median --lower 2020-01-01 --upper 2025-12-31 --budget zcdp:0.5 --questions 20
        """,
        fixed={"level": Fraction(1, 2)},
        title=None,
    ),
    Named(
        "quantile",
        "Quantile",
        """
        Return a value with about a share Q of the people below it, privately.

        A person with several rows counts once, at the median of their values. So this is a quantile of people, not of
        rows: with --per-person rows --max-rows 10, up to ten rows of each person count instead.

        Example: dpselect quantile visits.csv --level 0.9 --column cost --lower 0 --upper 50000 --person patient
        --epsilon 1
        """,
        """
        Plan `dpselect quantile`: how many people the answer can be away from the quantile.

        Example: dpselect plan quantile --level 0.9 --lower 0 --upper 50000 --epsilon 0.1

        Example: dpselect plan quantile --level 0.9 --lower 0 --upper 50000 --error 20 --budget zcdp:0.5
        """,
        title=None,
    ),
    Named(
        "quantiles",
        "Quantiles",
        """
        Return a value for each of several shares of the people, privately, in one question.

        Epsilon is the total for the whole answer. Larger shares never get smaller values. Each line has a share and
        its value, in the order of --levels. --plot draws them as a distribution function, with --people also their
        accuracy.

        Example: dpselect quantiles visits.csv --levels deciles --column cost --step 1 --person patient --epsilon 1

        Example: dpselect quantiles visits.parquet --levels 0.1,0.5,0.9 --column cost --person patient --epsilon 1
        """,
        """
        Plan `dpselect quantiles`: how many people each answer can be away from its level.

        Example: dpselect plan quantiles --levels deciles --lower 0 --upper 50000 --epsilon 1

        Example: dpselect plan quantiles --levels 0.1,0.5,0.9 --range log --budget zcdp:0.5 --questions 20
        """,
        title="Median and quantiles",
    ),
    *(
        Named(
            name,
            "Quantile",
            f"""
            Return a value with only few people {where} it, privately, in place of the {name}.

            The {most} value is that of one person, and no private answer is always near it. So this is the quantile
            of --level, whose error is a few people. Without --lower and --upper, it needs many people.

            Example: dpselect {name} visits.csv --column cost --lower 0 --upper 50000 --person patient --epsilon 1
            """,
            f"""
            Plan `dpselect {name}`: how many people the answer can be away from the quantile that stands for the
            {name}.

            Example: dpselect plan {name} --lower 0 --upper 50000 --epsilon 0.1
            """,
            fixed={"stands_for": name},
            defaults={"level": level},
            helps={"level": f"Level of the quantile, near {end}. More people than the error should be beyond it."},
            title=None,
        )
        for name, where, most, level, end in (
            ("minimum", "below", "smallest", "0.01", 0),
            ("maximum", "above", "largest", "0.99", 1),
        )
    ),
    Named(
        "select",
        "Select",
        "",
        """
        Plan `dpselect select`: how far the chosen candidate can score below the best one.

        Results computed from private scores are private too, so give --scores public or synthetic ones.

        Example: dpselect plan select --candidates 1000 --epsilon 0.5

        Example: dpselect plan select --candidates 1000 --error 20 --monotonic --questions 20

        Example: dpselect plan select --candidates 1000 --monotonic --budget 1,1e-6 --questions 20

        Example: dpselect plan select --candidates 1000 --epsilon 0.1 --questions 50 --delta 1e-6

        Example: dpselect plan select --scores public.csv --epsilon 0.5
        """,
        helps={
            "epsilon": "Epsilon of each selection (0.1, 1e-3 or 1/3); prints its error.",
            "error": "Acceptable average distance from the best; prints the epsilon it needs.",
            "delta": "Also print their total cost as (epsilon, D), by the best known accounting.",
        },
        title="Your own scores",
    ),
]
QUESTIONS: dict[str, Named] = {each.name: each for each in _ALL}


def named(name: Any) -> Named:
    """What is asked by this name, of a command or of a method."""
    if not isinstance(name, str):
        raise InvalidType(f"question must be a name or a record of dpselect.questions, got {type(name).__name__}")
    found = next((each for each in QUESTIONS.values() if name in (each.method, each.name)), None)
    if found is None:
        known = ", ".join(each.method for each in QUESTIONS.values())
        raise InvalidValue(f"question must be one of {known}, got {name[:40]!r}")
    return found
