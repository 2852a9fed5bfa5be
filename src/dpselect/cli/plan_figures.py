"""The figures of `dpselect plan`, as the analysis computes them."""

from dataclasses import dataclass
from fractions import Fraction

from dpselect import ExponentialMechanism
from dpselect._scores import Vector, losses
from dpselect.analysis import epsilon_for, error_quantile, expected_error
from dpselect.analysis.plan import EqualCost, Promise, epsilon_promising, equal_cost, promise
from dpselect.ledger.rounds import EqualRounds, equal_rounds
from dpselect.mechanisms.claim import Claim
from dpselect.mechanisms.names import KINDS, MechanismName
from dpselect.mechanisms.record import SelectionRecord


@dataclass(frozen=True, repr=False)
class Question:
    """What the options ask, once checked: either an epsilon or an error is given."""

    candidates: int
    epsilon: Fraction | None
    error: Fraction | None
    claim: Claim
    selections: int
    delta: float | None
    file: str | None
    scores: Vector | None


@dataclass(frozen=True)
class Proxy:
    """A mechanism on the public scores: its errors at the given epsilon, or the epsilon that the given error needs."""

    expected_error: float | None = None
    error_95: float | None = None
    epsilon: float | None = None  # None beside no errors: every epsilon is enough


@dataclass(frozen=True, repr=False)
class Figures:
    """The answer: for each mechanism, and for many selections."""

    promises: dict[MechanismName, Promise]
    proxies: dict[MechanismName, Proxy]
    equal: EqualCost | None
    rounds: EqualRounds | None


def figures(question: Question) -> Figures:
    """All figures that the question asks for."""
    mechanisms = {name: _mechanism(kind, question) for name, kind in KINDS.items()}
    promises = {name: promise(mechanism, question.candidates) for name, mechanism in mechanisms.items()}
    scores = question.scores
    proxies = {} if scores is None else {name: _proxy(m, scores, question.error) for name, m in mechanisms.items()}
    epsilon, n, times = mechanisms[MechanismName.EXPONENTIAL].epsilon, question.candidates, question.selections
    exponential = ExponentialMechanism(epsilon, **question.claim.arguments())
    equal = None if times == 1 else equal_cost(exponential, n)
    rounds = None if question.delta is None else equal_rounds(exponential, n, times, question.delta)
    return Figures(promises, proxies, equal, rounds)


def _mechanism(kind: type[SelectionRecord], question: Question) -> SelectionRecord:
    epsilon, claim = question.epsilon, question.claim.arguments()
    if question.error is not None:
        n, error = question.candidates, question.error
        epsilon = epsilon_promising(kind, n, error=error, **claim)
    assert epsilon is not None
    return kind(epsilon, **claim)


def _proxy(mechanism: SelectionRecord, scores: Vector, error: Fraction | None) -> Proxy:
    if error is None:
        return Proxy(expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95))
    target = float(error)
    if losses(scores).mean() <= target:  # the error of a uniform choice, which every mechanism stays below
        return Proxy()
    needed = epsilon_for(type(mechanism), scores, expected_error=target, **mechanism.claim.arguments())
    return Proxy(epsilon=needed)
