"""Scores that change while they are read: every call ends, with a candidate or with an error of ours.

Another thread, or the file behind a memory map, may write to an array that we are reading. Unless the scores were
copied first, the distribution is void then; but nothing may loop for ever, and only our own errors may be raised.
"""

import itertools
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, generalized_scores
from dpselect.analysis import expected_error
from dpselect.errors import DPSelectError, InvalidValue, ScoresChanged
from dpselect.mechanisms.base import MechanismBase
from dpselect.selection import gaps
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import MIDDLE, SHORT, Gaps, Rate
from dpselect.selection.races import choose_in_runs
from tests.watchdog import at_once

Array = npt.NDArray[Any]
Ask = Callable[[Any], Any]

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
SIZES = [7, SHORT + 100, MIDDLE + 100]  # one of each road


def _seen(scores: Any, before: Any = None, steady: bool = False) -> int:
    seen = PermuteAndFlip(1).summary(steady=steady)
    if before is not None:
        seen.update([before])
    seen.update(scores)
    return max(0, seen.result() - (before is not None))


def _run(scores: Any, kind: type[MechanismBase] = PermuteAndFlip, **options: bool) -> int:
    """The run that is selected, of lengths from 1 to 1000."""
    lengths = 1 + np.arange(len(scores)) % 1000
    position = kind(1).select_runs(scores, lengths, **options)
    return int(np.searchsorted(np.cumsum(lengths), position, side="right"))


# What selects a candidate from a vector.
CHOICES: dict[str, Ask] = {
    **{f"select of {kind.__name__}": lambda scores, kind=kind: kind(1).select(scores) for kind in KINDS},
    **{f"extreme rate of {kind.__name__}": lambda scores, kind=kind: kind("1e-400").select(scores) for kind in KINDS},
    **{f"row of {kind.__name__}": lambda scores, kind=kind: kind(1).select_rows(scores[None])[0] for kind in KINDS},
    "early exit": lambda scores: PermuteAndFlip(1).select(scores, early_exit=True),
    "steady": lambda scores: PermuteAndFlip(1).select(scores, steady=True),
    "steady at an extreme rate": lambda scores: PermuteAndFlip("1e-400").select(scores, steady=True),
    "steady row": lambda scores: PermuteAndFlip(1).select_rows(scores[None], steady=True)[0],
    "steady runs": lambda scores: _run(scores, steady=True),
    "steady summary after less": lambda scores: _seen(scores, -100, steady=True),
    "runs": _run,
    "exponential runs": lambda scores: _run(scores, ExponentialMechanism),
    "summary": _seen,
    "summary after less": lambda scores: _seen(scores, -100),
    "summary after more": lambda scores: _seen(scores, 10**300),
    "lazy flip": lambda scores: PermuteAndFlip(1).select_lazily(lambda i: scores[i], 7, best=10),
    "lazy rejection": lambda scores: ExponentialMechanism(1).select_lazily(lambda i: scores[i], 7, best=10),
}
# What computes from a vector.
FIGURES: dict[str, Ask] = {
    **{f"pmf of {kind.__name__}": lambda scores, kind=kind: kind(1).pmf(scores) for kind in KINDS},
    "simulate": lambda scores: PermuteAndFlip(1).simulate(scores, 3, seed=1),
    "expected error": lambda scores: expected_error(PermuteAndFlip(1), scores),
    "generalized scores": lambda scores: generalized_scores(scores[:50], np.ones(min(50, len(scores))), 1),
}
ASKS = {**CHOICES, **FIGURES}
# What reads a vector block by block, if it is very long. All else treats it like one of the length before.
BY_BLOCKS = {"select of PermuteAndFlip", "early exit", "summary", "summary after less", "summary after more"}


def sizes(ask: str) -> list[int]:
    return SIZES if ask in BY_BLOCKS else SIZES[:-1]


ROADS = [(ask, size) for ask in ASKS for size in sizes(ask)]


def extremes(size: int, dtype: str) -> list[Array]:
    """Vectors that have as little in common as possible; of floats also what is not finite."""
    kind = np.dtype(dtype)
    low, high = (
        (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (np.finfo(kind).min, np.finfo(kind).max)
    )
    made = [
        np.zeros(size, kind),
        np.full(size, high, kind),
        np.full(size, low, kind),
        np.tile([low, high], size)[:size],
    ]
    for place, best in ((0, 1), (size // 2, 100), (size - 1, high)):
        one = np.zeros(size, kind)
        one[place] = best
        made.append(one)
    if kind.kind == "f":
        made += [np.full(size, wrong, kind) for wrong in (np.nan, np.inf, -np.inf)]
        made.append(np.where(np.arange(size) == size // 3, np.nan, made[0]).astype(kind))
        made.append(np.where(np.arange(size) % 2, np.inf, -np.inf).astype(kind))
    return [vector.astype(kind) for vector in made]


def pairs(size: int, dtype: str) -> Iterator[tuple[Array, Array]]:
    """What is there first, and what is there afterwards; half of the extremes for long vectors, which take longer."""
    return itertools.product(extremes(size, dtype)[:: 1 if size <= SHORT else 2], repeat=2)


def ends(ask: Ask, scores: Any, size: int | None = None) -> Any:
    """What is answered, or the error. No warning either: where warnings are errors, it would be another exception."""
    with at_once(60), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answer = ask(scores)
        except DPSelectError as error:
            return error
    assert size is None or 0 <= int(answer) < size
    return answer


class Restless(np.ndarray):
    """An array that holds other scores each time that it is read."""

    turn: Callable[[], None]

    def __array_finalize__(self, parent: Any) -> None:
        self.turn = getattr(parent, "turn", lambda: None)

    def __getitem__(self, key: Any) -> Any:
        self.turn()
        return super().__getitem__(key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        self.turn()
        plain = [each.view(np.ndarray) if isinstance(each, np.ndarray) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)


def restless(vectors: Iterator[Array], turning: Callable[[Callable[[], None]], object] | None = None) -> Any:
    memory = next(vectors).copy()

    def turn() -> None:
        memory[:] = next(vectors)

    if turning is not None:  # by something else than a look at the array
        turning(turn)
        return memory
    array = memory.view(Restless)
    array.turn = turn
    return array


@contextmanager
def changed_after_the_first_look(change: Callable[[], object]) -> Iterator[list[int]]:
    """What finds the maximum also changes the scores; yields how often it looked."""
    find, looks = gaps.scanned, [0]

    def find_and_change(*look: Any) -> Any:
        found = find(*look)
        looks[0] += 1
        change()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "scanned", find_and_change)
        yield looks


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize(("ask", "size"), ROADS)
def test_every_call_ends_if_the_scores_change_after_the_first_look(ask: str, size: int, dtype: str) -> None:
    """The first look finds the maximum of A; from then on there is B."""
    memory = np.zeros(size, dtype)
    for before, after in pairs(size, dtype):
        memory[:] = before
        with changed_after_the_first_look(partial(np.copyto, memory, after)):
            ends(ASKS[ask], memory, size if ask in CHOICES else None)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize(("ask", "size"), [road for road in ROADS if road[0] in CHOICES])
def test_every_call_ends_if_the_scores_change_at_every_draw(
    ask: str, size: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddle: list[Callable[[], None]] = []

    def meddling(name: str) -> Callable[..., Any]:
        drawn = getattr(Draws, name)

        def drawing(*arguments: Any) -> Any:
            meddle[-1]()
            return drawn(*arguments)

        return drawing

    for name in ("bits", "words"):  # whose drawing changes the scores
        monkeypatch.setattr(Draws, name, meddling(name))
    for before, after in pairs(size, dtype):
        scores = restless(
            itertools.cycle([before, after]),
            meddle.append,
        )
        ends(CHOICES[ask], scores, size)


FLOATS = arrays.arrays(
    np.float64, 9, elements=st.sampled_from([0.0, 1.0, -1.0, 50.0, 1e308, -1e308, np.nan, np.inf, -np.inf])
)
WHOLE = arrays.arrays(np.int64, 9, elements=st.sampled_from([0, 1, -1, 50, 2**63 - 1, -(2**63)]))
EXTREME = {dtype: extremes(9, dtype) for dtype in ("int64", "float64", "uint8", "float16")}
LOOKS = st.sampled_from(sorted(EXTREME)).flatmap(
    lambda dtype: st.lists(st.sampled_from(EXTREME[dtype]), min_size=2, max_size=5)
)


@pytest.mark.parametrize("ask", ASKS)
@settings(max_examples=25, deadline=None)
@given(vectors=LOOKS | st.lists(FLOATS, min_size=2, max_size=5) | st.lists(WHOLE, min_size=2, max_size=5))
def test_every_call_ends_whatever_it_sees(ask: str, vectors: list[Array]) -> None:
    """Long vectors, tiled from short ones, of which each look sees the next."""
    for size in sizes(ask):
        long = [np.resize(vector, size) for vector in vectors]
        ends(ASKS[ask], restless(itertools.cycle(long)), size if ask in CHOICES else None)


@pytest.mark.parametrize("ask", ["select of PermuteAndFlip", "select of ExponentialMechanism", "early exit", "summary"])
def test_every_call_ends_while_a_thread_flips_the_best_score(ask: str) -> None:
    """What hung after a thousand calls: epsilon is so large that the best candidate alone is likely."""
    for size in (1_000, 20_000, MIDDLE + 1):
        scores = np.zeros(size, np.int64)
        stopped = threading.Event()

        def flip(scores: Array = scores, stopped: threading.Event = stopped) -> None:
            while not stopped.is_set():
                scores[scores.size // 2] = 0
                scores[scores.size // 2] = 10**6

        thread = threading.Thread(target=flip)
        thread.start()
        try:
            for _ in range(100):
                ends(CHOICES[ask], scores, size)
        finally:
            stopped.set()
            thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_vector_is_a_snapshot(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is what the first look saw: the best candidate wins, though it is gone before the first draw."""
    for size in (2, 100, SHORT):
        scores = np.zeros(size)
        scores[1] = 1e9

        def changing(find: Callable[[Array], Any], scores: Array = scores) -> Callable[[Array], Any]:
            def find_and_change(*look: Any) -> Any:
                found = find(*look)
                scores[:] = np.where(np.arange(scores.size) == 0, 1e9, 0)
                return found

            return find_and_change

        with monkeypatch.context() as patch:
            for name in ("finite_maximum", "maxima_of_parts"):
                patch.setattr(gaps, name, changing(getattr(gaps, name)))
            assert kind(1).select(scores) == 1
            assert scores[0] == 1e9
            scores[:] = np.where(np.arange(size) == 1, 1e9, 0)
            assert kind(1).select_rows(scores[np.newaxis]).tolist() == [1]


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_best_candidate_that_is_gone_is_an_error(size: int) -> None:
    """The refused block leaves a summary as it was."""
    seen = PermuteAndFlip(1).summary()
    seen.update([5, 1])
    result = seen.result()
    for ask in (PermuteAndFlip(1).select, seen.update):
        scores = one_best(size)
        with (
            changed_after_the_first_look(partial(scores.fill, 0)),
            pytest.raises(ScoresChanged, match="the scores changed while they were read: give an array that nothing"),
        ):
            ask(scores)
    assert (seen.candidates, seen.result()) == (2, result)


def one_best(size: int) -> Array:
    scores = np.zeros(size)
    scores[17] = 1e9
    return scores


def test_the_exponential_mechanism_starts_over_with_a_copy() -> None:
    """The best candidate is gone when the hot ones are listed: if it comes back, every proposal of it is refused."""
    scores = one_best(5_000)
    with at_once(60), changed_after_the_first_look(partial(scores.fill, 0)) as looks:
        assert 0 <= ExponentialMechanism(1).select(scores) < 5_000
    assert looks[0] > 1


def test_runs_of_which_none_is_left_are_an_error() -> None:
    """A cold run is looked at once in 256 times; if none is, nothing is left of three."""
    left = 0
    for _ in range(50):
        values = np.array([0.0, 0.0, 1e9])
        below = Gaps(values, Rate(PermuteAndFlip(1).rate))
        values[2] = 0
        try:
            choose_in_runs(below, np.ones(3, np.uint64), Draws())
            left += 1
        except ScoresChanged:
            pass
    assert left < 50


@pytest.mark.parametrize("bound", [0, -1, -(2**70)])
def test_there_is_no_index_below_nothing(bound: int) -> None:
    source = Draws()
    for draw in (lambda: source.index(bound), lambda: source.indices_below(bound, 5)):
        with at_once(), pytest.raises(ScoresChanged):
            draw()
    with at_once(), pytest.raises(ScoresChanged):
        source.indices(np.array([3, max(bound, -5)]))


def test_a_negative_exponent_is_refused() -> None:
    with at_once(), pytest.raises(InvalidValue, match="exponent must be >= 0"):
        Draws().flip(Gaps(np.array([1.0]), Rate(PermuteAndFlip(1).rate)).exact(0) - 1)


def test_an_exact_exponent_is_never_that_of_a_score_above_the_best() -> None:
    for values, wrong in ((np.array([1.0, 2.0]), [3.0, np.nan, np.inf, -np.inf]), (np.array([1, 2]), [3, 2**62])):
        below = Gaps(values, Rate(PermuteAndFlip(1).rate))
        for score in wrong:
            values[0] = score
            with pytest.raises(ScoresChanged):
                below.exact(0)
