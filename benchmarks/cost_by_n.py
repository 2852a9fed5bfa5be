"""What a selection and its probabilities cost against the number of candidates, beside what people write instead.

The table is drawn as a picture by tools/draw_pictures.py. Scores are Poisson counts around 100, as float64. The six
calls take turns, so a call finds the caches as another one left them.
"""

import sys
from functools import partial

from benchmarks import units
from benchmarks.contestant import ARGMAX, NAIVE_PERMUTE_AND_FLIP, SOFTMAX, Contestant
from benchmarks.scores import Data
from benchmarks.stopwatch import Effort, interleaved_medians, timed
from benchmarks.table import piped
from dpselect import PermuteAndFlip

TITLE = "cost against n"
_EXPONENTS = range(2, 8)


def _select(epsilon: str) -> Contestant:
    mechanism = PermuteAndFlip(epsilon)
    return Contestant(f"select, ε = {epsilon}", lambda scores: partial(mechanism.select, scores), epsilon)


_CONTESTANTS = (
    ARGMAX,
    _select("1"),
    _select("0.001"),
    NAIVE_PERMUTE_AND_FLIP,
    SOFTMAX,
    Contestant("pmf, ε = 1", lambda scores: partial(PermuteAndFlip(1).pmf, scores)),
)


def report(effort: Effort) -> str:
    """A Markdown table of median times: a line for each number of candidates, a column for each call."""
    head = ["n", *(one.name for one in _CONTESTANTS)]
    return piped(head, (_line(exponent, effort) for exponent in _EXPONENTS), left=())


def _line(exponent: int, effort: Effort) -> list[str]:
    print(f"{TITLE}: 10^{exponent}", file=sys.stderr, flush=True)
    scores = Data(10**exponent).scores()
    medians = interleaved_medians([timed(one.prepared(scores)) for one in _CONTESTANTS], effort)
    return [f"10^{exponent}", *map(units.seconds, medians)]
