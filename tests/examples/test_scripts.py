"""The scripts of `examples/`: they run, and what they say is so."""

import re
import sys

import numpy as np
import pytest

import dpselect
from dpselect.analysis import worst_case_error
from dpselect.research.figures import ratio
from tests.examples.test_audits import EXAMPLES, example


@pytest.mark.parametrize("name", ["most_common_item", "one_figure"])
def test_scripts_run(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    example(name).main()
    assert len(capsys.readouterr().out.splitlines()) >= 5


def test_only_the_public_interface_is_used():
    """Examples use public names, or names that the reference documents: neither moves."""
    reference = "".join(page.read_text(encoding="utf-8") for page in (EXAMPLES.parent / "docs/reference").glob("*.md"))
    documented = set(re.findall(r"^::: (dpselect\.\S+)$", reference, re.MULTILINE))
    for path in EXAMPLES.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("import dpselect", "from dpselect")):
                _, home, *names = re.findall(r"[\w.]+", line)
                room = home.removeprefix("dpselect").removeprefix(".")
                public = not room or room in dpselect.__all__
                assert public or {f"{home}.{name}" for name in names[1:]} <= documented, (path.name, line)


def test_the_most_common_item(tmp_path):
    """Bread leads by hundreds of customers, so the answer is sure; the ledger has what it cost."""
    script = example("most_common_item")
    answer = script.release(tmp_path)
    assert answer.value == "bread"
    assert str(answer.epsilon) == "1/20"
    assert dpselect.Ledger(tmp_path / "purchases.ledger").spent == answer.epsilon
    smaller = dpselect.PermuteAndFlip("0.02", monotonic=True)
    assert worst_case_error(smaller, len(script.CATALOGUE)).error > script.MOST_SHORT


def test_the_figure_is_that_of_the_paper(tmp_path, monkeypatch):
    script = example("one_figure")
    curves = script.curves()
    for n, line in curves.items():
        expected = [ratio(float(p), n) for p in script.PROBABILITIES]
        np.testing.assert_allclose(line, expected, rtol=1e-9)
        assert max(line) < 2
    monkeypatch.setattr(sys, "argv", ["one_figure.py", str(tmp_path / "figure.png")])
    script.main()
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_mwem(capsys):
    """Permute-and-flip's selections are better in every round, by less than two; both histograms learn."""
    script = example("mwem")
    found = script.study(40)
    assert found["gains"].shape == (40, script.ROUNDS)
    assert (found["gains"] >= 1).all()
    assert (found["gains"] < 2).all()
    assert found["gains"].mean() > 1.2
    problem = script.make_problem()
    flat = np.full(script.BINS, script.PEOPLE / script.BINS)
    unlearnt = np.abs(problem.queries @ (problem.histogram - flat)).max()
    for kind in script.KINDS:
        assert found[kind.__name__].mean() < unlearnt / 4
    script.main(repeats=3)
    assert "permute-and-flip gains" in capsys.readouterr().out


def test_mwem_has_its_sensitivity():
    """One exchanged person changes no miss by more than one."""
    script = example("mwem")
    problem, generator = script.make_problem(), np.random.default_rng(3)
    flat = np.full(script.BINS, script.PEOPLE / script.BINS)

    def misses(histogram):
        return np.abs(problem.queries @ (histogram - flat))

    largest = 0.0
    for _ in range(200):
        moved = problem.histogram.copy()
        gone, come = generator.choice(np.flatnonzero(moved)), generator.integers(script.BINS)
        moved[gone] -= 1
        moved[come] += 1
        largest = max(largest, float(np.abs(misses(moved) - misses(problem.histogram)).max()))
    assert largest == pytest.approx(1, abs=1e-9)
