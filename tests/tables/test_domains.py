"""Rules for candidates: how many values, in which order, and SQL that agrees with them on every row."""

import datetime
import itertools
import math
import pickle
import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, timedelta
from datetime import datetime as moment
from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.domains import Domain, every, runs_of, width
from dpselect.tables.duckdb.values import column_of
from dpselect.tables.kinds import Kind

SMALL = [
    every("int8"),
    every("uint8"),
    every("integer", lower=-3, upper=-3),
    every("integer", lower=2**64, upper=2**64 + 50),
    every("decimal", precision=3, digits=1),
    every("decimal", precision=2, digits=2),
    every("decimal", precision=38, digits=20, lower="-0.00000000000000000005", upper="1e-20"),
    every("date", lower=date(1999, 12, 30), upper=date(2000, 3, 2)),
    every("timestamp", lower=moment(1969, 12, 31, 23, 59, 59, 999990), upper=moment(1970, 1, 1, 0, 0, 0, 9)),
    every("timestamptz", lower=moment(1, 1, 1, tzinfo=UTC), upper=moment(1, 1, 1, 0, 0, 0, 20, tzinfo=UTC)),
    every("text", max_bytes=1),
    every("text", max_bytes=4, alphabet="aé€𝄞"),
    every("text", max_bytes=1, alphabet="€"),
    every("text", max_bytes=3, alphabet="cab"),
    every("boolean"),
]
LARGE = [
    every("int64"),
    every("uint64"),
    every("integer", lower=-(2**127), upper=2**127 - 1),
    every("decimal", precision=38, digits=0),
    every("decimal", precision=38, digits=38),
    every("float64"),
    every("date"),
    every("timestamp"),
    every("timestamptz"),
    every("text", max_bytes=8),
    every("text", max_bytes=300),
    every("text", max_bytes=40, alphabet="0123456789€"),
    every("uuid"),
]
ALL = [*SMALL, *LARGE]
named = pytest.mark.parametrize


# Size, values and indices.


@named("domain", SMALL, ids=repr)
def test_small_domains_are_enumerated(domain):
    values = [domain.value(index) for index in range(domain.size)]
    assert len(set(values)) == domain.size
    assert [domain.index(value) for value in values] == list(range(domain.size))
    if domain.kind is not Kind.TEXT:
        assert values == sorted(values)


@named("domain", ALL, ids=repr)
@settings(max_examples=40, deadline=None)
@given(share=st.fractions(0, 1))
def test_places_and_values_are_inverse(domain, share):
    for index in (int(share * (domain.size - 1)), 0, domain.size - 1):
        assert domain.index(domain.value(index)) == index


def test_sizes():
    assert [every(f"int{bits}").size for bits in (8, 16, 32, 64)] == [2**8, 2**16, 2**32, 2**64]
    assert [every(f"uint{bits}").value(2**bits - 1) for bits in (8, 16, 32, 64)] == [2**b - 1 for b in (8, 16, 32, 64)]
    assert every("int16").value(0) == -(2**15)
    assert every("decimal", precision=3, digits=1).size == 2 * 999 + 1
    assert every("date").size == date.max.toordinal()
    assert every("timestamp").size == date.max.toordinal() * 86_400_000_000
    assert every("uuid").size == 2**128
    assert every("float64").size == 2 * int(np.float64(np.inf).view(np.uint64)) - 1
    assert every("text", max_bytes=8).size == brute_counts(8)
    assert math.log(every("text", max_bytes=8).size) == pytest.approx(39.7, abs=0.1)  # what the docstring says
    assert math.log(2**64) == pytest.approx(44.4, abs=0.1)


def brute_counts(longest):
    """The number of UTF-8 texts of at most so many bytes, by the widths of all characters."""
    widths = [0] * 5
    for code in itertools.chain(range(0xD800), range(0xE000, 0x110000)):
        widths[1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)] += 1
    counts = [1]
    for n in range(1, longest + 1):
        counts.append(sum(widths[w] * counts[n - w] for w in range(1, 5) if w <= n))
    return sum(counts)


def decodable(length):
    """All texts of so many bytes, by decoding all sequences of bytes."""
    for octets in itertools.product(range(256), repeat=length):
        with suppress(UnicodeDecodeError):
            yield bytes(octets).decode()


def test_all_texts_of_two_bytes():
    domain = every("text", max_bytes=2)
    texts = ["", *decodable(1), *decodable(2)]
    assert domain.size == len(texts)
    assert {domain.index(text) for text in texts} == set(range(domain.size))
    assert [domain.value(index) for index in range(domain.size)] == sorted(texts, key=lambda t: (len(t.encode()), t))


def test_texts_are_not_only_characters():
    domain = every("text", max_bytes=4)
    assert domain.index("\ud800") is None
    assert domain.index("\udfff") is None
    assert domain.value(domain.index("\0\0")) == "\0\0"
    assert domain.index("\U0010ffff") == domain.size - 1
    assert [width(ord(c)) for c in "\x7f\x80\u07ff\u0800\uffff\U00010000"] == [1, 2, 2, 3, 3, 4]


def test_runs_end_with_the_width_of_their_characters():
    assert runs_of("\x7e\x7f\x80\x81") == ((0x7E, 0x7F), (0x80, 0x81))
    assert every("text", max_bytes=2, alphabet="\x7f\x80").size == 1 + 1 + 2


def test_the_longest_texts():
    domain = every("text", max_bytes=1_000)
    for index in (domain.size - 1, domain.size // 3):
        assert domain.index(domain.value(index)) == index
    assert domain.index("x" * 10_001) is None


@named(
    ("domain", "others"),
    [
        (every("int8"), [128, -129, 0.5, math.nan, math.inf, "5", True, None, Decimal("1.5"), Decimal("NaN"), b"1"]),
        (every("decimal", precision=3, digits=1), [Decimal("0.05"), Decimal("100"), 100, 0.5, "0.5", None, True]),
        (every("float64"), [math.inf, math.nan, Decimal(1), 2**53 + 1, 10**400, "1", None, True]),
        (every("date"), ["2000-01-01", moment(2000, 1, 1), 5, None]),
        (every("timestamp"), [date(2000, 1, 1), moment(2000, 1, 1, tzinfo=UTC), None, "2000-01-01"]),
        (every("timestamptz"), [date(2000, 1, 1), moment(2000, 1, 1), None]),
        (every("boolean"), [0, 1, "true", None, 1.0]),
        (every("uuid"), [str(uuid.UUID(int=7)).upper().replace("0", "A"), uuid.UUID(int=7).hex, "", 5, None]),
        (every("text", max_bytes=2, alphabet="ab"), ["abc", "c", "A", "a\0", 5, None, b"a"]),
    ],
    ids=repr,
)
def test_other_values_have_no_place(domain, others):
    assert [domain.index(value) for value in others] == [None] * len(others)


def test_equal_numbers_of_other_types_have_the_same_place():
    assert {every("int8").index(value) for value in (5, 5.0, Decimal("5.00"), np.int64(5), np.float32(5))} == {133}
    decimals = every("decimal", precision=3, digits=1)
    assert {decimals.index(value) for value in (Decimal("5"), Decimal("5.000"), 5)} == {999 + 50}
    assert every("float64").index(-0.0) == every("float64").index(0) == every("float64").index(0.0)
    zone = datetime.timezone(timedelta(hours=5, minutes=30))
    zoned = every("timestamptz")
    assert zoned.index(moment(2000, 1, 1, 5, 30, tzinfo=zone)) == zoned.index(moment(2000, 1, 1, tzinfo=UTC))


# SQL.

NUMBERS = ["0", "-0.0", "0.5", "12.5", "-7", "127", "128", "-128", "-129", "99.9", "99.95", "100", "0.05", "1e-20"]
NUMBERS += ["9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615", "2e64"]
NUMBERS += [str(2**127 - 1), str(2**127), str(-(2**127)), "1e300", "nan", "inf", "-inf", "", " 5 ", "5.", "+5", "0x10"]
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "abcdefgh",
    "abcdefghi",
    "é",
    "éé€€",
    "€",
    "𝄞",
    "\0",
    "a\0b",
    "a\nb",
    "it's",
    "\\",
    "[",
    "]",
]
TEXTS += ["^", "-", "A", "true", "f", "x" * 300, "x" * 301, "\U0010ffff", "\u0301", "cab", "0123456789", "€" * 13]
IDS = [
    str(uuid.UUID(int=2**127 + 5)),
    str(uuid.UUID(int=0)),
    "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}",
    uuid.UUID(int=7).hex,
]
DAYS = ["2000-02-29", "2001-02-29", "0001-01-01", "9999-12-31", "10000-01-01", "infinity", "-infinity", "epoch"]
DAYS += ["0001-12-31 (BC)", "290000-01-01", "1999-12-30", "1999-12-29", "2000-03-02", "2000-03-03"]
TIMES = ["1970-01-01 00:00:00.000009", "1970-01-01 00:00:00.00001", "1969-12-31 23:59:59.99999", "infinity"]
TIMES += ["9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "0001-01-01 00:00:00", "-infinity"]
WRITTEN = [*NUMBERS, *TEXTS, *IDS, *DAYS, *TIMES, None]
TYPES = ["TINYINT", "UTINYINT", "BIGINT", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(38,0)"]
TYPES += ["DECIMAL(38,38)", "DECIMAL(38,20)", "DECIMAL(18,3)", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]
TYPES += ["TIMESTAMP_S", "TIMESTAMP WITH TIME ZONE", "UUID", "VARCHAR"]


@cache
def connected():
    """One connection with the written values, and one table of them for each type."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Kolkata'")
    connection.execute("CREATE TABLE written AS SELECT unnest(?) AS w", [WRITTEN])
    for type_ in TYPES:
        values = f'TRY_CAST(w AS {type_}) AS "a ""name"""'
        connection.execute(f'CREATE TABLE "{type_}" AS SELECT {values}, rowid AS place FROM written')
    return connection


def fetched(domain, type_, untyped=False):
    """What the SQL of a domain says about values of a type: each counted value, and whether the condition is true.

    DuckDB hands out infinite dates as the largest finite one, and needs another package for timestamps with a time
    zone. So infinite ones are fetched as text, and zoned ones as microseconds.
    """
    described = column_of('a "name"', type_, untyped=untyped)
    domain.check(described)
    expression = domain.form(described).value
    is_time = domain.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.ZONED)
    infinite = f"NOT isfinite({expression})" if is_time else "false"
    whole = (
        f"CASE WHEN isfinite({expression}) THEN epoch_us({expression}) END" if domain.kind is Kind.ZONED else expression
    )
    rows = connected().execute(
        f'SELECT {whole}, {domain.condition(expression)}, {infinite} FROM "{type_}" ORDER BY place'
    )
    return [
        ("infinite" if infinite else zoned(value, domain), condition) for value, condition, infinite in rows.fetchall()
    ]


def fits(domain, type_):
    return domain.kind in column_of("x", type_).comparable


CASES = [(domain, type_) for domain in ALL for type_ in TYPES if fits(domain, type_)]


def zoned(value, domain):
    if domain.kind is not Kind.ZONED or value is None:
        return value
    try:
        return moment(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    except OverflowError:
        return None


@named(("domain", "type_"), CASES, ids=repr)
def test_the_condition_is_true_for_values_with_a_place(domain, type_):
    rows = fetched(domain, type_)
    assert len(rows) == len(WRITTEN)
    for value, condition in rows:
        assert (condition is True) is (domain.index(value) is not None), value


@named("domain", [domain for domain in ALL if domain.kind is not Kind.ZONED], ids=repr)
def test_the_condition_reads_text_without_types(domain):
    for value, condition in fetched(domain, "VARCHAR", untyped=True):
        assert (condition is True) is (domain.index(value) is not None), value


def test_uuids_are_counted_in_one_form():
    values = {value for value, condition in fetched(every("uuid"), "VARCHAR") if condition}
    expected = [uuid.UUID(int=2**127 + 5), uuid.UUID(int=0), uuid.UUID(IDS[2]), uuid.UUID(int=7)]
    assert values == {str(one) for one in expected}


def test_a_large_alphabet():
    alphabet = "".join(chr(0x4E00 + 2 * i) for i in range(5_000))
    domain = every("text", max_bytes=6, alphabet=alphabet)
    assert domain.size == 1 + 5_000 + 5_000**2
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT {domain.condition('x')} FROM (SELECT unnest(?) AS x)", [["", alphabet[7], "\u4e01", alphabet[:3]]]
        ).fetchall()
    assert found == [(True,), (True,), (False,), (False,)]


# Words.


def test_rules_are_shown_as_they_are_written():
    names = {"every": every, "datetime": datetime, "Decimal": Decimal}
    for domain in ALL:
        assert eval(repr(domain), names) == domain  # noqa: S307 - our own text
        assert pickle.loads(pickle.dumps(domain)) == domain  # noqa: S301
        assert hash(domain) == hash(pickle.loads(pickle.dumps(domain)))  # noqa: S301
    assert repr(every("text", max_bytes=8)) == "every('text', max_bytes=8)"
    assert repr(every("integer", lower=-(2**63), upper=2**63 - 1)) == "every('int64')"
    assert repr(every("date")) == "every('date')"


def test_words_and_digests_tell_rules_apart():
    others = [
        every("text", max_bytes=9),
        every("text", max_bytes=8, alphabet="a"),
        every("text", max_bytes=8, alphabet="ab"),
        every("text", max_bytes=8, alphabet="".join(map(chr, range(200)))),
        every("text", max_bytes=8, alphabet="".join(map(chr, range(1, 201)))),
        every("decimal", precision=3, digits=2),
        every("decimal", precision=4, digits=1),
        every("decimal", precision=4, digits=1, lower=0),
        every("date", lower=date(2000, 1, 1)),
        every("integer", lower=0, upper=1),
        every("int32"),
    ]
    domains = [*ALL, *others]
    assert len({domain.words for domain in domains}) == len(domains)
    assert all(domain.words.startswith("every ") for domain in domains)


def test_ends_are_read_from_text():
    assert every("date", lower="2000-01-01", upper="2000-12-31").size == 366
    assert every("integer", lower="-5", upper="5").size == 11
    assert every("decimal", precision=4, digits=2, lower="0.5", upper=1).size == 51
    assert every("timestamp", lower="2000-01-01", upper="2000-01-01T00:00:01").size == 1_000_001


@pytest.mark.parametrize("rows", [[0], range(6_000)], ids=["one row", "many rows"])
@pytest.mark.parametrize("change", [{"size": 5_000}, {"size": 2**70}, {"words": "every int8"}, {"kind": Kind.DECIMAL}])
def test_a_rule_that_was_changed_by_hand_is_refused(change, rows):
    """With a size that is too small, an answer was an error if there were many values."""
    table = dpselect.open_table(pa.table({"n": rows}))
    changed = replace(every("integer", lower=0, upper=10_000), **change)
    for ask in (table.mode, lambda column, **options: table.top_k(column, 2, **options)):
        with pytest.raises(InvalidValue, match="must be a rule as every"):
            ask("n", candidates=changed, epsilon=1)


@pytest.mark.parametrize("domain", [*SMALL, *LARGE], ids=repr)
def test_a_rule_is_made_again_of_its_arguments(domain):
    kind, *options = domain.arguments
    assert every(kind, **dict(options)) == domain == pickle.loads(pickle.dumps(domain))  # noqa: S301 - our own bytes


def test_a_rule_is_public_and_frozen():
    domain = dpselect.every("text", max_bytes=8)
    assert isinstance(domain, Domain)
    with pytest.raises(AttributeError):
        domain.max_bytes = 9


# What is refused.


BAD_VALUES = [
    ("int128", {}, "kind must be one of int8"),
    ("", {}, "kind must be one of"),
    ("float32", {}, "use every"),
    ("text:8", {}, r"got 'text:8'; give its size apart, such as every\('text', max_bytes=8\)"),
    ("text", {}, r"max_bytes must be given with every\('text'\): write for example every\('text', max_bytes=8\)"),
    ("text", {"max_bytes": 0}, "max_bytes must be from 1 to 1,000"),
    ("text", {"max_bytes": 1_001}, "max_bytes must be from 1 to 1,000"),
    ("text", {"max_bytes": -1}, "max_bytes must be >= 0"),
    ("text", {"max_bytes": 8, "lower": "a"}, "lower does not apply"),
    ("text", {"max_bytes": 8, "alphabet": ""}, "at least one character"),
    ("text", {"max_bytes": 8, "alphabet": "aba"}, "drop the duplicates"),
    ("text", {"max_bytes": 8, "alphabet": "a\ud800"}, "lone surrogates"),
    ("int64", {"lower": 0}, "lower does not apply .*: leave it out, or write every"),
    ("int64", {"max_bytes": 8}, "max_bytes does not apply"),
    ("uuid", {"digits": 8}, "digits does not apply"),
    ("boolean", {"upper": True}, "upper does not apply"),
    ("float64", {"lower": 0.0}, "lower does not apply"),
    ("integer", {}, "lower must be given"),
    ("integer", {"lower": 0}, "upper must be given"),
    ("integer", {"lower": 5, "upper": 4}, "lower must be <= upper"),
    ("integer", {"lower": -(2**127) - 1, "upper": 4}, "within what the kind can hold"),
    ("integer", {"lower": 0, "upper": 2**127}, "within what the kind can hold"),
    ("integer", {"lower": "0.5", "upper": 5}, "lower: '0.5' cannot be read"),
    ("date", {"lower": date(2000, 1, 2), "upper": date(2000, 1, 1)}, "lower must be <= upper"),
    ("date", {"lower": "tomorrow"}, "cannot be read"),
    ("decimal", {}, "precision must be given"),
    ("decimal", {"precision": 5}, "digits must be given"),
    ("decimal", {"precision": 0, "digits": 0}, "precision must be from 1 to 38"),
    ("decimal", {"precision": 39, "digits": 0}, "precision must be from 1 to 38"),
    ("decimal", {"precision": 2, "digits": 3}, "digits must be at most precision"),
    ("decimal", {"precision": 4, "digits": 2, "lower": "0.001"}, "no more digits after the point"),
    ("decimal", {"precision": 4, "digits": 2, "lower": Decimal("NaN")}, "finite number"),
    ("decimal", {"precision": 4, "digits": 2, "upper": 100}, "within what the kind can hold"),
]
BAD_TYPES = [
    (int, {}, "kind must be a text"),
    ("text", {"max_bytes": 8.0}, "max_bytes must be an integer"),
    ("text", {"max_bytes": True}, "max_bytes must be an integer"),
    ("text", {"max_bytes": 8, "alphabet": ["a"]}, "alphabet must be a text"),
    ("integer", {"lower": 0.0, "upper": 5}, "lower must be one of whole numbers"),
    ("integer", {"lower": False, "upper": 5}, "lower must be one of whole numbers"),
    ("decimal", {"precision": 4, "digits": 2, "lower": 0.5}, "lower must be one of decimal numbers"),
    ("decimal", {"precision": 4.0, "digits": 2}, "precision must be an integer"),
    ("date", {"lower": moment(2000, 1, 1)}, "lower must be one of dates"),
    ("timestamp", {"upper": date(2000, 1, 1)}, "upper must be one of timestamps"),
    ("timestamp", {"upper": moment(2000, 1, 1, tzinfo=UTC)}, "upper must be one of timestamps"),
    ("timestamptz", {"upper": moment(2000, 1, 1)}, "upper must be one of timestamps with a time zone"),
]
REFUSED = [(error, *bad) for error, all_ in ((InvalidValue, BAD_VALUES), (InvalidType, BAD_TYPES)) for bad in all_]


@named(("error", "kind", "options", "message"), REFUSED)
def test_bad_rules_are_refused(error, kind, options, message):
    with pytest.raises(error, match=message):
        every(kind, **options)


@named(
    ("domain", "type_", "hint"),
    [
        (every("int64"), "VARCHAR", "every('text', max_bytes=8)"),
        (every("text", max_bytes=8), "BIGINT", "every('int64')"),
        (every("date"), "TIMESTAMP", "every('timestamp')"),
        (every("timestamp"), "TIMESTAMP WITH TIME ZONE", "every('timestamptz')"),
        (every("uuid"), "DOUBLE", "every('float64')"),
        (every("float64"), "DECIMAL(8,2)", "every('decimal', precision=8, digits=2)"),
        (every("boolean"), "DATE", "every('date')"),
        (every("int8"), "BOOLEAN", "every('boolean')"),
        (every("int8"), "BLOB", "no rule fits"),
    ],
)
def test_columns_that_do_not_fit_are_refused(domain, type_, hint):
    with pytest.raises(InvalidType) as refused:
        domain.check(column_of("x", type_))
    assert hint in str(refused.value)
    assert domain.words in str(refused.value)
