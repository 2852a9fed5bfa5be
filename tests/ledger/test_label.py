"""The label is the sampler: the mechanism that an entry names is the one whose distribution was drawn."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import Ledger
from dpselect.ledger import Charge, Entry
from dpselect.mechanisms import MECHANISMS, MechanismBase
from tests import reference
from tests.statistical.goodness import assert_fits, assert_rejected

SCORES = np.array([6.0, 5, 4, 4, 3, 0])
DRAWS = 300_000
# The distributions that the names mean, written independently of the classes.
MEANT = {
    "permute-and-flip": reference.permute_and_flip_pmf,
    "exponential": reference.exponential_pmf,
    "noisy-max": reference.noisy_max_pmf,
}


def drawn(mechanism: MechanismBase) -> np.ndarray:
    winners = mechanism.select_rows(np.tile(SCORES, (DRAWS, 1)))
    return np.bincount(winners, minlength=SCORES.size)


def rate(entry: Entry) -> float:
    assert isinstance(entry.what, dict)
    spread = Fraction(entry.what["sensitivity"]) * (1 if entry.what["monotonic"] else 2)
    return float(entry.charge.each / spread)


@pytest.mark.parametrize("name", list(MECHANISMS))
@pytest.mark.parametrize("monotonic", [False, True])
def test_what_an_entry_names_is_what_was_drawn(ledger: Ledger, name: str, monotonic: bool) -> None:
    """From the entry alone, and an independent formula, the distribution of the draws; no other name explains them."""
    mechanism = MECHANISMS[name]("0.9", "0.7", monotonic)
    entry = ledger.charge(Charge.of(mechanism, {"question": "mode"}))
    assert entry.mechanism == name == mechanism.name
    counts, truth = drawn(mechanism), MEANT[entry.mechanism](SCORES, rate(entry))
    assert_fits(counts, truth)
    for other, pmf in MEANT.items():
        if other != entry.mechanism:
            assert_rejected(counts, pmf(SCORES, rate(entry)), truth=truth)
    assert_rejected(counts, MEANT[entry.mechanism](SCORES, rate(entry) * 1.15), truth=truth)


def test_every_mechanism_has_one_name() -> None:
    assert set(MEANT) == set(MECHANISMS)
    assert len(set(MECHANISMS.values())) == len(MECHANISMS)
