"""Small tables, and what people count with in them. What a table hides is seen through `tests.seam`."""

from itertools import product

import numpy as np

from tests.seam import (
    answering,
    counted,
    counts,
    expanded,
    in_writing,
    opened,
    places,
    quantile_scores,
    tallied,
)

__all__ = [
    "answering",
    "counted",
    "counts",
    "expanded",
    "in_writing",
    "middles",
    "opened",
    "places",
    "quantile_scores",
    "repeated",
    "standings",
    "tallied",
]


def middles(values):
    """The one or two middle values of a person, at one of which they count; nothing for a person without values."""
    known = sorted(value for value in values if value is not None)
    return sorted({known[(len(known) - 1) // 2], known[len(known) // 2]}) if known else []


def standings(people):
    """Every way in which people, each with their own values, can stand at their middle values."""
    return [list(chosen) for chosen in product(*(own for own in map(middles, people) if own))]


def repeated(rows, times, **options):
    """So many copies of a table as public groups, so that one question draws as many independent answers."""
    size = len(next(iter(rows.values())))
    copies = {name: values * times for name, values in rows.items()}
    return opened({**copies, "copy": np.repeat(np.arange(times), size)}, **options).group_by(
        "copy", groups=range(times)
    )
