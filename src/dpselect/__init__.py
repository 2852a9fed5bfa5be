"""Differentially private selection: choose the best candidate so that no person can be inferred from the choice."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpselect import errors
from dpselect._unit import PrivacyUnit
from dpselect.errors import BudgetExceeded, LedgerCorrupt
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.generalized_scores import generalized_scores
from dpselect.mechanisms.guarantee import Guarantee
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from dpselect import analysis, audit, ledger, optimality, tables, tuning
    from dpselect.ledger import Ledger
    from dpselect.tables import Answer, open_table
    from dpselect.tuning import tune

__version__ = "0.2.0"

__all__ = [
    "Answer",
    "BudgetExceeded",
    "ExponentialMechanism",
    "Guarantee",
    "Ledger",
    "LedgerCorrupt",
    "Mechanism",
    "PermuteAndFlip",
    "PrivacyUnit",
    "ReportNoisyMax",
    "analysis",
    "audit",
    "errors",
    "generalized_scores",
    "ledger",
    "open_table",
    "optimality",
    "tables",
    "tune",
    "tuning",
]

# What is imported when it is first used: SciPy, SQLite and DuckDB take longer to import than all the rest.
_ROOMS = ("analysis", "audit", "ledger", "optimality", "tables", "tuning")
_LAZY = {"Answer": "tables", "Ledger": "ledger", "open_table": "tables", "tune": "tuning"}


def __getattr__(name: str) -> Any:
    """Import a room of the house when it is first used."""
    if name in _ROOMS:
        return import_module(f"dpselect.{name}")
    if name in _LAZY:
        return getattr(import_module(f"dpselect.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'dpselect' has no attribute {name!r}")
