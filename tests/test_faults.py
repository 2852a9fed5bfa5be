"""The faults that `make faults` plants: each is in the sources as they are, and says where to look first."""

import ast
from pathlib import Path

import pytest

from mutation import faults
from mutation.faults import ROOT, TESTS, read_faults


def test_every_fault_is_in_the_sources():
    """A change of the code brings its faults along."""
    found = read_faults()
    assert len({fault.number for fault in found}) == len(found) >= 36
    assert all((ROOT / TESTS / fault.first).is_file() for fault in found)


@pytest.mark.parametrize("fault", read_faults(), ids=lambda fault: fault.number)
def test_a_planted_fault_is_still_a_program(fault):
    """A syntax error would be noticed by any test."""
    source = (ROOT / fault.file).read_text()
    planted = source.replace(fault.old, fault.new)
    assert planted != source
    if fault.file.endswith(".py"):
        ast.parse(planted)


def test_a_fault_that_is_nowhere_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "mutation").mkdir()
    (tmp_path / "mutation/faults.toml").write_text(
        '[[fault]]\nnumber = "1"\nwhat = "w"\nfile = "a.py"\nold = "x = 2"\nnew = "x = 3"\nfirst = "test_a.py"\n'
    )
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"fault 1: its old text is not in a\.py"):
        read_faults()


def test_a_test_that_fails_is_named(tmp_path):
    folder = tmp_path / TESTS
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["slow: not here"]\n')
    (folder / "test_a.py").write_text("def test_passes(): pass\n")
    (folder / "test_b.py").write_text("def test_fails(): assert False\n")
    assert faults.caught_by(tmp_path, "test_a.py") == "test_b.py::test_fails"
    (folder / "test_b.py").unlink()
    (folder / "test_c.py").write_text("def test_passes(): pass\n")
    assert faults.caught_by(tmp_path, "test_a.py") is None


def test_a_fault_is_planted_in_a_copy(tmp_path):
    fault = next(fault for fault in read_faults() if fault.number == "30")
    faults.plant(fault, tmp_path)
    assert fault.new in (tmp_path / fault.file).read_text()
    assert fault.old in (ROOT / fault.file).read_text()
    assert Path(tmp_path / TESTS).is_dir()
