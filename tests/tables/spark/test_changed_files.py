"""With Spark, too: files whose columns change between opening and asking are refused before anything is charged."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect.errors import InvalidValue
from tests import spark

pytestmark = [*spark.MARKS, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def session():
    return spark.session()


def save_csv(path, names, rows):
    path.write_text("\n".join([",".join(names), *(f"1,{row}" for row in rows)]))


def save_parquet(path, names, rows):
    pq.write_table(pa.table([[1] * len(rows), rows], names), path)


CHANGES = {
    "another type": ("t.parquet", save_parquet, ["who", "x"], ["1"]),
    "another type, and a text that is no number": ("t.parquet", save_parquet, ["who", "x"], ["abc"]),
    "other names": ("t.parquet", save_parquet, ["who", "y"], [1]),
    "another header": ("t.csv", save_csv, ["x", "who"], [1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_files_are_refused_before_a_charge(change, tmp_path):
    name, save, names, rows = CHANGES[change]
    save(tmp_path / name, ["who", "x"], [1, 1])
    ledger = tmp_path / "ledger"
    table = dpselect.open_table(tmp_path / name, engine="spark", person="who", ledger=ledger, budget=1)
    save(tmp_path / name, names, rows)
    with pytest.raises(InvalidValue, match="source has changed since it was opened"):
        table.mode("x", candidates=[1, 2], epsilon="0.25")
    assert dpselect.Ledger(ledger).spent == 0
    save(tmp_path / name, ["who", "x"], [1, 2])
    table.mode("x", candidates=[1, 2], epsilon="0.25")
    assert dpselect.Ledger(ledger).spent > 0
