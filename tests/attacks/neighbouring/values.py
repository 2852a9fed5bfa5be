"""Values that are nearly equal: different in Python, and perhaps equal after a cast, or the other way round.

A family makes a cluster of abstract values around a random base, at distances that some type cannot see: neighbouring
floats of 16, 32 and 64 bits, digits beyond a scale, nanoseconds, the hour that a clock goes back. It says how people
write such a value in Python, and in text. What a column can hold of them is decided by the type of the column.
"""

import datetime
import math
import unicodedata
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpselect import every
from dpselect.tables.domains import Domain

Writing = Callable[[Any], list[Any]]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
_KOLKATA = datetime.timezone(datetime.timedelta(hours=5, minutes=30))


@dataclass(frozen=True)
class Family:
    """What kind of thing the values are.

    `near` makes a cluster. Each of `in_python` writes a value as Python values of one kind, `in_text` as texts, and
    `range_of` makes public bounds of a quantile around a value, where there is an order, and `rule_of` a rule of few
    values around one.
    """

    near: Callable[[Random], list[Any]]
    in_python: Sequence[Writing]
    in_text: Writing
    range_of: Callable[[Any, Random], dict[str, Any]] | None = None
    rule_of: Callable[[Any, Random], Domain] | None = None
    special: tuple[Any, ...] = ()  # what rows may hold, and no public list


# Numbers, as fractions.

_BASES = [
    0,
    "0.1",
    "0.3",
    1,
    "2.5",
    "12.50",
    100,
    2048,
    65504,
    2**24,
    2**31,
    2**53,
    10**17,
    2**63 - 1,
    2**64 - 1,
    2**100,
]
_DIGITS = [0, 1, 2, 3, 6, 9, 10, 12, 18, 19, 30]
_FINEST = 10**60


def _near_numbers(rng: Random) -> list[Fraction]:
    drawn = rng.choice([Fraction(rng.choice(_BASES)), Fraction(rng.randrange(10**9), 10 ** rng.randrange(7))])
    base = drawn * rng.choice([1, 1, -1])
    steps = [*(_ulp(base, bits) for bits in (11, 24, 53)), *(Fraction(1, 10**digits) for digits in _DIGITS)]
    return _at_all_scales(base, steps, rng)


def _at_all_scales(base: Any, steps: Sequence[Any], rng: Random) -> list[Any]:
    """The base, and values at each distance from it: whatever a type cannot see, some of them differ by that."""
    return [base, *(base + rng.choice([-2, -1, 1, 1, 2]) * step for step in steps)]


def _ulp(number: Fraction, bits: int) -> Fraction:
    """The distance of floats with so many bits near a number."""
    exponent = abs(number.numerator).bit_length() - number.denominator.bit_length() if number else -14
    return Fraction(2) ** (exponent + 1 - bits)


def _decimal(number: Fraction) -> list[Decimal]:
    if _FINEST % number.denominator:
        return []
    return [Decimal(f"{number.numerator * (_FINEST // number.denominator)}e-60")]


def _short_decimal(number: Fraction) -> list[Decimal]:
    """The decimal without zeros at its end, and with one more."""
    texts = [f"{exact:f}" for exact in _decimal(number)]
    short = [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
    return [Decimal(text) for one in short for text in (one, one + ("0" if "." in one else ".0"))]


def _floats(number: Fraction) -> list[float]:
    nearest = float(number)
    with np.errstate(over="ignore"):
        narrow = [float(np.float32(nearest)), float(np.float16(nearest))]
    return [nearest, *(x for x in narrow if math.isfinite(x)), *([-nearest] if nearest == 0 else [])]


def _integers(number: Fraction) -> list[int]:
    return [number.numerator] if number.denominator == 1 else []


def _number_texts(number: Fraction) -> list[str]:
    plain = [f"{one:f}" for one in _short_decimal(number)][:1]
    digits = [str(n) for n in _integers(number)]
    variants = [(f"+{t}", f"0{t}", f" {t}", f"{t} ", f"{t}e0", f"{t}.0", f"{t}.", f"{t}0e-1", f"{t}_0") for t in digits]
    return [*plain, *digits, *(text for one in variants for text in one), repr(float(number)), f"{float(number):.9f}"]


def _number_range(number: Fraction, rng: Random) -> dict[str, Any]:
    lower = rng.choice([math.floor(number), 0, -3])
    step: Any = rng.choice([1, 1, 2, Decimal("0.5"), Decimal("0.01"), 0.25])
    return {"lower": lower, "upper": lower + rng.choice([0, 1, 3, 9, 2**40]), "step": step}


def _number_rule(number: Any, rng: Random) -> Domain:
    """Whole numbers around one, of which a narrow float is several; or decimals of few digits."""
    lower, reach = math.floor(number) - rng.choice([0, 1, 20]), rng.choice([1, 3, 40, 400])
    if rng.random() < 0.7:
        return every("integer", lower=lower, upper=lower + reach)
    return every("decimal", precision=38, digits=rng.choice([1, 2, 3]), lower=lower, upper=lower + rng.choice([0, 1]))


NUMBER = Family(
    _near_numbers,
    (_integers, _floats, _decimal, _short_decimal, lambda n: [*_floats(n), *_integers(n)]),
    _number_texts,
    _number_range,
    _number_rule,
    special=(math.nan, math.inf, -math.inf, -0.0),
)


# Moments, as nanoseconds since 1970.

_MOMENTS = [
    0,
    -1,
    1_729_989_000_000_000_000,  # 2024-10-27 00:30 UTC: in Berlin half past two, for the first time
    1_729_992_600_000_000_000,  # and for the second time
    1_711_846_800_000_000_000,  # when half past two is left out
    9_222_000_000_000_000_000,  # near the end of nanoseconds in 64 bits
    -9_222_000_000_000_000_000,
]
_UNITS = [1, 1, 10, 10**3, 10**6, 10**9, 1800 * 10**9, 3600 * 10**9, 86_400 * 10**9]


def _near_moments(rng: Random) -> list[int]:
    base = rng.choice([*_MOMENTS, rng.randrange(2 * 10**18)])
    return _at_all_scales(base, _UNITS, rng)


def _instant(moment: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=moment // 1000)


def _naive(moment: int) -> list[datetime.datetime]:
    return [_instant(moment).replace(tzinfo=None)]


def _aware(moment: int) -> list[datetime.datetime]:
    """One instant on three clocks, and what the clock of Berlin shows, read in both ways."""
    berlin = _instant(moment).astimezone(_BERLIN)
    return [_instant(moment), berlin, berlin.replace(fold=1 - berlin.fold), _instant(moment).astimezone(_KOLKATA)]


def _nanoseconds(moment: int) -> list[pd.Timestamp]:
    return [pd.Timestamp(moment, unit="ns")]


def _aware_nanoseconds(moment: int) -> list[pd.Timestamp]:
    stamp = pd.Timestamp(moment, unit="ns", tz="UTC")
    return [stamp, stamp.tz_convert("Europe/Berlin")]


def _moment_texts(moment: int) -> list[str]:
    stamp = _instant(moment).replace(tzinfo=None)
    full = stamp.isoformat(sep=" ", timespec="microseconds")
    fine = f"{full}{moment % 1000:03d}"
    return [full, stamp.isoformat(), fine, f"{full}Z", f"{full}+00:00", f"{full[:19]}", f" {full} ", full[:10]]


def _moment_range(moment: int, rng: Random) -> dict[str, Any]:
    lower: Any = _instant(moment) if rng.random() < 0.5 else _instant(moment).replace(tzinfo=None)
    step = datetime.timedelta(microseconds=rng.choice([1, 1000, 10**6, 1800 * 10**6]))
    return {"lower": lower, "upper": lower + rng.choice([1, 4, 2**20]) * step, "step": step}


def _moment_rule(moment: int, rng: Random) -> Domain:
    kind, lower = rng.choice([("timestamp", _naive(moment)[0]), ("timestamptz", _instant(moment))])
    return every(kind, lower=lower, upper=lower + datetime.timedelta(microseconds=rng.choice([1, 3, 1000])))


MOMENT = Family(
    _near_moments,
    (
        _naive,
        _aware,
        _nanoseconds,
        _aware_nanoseconds,
        lambda m: [*_naive(m), *_nanoseconds(m)],
        lambda m: [*_aware(m), *_aware_nanoseconds(m)],
    ),
    _moment_texts,
    _moment_range,
    _moment_rule,
)


# Days, text, flags and names of things.


def _near_days(rng: Random) -> list[datetime.date]:
    base = rng.choice([719_163, 1, 3_652_059, 738_945, rng.randrange(600_000, 800_000)])
    return [datetime.date.fromordinal(day) for day in (base - 1, base, base + 1) if 1 <= day <= 3_652_059]


def _day_texts(day: datetime.date) -> list[str]:
    iso = day.isoformat()
    return [
        iso,
        f" {iso} ",
        iso.replace("-", "/"),
        f"{day.year:04d}-{day.month}-{day.day}",
        f"{iso} 00:00:00",
        f"{iso}T00",
    ]


def _day_range(day: datetime.date, rng: Random) -> dict[str, Any]:
    last = min(day.toordinal() + rng.choice([0, 2, 9]), 3_652_059)
    return {"lower": day, "upper": datetime.date.fromordinal(last), "step": rng.choice([1, 2])}


def _midnight(day: datetime.date) -> list[datetime.datetime]:
    return [datetime.datetime.combine(day, datetime.time())]


def _day_rule(day: datetime.date, rng: Random) -> Domain:
    ends = _day_range(day, rng)
    return every("date", lower=ends["lower"], upper=ends["upper"])


DAY = Family(_near_days, (lambda day: [day], _midnight), _day_texts, _day_range, _day_rule)

_WORDS = ["a", "Grippe", "straße", "İzmir", "é", "1", "x,y", 'say "no"', "null", "NaN", "ﬁ", "K", ""]


def _near_texts(rng: Random) -> list[str]:
    word = rng.choice(_WORDS)
    forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD", "NFKC")]
    marks = [f"{word} ", f" {word}", f"{word}\t", f"{word}\u200b", f"{word}\x00", f"{word}\n", f"{word}.0", f"0{word}"]
    cases = [word.upper(), word.lower(), word.casefold(), word.swapcase()]
    return sorted({word, *rng.sample([*forms, *marks, *cases], 5)})


TEXT = Family(_near_texts, (lambda text: [text],), lambda text: [text])


def _flag_texts(flag: bool) -> list[str]:
    return ["true", "True", "TRUE", "t", "1", " true", "yes"] if flag else ["false", "False", "f", "0", "false ", "no"]


FLAG = Family(lambda rng: [True, False], (lambda flag: [flag], lambda flag: [int(flag)]), _flag_texts)


def _uuid_texts(text: str) -> list[str]:
    return [text, text.upper(), text.replace("-", ""), f"{{{text}}}", f"{text} "]


UUID = Family(
    lambda rng: [str(uuid.UUID(int=rng.choice([0, 7, 2**127, 2**127 + 7]) + i)) for i in range(3)],
    (_uuid_texts,),
    _uuid_texts,
)


# Four small numbers, which every type takes for what they are: they show what the other column does.

PLAIN = Family(
    lambda rng: [0, 1, 2, 3],
    (lambda number: [number],),
    lambda number: [str(number)],
    lambda number, rng: {"lower": 0, "upper": rng.choice([2, 3, 2**40]), "step": 1},
    lambda number, rng: every("integer", lower=0, upper=rng.choice([1, 3, 9])),
)


# What a column holds.


@dataclass(frozen=True)
class Type:
    """The type of a column. Without a type of Arrow it is in writing, as in a CSV file."""

    name: str
    family: Family
    arrow: Any = None
    sql: str | None = None  # a type that only a DuckDB relation has
    has_categories: bool = False

    def values(self, abstract: Any) -> list[Any]:
        """Return what a row can hold of a value: what is left of it in this type."""
        if self.arrow is None:
            return self.family.in_text(abstract)
        written = [value for writing in self.family.in_python for value in writing(abstract)]
        return [held for value in written for held in self.held(value)]

    def held(self, value: Any) -> list[Any]:
        """Return the value as a column of this type gives it back; nothing if it does not fit."""
        if self.sql == "UUID" and value != value.lower().strip("{} "):
            return []
        try:
            return [_in_utc(held) for held in pa.array([value], self.arrow).to_pylist()]
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
            return []


def _in_utc(value: Any) -> Any:
    """Moments of one clock are compared by what it shows, which is the same twice when it goes back."""
    return value if getattr(value, "tzinfo", None) is None else value.astimezone(datetime.UTC)


def _numbers() -> list[Type]:
    whole = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    others = [
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(4, 2),
        pa.decimal128(18, 9),
        pa.decimal128(38, 18),
    ]
    return [Type(str(arrow), NUMBER, arrow) for arrow in (*whole, *others)]


def _moments() -> list[Type]:
    kinds = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin")]
    return [Type(str(arrow), MOMENT, arrow) for arrow in kinds]


TYPED = [
    *_numbers(),
    Type("hugeint", NUMBER, pa.decimal128(38, 0), sql="HUGEINT"),
    *_moments(),
    Type("date32", DAY, pa.date32()),
    Type("date64", DAY, pa.date64()),
    Type("bool", FLAG, pa.bool_()),
    Type("string", TEXT, pa.string()),
    Type("large_string", TEXT, pa.large_string()),
    Type("string_view", TEXT, pa.string_view()),
    Type("categories", TEXT, pa.string(), has_categories=True),
    Type("uuid", UUID, pa.string(), sql="UUID"),
]
WRITTEN = [
    Type(f"{name} in writing", family)
    for name, family in (("numbers", NUMBER), ("moments", MOMENT), ("days", DAY), ("text", TEXT), ("flags", FLAG))
]
PLAIN_TYPES = [Type("plain numbers", PLAIN, pa.int64()), Type("plain numbers in writing", PLAIN)]
TYPES = {type_.name: type_ for type_ in (*TYPED, *WRITTEN, *PLAIN_TYPES)}
