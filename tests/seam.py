"""The one file through which behavioural tests look inside dpselect: a redesign ports this file, and no test.

Everything here is secret or random in a released answer: the bits, the coins and the outcomes of selections; the counts
and scores that reach a mechanism; the salts that decide which rows of a person count. `tests/behaviour` sees dpselect
through its public names and through this file only (`tests/behaviour/test_imports.py` checks it).

* Randomness: `ScriptedBits` writes the bits down, `coin` and `coins` read them, `distribution` and `law` follow every
  outcome with its exact probability, and `salted` fixes the salts.
* Counts: `counts`, `places`, `quantile_scores` and `tallied` return what an engine would hand to a mechanism.
* Questions: `Recorder` fixes the outcomes of selections and writes down their scores; `answers` follows every outcome
  of a question, from a table to the value of its answer.
* Settings: what tests cannot wait for, such as long lists or the tick of a clock.
"""

import hashlib
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, groupby
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import dpselect
from dpselect.ledger import file as ledger_file
from dpselect.mechanisms import summary as part
from dpselect.mechanisms import unlisted
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.unlisted import Finding
from dpselect.questions import Mode, most, splitting
from dpselect.questions.quantiles import OverRange
from dpselect.questions.rows import quantile_score_runs
from dpselect.selection.draws import Draws
from dpselect.selection.races import Arrival
from dpselect.tables import domains, files
from dpselect.tables.candidates import public_values
from dpselect.tables.duckdb.engine import DuckDBEngine, DuckDBTally
from dpselect.tables.duckdb.files import Keeper, source_of
from dpselect.tables.kinds import Kind, public_span
from tests import reference

# Bits.


class BitsExhausted(Exception):
    """A test has written too few bits."""


class ScriptedBits(Draws):
    """A finite sequence of bits that raises an error when it runs dry.

    >>> ScriptedBits("0110").bits(3)
    3
    """

    def __init__(self, script: str | Iterable[int]) -> None:
        self._script = "".join(map(str, script))
        self.used = 0

    def bits(self, count: int) -> int:
        taken = self._script[self.used : self.used + count]
        if len(taken) < count:
            raise BitsExhausted("the script of bits is used up: give it more bits")
        self.used += count
        return int(taken or "0", 2)

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        return np.array([self.bits(width) for _ in range(count)], dtype=f"u{width // 8}")


# Every outcome with its exact probability.
#
# A coin with exponent g is replaced by one with the rational probability (1/3)**g. Since 1/3 < 1/e, whatever is cold
# for exp(-g) is cold for (1/3)**g as well, so the kernels' shortcuts stay valid and every probability is rational.


class Refused(Exception):
    """A rejection sampler starts over; what it then does is what it did before."""


def heads_probability(exponent: Any) -> Fraction:
    exponent = Fraction(exponent)
    assert exponent.denominator == 1
    return Fraction(1, 3) ** int(exponent)


class BranchingDraws(Draws):
    """Replays a list of choices, then takes the first option of every further choice and notes the others."""

    def __init__(self, path: Sequence[int]) -> None:
        self.path = list(path)
        self.taken: list[int] = []
        self.open: list[list[int]] = []
        self.probability = Fraction(1)

    def choose(self, probabilities: Sequence[Fraction]) -> int:
        assert sum(probabilities) == 1
        assert all(p >= 0 for p in probabilities)
        depth = len(self.taken)
        possible = [option for option, p in enumerate(probabilities) if p > 0]
        if depth < len(self.path):
            option = self.path[depth]
        else:
            option = possible[0]
            self.open.extend([*self.taken, other] for other in possible[1:])
        self.taken.append(option)
        self.probability *= probabilities[option]
        return option

    def coin(self, probability: Fraction) -> bool:
        return self.choose([1 - probability, probability]) == 1

    def first_octets(self, levels, lines):
        """Levels are gaps, or scores: then the first line is 8 ln 2 below the best one.

        The best is a whole number and the rate one in the tests.
        """
        if getattr(lines, "is_score", False):
            levels = round(lines.near[0] + 8 * math.log(2)) - levels
        heads = np.array([self.coin(heads_probability(gap.item())) for gap in levels], dtype=bool)
        return heads, np.empty(0, np.intp), np.empty(0, np.uint8)

    def finish(self, exponents, prefixes, depths):
        """The known bits are zeros, or ones: then U is in the last cell, whose start is below the probability."""
        size = exponents.approximate.size
        known, first = np.broadcast_to(depths, size).tolist(), np.broadcast_to(prefixes, size).tolist()
        assert all(prefix in (0, 2**depth - 1) for prefix, depth in zip(first, known, strict=True))
        return np.array(
            [self.coin(heads_probability(exponents.exact(i)) * 2 ** known[i] - first[i]) for i in range(size)],
            dtype=bool,
        )

    def survivors(self, count, zeros):
        return np.array([i for i in range(count) if self.coin(Fraction(1, 2**zeros))], dtype=np.int64)

    @staticmethod
    def arrival(exponent, size, draws):
        return Arrival(exponent, size, 0, 0)

    @staticmethod
    def earlier(first, second, draws):
        """Thin the heads of the lower run against the higher one; the first of those that stay is in either run."""
        exponent, heads = min(first.exponent, second.exponent), []
        for run in (first, second):
            p = heads_probability(run.exponent - exponent)
            heads.append(
                draws.choose([math.comb(run.size, k) * p**k * (1 - p) ** (run.size - k) for k in range(run.size + 1)])
            )
        stay = Arrival(exponent, sum(heads), 0, 0)
        return (0 if draws.index(stay.size) < heads[0] else 1), stay

    def flip(self, exponent, zeros=0):
        return self.coin(heads_probability(exponent) * 2**zeros)

    def flip_between(self, near, further):
        assert further > 0
        near, far = heads_probability(near), heads_probability(near + further)
        return self.coin((near - far) / (1 - far))

    def index(self, bound):
        return self.choose([Fraction(1, bound)] * bound)

    def index_at_once(self, bound):
        return self.index(bound)

    def indices_at_once(self, bounds):
        return self.indices(bounds)

    def indices(self, bounds):
        return np.array([self.index(int(bound)) for bound in bounds], dtype=np.int64)

    def indices_below(self, bound, tries):
        return np.array([self.index(bound) for _ in range(tries)], dtype=np.int64)


def distribution(run: Callable[[Draws], Any]) -> dict[Any, Fraction]:
    """The exact distribution of what `run` returns; refused runs are left out and the rest is scaled to one."""
    totals: dict[Any, Fraction] = defaultdict(Fraction)
    paths: list[list[int]] = [[]]
    while paths:
        draws = BranchingDraws(paths.pop())
        try:
            with patch.multiple(part, draw_arrival=draws.arrival, earlier=draws.earlier):
                outcome = run(draws)
        except Refused:
            outcome = Refused
        totals[outcome] += draws.probability
        paths.extend(draws.open)
    assert sum(totals.values()) == 1
    refused = totals.pop(Refused, Fraction(0))
    return {outcome: probability / (1 - refused) for outcome, probability in totals.items()}


@contextmanager
def drawing(draws: Draws) -> Iterator[None]:
    """Whatever the package draws, it draws from here."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("dpselect.") and vars(module).get("Draws") is Draws:
                stack.enter_context(patch.object(module, "Draws", lambda: draws))
        yield


def law(run: Callable[[], Any]) -> dict[Any, Fraction]:
    """The exact distribution of what public code returns, with coins (1/3)**g in the place of exp(-g).

    Proposals of a rejection sampler are made once: if all of them are refused, so is the run.
    """

    def once(draws: BranchingDraws) -> Any:
        with drawing(_once(draws)):
            return run()

    return distribution(once)


def _once(draws: BranchingDraws) -> BranchingDraws:
    """The draws, of which a rejection sampler may ask for a batch of one proposal, once."""
    propose, proposed = draws.indices_below, []

    def one(bound: int, tries: int) -> Any:
        proposed.append(bound)
        if len(proposed) > 1:
            raise Refused
        return propose(bound, 1)

    draws.indices_below = one  # type: ignore[method-assign]
    return draws


def coin(exponent: Fraction, bits: str) -> bool:
    """Flip one coin U < exp(-exponent), where U starts with these bits; `BitsExhausted` if they do not decide."""
    return ScriptedBits(bits).flip(exponent)


def coins(exponents: Sequence[Fraction], words: Sequence[int], more: str = "") -> list[bool]:
    """Flip many coins at once, each from a word of 32 bits, with more bits for those that it does not decide."""

    class Batch:
        approximate = np.array([float(exponent) for exponent in exponents])

        def exact(self, index: int) -> Fraction:
            return exponents[index]

    script = ScriptedBits("".join(f"{word:032b}" for word in words) + more)
    flags: list[bool] = script.finish(Batch(), 0, 0).tolist()
    return flags


@contextmanager
def salted(salt: int) -> Iterator[None]:
    """All salts are a function of this number: which groups, values and rows of a person count is fixed."""

    def system_bytes(count: int) -> bytes:
        return hashlib.shake_128(f"{salt}:{count}".encode()).digest(count)

    with patch("os.urandom", system_bytes):
        yield


# Counts.


def opened(rows, engine="duckdb", *, types=None, **options):
    """A table of these columns (name to values), in Arrow's own types or in those that are given."""
    columns = {name: pa.array(values, (types or {}).get(name)) for name, values in rows.items()}
    return in_writing(dpselect.open_table(pa.table(columns), engine=engine, **options))


def refilled(table: Any, source: Any) -> Any:
    """The table with the rows of another source of the same schema, in much less time than it takes to open one."""
    engine = table._engine
    engine._source = source_of(source)
    engine._keeper = Keeper(engine._source, engine._connection, keep=False)
    return table


def in_writing(table):
    """The table with its text taken as values in writing, as if it came from a source without types such as CSV."""
    columns = table._engine.columns
    columns.update({name: replace(column, untyped=column.kind is Kind.TEXT) for name, column in columns.items()})
    return table


@contextmanager
def answering(kind):
    """Questions are answered by this kind of mechanism, with the parameters that the table derives."""
    with ExitStack() as stack:
        for question in (Mode, OverRange):
            stack.enter_context(patch.object(question, "answer", _answered_by(kind, question.answer)))
        yield


def _answered_by(kind, answer):
    def answered(question, engine, individuals, draw):
        return answer(question, engine, individuals, replace(draw, mechanism=of_kind(kind, draw.mechanism)))

    return answered


def of_kind(kind, mechanism):
    """A mechanism of this kind with the same parameters. Laplace noise on all counts has no other kind."""
    if isinstance(mechanism, dpselect.ReportNoisyMax):
        return mechanism
    return kind(mechanism.epsilon, **mechanism.claim.arguments())


def counts(table, column, candidates, max_values=None, *, other=None):
    """How many individuals have each candidate: one list, or a list for each group."""
    found = table.columns[column]
    listed = public_values(candidates, found).with_other(other, found, table._engine.listed)
    lists = counted(table._engine, found, listed, table._individuals, max_values)
    return lists[0] if table._individuals.groups is None else lists


def counted(engine, column, candidates, who, max_values=None):
    """A list of counts for each group, or one for all."""
    if not hasattr(engine, "scores"):
        return [vector.tolist() for vector in engine.counts(column, candidates, who, max_values)]
    found = engine.scores(column, candidates, who, max_values).toArrow().to_pydict()
    lists = [[None] * len(candidates) for _ in range(1 if who.groups is None else len(who.groups))]
    for group, place, number in zip(found["grp"], found["label"], found["individuals"], strict=True):
        assert lists[group][place] is None
        lists[group][place] = number
    if are_counted_on_the_driver(candidates, who, max_values):  # for one selection; both ways must agree
        assert [engine.counts_of_list(column, candidates, who).tolist()] == lists
    return lists


def are_counted_on_the_driver(candidates, who, max_values):
    from dpselect.tables.spark.engine import are_few  # noqa: PLC0415 - an engine that needs Spark

    return are_few(candidates, who, max_values)


def places(table, column, lower, upper, step=1, *, range="full", max_rows=None):
    """(candidate, whether behind it, individuals) for each different place: one list, or a list for each group."""
    found = table.columns[column]
    data = table._engine.places(found, public_span(lower, upper, step, found, range), table._individuals, max_rows)
    lists = [list(zip(d.places.tolist(), d.between.tolist(), d.individuals.tolist(), strict=True)) for d in data]
    return lists[0] if table._individuals.groups is None else lists


def quantile_scores(table, column, level, *, lower, upper, step=1):
    """The score of every candidate of a quantile: one list, or a list for each group."""
    found = table.columns[column]
    grid = public_span(lower, upper, step, found)
    data = table._engine.places(found, grid, table._individuals)
    lists = [expanded(*quantile_score_runs(d, grid.size, Fraction(level))) for d in data]
    return lists[0] if table._individuals.groups is None else lists


def expanded(scores, lengths):
    return np.repeat(scores, lengths.astype(np.int64)).tolist()


def tallied(table, column, *, domain=None, max_values=None):
    """How many individuals have each value that somebody has: a dict, or a dict for each group. DuckDB only."""
    who = table._individuals
    with table._engine.tally(table.columns[column], domain, who, max_values) as tally:
        rows = tally._cursor.sql("SELECT grp, item, individuals FROM dpselect_tally").fetchall()
    found = [{} for _ in range(1 if who.groups is None else len(who.groups))]
    for group, item, individuals in rows:
        found[group][item] = individuals
    return found[0] if who.groups is None else found


# What reaches a mechanism.
#
# Whatever asks, and however the inside of the library is arranged, scores reach a mechanism by its public methods. All
# of those named `select...` are replaced, for every mechanism; on Spark, where they run on the workers, the counts are
# taken as they are sent there. A way around them would need random bits, and reading those is an error while we record.
#
# Several quantiles need random bits for their sub-places. Here, those of the people at a value are the first ones of a
# sequence, so neighbours share them for all people but one, as the proof has it (theorem 16 of docs/theory.md). All
# cuts are looked at, so that their scores are known.

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

    def beside(self, after: "Selection") -> Iterator[tuple[Any, Any]]:
        """Yield the scores of the candidates here and there, once for each stretch in which both are constant."""
        ends = [np.cumsum(np.array(one.lengths, object)).tolist() for one in (self, after)]
        i = j = start = 0
        while start < self.size:
            while ends[0][i] <= start:
                i += 1
            while ends[1][j] <= start:
                j += 1
            yield self.scores[i], after.scores[j]
            start = min(ends[0][i], ends[1][j])

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
    watch: Callable[[], None] = lambda: None

    def choose(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> int:
        """Write down the scores, and return the position that is chosen."""
        return self.choose_several(mechanism, scores, lengths)[0]

    def choose_several(
        self, mechanism: MechanismBase, scores: Any, lengths: Any, what: str = ONE, k: int | Sequence[int] = 1
    ) -> list[int]:
        """Write down the scores, and return the positions that are chosen."""
        self.watch()
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
def recording(recorder: Recorder, salt: int, engine: str, watch: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Record all selections.

    The bytes of the operating system are a function of the salt and of their number. `watch` is called before each
    selection.
    """
    recorder.watch = watch
    with ExitStack() as stack:
        for own in _all_kinds(MechanismBase):
            for name in [name for name in vars(own) if name.startswith("select")]:
                stack.enter_context(patch.object(own, name, _METHODS.get(name, _unknown)(recorder, name)))
        for name in ("bits", "words"):
            guarded = _guarded(getattr(Draws, name), recorder)
            stack.enter_context(patch.object(Draws, name, guarded))
        stack.enter_context(patch.object(splitting, "People", lambda data, _: _Standing(data, salt)))
        stack.enter_context(patch.object(splitting, "_reach", lambda part, *_: part.size + 1))
        if engine == "spark":
            from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - imported when used

            from dpselect.tables.spark import engine as spark_engine  # noqa: PLC0415 - imported when used

            sent = _sent_to_workers(DataFrame.mapInArrow, recorder)
            stack.enter_context(patch.object(DataFrame, "mapInArrow", sent))
            stack.enter_context(patch.object(spark_engine, "_chosen_by_level", _chosen_from_counts))
        stack.enter_context(salted(salt))
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


# Every answer of a question.


class Branches:
    """Replays a list of choices, then takes the first possible option of every further one and notes the others."""

    def __init__(self, path: Sequence[int]) -> None:
        self.path, self.taken, self.open, self.probability = list(path), list[int](), list[list[int]](), 1.0

    def choose(self, probabilities: Sequence[float]) -> int:
        """Return the option that is taken."""
        possible = [option for option, chance in enumerate(probabilities) if chance > 0]
        if len(self.taken) < len(self.path):
            option = self.path[len(self.taken)]
        else:
            option = possible[0]
            self.open.extend([*self.taken, other] for other in possible[1:])
        self.taken.append(option)
        self.probability *= float(probabilities[option])
        return option


@dataclass(frozen=True)
class Answers:
    """The law of the values of an answer, and what is charged for it."""

    law: dict[Any, float]
    epsilon: Fraction
    delta: Fraction
    rho: float


def answers(ask: Callable[[], Any], salt: int = 7, watch: Callable[[], None] = lambda: None) -> Answers:
    """Follow a question to every value of its answer. What it counts is counted once, with one salt.

    Every selection, set, order and coin is replaced by all of its outcomes, with the probabilities that the mechanism
    states (`pmf`) or that follow from them. A value that nobody has is a uniform one of the rule. `watch` is called
    before each choice.
    """
    law: dict[Any, float] = defaultdict(float)
    charged, paths, counted = set(), [list[int]()], _Counted()
    with ExitStack() as stack:
        current = [Branches([])]

        def choose(probabilities: Sequence[float]) -> int:
            watch()
            return current[0].choose(probabilities)

        _enter_choices(stack, choose)
        _enter_counted(stack, counted)
        stack.enter_context(salted(salt))
        while paths:
            current[0] = Branches(paths.pop())
            counted.calls = 0
            answer = ask()
            law[_hashable(answer.value)] += current[0].probability
            charged.add((answer.epsilon, answer.guarantee.delta, answer.guarantee.zcdp))
            paths.extend(current[0].open)
    assert abs(sum(law.values()) - 1) < 1e-9
    [(epsilon, delta, rho)] = charged
    return Answers(dict(law), epsilon, delta, rho)


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((group, _hashable(own)) for group, own in value.items())
    return tuple(value) if isinstance(value, list) else value


Choose = Callable[[Sequence[float]], int]


def _enter_choices(stack: ExitStack, choose: Choose) -> None:
    """Replace whatever draws."""
    for own in _all_kinds(MechanismBase):
        for name in [name for name in vars(own) if name.startswith("select")]:
            stack.enter_context(patch.object(own, name, _CHOICES.get(name, _undrawn)(choose)))

    def found(finding: Finding, individuals: Any, _: Any) -> Any:
        chances = {count: finding.probability(count) for count in set(individuals.tolist())}
        return np.array([choose([1 - chances[n], chances[n]]) == 1 for n in individuals.tolist()], dtype=bool)

    def unseen(chooser: Any, group: int, count: int, tally: Any) -> list[Any]:
        free = tally.unseen(group, chooser.domain.listed)
        return [free.pop(choose([1 / len(free)] * len(free))) for _ in range(count)]

    stack.enter_context(patch.object(Finding, "found", found))
    stack.enter_context(patch.object(most._Chooser, "_unseen", unseen))
    for name in ("bits", "words"):
        stack.enter_context(patch.object(Draws, name, _undrawn(choose)))


def _undrawn(_: Choose) -> Callable[..., Any]:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise NotRecorded("something is drawn past the branches: teach them that way")

    return fail


def _vector(scores: Any, lengths: Any) -> list[Any]:
    """One score for each candidate."""
    runs = [1] * len(scores) if lengths is None else [int(length) for length in lengths]
    assert sum(runs) < 10**4, "a domain that is too large to follow"
    return [score for score, length in zip(scores, runs, strict=True) for _ in range(length)]


def _one(choose: Choose) -> Callable[..., int]:
    return lambda mechanism, scores, lengths=None, **_: choose(mechanism.pmf(_vector(scores, lengths)))


def _subsets(score: Callable[[Sequence[int], Sequence[int]], int]) -> Callable[..., Any]:
    """Sets of candidates, each a candidate of the mechanism."""

    def replacement(choose: Choose) -> Callable[..., list[int]]:
        def select(mechanism: Any, scores: Any, k: Any, *, lengths: Any = None) -> list[int]:
            vector = _vector(scores, lengths)
            least, most = (k, k) if isinstance(k, int) else k
            sets = [own for size in range(least, most + 1) for own in combinations(range(len(vector)), size)]
            if least == len(vector):
                return list(range(least))
            return list(sets[choose(mechanism.pmf([score(vector, own) for own in sets]))])

        return select

    return replacement


def _sum(counts: Sequence[int], chosen: Sequence[int]) -> int:
    return sum(counts[item] for item in chosen)


def _margin(counts: Sequence[int], chosen: Sequence[int]) -> int:
    return min(counts[i] for i in chosen) - max(count for i, count in enumerate(counts) if i not in chosen)


def _in_order(choose: Choose) -> Callable[..., list[int]]:
    """The largest noisy scores in order: exponential, Laplace or Gumbel noise, the last of which is peeling."""

    def select(mechanism: Any, scores: Any, k: int, *, lengths: Any = None) -> list[int]:
        vector, rate = _vector(scores, lengths), float(mechanism.rate)
        if isinstance(mechanism, dpselect.ExponentialMechanism):
            orders = reference.peeled_orders(vector, mechanism, k)
        elif isinstance(mechanism, dpselect.PermuteAndFlip):
            orders = reference.exponential_orders(vector, rate, k)
        else:
            orders = reference.laplace_orders(vector, rate, k)
        return list(list(orders)[choose(list(orders.values()))])

    return select


_CHOICES: dict[str, Callable[[Choose], Callable[..., Any]]] = {
    "select": _one,
    "select_runs": _one,
    "select_set": _subsets(_sum),
    "select_margin": _subsets(_margin),
    "select_order": _in_order,
}


@dataclass
class _Counted:
    """What an engine has counted for a question, in the order of its calls."""

    results: list[Any] = field(default_factory=list)
    calls: int = 0

    def next(self, count: Callable[[], Any]) -> Any:
        """Return what was counted at this place before, or count."""
        self.calls += 1
        if len(self.results) < self.calls:
            self.results.append(count())
        return self.results[self.calls - 1]


def _enter_counted(stack: ExitStack, counted: _Counted) -> None:
    """Count once, however often the question is asked; tallies stay open until all answers are known."""
    for name in ("counts", "places"):
        own = getattr(DuckDBEngine, name)
        once = _counting_once(own, counted)
        stack.enter_context(patch.object(DuckDBEngine, name, once))
    tally = DuckDBEngine.tally

    @contextmanager
    def tallied_once(*arguments: Any) -> Iterator[Any]:
        yield counted.next(lambda: stack.enter_context(tally(*arguments)))

    found: dict[Any, list[Any]] = {}
    values = DuckDBTally.values

    def values_once(tally: Any, wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
        key = id(tally), tuple(wanted)
        if key not in found:
            found[key] = values(tally, wanted)
        return found[key]

    stack.enter_context(patch.object(DuckDBEngine, "tally", tallied_once))
    stack.enter_context(patch.object(DuckDBTally, "values", values_once))


def _counting_once(count: Callable[..., Any], counted: _Counted) -> Callable[..., Any]:
    return lambda *arguments: counted.next(lambda: count(*arguments))


# What tests cannot wait for.


@contextmanager
def few_compete(most: int) -> Iterator[None]:
    """Of values that nobody listed, only so many of the largest counts compete."""
    with patch.object(unlisted, "MOST", most):
        yield


@contextmanager
def rules_are_tallied() -> Iterator[None]:
    """Even a small domain is counted like one that is too large to list."""
    with patch.object(domains, "_COUNTED_LIKE_A_LIST", 0):
        yield


@contextmanager
def rows_are_kept_at_once() -> Iterator[None]:
    """Rows of files that were written just before are kept, too."""
    with patch.object(files, "_TICK", 0):
        yield


def ledger_settings(path: Any) -> dict[str, object]:
    """How a ledger writes: SQLite's settings of the connection that charges."""
    with ledger_file.Writers(path).writing() as connection:
        return {name: ledger_file.pragma(connection, name) for name in ("synchronous", "journal_mode")}
