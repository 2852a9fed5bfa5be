"""Stands in for the mechanism: writes down the scores that reach it, and returns an outcome that was fixed before.

Whatever asks, and however the inside of the library is arranged, scores reach a mechanism by its public methods. All of
those named `select...` are replaced, for every mechanism; on Spark, where they run on the workers, the counts are taken
as they are sent there. A way around them would need random bits, and reading those is an error while we record.

Several quantiles need random bits for their sub-places. Here, those of the people at a value are the first ones of a
sequence, so neighbours share them for all people but one, as the proof has it (theorem 16 of docs/theory.md). All cuts
are looked at, so that their scores are known.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from dpselect.mechanisms.base import MechanismBase
from dpselect.sampling.bits import SystemEntropy
from dpselect.tables import splitting

ONE, SET, MARGIN, ORDER = "one", "set", "margin", "order"


class NotRecorded(AssertionError):
    """A question took a way that the recorder does not see, or another way than on the neighbour."""


@dataclass(frozen=True)
class Selection:
    """What one selection was made from: runs of equal scores, of length one where they were given one by one.

    It selects one candidate, a set of them by its sum or by its margin, or several in order. `sizes` are the smallest
    and the largest number of candidates.
    """

    mechanism: MechanismBase
    scores: tuple[Any, ...]
    lengths: tuple[int, ...]
    what: str = ONE
    sizes: tuple[int, int] = (1, 1)

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return sum(self.lengths)

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what neighbours must share."""
        return self.mechanism, self.size, self.what, self.sizes

    def drawn(self, rng: Random) -> tuple[int, ...]:
        """Return an outcome, any of which is possible; one candidate is of any run, however short."""
        if self.what == ONE:
            run = rng.choice([number for number, length in enumerate(self.lengths) if length])
            return (sum(self.lengths[:run]) + rng.randrange(self.lengths[run]),)
        chosen = rng.sample(range(self.size), rng.randint(*self.sizes))
        return tuple(chosen) if self.what == ORDER else tuple(sorted(chosen))

    def allows(self, outcome: tuple[int, ...]) -> bool:
        """Return whether this outcome is possible."""
        return self.sizes[0] <= len(outcome) <= self.sizes[1] and all(position < self.size for position in outcome)


@dataclass
class Recorder:
    """Fixes the outcomes on the first table, and repeats them on the second."""

    rng: Random = field(default_factory=Random)
    outcomes: list[tuple[int, ...]] | None = None
    selections: list[Selection] = field(default_factory=list)
    chosen: list[tuple[int, ...]] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    makes_summary: bool = False

    def choose(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> int:
        """Write down the scores, and return the position that is chosen."""
        return self.choose_several(mechanism, scores, lengths)[0]

    def choose_several(
        self, mechanism: MechanismBase, scores: Any, lengths: Any, what: str = ONE, k: int | Sequence[int] = 1
    ) -> list[int]:
        """Write down the scores, and return the positions that are chosen."""
        vector = tuple(np.asarray(scores).tolist()) if hasattr(scores, "dtype") else tuple(scores)
        runs = (1,) * len(vector) if lengths is None else tuple(int(length) for length in lengths)
        least, most = (k, k) if isinstance(k, int) else k
        selection = Selection(mechanism, vector, runs, what, (least, most))
        self.selections.append(selection)
        place = len(self.chosen)
        if self.outcomes is None:
            self.chosen.append(selection.drawn(self.rng))
        elif place < len(self.outcomes) and selection.allows(self.outcomes[place]):
            self.chosen.append(self.outcomes[place])
        else:
            self.fail("a neighbour makes more selections, or among fewer candidates")
        return list(self.chosen[-1])

    def fail(self, why: str) -> None:
        """Keep the reason, as an engine may withhold what is raised inside of it, and raise."""
        self.trouble.append(why)
        raise NotRecorded(why)


@contextmanager
def recording(recorder: Recorder, salt: int, engine: str) -> Iterator[None]:
    """Record all selections.

    The bytes of the operating system are a function of the salt and of their number.
    """

    def system_bytes(count: int) -> bytes:
        return hashlib.shake_128(f"{salt}:{count}".encode()).digest(count)

    with ExitStack() as stack:
        for own in _all_kinds(MechanismBase):
            for name in [name for name in vars(own) if name.startswith("select")]:
                stack.enter_context(patch.object(own, name, _METHODS.get(name, _unknown)(recorder, name)))
        for name in ("bits", "words"):
            guarded = _guarded(getattr(SystemEntropy, name), recorder)
            stack.enter_context(patch.object(SystemEntropy, name, guarded))
        stack.enter_context(patch.object(splitting, "People", lambda data, _: _Standing(data, salt)))
        stack.enter_context(patch.object(splitting, "_reach", lambda part, *_: part.size + 1))
        if engine == "spark":
            from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - imported when used

            from dpselect.tables.spark import engine as spark_engine  # noqa: PLC0415 - imported when used

            sent = _sent_to_workers(DataFrame.mapInArrow, recorder)
            stack.enter_context(patch.object(DataFrame, "mapInArrow", sent))
            stack.enter_context(patch.object(spark_engine, "_chosen_by_level", _chosen_from_counts))
        stack.enter_context(patch("os.urandom", system_bytes))
        yield


class _Standing(splitting.People):
    """People whose sub-places are a function of the salt, of their value, and of how many others share it."""

    def __init__(self, data: Any, salt: int) -> None:
        super().__init__(data, None)
        pairs = zip(self.values.tolist(), self.numbers.tolist(), strict=True)
        subs = [np.sort(_sub_places(f"{salt}:{value}", number)) for value, number in pairs]
        self._subs = np.concatenate([np.empty(0, np.uint32), *subs])
        self._drawn[:] = True


def _sub_places(key: str, number: int) -> Any:
    return np.frombuffer(hashlib.shake_128(key.encode()).digest(4 * number), np.uint32)


def _all_kinds(kind: type[MechanismBase]) -> list[type[MechanismBase]]:
    return [kind, *(below for own in kind.__subclasses__() for below in _all_kinds(own))]


def _select(recorder: Recorder, name: str) -> Callable[..., int]:
    return lambda mechanism, scores, **options: recorder.choose(mechanism, scores)


def _select_runs(recorder: Recorder, name: str) -> Callable[..., int]:
    return lambda mechanism, scores, lengths, **options: recorder.choose(mechanism, scores, lengths)


def _select_rows(recorder: Recorder, name: str) -> Callable[..., Any]:
    return lambda mechanism, scores, **options: np.array([recorder.choose(mechanism, row) for row in scores], np.int64)


def _several(what: str) -> Callable[..., Any]:
    """Replaces a method that selects several candidates."""

    def replacement(recorder: Recorder, name: str) -> Callable[..., list[int]]:
        return lambda mechanism, scores, k, lengths=None: recorder.choose_several(mechanism, scores, lengths, what, k)

    return replacement


def _unknown(recorder: Recorder, name: str) -> Callable[..., Any]:
    return lambda *arguments, **options: recorder.fail(f"the recorder does not know the method {name}: teach it")


_METHODS = {
    "select": _select,
    "select_runs": _select_runs,
    "select_rows": _select_rows,
    "select_set": _several(SET),
    "select_margin": _several(MARGIN),
    "select_order": _several(ORDER),
}


def _guarded(read: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Bits for nobody, but for the summaries that we make ourselves."""

    def guarded(*arguments: Any) -> Any:
        if not recorder.makes_summary:
            recorder.fail("random bits were read past the recorder: teach it that way")
        return read(*arguments)

    return guarded


# Spark.


def _sent_to_workers(send: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Records the counts that are sent to a mechanism on Spark's workers, and sends back what was chosen."""

    def sent(frame: Any, function: Any, schema: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(getattr(function, "mechanism", None), MechanismBase):
            return send(frame, function, schema, *arguments, **options)
        rows = [_summary_of_group(own, function, recorder) for own in _counted_groups(frame)]
        return frame.sparkSession.createDataFrame(pa.Table.from_pylist(rows), schema)

    return sent


def _summary_of_group(counted: list[dict[str, Any]], chooser: Any, recorder: Recorder) -> dict[str, Any]:
    """A summary, as workers send it, of the one candidate that was chosen in a group."""
    group = counted[0]["grp"]
    left = [row for row in counted if row["label"] not in chooser.taken.get(group, [])]
    position = recorder.choose(chooser.mechanism, [row["individuals"] for row in left])
    recorder.makes_summary = True
    summary = chooser.mechanism.summary()
    summary.update([0], [left[position]["label"]])
    recorder.makes_summary = False
    return {"grp": group, **summary.to_arrow().to_pylist()[0]}


def _chosen_from_counts(scores: Any, method: Any, mechanism: MechanismBase) -> list[list[Any]]:
    """Chooses from the counts of all candidates; the mechanism would get how many have each count.

    Runs in the order of their scores are no vector in which neighbours could be compared, candidate by candidate.
    """
    found = []
    for own in _counted_groups(scores):
        positions = method.chosen(mechanism, [row["individuals"] for row in own])
        found.append([own[position]["label"] for position in positions])
    return found


def _counted_groups(frame: Any) -> list[list[dict[str, Any]]]:
    """The candidates of each group with their counts, in the order of their labels."""
    counted = frame.toArrow().sort_by([("grp", "ascending"), ("label", "ascending")]).to_pylist()
    return [list(own) for _, own in groupby(counted, key=lambda row: row["grp"])]
