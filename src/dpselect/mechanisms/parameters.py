"""How far the scores of neighbours are apart: what a mechanism claims, and the sensitivity of each question.

The score range (Dong, Durfee & Rogers 2019) is the largest change of any difference of two scores between neighbours.
A selection depends on differences only, so its privacy needs only the range, and the rate c = epsilon / range is
computed here and nowhere else:

* no score moves by more than the sensitivity: differences move by at most twice the sensitivity;
* and all scores move in one direction (monotonic): differences move by at most the sensitivity.

Conversely, neighbouring scores can be shifted together so that none moves by more than half of the range. So the three
ways to state how far apart neighbours are describe the same neighbours, up to a shift that no selection depends on.

The sensitivity of every question about a table is derived here too: tables charge by it, and plans predict accuracy
from it. An individual is a person (all rows with one value of the `person` column) or, without that column, a row.
Neighbouring tables differ by one individual: added or removed ("add-remove"), or replaced by another one ("replace").

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

**Rows of people.** A quantile may count people with at most m of their rows instead of once. Adding a person then adds
at most m rows, one after another: the sensitivity is m max(a, b - a). Replacing a person exchanges i of their rows for
k others, i and k at most m. That is min(i, k) replacements, each of which moves a score by at most b, and at most
m - min(i, k) additions or removals, each of which moves it by at most max(a, b - a) <= b: the sensitivity is m b.

**Several quantiles** (`questions.splitting`). The level a/b of a part with n individuals is answered by a cut, below
which j of them lie, with the score -|b j - a n|; the last level of a part by a value, with the score -u above. All cuts
of a depth are drawn given those of the depths before, as if those had been published. Then the parts of a depth are a
public partition of the places, and an individual has one place. Who is added is in one part of each depth. There they
move b j - a n by b - a or -a, so the sensitivity is max(a, b - a), a depth costs as much as a single question, and the
depths add up. Who is replaced leaves one part and enters another, which costs half a share each with the sensitivity
2 max(a, b - a), as for groups; or stays in one part, where b j - a n moves by at most b <= 2 max(a, b - a). A person
with at most m rows may have them in several parts. In a part that i of them enter, scores move by i max(a, b - a),
which is i/m of what the sensitivity m max(a, b - a) allows for, and so costs at most i/m of a share. These parts of a
share add up to one; under replace, with twice the sensitivity, to a half for the rows that leave and a half for those
that enter. Levels differ from cut to cut. In units of its own max(a, b - a), each cut has the same sensitivity.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._numbers import exact_text, shortest_text
from dpselect.errors import InvalidValue


class Neighbours(StrEnum):
    """Which tables are neighbours: no answer may distinguish them much."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


def neighbours_of(name: Any) -> Neighbours:
    """The relation of this name."""
    try:
        return Neighbours(name)
    except ValueError:
        raise InvalidValue(f"neighbours must be 'add-remove' or 'replace', got {str(name)[:40]!r}") from None


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of a score between neighbours, and whether all scores change in one direction."""

    largest_change: int
    monotonic: bool


def of_counts(neighbours: Neighbours) -> Sensitivity:
    return Sensitivity(1, monotonic=neighbours is Neighbours.ADD_REMOVE)


def of_quantile(level: Fraction, neighbours: Neighbours, *, in_groups: bool, rows: int = 1) -> Sensitivity:
    """The sensitivity of the scores u above, multiples of the level's denominator, if `rows` rows of a person count."""
    single = change_by_addition(level)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(rows * single, monotonic=False)
    return Sensitivity(rows * (2 * single if in_groups else level.denominator), monotonic=False)


def of_cuts(neighbours: Neighbours, *, rows: int = 1) -> Sensitivity:
    """The sensitivity of the cuts of several quantiles, each in units of its own `change_by_addition`."""
    return Sensitivity(rows * (1 if neighbours is Neighbours.ADD_REMOVE else 2), monotonic=False)


def change_by_addition(level: Fraction) -> int:
    """The largest change of a quantile's score by one row that is added or removed: max(a, b - a)."""
    return max(level.numerator, level.denominator - level.numerator)


@dataclass(frozen=True)
class Claim:
    """How much one person can change the scores, stated as a sensitivity or as a score range. Public."""

    sensitivity: Fraction  # half of a score range: the largest move of a score of that range, up to a shift
    monotonic: bool
    by_range: bool

    @property
    def score_range(self) -> Fraction:
        """The largest change of any difference of two scores."""
        return self.sensitivity if self.monotonic else 2 * self.sensitivity

    def rate(self, epsilon: Fraction) -> Fraction:
        """Return the factor c of exp(-c (q* - q)) that spends epsilon."""
        return epsilon / self.score_range

    def arguments(self) -> dict[str, Any]:
        """Return the claim as keyword arguments."""
        if self.by_range:
            return {"score_range": self.score_range}
        return {"sensitivity": self.sensitivity, "monotonic": self.monotonic}

    def to_dict(self) -> dict[str, Any]:
        """Return what ledgers hold for years: exact numbers as whole numbers and quotients."""
        return {name: value if isinstance(value, bool) else str(value) for name, value in self.arguments().items()}

    def to_json(self) -> dict[str, Any]:
        """Return what the command line prints as JSON: exact numbers as decimals where they have some."""
        return {name: v if isinstance(v, bool) else exact_text(v) for name, v in self.arguments().items()}

    def code(self) -> str:
        """Return the arguments as Python source."""
        shown = {name: v if isinstance(v, bool) else shortest_text(v) for name, v in self.arguments().items()}
        return ", ".join(f"{name}={value}" for name, value in shown.items())

    def __str__(self) -> str:
        if self.by_range:
            return f"score range {exact_text(self.score_range)}"
        return f"sensitivity {exact_text(self.sensitivity)}{', monotonic' if self.monotonic else ''}"


def stated(sensitivity: Any = None, monotonic: Any = False, score_range: Any = None) -> Claim:
    """The claim that these arguments state. The default is a sensitivity of one."""
    one_way = _validate.boolean(monotonic=monotonic)
    if score_range is None:
        unit = Fraction(1) if sensitivity is None else _validate.exact_positive(sensitivity=sensitivity)
        return Claim(unit, one_way, by_range=False)
    if sensitivity is not None or one_way:
        raise InvalidValue(
            "give either score_range, or sensitivity and monotonic: a range of 2 sensitivity, or of 1 sensitivity for"
            " monotonic scores, means the same"
        )
    return Claim(_validate.exact_positive(score_range=score_range) / 2, monotonic=False, by_range=True)


def claim_of(mechanism: Any) -> Claim:
    """The claim of a mechanism, ours or any other with a `sensitivity` and `monotonic`, or with a `score_range`."""
    claim = getattr(mechanism, "claim", None)
    if isinstance(claim, Claim):
        return claim
    if getattr(mechanism, "sensitivity", None) is None and hasattr(mechanism, "score_range"):
        return stated(score_range=mechanism.score_range)
    return stated(mechanism.sensitivity, mechanism.monotonic)
