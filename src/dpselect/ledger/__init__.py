"""A durable ledger of what was spent, and the accountant that says what it adds up to.

A ledger is one SQLite file for each data set. Every release is written to it before the answer is given. When the
budget is gone, nothing is answered any more.
"""

from dpselect._unit import PrivacyUnit
from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    LedgerCorrupt,
    LedgerError,
    RequestConflict,
    RequestUnanswered,
    UnitMismatch,
)
from dpselect.ledger import accounting
from dpselect.ledger.charge import PURE, Charge
from dpselect.ledger.durable import Ledger
from dpselect.ledger.entry import Entry, Receipt

__all__ = [
    "PURE",
    "BudgetExceeded",
    "BudgetMismatch",
    "Charge",
    "Entry",
    "Ledger",
    "LedgerCorrupt",
    "LedgerError",
    "PrivacyUnit",
    "Receipt",
    "RequestConflict",
    "RequestUnanswered",
    "UnitMismatch",
    "accounting",
]
