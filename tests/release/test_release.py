"""`Release`: checked, charged, drawn and stored in this order; and `mechanism.release` on scores of one's own."""

import dataclasses
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax, pure
from dpselect._scores import as_vector
from dpselect.accounting import total
from dpselect.accounting.charge import Charge
from dpselect.accounting.repeats import Repeated, geometric
from dpselect.errors import InvalidType, InvalidValue, RequestConflict, RequestUnanswered
from dpselect.mechanisms import MECHANISMS as REGISTERED
from dpselect.release import Receipt, Release, scores_digest

MECHANISMS = (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax)


class Recorder:
    """A ledger that writes down what is done to it."""

    def __init__(self, log):
        self.log, self.answer, self.id = log, None, 7

    def charge(self, charge, *, request_id=None, content=None):
        self.log.append(("charge", charge.epsilon, request_id, content))
        return self

    def receipt(self, entry):
        assert entry is self
        return Receipt("00ff", self.id, "ab12")

    def charged(self, entry):
        assert entry is self
        return pure("0.1")

    def store_answer(self, id, answer, *, content=None):
        self.log.append(("store", id, answer, content))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "scores.ledger", budget="1")


def drawn(log, value=1):
    def sample():
        log.append("draw")
        return value

    return sample


def test_a_release_charges_then_draws_then_stores():
    log = []
    release = Release("favourite", PermuteAndFlip("0.1"), count=3)
    answer = release.draw(drawn(log), ledger=Recorder(log), request_id="r", content=lambda: "digest")
    content = "1/10 digest"
    assert log == [("charge", Fraction(3, 10), "r", content), "draw", ("store", 7, "1", content)]
    assert (answer.value, answer.epsilon, answer.ledger_id) == (1, Fraction(3, 10), 7)
    assert answer.guarantee == release.guarantee == PermuteAndFlip("0.1").guarantee.times(3)
    assert answer.receipt == Receipt("00ff", 7, "ab12")


def test_without_a_request_nothing_is_read_but_by_the_draw():
    log = []
    Release({}, PermuteAndFlip(1)).draw(drawn(log), ledger=Recorder(log), content=lambda: pytest.fail("read"))
    assert log == [("charge", 1, None, None), "draw"]


def test_what_is_checked_first_costs_nothing():
    log = []
    for bad, words in (
        (Release(5, PermuteAndFlip(1)), "what must be a text or a mapping"),
        (Release({"x": object()}, PermuteAndFlip(1)), "what must hold strings"),
        (Release({}, PermuteAndFlip(1), count=0), "count must be from 1"),
    ):
        with pytest.raises((InvalidType, InvalidValue), match=words):
            bad.draw(drawn(log), ledger=Recorder(log))
        with pytest.raises((InvalidType, InvalidValue), match=words):
            bad.draw(drawn(log))
    with pytest.raises(InvalidType, match="ledger must be a Ledger, got str"):
        Release({}, PermuteAndFlip(1)).draw(drawn(log), ledger="path")
    with pytest.raises(InvalidValue, match="request_id needs a ledger"):
        Release({}, PermuteAndFlip(1)).draw(drawn(log), request_id="r")
    with pytest.raises(InvalidValue, match="request_id needs content"):
        Release({}, PermuteAndFlip(1)).draw(drawn(log), ledger=Recorder(log), request_id="r")
    with pytest.raises(InvalidType, match="ledger must be a Ledger, got type"):
        Release({}, PermuteAndFlip(1)).draw(drawn(log), ledger=Recorder)
    assert log == []


def test_a_release_is_inert_and_shows_what_is_public():
    release = Release("favourite", PermuteAndFlip("0.1"))
    assert repr(release) == (
        "Release(what='favourite', mechanism=PermuteAndFlip(epsilon='0.1', sensitivity=1, monotonic=False), count=1,"
        " rho=None, about=About(estimate='', protects='', provided=''), delta=Fraction(0, 1))"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.count = 2


def test_the_best_of_many_runs_is_a_release_too():
    runs = Repeated(geometric(mean=10), "0.1")
    release = Release("tune", runs)
    assert (release.charge.what, release.charge.mechanism) == ("tune", runs.name)
    assert release.charge.epsilon == release.guarantee.epsilon == geometric(mean=10).epsilon("0.1")


@pytest.mark.parametrize("kind", MECHANISMS)
def test_scores_are_released_with_a_record(kind, ledger):
    answer = kind("0.1", monotonic=True).release([0, 10**9, 5], ["a", "b", "c"], ledger=ledger, what="favourite")
    [entry] = ledger.entries()
    assert (answer.value, answer.ledger_id, answer.mechanism) == ("b", 1, kind.name)
    assert (entry.mechanism, entry.epsilon) == (kind.name, Fraction(1, 10))
    assert entry.what == {"question": "favourite", "candidates": 3, "sensitivity": "1", "monotonic": True}
    assert answer.guarantee == kind("0.1").guarantee
    ledger.verify(answer.receipt)


def test_without_labels_the_index_is_the_value():
    assert PermuteAndFlip(1).release([0, 10**9]).value == 1
    assert PermuteAndFlip(1).release([0, 10**9], labels=np.array(["x", "y"])).value == "y"
    assert PermuteAndFlip(1).release([0, 10**9], labels=pd.Series(["x", "y"])).value == "y"


@pytest.mark.parametrize(
    "bad",
    [
        lambda ledger: PermuteAndFlip(1).release([], ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, float("nan")], ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, float("inf")], ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, 2], ["a"], ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, 2], "ab", ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, 2], 5, ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, 2], {"a", "b"}, ledger=ledger),  # its order differs by process
        lambda ledger: PermuteAndFlip(1).release([1, 2], {"a": 1, "b": 2}, ledger=ledger),
        lambda ledger: PermuteAndFlip(1).release([1, 2], ledger=ledger, what=5),
        lambda ledger: PermuteAndFlip(1).release([1, 2], ledger=ledger, what={"candidates": 99}),
        lambda ledger: PermuteAndFlip(1).release([1, 2], ledger=ledger, request_id=""),
    ],
)
def test_bad_scores_and_labels_cost_nothing(bad, ledger):
    with pytest.raises((InvalidType, InvalidValue)):
        bad(ledger)
    assert ledger.spent == 0


def test_the_charge_stays_when_the_draw_fails(ledger, monkeypatch):
    def failing(self, scores):
        assert ledger.spent == Fraction(1, 10)
        raise KeyboardInterrupt

    monkeypatch.setattr(PermuteAndFlip, "select", failing)
    with pytest.raises(KeyboardInterrupt):
        PermuteAndFlip("0.1").release([1, 2], ledger=ledger, request_id="r")
    with pytest.raises(RequestUnanswered):
        PermuteAndFlip("0.1").release([1, 2], ledger=ledger, request_id="r")
    assert ledger.spent == Fraction(1, 10)


def test_a_request_is_repeated_for_the_same_labels_only(ledger):
    mechanism = PermuteAndFlip("0.1")
    first = mechanism.release([5, 5], ["tea", "coffee"], ledger=ledger, request_id="r")
    for same in (("tea", "coffee"), np.array(["tea", "coffee"]), pa.chunked_array([["tea"], ["coffee"]])):
        assert mechanism.release([5, 5], same, ledger=ledger, request_id="r") == first
    with pytest.raises(RequestConflict, match="other data"):
        mechanism.release([5, 5], ["coffee", "tea"], ledger=ledger, request_id="r")


def test_a_request_is_repeated_on_the_same_scores(ledger):
    scores, mechanism = [5] * 1000, PermuteAndFlip("0.1")
    first = mechanism.release(scores, ledger=ledger, request_id="r")
    for same in (scores, np.array(scores), np.array(scores, np.float32), [Fraction(5)] * 1000, pd.Series(scores)):
        assert mechanism.release(same, ledger=ledger, request_id="r") == first
    names = [f"item {i}" for i in range(1000)]
    with pytest.raises(RequestConflict, match="other data"):
        mechanism.release(scores, names, ledger=ledger, request_id="r")
    for other in ([5] * 999 + [4], [4] + [5] * 999, [5] * 999 + [5.0000001]):
        with pytest.raises(RequestConflict, match="other data"):
            mechanism.release(other, ledger=ledger, request_id="r")
    for changed in (
        lambda: mechanism.release([5] * 999, ledger=ledger, request_id="r"),
        lambda: mechanism.release(scores, ledger=ledger, request_id="r", what="another"),
        lambda: PermuteAndFlip("0.2").release(scores, ledger=ledger, request_id="r"),
        lambda: PermuteAndFlip("0.1", 2).release(scores, ledger=ledger, request_id="r"),
        lambda: ExponentialMechanism("0.1").release(scores, ledger=ledger, request_id="r"),
    ):
        with pytest.raises(RequestConflict, match="a different question"):
            changed()
    assert ledger.spent == Fraction(1, 10)


numbers = st.lists(
    st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300) | st.fractions() | st.sampled_from([0, -0.0, 2**53 + 1]),
    min_size=1,
    max_size=4,
)


@given(numbers, numbers)
def test_digests_are_equal_for_equal_scores_alone(first, second):
    exact = [[Fraction(score) for score in scores] for scores in (first, second)]
    digests = [scores_digest(as_vector(scores)) for scores in (first, second)]
    assert (digests[0] == digests[1]) == (exact[0] == exact[1])
    assert scores_digest(as_vector(exact[0])) == digests[0]


def test_digests_do_not_round():
    for one, other in (
        (np.array([2**53 + 1]), np.array([2**53])),
        (np.array([2**64 - 1], np.uint64), np.array([2.0**64])),
        ([Decimal("0.1")], [0.1]),
        (np.array([1, 23]), np.array([12, 3])),
    ):
        assert scores_digest(as_vector(one)) != scores_digest(as_vector(other))


def test_a_subclass_cannot_release_under_another_name(tmp_path):
    class Sneaky(PermuteAndFlip):
        def terms(self):
            return {}

        def select(self, scores, **options):
            return 7

    ledger = Ledger(tmp_path / "l", budget=1)
    with pytest.raises(InvalidType, match="must be one of dpselect's"):
        Sneaky("0.1").release([0, 1], ledger=ledger)
    assert ledger.spent == 0


@pytest.mark.parametrize("name", ["pure", "", "a b", "A", "repeat-and-select poisson mean=10 epsilon=1/10", None, 3])
def test_names_with_another_meaning_cannot_be_taken(name):
    with pytest.raises(InvalidValue, match="a mechanism's name must be"):
        type("Mine", (PermuteAndFlip,), {"name": name})


def test_a_digest_of_huge_scores_has_no_limit_of_digits(tmp_path):
    ledger = Ledger(tmp_path / "l", budget=1)
    scores = np.array([np.longdouble("1e4930"), 0])
    assert PermuteAndFlip(1).release(scores, ledger=ledger, request_id="r").value == 0


def test_a_ledger_with_a_mechanism_of_another_program_is_readable(tmp_path):
    """It counts as any pure release where its class is not known."""

    class Mine(PermuteAndFlip):
        name = "mine"
        title = "Mine"

    ledger = Ledger(tmp_path / "l", budget=1)
    Mine("0.1").release([0, 1], ledger=ledger)
    REGISTERED.pop("mine")
    again = Ledger(tmp_path / "l")
    assert [entry.charge.mechanism for entry in again.entries()] == ["mine"]
    again.spend("0.1", "more")
    assert (again.verify().id, again.spent) == (2, Fraction(1, 5))
    assert total(again).zcdp == total([Charge("x", "0.1"), Charge("y", "0.1")]).zcdp
