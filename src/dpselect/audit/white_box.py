"""Compare the probabilities of a mechanism on neighbouring scores. Nothing is random; only floats add an error."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._scores import exact_scores
from dpselect._types import Number
from dpselect.analysis.privacy import HasProbabilities, check_privacy, search_neighbours
from dpselect.audit.findings import PmfAudit
from dpselect.audit.neighbours import hard_pairs
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import claim_of

# Our probabilities have a relative error of at most 1e-12, which moves a log-ratio by at most 2e-12. Probabilities from
# elsewhere may be less accurate.
DEFAULT_SLACK = 1e-9
_MOST_TO_SEARCH = 3
_MOST_CANDIDATES = 64


def audit_pmf(
    mechanism: HasProbabilities,
    epsilon: Number | None = None,
    *,
    scores: Mapping[str, Any] | None = None,
    slack: float = DEFAULT_SLACK,
) -> PmfAudit:
    """Compare the probabilities that a mechanism's `pmf` gives on neighbouring score vectors.

    For up to three candidates, a grid over the whole box of neighbours is searched, including its ends and its middle.
    This does not assume that the mechanism is regular. For more candidates, only the neighbours that are worst for a
    regular mechanism are compared (see `analysis.check_privacy`).

    Args:
        mechanism: an object with a method `pmf(scores)`, and with `sensitivity` and `monotonic`, or `score_range`.
        epsilon: the promised epsilon; `mechanism.epsilon` if omitted.
        scores: a dictionary from names to score vectors; the short vectors of `hard_pairs` if omitted.
        slack: how far errors of the probabilities may move a log-ratio.

    Returns:
        The largest log-ratio of each score vector, and the verdict.

    Raises:
        InvalidType: the mechanism has no `pmf`, or `scores` is not a dictionary.
        InvalidValue: epsilon is not positive, or a score vector has more than 64 candidates.

    >>> from dpselect import PermuteAndFlip
    >>> audit_pmf(PermuteAndFlip(epsilon=1), scores={"two": [3, 0], "ties": [0, 0, 0]})
    PmfAudit(no violation found on 2 score vectors)
    >>> audit_pmf(PermuteAndFlip(epsilon="1.01"), epsilon=1, scores={"two": [3, 0], "ties": [0, 0, 0]})
    PmfAudit(violates epsilon = 1: it is at least 1.01 on 'two')
    """
    promised = _promised(mechanism, epsilon)
    claim = claim_of(mechanism)
    if scores is None:
        pairs = hard_pairs(promised, **claim.arguments(), longest=16)
        scores = {pair.name: pair.scores for pair in pairs}
    if not isinstance(scores, Mapping) or not scores:
        raise InvalidType("scores must be a dictionary from names to score vectors, with at least one entry")
    ratios = tuple((str(name), _worst(mechanism, vector)) for name, vector in scores.items())
    return PmfAudit(promised, claim, slack, ratios)


def _promised(mechanism: HasProbabilities, epsilon: Number | None) -> Fraction:
    if not callable(getattr(mechanism, "pmf", None)):
        raise InvalidType("mechanism must have a method pmf(scores): use audit for a callable without one")
    return _validate.exact_positive(epsilon=getattr(mechanism, "epsilon", None) if epsilon is None else epsilon)


def _worst(mechanism: HasProbabilities, scores: Any) -> float:
    exact = exact_scores(scores)
    if len(exact) > _MOST_CANDIDATES:
        raise InvalidValue(f"scores must have at most {_MOST_CANDIDATES} candidates, got {len(exact)}: give fewer")
    return (search_neighbours if len(exact) <= _MOST_TO_SEARCH else check_privacy)(mechanism, exact)
