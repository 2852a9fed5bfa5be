"""The rows about the explorer: how long a dragged slider waits for its figures."""

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from statistics import median
from typing import Any

from benchmarks.bars import Bar, Figures, at_most_seconds, no_bar
from benchmarks.case import Case
from benchmarks.contestant import NotAvailable
from benchmarks.stopwatch import Effort, interleaved_medians, timed
from dpselect.explore.answers import asked_of
from dpselect.explore.curves import look
from dpselect.explore.scores import made

_BINS = 1024
_WAITED = 0.1
_HARD = "median"  # of the built-in shapes the one with the most different scores, which report noisy max pays for
_SHAPES = ("close-race", _HARD)
_REMEDY = "python -m pip install -e '.[bench]', and tools/install-system-packages"

# From the slider's event to the first frame that is drawn with the new figures, at many places of the slider.
_DRAG = """
const done = arguments[0], slider = document.getElementById('slider'), waited = [];
const frame = () => new Promise(requestAnimationFrame);
const count = () => performance.getEntriesByName('answer').length;
(async () => {
  for (let step = 0; step < 43; step++) {
    performance.clearMeasures();
    const start = performance.now();
    slider.value = Number(slider.min) + (step / 42) * (slider.max - slider.min);
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    while (!count()) await frame();
    waited.push((performance.now() - start) / 1000);
  }
  done(waited);
})();
"""


def cases() -> Iterator[Case]:
    """The figures alone, over HTTP, and in a browser up to the drawing."""
    for shape in _SHAPES:
        yield _case("explorer, figures at one epsilon", partial(_figures, shape), at_most_seconds(_WAITED), shape)
    yield _case("explorer, over HTTP", _over_http, at_most_seconds(_WAITED), _HARD)
    yield _case("explorer, slider to drawing in Chromium", _in_chromium, at_most_seconds(_WAITED), _HARD)
    yield _case("explorer, longest of 43 of these", _longest_in_chromium, no_bar(), _HARD)


def _case(what: str, measure: Callable[[Effort], Figures], bar: Bar, shape: str) -> Case:
    return Case(what, "", bar, measure, "0.01:1", f"{_BINS:,}", shape, "int64")


def _epsilons() -> Iterator[str]:
    """Always another epsilon, as a dragged slider has it: the explorer remembers those that it has seen."""
    return (f"{0.01 * 1.0123 ** (step % 370):.9g}" for step in itertools.count())


def _figures(shape: str, effort: Effort) -> Figures:
    shown, epsilons = made(shape, _BINS), _epsilons()
    call = timed(lambda: look(asked_of({"question": "select", "amount": next(epsilons)}, shown)))
    return Figures(*interleaved_medians([call], effort))


def _over_http(effort: Effort) -> Figures:
    served = _serving()
    epsilons = _epsilons()
    with served() as running:
        key = running.ask("shape", shape=_HARD, candidates=str(_BINS))[1]["id"]
        call = timed(lambda: json.dumps(running.ask("look", question="select", id=key, amount=next(epsilons))[0]))
        return Figures(*interleaved_medians([call], effort))


def _in_chromium(_: Effort) -> Figures:
    return Figures(median(_waits()))


def _longest_in_chromium(_: Effort) -> Figures:
    return Figures(max(_waits()))


@cache
def _waits() -> list[float]:
    """Seconds from each movement of the slider to its drawing."""
    served = _serving()
    try:
        from tests.explore.browsing import NoBrowser, Page, start_browser  # noqa: PLC0415 - needs selenium

        with served() as running, tempfile.TemporaryDirectory() as folder:
            driver = start_browser(folder, folder)
            try:
                page = Page(driver, running.address).open()
                page.choose("shape", _HARD)
                page.choose_candidates(_BINS)
                waits: list[float] = driver.execute_async_script(_DRAG)
                return waits
            finally:
                driver.quit()
    except (ImportError, NoBrowser):
        raise NotAvailable(f"no browser: {_REMEDY}") from None


def _serving() -> Any:
    """What starts the explorer in a thread."""
    try:
        from tests.explore.serving import served  # noqa: PLC0415 - needs the extra
    except ImportError:
        raise NotAvailable(f"not installed: {_REMEDY}") from None
    return served
