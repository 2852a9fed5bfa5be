"""Compare the methods of `dpselect.top_k` over a range of epsilons, on public counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpselect import _validate
from dpselect._numbers import DOWN, NEAREST, float_near, shown
from dpselect._progress import tracked
from dpselect._scores import as_vector
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Price
from dpselect.analysis.compare import Records, checked_epsilons
from dpselect.analysis.methods import Choice, Drawing
from dpselect.analysis.top_k_error import checked_runs, error_of, seeded
from dpselect.errors import InvalidType, InvalidValue


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
        scores: the number of people per candidate.
        k: how many candidates to choose; with the method "margin" also a pair.
        epsilons: the epsilons to compare at, each for the whole answer.
        max_values: for how many candidates one person counts at most. The methods "set" and "noisy-counts" need it.
        ordered: whether the answer must be in order.
        monotonic: True if a person may be added or removed, and False if a person may be replaced by another one.
        methods: the names of the methods to compare; all that can answer if omitted.
        runs: how many answers to simulate where no formula is cheap.
        seed: a non-negative integer that makes the simulations repeatable. Each record then has the numbers of
            `top_k_error` with this seed.

    Returns:
        One record per method and epsilon.

    Raises:
        InvalidType: the scores cannot be read, or an argument has the wrong type.
        InvalidValue: there are no epsilons, a number is out of range, or a method cannot answer.

    >>> for record in compare_top_k([500, 480, 470, 20, 10], 2, ["0.1"], max_values=1, methods=["set", "peel"]).records:
    ...     print(record.method, round(record.expected_error, 2))
    set 1.23
    peel 2.06
    """
    vector, exact, count = as_vector(scores), checked_epsilons(epsilons), checked_runs(runs)
    choice = Choice(k, len(vector), max_values, ordered, _validate.boolean(monotonic=monotonic))
    taken = choice.by(AUTO, Price(exact[0]))
    records = []
    for epsilon in tracked(exact, "Comparing"):
        for drawing in _drawings(choice, methods, epsilon):
            drawing.method.check_scores(vector)
            found = error_of(vector, *drawing, count, seeded(seed))
            numbers = (found.mean, found.low, found.high, found.exact)
            records.append(TopKRecord(found.method, float_near(epsilon), *numbers))
    return TopKComparison(tuple(records), taken.name)


def _drawings(choice: Choice, methods: Sequence[str] | None, epsilon: Fraction) -> Iterable[Drawing]:
    """The methods to compare, each with its mechanism."""
    price = Price(epsilon)
    if methods is None:
        return choice.applicable(price).values()
    if isinstance(methods, (str, bytes)) or not isinstance(methods, Iterable):
        raise InvalidType("methods must be a sequence of names: give for example ['set', 'peel']")
    named = {method.name: method for method in (choice.by(name, price) for name in methods)}
    if not named:
        raise InvalidValue("methods must have at least one name")
    return [choice.drawn(method, price) for method in named.values()]
