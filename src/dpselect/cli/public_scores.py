"""Scores to compute figures from: public or synthetic ones, or the owner's own."""

import numpy as np

from dpselect._scores import Vector, as_vector, losses
from dpselect.cli.scores_file import read_scores, shown_path
from dpselect.errors import InvalidValue

PRIVACY = "figures computed from private scores are themselves private"


def read_public_scores(path: str, column: str | None, label: str | None) -> Vector:
    """The scores of a CSV file, of which floats can hold every difference."""
    scores = as_vector(read_scores(path, column=column, label=label).scores)
    if not np.isfinite(losses(scores)).all():
        rule = "the scores differ by more than a float can hold"
        raise InvalidValue(f"{shown_path(path)}: {rule}: give them in another unit")
    return scores
