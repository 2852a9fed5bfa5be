"""A durable ledger of what was spent, and the accountant that computes the total.

A ledger is one SQLite file for one data set. Every release is written to it before its answer is returned. When the
budget is used up, no further question is answered.
"""

from dpselect.accounting.charge import PURE, Charge, PrivacyUnit
from dpselect.ledger.chain import Entry
from dpselect.ledger.ledger import Ledger
from dpselect.release import Receipt

__all__ = ["PURE", "Charge", "Entry", "Ledger", "PrivacyUnit", "Receipt"]
