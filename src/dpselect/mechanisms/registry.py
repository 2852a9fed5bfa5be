"""The one registry of mechanisms: the name that ledger, tables and command line use, and the class that draws."""

from enum import StrEnum

from dpselect.errors import InvalidType
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip


class MechanismName(StrEnum):
    """The mechanisms by name. A name never changes its meaning: ledgers keep it for years."""

    PERMUTE_AND_FLIP = "permute-and-flip"
    EXPONENTIAL = "exponential"
    NOISY_MAX = "noisy-max"


KINDS: dict[MechanismName, type[MechanismBase]] = {
    MechanismName.PERMUTE_AND_FLIP: PermuteAndFlip,
    MechanismName.EXPONENTIAL: ExponentialMechanism,
    MechanismName.NOISY_MAX: ReportNoisyMax,
}


def name_of(mechanism: MechanismBase) -> MechanismName:
    """The name of the mechanism that this record draws from.

    >>> name_of(PermuteAndFlip(epsilon=1)).value
    'permute-and-flip'
    """
    for name, kind in KINDS.items():
        if type(mechanism) is kind:
            return name
    raise InvalidType("mechanism must be a PermuteAndFlip, ExponentialMechanism or ReportNoisyMax")
