"""A rule instead of a list: the answer has the distribution of the whole list (theorem 17), on every engine."""

import datetime
from collections import Counter
from decimal import Decimal

import pytest

from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, every
from dpselect.errors import InvalidValue
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.questions.methods import METHODS, Margin, NoisyCounts, OneShot, Peel, Set
from dpselect.questions.most import _Chooser
from dpselect.questions.rows import Levels
from dpselect.selection.draws import Draws
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import opened
from tests.top_k.laws import law_of

SMALL = every("integer", lower=0, upper=5)
COUNTS = [0, 3, 1, 0, 3, 0]


class Counted:
    """What an engine counted, in memory."""

    def __init__(self, counts):
        self._own = {value: count for value, count in enumerate(counts) if count}

    def levels(self):
        numbers = sorted(Counter(self._own.values()).items())
        return [Levels([count for count, _ in numbers], [number for _, number in numbers])]

    def values(self, wanted):
        return [[x for x, own in sorted(self._own.items()) if own == count][rank] for _, count, rank in wanted]

    def unseen(self, group, values):
        return [value for value in values if value not in self._own]


METHODS_OF_TWO = {
    "mode": (Peel(1, 6, ordered=True), PermuteAndFlip(1, monotonic=True)),
    "exponential mode": (Peel(1, 6, ordered=True), ExponentialMechanism(2, monotonic=True)),
    "peel": (Peel(2, 6, 1, ordered=True), PermuteAndFlip(1, monotonic=True)),
    "one-shot": (OneShot(2, 6, 1, ordered=True), PermuteAndFlip(1, monotonic=True)),
    "set": (Set(2, 6, 1), PermuteAndFlip(1, score_range=1)),
    "margin": (Margin(2, 6, 1), PermuteAndFlip(2, score_range=2)),
    "noisy-counts": (NoisyCounts(2, 6, 1), ReportNoisyMax(1, score_range=1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS_OF_TWO)
def test_a_rule_has_the_law_of_the_list(name):
    method, mechanism = METHODS_OF_TWO[name]
    chooser, tally = _Chooser(SMALL, method, mechanism, Draws()), Counted(COUNTS)
    [levels] = tally.levels()
    times = 6_000
    drawn = Counter(tuple(chooser.of_group(0, levels, tally)) for _ in range(times))
    law = law_of(method, mechanism, COUNTS)
    assert set(drawn) <= set(law)
    assert_fits([drawn[answer] for answer in law], list(law.values()))
    other = law_of(method, mechanism, [0, 3, 1, 0, 2, 0])
    assert_rejected([drawn[answer] for answer in law], list(other.values()), truth=list(law.values()))


def test_every_value_that_is_left_is_found_even_if_there_is_only_one():
    domain = every("integer", lower=0, upper=9_999)
    chooser = _Chooser(domain, Peel(1, 10_000, ordered=True), PermuteAndFlip(1), Draws())
    counts = [1] * 10_000
    counts[4_321] = 0
    assert chooser._unseen(0, 1, Counted(counts)) == [4_321]


RULES = {
    "int64": (every("int64"), [7] * 200 + [-(2**63), 2**63 - 1]),
    "uint64": (every("uint64"), [7] * 200 + [0]),
    "decimal": (every("decimal", precision=9, digits=2), [Decimal("1.50")] * 200 + [Decimal("-0.01")]),
    "text": (every("text", max_bytes=8), ["Köln"] * 200 + ["", "much too long"]),
    "letters": (every("text", max_bytes=6, alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ"), ["ULM"] * 200 + ["ulm"]),
    "date": (every("date"), [datetime.date(2024, 2, 29)] * 200),
    "timestamp": (every("timestamp"), [datetime.datetime(2024, 2, 29, 1, 2, 3, 4)] * 200),
    "uuid": (every("uuid"), ["00000000-0000-0000-0000-000000000007"] * 200 + ["none"]),
    "float64": (every("float64"), [0.1] * 200 + [-0.5]),
}


@pytest.mark.parametrize("name", RULES)
def test_clear_questions_have_clear_answers(engine, name):
    domain, values = RULES[name]
    table = opened({"x": values, "g": [1] * len(values)}, engine)
    assert table.mode("x", candidates=domain, epsilon=1).value == values[0]
    chosen = table.top_k("x", 2, candidates=domain, epsilon=2, method="peel").value
    assert chosen[0] == values[0]
    assert len(set(chosen)) == 2
    assert all(domain.index(value) is not None for value in chosen)
    if engine == "duckdb":
        groups = table.group_by("g", groups=[1, 2]).mode("x", candidates=domain, epsilon=1).value
        assert groups[1] == values[0]
        assert domain.index(groups[2]) is not None


@pytest.mark.parametrize("method", METHODS)
def test_every_method_chooses_among_any_number_of_values(method):
    table = opened({"x": ["a"] * 300 + ["b"] * 250 + ["c"]})
    choice = {"method": method, "max_values": 1, "epsilon": 4}
    assert sorted(table.top_k("x", 2, candidates=every("text", max_bytes=8), **choice).value) == ["a", "b"]
    more = every("text", max_bytes=20)
    if method == "peel":
        assert table.top_k("x", 2, candidates=more, **choice).value == ["a", "b"]
        assert table.top_k("x", 2, candidates=more, epsilon=4).value == ["a", "b"]
        return
    with pytest.raises(InvalidValue, match="at most"):
        table.top_k("x", 2, candidates=more, **choice)


def test_a_choice_without_an_order_is_listed_in_the_order_of_the_rule():
    table = opened({"x": [3] * 500 + [2] * 400 + [1] * 300})
    asked = {"candidates": every("int32"), "max_values": 1, "epsilon": 4, "method": "set"}
    assert table.top_k("x", 3, **asked).value == [1, 2, 3]


def test_a_domain_that_no_mechanism_takes_is_refused_before_the_charge(tmp_path, monkeypatch):
    monkeypatch.setattr("dpselect.tables.domains._MOST_BYTES", 10_000)  # the limit of `every` is smaller
    table = opened({"x": ["a"] * 9}, ledger=tmp_path / "ledger.db", budget=9)
    with pytest.raises(InvalidValue, match="too many values"):
        table.mode("x", candidates=every("text", max_bytes=10_000), epsilon=1)
    assert not list(Ledger(tmp_path / "ledger.db").entries())


def test_what_is_unseen_in_a_group_may_be_seen_in_another(engine):
    table = opened({"x": [7, 8], "g": ["a", "b"]}, engine).group_by("g", groups=["a", "b", "c"])
    with table._engine.tally(table.columns["x"], every("int64"), table._individuals) as tally:
        assert [tally.unseen(group, [7, 8, 9]) for group in range(3)] == [[8, 9], [7, 9], [7, 8, 9]]
