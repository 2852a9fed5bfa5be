"""The results of an audit, as plain records. The verdict is "violates" or "no violation found", never "is private"."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from dpselect import _show
from dpselect._numbers import finite, float_above, shortest_text, shown
from dpselect.audit.events import noticeable_epsilon
from dpselect.audit.outputs import json_of
from dpselect.mechanisms.parameters import Claim

_NO_PROOF = "This does not prove privacy: an audit can only prove a violation."


def rounded_down(bound: float) -> str:
    # A lower bound with four significant digits, rounded down.
    if math.isinf(bound):
        return "inf"
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(bound)).normalize():f}"


@dataclass(frozen=True, repr=False)
class Finding:
    """What one pair of neighbours showed: an event, how often it occurred, and the epsilon this implies.

    Attributes:
        pair: the name of the pair.
        lower_bound: the lower bound on epsilon; zero if the event implies nothing.
        event: the outputs that make up the event, such as indices, and the names of exceptions. Empty if the event is
            not a list of outputs, for example a range of numbers; see `description`.
        is_reversed: whether the event is more likely on the neighbour.
        hits: how often the event occurred on the input where it is more likely, in the testing half of the runs.
        neighbour_hits: how often it occurred on the other input.
        trials: the number of testing runs on each of the two inputs.
        failures: how many runs, in both halves, ended with an exception.
        description: the event in words.

    >>> from dpselect.audit import audit
    >>> found = audit(lambda scores: len(scores), epsilon=1, pairs=[([1, 0], [0, 1])], runs=1000)
    >>> found.worst
    Finding('pair 1', epsilon >= 0, 500 trials)
    >>> found.worst.description, found.worst.hits, found.worst.neighbour_hits
    ('the output is 2', 500, 500)
    """

    pair: str
    lower_bound: float
    event: tuple[Any, ...]
    is_reversed: bool
    hits: int
    neighbour_hits: int
    trials: int
    failures: int
    description: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of hits on both inputs, of trials and of failures, by name."""
        return {name: getattr(self, name) for name in ("hits", "neighbour_hits", "trials", "failures")}

    def __repr__(self) -> str:
        return f"Finding({self.pair!r}, epsilon >= {rounded_down(self.lower_bound)}, {self.trials:,} trials)"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, for JSON. Outputs that JSON cannot hold are written as text."""
        return {
            "pair": self.pair,
            "lower_bound": self.lower_bound,
            "event": [json_of(output) for output in self.event],
            "description": self.description,
            "more_likely_on": "neighbour" if self.is_reversed else "scores",
            **self.counts,
        }


class _Verdict(ABC):
    # What both kinds of audits say about the promised epsilon.

    epsilon: Fraction
    claim: Claim | None

    @property
    @abstractmethod
    def _evidence(self) -> tuple[float, float, str, str]:
        """The largest lower bound, by how much errors may have raised it, where it was found, and what was tried."""

    @property
    def violates(self) -> bool:
        # Whether the promise is broken. False only means that this audit found no violation.
        bound, slack, _, _ = self._evidence
        return bound > float_above(self.epsilon) + slack

    @property
    def verdict(self) -> str:
        bound, _, where, tried = self._evidence
        if not self.violates:
            return f"no violation found {tried}"
        return f"violates epsilon = {self._promised}: it is at least {rounded_down(bound)} on {where}"

    @property
    def _promised(self) -> str:
        return shortest_text(self.epsilon).strip("'")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.verdict})"

    def _page(self, heads: Sequence[str], rows: Iterable[Sequence[Any]], remark: str) -> str:
        title = f"Audit of epsilon = {self._promised}: {self.verdict}"
        return _show.page(_show.table(heads, rows, caption=title, is_numeric=True), remark and _show.paragraph(remark))

    def _facts(self) -> dict[str, Any]:
        claimed = self.claim.to_dict() if self.claim else {}
        return {"verdict": self.verdict, "violates": self.violates, "epsilon": str(self.epsilon), **claimed}


@dataclass(frozen=True, repr=False)
class Audit(_Verdict):
    """The result of `audit`. With probability at least 1 - `false_alarm`, all of its lower bounds hold.

    Attributes:
        epsilon: the promised epsilon.
        claim: what was claimed about neighbouring scores; None for inputs that are not scores.
        false_alarm: the largest probability of a wrong "violates".
        runs: the total number of runs.
        findings: one finding for each pair of neighbours.

    >>> from dpselect.audit import audit
    >>> found = audit(lambda scores: 0, epsilon="0.5", runs=1000)
    >>> found.violates, found.lower_bound, len(found.findings)
    (False, 0.0, 22)
    >>> found
    Audit(no violation found in 44,000 runs)
    """

    epsilon: Fraction
    claim: Claim | None
    false_alarm: float
    runs: int
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The finding with the largest lower bound."""
        return max(self.findings, key=lambda finding: finding.lower_bound)

    @property
    def lower_bound(self) -> float:
        """A lower bound on the true epsilon: the largest one of all findings."""
        return self.worst.lower_bound

    @property
    def noticeable(self) -> float:
        """The true epsilon that this many runs would flag about half of the time; larger ones mostly show."""
        trials = min(finding.trials for finding in self.findings)
        return noticeable_epsilon(float_above(self.epsilon), trials, self.false_alarm / len(self.findings))

    @property
    def _evidence(self) -> tuple[float, float, str, str]:
        return self.lower_bound, 0.0, f"the pair {self.worst.pair!r}", f"in {self.runs:,} runs"

    def _repr_html_(self) -> str:
        heads = ["pair of neighbours", "epsilon at least", "event on one", "on the other", "runs on each", "failures"]
        rows = (
            [found.pair, rounded_down(found.lower_bound), *(f"{count:,}" for count in found.counts.values())]
            for found in self.findings
        )
        remark = f"The event: {_show.cell_text(self.worst.description)}." if self.violates else _NO_PROOF
        return self._page(heads, rows, remark)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and properties by name, for JSON. `noticeable` is None if it is infinite."""
        return {
            **self._facts(),
            "lower_bound": self.lower_bound,
            "noticeable": finite(self.noticeable),
            "false_alarm": self.false_alarm,
            "runs": self.runs,
            "findings": [finding.to_dict() for finding in self.findings],
        }


@dataclass(frozen=True, repr=False)
class PmfAudit(_Verdict):
    """The result of `audit_pmf`: for each score vector, the largest log-ratio of probabilities between neighbours.

    Attributes:
        epsilon: the promised epsilon.
        claim: what is claimed about neighbouring scores.
        slack: the excess over epsilon that rounding errors of the probabilities may explain.
        log_ratios: the largest log-ratio of each score vector, as tuples (name, log-ratio).

    >>> from dpselect import ExponentialMechanism
    >>> from dpselect.audit import audit_pmf
    >>> found = audit_pmf(ExponentialMechanism(epsilon=1), scores={"two": [3, 0]})
    >>> found.violates, round(found.log_ratio, 3)
    (False, 0.877)
    """

    epsilon: Fraction
    claim: Claim
    slack: float
    log_ratios: tuple[tuple[str, float], ...]

    @property
    def worst(self) -> tuple[str, float]:
        """The name of the worst score vector, and its log-ratio."""
        return max(self.log_ratios, key=lambda named: named[1])

    @property
    def log_ratio(self) -> float:
        """The largest log-ratio."""
        return self.worst[1]

    @property
    def _evidence(self) -> tuple[float, float, str, str]:
        return self.log_ratio, self.slack, repr(self.worst[0]), f"on {len(self.log_ratios)} score vectors"

    def _repr_html_(self) -> str:
        rows = ([name, "inf" if math.isinf(ratio) else shown(ratio)] for name, ratio in self.log_ratios)
        return self._page(["scores", "log-ratio"], rows, "" if self.violates else _NO_PROOF)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and properties by name, for JSON. An infinite log-ratio becomes None."""
        return {
            **self._facts(),
            "log_ratio": finite(self.log_ratio),
            "slack": self.slack,
            "log_ratios": {name: finite(ratio) for name, ratio in self.log_ratios},
        }
