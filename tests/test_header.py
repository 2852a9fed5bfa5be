"""What may be a column's name, and what may be somebody's row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect._messages import is_data, is_name, shown_names

DATA = ["12", "-1.5", ".5", "+x", "12O", "$1430", "<5", "~1430", "€ 12", "(3)", "١٤٣٠", "½", "nan", "N/A", "null"]
NAMES = ["patients", "score2", "y_2024", "I10", "größe", "年齢", "age (years)", "cost, total", "a", "%", "n3_7"]


@pytest.mark.parametrize("field", DATA)
def test_numbers_and_attempts_at_them_are_data(field):
    assert is_data(field)
    assert not is_name(field)


@pytest.mark.parametrize("field", NAMES)
def test_names_are_names(field):
    assert not is_data(field)
    assert is_name(field)


@pytest.mark.parametrize("field", ["n=1430", "visits 2024", "about 12", "x-3", "a1 2"])
def test_names_with_a_number_of_its_own_may_head_a_column_but_are_not_shown(field):
    assert not is_data(field)
    assert not is_name(field)
    assert shown_names(["name", field], 5) is None


@given(st.text("ab1٣$ _=", min_size=1))
def test_a_number_is_shown_only_behind_a_letter(field):
    runs = [i for i, c in enumerate(field) if c in "1٣" and (i == 0 or field[i - 1] not in "1٣")]
    assert is_name(field) == (not is_data(field) and all(i and field[i - 1] in "ab_" for i in runs))


def test_some_names_are_shown():
    assert shown_names(["a", "b"], 2) == "'a', 'b'"
    assert shown_names(["a", "b", "c"], 2) == "'a', 'b', ..."
    assert shown_names(["a" * 50], 2) == repr("a" * 40)
    assert shown_names(["a", ""], 2) is None
