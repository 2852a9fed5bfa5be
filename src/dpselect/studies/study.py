"""From public data to a folder with the comparisons of both mechanisms: a table, a summary and a figure each."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect.errors import DataNotAvailable, InvalidValue
from dpselect.paper import style
from dpselect.paper.dpbench import histograms
from dpselect.paper.table import Table
from dpselect.studies.cases import cases
from dpselect.studies.comparison import EXPONENTIAL, FLIP, Comparison, compared
from dpselect.studies.drawing import draw

Watch = Callable[[list[Any], str], Iterable[Any]]
_MEANS = ("permute_and_flip", "permute_and_flip_half_width", "exponential", "exponential_half_width")
_COLUMNS = ("study", "data_set", "currency", "budget", "unit", *_MEANS, "ratio", "better")
_FEWEST_RUNS = 2


@dataclass(frozen=True)
class Summary:
    """One study in one currency: in how many cases which mechanism was better, and the median ratio of errors."""

    study: str
    currency: str
    cases: int
    permute_and_flip: int
    exponential: int
    ratio: float


@dataclass(frozen=True)
class Study:
    """What was made, and what could not be."""

    folder: Path
    runs: int
    comparisons: tuple[Comparison, ...]
    summaries: tuple[Summary, ...]
    why_missing: str


def _unwatched(items: list[Any], _: str) -> list[Any]:
    return items


def study(
    out: str | Path, data: str | Path | None = None, *, runs: int = 100, seed: int = 1, watch: Watch = _unwatched
) -> Study:
    """Compare both mechanisms inside of larger ones; write `study.csv` and a figure (PNG, PDF) for each study.

    `data` is the folder of the DPBench files; without it they are taken from the folder that DPSELECT_DPBENCH names, or
    fetched, and without any of these only what needs no data is done.
    """
    if _validate.count(runs=runs) < _FEWEST_RUNS:
        raise InvalidValue(f"runs must be >= {_FEWEST_RUNS}: one run has no confidence interval")
    generator = np.random.default_rng(_validate.count(seed=seed))
    with style.settings():  # refuses a missing matplotlib before anything is computed
        try:
            found, why_missing = histograms(data), ""
        except DataNotAvailable as error:
            found, why_missing = {}, str(error)
        folder = Path(out)
        _made(folder)
        listed = watch(cases(found, generator), "Cases")
        comparisons = tuple(compared(case, case.errors(runs, generator)) for case in listed)
        _write(folder / "study.csv", table(comparisons).to_csv().encode())
        for name in dict.fromkeys(one.study for one in comparisons):
            figure = draw([one for one in comparisons if one.study == name])
            for ending in ("png", "pdf"):
                _write(folder / f"{name.replace(' ', '-').lower()}.{ending}", style.image(figure, ending))
    return Study(folder, runs, comparisons, summaries(comparisons), why_missing)


def summaries(comparisons: Iterable[Comparison]) -> tuple[Summary, ...]:
    """A line for each study and currency."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for one in comparisons:
        groups.setdefault((one.study, one.currency), []).append(one)
    found = []
    for (name, currency), group in groups.items():
        wins = Counter(one.better for one in group)
        ratios = [one.ratio for one in group if math.isfinite(one.ratio)]
        ratio = median(ratios) if ratios else math.inf
        found.append(Summary(name, currency, len(group), wins[FLIP.value], wins[EXPONENTIAL.value], ratio))
    return tuple(found)


def table(comparisons: Iterable[Comparison]) -> Table:
    """All numbers."""
    rows = []
    for one in comparisons:
        means = (one.permute_and_flip, one.exponential)
        numbers = [number for mean in means for number in (mean.value, mean.half_width)]
        rows.append((one.study, one.data_set, one.currency, one.budget, one.unit, *numbers, one.ratio, one.better))
    return Table(_COLUMNS, tuple(rows))


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--out: the folder {str(folder)!r} cannot be made ({reason})") from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--out: {str(path)!r} cannot be written ({reason})") from None
