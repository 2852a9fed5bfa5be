"""What the page shows at one epsilon: probabilities, errors and tails of the three mechanisms, by the analysis."""

from fractions import Fraction
from typing import Any

import numpy as np

from dpselect.analysis import epsilon_for, error_quantile, error_tail, expected_error
from dpselect.errors import InvalidValue
from dpselect.explore.score_set import Known, ScoreSet
from dpselect.explore.settings import Settings
from dpselect.explore.words import factor_sentence, sentence
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.names import KINDS, MechanismName
from dpselect.probability.grid import Floats

_MOST_STEPS = 240
_FAR = 0.9995  # the tails are drawn up to here
# Nearer to the error of a blind choice than this, floats do not tell two epsilons apart.
_BLIND = 1 - 1e-6


def look(shown: ScoreSet, settings: Settings, unit: str) -> dict[str, Any]:
    """All figures at these settings."""
    known = {name: shown.known(name, settings.rate) for name in KINDS}
    figures = {name: _figures(shown, one) for name, one in known.items()}
    thresholds = _thresholds(shown, known)
    for name, one in known.items():
        figures[name]["tail"] = error_tail(one, shown.scores, thresholds).tolist()
    return {
        "mechanisms": figures,
        "thresholds": thresholds.tolist(),
        "sentence": sentence(settings, unit, figures[settings.mechanism], bool(shown.losses.any())),
        "factor": (factor := exponential_factor(shown, settings)),
        "factor_sentence": factor_sentence(settings, factor),
        "guarantee": str(settings.record().guarantee),
    }


def _figures(shown: ScoreSet, known: Known) -> dict[str, Any]:
    return {
        "probabilities": known.probabilities.tolist(),
        "best": min(1.0, float(known.probabilities[shown.losses == 0].sum())),
        "expected_error": expected_error(known, shown.scores),
        "error_95": error_quantile(known, shown.scores, 0.95),
    }


def _thresholds(shown: ScoreSet, known: dict[MechanismName, Known]) -> Floats:
    """The errors at which the tails step, or a grid of them where there are many."""
    far = max(error_quantile(one, shown.scores, _FAR) for one in known.values())
    errors = np.unique(shown.losses)
    steps: Floats = errors[errors <= far]
    return steps if steps.size <= _MOST_STEPS else np.linspace(0, far, _MOST_STEPS)


def exponential_factor(shown: ScoreSet, settings: Settings) -> float | None:
    """How many times the budget the exponential mechanism needs for the expected error of permute-and-flip.

    None where all scores are equal, where the error is zero in floats, and where both choose almost blindly.
    """
    target = expected_error(shown.known(MechanismName.PERMUTE_AND_FLIP, settings.rate), shown.scores)
    if not 1e-290 < target < _BLIND * float(shown.losses.mean()):
        return None
    try:
        # At score range 1 the epsilon is the rate, and ratios of rates are ratios of epsilons.
        needed = epsilon_for(ExponentialMechanism, shown.scores, expected_error=target, score_range=1)
    except InvalidValue:
        return None
    return float(Fraction(needed) / settings.rate)
