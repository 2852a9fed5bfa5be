"""Privacy profiles: the largest value of Pr[M(x) in S] - e^a Pr[M(x') in S] over neighbours x, x' and sets S.

Profiles bound how the mechanisms of a list compose, if the list was fixed beforehand; each may be asked a question that
depends on the answers before (Zhu, Dong & Wang 2022, Theorem 10). For a mechanism of this epsilon and |a| <= epsilon
the profile is, at most,

  permute-and-flip   1 - e^((a - epsilon)/2)                            Laplace noise (theorem 2 of docs/theory.md)
  exponential        (1 - e^((a - epsilon)/2))^2 / (1 - e^-epsilon)     bounded range
  any other          (e^epsilon - e^a) / (1 + e^epsilon)                randomized response

Bounded range (Durfee & Rogers 2019; Dong, Durfee & Rogers 2020): the privacy loss lies in [t - epsilon, t] for some t.
The worst distribution puts p on t and the rest on t - epsilon, where p = (1 - e^(t - epsilon)) / (1 - e^-epsilon), for
the other side's probabilities sum to one. Its profile at a is p (1 - e^(a - t)), largest at t = (a + epsilon)/2.
All three are their own mirror images under exchange of x and x', so one direction is enough.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpselect.ledger.charge import PURE
from dpselect.mechanisms.names import MechanismName

Floats = npt.NDArray[np.float64]
Profile = Callable[[float, Floats], Floats]


def laplace_profile(epsilon: float, losses: Floats) -> Floats:
    """That of Laplace noise of scale 1/epsilon on a query of sensitivity one."""
    values: Floats = -np.expm1((losses - epsilon) / 2)
    return values


def bounded_range_profile(epsilon: float, losses: Floats) -> Floats:
    """The largest among all mechanisms whose privacy loss spans a range of epsilon."""
    values: Floats = np.divide(np.expm1((losses - epsilon) / 2) ** 2, -math.expm1(-epsilon))
    return values


def pure_profile(epsilon: float, losses: Floats) -> Floats:
    """The largest among all epsilon-DP mechanisms; numerator and denominator are divided by e^epsilon."""
    values: Floats = np.divide(-np.expm1(losses - epsilon), 1 + math.exp(-epsilon))
    return values


PROFILES: dict[str, Profile] = {
    MechanismName.PERMUTE_AND_FLIP: laplace_profile,
    MechanismName.EXPONENTIAL: bounded_range_profile,
    MechanismName.NOISY_MAX: pure_profile,
    PURE: pure_profile,
}


def profile(mechanism: str, epsilon: float, losses: Floats) -> Floats:
    """The profile of the named mechanism: zero from epsilon on, and 1 - e^a up to -epsilon."""
    inside = PROFILES[mechanism](epsilon, np.clip(losses, -epsilon, epsilon))
    return np.where(losses >= epsilon, 0.0, np.where(losses <= -epsilon, -np.expm1(losses), inside))
