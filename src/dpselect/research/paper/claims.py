"""A claim of the paper, and what we computed."""

from dataclasses import dataclass
from decimal import Decimal

NO_DATA = "needs the data"


@dataclass(frozen=True)
class PaperClaim:
    """What the paper claims and where, its number, ours, and whether they agree (None if not checked)."""

    where: str
    statement: str
    paper: str
    ours: str
    holds: bool | None
    remark: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in one word."""
        return {True: "pass", False: "FAIL", None: "not checked"}[self.holds]


def rounds_to(number: float, printed: str) -> bool:
    """Whether the number is within half a unit of the last digit that is printed.

    >>> rounds_to(1.8397, "1.84"), rounds_to(1.909, "1.93"), rounds_to(0.01066, "0.01")
    (True, False, True)
    """
    half = Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent)) / 2
    return abs(Decimal(number) - Decimal(printed)) <= half


def listed(numbers: dict[str, float], digits: int = 4) -> str:
    """Named numbers in one line.

    >>> listed({"k = 2": 1.00123, "k = 4": 1.01})
    'k = 2: 1.001, k = 4: 1.01'
    """
    return ", ".join(f"{name}: {number:.{digits}g}" for name, number in numbers.items())
