"""The data of the paper's experiments, and the selection problems of Section 6: mode and median of each histogram.

The data are the DPBench histograms (Hay et al. 2016), found in a folder or downloaded, and verified by SHA-256
checksums.
"""

import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dpselect._messages import install_command
from dpselect._types import Counts
from dpselect.analysis import epsilon_for, expected_error
from dpselect.errors import DataNotAvailable, InvalidValue, WrongData
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip
from dpselect.research.plotting import EXPONENTIAL, FLIP

VARIABLE = "DPSELECT_DPBENCH"
SOURCE = "https://raw.githubusercontent.com/dpcomp-org/dpcomp_core/HEAD/dpcomp_core/datafiles/1D/"
PAGE = "https://github.com/dpcomp-org/dpcomp_core/tree/HEAD/dpcomp_core/datafiles/1D"
SUMS = {
    "HEPTH": "a39f1283608ac1eae6d1d5bc289e6eb7a42687b765f5f80af1b40566ff853884",
    "ADULTFRANK": "d85d9b9fe1ff128820cd103f710200affee71859f721ccb9ecc6e020325e4705",
    "MEDCOST": "98ac6a1fb0ccdb0e249a7df49a238145eb971fdbebe1ee805174f99d28ef0dd3",
    "SEARCHLOGS": "183561b0a8bd8a6cdd0622468830aaab491400a7ee58db2f46a4496e9a4e2621",
    "PATENT": "0dac5363cfc1e15189cf00ef3a817dcfeb39678d986b1951ba4f451b1cc6f864",
}
BINS = 1024
_SECONDS = 20.0


def file_name(data_set: str) -> str:
    return f"{data_set}.n4096.npy"


def histograms(folder: str | Path | None = None) -> dict[str, Counts]:
    """The five histograms with 1,024 bins, from a folder, from the folder in DPSELECT_DPBENCH, or downloaded."""
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return {data_set: _read(_fetched(data_set), data_set) for data_set in SUMS}
    where = "data" if folder is not None else VARIABLE
    return {data_set: _read(_found(Path(named), data_set, where), data_set) for data_set in SUMS}


def available(folder: str | Path | None) -> tuple[Mapping[str, Counts], str]:
    """The histograms, or none and the reason. Wrong data, or a folder without them, raise an error."""
    try:
        return histograms(folder), ""
    except DataNotAvailable as error:
        return {}, str(error)


def _found(folder: Path, data_set: str, where: str) -> Path:
    path = folder / file_name(data_set)
    if not folder.is_dir():
        raise InvalidValue(f"{where}: {str(folder)!r} is not a folder: name the folder of the DPBench files")
    if not path.is_file():
        raise InvalidValue(f"{where}: {path.name} is not in {str(folder)!r}: download it from {PAGE}")
    return path


def _fetched(data_set: str) -> Path:
    try:
        pooch: Any = import_module("pooch")
    except ImportError:
        raise DataNotAvailable(f"downloading the data needs pooch: {install_command('pooch')}") from None
    pooch.get_logger().setLevel("ERROR")
    name, known = file_name(data_set), f"sha256:{SUMS[data_set]}"
    fetcher = pooch.create(path=pooch.os_cache("dpselect"), base_url=SOURCE, registry={name: known})
    try:
        return Path(fetcher.fetch(name, downloader=pooch.HTTPDownloader(timeout=_SECONDS)))
    except ValueError:  # raised by pooch for a wrong checksum
        raise WrongData(f"{SOURCE}{name} is not the file that the paper used: its SHA-256 sum differs") from None
    except OSError as error:  # the network, or a cache that cannot be written
        raise DataNotAvailable(f"{SOURCE}{name} could not be downloaded ({type(error).__name__})") from None


def _read(path: Path, data_set: str) -> Counts:
    # The histogram of a file with the right checksum, reduced to 1,024 bins by summing adjacent bins.
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidValue(f"{str(path)!r} cannot be read ({error.strerror or type(error).__name__})") from None
    if hashlib.sha256(content).hexdigest() != SUMS[data_set]:
        raise WrongData(f"{str(path)!r} is not DPBench's {data_set}: its SHA-256 sum differs: download it again")
    counts = np.load(io.BytesIO(content), allow_pickle=False).astype(np.int64)
    return folded(counts)


def folded(counts: Counts, bins: int = BINS) -> Counts:
    # The sums of runs of adjacent bins.
    sums: Counts = counts.reshape(bins, -1).sum(axis=1)
    return sums


# The mechanisms of the paper's experiments, by their titles.
KINDS: dict[str, type[MechanismBase]] = {kind.title: kind for kind in (PermuteAndFlip, ExponentialMechanism)}
TASKS = ("mode", "median")


def mode_scores(counts: Counts) -> Counts:
    # Twice the number of people in each bin. The paper uses this because counts are monotonic: exp(-epsilon/2 * 2 gap)
    # is exp(-epsilon gap). An error in these scores is twice the number of people.
    return 2 * counts


def median_scores(counts: Counts) -> Counts:
    # Minus the number of people to add or remove until a bin contains the median: neither the people below nor
    # those above outnumber all others. Adding a person in or above the bin, or removing one below, lowers the excess of
    # those below by one.
    below = np.cumsum(counts) - counts
    above = counts.sum() - below - counts
    scores: Counts = -np.maximum(np.abs(below - above) - counts, 0)
    return scores


@dataclass(frozen=True, repr=False, eq=False)
class Experiment:
    """One task on one data set: errors in units of the paper's scores."""

    data_set: str
    task: str
    counts: Counts

    @cached_property
    def scores(self) -> Counts:
        return mode_scores(self.counts) if self.task == "mode" else median_scores(self.counts)

    @property
    def people(self) -> float:
        return 0.5 if self.task == "mode" else 1.0

    def error(self, name: str, epsilon: float) -> float:
        return expected_error(KINDS[name](epsilon), self.scores)

    def ratio(self, epsilon: float) -> float:
        """The exponential mechanism's expected error relative to permute-and-flip's."""
        return self.error(EXPONENTIAL, epsilon) / self.error(FLIP, epsilon)

    def epsilon(self, name: str, error: float) -> float:
        return epsilon_for(KINDS[name], self.scores, expected_error=error)

    def budget(self, epsilon: float) -> float:
        """The factor by which the exponential mechanism needs a larger epsilon to be as good as permute-and-flip."""
        return self.epsilon(EXPONENTIAL, self.error(FLIP, epsilon)) / epsilon


@dataclass(frozen=True)
class Material:
    """The inputs of the figures: how many epsilons the linear programs have, and the histograms if available."""

    points: int = 250
    histograms: Mapping[str, Counts] = field(default_factory=dict)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilons of the optimality ratios, from 0.01 to 10, evenly on a log axis."""
        return tuple(np.geomspace(0.01, 10, self.points).tolist())

    def on(self, data_set: str, task: str) -> Experiment:
        return Experiment(data_set, task, self.histograms[data_set])

    def of(self, *tasks: str) -> Iterator[Experiment]:
        """The tasks on all data sets."""
        return (self.on(data_set, task) for task in tasks for data_set in self.histograms)
