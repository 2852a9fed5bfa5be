"""The white-box audit passes ours, and flags every broken mechanism by its probabilities."""

import json

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.audit import audit_pmf
from tests.broken import BROKEN, BiasedShuffle


@pytest.mark.parametrize("monotonic", [False, True], ids=["any scores", "monotonic"])
@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax])
def test_ours_pass(kind, monotonic):
    found = audit_pmf(kind("0.7", 2, monotonic))
    assert not found.violates
    assert found.verdict == f"no violation found on {len(found.log_ratios)} score vectors"
    assert 0.69 < found.log_ratio <= 0.7 + found.slack


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_every_broken_mechanism_is_flagged(kind):
    """On the score vectors that come with it, of up to four candidates: the broken follow every order."""
    epsilon = 0.1 if kind is BiasedShuffle else 1
    vectors = {
        "three": [0, 0, 0],
        "low": [-1480, -1491],
        "beyond floats": [2**60 + 128, 2**60 + 512],
        "spread": [0, 4, 8],
    }
    found = audit_pmf(kind(epsilon), scores=vectors)
    assert found.violates
    assert found.log_ratio > 1.005 * epsilon
    assert repr(found).startswith("PmfAudit(violates epsilon = ")


def test_the_claim_may_be_another_one():
    scores = {"two": [0, 0]}
    assert audit_pmf(PermuteAndFlip(1), epsilon="0.999999", scores=scores).violates
    assert not audit_pmf(PermuteAndFlip(1), epsilon="1.000001", scores=scores).violates


def test_an_impossible_outcome_is_infinitely_bad_and_json_has_no_infinity():
    class Best:
        sensitivity, monotonic, epsilon = 1, False, 1

        def pmf(self, scores):
            return np.eye(len(scores))[int(np.argmax([float(score) for score in scores]))]

    found = audit_pmf(Best(), scores={"ties": [0, 0]})
    assert found.verdict == "violates epsilon = 1: it is at least inf on 'ties'"
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["log_ratio"] is None


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"mechanism": lambda scores: 0}, errors.InvalidType, "pmf"),
        ({"epsilon": 0}, errors.InvalidValue, "epsilon must be > 0"),
        ({"scores": {}}, errors.InvalidType, "scores must be a dictionary"),
        ({"scores": [1, 2]}, errors.InvalidType, "scores must be a dictionary"),
        ({"scores": {"long": [0] * 65}}, errors.InvalidValue, "at most 64"),
        ({"scores": {"nan": [float("nan")]}}, errors.InvalidValue, "finite"),
    ],
)
def test_bad_input(given, error, words):
    with pytest.raises(error, match=words):
        audit_pmf(**{"mechanism": PermuteAndFlip(1), **given})
