"""Write every figure and number of the paper to a folder.

The data are optional. Without them, the figures and claims that need data are left out.
"""

from dataclasses import dataclass
from pathlib import Path

from dpselect import _validate
from dpselect._progress import tracked
from dpselect.errors import DataNotAvailable, InvalidValue
from dpselect.research import plotting
from dpselect.research.datasets import histograms
from dpselect.research.paper import claims_comparison, claims_experiments, claims_optimality
from dpselect.research.paper.claims import PaperClaim
from dpselect.research.paper.experiment import Experiments, Material, Plot
from dpselect.research.paper.figures_of_data import (
    BOTH_BARS,
    FIVE_MEDIANS,
    FIVE_MODES,
    HEPTH_MEDIAN,
    HEPTH_MODE,
    MEDIAN_BARS,
)
from dpselect.research.paper.figures_of_optimality import (
    ALL,
    OPTIMALITY_BY_K,
    OPTIMALITY_BY_N,
    OPTIMALITY_EXPONENTIAL,
    ratio_curve,
)
from dpselect.research.paper.figures_of_two_scores import ERROR_BY_P, NOISY_MAX_BY_GAP, RATIO_BY_P, WORST_CASE_BY_N
from dpselect.research.paper.page import Drawn, page
from dpselect.research.plotting import NumberTable, Watch, make_folder, write_figure, write_file

FIGURES: tuple[Plot, ...] = (
    ERROR_BY_P,
    RATIO_BY_P,
    WORST_CASE_BY_N,
    OPTIMALITY_BY_N,
    OPTIMALITY_BY_K,
    OPTIMALITY_EXPONENTIAL,
    HEPTH_MODE,
    HEPTH_MEDIAN,
    MEDIAN_BARS,
    NOISY_MAX_BY_GAP,
    FIVE_MODES,
    FIVE_MEDIANS,
    BOTH_BARS,
)


_CLAIMS = (claims_comparison, claims_optimality, claims_experiments)
_FEWEST_POINTS = 2


@dataclass(frozen=True)
class Report:
    """What was written, and what is missing."""

    folder: Path
    html: Path
    figures: tuple[Plot, ...]
    missing: tuple[Plot, ...]
    why_missing: str
    claims: tuple[PaperClaim, ...]

    def count(self, holds: bool | None) -> int:
        """The number of claims that hold (True), fail (False) or were not checked (None)."""
        return sum(claim.holds is holds for claim in self.claims)


def reproduce(out: str | Path, data: str | Path | None = None, *, points: int = 250, watch: Watch = tracked) -> Report:
    """Write every figure (PNG, PDF, CSV), check every claim, and write `report.html`; `watch` gets each stage's items.

    `data` is the folder of the DPBench files. By default they are taken from the folder in DPSELECT_DPBENCH, or
    downloaded. `points` is the number of epsilons on each curve of the linear programs.
    """
    if _validate.count(points=points) < _FEWEST_POINTS:
        raise InvalidValue(f"points must be >= {_FEWEST_POINTS}: a curve needs two ends")
    with plotting.settings():  # raises an error if matplotlib is missing, before anything is computed
        experiments, why_missing = _experiments(data)
        folder = make_folder(out)
        material = Material(points, experiments)
        for n, k in watch(list(ALL), "Linear programs"):
            ratio_curve(n, k, material.epsilons)
        made = tuple(plot for plot in FIGURES if experiments or not plot.needs_data)
        drawn = [_drawn(plot, material, folder) for plot in watch(list(made), "Figures")]
    claims = tuple(claim for room in watch(list(_CLAIMS), "Claims") for claim in room.claims(material))
    missing = tuple(plot for plot in FIGURES if plot not in made)
    write_file(folder / "claims.csv", _claim_table(claims).to_csv())
    html = write_file(folder / "report.html", page(drawn, missing, why_missing, claims, points))
    return Report(folder, html, made, missing, why_missing, claims)


def _experiments(data: str | Path | None) -> tuple[Experiments, str]:
    """The data, or the reason why there are none. Wrong data, or a folder without them, raise an error."""
    try:
        return Experiments(histograms(data)), ""
    except DataNotAvailable as error:
        return Experiments(), str(error)


def _drawn(plot: Plot, material: Material, folder: Path) -> Drawn:
    """Compute one figure, draw it, and write it in all formats."""
    table = plot.table(material)
    figure = plotting.blank_figure(*plot.size)
    plot.draw(figure, table)
    plotting.lay_out(figure)
    write_file(folder / f"{plot.name}.csv", table.to_csv())
    write_figure(folder, plot.name, figure)
    return Drawn(plot, plotting.image(figure, "svg"))


def _claim_table(claims: tuple[PaperClaim, ...]) -> NumberTable:
    columns = ("where", "statement", "paper", "ours", "verdict", "remark")
    return NumberTable(columns, tuple(tuple(getattr(claim, column) for column in columns) for claim in claims))
