"""The privacy loss of two recordings, the faults that a case has, and the smallest table that still has one.

Let a question make selections from the scores q_1, q_2, ... on one table and q'_1, q'_2, ... on its neighbour, with the
outcomes frozen. A selection at rate c has a privacy loss of at most c times the range of the changes d = q' - q (see
`mechanisms.parameters`), and the losses of all selections of an answer add up: those of the groups, which are drawn
independently, and those of the rounds of a top-k, each given the outcomes before it. The sum must be at most the
epsilon that was charged. That bound is exact arithmetic; where candidates are few, the exact loss is computed too.

  one candidate    the range of the changes is max d - min d
  a set of k       the sum of the k largest d minus the sum of the k smallest
  a margin         at most 2 (max d - min d): the smallest count inside and the largest outside move by min d to max d
  k in order       k (max d - min d) with exponential or Gumbel noise; with Laplace noise the sum of all |d|

A ledger in zCDP counts parts, each with its share of epsilon. So no loss, which for one candidate, a set or a margin by
the exponential mechanism is the range of the log-ratios, may exceed the share of its selection, and the rhos of all
selections may not add up to more than the answer guarantees.

The random choice of a person's groups and values is fixed by the salt, and the same on both tables. If the inequality
holds for each salt, then it holds for a random one.
"""

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import dpselect
from dpselect import ExponentialMechanism, ReportNoisyMax
from dpselect.errors import DPSelectError
from dpselect.mechanisms.privacy import LAPLACE, PURE_LOSS
from tests.attacks.neighbouring.cases import Case, Question, Wanted, random_case, redrawn
from tests.attacks.neighbouring.neighbours import Rows, individuals, neighbours_of, without
from tests.attacks.neighbouring.sources import NotWritten
from tests.attacks.neighbouring.views import viewed
from tests.reference import exponential_orders, laplace_orders, peeled_orders
from tests.seam import MARGIN, ONE, ORDER, SET, Recorder, Selection, recording, rows_are_kept_at_once
from tests.top_k.exact import margin, sets, total

_FEW = 20  # selections and candidates of which probabilities are computed
_FEW_ITEMS = 5  # candidates of which the probabilities of all sets or orders are computed
_SLACK = 1e-9
_STRANGERS = "one person moves the counts of another"
_TRIES = 20  # of a question that is refused


@dataclass(frozen=True)
class Outcome:
    """What a question did on one table: what is public, what was frozen, and the secret scores."""

    shown: str  # the answer or the refusal
    epsilon: Fraction | None  # what was charged; None if it was refused
    selections: tuple[Selection, ...] = ()
    chosen: tuple[tuple[int, ...], ...] = ()
    rho: float | None = None  # what the answer guarantees
    trouble: str | None = None


@dataclass(frozen=True)
class Fault:
    """A question that tells two neighbours apart by more than it charges."""

    why: str
    case: Case
    before: Rows
    after: Rows
    question: Question
    salt: int
    outcomes: tuple[Outcome, Outcome]


@dataclass
class Tally:
    """How much was looked at."""

    cases: int = 0
    pairs: int = 0  # of outcomes of a question
    refused: int = 0
    felt: int = 0  # pairs whose scores differ
    unwritten: int = 0  # cases that a library could not write
    worst: Fraction = Fraction(0)  # the largest loss as a share of epsilon

    def count(self, first: Outcome, second: Outcome) -> None:
        """Count a pair without a fault."""
        self.pairs += 1
        self.refused += first.epsilon is None
        if first.epsilon is not None:
            loss = loss_bound(first.selections, second.selections)
            self.felt += loss > 0
            self.worst = max(self.worst, loss / first.epsilon if loss else Fraction(0))

    def __str__(self) -> str:
        shares = f"{self.felt} felt, {self.refused} refused, largest loss {float(self.worst):g} epsilon"
        return f"{self.cases} cases ({self.unwritten} not written), {self.pairs} pairs: {shares}"


# The loss.


def loss_bound(before: Sequence[Selection], after: Sequence[Selection]) -> Fraction:
    """The sum of c times the range of the changes over the selections."""
    return sum((_loss(a, b) for a, b in zip(before, after, strict=True)), Fraction(0))


def _loss(before: Selection, after: Selection) -> Fraction:
    """A bound on the loss of one selection: the rate times what is stated above."""
    changes = sorted(Fraction(new) - Fraction(old) for old, new in before.beside(after))
    spread, most = changes[-1] - changes[0], before.sizes[1]
    if before.what == SET:
        assert len(changes) == before.size  # one by one
        moved = sum(changes[-most:]) - sum(changes[:most])
    elif before.what == MARGIN:
        moved = 2 * spread
    elif before.what == ORDER:
        moved = sum(map(abs, changes)) if isinstance(before.mechanism, ReportNoisyMax) else most * spread
    else:
        moved = spread
    return before.mechanism.rate * moved


def _share(selection: Selection) -> Fraction:
    """The part of epsilon that pays for a selection."""
    one_shot = selection.what == ORDER and not isinstance(selection.mechanism, ReportNoisyMax)
    return selection.mechanism.epsilon * (selection.sizes[1] if one_shot else 1)


def _rho(before: Selection, after: Selection) -> float:
    """The rho of a selection: of its loss, or of Laplace noise on each count."""
    if before.what != ORDER:
        loss = _loss(before, after)
        return before.mechanism.loss.zcdp(loss) if loss else 0.0
    if isinstance(before.mechanism, ReportNoisyMax):
        moves = [before.mechanism.rate * abs(Fraction(new) - Fraction(old)) for old, new in before.beside(after)]
        return sum(LAPLACE.zcdp(move) for move in moves if move)
    loss = _loss(before, after)
    return PURE_LOSS.zcdp(loss) if loss else 0.0


def exact_loss(before: Sequence[Selection], after: Sequence[Selection]) -> float | None:
    """The largest logarithm of the ratio of the probabilities of an answer; None if there are too many of them."""
    if len(before) > _FEW or not all(map(_is_small, before)):
        return None
    ratios = [_log_ratios(a, b) for a, b in zip(before, after, strict=True)]
    return max(sum(float(r.max()) for r in ratios), sum(float(-r.min()) for r in ratios))


def _log_ratios(before: Selection, after: Selection) -> Any:
    """The logarithms of the ratios of the probabilities, where floats can hold both."""
    [p, q] = [_probabilities(one) for one in (before, after)]
    seen = (p > 0) & (q > 0)
    return np.log(p[seen]) - np.log(q[seen])


def _is_small(selection: Selection) -> bool:
    if selection.what == ONE:
        return selection.size <= _FEW
    return selection.size <= _FEW_ITEMS and (selection.what != ORDER or selection.sizes[1] <= 2)


def _probabilities(selection: Selection) -> Any:
    """The probability of every outcome."""
    mechanism, scores = selection.mechanism, selection.scores
    if selection.what == ONE:
        return mechanism.pmf(np.repeat(scores, selection.lengths))
    if selection.what == ORDER:
        return np.array(list(_orders(mechanism, scores, selection.sizes[1]).values()))
    outcomes, score = sets(selection.size, *selection.sizes), total if selection.what == SET else margin
    if len(outcomes[0]) == selection.size:  # the set of all has no outside, and no rival
        return np.ones(1)
    return mechanism.pmf([score(scores, chosen) for chosen in outcomes])


def _orders(mechanism: Any, scores: Sequence[int], k: int) -> Any:
    if isinstance(mechanism, ExponentialMechanism):
        return peeled_orders(scores, mechanism, k)
    orders = laplace_orders if isinstance(mechanism, ReportNoisyMax) else exponential_orders
    return orders(scores, float(mechanism.rate), k)


# One case.


def search(seed: int, wanted: Wanted, tally: Tally, most: int = 3) -> Iterator[Fault | None]:
    """The faults of one random case after another, for ever; None after each case."""
    for number in itertools.count():
        rng = Random(f"{seed}:{number}")
        case = replace(random_case(rng, wanted), mechanism=wanted.mechanisms[number % len(wanted.mechanisms)])
        tally.cases += 1
        try:
            case = viewed(case, rng, wanted.methods) if wanted.views else case
            yield from faults_of(case, rng, tally, most)
        except NotWritten:
            tally.unwritten += 1
        yield None


def faults_of(case: Case, rng: Random, tally: Tally, most: int) -> Iterator[Fault]:
    """The faults of all questions of a case on some of its neighbours."""
    salt = rng.randrange(2**64)
    case, first = _answered(case, salt, rng)
    for neighbour in neighbours_of(case, rng, most):
        second = replayed(case, neighbour, salt, first)
        for question, outcomes in zip(case.questions, zip(first, second, strict=True), strict=True):
            why = difference(*outcomes)
            if why is None:
                tally.count(*outcomes)
            else:
                yield Fault(why, case, case.rows, neighbour, question, salt, outcomes)
    yield from _strangers_moved(case, salt, rng, first)


def _answered(case: Case, salt: int, rng: Random) -> tuple[Case, list[Outcome]]:
    """The case with other questions for those that are refused, most likely, and what they do on its own rows."""
    asked = []
    with opened(case, case.rows) as ask:
        for question in case.questions:
            tries = [(question, ask(question, Recorder(rng), salt))]
            while tries[-1][1].epsilon is None and tries[-1][1].trouble is None and len(tries) < _TRIES:
                another = redrawn(tries[-1][0], case, rng)
                tries.append((another, ask(another, Recorder(rng), salt)))
            asked.append(tries[-1])
    return replace(case, questions=tuple(question for question, _ in asked)), [outcome for _, outcome in asked]


def replayed(case: Case, rows: Rows, salt: int, frozen: Sequence[Outcome]) -> list[Outcome]:
    """What each question of a case does on these rows, with the outcomes of another table."""
    with opened(case, rows) as ask:
        return [
            ask(question, Recorder(outcomes=None if first.epsilon is None else list(first.chosen)), salt)
            for question, first in zip(case.questions, frozen, strict=True)
        ]


@contextmanager
def opened(case: Case, rows: Rows) -> Iterator[Callable[[Question, Recorder, int], Outcome]]:
    """A way to ask a table of these rows: it returns what a question does."""
    just_written = rows_are_kept_at_once()  # rows of files that were written just before are kept too
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), just_written:
        warnings.simplefilter("ignore")  # of the libraries that write the table
        folder = Path(name) / "table"
        folder.mkdir()
        try:
            source = case.write(rows, folder)
        except Exception as error:  # of pandas, polars, Arrow or DuckDB: it has not reached us
            raise NotWritten from error
        ledger = dpselect.Ledger(Path(name) / "ledger", budget=10**6) if case.with_ledger else None
        options: dict[str, Any] = {"person": case.person, "neighbours": case.neighbours, "engine": case.engine}
        try:
            table = dpselect.open_table(source, ledger=ledger, keep=case.source.keep, **{**options, **case.options})
        except DPSelectError as error:
            refusal = Outcome(_shown(error).replace(name, ""), None)
            yield lambda question, recorder, salt: refusal
            return
        schema = {name: column.type for name, column in table.columns.items()}

        def ask(question: Question, recorder: Recorder, salt: int) -> Outcome:
            found = _outcome(table, question, recorder, salt, case, ledger)
            return replace(found, shown=f"{found.shown} with the schema {schema}".replace(name, ""))

        yield ask


def _outcome(table: Any, question: Question, recorder: Recorder, salt: int, case: Case, ledger: Any) -> Outcome:
    spent = None if ledger is None else ledger.spent
    try:
        with recording(recorder, salt, case.engine):
            answer = question.ask(table, case.mechanism.name)
    except DPSelectError as error:
        trouble = recorder.trouble[0] if recorder.trouble else None
        return Outcome(_shown(error), None, trouble=trouble)
    except Exception as error:  # what is raised is ours, that is promised
        return Outcome("", None, trouble=(*recorder.trouble, f"{type(error).__name__}: {error}")[0])
    charged = answer.epsilon if ledger is None else min(answer.epsilon, ledger.spent - spent)
    missing = answer.epsilon and not recorder.selections  # what costs nothing needs none
    trouble = "an answer came out, and no selection was recorded" if missing else None
    drawn = tuple(recorder.selections), tuple(recorder.chosen)
    return Outcome(repr(answer.value), charged, *drawn, answer.guarantee.zcdp, trouble)


def _shown(error: DPSelectError) -> str:
    return f"{type(error).__name__}: {error}"


def difference(first: Outcome, second: Outcome) -> str | None:
    """What tells the outcomes of two neighbours apart; None if the charge covers it."""
    trouble = first.trouble or second.trouble
    if trouble is not None:
        return trouble
    if first.epsilon is None or second.epsilon is None:
        return None if first.shown == second.shown else "a row decides whether, or how, the question is refused"
    return _seen_past_mechanism(first, second) or _excess(first, second, first.epsilon)


def _seen_past_mechanism(first: Outcome, second: Outcome) -> str | None:
    """What is public must be the same if the mechanism's outcomes are."""
    if first.shown != second.shown:
        return "the same selections give different answers: a row reaches the answer past the mechanism"
    if first.epsilon != second.epsilon:
        return "a row decides what is charged"
    public = [[s.public for s in outcome.selections] for outcome in (first, second)]
    return None if public[0] == public[1] else "a row decides which selections are made"


def _excess(first: Outcome, second: Outcome, epsilon: Fraction) -> str | None:
    """By how much the loss is larger than what was charged."""
    loss = loss_bound(first.selections, second.selections)
    if loss > epsilon:
        return f"the scores allow a loss of {float(loss):g}, and {float(epsilon):g} is charged"
    exact = exact_loss(first.selections, second.selections)
    if exact is not None and exact > epsilon + _SLACK:
        return f"the probabilities have a loss of {exact:g}, and {float(epsilon):g} is charged"
    return _excess_of_shares(first, second)


def _excess_of_shares(first: Outcome, second: Outcome) -> str | None:
    """By how much one selection exceeds its share, or all of them the rho that is guaranteed."""
    pairs = list(zip(first.selections, second.selections, strict=True))
    for before, after in pairs:
        loss, share = _loss(before, after), _share(before)
        if loss > share:
            return f"the scores allow a range of {float(loss):g} in a share of {float(share):g}"
        span = exact_span(before, after)
        is_bounded = isinstance(before.mechanism, ExponentialMechanism) and before.what != ORDER
        if is_bounded and span is not None and span > share + _SLACK:
            return f"the log-ratios of a selection span more than the share of {float(share):g}"
    rho, charged = sum(_rho(*pair) for pair in pairs), first.rho
    if charged is None or rho <= charged * (1 + _SLACK):
        return None
    return f"a rho of {rho:g}, and {charged:g} is guaranteed"


def exact_span(before: Selection, after: Selection) -> float | None:
    """The range of the logarithms of the ratios of the probabilities of a selection; None if it has too many."""
    if not _is_small(before):
        return None
    ratios = _log_ratios(before, after)
    return float(ratios.max() - ratios.min())


def _strangers_moved(case: Case, salt: int, rng: Random, first: Sequence[Outcome]) -> Iterator[Fault]:
    """Counts are sums over people: without one, the others count as before, in the groups that they were kept in."""
    people = individuals(case.rows, case.person)
    counting = [i for i, question in enumerate(case.questions) if question.method in ("mode", "top_k")]
    if case.person is None or len(people) < 2 or not counting:
        return
    number = rng.randrange(len(people))
    others = without(case, number)
    parts = [replayed(case, rows, salt, first) for rows in (people[number], others)]
    for i in counting:
        whole, own, rest = ([s.scores for s in outcomes[i].selections] for outcomes in (first, *parts))
        # Candidates that are left out are selected by -1 - count: one of two such scores has one too many.
        sums = [tuple(a + b + (a < 0) for a, b in zip(*pair, strict=True)) for pair in zip(own, rest, strict=True)]
        if first[i].epsilon is not None and whole != sums:
            outcomes = (first[i], parts[1][i])
            yield Fault(_STRANGERS, case, case.rows, others, case.questions[i], salt, outcomes)


# A smaller table with a fault.


def shrunk(fault: Fault, rng: Random) -> Fault:
    """The fault with rows, public values and files taken away, as long as there is one."""
    smaller = None if fault.why == _STRANGERS else next(_smaller_faults(fault, rng), None)
    while smaller is not None:
        fault, smaller = smaller, next(_smaller_faults(smaller, rng), None)
    return fault


def _smaller_faults(fault: Fault, rng: Random) -> Iterator[Fault]:
    for case, before, after, question in _smaller(fault):
        single = replace(case, questions=(question,), rows=before)
        with opened(single, before) as ask:
            first = ask(question, Recorder(rng), fault.salt)
        [second] = replayed(single, after, fault.salt, [first])
        why = difference(first, second)
        if why is not None:
            yield Fault(why, single, before, after, question, fault.salt, (first, second))


def _smaller(fault: Fault) -> Iterator[tuple[Case, Rows, Rows, Question]]:
    case, before, after, question = fault.case, fault.before, fault.after, fault.question
    for row in (row for row in dict.fromkeys(before) if row in after):
        yield case, _without(before, row), _without(after, row), question
    for listed in _shorter(question.listed):
        yield case, before, after, question.with_list(listed)
    if question.groups is not None:
        for listed in _shorter(question.groups.listed):
            yield case, before, after, replace(question, groups=replace(question.groups, listed=listed))
    if case.layout.files > 1:
        yield replace(case, layout=replace(case.layout, files=1)), before, after, question
    if case.layout.alias is not None:
        yield replace(case, layout=replace(case.layout, alias=None)), before, after, question


def _shorter(listed: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if len(listed) > 1:
        for i in range(len(listed)):
            yield listed[:i] + listed[i + 1 :]


def _without(rows: Rows, row: Any) -> Rows:
    i = rows.index(row)
    return rows[:i] + rows[i + 1 :]


def described(fault: Fault) -> str:
    """The fault in words: what to do to see it."""
    case = fault.case
    lines = [
        f"FAULT: {fault.why}",
        f"  source: {case.source.name}, {case.layout}, engine {case.engine}, {case.mechanism.title}",
        f"  columns: {', '.join(f'{column.name} ({column.type.name})' for column in case.columns)}",
        f"  open_table(..., person={case.person!r}, neighbours={case.neighbours!r}) with {case.options}",
        f"  question: {fault.question}",
        *(f"  {name}: {row.values} in file {row.file}" for name, rows in _named(fault) for row in rows),
    ]
    for name, outcome in zip(("before", "after"), fault.outcomes, strict=True):
        lines.append(f"  {name}: {outcome.shown}")
        lines += [f"    {s.mechanism!r} on scores {s.scores}, lengths {s.lengths}" for s in outcome.selections]
    return "\n".join([*lines, *_losses(fault)])


def _named(fault: Fault) -> list[tuple[str, Rows]]:
    return [("row before", fault.before), ("row after", fault.after)]


def _losses(fault: Fault) -> list[str]:
    first, second = fault.outcomes
    if first.epsilon is None or second.epsilon is None:
        return []
    if [s.size for s in first.selections] != [s.size for s in second.selections]:
        return []
    bound, exact = (f(first.selections, second.selections) for f in (loss_bound, exact_loss))
    shown = "not computed" if exact is None else f"{exact:.6g}"
    return [f"  charged {first.epsilon}, bound of the loss {bound}, exact loss {shown}"]
