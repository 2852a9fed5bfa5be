"""The DPBench files are found, fetched and verified; the scores of mode and median are those of their definitions."""

import http.server
import itertools
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import expected_error
from dpselect.errors import DataNotAvailable, DPSelectError, InvalidValue, WrongData
from dpselect.research import datasets
from dpselect.research.datasets import (
    SUMS,
    VARIABLE,
    Experiment,
    file_name,
    folded,
    histograms,
    median_scores,
    mode_scores,
)
from dpselect.research.plotting import EXPONENTIAL, FLIP
from tests.dpbench import FOLDER, needs_data

TOTALS = {"HEPTH": 347_414, "ADULTFRANK": 17_665, "MEDCOST": 9_415, "SEARCHLOGS": 335_889, "PATENT": 27_948_226}


@needs_data
def test_the_histograms_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument wins over the environment."""
    monkeypatch.setenv(VARIABLE, str(FOLDER))
    by_environment = histograms()
    monkeypatch.setenv(VARIABLE, "/no/such/folder")
    for found in (by_environment, histograms(FOLDER)):
        assert {name: int(counts.sum()) for name, counts in found.items()} == TOTALS
        assert {counts.shape for counts in found.values()} == {(1024,)}


def test_folding_sums_neighbours() -> None:
    counts = np.arange(4096)
    assert folded(counts)[:2].tolist() == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7]
    assert folded(counts).sum() == counts.sum()


def test_folders_without_the_data_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with another sum is wrong before it is parsed."""
    with pytest.raises(InvalidValue, match=r"HEPTH.n4096.npy is not in .*: download it from https://github.com/dpcomp"):
        histograms(tmp_path)
    with pytest.raises(InvalidValue, match=r"data: .*none' is not a folder"):
        histograms(tmp_path / "none")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(InvalidValue, match=f"{VARIABLE}: .*none' is not a folder"):
        histograms()
    np.save(tmp_path / file_name("HEPTH"), np.ones(4096, np.int64))
    for _ in range(2):
        with pytest.raises(WrongData, match=r"is not DPBench's HEPTH: its SHA-256 sum differs") as raised:
            histograms(tmp_path)
        assert isinstance(raised.value, DPSelectError)
        (tmp_path / file_name("HEPTH")).write_bytes(b"\x80\x04K\x01.")


@pytest.mark.usefixtures("offline")
def test_without_a_network_the_data_are_not_available() -> None:
    with pytest.raises(DataNotAvailable, match=r"HEPTH.n4096.npy could not be downloaded \(ProxyError\)"):
        histograms()


@pytest.mark.usefixtures("offline")
def test_without_pooch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataNotAvailable, match=r" -m pip install pooch$"):
        histograms()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, http.server.ThreadingHTTPServer]]:
    """A server of this machine in the place of the public repository, and the folder that it serves."""
    served = tmp_path / "served"
    served.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setattr(datasets, "SOURCE", f"http://127.0.0.1:{running.server_port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield served, running
        running.shutdown()


@needs_data
@pytest.mark.usefixtures("offline")
def test_the_files_are_fetched_once(server: tuple[Path, http.server.ThreadingHTTPServer]) -> None:
    served, _ = server
    for name in SUMS:
        shutil.copy(FOLDER / file_name(name), served)
    first = histograms()
    for path in served.iterdir():
        path.unlink()
    again = histograms()
    assert {name: int(counts.sum()) for name, counts in first.items()} == TOTALS
    assert all((first[name] == again[name]).all() for name in SUMS)


@pytest.mark.usefixtures("offline")
def test_what_the_server_lacks_or_has_changed_is_an_error(server: tuple[Path, http.server.ThreadingHTTPServer]) -> None:
    served, _ = server
    with pytest.raises(DataNotAvailable, match="HTTPError"):
        histograms()
    (served / file_name("HEPTH")).write_bytes(b"not the data")
    with pytest.raises(WrongData, match="SHA-256 sum differs"):
        histograms()


# Mode and median as selection problems.

counts_lists = st.lists(st.integers(0, 3), min_size=2, max_size=4)


def has_median(counts: tuple[int, ...], bin_: int) -> bool:
    """Neither those below nor those above are more than half of all."""
    return 2 * sum(counts[:bin_]) <= sum(counts) and 2 * sum(counts[bin_ + 1 :]) <= sum(counts)


def fewest_changes(counts: tuple[int, ...], bin_: int) -> int:
    """Breadth-first: add or remove one person anywhere until the bin has the median."""
    seen, frontier = {counts}, {counts}
    for changes in itertools.count():
        if any(has_median(one, bin_) for one in frontier):
            return changes
        moved = {
            (*one[:i], one[i] + change, *one[i + 1 :])
            for one in frontier
            for i in range(len(one))
            for change in (1, -1)
            if one[i] + change >= 0
        }
        frontier = moved - seen
        seen |= frontier
    raise AssertionError


@given(counts_lists)
@settings(max_examples=60)
def test_median_scores_count_the_people_to_add_or_remove(counts: list[int]) -> None:
    expected = [-fewest_changes(tuple(counts), bin_) for bin_ in range(len(counts))]
    assert median_scores(np.array(counts)).tolist() == expected


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.data())
def test_one_person_moves_a_median_score_by_at_most_one(counts: list[int], data: st.DataObject) -> None:
    before = np.array(counts)
    after = before.copy()
    after[data.draw(st.integers(0, len(counts) - 1))] += 1
    assert np.abs(median_scores(after) - median_scores(before)).max() <= 1
    assert median_scores(before).max() == 0


@given(st.lists(st.integers(0, 100), min_size=2, max_size=9), st.floats(0.01, 2))
def test_twice_the_count_is_the_monotonic_mechanism_in_other_units(counts: list[int], epsilon: float) -> None:
    scores = mode_scores(np.array(counts))
    for kind in (PermuteAndFlip, ExponentialMechanism):
        ours = expected_error(kind(epsilon), scores)
        assert ours == pytest.approx(2 * expected_error(kind(epsilon, monotonic=True), counts), rel=1e-11, abs=1e-300)


def test_figures_of_an_experiment_agree_with_each_other() -> None:
    experiment = Experiment("made up", "mode", np.array([5, 90, 100, 3]))
    epsilon = experiment.epsilon(FLIP, 2.0)
    assert experiment.error(FLIP, epsilon) == pytest.approx(2)
    assert experiment.ratio(epsilon) == pytest.approx(experiment.error(EXPONENTIAL, epsilon) / 2)
    assert experiment.error(EXPONENTIAL, epsilon * experiment.budget(epsilon)) == pytest.approx(2)
    assert experiment.people == 0.5
