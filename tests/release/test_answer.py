"""Answers: one line, a dict that JSON can hold, and the totals of what they cost."""

import datetime
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tests.tables.looking import opened

NOON = datetime.datetime(2024, 1, 1, 12, 30)
VALUES = {
    "text": (["a\nb", 'c"d'], ["a\nb", 'c"d']),
    "whole": ([1, 2**70], [1, 2**70]),
    "numpy": (np.array([1, 2]), [1, 2]),
    "flags": ([True, False], [True, False]),
    "floats": (np.array([0.5, 2.5], np.float32), [0.5, 2.5]),
    "decimals": ([Decimal("1.50"), Decimal("2.25")], ["1.50", "2.25"]),
    "days": ([NOON.date(), datetime.date(2025, 1, 1)], ["2024-01-01", "2025-01-01"]),
    "times": ([NOON, NOON.replace(hour=1)], ["2024-01-01T12:30:00", "2024-01-01T01:30:00"]),
    "pandas times": (pd.Series([NOON]), ["2024-01-01T12:30:00"]),
    "zoned": ([NOON.replace(tzinfo=datetime.UTC)], ["2024-01-01T12:30:00+00:00"]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_answer_prints_in_one_line_and_goes_through_json(kind):
    candidates, plain = VALUES[kind]
    items = candidates.tolist()[:1] if hasattr(candidates, "tolist") else candidates[:1]
    table = opened({"x": items if kind != "whole" else [1], "g": ["p"]})
    k = len(plain)
    groups = table.group_by("x", groups=candidates)
    for answer in (
        table.mode("x", candidates=candidates, epsilon="0.1"),
        table.top_k("x", k, candidates=candidates, epsilon=1),
        table.top_k("x", k, candidates=candidates, epsilon=1, ordered=True),
        groups.mode("x", candidates=candidates, epsilon=Fraction(1, 3)),
        groups.top_k("x", k, candidates=candidates, epsilon=1),
        groups.top_k("x", k, candidates=candidates, epsilon=1, ordered=True),
    ):
        assert len(repr(answer).splitlines()) == 1
        dumped = json.loads(json.dumps(answer.to_dict()))
        assert dumped == answer.to_dict()
        public = {
            "protects",
            "notes",
            "estimate",
            "mechanism",
            "guarantee",
            "epsilon",
            "ledger_id",
            "receipt",
            "charged",
            "repeated",
        }
        assert set(dumped) == {"value", "accuracy", *public}
        assert Fraction(dumped["epsilon"]) == answer.epsilon
        assert dumped["ledger_id"] is dumped["receipt"] is None
    assert table.mode("x", candidates=candidates, epsilon=1).to_dict()["value"] in plain
    for ordered in (False, True):
        top = table.top_k("x", k, candidates=candidates, epsilon=1, ordered=ordered).to_dict()["value"]
        assert sorted(map(str, top)) == sorted(map(str, plain))
    pairs = groups.mode("x", candidates=candidates, epsilon=1).to_dict()["value"]
    assert [pair["group"] for pair in pairs] == plain
    assert all(pair["value"] in plain for pair in pairs)


def test_an_answer_shows_what_is_public_and_the_choice():
    table = opened({"x": ["a"] * 731_001})
    answer = table.mode("x", candidates=["a", "b"], epsilon="0.1")
    assert repr(answer) == (
        "Answer(value='a', estimate='the value that most rows have',"
        " accuracy='at most 1.84 rows off on average, less than 36.89 in 95 of 100 cases',"
        " mechanism='permute-and-flip',"
        " guarantee='0.1-DP (pure) for one row, 0.00476098-zCDP',"
        " epsilon='0.1', ledger_id=None)"
    )
    assert "731" not in repr(table) + repr(table.group_by("x", groups=["a"])) + repr(vars(answer))
    with pytest.raises(AttributeError):
        answer.value = "b"
