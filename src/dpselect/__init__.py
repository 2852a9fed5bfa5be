"""Differentially private selection: choose the best candidate so that no person can be inferred from the choice."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpselect import errors
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.guarantee import Guarantee
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from dpselect import analysis, optimality

__version__ = "0.1.0"

__all__ = [
    "ExponentialMechanism",
    "Guarantee",
    "Mechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "analysis",
    "errors",
    "optimality",
]


def __getattr__(name: str) -> Any:
    """Import what needs SciPy when it is first used: SciPy takes longer to import than all the rest."""
    if name in {"analysis", "optimality"}:
        return import_module(f"dpselect.{name}")
    raise AttributeError(f"module 'dpselect' has no attribute {name!r}")
