"""The figures in plain words. Numbers are rounded to the safe side: errors up, probabilities down."""

from fractions import Fraction
from typing import Any

from dpselect._exact import rounded_up_text
from dpselect._shown import DOWN, NEAREST, UP, shown
from dpselect.explore.settings import Settings

_ALMOST = 0.9999
_LITTLE = 0.001
_EPSILON = "\N{GREEK SMALL LETTER EPSILON}"


def plain(number: Fraction) -> str:
    """An exact number as a person writes it: a decimal where it is one, else a quotient.

    >>> plain(Fraction(1, 10)), plain(Fraction(1, 3)), plain(Fraction(20))
    ('0.1', '1/3', '20')
    """
    if Fraction(rounded_up_text(number, digits=30)) == number:
        return rounded_up_text(number, digits=30)
    return str(number)


def sentence(settings: Settings, unit: str, figures: dict[str, Any], differ: bool) -> str:
    """What to expect of the chosen mechanism."""
    if not differ:
        return f"All candidates have the same score, so every choice is a best one, at every {_EPSILON}."
    unit = unit or "points"
    start = f"With {_EPSILON} = {plain(settings.epsilon)} you get the best candidate"
    mean = figures["expected_error"]
    lost, most = shown(mean, UP, 2) if mean >= _LITTLE else f"less than {_LITTLE}", shown(figures["error_95"], UP, 4)
    return (
        f"{start} with probability {probability(figures['best'])} and lose {lost} {unit} on average; "
        f"95 times in 100 at most {most}."
    )


def probability(value: float) -> str:
    """A probability rounded down to two digits; near one as many as tell it from one.

    >>> probability(0.8389), probability(0.99996), probability(0.000123)
    ('0.83', 'above 0.9999', 'below 0.001')
    """
    if value < _LITTLE:
        return f"below {_LITTLE}"
    if value > _ALMOST:
        return f"above {_ALMOST}"
    return shown(value, DOWN, 2 if value < 0.99 else 4)


def factor_sentence(settings: Settings, factor: float | None) -> str:
    """What the exponential mechanism would need."""
    if factor is None:
        return "Permute-and-flip and the exponential mechanism do not differ measurably here."
    budget = f"{_EPSILON} = {shown(float(settings.epsilon) * factor, NEAREST, 3)}"
    return (
        f"The exponential mechanism (EM) would need {shown(factor, NEAREST, 3)} times the budget ({budget}) "
        "for the average error of permute-and-flip."
    )
