"""What an audit found, as inert records. They say "violates" or "no violation found", and never more than that."""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from dpselect._numbers import finite, float_above, shortest_text
from dpselect.audit.bound import noticeable_epsilon
from dpselect.audit.outputs import json_of
from dpselect.mechanisms.parameters import Claim


def rounded_down(bound: float) -> str:
    """A lower bound with four digits, not above it.

    >>> rounded_down(1.98765), rounded_down(math.inf)
    ('1.987', 'inf')
    """
    if math.isinf(bound):
        return "inf"
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(bound)).normalize():f}"


def _text(epsilon: Fraction) -> str:
    return shortest_text(epsilon).strip("'")


@dataclass(frozen=True, repr=False)
class Finding:
    """One pair of neighbours: an event, how often it happened in the second half of the runs, and what follows."""

    pair: str
    lower_bound: float  # of epsilon; zero where nothing follows
    event: tuple[Any, ...]  # outputs, such as indices, and names of exceptions; empty if only `description` says which
    is_reversed: bool  # the event is more likely on the neighbour
    hits: int  # where it is more likely
    neighbour_hits: int
    trials: int  # on each of the two neighbours
    failures: int  # runs, of both halves, that ended with an exception
    description: str = ""  # the event in words

    def __repr__(self) -> str:
        return f"Finding({self.pair!r}, epsilon >= {rounded_down(self.lower_bound)}, {self.trials:,} trials)"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "pair": self.pair,
            "lower_bound": self.lower_bound,
            "event": [json_of(output) for output in self.event],
            "description": self.description,
            "more_likely_on": "neighbour" if self.is_reversed else "scores",
            "hits": self.hits,
            "neighbour_hits": self.neighbour_hits,
            "trials": self.trials,
            "failures": self.failures,
        }


@dataclass(frozen=True, repr=False)
class Audit:
    """A black-box audit. With probability 1 - `false_alarm` all of its lower bounds hold together."""

    epsilon: Fraction  # what is promised
    claim: Claim | None  # of which neighbours; None for inputs that are not scores
    false_alarm: float
    runs: int  # in total
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """Return the finding with the largest lower bound."""
        return max(self.findings, key=lambda finding: finding.lower_bound)

    @property
    def lower_bound(self) -> float:
        """Return a lower bound of the true epsilon."""
        return self.worst.lower_bound

    @property
    def violates(self) -> bool:
        """Return whether the promise is broken. False says only that this audit did not catch it."""
        return self.lower_bound > float_above(self.epsilon)

    @property
    def noticeable(self) -> float:
        """Return the epsilon that so many runs show about half of the time to be more than the promise."""
        trials = min(finding.trials for finding in self.findings)
        return noticeable_epsilon(float_above(self.epsilon), trials, self.false_alarm / len(self.findings))

    @property
    def verdict(self) -> str:
        """Return the verdict in words."""
        if not self.violates:
            return f"no violation found in {self.runs:,} runs"
        bound = rounded_down(self.lower_bound)
        return f"violates epsilon = {_text(self.epsilon)}: it is at least {bound} on the pair {self.worst.pair!r}"

    def __repr__(self) -> str:
        return f"Audit({self.verdict})"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "verdict": self.verdict,
            "violates": self.violates,
            "epsilon": str(self.epsilon),
            **({} if self.claim is None else self.claim.to_dict()),
            "lower_bound": self.lower_bound,
            "noticeable": None if math.isinf(self.noticeable) else self.noticeable,
            "false_alarm": self.false_alarm,
            "runs": self.runs,
            "findings": [finding.to_dict() for finding in self.findings],
        }


@dataclass(frozen=True, repr=False)
class PmfAudit:
    """A white-box audit: the largest log-ratio of probabilities on neighbours, for each score vector."""

    epsilon: Fraction
    claim: Claim  # of which neighbours
    slack: float  # what the errors of the probabilities may explain
    log_ratios: tuple[tuple[str, float], ...]  # by name of the score vector

    @property
    def worst(self) -> tuple[str, float]:
        """Return the largest log-ratio, after the name of the score vector that has it."""
        return max(self.log_ratios, key=lambda named: named[1])

    @property
    def log_ratio(self) -> float:
        """Return the largest log-ratio."""
        return self.worst[1]

    @property
    def violates(self) -> bool:
        """Return whether the promise is broken. False says only that it is kept on these score vectors."""
        return self.log_ratio > float_above(self.epsilon) + self.slack

    @property
    def verdict(self) -> str:
        """Return the verdict in words."""
        if not self.violates:
            return f"no violation found on {len(self.log_ratios)} score vectors"
        name, ratio = self.worst
        return f"violates epsilon = {_text(self.epsilon)}: it is at least {rounded_down(ratio)} on {name!r}"

    def __repr__(self) -> str:
        return f"PmfAudit({self.verdict})"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; an infinite log-ratio is null."""
        return {
            "verdict": self.verdict,
            "violates": self.violates,
            "epsilon": str(self.epsilon),
            **self.claim.to_dict(),
            "log_ratio": finite(self.log_ratio),
            "slack": self.slack,
            "log_ratios": {name: finite(ratio) for name, ratio in self.log_ratios},
        }
