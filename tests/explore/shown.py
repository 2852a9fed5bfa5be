"""What the page shows, compared with the analysis."""

import pytest

from dpselect.analysis import error_quantile, expected_error
from dpselect.explore.scores import made
from dpselect.mechanisms import MECHANISMS

CLOSE_RACE = made("close-race", 30).exact


def shows(page, scores, epsilon=None, sensitivity="1", monotonic=True):
    """Whether the table shows the figures of the analysis at these settings; by default at the page's own epsilon."""
    epsilon = epsilon or page.find("#amount").get_attribute("value")
    for name, figures in page.figures().items():  # of the question by scores of one's own
        mechanism = MECHANISMS[name](epsilon, sensitivity, monotonic)
        probabilities = mechanism.pmf(scores)
        best = sum(p for p, score in zip(probabilities, scores, strict=True) if score == max(scores))
        exact = [best, expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95)]
        if figures != pytest.approx(exact, rel=1e-12):
            return False
    return True
