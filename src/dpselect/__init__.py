"""Choose the best candidate privately, with a proven limit on what the answer reveals about any one person."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpselect import errors
from dpselect._version import __version__ as __version__
from dpselect.errors import BudgetExceeded, LedgerCorrupt

if TYPE_CHECKING:
    from dpselect import accounting, analysis, audit, ledger, optimality, tables, tuning
    from dpselect.accounting.budget import Budget, approximate, pure, zcdp
    from dpselect.accounting.charge import PrivacyUnit
    from dpselect.analysis import plan
    from dpselect.analysis.unequal import generalized_scores
    from dpselect.ledger import Ledger
    from dpselect.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
    from dpselect.mechanisms.base import Mechanism
    from dpselect.mechanisms.privacy import Guarantee
    from dpselect.mechanisms.summary import Summary
    from dpselect.release import Answer, Release
    from dpselect.tables import Column, open_table
    from dpselect.tables.domains import every
    from dpselect.top_k import release_top_k, select_top_k
    from dpselect.tuning import tune

__all__ = [
    "Answer",
    "Budget",
    "BudgetExceeded",
    "Column",
    "ExponentialMechanism",
    "Guarantee",
    "Ledger",
    "LedgerCorrupt",
    "Mechanism",
    "PermuteAndFlip",
    "PrivacyUnit",
    "Release",
    "ReportNoisyMax",
    "Summary",
    "accounting",
    "analysis",
    "approximate",
    "audit",
    "errors",
    "every",
    "generalized_scores",
    "ledger",
    "open_table",
    "optimality",
    "plan",
    "pure",
    "release_top_k",
    "select_top_k",
    "tables",
    "tune",
    "tuning",
    "zcdp",
]

# What is imported when it is first used: NumPy, SciPy, SQLite and DuckDB take longer to import than all the rest.
_ROOMS = {"accounting", "analysis", "audit", "ledger", "mechanisms", "optimality", "selection", "tables", "tuning"}
_HOMES = {
    "accounting.budget": ("Budget", "approximate", "pure", "zcdp"),
    "accounting.charge": ("PrivacyUnit",),
    "analysis": ("plan",),
    "analysis.unequal": ("generalized_scores",),
    "ledger": ("Ledger",),
    "mechanisms": ("ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax"),
    "mechanisms.base": ("Mechanism",),
    "mechanisms.privacy": ("Guarantee",),
    "mechanisms.summary": ("Summary",),
    "release": ("Answer", "Release"),
    "tables": ("Column", "open_table"),
    "tables.domains": ("every",),
    "top_k": ("release_top_k", "select_top_k"),
    "tuning": ("tune",),
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a room of the house, or a name from one, when it is first used."""
    if name in _ROOMS:
        return import_module(f"dpselect.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'dpselect' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"dpselect.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    """Return the public names, also of rooms that are not imported yet."""
    return sorted(__all__)
