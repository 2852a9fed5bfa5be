"""What reading a database of one system takes: its columns, and how to run statements in a connection of its own."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dpselect._validate import withheld
from dpselect.errors import InvalidValue
from dpselect.tables.databases import Database, quoted
from dpselect.tables.files import Watch

if TYPE_CHECKING:
    import pyarrow as pa

Run: TypeAlias = "Callable[[str], pa.RecordBatchReader]"  # runs a statement, after the stream before was closed


@dataclass(frozen=True)
class Field:
    """A column of a database.

    Attributes:
        name: its name.
        selected: its expression in the SQL of the database.
        sent: the type in which it arrives.
        value: DuckDB's expression for its value, in which {} is what arrived.
        untyped: whether it arrives as text because the database has no type for it that DuckDB has, too.
    """

    name: str
    selected: str
    sent: "pa.DataType"
    value: str = "{}"
    untyped: bool = False


class Connector(Protocol):
    """How to read a database of one system."""

    fields: Watch[Sequence[Field]]  # as they were when the table was opened

    def session(self) -> AbstractContextManager[Run]:
        """Open a connection of its own, in which all statements see the same tables, and close it at the end."""
        ...

    def found_fields(self, run: Run) -> Sequence[Field]:
        """Return the fields as they are now. No row is read."""
        ...


def selection(database: Database, fields: Sequence[Field]) -> str:
    """The statement for these columns, in the SQL of the database."""
    columns = ", ".join(f"{field.selected} AS {quoted(field.name)}" for field in fields)
    return f"SELECT {columns} FROM {database.relation}"


def unreadable(database: Database) -> InvalidValue:
    """The error for a table or a query that the database refuses."""
    return InvalidValue(
        f"{database.what} cannot be read: check the names, which are compared exactly, the permissions, and that it"
        f" is {database.system.value}'s SQL"
    )


def described(database: Database, run: Run) -> "pa.Schema":
    """The names and types that the driver states for no rows."""
    with run(f"SELECT * FROM {database.relation} LIMIT 0") as stream:
        return stream.schema


def watched_fields(database: Database, connector: Connector, files: Sequence[Path] = ()) -> Watch[Sequence[Field]]:
    """The fields, which are found again if one of these files has changed; without files, each time.

    Errors of the database may quote the address, and are withheld.
    """

    def find() -> Sequence[Field]:
        with connector.session() as run:
            return connector.found_fields(run)

    return withheld(lambda: Watch(files, find), unreadable(database))
