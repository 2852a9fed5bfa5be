"""How much one individual can change the scores of a question: derived here and nowhere else.

Tables charge by it, and plans predict accuracy from it.

An individual is a person (all rows with one value of the `person` column) or, without that column, a row. Neighbouring
tables differ by one individual: added or removed ("add-remove"), or replaced by another one ("replace").

**Counts** (mode, top-k). The score of a candidate is the number of individuals that have it; a person counts once for
each candidate, with any number of rows. Adding an individual raises some scores by one and lowers none: the
sensitivity is one and the scores are monotonic. Replacing one raises some by at most one and lowers others by at most
one: the sensitivity is one, not monotonic. How many candidates an individual affects does not matter: a selection
needs the largest change of a single score only.

**Quantiles.** Let L, E and G individuals have a value below, at and above a candidate. It is a quantile of level a/b if
L <= (a/b) n and G <= (1 - a/b) n. How far it is from that, times b, is the negated score (Smith 2011; McKenna &
Sheldon 2020, Section 7)

    u = max(0, (b - a) L - a (E + G), a G - (b - a) (L + E)).

An individual that is added puts one into L, E or G, and so moves the second and third terms by b - a or a in either
direction: the sensitivity is max(a, b - a), which an individual below (or above) every close candidate attains; scores
on both sides of the quantile move in opposite directions, so they are not monotonic. For the median (a = 1, b = 2) u
is the number of people to add or remove until the candidate is a median, and the sensitivity is one. Replacing an
individual keeps n and moves L and G by at most one, hence b L - a n and b G - (b - a) n by at most b. Only where the
old or the new value is missing does n change: that is one addition or removal, and max(a, b - a) <= b.

**Groups.** A person is kept in at most m groups. Under add-remove at most m groups change, each as its question
says, so shares of epsilon/m add up to epsilon. Under replace a person may leave m groups and enter m others, so that 2m
groups change by one removal or one addition each. That must cost half a share. For counts it does: one addition
changes score differences by at most one, and the non-monotonic mechanism allows for two. For quantiles it
does with the sensitivity 2 max(a, b - a) >= b, twice the one for additions, and with no smaller one: an addition
changes a difference of two scores by up to 2 max(a, b - a).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect.accounting.charge import Neighbours
from dpselect.errors import InvalidValue

FINEST_LEVEL = 10**6


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of a score between neighbours, and whether all scores change in one direction."""

    largest_change: int
    monotonic: bool


def of_counts(neighbours: Neighbours) -> Sensitivity:
    """The sensitivity of counts of individuals per candidate."""
    return Sensitivity(1, monotonic=neighbours is Neighbours.ADD_REMOVE)


def of_quantile(level: Fraction, neighbours: Neighbours, *, in_groups: bool) -> Sensitivity:
    """The sensitivity of the scores u above, which are multiples of the level's denominator."""
    single = max(level.numerator, level.denominator - level.numerator)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(single, monotonic=False)
    return Sensitivity(2 * single if in_groups else level.denominator, monotonic=False)


def exact_level(level: Any) -> Fraction:
    """The exact level of a quantile that was written: 0.9 is nine tenths, not the nearest float.

    >>> exact_level(0.9), exact_level("1/3")
    (Fraction(9, 10), Fraction(1, 3))
    """
    exact = _validate.exact(level=str(level) if isinstance(level, (float, np.floating)) else level)
    if not 0 < exact < 1:
        raise InvalidValue("level must be between 0 and 1: give for instance 0.9")
    if exact.denominator > FINEST_LEVEL:
        raise InvalidValue(f"level must be a multiple of 1/n for some n <= {FINEST_LEVEL:,}: give fewer digits")
    return exact
