"""The k candidates that most people have, from counts of your own, by one of five methods (`questions.methods`).

**How many people short an answer is**, on given counts: exactly where a formula is cheap, else by simulation. The
shortfall of an answer is (sum of the k largest counts - sum of the chosen counts) / k: people short per item. The
method and its mechanism are those that `select_top_k` would use, so the rate of the noise is the same. The formulas and
the simulations are in `analysis.top_k`.

If no run of a simulation is short, its mean is zero, and so is its spread. Then the upper end of the interval is a
bound that does not need the spread. Every chosen candidate outside the top k replaces one of the top k that is not
chosen, so the shortfall is at most the sum, over all pairs of these, of the difference of their counts. A pair with the
difference g is *inverted* with probability at most

  exp(-c g) / 2                 in one shot, where one exponential noise must exceed another by g;
  (1/2 + c g / 4) exp(-c g)     with Laplace noise;
  exp(-c g)                     in one selection after another by permute-and-flip or the exponential mechanism, which
                                select the worse one with at most exp(-c g) times the probability of the better one;
  exp(-c g)                     for sets, because a set with the worse one is at most exp(-c g) times as likely as the
                                set that has the better one in its place.

So the mean is at most the sum of g times that over all pairs. Another bound is the largest possible shortfall times the
probability of any that N runs without one leave possible, 1 - 0.025**(1/N).

Otherwise the interval of the mean is that of Student (1908).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np

from dpselect import _validate
from dpselect._numbers import DOWN, NEAREST, float_near, shown
from dpselect._scores import as_vector, copied, losses
from dpselect._show import tracked
from dpselect._types import Floats, Number, Positions, Vector
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.accounting.charge import What
from dpselect.analysis.comparison import Records, checked_epsilons
from dpselect.analysis.top_k import shortfalls
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import checked_labels, counted_question
from dpselect.mechanisms.parameters import Neighbours
from dpselect.questions.methods import Draw, Method, Task, free_answer, method_for
from dpselect.questions.most import TopK
from dpselect.release import Answer, Payer, Release, repr_digest, scores_digest

_FEWEST_RUNS, _MOST_RUNS = 2, 10**7
_MOST_PAIRS = 10**7


def select_top_k(  # noqa: PLR0913 - one parameter for each public choice
    scores: Any,
    k: int | tuple[int, int],
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: str = AUTO,
    max_values: int | None = None,
    ordered: bool = False,
    monotonic: bool = True,
    mechanism: str = AUTO,
) -> list[int]:
    """Return the positions of k candidates with large counts of people, privately.

    The selection is not recorded anywhere. Use `release_top_k` to charge a ledger first.

    Args:
        scores: the number of people per candidate: a list, NumPy array, pandas or polars Series or Arrow array.
            Adding a person raises each of them by at most one and lowers none. Secret.
        k: how many candidates to return. With method "margin" also a pair of the smallest and the largest number, of
            which the method finds the one with a clear cut.
        epsilon: the privacy loss of the whole answer: a number, or a string such as "0.1", which is taken exactly.
        rho: the privacy loss in zCDP; give either epsilon or rho.
        method: "auto", or "set" (needs max_values), "margin", "one-shot", "peel" or "noisy-counts" (needs max_values).
            docs/top-k.md says which one is taken, and what to expect from each.
        max_values: for how many candidates one person counts at most. You must have made sure of that before you
            counted; `open_table` does it for you.
        ordered: whether to return them in order, best first, which costs accuracy. The methods "one-shot", "peel" and
            "noisy-counts" always do so if they are asked for by name.
        monotonic: True if a person may be added or removed, and False if a person may be replaced by another one.
        mechanism: "auto", "permute-and-flip" or "exponential".

    Returns:
        The positions. If they are not in order, they are listed as the candidates are: never by count. If k is the
        number of candidates, all of them, whatever their scores.

    Raises:
        InvalidType: an argument has the wrong type, or the scores cannot be read.
        InvalidValue: an argument is out of range, `max_values` is missing, `ordered` is asked of a set, or scores are
            not counts for the margin.

    >>> select_top_k([3, 500, 2, 400, 300], 3, epsilon=1, max_values=1)
    [1, 3, 4]
    >>> select_top_k([3, 500, 2, 400, 300], 3, epsilon=1, max_values=1, ordered=True)
    [1, 3, 4]
    """
    vector = copied(as_vector(scores))
    choices = {"method": method, "max_values": max_values, "ordered": ordered}
    price = Price(epsilon, rho, mechanism)
    how, draw = _drawn(vector, k, choices, monotonic=monotonic, price=price, budget=None)
    return how.chosen(draw.mechanism, vector)


def _drawn(  # noqa: PLR0913 - one parameter for each public choice
    vector: Vector, k: Any, choices: Mapping[str, Any], *, monotonic: Any, price: Price, budget: Budget | None
) -> tuple[Method, Draw]:
    how = method_for(k, len(vector), **choices, price=price, budget=budget)
    how.check_scores(vector)
    return how, how.draw(price, budget, 1, _validate.boolean(monotonic=monotonic))


def release_top_k(  # noqa: PLR0913 - one parameter for each public choice
    scores: Any,
    k: int | tuple[int, int],
    labels: Sequence[Any] | None = None,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: str = AUTO,
    max_values: int | None = None,
    ordered: bool = False,
    monotonic: bool = True,
    mechanism: str = AUTO,
    ledger: Payer | None = None,
    what: What = "top_k",
    request_id: str | None = None,
) -> Answer:
    """Charge a ledger, choose k candidates with large counts of people privately, and return them as an answer.

    Args:
        scores: the number of people per candidate, as for `select_top_k`. Secret.
        k: how many candidates to return. For other parameters, see `select_top_k`.
        labels: the public names of the candidates, one for each score. The answer's value then has labels instead of
            positions.
        mechanism: "auto" (by the budget of the ledger), "permute-and-flip" or "exponential".
        ledger: the `Ledger` that is charged before anything is drawn. With None, nothing is recorded.
        what: the question for the ledger: a string or a mapping of public parameters. Never put a score here.
        request_id: makes a retry safe. It needs a ledger.

    Returns:
        The answer. Its value is a list of labels or positions. If k is the number of candidates, it cost nothing.

    Raises:
        InvalidValue, InvalidType: an argument is invalid; nothing was charged.
        BudgetExceeded: the budget is too small; nothing was drawn.
        RequestConflict: the request id was used for another question, or for other scores or labels.
        RequestUnanswered: the request was charged before, but its answer was not stored.
        LedgerError: the ledger cannot be used; nothing was drawn.

    >>> drinks = ["tea", "coffee", "water", "milk"]
    >>> release_top_k([700, 900, 20, 10], 2, drinks, epsilon="0.1", max_values=1).value
    ['tea', 'coffee']
    """
    vector = copied(as_vector(scores))  # the same scores are checked, digested and drawn from
    price = Price(epsilon, rho, mechanism)
    names = None if labels is None else checked_labels(labels, len(vector))
    choices = {"method": method, "max_values": max_values, "ordered": ordered}
    budget = getattr(ledger, "budget", None)
    how, draw = _drawn(vector, k, choices, monotonic=monotonic, price=price, budget=budget)
    asked = _asked(what, how, len(vector))
    if how.is_free:
        return free_answer(list(range(len(vector))) if names is None else names, ledger, request_id)
    answer = Release(asked, draw.part, draw.count, price.rho).draw(
        lambda: how.chosen(draw.mechanism, vector),
        ledger=ledger,
        request_id=request_id,
        content=lambda: f"{scores_digest(vector)} {repr_digest(names)}",
    )
    return answer if names is None else replace(answer, value=[names[position] for position in answer.value])


def _asked(what: What, how: Method, count: int) -> Any:
    # A user's mapping may repeat the public parameters, but not deny them.
    asked = {"question": what} if isinstance(what, str) else what
    if not isinstance(asked, Mapping):
        return asked  # type: ignore[unreachable] # a caller's mistake, which the charge refuses
    parameters = how.parameters()
    for name, value in parameters.items():
        if asked.get(name, value) != value:
            raise InvalidValue(f"what must not state another {name}: this question has {value}")
    counted: Any = counted_question(asked, count)
    return {**parameters, **counted}


# How far an answer is off.


@dataclass(frozen=True)
class TopKError:
    """The mean shortfall of a top-k answer, per item. It is as private as the counts.

    `float(error)` is the mean.

    Attributes:
        mean: the expected shortfall: how many people fewer the chosen candidates have than the k largest, divided by k.
        low: the lower end of a 95 % confidence interval of the mean; the mean itself if it is exact.
        high: the upper end.
        exact: whether the mean follows from a formula, with a relative error below 1e-9.
        runs: the number of simulated answers; 0 if the mean is exact.
        method: the name of the method that was used.
        unit: the unit of the numbers: people.

    >>> error = top_k_error([500, 400, 300, 2, 1], 3, epsilon="0.01", max_values=1)
    >>> error.method, error.exact, round(float(error), 2)
    ('set', True, 8.47)
    """

    mean: float
    low: float
    high: float
    exact: bool
    runs: int
    method: str
    unit: str = "people"

    def __float__(self) -> float:
        return self.mean


def top_k_error(  # noqa: PLR0913 - one parameter for each public choice
    scores: Any,
    k: int | tuple[int, int],
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: str = AUTO,
    max_values: int | None = None,
    ordered: bool = False,
    monotonic: bool = True,
    mechanism: str = AUTO,
    runs: int = 1000,
    seed: int | None = None,
) -> TopKError:
    """How many people short of the true top k an answer of `select_top_k` is, on average and per item.

    The result is as private as the scores: use public or synthetic ones, or keep it to yourself.

    Args:
        scores: the number of people per candidate. For other parameters, see `select_top_k`.
        k: how many candidates to choose. With method "margin" also a pair; then a set is compared with the true top of
            its own size.
        ordered: whether the answer is in order, best first. The order itself does not count here.
        runs: how many answers to simulate where no formula is cheap.
        seed: a non-negative integer that makes a simulation repeatable; None for a different one each time.

    Returns:
        The mean with a 95 % confidence interval, which is the mean itself if it is exact.

    Raises:
        InvalidType: an argument has the wrong type, or the scores cannot be read.
        InvalidValue: an argument is out of range, or the method cannot take it.

    >>> float(top_k_error([500, 400, 300, 200, 100], 2, epsilon=1, max_values=1)) < 1e-9
    True
    >>> error = top_k_error(range(1000), 20, epsilon="0.1", method="noisy-counts", max_values=1, runs=200, seed=1)
    >>> error.exact, 3 < error.low < error.mean < error.high < 5
    (False, True)
    """
    vector = as_vector(scores)
    price = Price(epsilon, rho, mechanism)
    asked = replace(top_k_of(vector, k, max_values, ordered, monotonic), method=method)
    return error_of(vector, asked.draw(price), checked_runs(runs), seeded(seed))


def checked_runs(runs: Any) -> int:
    """The number of runs of a simulation."""
    number = _validate.count(runs=runs)
    if not _FEWEST_RUNS <= number <= _MOST_RUNS:
        raise InvalidValue(f"runs must be from {_FEWEST_RUNS} to {_MOST_RUNS:,}, got {number}")
    return number


def seeded(seed: Any) -> np.random.Generator:
    """A generator for simulations. It has no privacy guarantee."""
    return np.random.default_rng(None if seed is None else _validate.count(seed=seed))


def error_of(vector: Vector, draw: Draw, runs: int, generator: np.random.Generator) -> TopKError:
    """The error of this method and mechanism on these scores."""
    method = cast("Method", draw.method)
    method.check_scores(vector)
    task = method.task(draw.mechanism, _floats(vector))
    found = 0.0 if method.k == method.candidates else method.shortfall(task)
    if found is not None:
        mean = task.share * found
        return TopKError(mean, mean, mean, True, 0, method.name)
    short = task.share * shortfalls(task.scores, method.simulated(task, runs, generator))
    mean, width = float(short.mean()), half_width(short)
    high = mean + width if mean else _rare(task, method, runs)
    return TopKError(mean, max(mean - width, 0.0), high, False, runs, method.name)


def simulated_answers(vector: Vector, draw: Draw, runs: int, generator: np.random.Generator) -> Positions:
    """Simulated answers in floats: a row of positions for each run. Never for release."""
    method = cast("Method", draw.method)
    if method.k == method.candidates:
        return np.tile(np.arange(method.candidates), (runs, 1))
    found = method.simulated(method.task(draw.mechanism, _floats(vector)), runs, generator)
    if not method.leaves_out:
        return found
    is_left = np.ones((runs, method.candidates), np.bool_)  # the answer is what the simulation leaves out
    np.put_along_axis(is_left, found, False, axis=1)
    return np.nonzero(is_left)[1].reshape(runs, method.k)


def _floats(vector: Vector) -> Floats:
    below = losses(vector)
    if not np.isfinite(below).all():
        raise InvalidValue("scores must differ by less than 1e308: give counts of people")
    return -below


def _rare(task: Task, method: Method, runs: int) -> float:
    ordered: Floats = np.sort(task.scores)
    size = int(max(task.size) if isinstance(task.size, tuple) else task.size)
    possible = -math.expm1(math.log((1 - LEVEL) / 2) / runs)
    largest = possible * task.share * float(ordered[-size:].sum() - ordered[:size].sum()) / size
    if size * (ordered.size - size) > _MOST_PAIRS:
        return largest
    gaps = np.subtract.outer(ordered[-size:], ordered[:-size])
    inverted = method.inverted(task, task.rate * gaps)
    return largest if inverted is None else min(largest, task.share * float((gaps * inverted).sum()) / size)


LEVEL = 0.95


def half_width(sample: Floats) -> float:
    """Half the width of the interval of the mean, at 95 percent. The sample has at least two values.

    >>> import numpy as np
    >>> round(half_width(np.array([0.0, 1.0])), 3)
    6.353
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - SciPy is slow to import

    spread = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    return float(stdtrit(sample.size - 1, (1 + LEVEL) / 2)) * spread


@dataclass(frozen=True)
class TopKRecord:
    """The error of one method at one epsilon: people short per item. It is as private as the scores."""

    method: str
    epsilon: float
    expected_error: float
    low: float  # a 95 % confidence interval of the expected error; its ends are equal if it is exact
    high: float
    exact: bool


@dataclass(frozen=True, repr=False)
class TopKComparison(Records):
    """The result of `compare_top_k`. It is as private as the scores.

    Attributes:
        records: one record per method and epsilon.
        automatic: the name of the method that "auto" takes.

    >>> compared = compare_top_k([500, 480, 30, 20, 10], 2, [0.1, 1])
    >>> compared, compared.automatic
    (TopKComparison(6 records), 'one-shot')
    """

    _series: ClassVar[str] = "method"
    _unit: ClassVar[str] = "people short per item"

    records: tuple[TopKRecord, ...]
    automatic: str

    @staticmethod
    def _cells(record: TopKRecord) -> dict[str, str]:
        interval = "exact" if record.exact else f"{shown(record.low, DOWN, 3)} to {shown(record.high, digits=3)}"
        return {"average": shown(record.expected_error, NEAREST), "95 % interval": interval}


def compare_top_k(  # noqa: PLR0913 - one parameter for each public choice
    scores: Any,
    k: int | tuple[int, int],
    epsilons: Iterable[Number],
    *,
    max_values: int | None = None,
    ordered: bool = False,
    monotonic: bool = True,
    methods: Sequence[str] | None = None,
    runs: int = 200,
    seed: int | None = None,
) -> TopKComparison:
    """Compare how many people short of the true top k each method is, at each epsilon, on these scores.

    The result is as private as the scores: use public or synthetic ones, or keep it to yourself. A method that is
    chosen because of its error on private data reveals something about them.

    Args:
        scores: the number of people per candidate. For others, see `top_k_error` and `select_top_k`.
        k: how many candidates to choose; with the method "margin" also a pair.
        epsilons: the epsilons to compare at, each for the whole answer.
        max_values: for how many candidates one person counts at most. The methods "set" and "noisy-counts" need it.
        methods: the names of the methods to compare; all that can answer if omitted.
        seed: a non-negative integer that makes the simulations repeatable. Each record then has the numbers of
            `top_k_error` with this seed.

    Raises:
        InvalidType: the scores cannot be read, or an argument has the wrong type.
        InvalidValue: there are no epsilons, a number is out of range, or a method cannot answer.

    >>> for record in compare_top_k([500, 480, 470, 20, 10], 2, ["0.1"], max_values=1, methods=["set", "peel"]).records:
    ...     print(record.method, round(record.expected_error, 2))
    set 1.23
    peel 2.06
    """
    vector, exact, count = as_vector(scores), checked_epsilons(epsilons), checked_runs(runs)
    asked = top_k_of(vector, k, max_values, ordered, monotonic)
    taken = asked.settled(Price(exact[0]), None).how
    records = []
    for epsilon in tracked(exact, "Comparing"):
        for draw in _draws(asked, methods, epsilon):
            found = error_of(vector, draw, count, seeded(seed))
            numbers = (found.mean, found.low, found.high, found.exact)
            records.append(TopKRecord(found.method, float_near(epsilon), *numbers))
    return TopKComparison(tuple(records), taken.name)


def top_k_of(scores: Vector, k: Any, max_values: Any, ordered: Any, monotonic: Any) -> TopK:
    """The question for the top k of counts of your own."""
    relation = Neighbours.ADD_REMOVE if _validate.boolean(monotonic=monotonic) else Neighbours.REPLACE
    named: dict[str, Any] = {"k": k, "max_values": max_values, "ordered": ordered}
    return TopK(candidates=len(scores), **named, neighbours=relation.value)


def _draws(asked: TopK, methods: Sequence[str] | None, epsilon: Fraction) -> Iterable[Draw]:
    price = Price(epsilon)
    if methods is None:
        return asked.applicable(price).values()
    if isinstance(methods, (str, bytes)) or not isinstance(methods, Iterable):
        raise InvalidType("methods must be a sequence of names: give for example ['set', 'peel']")
    named = {one.how.name: one for one in (replace(asked, method=name).settled(price, None) for name in methods)}
    if not named:
        raise InvalidValue("methods must have at least one name")
    return [one.draw(price) for one in named.values()]
