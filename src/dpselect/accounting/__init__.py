"""What many releases cost together: pure epsilon, zCDP and (epsilon, delta)."""

from dpselect.accounting.totals import Approximate, Total, total

__all__ = ["Approximate", "Total", "total"]
