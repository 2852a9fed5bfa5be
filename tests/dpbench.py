"""Where the tests find the DPBench files, which are not in this repository."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "dpbench"

needs_data = pytest.mark.skipif(
    not (FOLDER / "HEPTH.n4096.npy").is_file(), reason="the DPBench files are not in ../shared/data/dpbench"
)
