"""Try to catch a mechanism, ours or yours, being less private than it says.

`audit` runs a callable on neighbouring scores, or on neighbouring inputs of any kind, and bounds its epsilon from
below; `audit_pmf` compares probabilities. Both can prove that a promise is broken. Neither can prove that it is
kept.
"""

from dpselect.audit.black_box import audit
from dpselect.audit.findings import Audit, Finding, PmfAudit
from dpselect.audit.hard_pairs import hard_pairs
from dpselect.audit.neighbours import Pair
from dpselect.audit.white_box import audit_pmf

__all__ = ["Audit", "Finding", "Pair", "PmfAudit", "audit", "audit_pmf", "hard_pairs"]
