"""What a figure of the paper is: where it stands, its numbers, and how they are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpselect.paper.experiment import Experiments
from dpselect.paper.table import Table


@dataclass(frozen=True)
class Material:
    """What the figures are made from: the epsilons of the linear programs, and the data where they are there."""

    points: int = 250
    experiments: Experiments = field(default_factory=Experiments)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilons of the optimality ratios, from 0.01 to 10, evenly on a log axis."""
        return tuple(np.geomspace(0.01, 10, self.points).tolist())


@dataclass(frozen=True)
class Plot:
    """One figure: `table` computes its numbers, `draw` puts them on a matplotlib figure."""

    name: str  # of its files
    number: str  # in the paper
    caption: str
    table: Callable[[Material], Table]
    draw: Callable[[Any, Table], None]
    size: tuple[float, float] = (4.6, 3.3)  # inches
    needs_data: bool = False
