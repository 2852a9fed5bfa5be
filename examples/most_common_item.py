"""Release the most common item of a table, with an epsilon that was chosen beforehand and a ledger that keeps it.

    python examples/most_common_item.py [FOLDER]

The table is made up: who bought what in a shop. Customers are protected, with all that they ever bought.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import dpselect
from dpselect import PermuteAndFlip, analysis

# Public, because it is the shop's catalogue. It must not be made from the table.
CATALOGUE = ["apples", "bread", "cheese", "dates", "eggs", "flour", "grapes", "honey"]
CUSTOMERS = 5_000
MOST_SHORT = 20  # we want the item of all that at most this many customers fewer buy, on average


def make_purchases(path: Path) -> None:
    """Write a table of 30,000 purchases; bread is the most common one."""
    generator = np.random.default_rng(7)
    weights = np.array([9, 14, 8, 1, 13, 4, 3, 2], dtype=float)
    items = generator.choice(CATALOGUE, 30_000, p=weights / weights.sum())
    customers = generator.integers(CUSTOMERS, size=items.size)
    parquet.write_table(pa.table({"customer": customers, "item": items}), path)


def chosen_epsilon() -> str:
    """The smallest of some round numbers that guarantees the accuracy, whatever the data: nothing private is used."""
    for epsilon in ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"):
        # One customer more raises counts by at most one each: sensitivity 1, monotonic.
        mechanism = PermuteAndFlip(epsilon, sensitivity=1, monotonic=True)
        if analysis.worst_case_error(mechanism, len(CATALOGUE)).error <= MOST_SHORT:
            return epsilon
    raise ValueError("no epsilon up to one is accurate enough")


def release(folder: Path) -> dpselect.Answer:
    """Ask the table once, and charge the ledger for it."""
    purchases = folder / "purchases.parquet"
    make_purchases(purchases)
    table = dpselect.open_table(purchases, person="customer", ledger=folder / "purchases.ledger", budget="1")
    return table.mode("item", candidates=CATALOGUE, epsilon=chosen_epsilon())


def main() -> None:
    """Release one answer, and say what it means."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        answer = release(folder)
        ledger = dpselect.Ledger(folder / "purchases.ledger")
        print(f"The item that most customers buy: {answer.value}")
        print(f"Guarantee: {answer.guarantee}. With or without any one customer, the probability of every answer")
        print(f"changes by a factor of at most {np.exp(float(answer.epsilon)):.3f}.")
        print(f"Guaranteed on average: at most {MOST_SHORT} customers fewer than the most common item has.")
        print(f"Spent {float(ledger.spent):g} of {float(ledger.budget):g}.")


if __name__ == "__main__":
    main()
