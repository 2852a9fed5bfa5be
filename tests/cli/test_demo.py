import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpselect import PermuteAndFlip
from dpselect.cli import demo, hospital
from dpselect.cli.hospital import DIAGNOSES, Visits, make_visits, patients_per_diagnosis
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def visits() -> Visits:
    return make_visits()


def rows_of(output: str) -> Iterator[tuple[str, str]]:
    """The epsilon and the cells of each row of the table; a row may take several lines."""
    for row in re.split(r"[├└].*\n", output[output.index("┩") :])[:-1]:
        lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in row.splitlines() if "│" in line]
        yield lines[0][0], " | ".join(" ".join(cells) for cells in zip(*lines, strict=True))


def test_the_demo_shows_five_answers_for_each_epsilon(run: Run, visits: Visits) -> None:
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    rows = dict(rows_of(result.out))
    assert list(rows) == ["1", "0.1", "0.01", "0.002"]
    for epsilon, row in rows.items():
        assert sum(map(int, re.findall(r"(\d) x ", row))) == 5
        assert f"factor {math.exp(float(epsilon)):.3f}" in row
    best = DIAGNOSES[int(patients_per_diagnosis(visits).argmax())]
    assert f"5 x {best.name}" in rows["1"]
    assert rows["1"].split("|")[-1].strip() == "0.0"
    assert float(rows["0.002"].split("|")[-1]) > 10


def test_the_demo_explains_itself(run: Run, visits: Visits) -> None:
    text = " ".join(run("demo").out.split())
    counts = np.sort(patients_per_diagnosis(visits))
    assert f"{counts[-1]:,} patients" in text
    assert "only because these data are made up" in text
    assert "estimate from 2,000 simulated answers" in text
    assert str(PermuteAndFlip("0.1", monotonic=True).guarantee) in text
    assert "5 times its epsilon" in text
    assert "dpselect select --help" in text


def test_the_estimate_is_that_of_permute_and_flip() -> None:
    """Of two candidates the second is heads with p = exp(-1), and then wins half the time."""
    gap, p = 10, math.exp(-1)
    estimate = demo._shortfall(PermuteAndFlip("0.1", monotonic=True), np.array([0, gap]))
    deviation = gap * math.sqrt(p / 2 * (1 - p / 2) / 2000)
    assert estimate == pytest.approx(gap * p / 2, abs=6 * deviation)


def test_the_hospital_is_as_announced(visits: Visits) -> None:
    assert visits.patients.size == visits.diagnoses.size == hospital.VISITS == 200_000
    assert np.unique(visits.patients).size == hospital.PATIENTS == 40_000
    assert len({diagnosis.code for diagnosis in DIAGNOSES}) == len(DIAGNOSES) == 30
    counts = np.sort(patients_per_diagnosis(visits))
    assert 0 < counts[-1] - counts[-2] < 0.05 * counts[-1] < counts[-2] - counts[-3]
    assert counts[0] < 0.05 * counts[-1]


def test_a_patient_counts_once_per_diagnosis(visits: Visits) -> None:
    few = Visits(visits.patients[-5000:], visits.diagnoses[-5000:])
    pairs = set(zip(few.patients.tolist(), few.diagnoses.tolist(), strict=True))
    assert len(pairs) < 5000
    expected = [sum(diagnosis == index for _, diagnosis in pairs) for index in range(len(DIAGNOSES))]
    assert patients_per_diagnosis(few).tolist() == expected


def test_the_sensitivity_is_one_and_monotonic(visits: Visits) -> None:
    """Without its most frequent patient no count falls by more than one, and none rises."""
    counts = patients_per_diagnosis(visits)
    others = visits.patients != np.bincount(visits.patients).argmax()
    fall = counts - patients_per_diagnosis(Visits(visits.patients[others], visits.diagnoses[others]))
    assert np.count_nonzero(~others) > len(DIAGNOSES)
    assert set(fall.tolist()) == {0, 1}
    assert demo._mechanism("0.1") == PermuteAndFlip("0.1", sensitivity=1, monotonic=True)


def test_the_answers_of_the_demo_are_drawn_afresh(visits: Visits) -> None:
    """The chance of twenty equal draws is below 10**-6 at an epsilon that makes all candidates alike."""
    counts = patients_per_diagnosis(visits)
    answers = {demo._answers(PermuteAndFlip("1e-9"), counts) for _ in range(20)}
    assert len(answers) > 1


def test_the_demo_writes_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("demo")
    assert not list(tmp_path.iterdir())
