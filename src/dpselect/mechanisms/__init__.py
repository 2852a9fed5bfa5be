"""The selection mechanisms, one algorithm per file, and `MECHANISMS`, their classes by name.

>>> list(MECHANISMS)
['permute-and-flip', 'exponential', 'noisy-max']
"""

# ruff: noqa: I001 - the order of definition is the order in which mechanisms are shown everywhere
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.base import MECHANISMS, MechanismBase

__all__ = ["MECHANISMS", "ExponentialMechanism", "MechanismBase", "PermuteAndFlip", "ReportNoisyMax"]
