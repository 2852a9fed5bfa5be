"""Summaries to Arrow and back: exact, small, and silent about what they hold."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import PermuteAndFlip
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.mechanisms.summary import COLUMNS, Summary

UNIT = PermuteAndFlip(epsilon=2)
SCORES = (
    st.integers(-(10**400), 10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.fractions()
    | st.just(Fraction(10**5_000, 3**7_000))
)
LABELS = (
    st.text(st.characters())
    | st.text("a\ud800\udc00\udfff")
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.just(7**9_000)
    | st.floats(allow_nan=False)
    | st.fractions()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.binary()
)
MECHANISMS = st.builds(
    PermuteAndFlip, st.fractions("1/1000", 10) | st.floats(1e-300, 1e300), st.fractions("1/7", 9), st.booleans()
) | st.builds(PermuteAndFlip, st.fractions("1/1000", 10), score_range=st.fractions("1/7", 9))


def there_and_back(watched):
    """Through the bytes of a stream, as between two machines."""
    sink = pa.BufferOutputStream()
    batch = watched.to_arrow()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    [received] = list(pa.ipc.open_stream(sink.getvalue()))
    return Summary.from_arrow(received)


@given(mechanism=MECHANISMS, scores=st.lists(SCORES, max_size=3), label=st.none() | LABELS)
def test_every_summary_comes_back_as_it_was(mechanism, scores, label):
    watched = mechanism.summary()
    watched.update(scores, None if label is None else [label] * len(scores))
    returned = there_and_back(watched)
    assert returned.mechanism == watched.mechanism
    assert returned._part == watched._part
    if scores:
        assert type(returned.result()) is type(watched.result())


def test_the_digits_of_an_integer_have_no_limit():
    watched = UNIT.summary()
    watched.update([7**9_000], labels=[7**9_001])
    assert there_and_back(watched).result() == 7**9_001
    assert there_and_back(watched)._part.arrival.exponent == -(7**9_000)


def test_summaries_of_many_machines_stack_into_one_table_and_merge():
    parts = []
    for start in range(0, 40, 10):
        part = UNIT.summary()
        part.update(np.arange(start, start + 10) * 100)
        parts.append(part.to_arrow())
    table = pa.Table.from_batches(parts)
    merged = UNIT.summary()
    for row in range(table.num_rows):
        merged = merged.merge(Summary.from_arrow(table.slice(row, 1)))
    assert (merged.result(), merged.candidates) == (39, 40)


def test_a_row_is_small_whatever_it_has_seen():
    watched = UNIT.summary()
    watched.feed(np.full(100_000, 2.0**-30) for _ in range(10))
    assert watched.candidates == 10**6
    assert watched.to_arrow().nbytes < 300


def test_an_empty_summary_is_still_the_identity():
    full = UNIT.summary()
    full.update([0, 900], labels=["a", "b"])
    assert there_and_back(UNIT.summary()).merge(full).result() == "b"


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        (3, InvalidType, "batch must be an Arrow record batch or table, got int"),
        (pa.table({"x": [1]}), InvalidValue, "is not a summary"),
        (pa.table({"x": [1, 2]}), InvalidValue, "must have one row"),
        (pa.table({"x": []}), InvalidValue, "must have one row"),
    ],
)
def test_other_batches_are_refused(batch, error, words):
    with pytest.raises(error, match=words):
        Summary.from_arrow(batch)


@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("monotonic", [True, False])
def test_flags_come_back_as_they_were(label, monotonic):
    watched = PermuteAndFlip(epsilon=2, monotonic=monotonic).summary()
    watched.update([1], labels=[label])
    again = Summary.from_arrow(watched.to_arrow())
    assert again.result() is label
    assert again.mechanism.monotonic is monotonic


MOMENT = np.datetime64(5, "us")
# A label, and what makes its row one that no summary has.
DAMAGED = [
    # Another text than that of a label of this kind.
    *(
        (label, {"label": text})
        for label, text in ((True, "true"), ("a", "['a']"), ("a", "1"), (7, "0x7"), (None, "()"))
    ),
    *((label, {"label": text}) for label, text in ((Decimal(1), "1_0"), (MOMENT, "int64 5"), (MOMENT, "nothing 5"))),
    *((MOMENT, {"label": text}) for text in ("datetime64[us] ", "datetime64[us]")),
    # A text that is not a number, a flag or a kind.
    *(
        ("canary", {column: "canary-7"})
        for column in ("epsilon", "monotonic", "maximum", "exponent", "heads", "prefix")
    ),
    *(("canary", {column: "canary-7"}) for column in ("depth", "label_kind")),
    # None, or more heads than candidates; fewer than 53 bits of V, or so many that they take all memory.
    *((None, {"heads": number}) for number in ("0", "2", "-1")),
    *((None, {"head": number}) for number in ("-1", "1")),
    *((None, {"prefix": number}) for number in ("-1", "f" * 14)),
    *((None, {"depth": number}) for number in ("34", "ffffffff")),
]


@pytest.mark.parametrize(("label", "damage"), DAMAGED, ids=str)
def test_a_damaged_row_is_refused_and_not_shown(label, damage):
    watched = UNIT.summary()
    watched.update([123456789], labels=[label])
    row = watched.to_arrow().to_pylist()[0]
    assert Summary.from_arrow(pa.Table.from_pylist([row])).result() == label
    with pytest.raises(InvalidValue, match="is not a summary") as caught:
        Summary.from_arrow(pa.Table.from_pylist([{**row, **damage}]))
    assert "canary" not in str(caught.value)


def test_labels_that_arrow_cannot_hold_are_refused():
    watched = UNIT.summary()
    watched.update([1], labels=[object()])
    with pytest.raises(InvalidType, match=r"all labels must be text, numbers, dates or bytes .*pickle"):
        watched.to_arrow()


def test_decimals_keep_their_digits():
    watched = UNIT.summary()
    watched.update([1], labels=[Decimal("1.500")])
    assert str(there_and_back(watched).result()) == "1.500"


@pytest.mark.parametrize("steady", [False, True])
def test_a_steady_summary_comes_back_steady(steady):
    watched = UNIT.summary(steady=steady)
    watched.update([1, 2])
    assert there_and_back(watched)._steady is steady
    assert there_and_back(UNIT.summary(steady=steady))._steady is steady


KINDS = (
    *("NoneType", "str", "bool", "bytes", "int", "float", "Fraction", "Decimal", "datetime", "date"),
    *("datetime64", "timedelta64", "list", "object"),
)
# What readers of expressions, numbers, types and dates stumble over.
ODD_TEXTS = (
    *(
        "",
        " ",
        "\0",
        "-",
        "--1",
        "()",
        "[]",
        "{}",
        "...",
        "''",
        "'",
        "b'",
        "b''",
        "'\\",
        "'\\q'",
        "'\\x0",
        "'\\N{DIGIT ONE}'",
    ),
    *(
        "-" * 200_000 + "1",
        "(" * 200_000,
        "[" * 200_000 + "]" * 200_000,
        "'" + "\\" * 200_001 + "'",
        "1+" * 100_000 + "1",
    ),
    *("f'{1}'", "1/0", "0/0", "1/-1", "-0", "0x1p99999", "nan", "inf", "1e999999999999", "9" * 10_000, "f" * 100_000),
    *("0001-01-01", "9999-12-31T23:59:59+24:00", "2026-01-01T00:00:00.0000000000000"),
    *(
        "datetime64[us] 5",
        "datetime64[99999999999us] 5",
        f"datetime64[us] {'f' * 16}",
        "object 5",
        "O 5",
        "i4,i4 5",
        "V8 5",
    ),
    *("(" + "1," * 100_000 + ")i4 5", "datetime64[" * 50_000 + " 5", "timedelta64 -8000000000000000"),
)


def row_of(**changed):
    watched = UNIT.summary()
    watched.update([1, 5], labels=["a", "b"])
    return {**watched.to_arrow().to_pylist()[0], **changed}


def refused_or_read(batch):
    """Nothing but an error of this package may come out, without a cause that quotes the row."""
    error = None
    try:
        return Summary.from_arrow(batch)
    except DPSelectError as refused:
        error = refused
    assert (error.__cause__, error.__context__) == (None, None)
    return str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_an_odd_label_is_refused_whatever_its_kind(kind):
    for text in ODD_TEXTS:
        found = refused_or_read(pa.Table.from_pylist([row_of(label_kind=kind, label=text)]))
        if isinstance(found, Summary):
            assert found.to_arrow().to_pylist()[0]["label"] == text
        else:
            assert found == "the row is not a summary: give a batch from Summary.to_arrow"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.filterwarnings("error")
def test_an_odd_text_in_any_column_is_refused_or_read(column):
    for text in ODD_TEXTS:
        refused_or_read(pa.Table.from_pylist([row_of(**{column: text})]))


CELLS = st.one_of(
    st.sampled_from(["True", "1", "1/1", "35", "ffffffffffffffff", *KINDS, *ODD_TEXTS]),
    st.text(max_size=20),
    st.sampled_from("-+~([{'\"\\").flatmap(lambda one: st.integers(1, 5_000).map(lambda count: one * count)),
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=20),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-9, max_value=9),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), min_size=1),
)


@given(changed=st.dictionaries(st.sampled_from(COLUMNS), CELLS, min_size=1))
@pytest.mark.filterwarnings("error")
def test_cells_of_any_type_are_refused_or_read(changed):
    row = row_of(**changed)
    try:
        table = pa.Table.from_pylist([row])
    except (pa.ArrowException, OverflowError):  # Arrow cannot hold it
        return
    refused_or_read(table)


def test_columns_that_python_cannot_hold_are_refused():
    """Text that is not UTF-8, which Arrow does not check; dates after the year 9999; other columns; other objects."""
    label = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff'")]
    )
    late = pa.array([2**62], pa.timestamp("s"))
    for column in (label, late, pa.array([2**40], pa.date64()), pa.nulls(1)):
        cells = {**{name: pa.array([cell]) for name, cell in row_of().items()}, "label": column}
        for batch in (pa.table(cells), pa.RecordBatch.from_pydict(cells)):
            assert "is not a summary" in refused_or_read(batch)
    cells = [pa.array([cell]) for cell in row_of().values()]
    twice = pa.Table.from_arrays([*cells, label], names=[*row_of(), "label"])
    assert "is not a summary" in refused_or_read(twice)
    for other in (pa.array([1]), pa.chunked_array([[1]]), pa.scalar(1), None, "row", row_of(), [row_of()]):
        with pytest.raises(InvalidType, match="batch must be an Arrow record batch or table"):
            Summary.from_arrow(other)
