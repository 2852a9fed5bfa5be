"""What reading a database of one system takes: its columns, and how to run a statement in a connection of its own."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dpselect._validate import withheld
from dpselect.errors import InvalidValue
from dpselect.tables.databases import Database, quoted

if TYPE_CHECKING:
    import pyarrow as pa


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

    fields: Sequence[Field]

    def stream(self, statement: str) -> "AbstractContextManager[pa.RecordBatchReader]":
        """Run a statement in a connection of its own, which is closed at the end."""
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


def described(database: Database, connector: Connector) -> "pa.Schema":
    """The names and types that the driver states for no rows. Errors may quote the address."""

    def describe() -> "pa.Schema":
        with connector.stream(f"SELECT * FROM {database.relation} LIMIT 0") as stream:
            return stream.schema

    return withheld(describe, unreadable(database))
