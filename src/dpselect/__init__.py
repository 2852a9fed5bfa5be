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
    from dpselect import analysis, audit, tables
    from dpselect.tables import Answer, open_table

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "ExponentialMechanism",
    "Guarantee",
    "Mechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "analysis",
    "audit",
    "errors",
    "open_table",
    "tables",
]

# Imported when they are first used: SciPy and DuckDB take longer to import than all the rest.
_ROOMS = {"analysis": None, "audit": None, "tables": None, "open_table": "tables", "Answer": "tables"}


def __getattr__(name: str) -> Any:
    """Import a room of the house when it is first used."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'dpselect' has no attribute {name!r}")
    room = _ROOMS[name]
    return import_module(f"dpselect.{name}") if room is None else getattr(import_module(f"dpselect.{room}"), name)
