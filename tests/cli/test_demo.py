import dataclasses
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpselect import PermuteAndFlip, analysis, demo_data
from dpselect.cli import demo
from dpselect.demo_data import COUNTIES, DIAGNOSES, Visits, make_visits, patients_per_diagnosis, typical_costs
from tests.cli.conftest import MAIN, Run, process


@pytest.fixture(scope="module")
def visits() -> Visits:
    return make_visits()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints, in a folder where it writes no file. A pipe gets no progress."""
    folder = tmp_path_factory.mktemp("demo")
    done = process(program=f"import os, sys; os.chdir({str(folder)!r}); sys.argv = ['dpselect', 'demo']; {MAIN}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert not list(folder.iterdir())
    return done.stdout.decode()


def rows_of(output: str) -> Iterator[tuple[str, str]]:
    """The epsilon and the cells of each row of the table; a row may take several lines."""
    for row in re.split(r"[├└].*\n", output[output.index("┩") :])[:-1]:
        lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in row.splitlines() if "│" in line]
        yield lines[0][0], " | ".join(" ".join(cells) for cells in zip(*lines, strict=True))


def test_the_demo_shows_five_answers_for_each_epsilon(shown: str, visits: Visits) -> None:
    rows = dict(rows_of(shown[: shown.index("Guarantee")]))
    assert list(rows) == ["1", "0.1", "0.01", "0.002"]
    for epsilon, row in rows.items():
        assert sum(map(int, re.findall(r"(\d) x ", row))) == 5
        assert f"factor {math.exp(float(epsilon)):.3f}" in row
    best = DIAGNOSES[int(patients_per_diagnosis(visits).argmax())]
    assert f"5 x {best.name}" in rows["1"]
    expected = analysis.expected_error(PermuteAndFlip("0.002", monotonic=True), patients_per_diagnosis(visits))
    assert f"on average {expected:,.1f} patients fewer" in rows["0.002"]


def test_the_demo_explains_itself(shown: str, visits: Visits) -> None:
    [mode] = [line for line in shown.splitlines() if "dpselect mode visits.csv" in line]
    assert mode.endswith("--epsilon 0.1")  # one line, though longer than the terminal is wide: it can be copied
    text = " ".join(shown.split())
    counts = np.sort(patients_per_diagnosis(visits))
    assert f"{counts[-1]:,} patients" in text
    assert "only because these data are made up" in text
    assert str(PermuteAndFlip("0.1", monotonic=True).guarantee) in text
    assert "5 times the epsilon" in text
    assert "dpselect select --help" in text
    assert f"{np.sort(typical_costs(visits))[39_999]:,} (true median)" in text
    assert float(re.findall(r"differs from half of 40,000 by ([0-9,]+)", text)[0].replace(",", "")) < 1_000
    assert all(county in text for county in COUNTIES)


def test_typical_costs_are_both_medians(visits: Visits) -> None:
    lower, upper = np.split(typical_costs(visits), 2)
    for patient in (0, 1, 39_999):
        own = sorted(visits.costs[visits.patients == patient].tolist())
        assert (lower[patient], upper[patient]) == (own[(len(own) - 1) // 2], own[len(own) // 2])


def test_the_hospital_is_as_announced(visits: Visits) -> None:
    assert visits.patients.size == visits.diagnoses.size == demo_data.VISITS == 200_000
    assert np.unique(visits.patients).size == demo_data.PATIENTS == 40_000
    assert len({diagnosis.code for diagnosis in DIAGNOSES}) == len(DIAGNOSES) == 30
    counts = np.sort(patients_per_diagnosis(visits))
    assert 0 < counts[-1] - counts[-2] < 0.05 * counts[-1] < counts[-2] - counts[-3]
    assert counts[0] < 0.05 * counts[-1]


def test_a_patient_counts_once_per_diagnosis(visits: Visits) -> None:
    few = Visits(*(part[-5000:] for part in dataclasses.astuple(visits)))
    pairs = set(zip(few.patients.tolist(), few.diagnoses.tolist(), strict=True))
    assert len(pairs) < 5000
    expected = [sum(diagnosis == index for _, diagnosis in pairs) for index in range(len(DIAGNOSES))]
    assert patients_per_diagnosis(few).tolist() == expected


def test_the_sensitivity_is_one_and_monotonic(visits: Visits) -> None:
    """Without its most frequent patient no count falls by more than one, and none rises."""
    counts = patients_per_diagnosis(visits)
    others = visits.patients != np.bincount(visits.patients).argmax()
    fall = counts - patients_per_diagnosis(Visits(*(part[others] for part in dataclasses.astuple(visits))))
    assert np.count_nonzero(~others) > len(DIAGNOSES)
    assert set(fall.tolist()) == {0, 1}


def test_the_answers_of_the_demo_are_drawn_afresh(visits: Visits) -> None:
    """At such an epsilon all 30 diagnoses are alike: twenty equal draws have a chance of 30**-19."""
    table = demo._open(visits)
    answers = [demo._ask_modes(table, "1e-9") for _ in range(4)]
    assert len(set().union(*answers)) > 1


def test_the_table_can_be_saved_and_asked(run: Run, visits: Visits, tmp_path: Path) -> None:
    path = str(tmp_path / "visits.csv")
    saved = run("demo", "--save", path)
    assert (saved.code, saved.err) == (0, "")
    assert "200,000 visits written" in saved.out
    codes = ",".join(diagnosis.code for diagnosis in DIAGNOSES)
    asked = run(*f"mode {path} --column diagnosis --candidates {codes} --person patient --epsilon 5".split())
    assert asked.out.splitlines()[0] == DIAGNOSES[int(patients_per_diagnosis(visits).argmax())].code
    assert run("demo", "--save", tmp_path / "visits.PARQUET").code == 0
    saved_table, expected = pq.read_table(tmp_path / "visits.PARQUET"), pa.table(visits.columns())
    assert saved_table.schema.types == expected.schema.types
    assert saved_table.to_pydict() == expected.to_pydict()
    refused = run("demo", "--save", str(tmp_path / "no" / "visits.csv"))
    assert refused.code == 2
    assert "cannot be written" in refused.err


def test_commands_to_try_are_named_as_the_shell_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/dpselect", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo._command() == ".venv/bin/dpselect"
    monkeypatch.setattr(sys, "argv", ["dpselect/__main__.py", "demo"])
    assert demo._command() == "dpselect"
    monkeypatch.setattr(sys, "argv", [".venv/bin/dpselect", "demo"])
    (tmp_path / "dpselect").touch(0o755)
    assert demo._command() == "dpselect"
