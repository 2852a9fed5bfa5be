"""What a ledger adds up to. The code is in `dpselect.accounting`."""

from dpselect.accounting import Approximate, Total, total

__all__ = ["Approximate", "Total", "total"]
