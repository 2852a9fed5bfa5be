"""The scores that the page shows, the probabilities computed from them so far, and the scores as code and as a file.

They come from a file or from a built-in shape: public example scores that look like typical counts or distances.
"""

import csv
import io
import shlex
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from textwrap import fill
from typing import Any, TypeVar, cast

import numpy as np

from dpselect._messages import printable
from dpselect._numbers import exact_text
from dpselect._scores import as_vector, losses
from dpselect._types import Floats, Integers, Vector
from dpselect.errors import InvalidValue
from dpselect.mechanisms import MECHANISMS, MechanismBase
from dpselect.questions.rows import Places, quantile_score_runs
from dpselect.score_files import Score, ScoreFile

_Result = TypeVar("_Result")

MOST_CANDIDATES = 10_000
_MOST_KNOWN = 48  # some 4 MB of probabilities at ten thousand candidates
_MOST_RESULTS = 4096
SOME = 0.2  # of a gap, which shows both the best candidate and its rivals
_SOME_PEOPLE = 0.02  # of all people


@dataclass(frozen=True, repr=False)
class Known:
    """Known probabilities, in place of the mechanism that they came from."""

    probabilities: Floats

    def pmf(self, _: Any) -> Floats:
        return self.probabilities


class Kept:
    """The latest results under their keys, for several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._results

    def get(self, key: Hashable, compute: Callable[[], _Result]) -> _Result:
        """Return the result of a key, computed if it is not kept."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return cast("_Result", self._results[key])
        computed = compute()
        with self._lock:
            self._results[key] = computed
            while len(self._results) > self._most:
                self._results.popitem(last=False)
        return computed


class ScoreSet:
    """Candidates with their exact scores, and what is known about them. The repr does not show them."""

    def __init__(
        self, name: str, candidates: ScoreFile, unit: str = "points", *, shape: str = "", file: str | None = None
    ) -> None:
        if len(candidates.scores) > MOST_CANDIDATES:
            rule = f"the explorer shows at most {MOST_CANDIDATES:,} candidates"
            raise InvalidValue(f"{rule}: use dpselect.analysis for more")
        self.name, self.unit, self.shape, self.file = name, unit, shape, file
        self.exact: Sequence[Score] = candidates.scores
        self.given_labels = None if candidates.labels is None else [printable(label) for label in candidates.labels]
        self.labels = self.given_labels or [f"candidate {index}" for index in range(len(self.exact))]
        self._known, self.results = Kept(_MOST_KNOWN), Kept(_MOST_RESULTS)
        if not np.isfinite(self.losses).all():
            raise InvalidValue("the scores differ by more than a float can hold: give them in another unit")

    noun, chart_order, is_ranked = "candidate", "rank of the candidate, best score first", True
    words, marks = None, None

    @property
    def size(self) -> int:
        return len(self.exact)

    @property
    def as_list(self) -> "ScoreSet":
        return self

    @property
    def notes(self) -> list[str]:
        return [str(score) for score in self.exact]

    @property
    def target(self) -> float:
        """An error at which there is something to see: a part of the gap between the best and the next."""
        errors = self.losses[self.losses > 0]
        return SOME * float(errors.min()) if errors.size else 0.0

    def order(self, _: Callable[[], list[Floats]]) -> list[int]:
        return list(map(int, np.argsort(self.losses, kind="stable")))

    def scored(self, _: Any) -> "ScoreSet":
        """The candidates with the scores that a question draws from."""
        return self

    def chosen(self, _column: Any, _among: Any, _: Any, method: Any, mechanism: MechanismBase) -> list[list[int]]:
        """Choose as an engine does: positions instead of values."""
        return [list(method.chosen(mechanism, self.vector))]

    @property
    def has_counts(self) -> bool:
        """Whether the scores can be counts of people who choose among several candidates."""
        return len(self.exact) > 1 and all(isinstance(score, int) and score >= 0 for score in self.exact)

    @cached_property
    def vector(self) -> Vector:
        return as_vector(list(self.exact))

    @cached_property
    def losses(self) -> Floats:
        """The distance of each candidate from the best, rounded once."""
        return losses(self.vector)

    @cached_property
    def scores(self) -> Any:
        """The numbers to analyse: the scores if an array holds them exactly, otherwise the negated losses."""
        # Fractions are slow. A loss is rounded by 2^-53 relative, so an exponent of at most 745 (beyond, exp is zero in
        # floats) moves by 8.3e-14, and with it a probability: less than the 1e-12 that a pmf promises.
        return self.vector if isinstance(self.vector, np.ndarray) else -self.losses

    def known(self, name: str, rate: Fraction) -> Known:
        """Return the probabilities of a mechanism, which depend on its rate alone."""
        return self._known.get((name, rate), lambda: Known(MECHANISMS[name](rate, score_range=1).pmf(self.scores)))


MOST = 1024


@dataclass(frozen=True)
class Shape:
    """A kind of scores: its name, its title and unit, and a function that makes n of them."""

    # Counts are monotonic. Scores of a median are not: one more person moves some candidates closer and others away.

    name: str
    title: str
    unit: str
    make: Callable[[int], Integers]
    monotonic: bool = True


def _close_race(n: int) -> Integers:
    # The leaders are about ten people apart, and each further one is 7 % below.
    return np.random.default_rng(5).permutation(np.round(150 * 0.93 ** np.arange(n))).astype(np.int64)


def _long_tail(n: int) -> Integers:
    # Zipf's law with an offset (Mandelbrot): the candidate of rank r has 300 / (r + 2) people.
    return (300 / (np.arange(1, n + 1) + 2)).astype(np.int64)


def _clear_winner(n: int) -> Integers:
    return np.concatenate([[300], np.random.default_rng(8).poisson(120, n - 1)]).astype(np.int64)


def _median(n: int) -> Integers:
    # The median of 2,001 made-up ages: minus the number of people to add or remove, for each of n ages.
    ages = np.sort(np.random.default_rng(9).normal(n / 2, n / 6, 2001))
    below = np.searchsorted(ages, np.arange(n) + 0.5)
    return -np.abs(below - 1000).astype(np.int64)


def _worst_case(n: int) -> Integers:
    # McKenna & Sheldon (2020), Proposition 4: one best candidate, all others equally far below it.
    return np.concatenate([[0], np.full(n - 1, -20)]).astype(np.int64)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("close-race", "A close race", "people", _close_race),
        Shape("long-tail", "A long tail", "people", _long_tail),
        Shape("clear-winner", "A clear winner", "people", _clear_winner),
        Shape("median", "A median", "people", _median, monotonic=False),
        Shape("worst-case", "One best, all others tied", "people", _worst_case),
    )
}


def made(name: str, n: int) -> ScoreSet:
    """The shape of this name with n candidates."""
    if name not in SHAPES:
        raise InvalidValue(f"there is no such shape: give one of {', '.join(SHAPES)}")
    if not 2 <= n <= MOST:
        raise InvalidValue(f"candidates must be a whole number from 2 to {MOST:,}")
    shape = SHAPES[name]
    return ScoreSet(shape.title, ScoreFile(shape.make(n).tolist(), None), shape.unit, shape=name)


class People:
    """Made-up people on a public range, counted as an engine counts them."""

    noun, chart_order, is_ranked, marks = "value", "value", False, None

    def __init__(self, lower: Fraction, step: Fraction, counts: Integers) -> None:
        self.step, self.counts, self.results = step, counts, Kept(_MOST_RESULTS)
        self.size, self.total = len(counts), int(counts.sum())
        self.labels = [exact_text(lower + place * step) for place in range(self.size)]
        self.target = _SOME_PEOPLE * self.total
        taken = np.flatnonzero(counts)
        self._places = Places(taken.astype(np.uint64), np.zeros(taken.size, np.bool_), counts[taken])

    @property
    def notes(self) -> list[str]:
        """The number of people at each value."""
        return [str(count) for count in self.counts.tolist()]

    def order(self, chances: Callable[[], list[Floats]]) -> list[int]:
        """The values between those that are hardly ever an answer."""
        largest = np.max(chances(), axis=0)
        seen = np.flatnonzero(largest >= largest.max() / 200)
        return list(range(max(0, int(seen[0]) - 1), min(self.size, int(seen[-1]) + 2)))

    def scored(self, question: Any) -> ScoreSet:
        """The values with their scores for the level of a question."""
        return self.results.get(question.only, lambda: self._scored(question.only))

    def _scored(self, level: Fraction) -> ScoreSet:
        runs, lengths = quantile_score_runs(self._places, self.size, level)
        return ScoreSet("people", ScoreFile(np.repeat(runs, lengths.astype(np.int64)).tolist(), None))

    def value(self, index: int) -> int:
        """Return the position itself."""
        return index

    def places(self, *_: Any) -> list[Places]:
        """Count as an engine does."""
        return [self._places]

    def off_by(self, level: Fraction, places: Any) -> Floats:
        """How many people the rank of each place is away from a level."""
        ends = np.cumsum(self.counts)
        aim = float(level) * self.total
        off: Floats = np.maximum(np.maximum((ends - self.counts)[places] - aim, aim - ends[places]), 0.0)
        return off


@lru_cache(maxsize=32)
def made_up(ends: tuple[Fraction, Fraction], size: int, total: int, middle: Fraction, spread: Fraction) -> People:
    """As many people at each of `size` values as a normal distribution says, given the first value and the step."""
    # Those beyond an end stand at the end, as the values of a table do.
    lower, step = ends
    normal = NormalDist(float((middle - lower) / step), float(spread / step))
    below = [round(total * normal.cdf(place + 0.5)) for place in range(size - 1)]
    return People(lower, step, np.diff([0, *below, total]).astype(np.int64))


_WIDTH = 72
_END = "END_OF_SCORES"


def scores_code(shown: ScoreSet, mechanism: MechanismBase) -> str:
    """A program that prints the expected error, the 95 % error, and the probabilities."""
    made = type(mechanism)
    kind, home = made.__name__, "dpselect" if made.__module__.startswith("dpselect.") else made.__module__
    imported = (
        f"from dpselect import {kind}, analysis"
        if home == "dpselect"
        else f"from {home} import {kind}\n\nfrom dpselect import analysis"
    )
    exact = [repr(score) for score in shown.exact]
    decimals = "from decimal import Decimal\n\n" if any(isinstance(score, Decimal) for score in shown.exact) else ""
    numbers = fill(", ".join(exact), _WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    claim = mechanism.claim
    parameters = [repr(exact_text(mechanism.epsilon)), f"sensitivity={exact_text(claim.sensitivity)!r}"]
    parameters += ["monotonic=True"] * claim.monotonic
    return f"""{decimals}{imported}

scores = [
{numbers}
]
mechanism = {kind}({", ".join(parameters)})
print("expected error:", analysis.expected_error(mechanism, scores))
print("95 times in 100 at most:", analysis.error_quantile(mechanism, scores, 0.95))
print("probabilities:", mechanism.pmf(scores).tolist())

# To release an answer from private scores, with randomness from the operating system:
# mechanism.select(private_scores)
"""


def scores_file(shown: ScoreSet) -> tuple[str, str]:
    """The file of the scores as a word of a shell, and lines that write it if it is not the reader's own."""
    if shown.file is not None:
        return shown.file, ""
    return "scores.csv", f"cat > scores.csv <<'{_END}'\n{scores_csv(shown)}{_END}\n"


def scores_csv(shown: ScoreSet) -> str:
    """The scores as a file that the commands read."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if shown.given_labels is None:
        writer.writerow(["score"])
        writer.writerows([str(score)] for score in shown.exact)
    else:
        writer.writerow(["label", "score"])
        writer.writerows(zip(shown.given_labels, map(str, shown.exact), strict=True))
    return lines.getvalue()


def file_words(path: str, column: str | None, label: str | None) -> str:
    """The file and its options as shell arguments."""
    words = [path if not path.startswith("-") else f"./{path}"]
    words += [] if column is None else [f"--column={column}"]
    words += [] if label is None else [f"--label={label}"]
    return shlex.join(words)
