"""Where Spark finds the rows of a table: its own DataFrames, Parquet and CSV files, or whatever DuckDB can read here.

Columns are described in DuckDB's types, so that schemas, checks and errors are those of the other engine.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as spark

from dpselect.errors import EngineFailure, InvalidType, InvalidValue, withheld
from dpselect.tables import duckdb_source, sql
from dpselect.tables.files import Format, files_of
from dpselect.tables.kinds import Column, Kind
from dpselect.tables.spark_lines import LineReader, ranges_of
from dpselect.tables.spark_session import session

_BINARY = "UTF8_BINARY"
# No row can make this fail: one microsecond times a number of 64 bits, added to zero, has 64 bits.
_IN_UTC = "TIMESTAMP_NTZ '1970-01-01' + make_dt_interval(0, 0, 0, 0.000001) * unix_micros({column})"
_GLOB = str.maketrans({mark: "\\" + mark for mark in "\\*?[]{}"})


class Rows(Protocol):
    """The rows of a table."""

    spark: SparkSession
    columns: dict[str, Column]

    def select(self, names: Sequence[str]) -> DataFrame:
        """Return these columns, named c0, c1, ...: no name of the user's meets one of ours."""
        ...


class FrameRows:
    """A Spark DataFrame."""

    def __init__(self, frame: DataFrame, columns: Mapping[str, Column] | None = None) -> None:
        self.spark, self._frame = frame.sparkSession, frame
        described = described_columns(frame.schema)
        if columns is not None:
            described = {name: _agreed(column, described.get(name)) for name, column in columns.items()}
        self.columns, self._places = described, {name: i for i, name in enumerate(frame.columns)}

    def select(self, names: Sequence[str]) -> DataFrame:
        """Return these columns, renamed."""
        numbered = self._frame.toDF(*(f"p{i}" for i in range(len(self._frame.columns))))
        return numbered.select(*(self._plain(self._places[name]).alias(f"c{i}") for i, name in enumerate(names)))

    def _plain(self, place: int) -> Expression:
        """The column at this place; text is compared byte by byte, whatever the order of its own.

        Moments that are described without a time zone are those of UTC, whatever the time zone of the session.
        """
        field = self._frame.schema.fields[place]
        if isinstance(field.dataType, spark.TimestampType) and self.columns[field.name].kind is Kind.TIMESTAMP:
            return F.expr(_IN_UTC.format(column=f"p{place}"))
        column = F.col(f"p{place}")
        return F.collate(column, _BINARY) if getattr(field.dataType, "collation", _BINARY) != _BINARY else column


class LineRows:
    """CSV files, which every worker must be able to open under the same path."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.spark = session()
        self._ranges = tuple(ranges_of(paths))
        self._delimiter, names = duckdb_source.common_header(list(paths))
        self._names = tuple(names)
        self.columns = {name: sql.column(name, "VARCHAR", untyped=True) for name in names}

    def select(self, names: Sequence[str]) -> DataFrame:
        """Return these columns, renamed; a task for each range of bytes."""
        reader = LineReader(self._ranges, self._delimiter, self._names, tuple(names))
        numbers = self.spark.range(0, len(self._ranges), 1, len(self._ranges))
        return numbers.mapInArrow(reader, ", ".join(f"c{i} string" for i in range(len(names))))


class LocalRows:
    """A data frame, an Arrow table or a DuckDB relation of this process, which is sent to Spark for each question."""

    def __init__(self, source: Any) -> None:
        self._source, self._connection = duckdb_source.source_of(source), duckdb_source.connect()
        self.spark = session()
        self.columns = dict(duckdb_source.schema(self._source, self._connection))

    def select(self, names: Sequence[str]) -> DataFrame:
        """Return these columns, renamed, in types that Spark has."""
        columns = [self.columns[name] for name in names]
        selected = ", ".join(f"{_sent(column)} AS c{i}" for i, column in enumerate(columns))
        connection = self._connection.cursor()
        [source] = self._source.readings(list(dict.fromkeys(names)))
        source.attach(connection)
        query = f"SELECT {selected} FROM ({source.query})"
        rows = connection.sql(query, params=source.parameters).to_arrow_table()
        fields = [spark.StructField(f"c{i}", _spark_type(column)) for i, column in enumerate(columns)]
        return self.spark.createDataFrame(rows, spark.StructType(fields))


def rows_of(source: Any) -> Rows:
    """The rows of whatever the user gave."""
    if isinstance(source, DataFrame):
        if source.isStreaming:
            raise InvalidType("source is a stream, which has no end to count to: write it to a table first")
        return FrameRows(source)
    if not isinstance(source, (str, Path)):
        return LocalRows(source)
    format_, paths = files_of(str(source))
    return LineRows(paths) if format_ is Format.CSV else _parquet_rows(str(source), paths)


def _parquet_rows(source: str, paths: Sequence[Path]) -> FrameRows:
    """Parquet files, described by DuckDB, which checks that all have the same columns, and read by Spark."""
    columns = duckdb_source.schema(duckdb_source.source_of(source), duckdb_source.connect())
    reader = session().read.option("mergeSchema", "false")
    for old in ("datetimeRebaseMode", "int96RebaseMode"):  # the session may ask for an error at a row before 1900
        reader = reader.option(old, "CORRECTED")
    if Path(source).is_dir():  # folders such as year=2024 are columns
        reader = reader.option("basePath", str(Path(source).absolute()).translate(_GLOB))
    files = [f"file://{path.absolute()}".translate(_GLOB) for path in paths]
    failure = EngineFailure("Spark cannot open these Parquet files: check that it can reach them, and their types")
    return withheld(lambda: FrameRows(reader.parquet(*files), columns), failure, PySparkException)


def described_columns(schema: spark.StructType) -> dict[str, Column]:
    """The public columns of a Spark schema."""
    names = [field.name.lower() for field in schema.fields]
    if len(set(names)) != len(names):
        raise InvalidValue("source has two columns of the same name (upper and lower case are the same): rename one")
    return {field.name: described_column(field) for field in schema.fields}


def described_column(field: spark.StructField) -> Column:
    """A column of Spark as DuckDB would describe it; about other types no question can be asked."""
    type_ = field.dataType
    if isinstance(type_, spark.DecimalType):
        return sql.column(field.name, f"DECIMAL({type_.precision},{type_.scale})")
    name = _NAMES.get(type(type_))
    return _other(field.name, type_.typeName()) if name is None else sql.column(field.name, name)


def _other(name: str, type_: str) -> Column:
    return Column(name, type_, Kind.OTHER)


_NAMES: dict[type[spark.DataType], str] = {
    spark.BooleanType: "BOOLEAN",
    spark.ByteType: "TINYINT",
    spark.ShortType: "SMALLINT",
    spark.IntegerType: "INTEGER",
    spark.LongType: "BIGINT",
    spark.FloatType: "FLOAT",
    spark.DoubleType: "DOUBLE",
    spark.StringType: "VARCHAR",
    spark.DateType: "DATE",
    spark.TimestampType: "TIMESTAMP WITH TIME ZONE",
    spark.TimestampNTZType: "TIMESTAMP",
}


def _agreed(column: Column, read: Column | None) -> Column:
    """What DuckDB describes, if Spark reads values of this kind.

    Spark has decimals instead of unsigned integers. Timestamps of 96 bits, which Spark writes unless it is told not to,
    say nothing of a time zone: DuckDB reads the moment in UTC without one, and Spark as a moment.
    """
    others = {Kind.INTEGER: Kind.DECIMAL, Kind.TIMESTAMP: Kind.ZONED}
    if read is None or read.kind not in (column.kind, others.get(column.kind)):
        return _other(column.name, column.type)
    return column


def _sent(column: Column) -> str:
    """The expression of DuckDB's SQL for the values of a column in a type that Spark has."""
    x = sql.identifier(column.name)
    if column.kind is Kind.OTHER:
        raise InvalidType(f"column {column.name!r} has the type {column.type}, which Spark is not sent")
    targets = {Kind.TEXT: "VARCHAR", Kind.TIMESTAMP: "TIMESTAMP", Kind.ZONED: "TIMESTAMPTZ"}
    if column.kind is Kind.INTEGER:
        return f"TRY_CAST({x} AS {'DECIMAL(38,0)' if sql.is_wide(column) else 'BIGINT'})"
    return f"TRY_CAST({x} AS {targets[column.kind]})" if column.kind in targets else x


def _spark_type(column: Column) -> spark.DataType:
    """The type of `_sent` in Spark."""
    if column.kind is Kind.DECIMAL or (column.kind is Kind.INTEGER and sql.is_wide(column)):
        precision = int(column.type.partition("(")[2].partition(",")[0]) if column.kind is Kind.DECIMAL else 38
        return spark.DecimalType(precision, column.digits)
    if column.kind is Kind.FLOAT:
        return spark.FloatType() if column.type == "FLOAT" else spark.DoubleType()
    return _TYPES[column.kind]


_TYPES: dict[Kind, spark.DataType] = {
    Kind.BOOLEAN: spark.BooleanType(),
    Kind.INTEGER: spark.LongType(),
    Kind.TEXT: spark.StringType(),
    Kind.DATE: spark.DateType(),
    Kind.TIMESTAMP: spark.TimestampNTZType(),
    Kind.ZONED: spark.TimestampType(),
}
