"""The steps of counting in Spark, with its DataFrame API only: rows, facts, kept facts, counts, scores.

A fact is that an individual (in a group) has an item: a key of a candidate, or a place on a grid. Columns are called
item, member0, member1 and so on (the keys of a group), grp (its number), person, and individuals. No step can fail on a
row. All of them give the same rows if Spark computes them again.

Candidates may be a Spark DataFrame of one column. They are checked and joined in Spark and never collected. Their
digest is the sum of the SHA-256 sums of the candidates, in four parts modulo 2**64, hashed again with their number: an
incremental hash of a set (Bellare & Micciancio 1997), which does not depend on the order of the rows.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow.compute as pc
from duckdb import DuckDBPyConnection
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from dpselect._validate import withheld
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.questions.rows import Individuals
from dpselect.release import repr_digest
from dpselect.tables.candidates import Groups, Values, check_other_text, other_is_listed, other_of_another_kind
from dpselect.tables.domains import Domain, counted_form, counted_item
from dpselect.tables.duckdb.source import connect
from dpselect.tables.duckdb.values import OnGrid, form_of, keys_of, keys_of_groups, present, same_value, value_of
from dpselect.tables.kinds import Column, Kind, Span
from dpselect.tables.spark.source import Rows, described_columns
from dpselect.tables.spark.workers import Reader

_BUCKETS = 1024
_PARTS = 4
_OTHER = "other"
_KEYS_OF_SPARK = (Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN)


@dataclass(frozen=True)
class Reading:
    """How a column becomes an item or a key: its public description, the DuckDB expression, and its type."""

    column: Column
    expression: str
    type: str
    natively: bool = False

    @staticmethod
    def as_key(column: Column, kind: Kind, name: str, *, all_present: bool = False) -> "Reading":
        """Compare with values of a kind. Spark itself writes integers, flags and text like DuckDB."""
        # With `all_present`, every value that is not missing has a key, and no missing one has. An empty text is the
        # key of those that equal no value of the kind: all values of such kinds have longer keys.
        local = called(column, name)
        natively = column.kind in _KEYS_OF_SPARK and kind is column.kind
        form = form_of(local, kind)
        own = form.key(form.value)
        if all_present:
            own = f"CASE WHEN {present(local)} THEN coalesce({own}, '') END"
        return Reading(local, own, "string", natively)

    @staticmethod
    def as_value(column: Column, domain: Domain | None) -> "Reading":
        """Take every value of the column's type, or those of a rule."""
        # Text is read by DuckDB, which leaves out what is not UTF-8: no answer can hold it.
        local = called(column, "item")
        natively = domain is None and column.kind in (Kind.INTEGER, Kind.BOOLEAN)
        return Reading(local, counted_form(local, domain).key(counted_item(local, domain)), "string", natively)

    @staticmethod
    def as_place(column: Column, grid: Span) -> "Reading":
        """Find the position on a grid. A position of more than 64 bits is a decimal."""
        local = called(column, "item")
        on_grid = OnGrid(local, grid)
        type_ = "bigint" if on_grid.is_small else "decimal(38,0)"
        return Reading(local, f"CAST({on_grid.item} AS {type_})", type_)


def called(column: Column, name: str) -> Column:
    """The column under another name. Text arrives in a worker as plain text."""
    return replace(column, name=name, type="VARCHAR" if column.kind is Kind.TEXT else column.type)


def facts(rows: Rows, reading: Reading, question: Column, individuals: Individuals) -> DataFrame:
    """The facts: one row per individual and item, or (without people) one per item with its number of rows."""
    readings = {"item": reading, **_readings_of(individuals.groups)}
    given = _renamed(rows, question, individuals)
    if individuals.person is None and individuals.groups is None and reading.natively:  # the next step counts them
        return given.selectExpr("CAST(item AS STRING) AS item", "1L AS individuals", "0L AS grp").where(
            "item IS NOT NULL"
        )
    if individuals.person is None:  # fewer rows for the next steps
        given = given.groupBy(*readings).agg(F.count(F.lit(1)).alias("individuals"))
    read = _read(given, readings).where(" AND ".join(f"{name} IS NOT NULL" for name in readings))
    if individuals.groups is None:
        return read.withColumn("grp", F.lit(0).cast("bigint"))
    listed = keys_of_groups(individuals.groups, connect())
    schema = ", ".join(["grp bigint", *(f"{name} string" for name in listed.column_names[1:])])
    groups = F.broadcast(rows.spark.createDataFrame(listed, schema))
    return read.join(groups, listed.column_names[1:]).drop(*listed.column_names[1:])


def _readings_of(groups: Groups | None) -> dict[str, Reading]:
    if groups is None:
        return {}
    named = enumerate(zip(groups.columns, groups.kinds, strict=True))
    return {f"member{i}": Reading.as_key(column, kind, f"member{i}") for i, (column, kind) in named}


def _renamed(rows: Rows, question: Column, individuals: Individuals) -> DataFrame:
    # Whatever a question reads of a row, it reads here, under our own names. Rows without a person are left out.
    columns = {"item": question}
    if individuals.groups is not None:
        columns |= {f"member{i}": column for i, column in enumerate(individuals.groups.columns)}
    if individuals.person is not None:
        columns["person"] = individuals.person
    named = [column.name for column in columns.values()]
    given = rows.select(named, people=individuals.person is not None).toDF(*columns)
    return given if individuals.person is None else given.where("person IS NOT NULL")


def _read(given: DataFrame, readings: dict[str, Reading]) -> DataFrame:
    if all(reading.natively for reading in readings.values()):
        return given.withColumns({name: F.col(name).cast("string") for name in readings})
    texts = [name for name, reading in readings.items() if reading.column.kind is Kind.TEXT]
    # Text in Spark may not be valid UTF-8, on which Arrow's readers fail.
    sent = given.select(*(F.col(n).cast("binary").alias(n) if n in texts else F.col(n) for n in given.columns))
    reader = Reader(
        {name: typed(name, reading.column) for name, reading in readings.items()},
        {name: reading.expression for name, reading in readings.items()},
    )
    types = {**dict(given.dtypes), **{name: reading.type for name, reading in readings.items()}}
    return sent.mapInArrow(reader, ", ".join(f"{name} {types[name]}" for name in given.columns))


def typed(name: str, column: Column) -> str:
    """The expression that restores, after the way through Spark, the type that DuckDB expects."""
    return f"TRY_CAST({name} AS {column.type})" if column.kind is Kind.INTEGER else name


class Keyed(NamedTuple):
    """Candidates in Spark, with labels and keys; a key is missing if no value can equal the candidate. Public."""

    frame: DataFrame
    longest: int
    is_list: bool = False  # from the driver, whose memory holds it


def public_keys(spark: SparkSession, values: Values, column: Column, connection: DuckDBPyConnection) -> Keyed:
    """The items of a public list, with keys from DuckDB; their labels are their positions."""
    keys = keys_of(values, form_of(column, values.kind), connection)
    frame = spark.createDataFrame(keys.rename_columns(["label", "key"]), "label bigint, key string")
    return Keyed(frame, pc.max(pc.binary_length(keys["key"])).as_py() or 0, is_list=True)


@dataclass(frozen=True)
class FrameValues(Values):
    """Distinct values of one kind in Spark: their labels and keys, their number and their digest."""

    keyed: Keyed = field(repr=False, kw_only=True)
    number: int = field(kw_only=True)
    digest: str = field(repr=False, kw_only=True)

    def __len__(self) -> int:
        return self.number + (self.other is not None)

    @property
    def sha256(self) -> str:
        return self.digest if self.other is None else repr_digest((self.digest, self.other))

    @property
    def listed(self) -> list[Any]:
        # The values come to this process.
        rows = withheld(lambda: self.keyed.frame.select("label").collect(), _unreadable())
        return [*sorted(self.value(row["label"]) for row in rows), *([] if self.other is None else [self.other])]

    @property
    def other_label(self) -> Any:
        # For text, the label is that candidate itself; labels of other kinds are numbers, dates or flags.
        return self.other if self.other is None or self.kind is Kind.TEXT else _OTHER

    def with_other(self, other: Any, column: Column, listed: Callable[[Any, Column, str], Values]) -> Values:
        if other is None:
            return self
        if isinstance(other, str):
            check_other_text(other)
            label = same = other
        else:
            checked = listed([other], column, "other")
            if checked.kind is not self.kind:
                raise other_of_another_kind(self.kind)
            keys = keys_of(checked, form_of(column, checked.kind), connect())
            [other], [same] = checked.items, keys["key"].to_pylist()
            label = _OTHER
        equal = self.keyed.frame.where((F.col("label") == label) | (F.col("key") == same)).limit(1)
        if withheld(equal.collect, _unreadable()):
            raise other_is_listed(other)
        return replace(self, other=other)

    def value(self, label: str) -> Any:
        """Return the candidate with this label."""
        return self.other if label == self.other_label else self.kind.from_key(label)


# Labels that no candidate may have: NaN and infinities, and dates outside the range of Python's types.
_UNFIT = {
    Kind.FLOAT: "label IN ('nan', '-nan', 'inf', '-inf')",
    Kind.DATE: "label NOT RLIKE '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'",
    **dict.fromkeys(
        (Kind.TIMESTAMP, Kind.ZONED), "CAST(label AS DECIMAL(38,0)) NOT BETWEEN {} AND {}".format(*Kind.TIMESTAMP.ends)
    ),
}


def frame_values(frame: DataFrame, column: Column) -> FrameValues:
    """The candidates, checked against the kind of their column."""
    described = list(described_columns(frame.schema).values())
    if len(described) != 1:
        raise InvalidValue(f"candidates must be a DataFrame of one column, got {len(described)}: select the candidates")
    [given] = described
    if given.kind not in column.comparable - ({Kind.INTEGER} if column.kind is Kind.FLOAT else set()):
        raise InvalidType(
            f"candidates are {given.kind.value}, but the column {column.name!r} holds {column.kind.value}:"
            " cast them to the column's type"
        )
    labelled = _labelled(frame, given, column)
    size, longest, digest = _checked(labelled, given.kind, column)
    return FrameValues(given.kind, (), keyed=Keyed(labelled, longest), number=size, digest=digest)


def _labelled(frame: DataFrame, given: Column, column: Column) -> DataFrame:
    kind, label, other = given.kind, called(given, "label"), called(given, "key")
    own, form, labels = value_of(other, kind), form_of(column, kind), form_of(label, kind)
    cast = form.cast(own)
    same = form.key(cast)
    if Kind.DECIMAL in (kind, column.kind):  # a candidate with more decimal places than the column equals no value
        same = f"CASE WHEN {cast} = {own} THEN {same} END"
    reader = Reader(
        {"label": typed("label", label), "key": typed("key", other)},
        {"label": labels.key(labels.value), "key": same},
    )
    twice = frame.toDF("label").withColumn("key", F.col("label"))
    sent = twice.select(*(F.col(n).cast("binary").alias(n) for n in twice.columns)) if kind is Kind.TEXT else twice
    return sent.mapInArrow(reader, "label string, key string")


def _unreadable() -> EngineFailure:
    return EngineFailure("the candidates could not be read: check their DataFrame")


def _equal_labels(labelled: DataFrame) -> tuple[str, str]:
    # Candidates with the same key are equal in the type of the column.
    same = labelled.where("key IS NOT NULL").groupBy("key").agg(F.min("label"), F.max("label"), F.count(F.lit(1)))
    [row] = same.toDF("key", "first", "last", "candidates").where("candidates > 1").limit(1).collect()
    return row["first"], row["last"]


def _checked(labelled: DataFrame, kind: Kind, column: Column) -> tuple[int, int, str]:
    # The list is public: errors may show it.
    hashed = F.sha2("label", 256)
    width = 64 // _PARTS
    sums = [
        F.sum(F.conv(F.substring(hashed, 1 + i * width, width), 16, 10).cast("decimal(20,0)")) for i in range(_PARTS)
    ]
    unfit = F.count_if(F.expr(_UNFIT.get(kind, "false")))
    counted = [F.count(F.lit(1)), F.count("label"), F.count_distinct("label"), unfit]
    numbers = [*counted, F.count("key"), F.count_distinct("key"), F.max(F.octet_length("key")), *sums]
    summed = labelled.agg(*(n.alias(f"n{i}") for i, n in enumerate(numbers)))
    [row] = withheld(summed.collect, _unreadable())
    size, known, different, bad, keys, different_keys, longest, *parts = row
    if not size:
        raise InvalidValue("candidates must have at least one value: list what may be answered")
    if known < size or bad:
        raise InvalidValue("candidates must be finite numbers, text, dates, timestamps or booleans: drop missing ones")
    if different < size:
        raise InvalidValue("candidates must be different values: drop the duplicates")
    if different_keys < keys:
        first, second = map(kind.from_key, withheld(lambda: _equal_labels(labelled), _unreadable()))
        raise same_value(first, second, column)
    text = ":".join([str(size), *(str(int(part) % 2**64) for part in parts)])
    return int(size), longest or 0, hashlib.sha256(text.encode()).hexdigest()


def scores(
    found: DataFrame,
    public: Keyed,
    individuals: Individuals,
    max_values: int | None = None,
    other: Any = None,
) -> DataFrame:
    """The number of individuals of every candidate, zero included (in every group): grp, label, individuals."""
    # With `max_values`, a person counts for at most so many candidates, in each group. `other` is the label of a
    # further candidate, for items without one.
    candidates = public.frame
    found = _without_long_items(found, public.longest, keep_rows=other is not None)
    if individuals.groups is None and max_values is None and other is None:
        # A part of a list fits the memory of a worker, so it need not be sorted.
        return _scores_of_all(found, candidates.hint("shuffle_hash") if public.is_list else candidates, individuals)
    how = "inner" if other is None else "left"
    named = found.join(candidates, found["item"] == candidates["key"], how).drop("item", "key")
    candidates = candidates.select("label")
    if other is not None:
        named = named.withColumn("label", F.coalesce("label", F.lit(other)))
        last = candidates.sparkSession.createDataFrame([(other,)], candidates.schema)
        candidates = candidates.union(last)
    counted = _counted_by_label(named, individuals, max_values)
    grid = found.sparkSession.range(individuals.answers).toDF("grp")
    joined = candidates.crossJoin(F.broadcast(grid)).join(counted, ["grp", "label"], "left")
    return joined.select("grp", "label", F.coalesce("individuals", F.lit(0)).cast("bigint").alias("individuals"))


def _without_long_items(found: DataFrame, longest: int, *, keep_rows: bool) -> DataFrame:
    # One long text cannot fill the memory. If the rows of long items must stay, the items are cut: one with more
    # characters than a key has octets equals no key either.
    if keep_rows:
        return found.withColumn("item", F.substring("item", 1, longest + 1))
    return found.where(F.octet_length("item") <= longest)


def _scores_of_all(found: DataFrame, candidates: DataFrame, individuals: Individuals) -> DataFrame:
    # All items are counted as they are, so that few rows are joined with the candidates. The keys of candidates are
    # different, and no item equals a missing key.
    counted = _counted_by_item(found, individuals)
    joined = candidates.join(counted, candidates["key"] == counted["item"], "left")
    return joined.selectExpr("0L AS grp", "label", "coalesce(individuals, 0L) AS individuals")


def counts(found: DataFrame, public: Keyed, individuals: Individuals) -> DataFrame:
    """The number of individuals of the candidates of a list that somebody has: label, individuals. No groups."""
    counted = _counted_by_item(_without_long_items(found, public.longest, keep_rows=False), individuals)
    return counted.join(public.frame, counted["item"] == public.frame["key"]).select("label", "individuals")


def _counted_by_item(found: DataFrame, individuals: Individuals) -> DataFrame:
    number = F.sum("individuals") if individuals.person is None else F.count_distinct("person")
    return found.groupBy("item").agg(number.alias("individuals"))


def _counted_by_label(named: DataFrame, individuals: Individuals, max_values: int | None) -> DataFrame:
    if individuals.person is None:
        return named.groupBy("grp", "label").agg(F.sum("individuals").alias("individuals"))
    kept = named if individuals.groups is None else kept_facts(named, individuals.groups)
    if max_values is not None:
        kept = kept_values(kept, max_values)
    return kept.groupBy("grp", "label").agg(F.count_distinct("person").alias("individuals"))


def kept_values(named: DataFrame, max_values: int) -> DataFrame:
    """At most `max_values` candidates of each person, in each group."""
    return _kept(named.select("grp", "person", "label").distinct(), ["grp", "person"], max_values)


def _kept(frame: DataFrame, of: Sequence[str], most: int) -> DataFrame:
    # Rows are kept in the order of a hash of a random salt and the row. No two rows are equal. The choice depends only
    # on these rows, which belong to one person. Privacy needs only that, so the salt need not be secret; it is part of
    # the query, so Spark finds the same order if it computes it again.
    rest = [name for name in frame.columns if name not in of]
    hashed = F.xxhash64(F.lit(os.urandom(16).hex()), *frame.columns)
    rank = F.row_number().over(Window.partitionBy(*of).orderBy(hashed, *rest))
    return frame.withColumn("rank", rank).where(F.col("rank") <= most).drop("rank")


def tallied(found: DataFrame, individuals: Individuals, max_values: int | None) -> DataFrame:
    """The number of individuals of every value that somebody has (in every group): grp, label, individuals."""
    named = found.withColumnRenamed("item", "label")
    counted = _counted_by_label(named, individuals, max_values)
    return counted.select("grp", "label", F.col("individuals").cast("bigint").alias("individuals"))


def levels(scores: DataFrame) -> DataFrame:
    """How many candidates have each score (in each group): grp, individuals, candidates."""
    return scores.groupBy("grp", "individuals").agg(F.count(F.lit(1)).alias("candidates"))


def of_ranks(scores: DataFrame, wanted: Sequence[tuple[int, ...]]) -> DataFrame:
    """The labels of some candidates: grp, turn, label."""
    # `wanted` has a group, a turn, a score and a rank, from 0, among the candidates of the group that have this score.
    # The order is that of hashes of the labels in _BUCKETS parts, then of the labels: no worker sorts all candidates.
    # The scores and ranks are secret. They are rows of a frame and not part of the query, whose text Spark may log.
    names = "grp bigint, turn bigint, individuals bigint, rank bigint"
    asked = scores.sparkSession.createDataFrame(list(wanted), names)
    level = ["grp", "individuals"]
    bucket = F.pmod(F.xxhash64("label"), F.lit(_BUCKETS)).alias("bucket")
    members = scores.join(F.broadcast(asked.select(level)), level, "left_semi").select(*level, "label", bucket)
    sizes = members.groupBy(*level, "bucket").agg(F.count(F.lit(1)).alias("size"))
    until = F.sum("size").over(Window.partitionBy(*level).orderBy("bucket"))
    starts = sizes.select(*level, "bucket", (until - F.col("size")).alias("start"))
    within = F.row_number().over(Window.partitionBy(*level, "bucket").orderBy("label")) - 1
    placed = members.select(*level, "label", "bucket", within.alias("within")).join(starts, [*level, "bucket"])
    ranked = placed.select(*level, "label", (F.col("start") + F.col("within")).alias("rank"))
    return ranked.join(F.broadcast(asked), [*level, "rank"]).select("grp", "turn", "label")


def standing(found: DataFrame, individuals: Individuals, max_rows: int | None = None) -> DataFrame:
    """The number of individuals at every position: grp, item, individuals. A person counts as `Engine.places` says."""
    if individuals.person is None:
        return found.groupBy("grp", "item").agg(F.sum("individuals").alias("individuals"))
    kept = found if individuals.groups is None else kept_facts(found, individuals.groups)
    own = medians(kept) if max_rows is None else kept_rows(kept, max_rows)
    return own.groupBy("grp", "item").agg(F.count(F.lit(1)).alias("individuals"))


def medians(kept: DataFrame) -> DataFrame:
    """The median item of each person, in each group. Which of two middle ones it is, a bit of the person decides."""
    own = Window.partitionBy("grp", "person")
    bit = F.pmod(F.xxhash64(F.lit(os.urandom(16).hex()), "person"), F.lit(2))
    ranked = kept.select(
        "grp",
        "item",
        bit.alias("bit"),
        F.row_number().over(own.orderBy("item")).alias("rank"),
        F.count(F.lit(1)).over(own).alias("size"),
    )
    return ranked.where("rank = (size + 1 + bit) div 2")


def kept_rows(kept: DataFrame, max_rows: int) -> DataFrame:
    """At most `max_rows` rows of each person, in each group."""
    # Equal items of a person are told apart by their running number, which no other row can change.
    copy = F.row_number().over(Window.partitionBy("grp", "person", "item").orderBy("item"))
    return _kept(kept.select("grp", "person", "item", copy.alias("copy")), ["grp", "person"], max_rows)


def kept_facts(found: DataFrame, groups: Groups) -> DataFrame:
    """The facts of at most `max_groups` groups for each person."""
    chosen = _kept(found.select("person", "grp").distinct(), ["person"], groups.max_groups)
    return found.join(chosen, ["person", "grp"], "left_semi")
