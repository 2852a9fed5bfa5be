"""Audits catch every broken mechanism with near certainty, and accuse none of ours: by samples or probabilities."""

import dataclasses
import json
import math

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.audit import Audit, Pair, audit, audit_pmf, hard_pairs
from tests.broken import (
    BROKEN,
    BiasedShuffle,
    HalfTheSensitivity,
    PlainPermuteAndFlip,
    RateOffByOnePercent,
    RoundedScores,
    TiesToTheFirst,
    UnderflowingExp,
)
from tests.statistical.detection import least_bound

pytestmark = pytest.mark.slow

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
DOUBT = 1e-9  # of each audit here; there are some thirty
RUNS = 20_000


def pair_named(name, epsilon):
    [pair] = [pair for pair in hard_pairs(epsilon) if pair.name == name]
    return pair


# Where each is caught: epsilon, the pair of neighbours, the runs, and an event that is too likely there.
CAUGHT = {
    BiasedShuffle: (0.1, "three ties", 6_000_000, 2),
    RateOffByOnePercent: (2, "ties", 18_000_000, 0),
    HalfTheSensitivity: (1, "ties", RUNS, 0),
    TiesToTheFirst: (1, "ties", RUNS, 1),
    UnderflowingExp: (1, "exponentials that underflow", RUNS, 1),
    RoundedScores: (1, "integers beyond 2**60", RUNS, 0),
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_every_broken_mechanism_is_caught(kind):
    epsilon, name, runs, candidate = CAUGHT[kind]
    pair, mechanism = pair_named(name, epsilon), kind(epsilon)
    ends = [mechanism.pmf(vector.tolist())[candidate] for vector in (pair.scores, pair.neighbour)]
    assert least_bound(max(ends), min(ends), runs // 2, DOUBT) > epsilon, "too few runs for a power check"
    found = audit(mechanism, epsilon, pairs=[pair], runs=runs, false_alarm=DOUBT)
    assert found.violates
    assert epsilon < found.lower_bound <= abs(math.log(max(min(ends), 1e-300) / max(ends)))
    assert found.verdict.startswith(f"violates epsilon = {epsilon}: it is at least ")
    if runs == RUNS:  # the pairs that come with the audit are enough
        assert audit(mechanism, epsilon, runs=RUNS, false_alarm=DOUBT).violates


def test_the_control_is_not_accused_on_harmless_scores():
    pairs = [pair for pair in hard_pairs(1) if pair.scores.dtype.kind == "f"]
    assert not audit(PlainPermuteAndFlip(1), 1, pairs=pairs, runs=RUNS, false_alarm=DOUBT).violates


CLAIMS = {"any scores": {}, "monotonic": {"monotonic": True}, "range": {"score_range": 3}}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("kind", KINDS)
def test_ours_are_not_accused(kind, claim):
    """And the audit comes close: permute-and-flip spends all of its epsilon on ties."""
    claimed = CLAIMS[claim]
    pairs = hard_pairs(1, **claimed)
    found = audit(kind(1, **claimed), 1, **claimed, pairs=pairs, runs=10_000, false_alarm=DOUBT)
    assert not found.violates
    assert found.runs == 2 * 10_000 * len(pairs)
    assert found.verdict == f"no violation found in {found.runs:,} runs"
    assert ("sensitivity" in found.to_dict(), "score_range" in found.to_dict()) == (claim != "range", claim == "range")
    if kind is PermuteAndFlip:
        assert found.lower_bound > least_bound(0.5, math.exp(-1) / 2, 5_000, DOUBT / len(pairs)) > 0.4
    assert not any(finding.failures for finding in found.findings)


def ones(scores):
    return [1] * len(scores)


@pytest.mark.parametrize(
    "f",
    [
        PermuteAndFlip(1).select,
        lambda scores: PermuteAndFlip(1).select(scores, early_exit=True),
        lambda scores: PermuteAndFlip(1).select_runs(scores, ones(scores)),
        ExponentialMechanism(1).select,
        lambda scores: ExponentialMechanism(1).select_runs(scores, ones(scores)),
        ReportNoisyMax(1).select,
    ],
    ids=["select", "early exit", "runs", "exponential", "exponential runs", "noisy max"],
)
def test_our_single_selections_are_not_accused(f):
    pairs = [pair_named(name, 1) for name in ("ties", "spread", "many losers", "integers beyond 2**60")]
    assert not audit(f, 1, pairs=pairs, runs=1_000, false_alarm=DOUBT).violates


@pytest.mark.parametrize("kind", KINDS)
def test_long_vectors_of_ours_are_not_accused(kind):
    """Beyond 4,096 candidates the kernels take another road."""
    [pair] = [pair for pair in hard_pairs(3, longest=5_000) if pair.name == "many losers"]
    assert not audit(kind(3).select, 3, pairs=[pair], runs=1_500, false_alarm=DOUBT).violates
    assert audit(kind(3).select, "0.5", pairs=[pair], runs=1_500, false_alarm=DOUBT).violates
    winner = [kind(3).pmf(scores)[0] for scores in (pair.scores, pair.neighbour)]
    assert least_bound(*winner, 750, DOUBT) > 0.5


@pytest.mark.parametrize("sensitivity", ["0.1", "1/3", 7, 10**6, 1e-200, 1e200])
@pytest.mark.parametrize("monotonic", [False, True], ids=["any scores", "monotonic"])
def test_other_sensitivities(sensitivity, monotonic):
    """The pairs scale: ours passes, and what it does for a third of the promised epsilon is caught."""
    mechanism = PermuteAndFlip(3, sensitivity, monotonic)
    honest = audit(mechanism, 3, sensitivity=sensitivity, monotonic=monotonic, runs=3_000, false_alarm=DOUBT)
    assert not honest.violates
    false = audit(mechanism, 1, sensitivity=sensitivity, monotonic=monotonic, runs=6_000, false_alarm=DOUBT)
    assert false.violates
    assert least_bound(0.5, math.exp(-3 * (1 - 2**-20)) / 2, 3_000, DOUBT / len(false.findings)) > 1


def test_an_exception_is_not_the_text_of_its_name():
    """One run returns a text, the other raises: an observer sees the difference."""

    def one_or_other(scores):
        if scores[0]:
            raise ZeroDivisionError
        return "ZeroDivisionError"

    found = audit(one_or_other, 1, pairs=[([0], [1])], runs=400)
    assert found.violates
    assert found.worst.event == ("ZeroDivisionError",)
    assert found.worst.description in {
        "the output is 'ZeroDivisionError'",
        "the output is an exception ZeroDivisionError",
    }


def test_inputs_that_cannot_be_copied_are_handed_over():
    class Connection:
        def __copy__(self):
            raise TypeError("cannot be copied")

    one, other = Connection(), Connection()
    found = audit(lambda data: data is one, 1, inputs=[(one, other)], runs=400)
    assert found.violates
    assert found.worst.event in {(True,), (False,)}


def test_an_input_is_copied_for_each_run():
    found = audit(lambda data: data.append(0) or len(data), 1, inputs=[([], [])], runs=200)
    assert found.worst.event == (1,)


def test_an_audit_of_inputs_makes_no_claim_of_scores():
    found = audit(lambda data: None, "1/2", inputs={"a": ("x", "y"), "b": (None, {})}, runs=200)
    assert not found.violates
    assert found.runs == 800
    assert [finding.pair for finding in found.findings] == ["a", "b"]
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["findings"][0]["event"] == [None]
    assert "sensitivity" not in content


@pytest.mark.parametrize("depth", [30, 200, 300, 330, 400, 480, 500, 900, 5_000])
def test_deep_outputs_are_audited_or_refused(depth):
    def deep(data):
        output = data
        for _ in range(depth):
            output = [output]
        return output

    try:
        found = audit(deep, 1, inputs=[(0, 1)], runs=100, false_alarm=0.01).violates
    except errors.InvalidValue as error:
        found = str(error)
    assert found is True or (depth > 100 and "nested too deeply" in found)


def test_an_exception_is_an_outcome():
    def refuses_negative(scores):
        if min(scores) < 0:
            raise ZeroDivisionError
        return 0

    found = audit(refuses_negative, 1, pairs=[([0, 5], [-1, 5])], runs=1_000)
    assert found.violates
    assert found.worst.event in {("ZeroDivisionError",), (0,)}
    assert found.worst.failures == 1_000
    assert not audit(refuses_negative, 1, pairs=[([0, 5], [1, 5])], runs=1_000).violates


def test_scores_are_handed_over_in_their_type():
    seen = []
    audit(lambda scores: seen.append(scores) or 0, 1, pairs=[([1, 2], np.array([1, 3], np.uint8))], runs=100)
    assert len(seen) == 200
    lists, arrays = ([scores for scores in seen if isinstance(scores, kind)] for kind in (list, np.ndarray))
    assert lists == [[1, 2]] * 100
    assert {(scores.dtype.name, *scores.tolist()) for scores in arrays} == {("uint8", 1, 3)}


def test_what_f_does_to_its_scores_does_not_reach_the_next_run():
    def careless(scores):
        scores -= scores.max()
        return int(scores.min() != -1)

    found = audit(careless, 1, pairs=[(np.array([5, 4]), np.array([4, 3]))], runs=200)
    assert not found.violates
    assert found.worst.hits in (0, 100)


def test_the_watcher_is_told_how_far_it_is():
    told = []
    audit(lambda scores: 0, 1, pairs=[([0], [1]), ([0, 1], [1, 0])], runs=3_000, watch=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) >= 8


def test_the_record_says_what_was_found_and_never_more():
    found = audit(lambda scores: int(np.argmax(scores)), "1/2", pairs=[Pair("a tie", [0, 0], [0, 1])], runs=1_000)
    assert isinstance(found, Audit)
    assert repr(found) == "Audit(violates epsilon = 0.5: it is at least 3.525 on the pair 'a tie')"
    assert repr(found.findings[0]) == "Finding('a tie', epsilon >= 3.525, 500 trials)"
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["violates"] is True
    assert content["epsilon"] == "1/2"
    assert content["findings"][0]["hits"] == 500
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.runs = 0
    for text in (found.verdict, audit(lambda scores: 0, 1, runs=100).verdict):
        assert "private" not in text


ALWAYS_FAILS = "failed in every run, with ZeroDivisionError: give a callable "


def zero(scores):
    return 1 // 0


def endless(scores):
    inner = list(scores)
    inner.append(inner)
    return inner


class Rows:
    """Returns the same for any rows, and fails for None."""

    def __init__(self, returned):
        self.returned = returned

    def select_rows(self, rows):
        return 1 // 0 if self.returned is None else self.returned


ONE_EACH = (errors.InvalidValue, "one output for each row")  # else the trials would be miscounted
FAILED = (errors.InvalidValue, r"select_rows failed, with ZeroDivisionError: give f\.select")
BAD = {
    **{f"{name} rows": ({"f": Rows(found)}, *ONE_EACH) for name, found in {"few": np.zeros(24), "no": []}.items()},
    "many rows": ({"f": Rows([0] * 101)}, *ONE_EACH),
    "no list of rows": ({"f": Rows(0)}, errors.InvalidType, "must return an array or a list, got int"),
    "an exception for rows": ({"f": Rows(None)}, *FAILED),
    "an exception for inputs": ({"f": zero, "inputs": [(0, 1)]}, errors.InvalidValue, ALWAYS_FAILS + r"f\(data\)"),
    "an exception for scores": ({"f": zero}, errors.InvalidValue, ALWAYS_FAILS + r"f\(scores\)"),
    "no callable": ({"f": 3}, errors.InvalidType, "f must be a callable"),
    "epsilon": ({"epsilon": 0}, errors.InvalidValue, "epsilon must be > 0"),
    "sensitivity": ({"sensitivity": -1}, errors.InvalidValue, "sensitivity must be > 0"),
    "monotonic": ({"monotonic": 1}, errors.InvalidType, "monotonic must be True or False"),
    "few runs": ({"runs": 99}, errors.InvalidValue, "runs must be >= 100"),
    "no runs": ({"runs": 1e4}, errors.InvalidType, "runs must be an integer"),
    "false alarm": ({"false_alarm": 1}, errors.InvalidValue, "false_alarm must be between 0 and 1"),
    "no pairs": ({"pairs": []}, errors.InvalidValue, "pairs must have at least one"),
    "text": ({"pairs": "ab"}, errors.InvalidType, "pairs must be a list"),
    "a triple": ({"pairs": [([0], [0], [0])]}, errors.InvalidType, "pair 1 must be"),
    "no neighbours": ({"pairs": [([0], [0]), ([0, 48151], [0, 48153])]}, errors.InvalidValue, "'pair 2' are not neigh"),
    "by a hair": ({"pairs": [([0.0], [np.nextafter(1, 2)])]}, errors.InvalidValue, "more than the sensitivity"),
    "beyond floats": ({"pairs": [([2**60], [2**60 + 2])]}, errors.InvalidValue, "more than the sensitivity"),
    "lengths": ({"pairs": [([0], [0, 1])]}, errors.InvalidValue, "different lengths"),
    "both ways": ({"pairs": [([0, 0], [1, -1])], "monotonic": True}, errors.InvalidValue, "some rise|some scores rise"),
    "nan": ({"pairs": [([0.0], [math.nan])]}, errors.InvalidValue, "finite"),
    "no hash": ({"f": slice}, errors.InvalidType, "f must return something hashable, got slice"),
    "new objects": ({"f": lambda scores: object()}, errors.InvalidType, "returns a new object in each run"),
    "a loop": ({"f": endless}, errors.InvalidValue, "the output of f is nested too deeply"),
    "no inputs": ({"inputs": []}, errors.InvalidValue, "inputs must have at least one pair"),
    "inputs in a tuple": ({"inputs": ([1, 2], [1, 3])}, errors.InvalidType, "inputs must be a list of tuples"),
    "an input without a neighbour": ({"inputs": [(1,)]}, errors.InvalidType, "'pair 1' must be a tuple"),
    "a list for a pair": ({"inputs": {"b": [48151, 2]}}, errors.InvalidType, "'b' must be a tuple .*, got list"),
    "inputs and pairs": ({"inputs": [(0, 1)], "pairs": [([0], [1])]}, errors.InvalidValue, "leave out pairs"),
    "inputs and a sensitivity": ({"inputs": [(0, 1)], "sensitivity": 1}, errors.InvalidValue, "leave out pairs"),
    "inputs, monotonic": ({"inputs": [(0, 1)], "monotonic": True}, errors.InvalidValue, "leave out pairs"),
    "inputs and a range": ({"inputs": [(0, 1)], "score_range": 1}, errors.InvalidValue, "leave out pairs"),
}


BAD_FOR_PMF = {
    "no pmf": ({"mechanism": lambda scores: 0}, errors.InvalidType, "pmf"),
    "a pmf's epsilon": ({"epsilon": 0}, errors.InvalidValue, "epsilon must be > 0"),
    "no scores": ({"scores": {}}, errors.InvalidType, "scores must be a dictionary"),
    "scores without names": ({"scores": [1, 2]}, errors.InvalidType, "scores must be a dictionary"),
    "long scores": ({"scores": {"long": [0] * 65}}, errors.InvalidValue, "at most 64"),
    "scores that are nan": ({"scores": {"nan": [float("nan")]}}, errors.InvalidValue, "finite"),
}


@pytest.mark.parametrize("case", [*BAD, *BAD_FOR_PMF])
def test_bad_input(case):
    if case in BAD:
        f, usual, (given, error, words) = audit, {"f": lambda scores: 0, "epsilon": 1, "runs": 100}, BAD[case]
    else:
        f, usual, (given, error, words) = audit_pmf, {"mechanism": PermuteAndFlip(1)}, BAD_FOR_PMF[case]
    with pytest.raises(error, match=words) as caught:
        f(**usual | given)
    assert "48151" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_that_was_halved_is_found(kind):
    """Who takes the range for the sensitivity of monotonic scores of half of it spends twice epsilon."""
    assert audit(kind(6, score_range=3), 3, score_range=3, runs=6_000, false_alarm=DOUBT).violates
    assert audit_pmf(kind("0.7", score_range=3), "0.6", scores={"behind": [0, -30, 0]}).violates


def leans_on_size(scores):
    """Chooses by the size of the largest score: no sensitivity could see it, and a range allows any shift."""
    return int(np.max(scores) > 1000)


def test_what_depends_on_the_shift_is_found():
    assert audit(leans_on_size, 1, score_range=1, runs=1000).worst.pair == "all move far and alike"
    assert audit(leans_on_size, 1, score_range=1, runs=1000).violates


def test_pairs_of_a_range_are_checked():
    shifted = [([0, 0], [1000, 1001])]
    assert not audit(PermuteAndFlip(1), 1, score_range=1, pairs=shifted, runs=100).violates
    with pytest.raises(errors.InvalidValue, match="changes by more than the score range"):
        audit(PermuteAndFlip(1), 1, score_range="0.9", pairs=shifted, runs=100)
    with pytest.raises(errors.InvalidValue, match="give either score_range"):
        audit(PermuteAndFlip(1), 1, sensitivity=1, score_range=1, runs=100)


@pytest.mark.parametrize("claimed", [*CLAIMS.values(), {"sensitivity": 2}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_probabilities_of_ours_pass(kind, claimed):
    found = audit_pmf(kind("0.7", **claimed))
    assert not found.violates
    assert found.verdict == f"no violation found on {len(found.log_ratios)} score vectors"
    assert 0.69 < found.log_ratio <= 0.7 + found.slack


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_the_probabilities_of_every_broken_mechanism_are_flagged(kind):
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


def test_probabilities_may_be_held_against_another_claim():
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
