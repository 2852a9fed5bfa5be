"""Numbers that must be refused."""

from decimal import Decimal
from fractions import Fraction

# What Python reads as a number and we do not: underscores, and the digits of other scripts.
MISWRITTEN = [
    *["1_0", "0_1", "1__0", "1_0.5", "0.1_5", "1e1_0", "1_0/3", "1/1_0"],
    *["\N{FULLWIDTH DIGIT ONE}", "\N{ARABIC-INDIC DIGIT THREE}", "0.\N{DEVANAGARI DIGIT FIVE}"],
    *["1e\N{FULLWIDTH DIGIT ONE}", "\N{MATHEMATICAL BOLD DIGIT ONE}/2", "1/\N{ARABIC-INDIC DIGIT THREE}"],
    *["0x1", "1e", "e1", ".", "1.5/2", "1//2", "1/2/3", "1 0", "+-1", "\N{MINUS SIGN}1", ""],
]
DIGITS = 10**6
LONG_TEXTS = {
    "digits": "7" * DIGITS,
    "digits after the point": "0." + "7" * DIGITS,
    "digits on both sides": "7" * DIGITS + "." + "7" * DIGITS,
    "zeros at the end": "0.5" + "0" * DIGITS,
    "exponent": "7e" + "9" * DIGITS,
    "quotient": "7/" + "3" * DIGITS,
    "long quotient": "7" * DIGITS + "/" + "3" * DIGITS,
}
_LONG = (1 << (10 * DIGITS // 3)) - 1
LONG_NUMBERS = {
    "int": _LONG,
    "negative int": -_LONG,
    "denominator": Fraction(1, _LONG),
    "numerator": Fraction(_LONG, 2),
    "decimal": Decimal("0." + "7" * DIGITS),
    "decimal with zeros": Decimal("0.5" + "0" * DIGITS),
    "whole decimal": Decimal("7" * DIGITS),
}
