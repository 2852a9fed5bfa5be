"""The edges of the records of questions: the smallest and the largest numbers of candidates, and defaults in words."""

import pyarrow as pa
import pytest

import dpselect
from dpselect.accounting.budget import Price
from dpselect.errors import InvalidValue
from dpselect.questions import Quantile, TopK
from dpselect.questions.methods import method_for
from dpselect.questions.rows import Individuals
from dpselect.tables.kinds import Column, Kind

HUGE = 2**60


def test_a_quantile_has_two_candidates_or_more():
    assert Quantile(level="1/2", candidates=2).size == 2
    with pytest.raises(InvalidValue, match="candidates must be"):
        Quantile(level="1/2", candidates=1)


def test_an_answer_without_an_order_says_so():
    assert TopK.beside({"candidates": ["a", "b"]}) == {"ordered": False}
    assert TopK.beside({"candidates": ["a", "b"], "ordered": True}) == {"ordered": True}
    assert TopK.beside({"delta": "1e-9"}) == {"ordered": True}


def test_among_too_many_candidates_peeling_is_the_only_method():
    price = Price(1)
    for name in ("auto", "peel"):
        assert (
            method_for(3, HUGE + 1, method=name, max_values=1, ordered=False, price=price, budget=None).name == "peel"
        )
    with pytest.raises(InvalidValue, match="method set takes at most"):
        method_for(3, HUGE + 1, method="set", max_values=1, ordered=False, price=price, budget=None)


def test_a_question_by_its_name_has_the_defaults_of_the_method():
    table = dpselect.open_table(pa.table({"x": ["a"] * 99, "n": [7] * 99}))
    assert table.ask("values", "x", epsilon=1, delta=1e-6).value == ["a"]
    assert table.ask("maximum", "n", lower=0, upper=9, epsilon=50).value == 7


def test_a_row_has_one_value_and_a_person_as_many_as_are_allowed():
    people = Individuals(Column("who", "BIGINT", Kind.INTEGER))
    assert [Individuals(None).limit(most) for most in (None, 2)] == [1, 1]
    assert [people.limit(most) for most in (None, 2)] == [None, 2]
