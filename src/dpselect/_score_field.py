"""One field of a CSV file as a score, at its exact decimal value. No message contains the field: scores are secret."""

from decimal import Decimal

from dpselect._exact import LARGEST_EXPONENT, NotExact, NotFinite, TooLong, number_from_text
from dpselect._header import NO_NUMBER
from dpselect.errors import InvalidValue

Score = int | Decimal


def parse_score(field: str, line: int) -> Score:
    """An int for digits alone, else a Decimal; never a float, which would round.

    >>> parse_score("9007199254740993", line=1), parse_score("0.1", line=2)
    (9007199254740993, Decimal('0.1'))
    """
    if NO_NUMBER.fullmatch(field):
        rule = f"the score on line {line} is missing, NaN or infinite"
        raise InvalidValue(f"{rule}: drop or replace such scores by a public rule first")
    try:
        return number_from_text(field)
    except NotExact:
        rule = f"the score on line {line} is not a number"
        remedy = "write numbers like 12, -0.5 or 1e-3, with commas between fields only"
    except TooLong:
        rule = f"the score on line {line} has more than {LARGEST_EXPONENT} digits"
        remedy = "round the scores by a public rule first"
    except NotFinite:
        rule = f"the score on line {line} is beyond 1e{LARGEST_EXPONENT} or nearer to zero than 1e-{LARGEST_EXPONENT}"
        remedy = "give the scores and the sensitivity in another unit"
    raise InvalidValue(f"{rule}: {remedy}")
