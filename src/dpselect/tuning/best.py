"""Liu & Talwar (2019), "Private selection from private candidates"; numbers of runs of Papernot & Steinke (2022).

A failure counts as the best result of all: the first one ends the procedure, as the first of several best results would
be the one that is kept. So the guarantee covers failures too, if a run that may fail is epsilon-DP with "fails" as one
of its results.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

from dpselect._numbers import rational
from dpselect._types import Number
from dpselect.accounting.charge import What
from dpselect.accounting.run_counts import Repeated, Repeats, checked_repeats
from dpselect.errors import InvalidType, InvalidValue, RunFailed
from dpselect.ledger import Charge, Ledger, Receipt
from dpselect.mechanisms.privacy import PURE_LOSS, Guarantee
from dpselect.sampling.draws import Draws

Candidate = TypeVar("Candidate")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Tuned(Generic[Candidate, Result]):
    """The best result and its candidate; all three are None if there was no run, which Poisson repeats allow.

    How many runs there were is not told: the guarantee holds only as long as nobody knows.
    """

    position: int | None  # of the candidate
    candidate: Candidate | None
    result: Result | None = field(repr=False)
    guarantee: Guarantee | None  # None if the epsilon of a run was not stated
    ledger_id: int | None = None
    receipt: Receipt | None = field(default=None, repr=False)


def tune(  # noqa: PLR0913 - each is named
    run: Callable[[Candidate], Result],
    candidates: Iterable[Candidate],
    *,
    epsilon: Number | None = None,
    repeats: Repeats,
    score: Callable[[Result], Any],
    ledger: Ledger | None = None,
    what: What = "tune",
) -> Tuned[Candidate, Result]:
    """Run a private mechanism a random number of times, each time for a random candidate, and keep the best result.

    Args:
        run: What is run: `run(candidate)` must be epsilon-DP for every candidate, with fresh randomness each time.
        candidates: The public candidates, in a public order.
        epsilon: The epsilon of each run. Without it no guarantee is stated; a ledger needs it.
        repeats: The distribution of the number of runs: `geometric(mean)`, `logarithmic(stop)`,
            `NegativeBinomial(shape, stop)` or `Poisson(mean)`.
        score: How good a result is, a finite number. It sees the result and must not look at the data: what needs the
            data belongs into the run, and into its epsilon. Of equal scores the first one is kept.
        ledger: Is charged for all of it before the first run, whatever happens then.
        what: The question for the ledger, of public parameters only.

    Formal guarantees:
      * it is `repeats.epsilon(epsilon)`-DP as long as the number of runs, and the time they take, stay secret;
      * the number of runs and the candidates are drawn exactly, with randomness from the operating system;
      * a run or score that fails ends it with RunFailed, which names the candidate's position and nothing of the cause.

    >>> from dpselect import PermuteAndFlip
    >>> from dpselect.tuning import geometric
    >>> votes = {"north": [3, 5], "south": [4, 1000]}  # private; the names are public
    >>> def run(name):
    ...     return PermuteAndFlip("0.1").select(votes[name])
    >>> best = tune(run, ["north", "south"], epsilon="0.1", repeats=geometric(mean=5), score=lambda index: index)
    >>> print(best.guarantee)
    3/10-DP (pure), 0.0450001-zCDP
    """
    listed = _listed(candidates)
    for name, function in {"run": run, "score": score}.items():
        if not callable(function):
            raise InvalidType(f"{name} must be callable, got {type(function).__name__}")
    number, runs = checked_repeats(repeats), None if epsilon is None else Repeated(repeats, epsilon)
    guarantee = None if runs is None else Guarantee(runs.epsilon, PURE_LOSS.zcdp(runs.epsilon))
    entry = None if ledger is None else _checked(ledger).charge(_charge(runs, what))
    found = best_run(run, listed, score, number, Draws())
    position, candidate, result = (None, None, None) if found is None else (found[0], listed[found[0]], found[1])
    if ledger is None or entry is None:
        return Tuned(position, candidate, result, guarantee)
    return Tuned(position, candidate, result, guarantee, entry.id, ledger.receipt(entry))


def best_run(
    run: Callable[[Candidate], Result],
    candidates: list[Candidate],
    score: Callable[[Result], Any],
    repeats: Repeats,
    draws: Draws,
) -> tuple[int, Result] | None:
    """The position of the best run's candidate, and its result; None if there was no run."""
    best: tuple[Fraction, int, Result] | None = None
    for _ in range(repeats.draw(draws)):
        position = draws.index(len(candidates))
        scored = _scored(run, candidates[position], score)
        if scored is None:  # raised here, where the cause is out of reach of the error's context
            raise RunFailed(
                f"run or score failed on candidate {position} (counted from 0, of {len(candidates)}), or its score is"
                " no finite number: the cause is withheld, because it may quote the data; the charge stays"
            )
        value, result = scored
        if best is None or value > best[0]:
            best = value, position, result
    return None if best is None else best[1:]


def _scored(
    run: Callable[[Candidate], Result], candidate: Candidate, score: Callable[[Result], Any]
) -> tuple[Fraction, Result] | None:
    """The exact score of a run and its result; None if anything fails."""
    try:
        result = run(candidate)
        return rational(score(result)), result
    except Exception:  # whatever a user's function raises, and a score that is no finite number
        return None


def _listed(candidates: Iterable[Candidate]) -> list[Candidate]:
    if isinstance(candidates, (str, bytes, Mapping, Set)) or not isinstance(candidates, Iterable):
        raise InvalidType(f"candidates must be a list in a public order, got {type(candidates).__name__}")
    listed = list(candidates)
    if not listed:
        raise InvalidValue("candidates must not be empty: there is nothing to run")
    return listed


def _charge(runs: Repeated | None, what: What) -> Charge:
    if runs is None:
        raise InvalidValue("epsilon must be given with a ledger: state the epsilon of each run, which is charged for")
    return Charge.of_best(runs, what)


def _checked(ledger: Any) -> Ledger:
    if not isinstance(ledger, Ledger):
        raise InvalidType(f"ledger must be a Ledger, got {type(ledger).__name__}: open it with Ledger(path)")
    return ledger
