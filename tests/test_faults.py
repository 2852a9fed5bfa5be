"""The faults that `make faults` plants: each is in the sources as they are, and says where to look first."""

import ast
from pathlib import Path

import pytest

from mutation import faults
from mutation.faults import ROOT, TESTS, read_faults


def test_every_fault_has_a_number_and_a_first_test():
    found = read_faults()
    assert len({fault.number for fault in found}) == len(found) >= 36
    assert all((ROOT / TESTS / fault.first).is_file() for fault in found)


@pytest.mark.parametrize("fault", read_faults(), ids=lambda fault: fault.number)
def test_a_planted_fault_is_still_a_program(fault):
    """A change of the code brings its faults along. A syntax error would be noticed by any test."""
    source = faults.planted(fault)
    assert source != (ROOT / fault.file).read_text()
    if fault.file.endswith(".py"):
        ast.parse(source)


def test_a_fault_that_is_nowhere_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"fault 1: its old text is not in a\.py"):
        faults.planted(faults.Fault("1", "w", "a.py", "x = 2", "x = 3", "test_a.py"))


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
