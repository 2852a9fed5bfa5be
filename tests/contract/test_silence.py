"""Scores of odd kinds are read exactly or refused, and no refusal, warning or context tells of their values."""

import itertools
import logging
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpselect
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.selection.gaps import MIDDLE
from tests.gumbel import GumbelNoisyMax

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax, GumbelNoisyMax]


@pytest.mark.parametrize("kind", KINDS)
def test_true_is_one_however_it_is_stored(kind):
    flags = np.array([255, 1, 0, 128], np.uint8).view(np.bool_)
    assert flags.tolist() == [True, True, False, True]
    assert kind(1).pmf(flags).tolist() == kind(1).pmf([1, 1, 0, 1]).tolist()
    assert kind(100_000).select_rows(flags.reshape(2, 2))[1] == 1


def refusal(choose, scores):
    with pytest.raises(errors.DPSelectError) as caught:
        choose(scores)
    return type(caught.value), str(caught.value), caught.value.__cause__, caught.value.__context__


@pytest.mark.parametrize("made", [np.array, pl.Series, lambda texts: np.array([text.encode() for text in texts])])
def test_texts_are_refused_whatever_their_length(made):
    """One person more makes 999 a text of four digits."""
    choose = PermuteAndFlip(1).select
    assert refusal(choose, made(["999", "5"])) == refusal(choose, made(["1000", "5"]))


class Talking(float):
    """A float that tells its value when it is read."""

    def as_integer_ratio(self):
        raise ValueError(f"secret {float(self)}")


class TalkingInteger(int):
    """An int that tells its value when it is read."""

    def __int__(self):
        raise ValueError(f"secret {self.bit_length()}")


class TalkingArray:
    """An array that tells its values when it is read."""

    def __array__(self, dtype=None, copy=None):
        raise ValueError("secret 731001")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scores",
    [[Talking(2.5), 1], [TalkingInteger(7), 1], np.array([Talking(2.5), 1], object), TalkingArray()],
    ids=["float", "int", "objects", "array"],
)
def test_what_foreign_numbers_raise_is_not_passed_on(kind, scores):
    for choose in (kind(1).select, lambda scores: kind(1).select_rows([scores])):
        _, message, *chain = refusal(choose, scores)
        assert "scores" in message
        assert chain == [None, None]


@pytest.mark.parametrize("number", [Talking(2.5), TalkingInteger(7)], ids=["float", "int"])
def test_what_foreign_lengths_raise_is_not_passed_on(number):
    for kind in (PermuteAndFlip, ExponentialMechanism):
        for lengths in ([number, 1], [number, 2**70]):
            _, message, cause, context = refusal(lambda own, kind=kind: kind(1).select_runs([0, 0], own), lengths)
            assert "lengths" in message
            assert cause is None
            assert isinstance(context, errors.DPSelectError | None)
            assert "secret" not in f"{message} {context} {getattr(context, '__context__', '')}"


EXTREMES = [0.0, -0.0, 1.0, 5e-324, 1e-310, -1e-310, 1e300, -1.7e308, 1.7e308]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("1e-3", "1e-310"), (1000, "1e300")])
def test_where_numpy_raises_no_finite_scores_do(kind, epsilon, sensitivity):
    """With np.seterr(all="raise") an underflow that depends on the scores would be an exception that tells of them."""
    mechanism = kind(epsilon, sensitivity)
    pairs = [np.array(pair) for pair in itertools.product(EXTREMES, repeat=2)]
    long = np.resize(np.array(EXTREMES), 5_000)
    with np.errstate(all="raise"):
        mechanism.select(np.resize(long, MIDDLE + 1))
        for scores in (*pairs, long):
            mechanism.select(scores)
            mechanism.select_rows(scores[np.newaxis])
            if kind.has_runs:
                mechanism.select_runs(scores, np.ones(scores.size, np.int64))
            if kind is ExponentialMechanism:
                mechanism.select_runs(scores, [2**70] * scores.size)
            if kind is PermuteAndFlip:
                mechanism.select(scores, early_exit=True)
                mechanism.select(scores, steady=True)
                mechanism.select_rows(scores[np.newaxis], steady=True)
                for steady in (False, True):
                    mechanism.select_runs(scores, np.ones(scores.size, np.int64), steady=steady)
                    summary = mechanism.summary(steady=steady)
                    summary.update(scores)
                    summary.update(scores[::-1])


def test_nothing_is_logged(caplog, tmp_path):
    """At any level, by any logger: of questions, refusals and selections."""
    caplog.set_level(logging.DEBUG)
    (tmp_path / "rows.csv").write_text("letter,size\na,3\nb,4\n")
    for kind in KINDS:
        kind(1).select([3, 4])
        kind(1).pmf([3, 4])
        refusal(kind(1).select, [math.nan])
    table = dpselect.open_table(tmp_path / "rows.csv", ledger=dpselect.Ledger(tmp_path / "ledger", 10))
    table.mode("letter", candidates=["a", "b"], epsilon=1)
    table.median("size", lower=0, upper=9, epsilon=Fraction(1, 2))
    refusal(lambda name: table.mode(name, candidates=["a"], epsilon=1), "nothing")
    assert caplog.records == []
