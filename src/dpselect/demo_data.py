"""A synthetic hospital table for the demo: visits of patients, each with a diagnosis, a county and a cost."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpselect._types import Integers

if TYPE_CHECKING:
    import duckdb

VISITS = 200_000
PATIENTS = 40_000
_REPEATED = 0.45  # the share of visits with the patient's main diagnosis
_SEED = 2021


class Diagnosis(NamedTuple):
    """An ICD-10 code, its everyday name, and its relative frequency."""

    code: str
    name: str
    weight: float


DIAGNOSES = (
    Diagnosis("I10", "High blood pressure", 120.0),
    Diagnosis("E11", "Type 2 diabetes", 118.0),
    Diagnosis("M54", "Back pain", 103.0),
    Diagnosis("J06", "Common cold", 96.0),
    Diagnosis("E78", "High cholesterol", 84.0),
    Diagnosis("F41", "Anxiety", 62.0),
    Diagnosis("F32", "Depression", 55.0),
    Diagnosis("N39", "Urinary tract infection", 47.0),
    Diagnosis("J45", "Asthma", 41.0),
    Diagnosis("M17", "Knee arthrosis", 36.0),
    Diagnosis("K21", "Heartburn", 31.0),
    Diagnosis("J44", "COPD", 27.0),
    Diagnosis("I25", "Coronary heart disease", 24.0),
    Diagnosis("E03", "Underactive thyroid", 21.0),
    Diagnosis("G43", "Migraine", 18.0),
    Diagnosis("I48", "Atrial fibrillation", 16.0),
    Diagnosis("L20", "Atopic eczema", 14.0),
    Diagnosis("H10", "Conjunctivitis", 12.0),
    Diagnosis("J18", "Pneumonia", 10.5),
    Diagnosis("I50", "Heart failure", 9.0),
    Diagnosis("N18", "Chronic kidney disease", 8.0),
    Diagnosis("D50", "Iron deficiency", 7.0),
    Diagnosis("K80", "Gallstones", 6.0),
    Diagnosis("M81", "Osteoporosis", 5.0),
    Diagnosis("S52", "Forearm fracture", 4.2),
    Diagnosis("I63", "Stroke", 3.5),
    Diagnosis("G40", "Epilepsy", 2.8),
    Diagnosis("K35", "Appendicitis", 2.1),
    Diagnosis("C50", "Breast cancer", 1.5),
    Diagnosis("G20", "Parkinson's disease", 0.9),
)


COUNTIES = ("Ashford", "Brook", "Calder", "Dunmore", "Elland", "Fenwick")
HIGHEST_COST = 100_000


@dataclass(frozen=True, repr=False)
class Visits:
    """The columns of the table: patient, index of the diagnosis, index of the county, and cost of each visit."""

    patients: Integers
    diagnoses: Integers
    counties: Integers
    costs: Integers

    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name, with codes and names in place of indices."""
        codes = np.array([diagnosis.code for diagnosis in DIAGNOSES], dtype=object)
        return {
            "patient": self.patients,
            "county": np.array(COUNTIES, dtype=object)[self.counties],
            "diagnosis": codes[self.diagnoses],
            "cost": self.costs,
        }

    def relation(self) -> "duckdb.DuckDBPyRelation":
        """Return the visits as a relation of DuckDB."""
        from dpselect.tables.duckdb.source import connect  # noqa: PLC0415 - slow to import, and few commands need it

        connection = connect()
        connection.register("arrays", self.columns())
        connection.execute("CREATE TABLE visits AS SELECT * FROM arrays")
        return connection.table("visits")


def make_visits(seed: int = _SEED) -> Visits:
    """Random visits: every patient comes at least once, some come often, and many return with the same diagnosis."""
    generator = np.random.default_rng(seed)
    weights = np.array([diagnosis.weight for diagnosis in DIAGNOSES])
    frequency = generator.gamma(shape=1.2, size=PATIENTS)
    returning = generator.choice(PATIENTS, VISITS - PATIENTS, p=frequency / frequency.sum())
    patients = np.concatenate([np.arange(PATIENTS), returning])
    main = generator.choice(weights.size, PATIENTS, p=weights / weights.sum())
    other = generator.choice(weights.size, VISITS, p=weights / weights.sum())
    diagnoses = np.where(generator.random(VISITS) < _REPEATED, main[patients], other)
    counties = generator.choice(len(COUNTIES), PATIENTS)[patients]
    costs = np.minimum(generator.lognormal(5.5 + weights.argsort()[diagnoses] / 15, 0.8), HIGHEST_COST)
    return Visits(patients, diagnoses, counties, costs.astype(np.int64))


def patients_per_diagnosis(visits: Visits, county: int | None = None) -> Integers:
    """The number of different patients with each diagnosis. A patient counts at most once for each diagnosis."""
    size = len(DIAGNOSES)
    chosen = slice(None) if county is None else visits.counties == county
    pairs = np.unique(visits.patients[chosen] * size + visits.diagnoses[chosen])
    return np.bincount(pairs % size, minlength=size)


def typical_costs(visits: Visits) -> Integers:
    """The lower and the upper median of each patient's costs: first all lower ones, then all upper ones."""
    # A table lets a patient stand at one of both, chosen at random, so half of each patient stands at each on average.
    order = np.lexsort((visits.costs, visits.patients))
    counts = np.bincount(visits.patients)
    starts = np.cumsum(counts) - counts
    costs: Integers = visits.costs[order][np.concatenate([starts + (counts - 1) // 2, starts + counts // 2])]
    return costs
