"""Numbers as people read them."""

import pytest

from dpselect._numbers import DOWN, NEAREST, shown


@pytest.mark.parametrize(
    ("value", "rounding", "text"),
    [
        (27.6310211, None, "27.64"),
        (27.6310211, DOWN, "27.63"),
        (27.6351, NEAREST, "27.64"),
        (0.1, None, "0.1"),
        (0.1 + 0.2, None, "0.3"),
        (99999.0, None, "100,000"),
        (1234567.0, None, "1,235,000"),
        (0.0012341, None, "0.001235"),
        (0.00012341, None, "1.235e-4"),
        (3e200, None, "3e+200"),
        (0.0, None, "0"),
        (2.0, None, "2"),
        (float("nan"), None, "-"),
        (None, None, "-"),
    ],
)
def test_numbers_are_shown_with_four_digits(value: float | None, rounding: str | None, text: str) -> None:
    assert (shown(value) if rounding is None else shown(value, rounding)) == text
