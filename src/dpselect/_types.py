"""Type aliases that the whole package uses."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Number = int | float | Fraction | Decimal | str

Array = npt.NDArray[Any]
Vector = Array | list[Fraction]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.uint64]
# The same type, named after its content.
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Selections = npt.NDArray[np.int64]
