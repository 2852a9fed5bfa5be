import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpselect.errors import DataNotAvailable, DPSelectError, InvalidValue, WrongData
from dpselect.research import datasets
from dpselect.research.datasets import SUMS, VARIABLE, file_name, folded, histograms
from tests.dpbench import FOLDER, needs_data

TOTALS = {"HEPTH": 347_414, "ADULTFRANK": 17_665, "MEDCOST": 9_415, "SEARCHLOGS": 335_889, "PATENT": 27_948_226}


@needs_data
def test_the_histograms_of_a_folder() -> None:
    found = histograms(FOLDER)
    assert {name: int(counts.sum()) for name, counts in found.items()} == TOTALS
    assert {counts.shape for counts in found.values()} == {(1024,)}


@needs_data
def test_the_environment_names_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(FOLDER))
    assert histograms()["HEPTH"].sum() == TOTALS["HEPTH"]


@needs_data
def test_the_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/no/such/folder")
    assert histograms(FOLDER)["HEPTH"].sum() == TOTALS["HEPTH"]


def test_folding_sums_neighbours() -> None:
    counts = np.arange(4096)
    assert folded(counts)[:2].tolist() == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7]
    assert folded(counts).sum() == counts.sum()


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match=r"data: .*none' is not a folder"):
        histograms(tmp_path / "none")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(InvalidValue, match=f"{VARIABLE}: .*none' is not a folder"):
        histograms()


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"HEPTH.n4096.npy is not in .*: download it from https://github.com/dpcomp"):
        histograms(tmp_path)


def test_a_file_with_another_sum(tmp_path: Path) -> None:
    np.save(tmp_path / file_name("HEPTH"), np.ones(4096, np.int64))
    with pytest.raises(WrongData, match=r"is not DPBench's HEPTH: its SHA-256 sum differs") as raised:
        histograms(tmp_path)
    assert isinstance(raised.value, DPSelectError)


def test_a_file_that_cannot_be_read_as_an_array_is_wrong_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / file_name("HEPTH")).write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(WrongData):
        histograms(tmp_path)


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
def test_a_fetched_file_with_another_sum_is_an_error(server: tuple[Path, http.server.ThreadingHTTPServer]) -> None:
    served, _ = server
    (served / file_name("HEPTH")).write_bytes(b"not the data")
    with pytest.raises(WrongData, match="SHA-256 sum differs"):
        histograms()


@pytest.mark.usefixtures("offline")
def test_a_file_that_the_server_lacks_is_not_available(server: tuple[Path, http.server.ThreadingHTTPServer]) -> None:
    with pytest.raises(DataNotAvailable, match="HTTPError"):
        histograms()
