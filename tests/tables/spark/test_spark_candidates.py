"""Candidates that are a Spark DataFrame stay in Spark, and count as those of a list do."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from tests import spark
from tests.tables.looking import counts, opened

pytestmark = [*spark.MARKS, pytest.mark.slow]
DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)


@pytest.fixture(scope="module", autouse=True)
def session():
    return spark.session()


@pytest.mark.parametrize(
    ("rows", "candidates", "absent"),
    [
        (pa.array(["a", "b", "a"]), ["a", "b"], "c"),
        (pa.array([2**62, 7, 2**62]), [2**62, 7], -1),
        (pa.array([0.1, -0.0, 0.1], pa.float32()), [0.1, 0.0], 0.25),
        (pa.array([0.1, 5e-324, 0.1]), [0.1, 5e-324], 1e300),
        (
            pa.array([Decimal("1.50"), Decimal("2.00")] * 2)[:3],
            [Decimal("1.5000"), Decimal("2.0000")],
            Decimal("1.5001"),
        ),
        (pa.array([DAY, DAY.replace(day=2), DAY]), [DAY, DAY.replace(day=2)], DAY.replace(day=3)),
        (pa.array([True, False, True]), [True, False], None),
        (pa.array([NOON, NOON.replace(day=2), NOON], pa.timestamp("us", "UTC")), [NOON, NOON.replace(day=2)], None),
    ],
    ids=lambda x: str(x.type) if isinstance(x, pa.Array) else "",
)
def test_candidates_of_a_frame_are_compared_in_spark(rows, candidates, absent, session):
    table = dpselect.open_table(pa.table({"x": rows}), engine="spark")
    if table.columns["x"].kind.name == "ZONED":
        candidates = [moment.replace(tzinfo=datetime.UTC) for moment in candidates]
    listed = candidates if absent is None else [*candidates, absent]
    frame = session.createDataFrame([(value,) for value in listed], ["candidate"])
    found = table.columns["x"]
    held = table._engine.candidates(frame, found)
    counted_there = {
        held.value(row["label"]): row["individuals"]
        for row in table._engine.scores(found, held, table._individuals).toArrow().to_pylist()
    }
    assert counted_there == dict(zip(listed, [2, 1, 0], strict=False))
    assert table.mode("x", candidates=frame, epsilon=100).value == candidates[0]


def test_the_digest_of_a_frame_is_that_of_its_set(session, tmp_path):
    table = opened({"x": [1, 2]}, "spark")
    column = table.columns["x"]
    orders = [session.createDataFrame([(v,) for v in order], "v bigint") for order in ([1, 2, 3], [3, 1, 2], [1, 2, 4])]
    first, same, other = (table._engine.candidates(frame, column) for frame in orders)
    assert first.sha256 == same.sha256 != other.sha256
    assert (len(first), repr(first)) == (3, "FrameValues(kind=<Kind.INTEGER: 'whole numbers'>, number=3)")


@pytest.mark.parametrize(
    ("candidates", "schema", "error", "words"),
    [
        ([], "x bigint", InvalidValue, "at least one value"),
        ([(1,), (1,)], "x bigint", InvalidValue, "different values"),
        ([(1,), (None,)], "x bigint", InvalidValue, "drop missing ones"),
        ([("a",)], "x string", InvalidType, "candidates are text, but the column 'x' holds whole numbers"),
        ([(1, 2)], "x bigint, w bigint", InvalidValue, "a DataFrame of one column, got 2"),
        *(([(value,)], "f double", InvalidValue, "finite numbers") for value in (math.nan, math.inf, -math.inf)),
    ],
)
def test_bad_frames_of_candidates_are_refused(candidates, schema, error, words, session):
    with pytest.raises(error, match=words):
        opened({"x": [1, 2], "f": [0.5, 1.5]}, "spark").mode(
            schema[0], candidates=session.createDataFrame(candidates, schema), epsilon=1
        )


LONG = ["é", "éé", "aé", "ab", "abc", "a", "", "a" * 99, "é" * 99, "ab\0", "\N{GRINNING FACE}"]


@pytest.mark.parametrize("candidates", [["a", "é"], ["a", "b"], ["", "z"], ["ab", "éé"], ["ab", "q"]])
@pytest.mark.parametrize("how", [{}, {"person": "who"}])
@pytest.mark.parametrize("other", [None, "else"])
def test_texts_longer_than_every_candidate_are_none_of_them(candidates, how, other):
    """They are cut before they are counted, and what is left equals no candidate either."""
    table = opened({"x": LONG * 2, "who": list(range(2 * len(LONG)))}, "spark", **how)
    equal = [2 * LONG.count(candidate) for candidate in candidates]
    rest = [] if other is None else [2 * len(LONG) - sum(equal)]
    assert counts(table, "x", candidates, other=other) == equal + rest


@pytest.fixture
def fast_settings(session):
    """The settings that Spark has by default, which the other tests turn off because they are slow on small tables."""
    names = ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    before = {name: session.conf.get(name) for name in names}
    for name, value in zip(names, ("true", "true", "FALLBACK"), strict=True):
        session.conf.set(name, value)
    yield
    for name, value in before.items():
        session.conf.set(name, value)


@pytest.mark.parametrize("size", [5, 6 * 10**7])
def test_one_long_text_cannot_make_a_question_fail(size, session, fast_settings):
    """With the long text or without, there is an answer: Spark once ran out of memory when it counted the text."""
    rows = session.createDataFrame([("a",)] * 300 + [("b",)], "v string")
    rows = rows.union(session.sql(f"SELECT repeat('z', {size}) AS v"))
    table = dpselect.open_table(rows, engine="spark")
    assert table.mode("v", candidates=["a", "b", "c"], epsilon=1).value == "a"
    frame = session.createDataFrame([("a",), ("b",)], "candidate string")
    assert table.mode("v", candidates=frame, epsilon=1).value == "a"
