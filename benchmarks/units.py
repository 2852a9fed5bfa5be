"""Numbers as the table shows them."""

_UNITS_OF_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds(value: float) -> str:
    """A duration, in the largest unit that it fills."""
    size, unit = next((entry for entry in _UNITS_OF_TIME if value >= entry[0]), _UNITS_OF_TIME[-1])
    return f"{_rounded(value / size)} {unit}"


def per_second(value: float) -> str:
    """A rate, from the duration of one."""
    return f"{_rounded(1 / value)} / s"


def megabytes(value: float) -> str:
    """A number of bytes."""
    return f"{value / 1e6:.2f} MB"


def bytes_of(value: float) -> str:
    """A small number of bytes."""
    return f"{value:,.0f} B"


def times(ratio: float) -> str:
    """A ratio."""
    return f"{_rounded(ratio)} x"


def percent(share: float) -> str:
    """A share of one."""
    return f"{_rounded(100 * share)} %"


def power_of_ten(value: int) -> str:
    """A count: as a power of ten where it is one, in full elsewhere."""
    exponent = len(str(value)) - 1
    return f"10^{exponent}" if value == 10**exponent else f"{value:,}"


def _rounded(value: float) -> str:
    """Three digits, or all before the decimal point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
