"""Permute-and-flip (McKenna & Sheldon 2020) in one pass over any number of parts, by a summary that merges exactly.

For each block, keep its best score m, the number h of heads when coins are flipped against m, and one head,
chosen uniformly. Against a larger maximum M each head stays a head with probability exp(-c (M - m)), independently, so
the block is like a run of h equal candidates with score m. The arrival of the first head of such a run is one random
number, which is revealed bit by bit (see `selection.races`). Which of two blocks is earlier does not depend on M: a
merge compares two arrivals and keeps the earlier one. By symmetry the kept head is a uniform one of those that stay.
So any parts in any order give the distribution of one selection from all candidates, and nobody needs to know M.

A `Summary` is what a user feeds with blocks of candidates, sends to another machine and merges. Small Arrow batches are
combined into larger ones (`gathered`): DuckDB and Spark send only thousands of rows at a time, and every block has a
fixed cost, about that of a hundred thousand candidates. Arrow data cannot change, so batches can be collected without a
copy. Other blocks pass through at once: their owner may reuse them.

**Labels.** Only the label that was drawn is read, and nothing else may depend on which it was. So the labels of a block
are checked before anything is drawn, and reading one never fails: a timestamp that Python's
datetime cannot hold exactly is returned as NumPy's. Whether an Arrow row can hold the labels is decided for the whole
block, too, by the types of its labels; an unknown type does not fit.

Integers are written in hexadecimal, which takes linear time and has no limit on digits.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpselect import _show
from dpselect._messages import install_command
from dpselect._numbers import LONGEST
from dpselect._scores import as_vector
from dpselect._types import Array, Vector
from dpselect._validate import attempted, withheld
from dpselect.errors import InvalidType, InvalidValue, MissingExtra, ScoresChanged
from dpselect.mechanisms.base import MECHANISMS, MechanismBase
from dpselect.selection.draws import Draws
from dpselect.selection.flips import (
    FEW,
    Heads,
    SteadyHeads,
    flip_at_once,
    flip_listed,
    flip_long,
    flip_steadily,
    left_to_flip,
)
from dpselect.selection.gaps import MIDDLE, Gaps, Rate, gaps_of
from dpselect.selection.kernel import Left
from dpselect.selection.races import DEPTH, Arrival, draw_arrival, earlier

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW_WRITABLE = (
    *("null", "boolean", "integer", "floating", "decimal", "date", "timestamp", "string", "large_string"),
    *("string_view", "binary", "large_binary", "binary_view", "fixed_size_binary"),
)
_NOT_ARROW = ("Object", "Int128", "UInt128")  # polars types that Arrow lacks
_KINDS = "give a list, NumPy array of one dimension, pandas or polars Series or Arrow array, one label per candidate"


class Unlabelled(Enum):
    """The label of a candidate without a label. It is not None, which may be a label, and it survives pickling."""

    POSITION = "position"


@dataclass(frozen=True, repr=False)
class Labels:
    """The labels of a block: `at` reads one by position, `writable` says whether an Arrow row can hold them all."""

    at: Callable[[int], Any]
    writable: bool


_UNLABELLED = Labels(lambda _: Unlabelled.POSITION, writable=True)


def labels_of(labels: Any, size: int) -> Labels:
    """The labels of a block of this many candidates. Without labels, each candidate is labelled with its position."""
    if labels is None:
        return _UNLABELLED
    read = _labels(labels)
    if len(labels) != size:
        raise InvalidValue("labels must be as long as scores: give one label for each candidate")
    return read


def _labels(labels: Any) -> Labels:
    if isinstance(labels, range):
        return Labels(labels.__getitem__, writable=True)
    if isinstance(labels, (list, tuple)):
        return Labels(lambda position: _python(labels[position]), _all_writable(labels))
    if isinstance(labels, np.ndarray):
        return _from_array(labels)
    if _is(labels, "pandas", "Index"):
        labels = labels.to_series()
    if _is(labels, "pandas", "Series"):
        return Labels(lambda position: _python(labels.array[position]), _pandas_writable(labels))
    if _is(labels, "polars", "Series"):
        return _labels(labels.to_list() if str(labels.dtype) in _NOT_ARROW else labels.to_arrow())
    if _is(labels, "pyarrow", "Array") or _is(labels, "pyarrow", "ChunkedArray"):
        return Labels(lambda position: _from_arrow(labels[position]), _arrow_writable(labels.type))
    raise InvalidType(f"labels must be a sequence of labels, got {type(labels).__name__}: {_KINDS}")


def _is(labels: Any, package: str, name: str) -> bool:
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in type(labels).__mro__)


def _python(label: Any) -> Any:
    # A label that outlives its block. NumPy scalars become Python's, except timestamps, which may be finer.
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        return label.item()
    return None if _is_missing(type(label)) else label


def _is_missing(type_: type) -> bool:
    # Whether this is the type of pandas' NA, which becomes None as a label.
    return type_.__name__ == "NAType"


def _all_writable(labels: Any) -> bool:
    return all(
        t in _LABELS or _is_missing(t) or (np.generic in t.__mro__ and _dtype_writable(np.dtype(t)))
        for t in set(map(type, labels))
    )


def _dtype_writable(dtype: np.dtype[Any]) -> bool:
    # Whether all scalars of a type are writable. A float wider than Python's has no Python value.
    return dtype.kind in "biuSUmM" or (dtype.kind == "f" and dtype.itemsize <= 8)


def _from_array(labels: Any) -> Labels:
    if labels.ndim != 1:
        raise InvalidType(f"labels must be one-dimensional, got {labels.ndim} dimensions: {_KINDS}")
    writable = _all_writable(labels) if labels.dtype.kind in "OT" else _dtype_writable(labels.dtype)
    hidden = np.ma.getmask(labels)
    if hidden is np.ma.nomask:
        return Labels(lambda position: _python(labels[position]), writable)
    return Labels(lambda position: None if hidden[position] else _python(labels.data[position]), writable)


def _pandas_writable(labels: Any) -> bool:
    # Whether these types are writable. A Timestamp is not: its time zone and unit would be lost.
    dtype = labels.dtype
    if str(dtype) == "category":
        return _pandas_writable(dtype.categories)
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        return _all_writable(labels.array)
    texts = ("str", "string", "string[pyarrow]", "large_string[pyarrow]")
    return str(dtype) in texts or (dtype.kind in "biuf" and getattr(dtype, "itemsize", 8) <= 8)


def _arrow_writable(type_: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - an array of Arrow comes with it

    if pa.types.is_dictionary(type_):
        return _arrow_writable(type_.value_type)
    if pa.types.is_timestamp(type_) and type_.unit == "ns" and type_.tz is not None:
        return False  # a pandas Timestamp
    return any(getattr(pa.types, f"is_{name}")(type_) for name in _ARROW_WRITABLE)


def _from_arrow(scalar: Any) -> Any:
    # The exact value: a NumPy timestamp if Python's cannot hold it, and the raw bytes of a text that is not UTF-8.
    import pyarrow as pa  # noqa: PLC0415 - only for Arrow

    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(scalar.type):
        return _from_arrow(scalar.value)
    if getattr(scalar.type, "unit", "") == "ns" and getattr(scalar.type, "tz", None) is None:
        return _moment(scalar)
    try:
        return _python(scalar.as_py())
    except Exception:  # an error would reveal what was drawn
        if pa.types.is_temporal(scalar.type):
            return _moment(scalar)
        return scalar.as_buffer().to_pybytes() if hasattr(scalar, "as_buffer") else scalar


def _moment(scalar: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - only for Arrow

    unit: Any = getattr(scalar.type, "unit", "D" if pa.types.is_date32(scalar.type) else "ms")
    since_epoch = pa.types.is_timestamp(scalar.type) or pa.types.is_date(scalar.type)
    return np.datetime64(scalar.value, unit) if since_epoch else np.timedelta64(scalar.value, unit)


# Their text.

_EVERY_TEXT = "utf-8", "surrogatepass"  # lone surrogates, too
_MOMENT = re.compile(r"(?:datetime64|timedelta64)(?:\[[0-9]{0,10}[a-zA-Z]+\])?", re.ASCII)


def integer(text: str) -> int:
    """The integer that was written in hexadecimal."""
    number = int(text, 16)
    if f"{number:x}" != text:  # int also accepts 1_0 and digits of other scripts
        raise ValueError
    return number


def quotient(number: Fraction) -> str:
    """The text of a fraction."""
    return f"{number.numerator:x}/{number.denominator:x}"


def _fraction(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(integer(numerator), integer(denominator))


def number(text: str) -> Fraction:
    """A parameter or a score of limited length."""
    if len(text) > LONGEST:
        raise ValueError
    return _fraction(text)


def flag(text: str) -> bool:
    """True or False, from its text."""
    return {"True": True, "False": False}[text]


def _counted(moment: Any) -> str:
    return f"{moment.dtype.name} {int(moment.view(np.int64)):x}"


def _moment_of(text: str) -> Any:
    name, count = text.split(" ")
    if not _MOMENT.fullmatch(name):  # NumPy would parse the description of any type
        raise ValueError
    return np.array([integer(count)], np.int64).view(name)[0]


# How labels are written and read, by exact type: a subclass would not come back as the same type.
_LABELS: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    type(None): (str, {"None": None}.__getitem__),
    bool: (str, flag),
    str: (lambda label: label.encode(*_EVERY_TEXT).hex(), lambda text: bytes.fromhex(text).decode(*_EVERY_TEXT)),
    bytes: (bytes.hex, bytes.fromhex),
    int: (lambda label: f"{label:x}", integer),
    float: (float.hex, float.fromhex),
    Fraction: (quotient, _fraction),
    Decimal: (str, Decimal),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    **dict.fromkeys((np.datetime64, np.timedelta64), (_counted, _moment_of)),
}
_TYPE = {type_.__name__: type_ for type_ in _LABELS}


def written_label(label: Any) -> tuple[str | None, str | None]:
    """The kind and the text of a label whose type is writable."""
    if label is Unlabelled.POSITION:
        return None, None
    return type(label).__name__, _LABELS[type(label)][0](label)


def read_label(kind: str | None, text: str | None) -> Any:
    """The label of this kind with this text; refused unless it is written as exactly this text."""
    if kind is None:
        return Unlabelled.POSITION
    if text is None:
        raise ValueError
    write, read = _LABELS[_TYPE[kind]]
    label = read(text)
    if type(label) is not _TYPE[kind] or write(label) != text:
        raise ValueError
    return label


# The summary.


# Coins wait until there are so many, or so many blocks: a block without a coin takes memory too.
_MANY, _MANY_BLOCKS = 2**15, 256


@dataclass(frozen=True, repr=False)
class Part:
    """A summary of some candidates: the arrival of their first head, that head, and their number. Secret."""

    # The exponent of the arrival is counted from a score of zero: it is -c m. `maximum` is the best score of all.
    # `head` is the position of the head, the result if its label is `Unlabelled.POSITION`. `writable` says whether an
    # Arrow row can hold every label seen, not only the drawn one.

    arrival: Arrival
    maximum: Fraction
    head: int
    label: Any
    candidates: int
    writable: bool = True

    def merged(self, later: "Part", draws: Draws) -> "Part":
        """Return one part of the candidates of both; those of the later one come after ours in position."""
        winner, arrival = earlier(self.arrival, later.arrival, draws)
        return Part(
            arrival,
            max(self.maximum, later.maximum),
            self.candidates + later.head if winner else self.head,
            later.label if winner else self.label,
            self.candidates + later.candidates,
            self.writable and later.writable,
        )

    def longer(self, candidates: int, writable: bool) -> "Part":
        """Return the part with so many more candidates, none of them a head against its maximum."""
        known = self.arrival, self.maximum, self.head, self.label
        return Part(*known, self.candidates + candidates, self.writable and writable)


def merged(first: Part | None, second: Part | None, draws: Draws) -> Part | None:
    """The summary of both; None is the neutral element."""
    if first is None or second is None:
        return second if first is None else first
    return first.merged(second, draws)


class _Block(NamedTuple):
    # Candidates whose coins were flipped against a best score: one of theirs, or that of an earlier candidate.

    heads: Heads | SteadyHeads
    best: Fraction
    is_own: bool
    candidates: int


class _Waiting:
    # Blocks of scores of one type whose coins are not flipped yet: copies of the few scores that may be heads.

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._lists: list[Left] = []
        self._starts: list[int] = []
        self._maximum: Array
        self._is_own = False
        self.best: Fraction
        self._coins = self.candidates = 0

    @property
    def is_full(self) -> bool:
        # Whether the coins should be flipped, so that memory does not grow with the stream.
        return self._coins > _MANY or len(self._lists) >= _MANY_BLOCKS

    def takes(self, gaps: Gaps) -> bool:
        return self._lists[0].scores.dtype == gaps.values.dtype

    def add(self, left: Left, gaps: Gaps, best: Fraction) -> None:
        # Add what is left to flip of a block with these gaps, whose best score is not below that of the others.
        self._lists.append(left)
        self._starts.append(self.candidates)
        self._maximum, self.best = gaps.maximum, best
        self._is_own |= not gaps.is_to_hint
        self.candidates += gaps.size
        self._coins += left.depths.size

    def flipped(self, draws: Draws) -> _Block:
        positions, scores, depths = (np.concatenate(parts) for parts in zip(*self._lists, strict=True))
        exponents = Gaps(scores, self._rate, self._maximum).exponents(np.arange(scores.size))
        positions += np.repeat(self._starts, [left.depths.size for left in self._lists])
        heads = Heads(positions[draws.finish(exponents, 0, depths)])
        return _Block(heads, self.best, self._is_own, self.candidates)


class Stream:
    # A part in progress, to which blocks of candidates are added. Secret. The fixed cost of a block is mostly that of
    # its coins. So blocks without labels may wait, and the coins of all of them are flipped together: when many wait,
    # before a block that cannot wait, and when somebody asks for the part.

    def __init__(self, mechanism: MechanismBase, part: Part | None = None, steady: bool = False) -> None:
        self._mechanism, self._steady, self._part = mechanism, steady, part
        self._waiting: _Waiting | None = None

    @property
    def candidates(self) -> int:
        """The number of candidates seen."""
        return sum(seen.candidates for seen in (self._part, self._waiting) if seen is not None)

    def add(self, scores: Vector, labels: Any, draws: Draws, *, may_wait: bool = False) -> None:
        """Add a block of candidates after the others."""
        # A steady block is flipped against its own best score. Others are flipped against the best score so far, if
        # that is larger: fewer candidates are hot, and a block without a head has none against any larger maximum
        # either.
        named = labels_of(labels, len(scores))
        hint = None if self._steady else self._hint
        gaps = gaps_of(scores, self._mechanism._rate, hint=hint, steady=self._steady)
        best = hint if hint is not None and gaps.is_to_hint else gaps.best(self._mechanism.rate)
        if may_wait and labels is None and not self._steady and self._wait(gaps, best, draws):
            return
        self.part(draws)
        heads = flip_steadily(gaps, draws) if self._steady else _flipped(gaps, draws)
        self._part = self._with(_Block(heads, best, not gaps.is_to_hint, gaps.size), named, draws)

    def part(self, draws: Draws) -> Part | None:
        """Return the summary of all candidates seen. Blocks that wait are dropped if their scores changed meanwhile."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._part = self._with(waiting.flipped(draws), labels_of(None, 0), draws)
        return self._part

    @property
    def _hint(self) -> Fraction | None:
        if self._waiting is not None:
            return self._waiting.best
        return None if self._part is None else self._part.maximum

    def _wait(self, gaps: Gaps, best: Fraction, draws: Draws) -> bool:
        # Let a block wait, and return whether it does: it must have few hot candidates, which the kernel lists. Scores
        # that were rescaled to be integers do not wait: their unit is that of their own block.
        listed = gaps.listed() if gaps.rate is self._mechanism._rate else None
        if listed is None or listed.hot.positions.size > FEW:
            return False
        if not (gaps.is_to_hint or (listed.hot.scores == gaps.maximum).any()):  # it was there when first read
            raise ScoresChanged
        left = left_to_flip(gaps, listed, draws)
        if self._waiting is not None and not self._waiting.takes(gaps):
            self.part(draws)
        if self._waiting is None:
            self._waiting = _Waiting(gaps.rate)
        self._waiting.add(left, gaps, best)
        if self._waiting.is_full:
            self.part(draws)
        return True

    def _with(self, block: _Block, named: Labels, draws: Draws) -> Part:
        part, count = self._part, block.heads.size
        if count:
            position = block.heads.choose(draws)
            arrival = draw_arrival(-self._mechanism.rate * block.best, count, draws)
            one = Part(arrival, block.best, position, named.at(position), block.candidates, named.writable)
            return one if part is None else part.merged(one, draws)
        if part is None or block.is_own:  # the best candidate was a head when first read, so the scores changed
            raise ScoresChanged
        return part.longer(block.candidates, named.writable)


def _flipped(gaps: Gaps, draws: Draws) -> Heads:
    members = flip_listed(gaps, draws)
    if members is None:
        if gaps.size > MIDDLE:
            return flip_long(gaps, draws)
        members = flip_at_once(gaps, draws)
    return Heads(members)


# Rows: all columns are text, because Arrow has no unbounded integers. The schema is the same for every summary, so many
# batches can be stacked into one table. A row holds the secrets of the summary: treat it like the data.

_PARAMETERS = ("epsilon", "sensitivity", "monotonic", "score_range", "steady")
COLUMNS = (
    *_PARAMETERS,
    *("maximum", "exponent", "heads", "prefix", "depth", "head", "candidates", "label_kind", "label"),
)
Cells = dict[str, str | None]

# How all columns but those of the label are written and read.
_CELLS: dict[str, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    **dict.fromkeys(("epsilon", "sensitivity", "score_range", "maximum", "exponent"), (quotient, number)),
    **dict.fromkeys(("monotonic", "steady"), (str, flag)),
    **dict.fromkeys(("heads", "prefix", "depth", "head", "candidates"), ("{:x}".format, integer)),
}
_NO_SUMMARY = "the row is not a summary: give a batch from Summary.to_arrow"


class Summary:
    """A selection in progress: feed it candidates block by block, on any number of machines, and merge.

    A summary holds a few secret numbers, for any number of candidates; its repr shows none. It can be pickled. The
    selection is made while candidates are added. Calling `result` twice returns the same label. After more candidates
    were added, it may return another one. Each different result is a separate release, which costs epsilon again.

    Args:
        mechanism: the mechanism; use `PermuteAndFlip.summary` to create a summary.
        part: the summary of the candidates seen so far.
        steady: whether the time for a block must not depend on its scores.

    Raises:
        InvalidType: the scores, the labels, a stream or an Arrow batch cannot be read, an Arrow row cannot hold the
            labels, or `other` is not a summary.
        InvalidValue: a score is not finite, lengths differ, a column is missing, summaries cannot be merged, a batch is
            not the row of a summary, or there are no candidates.

    >>> from dpselect import PermuteAndFlip
    >>> first, second = PermuteAndFlip(epsilon=1).summary(), PermuteAndFlip(epsilon=1).summary()
    >>> first.update([0, 1]); second.update([1000, 3], labels=["c", "d"])
    >>> first.merge(second).result()
    'c'
    """

    def __init__(self, mechanism: MechanismBase, part: Part | None = None, steady: bool = False) -> None:
        self._mechanism, self._steady = mechanism, steady
        self._stream = Stream(mechanism, part, steady)

    def __reduce__(self) -> tuple[Any, ...]:
        # What a copy is made from: coins that are flipped. Flipping them again would be another selection.
        return type(self), (self._mechanism, self._part, self._steady)

    @property
    def _part(self) -> Part | None:
        return self._stream.part(Draws())

    def __repr__(self) -> str:
        return f"Summary({self._mechanism!r})"

    def _repr_html_(self) -> str:
        return _show.page(_show.facts({"mechanism": repr(self._mechanism)}, caption="Summary: a selection in progress"))

    @property
    def mechanism(self) -> MechanismBase:
        """The public parameters."""
        return self._mechanism

    @property
    def candidates(self) -> int:
        """The number of candidates seen."""
        return self._stream.candidates

    def update(self, scores: Any, labels: Any = None) -> None:
        """Add a block of candidates. Labels default to positions, counted from the start of the stream.

        Args:
            scores: the scores of the block, as for `select`. Secret.
            labels: a list, tuple, range, NumPy array, pandas or polars Series or Arrow array of public labels.
        """
        self._add(scores, labels)

    def _add(self, scores: Any, labels: Any, may_wait: bool = False) -> None:
        if getattr(scores, "ndim", 1) and hasattr(scores, "__len__") and not len(scores):
            return
        self._stream.add(as_vector(scores), labels, Draws(), may_wait=may_wait)

    def feed(self, batches: Any, scores: str | None = None, labels: str | None = None) -> None:
        """Add a stream of blocks: arrays of scores, or Arrow record batches (or one table) with these columns.

        The stream may be larger than memory: no block is kept. Small Arrow batches are combined. For blocks without
        labels, this is faster than `update`.

        Args:
            batches: an iterable of blocks, a table, or a reader of record batches.
            scores: the name of the column of scores; None if the blocks are arrays of scores.
            labels: the name of the column of labels.
        """
        if labels is not None and scores is None:
            raise InvalidValue("labels needs scores: name the column of the scores too")
        blocks = stream_of(batches)
        try:
            if scores is None:
                for block in blocks:
                    self._add(block, None, may_wait=True)
                return
            for batch in gathered(blocks, [scores] if labels is None else [scores, labels]):
                named = None if labels is None else _column(batch, labels)
                self._add(_column(batch, scores), named, may_wait=True)
        finally:
            self._stream.part(Draws())  # no block waits longer, so that no copy of the process flips other coins

    def merge(self, other: "Summary") -> "Summary":
        """Return one new summary of the candidates of both. Both old ones stay as they are.

        The candidates of the other summary come after ours in position. Merge each summary once only: a copy would
        bring the same coins again.

        Args:
            other: a summary of other candidates, made with the same parameters.
        """
        if not isinstance(other, Summary):
            raise InvalidType(f"other must be a Summary, got {type(other).__name__}")
        if other is self:
            raise InvalidValue("other must be a summary of other candidates: each summary is merged once only")
        if other._mechanism != self._mechanism:
            raise InvalidValue("summaries must have the same mechanism: create all of them with equal parameters")
        part = merged(self._part, other._part, Draws())
        return Summary(self._mechanism, part, self._steady or other._steady)

    def to_arrow(self) -> "pa.RecordBatch":
        """Return the exact summary as an Arrow record batch of one row. It is secret, like the scores."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra, and a summary that is not written needs no Arrow
        except ImportError:
            raise MissingExtra(f"to_arrow needs PyArrow: {install_command('pyarrow')}") from None
        return pa.record_batch([pa.array([cell], pa.string()) for cell in self._cells().values()], list(COLUMNS))

    def _cells(self) -> Cells:
        part = self._part
        stated: dict[str, Any] = {"epsilon": self._mechanism.epsilon, "steady": self._steady}
        stated |= self._mechanism.claim.arguments()
        label: Cells = {}
        if part is not None:
            if not part.writable:  # for all labels or none: an error reveals nothing about the head
                raise InvalidType(
                    "all labels must be text, numbers, dates or bytes to be written to Arrow:"
                    " give such labels (dates of pandas as a NumPy array), or pickle the summary"
                )
            arrival = part.arrival
            stated |= {"exponent": arrival.exponent, "heads": arrival.size}
            stated |= {"prefix": arrival.prefix, "depth": arrival.depth}
            stated |= {"maximum": part.maximum, "head": part.head, "candidates": part.candidates}
            label["label_kind"], label["label"] = written_label(part.label)
        written = {name: _CELLS[name][0](value) for name, value in stated.items()} | label
        return {name: written.get(name) for name in COLUMNS}

    @staticmethod
    def from_arrow(batch: Any) -> "Summary":
        """Return the summary that `to_arrow` wrote.

        Args:
            batch: a record batch or table of one row.
        """
        if not (hasattr(batch, "to_pylist") and hasattr(batch, "num_rows")):
            raise InvalidType(f"batch must be an Arrow record batch or table, got {type(batch).__name__}")
        if batch.num_rows != 1:
            raise InvalidValue(
                "batch must have one row, like that of Summary.to_arrow: slice it, and merge the summaries"
            )
        return read_cells(withheld(lambda: batch.to_pylist()[0], InvalidValue(_NO_SUMMARY)))

    def result(self) -> Any:
        """Return the label of the selected candidate, or its position without labels: the same value on every call."""
        part = self._part
        if part is None:
            raise InvalidValue("the summary has seen no candidates: add some with update or feed")
        return part.head if part.label is Unlabelled.POSITION else part.label


def read_cells(cells: Cells) -> Summary:
    """The summary with these cells."""
    found = attempted(lambda: _read(cells))  # an error may quote a cell
    if found is None:
        raise InvalidValue(_NO_SUMMARY)
    return found


def _read(cells: Cells) -> Summary:
    found = {name: read(text) for name, (_, read) in _CELLS.items() if (text := cells[name]) is not None}
    stated = {name: found.pop(name) for name in _PARAMETERS if name in found}
    steady, part = stated.pop("steady"), None
    if found:
        arrival = Arrival(found["exponent"], found["heads"], found["prefix"], found["depth"])
        head, candidates = found["head"], found["candidates"]
        is_possible = DEPTH <= arrival.depth <= LONGEST and 0 <= arrival.prefix < 1 << arrival.depth
        if not (is_possible and 0 < arrival.size <= candidates and 0 <= head < candidates):
            raise ValueError
        part = Part(arrival, found["maximum"], head, read_label(cells["label_kind"], cells["label"]), candidates)
    [kind] = [kind for kind in MECHANISMS.values() if kind.has_summary]
    return Summary(kind(**stated), part, steady)


def _column(batch: Any, name: str) -> Any:
    missing = InvalidValue(f"the stream has no column {name[:40]!r}: name a column of its batches")
    return withheld(lambda: batch[name], missing, (KeyError, IndexError, TypeError))


# Streams of Arrow batches.

ROWS = 1 << 19


def stream_of(batches: Any) -> Iterator[Any]:
    # The blocks of a stream. A single table is a stream, too: of its batches if it is Arrow, or of itself.
    if hasattr(batches, "to_batches"):
        batches = batches.to_batches()
    elif hasattr(batches, "columns") and hasattr(batches, "shape"):
        batches = [batches]
    wrong = f"batches must be blocks or a table, got {type(batches).__name__}: give a list of blocks or a reader"
    blocks: Iterator[Any] = withheld(lambda: iter(batches), InvalidType(wrong), TypeError)
    return blocks


def gathered(batches: Iterable[Any], columns: list[str], rows: int = ROWS) -> Iterator[Any]:
    """The same rows in the same order, Arrow record batches of one schema as tables of at least `rows` rows."""
    # Only these columns wait, so that a wide table costs no memory. The reader notices one that is missing.
    waiting: list[Any] = []
    size = 0
    for whole in batches:
        batch = _narrowed(whole, columns)
        if waiting and not (_is_record_batch(batch) and batch.schema.equals(waiting[0].schema)):
            yield _table(waiting)
            waiting, size = [], 0
        if not _is_record_batch(batch):
            yield batch
            continue
        waiting.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield _table(waiting)
            waiting, size = [], 0
    if waiting:
        yield _table(waiting)


def _is_record_batch(batch: Any) -> bool:
    return type(batch).__module__.startswith("pyarrow") and type(batch).__name__ == "RecordBatch"


def _narrowed(batch: Any, columns: list[str]) -> Any:
    if not _is_record_batch(batch):
        return batch
    return batch.select([name for name in columns if name in batch.schema.names])


def _table(batches: list[Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - a batch of Arrow comes with it

    return pa.Table.from_batches(batches)
