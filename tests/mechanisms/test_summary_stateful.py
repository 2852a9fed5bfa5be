"""Any sequence of updates, merges and pickles of summaries selects what one look at all candidates would."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from dpselect import PermuteAndFlip
from dpselect.errors import InvalidValue

# A candidate one below the best is selected with a probability below exp(-10**5).
CERTAIN = PermuteAndFlip(epsilon=10**6)
SCORES = st.integers(-(2**70), 2**70) | st.sampled_from([0, 1, 2**53, 2**53 + 1, Fraction(4, 2), 3.0])


class Summaries(RuleBasedStateMachine):
    """Beside each summary, the plain list of what it has seen."""

    made = Bundle("made")

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple] = []
        self.labels = 0

    @initialize(target=made)
    def start(self):
        return self._kept(CERTAIN.summary(), [])

    @rule(target=made)
    def empty(self):
        return self._kept(CERTAIN.summary(), [])

    @rule(number=made, scores=st.lists(SCORES, max_size=5), as_array=st.booleans())
    def update(self, number, scores, as_array):
        summary, seen = self.pairs[number]
        names = [self.labels + i for i in range(len(scores))]
        self.labels += len(scores)
        small = as_array and scores and all(isinstance(s, int) and abs(s) < 2**62 for s in scores)
        summary.update(np.array(scores) if small else scores, labels=names)
        seen.extend(zip(scores, names, strict=True))

    @rule(target=made, first=made, second=made)
    def merge(self, first, second):
        (one, seen), (other, also) = self.pairs[first], self.pairs[second]
        if first == second:
            with pytest.raises(InvalidValue, match="merged once only"):
                one.merge(other)
            return multiple()
        return self._kept(one.merge(other), [*seen, *also])

    @rule(target=made, number=made)
    def freeze_and_thaw(self, number):
        summary, seen = self.pairs[number]
        return self._kept(pickle.loads(pickle.dumps(summary)), list(seen))  # noqa: S301 - our own

    @invariant()
    def every_summary_selects_a_best_candidate(self):
        for summary, seen in self.pairs:
            assert summary.candidates == len(seen)
            if seen:
                best = max(score for score, _ in seen)
                assert summary.result() in {name for score, name in seen if score == best}

    def _kept(self, summary, seen) -> int:
        self.pairs.append((summary, seen))
        return len(self.pairs) - 1


Summaries.TestCase.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)
TestSummaries = Summaries.TestCase
