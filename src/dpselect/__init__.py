"""Differentially private selection: choose the best candidate so that no person can be inferred from the choice."""

from dpselect import errors
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.guarantee import Guarantee
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.protocol import Mechanism

__version__ = "0.1.0"

__all__ = [
    "ExponentialMechanism",
    "Guarantee",
    "Mechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "errors",
]
