"""The worked examples: what the audit finds in our tables, and in OpenDP and diffprivlib, where they are installed."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from dpselect.audit import audit, hard_pairs

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_opendp():
    pytest.importorskip("opendp", reason="OpenDP is not installed: pip install '.[peers]'")
    choose = example("audit_opendp").choose
    assert choose(np.array([0.0, 1e6])) == choose(np.array([0, 10**6])) == 1
    found = audit(choose, 1, runs=400, false_alarm=1e-9)
    assert not found.violates
    assert not sum(finding.failures for finding in found.findings)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", ["permute_and_flip", "exponential"])
def test_diffprivlib(name):
    """Differences of integers wrap around; on floats nothing is found."""
    pytest.importorskip("diffprivlib", reason="diffprivlib is not installed: pip install '.[peers]'")
    choose = getattr(example("audit_diffprivlib"), name)
    assert choose(np.array([0.0, 1e6])) == 1
    floats = [pair for pair in hard_pairs(1) if pair.scores.dtype.kind == "f"]
    assert not audit(choose, 1, pairs=floats, runs=400, false_alarm=1e-9).violates
    wraps = [pair for pair in hard_pairs(1) if pair.name == "a difference of 2**63"]
    assert audit(choose, 1, pairs=wraps, runs=2_000, false_alarm=1e-9).violates


@pytest.mark.slow
@pytest.mark.parametrize("name", ["top_two", "cost_of_nine_in_ten", "mode_of_each_ward"])
def test_tables(name, monkeypatch):
    """The power check: the same question, asked with an epsilon of 50, is caught claiming a twentieth."""
    script = example("audit_tables")
    question = getattr(script, name)
    found = audit(question, script.EPSILON, inputs=script.NEIGHBOURS, runs=100, false_alarm=1e-9)
    assert not found.violates
    assert not found.worst.failures
    monkeypatch.setattr(script, "EPSILON", "50")
    assert audit(question, "1/20", inputs=script.NEIGHBOURS, runs=300).violates


@pytest.mark.slow
def test_the_script_of_tables_runs(capsys):
    example("audit_tables").main(runs=100)
    printed = capsys.readouterr().out
    assert printed.count("no violation found in 200 runs") == 3
    assert printed.count("follows from the event: ") == 3
