import numpy as np
import pytest

from dpselect.research.datasets import SUMS, VARIABLE, Material


@pytest.fixture(scope="session")
def material() -> Material:
    """Made-up histograms under the names of the real ones, so that every figure is tested without data too."""
    generator = np.random.default_rng(1)
    histograms = {name: generator.poisson(300 * (number + 1), 64) for number, name in enumerate(SUMS)}
    for counts in histograms.values():
        counts[7] *= 2
    return Material(6, histograms)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No folder of data, an empty cache, and a network that leads nowhere."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
