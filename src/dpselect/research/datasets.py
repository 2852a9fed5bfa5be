"""The DPBench histograms (Hay et al. 2016): found in a folder or downloaded, and verified by SHA-256 checksums."""

import hashlib
import io
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dpselect._messages import install_command
from dpselect._types import Counts
from dpselect.errors import DataNotAvailable, InvalidValue, WrongData

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
