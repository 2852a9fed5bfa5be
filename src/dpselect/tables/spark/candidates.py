"""Candidates in a Spark DataFrame of one column. They are checked and joined in Spark and never collected.

Its digest is the sum of the SHA-256 sums of the candidates, in four parts modulo 2**64, hashed again with their number:
an incremental hash of a set (Bellare & Micciancio 1997), which does not depend on the order of the rows.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from dpselect._validate import withheld
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.release import repr_digest
from dpselect.tables.candidates import Values, check_other_text, other_is_listed, other_of_another_kind
from dpselect.tables.duckdb.source import connect
from dpselect.tables.duckdb.values import form_of, keys_of, same_value, value_of
from dpselect.tables.kinds import Column, Kind
from dpselect.tables.spark.queries import Keyed, called, typed
from dpselect.tables.spark.source import described_columns
from dpselect.tables.spark.workers import Reader

_PARTS = 4
_OTHER = "other"


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
