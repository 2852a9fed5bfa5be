"""The total of a ledger. The code is in `dpselect.accounting`."""

from dpselect.accounting import Approximate, Total, total

__all__ = ["Approximate", "Total", "total"]
