"""A durable ledger of what was spent, and the accountant that says what it adds up to.

A ledger is one SQLite file for each data set. Every release is written to it before the answer is given. When the
budget is spent, nothing more is answered.
"""

from dpselect.accounting.charge import PURE, Charge, PrivacyUnit
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
from dpselect.ledger.chain import Entry
from dpselect.ledger.ledger import Ledger
from dpselect.release import Receipt

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
