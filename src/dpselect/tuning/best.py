"""`tune`: the best of many private runs (Liu & Talwar 2019; numbers of runs of Papernot & Steinke 2022).

A failure counts as the best possible result: the first one ends the procedure, as the first of several best results
would be kept. So the guarantee covers failures too, if a run that may fail is epsilon-DP with "fails" as one
of its results. Runs may also be (epsilon, delta)-DP.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

from dpselect._numbers import rational
from dpselect._types import Number
from dpselect._validate import attempted, below_one
from dpselect.accounting.charge import What
from dpselect.accounting.repeats import Repeated, Repeats, checked_repeats
from dpselect.errors import InvalidType, InvalidValue, RunFailed
from dpselect.ledger import Ledger
from dpselect.mechanisms.privacy import Guarantee
from dpselect.release import Receipt, Release
from dpselect.selection.draws import Draws

Candidate = TypeVar("Candidate")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Tuned(Generic[Candidate, Result]):
    """The best result and its candidate. The number of runs is not part of it: it must stay secret.

    Args:
        position: the position of the candidate, counted from 0; None if there was no run, as Poisson repeats allow.
        candidate: the candidate; None if there was no run.
        result: the best result; None if there was no run.
        guarantee: what all runs together guarantee; None if the epsilon of a run was not stated.
        ledger_id: the entry that paid for it; None without a ledger.
        receipt: proof of that entry; None without a ledger.

    >>> Tuned(1, "tea", "result", None)
    Tuned(position=1, candidate='tea', guarantee=None, ledger_id=None)
    """

    position: int | None
    candidate: Candidate | None
    result: Result | None = field(repr=False)
    guarantee: Guarantee | None
    ledger_id: int | None = None
    receipt: Receipt | None = field(default=None, repr=False)


def tune(  # noqa: PLR0913 - all but two are keywords
    run: Callable[[Candidate], Result],
    candidates: Iterable[Candidate],
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    repeats: Repeats,
    score: Callable[[Result], Any],
    ledger: Ledger | None = None,
    what: What = "tune",
) -> Tuned[Candidate, Result]:
    """Run a private mechanism a random number of times, each time for a random candidate, and keep the best result.

    Args:
        run: The mechanism: `run(candidate)` must be epsilon-DP, or (epsilon, delta)-DP, for every candidate, with
            fresh randomness each time.
        candidates: The public candidates, in a public order.
        epsilon: The epsilon of each run. Without it, no guarantee is stated. Required with a ledger.
        delta: The delta of each run; 0 if its epsilon is pure. A ledger of pure epsilon refuses any other.
        repeats: The distribution of the number of runs: `geometric(mean)`, `logarithmic(stop)`,
            `NegativeBinomial(shape, stop)` or `Poisson(mean)`.
        score: Returns how good a result is, as a finite number. It must not use the data: any use of the
            data belongs in the run, and in its epsilon. Among equal scores, the first one is kept.
        ledger: The ledger. It is charged for all runs before the first one, and the charge stays if a run fails.
        what: The question for the ledger, a string or a mapping of public parameters.

    Raises:
        InvalidValue, InvalidType: an argument is invalid; nothing was charged.
        BudgetExceeded: the ledger's budget is too small; nothing was run.
        LedgerError: the ledger cannot be used; nothing was run.
        RunFailed: a run or the score failed; the charge stays.

    Formal guarantees:
      * the result is `repeats.epsilon(epsilon)`-DP if the number of runs, and the time they take, stay secret;
      * if runs have a delta, it is (`repeats.epsilon(epsilon)`, `repeats.delta(delta)`)-DP;
      * the number of runs and the candidates are drawn exactly, with randomness from the operating system;
      * a run or score that fails raises RunFailed, which names the position of the candidate but not the cause.

    >>> from dpselect import PermuteAndFlip
    >>> from dpselect.tuning import geometric
    >>> votes = {"north": [3, 5], "south": [4, 1000]}  # private; the names are public
    >>> def run(name):
    ...     return PermuteAndFlip("0.1").select(votes[name])
    >>> best = tune(run, ["north", "south"], epsilon="0.1", repeats=geometric(mean=5), score=lambda index: index)
    >>> print(best.guarantee)
    0.233272-DP (pure), 0.0270852-zCDP
    """
    listed = _listed(candidates)
    for name, function in {"run": run, "score": score}.items():
        if not callable(function):
            raise InvalidType(f"{name} must be callable, got {type(function).__name__}")
    number, runs = checked_repeats(repeats), None if epsilon is None else Repeated(repeats, epsilon, delta)

    def draw() -> tuple[int, Result] | None:
        return best_run(run, listed, score, number, Draws())

    if runs is None:
        if below_one(delta=delta):
            raise InvalidValue("epsilon must be given with a delta: state both for each run")
        if ledger is not None:
            raise InvalidValue("epsilon must be given with a ledger: state the epsilon of each run, which is charged")
        return _tuned(draw(), listed, None)
    answer = Release(what, runs, delta=runs.delta).draw(draw, ledger=ledger)
    return _tuned(answer.value, listed, answer.guarantee, answer.ledger_id, answer.receipt)


def _tuned(
    found: tuple[int, Result] | None, candidates: list[Candidate], guarantee: Guarantee | None, *paid: Any
) -> Tuned[Candidate, Result]:
    position, result = (None, None) if found is None else found
    return Tuned(position, None if position is None else candidates[position], result, guarantee, *paid)


def best_run(
    run: Callable[[Candidate], Result],
    candidates: list[Candidate],
    score: Callable[[Result], Any],
    repeats: Repeats,
    draws: Draws,
) -> tuple[int, Result] | None:
    # Run, and return the position of the best run's candidate and its result; None if there was no run.
    best: tuple[Fraction, int, Result] | None = None
    for _ in range(repeats.draw(draws)):
        position = draws.index(len(candidates))
        scored = _scored(run, candidates[position], score)
        if scored is None:  # raised here, so that the cause is not the context of the error
            raise RunFailed(
                f"run or score failed on candidate {position} (counted from 0, of {len(candidates)}), or its score is"
                " not a finite number: the cause is withheld because it may quote the data. The charge stays"
            )
        value, result = scored
        if best is None or value > best[0]:
            best = value, position, result
    return None if best is None else best[1:]


def _scored(
    run: Callable[[Candidate], Result], candidate: Candidate, score: Callable[[Result], Any]
) -> tuple[Fraction, Result] | None:
    def scored() -> tuple[Fraction, Result]:
        result = run(candidate)
        return rational(score(result)), result

    return attempted(scored)  # a user's function may raise anything; or the score is not finite


def _listed(candidates: Iterable[Candidate]) -> list[Candidate]:
    if isinstance(candidates, (str, bytes, Mapping, Set)) or not isinstance(candidates, Iterable):
        raise InvalidType(f"candidates must be a list in a public order, got {type(candidates).__name__}")
    listed = list(candidates)
    if not listed:
        raise InvalidValue("candidates must not be empty: give at least one")
    return listed
