"""`open_table`: from whatever the user has to a table that can be asked."""

from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidValue
from dpselect.mechanisms.record import Number
from dpselect.tables.engine import Engine, Individuals
from dpselect.tables.sensitivity import Neighbours
from dpselect.tables.table import Table, known_column

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

_ENGINES = ("duckdb", "spark")


def open_table(  # noqa: PLR0913 - the public contract
    source: Any,
    *,
    person: str | None = None,
    neighbours: str = "add-remove",
    ledger: Any = None,
    budget: Number | None = None,
    engine: str = "duckdb",
) -> Table:
    """Open a table of private rows.

    Args:
        source: a CSV or Parquet file (also a folder or a pattern such as "visits-*.parquet"), a DuckDB relation, a
            pandas or polars DataFrame, or an Arrow table; with engine="spark" also a Spark DataFrame. Its schema
            counts as public. State the types when you make a frame (dtype=, schema=): types that were guessed from the
            rows reveal something about them.
        person: the column that names the individual. All rows of a person together are protected. Without it, each row
            is an individual of its own. Rows without a person are left out.
        neighbours: "add-remove" protects whether somebody is in the table; "replace" protects what their data are, and
            takes the number of individuals as known.
        ledger: a `Ledger` or the path of one, which is charged before every answer. Without it, adding up what was
            spent is your business.
        budget: the whole epsilon that the ledger allows, fixed when it is created.
        engine: what counts: "duckdb" on this machine, or "spark" on a cluster. With Spark, the candidates may be a
            Spark DataFrame of one column, which stays there.

    >>> import pyarrow
    >>> visits = pyarrow.table({"patient": [1, 1, 2, 3], "diagnosis": ["I10", "I10", "I10", "E11"]})
    >>> table = open_table(visits, person="patient")
    >>> table.mode("diagnosis", candidates=["I10", "E11", "J45"], epsilon=50).value
    'I10'
    """
    try:
        relation = Neighbours(neighbours)
    except ValueError:
        raise InvalidValue(f"neighbours must be 'add-remove' or 'replace', got {str(neighbours)[:40]!r}") from None
    opened = _engine(engine, source)
    who = Individuals(None if person is None else known_column(opened, person, "person"))
    return Table(opened, who, relation, _ledger(ledger, budget))


def _ledger(ledger: Any, budget: Number | None) -> "Ledger | None":
    if ledger is None:
        if budget is not None:
            raise InvalidValue("budget belongs to a ledger: name its file with ledger=")
        return None
    from dpselect.ledger import Ledger  # noqa: PLC0415 - imported when used

    if isinstance(ledger, Ledger):
        return ledger if budget is None else Ledger(ledger.path, budget)
    return Ledger(ledger, budget)


def _engine(name: str, source: Any) -> Engine:
    if name not in _ENGINES:
        raise InvalidValue(f"engine must be one of {', '.join(_ENGINES)}, got {str(name)[:40]!r}")
    if name == "spark":
        from dpselect.tables.spark_session import check_pyspark  # noqa: PLC0415 - engines are imported when used

        check_pyspark()
        from dpselect.tables.spark_engine import SparkEngine  # noqa: PLC0415

        return SparkEngine(source)
    from dpselect.tables.duckdb_engine import DuckDBEngine  # noqa: PLC0415

    return DuckDBEngine(source)
