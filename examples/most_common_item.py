"""Release the most common item of a table, with an epsilon chosen in advance and a ledger that records the cost.

    python examples/most_common_item.py [FOLDER]

The table is made up: it records who bought what in a shop. Each customer is protected, with all of their purchases.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import dpselect
from dpselect import PermuteAndFlip, analysis

# The shop's catalogue, which is public. A list of candidates must not be taken from the table.
CATALOGUE = ["apples", "bread", "cheese", "dates", "eggs", "flour", "grapes", "honey"]
CUSTOMERS = 5_000
MOST_SHORT = 20  # on average, the item may have at most this many customers fewer than the most common one


def make_purchases(path: Path) -> None:
    """Write a table of 30,000 purchases. Bread is the most common item."""
    generator = np.random.default_rng(7)
    weights = np.array([9, 14, 8, 1, 13, 4, 3, 2], dtype=float)
    items = generator.choice(CATALOGUE, 30_000, p=weights / weights.sum())
    customers = generator.integers(CUSTOMERS, size=items.size)
    parquet.write_table(pa.table({"customer": customers, "item": items}), path)


def chosen_epsilon() -> str:
    """The smallest of some round numbers that guarantees the accuracy for any data. No private data are used."""
    for epsilon in ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"):
        # One more customer raises each count by at most one: sensitivity 1, monotonic.
        mechanism = PermuteAndFlip(epsilon, sensitivity=1, monotonic=True)
        if analysis.worst_case_error(mechanism, len(CATALOGUE)).error <= MOST_SHORT:
            return epsilon
    raise ValueError("no epsilon up to 1 is accurate enough")


def release(folder: Path) -> dpselect.Answer:
    """Ask the table once, and charge the ledger for the answer."""
    purchases = folder / "purchases.parquet"
    make_purchases(purchases)
    table = dpselect.open_table(purchases, person="customer", ledger=folder / "purchases.ledger", budget="1")
    return table.mode("item", candidates=CATALOGUE, epsilon=chosen_epsilon())


def main() -> None:
    """Release one answer, and print what it means."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        answer = release(folder)
        ledger = dpselect.Ledger(folder / "purchases.ledger")
        print(f"The item that most customers buy: {answer.value}")
        print(f"Guarantee: {answer.guarantee}. Adding or removing any one customer changes the probability of every")
        print(f"answer by a factor of at most {np.exp(float(answer.epsilon)):.3f}.")
        print(f"On average, this item has at most {MOST_SHORT} customers fewer than the most common one.")
        print(f"Spent {float(ledger.spent):g} of {float(ledger.budget):g}.")


if __name__ == "__main__":
    main()
