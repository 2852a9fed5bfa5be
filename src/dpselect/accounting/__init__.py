"""What many releases cost together: pure epsilon, zCDP and (epsilon, delta)."""

from dpselect.accounting.budget import largest_belief
from dpselect.accounting.totals import Approximate, Total, total

__all__ = ["Approximate", "Total", "largest_belief", "total"]
