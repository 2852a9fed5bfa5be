"""Power of an audit: how few hits a broken mechanism can have where it should be caught."""

from scipy import stats

from dpselect.audit.events import epsilon_bound

MISSED = 1e-9  # how often each of the two counts may be beyond what is assumed here


def least_bound(likely: float, unlikely: float, trials: int, doubt: float) -> float:
    """What the bound exceeds, but with probability 2e-9, for an event of these probabilities on the two vectors."""
    hits = stats.binom.ppf(MISSED, trials, likely)
    others = stats.binom.isf(MISSED, trials, unlikely)
    return float(epsilon_bound(hits, others, trials, doubt))
