"""The Spark session, and sources of rows: DataFrames, Parquet and CSV files, and anything that DuckDB can read here.

Columns are described in DuckDB's types, so schemas, checks and errors are those of the other engine.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as spark

from dpselect._validate import withheld
from dpselect._version import __version__
from dpselect.errors import EngineFailure, InvalidType, InvalidValue, MissingExtra
from dpselect.tables.duckdb.expressions import derived
from dpselect.tables.duckdb.files import STANDARD_INPUT, CSVFiles, ParquetFiles, source_of
from dpselect.tables.duckdb.source import Query, Source, connect, of_source, of_sums, read, schema
from dpselect.tables.duckdb.values import column_of, identifier, is_wide
from dpselect.tables.files import Workbook, check_once
from dpselect.tables.kinds import PLAIN, Column, Kind
from dpselect.tables.spark.workers import Deriver, LineReader, ranges_of
from dpselect.tables.view import AS_IT_IS, UTF8, View

_NO_JAVA = (
    "engine 'spark' could not start Spark, which needs Java 17 or newer: install it (Debian: apt install"
    " openjdk-17-jre-headless) or point JAVA_HOME to it; or create a session for your cluster first"
)
_REMEDY = (
    "before the session starts, point PYSPARK_PYTHON to a Python that has dpselect, pyspark, pandas and pyarrow"
    " (on this machine: PYSPARK_PYTHON={python}), or ship a packed environment to a cluster (docs/scale.md, Workers)"
)
_PROBES = 4
_checked: set[str] = set()


def session() -> SparkSession:
    """The active session, or a new one, which is local unless the environment names a cluster."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # The workers of a local session run this Python, which has dpselect.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    shown = str(sys.stderr.isatty()).lower()
    try:
        return SparkSession.builder.config("spark.ui.showConsoleProgress", shown).getOrCreate()
    except (PySparkException, OSError):
        raise MissingExtra(_NO_JAVA) from None


def check_workers(session: SparkSession) -> None:
    """Raise an error if the workers' Python cannot run this dpselect. Found later, it would cost a charge."""

    # An inner function is sent as code; a function of this module would be sent as a name in dpselect.
    def version(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - in the worker

        try:
            import dpselect.tables.spark.workers  # noqa: PLC0415 - needs pyspark, an extra

            found = dpselect.__version__  # the worker's, not ours
        except ImportError:
            found = ""
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"version": pa.array([found] * batch.num_rows, pa.string())})

    # A Connect session has a name of its own; others belong to their application.
    own = getattr(session, "session_id", None)
    name = str(session.sparkContext.applicationId if own is None else own)
    if name in _checked:
        return
    needed = f"engine 'spark' needs dpselect {__version__} in the Python of Spark's workers"
    remedy = _REMEDY.format(python=sys.executable)
    # One job without data runs per session. Because no data are read, Spark's own message may be shown.
    try:
        found = session.range(0, _PROBES, 1, _PROBES).mapInArrow(version, "version string").toArrow()
    except PythonException as error:
        raise MissingExtra(f"{needed}, which cannot run it: {remedy}") from error
    except Exception as error:
        raise EngineFailure(f"{needed}, but a first job without data failed there: {remedy}") from error
    for other in set(found["version"].to_pylist()) - {__version__}:
        raise MissingExtra(f"{needed}, which has {other or 'none that can be imported'}: {remedy}")
    _checked.add(name)


_BINARY = "UTF8_BINARY"
_NANOSECONDS = ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")
# No row can make this fail: one microsecond times a 64-bit number, added to zero, fits 64 bits.
_IN_UTC = "TIMESTAMP_NTZ '1970-01-01' + make_dt_interval(0, 0, 0, 0.000001) * unix_micros({column})"
_GLOB = str.maketrans({mark: "\\" + mark for mark in "\\*?[]{}"})


class Rows:
    """The rows of a table."""

    spark: SparkSession
    columns: dict[str, Column]

    def __init__(self, source: Source | None) -> None:
        self._source = source  # none for a DataFrame

    def check(self) -> None:
        """Refuse the rows if their public columns have changed. The types of a DataFrame are its own."""
        if self._source is not None:
            self._source.check()

    def select(self, names: Sequence[str], *, people: bool = False) -> DataFrame:
        """Return these columns, renamed to c0, c1, ..., so that no name clashes with one of ours."""
        # With `people`, the last column identifies the person, and no two of its values may become equal.
        raise NotImplementedError

    def content(self, columns: Sequence[Column]) -> str:
        """Return a digest of the rows of these columns, or of their files."""
        if self._source is not None:
            return of_source(self._source, connect(), columns)
        raise NotImplementedError


class FrameRows(Rows):
    """A Spark DataFrame, or Parquet files as Spark reads them."""

    def __init__(
        self, frame: DataFrame, columns: Mapping[str, Column] | None = None, source: ParquetFiles | None = None
    ) -> None:
        super().__init__(source)
        self.spark, self._frame = frame.sparkSession, frame
        described = described_columns(frame.schema)
        if columns is not None:
            described = {name: _agreed(column, described.get(name)) for name, column in columns.items()}
        self.columns, self._places = described, {name: i for i, name in enumerate(frame.columns)}

    def select(self, names: Sequence[str], *, people: bool = False) -> DataFrame:  # noqa: ARG002 - already exact
        if self._source is not None:
            check_once(self._source.files)
        numbered = self._frame.toDF(*(f"p{i}" for i in range(len(self._frame.columns))))
        return numbered.select(*(self._plain(self._places[name]).alias(f"c{i}") for i, name in enumerate(names)))

    def content(self, columns: Sequence[Column]) -> str:
        if self._source is not None:
            return super().content(columns)
        given = self.select([column.name for column in columns])
        fields = F.concat(*(_field(F.col(name), type_) for name, type_ in given.dtypes))
        digests = given.select(F.md5(fields.cast("binary")).alias("digest"))
        # 15 hexadecimal digits are a 60-bit number, and a sum of decimals has ten more digits.
        parts = (F.conv(F.substring("digest", first, 15), 16, 10).cast("decimal(20,0)") for first in (1, 16))
        return of_sums(columns, digests.agg(F.count(F.lit(1)), *map(F.sum, parts)).collect())

    def _plain(self, place: int) -> Expression:
        # Text is compared byte by byte, regardless of its collation. Timestamps without a time zone are in UTC,
        # regardless of the time zone of the session.
        field = self._frame.schema.fields[place]
        if isinstance(field.dataType, spark.TimestampType) and self.columns[field.name].kind is Kind.TIMESTAMP:
            return F.expr(_IN_UTC.format(column=f"p{place}"))
        column = F.col(f"p{place}")
        return F.collate(column, _BINARY) if getattr(field.dataType, "collation", _BINARY) != _BINARY else column


class LineRows(Rows):
    """CSV files, which every worker must be able to open under the same path."""

    def __init__(self, source: CSVFiles) -> None:
        super().__init__(source)
        self.spark, self.columns = session(), dict(schema(source, connect()))
        ranges = tuple(ranges_of(source.files))
        encoding = "" if source.encoding in UTF8 else source.encoding
        self._reader = LineReader(ranges, source.delimiter, tuple(source.names), (), source.folders, encoding)

    def select(self, names: Sequence[str], *, people: bool = False) -> DataFrame:  # noqa: ARG002 - already exact
        self.check()
        number = len(self._reader.ranges)
        tasks = self.spark.range(0, number, 1, number)  # one for each range of bytes
        reader = replace(self._reader, wanted=tuple(names))
        return tasks.mapInArrow(reader, ", ".join(f"c{i} string" for i in range(len(names))))


class LocalRows(Rows):
    """Rows that DuckDB reads in this process (a data frame, an Arrow table, a relation) and sends to Spark."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._local, self._connection, self.spark = source, connect(), session()
        self.columns = dict(schema(source, self._connection))

    def select(self, names: Sequence[str], *, people: bool = False) -> DataFrame:
        # Spark has no nanoseconds: for people they are text.
        columns = [self.columns[name] for name in names]
        if people and columns[-1].type in _NANOSECONDS:
            columns[-1] = column_of(columns[-1].name, "VARCHAR")
        sent = [_sent(column) for column in columns]
        selected = ", ".join(f"{expression} AS c{i}" for i, (expression, _) in enumerate(sent))
        cursor = self._connection.cursor()

        def selected_rows(rows: Query) -> pa.Table:
            return cursor.sql(f"SELECT {selected} FROM ({rows.text})", params=dict(rows.parameters)).to_arrow_table()

        rows = read(self._local, cursor, list(dict.fromkeys(names)), selected_rows)
        return self.spark.createDataFrame(rows, ", ".join(f"c{i} {type_}" for i, (_, type_) in enumerate(sent)))


# The types of derived columns, of DuckDB and of Spark.
_DERIVED = {
    Kind.BOOLEAN: ("BOOLEAN", "boolean"),
    Kind.INTEGER: ("BIGINT", "bigint"),
    Kind.FLOAT: ("DOUBLE", "double"),
    Kind.TEXT: ("VARCHAR", "string"),
    Kind.DATE: ("DATE", "date"),
    Kind.TIMESTAMP: ("TIMESTAMP", "timestamp_ntz"),
}


def _typed(name: str, column: Column) -> str:
    # As `queries.typed`, under the name that expressions use.
    own = f"TRY_CAST({name} AS {column.type})" if column.kind is Kind.INTEGER else name
    return f"{own} AS {identifier(column.name)}"


class MappedRows(Rows):
    """Other rows, with derived columns and a filter, which the workers' DuckDB evaluates."""

    def __init__(self, rows: Rows, view: View) -> None:
        self._rows, self.spark = rows, rows.spark
        self._made = made = derived(rows.columns, view)
        style = next((column.style for column in rows.columns.values() if column.untyped), PLAIN)
        texts = {name: replace(column_of(name, "VARCHAR", name in made.untyped), style=style) for name in made.kinds}
        own = {
            name: texts[name] if kind is Kind.TEXT else column_of(name, _DERIVED[kind][0])
            for name, kind in made.kinds.items()
        }
        self.columns = {**rows.columns, **own}

    def check(self) -> None:
        self._rows.check()

    def select(self, names: Sequence[str], *, people: bool = False) -> DataFrame:
        # What expressions read comes first, then what passes through, with the person last, if they are no expression.
        passing = [name for name in names if name not in self._made.selected]
        wanted = list(dict.fromkeys(name for name in names if name in self._made.selected))
        read = self._made.needed(wanted)
        given = self._rows.select([*read, *passing], people=people and names[-1] in passing)
        types = dict(given.dtypes)
        texts = [name for name, type_ in types.items() if type_ == "string"]
        sent = given.select(*(F.col(n).cast("binary").alias(n) if n in texts else F.col(n) for n in given.columns))
        typed = {f"c{i}": _typed(f"c{i}", self._rows.columns[name]) for i, name in enumerate(read)}
        numbers = {name: f"d{i}" for i, name in enumerate(wanted)}
        deriver = Deriver(typed, {numbers[name]: self._made.selected[name] for name in wanted}, self._made.condition)
        schema = [f"{name} {type_}" for name, type_ in sent.dtypes]
        schema += [f"{numbers[name]} {_DERIVED[self._made.kinds[name]][1]}" for name in wanted]
        found = sent.mapInArrow(deriver, ", ".join(schema))
        places = iter(range(len(read), len(given.columns)))
        own = [numbers[name] if name in numbers else f"c{next(places)}" for name in names]
        return found.select(
            *(F.col(n).cast(types.get(n, dict(found.dtypes)[n])).alias(f"c{i}") for i, n in enumerate(own))
        )

    def content(self, columns: Sequence[Column]) -> str:
        names = [column.name for column in columns]
        return self._rows.content([self._rows.columns[name] for name in self._made.needed(names)])


def rows_of(source: Any, view: View = AS_IT_IS) -> Rows:
    """The rows of the object that the user gave."""
    rows = _rows_of(source, view)
    return MappedRows(rows, view) if view.has_expressions else rows


def _rows_of(source: Any, view: View) -> Rows:
    if isinstance(source, DataFrame):
        if source.isStreaming:
            raise InvalidType("source is a stream, which never ends: write it to a table first")
        return FrameRows(source)
    if isinstance(source, Workbook):
        raise InvalidValue("Excel files are read by DuckDB: leave engine out, or save the sheet as Parquet for Spark")
    if isinstance(source, str) and source == STANDARD_INPUT:
        raise InvalidValue("standard input is read by DuckDB: leave engine out, or save it where Spark can read it")
    found = source_of(source, view)
    if isinstance(found, CSVFiles):
        return LineRows(found)
    return _parquet_rows(found) if isinstance(found, ParquetFiles) else LocalRows(found)


def _parquet_rows(files: ParquetFiles) -> Rows:
    paths = [str(path.resolve() if ".." in path.parts else path.absolute()) for path in files.files]
    if not all(_is_for_spark(path, has_folders=bool(files.listing.folders)) for path in files.listing.public_paths):
        return LocalRows(files)
    columns = schema(files, connect())
    reader = session().read.option("mergeSchema", "false")
    for old in ("datetimeRebaseMode", "int96RebaseMode"):  # the session may be set to fail on dates before 1900
        reader = reader.option(old, "CORRECTED")
    failure = EngineFailure("Spark cannot open these Parquet files: check their types, and that Spark can reach them")
    frame = withheld(lambda: _parquet_frame(reader, paths, files.folders), failure)  # its message would name paths
    return FrameRows(frame, columns, files)


def _is_for_spark(path: str, *, has_folders: bool) -> bool:
    # Spark skips hidden files, and reads paths as patterns, which fail with a colon. Folders that are columns are
    # private and not a part of the path here. They may have a colon or marks of a pattern.
    is_colon, is_pattern = ":" in path, path != path.translate(_GLOB)
    fails = is_colon or is_pattern if has_folders else is_colon and is_pattern
    return not Path(path).name.startswith((".", "_")) and not fails


def _parquet_frame(
    reader: DataFrameReader, paths: Sequence[str], folders: Mapping[str, Sequence[str | None]]
) -> DataFrame:
    # Spark derives no columns from folder names because it is given files, not folders.
    frame = reader.format("parquet").load(_urls(paths))
    return _with_folders(frame, paths, folders) if folders else frame


def _urls(paths: Sequence[str]) -> list[str]:
    return [f"file://{path.translate(_GLOB)}" for path in paths]


def _with_folders(frame: DataFrame, paths: Sequence[str], folders: Mapping[str, Sequence[str | None]]) -> DataFrame:
    # Spark itself reports which of its names belongs to which path.
    listed = frame.sparkSession.read.format("binaryFile").load(_urls(paths))
    named = listed.select("path", _file(listed)).toArrow().to_pydict()
    spark_names = dict(zip(named["path"], named["file"], strict=True))
    files = [spark_names[f"file:{path}"] for path in paths]
    texts = {"file": files, **{f"f{i}": column for i, column in enumerate(folders.values())}}
    table = pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()})
    values = frame.sparkSession.createDataFrame(table, ", ".join(f"{name} string" for name in texts))
    numbered = [f"p{i}" for i in range(len(frame.columns))]
    rows = frame.select("*", _file(frame)).toDF(*numbered, "file")
    return rows.join(F.broadcast(values), "file", "left").drop("file").toDF(*frame.columns, *folders)


def _file(frame: DataFrame) -> Expression:
    return frame.metadataColumn("_metadata")["file_path"].alias("file")


def described_columns(schema: spark.StructType) -> dict[str, Column]:
    """The public columns of a Spark schema."""
    names = [field.name.lower() for field in schema.fields]
    if len(set(names)) != len(names):
        raise InvalidValue("source has two columns of the same name (upper and lower case are the same): rename one")
    return {field.name: _described(field.name, field.dataType) for field in schema.fields}


def _described(name: str, type_: spark.DataType) -> Column:
    # Other types are unsupported.
    if isinstance(type_, spark.DecimalType):
        return column_of(name, f"DECIMAL({type_.precision},{type_.scale})")
    known = _NAMES.get(type(type_))
    return Column(name, type_.typeName(), Kind.OTHER) if known is None else column_of(name, known)


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


def _field(column: Expression, type_: str) -> Expression:
    # A timestamp must not depend on the session's time zone.
    text = (F.unix_micros(column) if type_ == "timestamp" else column).cast("string")
    return F.coalesce(F.concat(F.octet_length(text).cast("string"), F.lit(":"), text), F.lit("-"))


def _agreed(column: Column, read: Column | None) -> Column:
    # Spark has decimals instead of unsigned integers. 96-bit timestamps, which Spark writes by default, have no time
    # zone: DuckDB reads them as UTC without a zone, Spark as instants.
    others = {Kind.INTEGER: Kind.DECIMAL, Kind.TIMESTAMP: Kind.ZONED}
    if read is None or read.kind not in (column.kind, others.get(column.kind)):
        return Column(column.name, column.type, Kind.OTHER)
    return column


# How columns are sent to Spark: the type to which DuckDB casts their values, and the type in Spark.
_SENT = {
    Kind.BOOLEAN: ("BOOLEAN", "boolean"),
    Kind.INTEGER: ("BIGINT", "bigint"),
    Kind.TEXT: ("VARCHAR", "string"),
    Kind.DATE: ("DATE", "date"),
    Kind.TIMESTAMP: ("TIMESTAMP", "timestamp_ntz"),
    Kind.ZONED: ("TIMESTAMPTZ", "timestamp"),
}


def _sent(column: Column) -> tuple[str, str]:
    # A DuckDB expression, and its type in Spark.
    if column.kind is Kind.OTHER:
        raise InvalidType(f"column {column.name!r} has the type {column.type}, which cannot be sent to Spark")
    if column.kind is Kind.FLOAT:
        here = there = "FLOAT" if column.type == "FLOAT" else "DOUBLE"
    elif column.kind is Kind.DECIMAL or is_wide(column):
        here = there = f"DECIMAL({column.precision or 38},{column.digits})"
    else:
        here, there = _SENT[column.kind]
    return f"TRY_CAST({identifier(column.name)} AS {here})", there
