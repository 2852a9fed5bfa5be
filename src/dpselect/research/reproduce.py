"""Write every figure and number of the paper to a folder, with a report: one HTML page, which works offline.

The data are optional. Without them, the figures and claims that need data are left out.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from dpselect import _validate
from dpselect._show import tracked
from dpselect._version import __version__
from dpselect.errors import InvalidValue
from dpselect.research import plotting
from dpselect.research.claims import CLAIMS, PaperClaim
from dpselect.research.datasets import PAGE, SUMS, VARIABLE, Material, available, file_name
from dpselect.research.figures import FIGURES, LATTICES, Plot, ratio_curve
from dpselect.research.plotting import NumberTable, make_folder, write_figure, write_file

_FEWEST_POINTS = 2
_WIDE = 7.0  # inches


@dataclass(frozen=True)
class Report:
    folder: Path
    html: Path
    figures: tuple[Plot, ...]
    missing: tuple[Plot, ...]
    why_missing: str
    claims: tuple[PaperClaim, ...]

    def count(self, holds: bool | None) -> int:
        return sum(claim.holds is holds for claim in self.claims)


def reproduce(out: str | Path, data: str | Path | None = None, *, points: int = 250) -> Report:
    """Write every figure (PNG, PDF, CSV) and `report.html`, which checks the claims."""
    # `data` is the folder of the DPBench files. By default they are taken from the folder in DPSELECT_DPBENCH, or
    # downloaded. `points` is the number of epsilons on each curve of the linear programs.
    if _validate.count(points=points) < _FEWEST_POINTS:
        raise InvalidValue(f"points must be >= {_FEWEST_POINTS}: a curve needs two ends")
    with plotting.settings():  # raises an error if matplotlib is missing, before anything is computed
        found, why_missing = available(data)
        folder = make_folder(out)
        material = Material(points, found)
        for n, k in tracked(LATTICES, "Linear programs"):
            ratio_curve(n, k, material.epsilons)
        made = tuple(plot for plot in FIGURES if found or not plot.needs_data)
        pictures = [_drawn(plot, material, folder) for plot in tracked(made, "Figures")]
    claims = tuple(claim.against(material) for claim in tracked(CLAIMS, "Claims"))
    missing = tuple(plot for plot in FIGURES if plot not in made)
    write_file(folder / "claims.csv", NumberTable(_COLUMNS, [_cells(claim) for claim in claims]).to_csv())
    report = Report(folder, folder / "report.html", made, missing, why_missing, claims)
    write_file(report.html, page(report, pictures, points))
    return report


def _drawn(plot: Plot, material: Material, folder: Path) -> str:
    # Write the files of a figure, and return its HTML.
    table = plot.table(material)
    figure = plotting.blank_figure(*plot.size)
    plot.draw(figure, table)
    write_file(folder / f"{plot.name}.csv", table.to_csv())
    write_figure(folder, plot.name, figure)
    picture = base64.b64encode(plotting.image(figure, "svg")).decode()
    links = ", ".join(f'<a href="{plot.name}.{ending}">{ending.upper()}</a>' for ending in ("png", "pdf", "csv"))
    wide = ' class="wide"' if plot.size[0] >= _WIDE else ""
    return (
        f'<figure{wide}><img alt="{escape(plot.caption)}" src="data:image/svg+xml;base64,{picture}">'
        f"<figcaption><b>{escape(plot.number)}.</b> {escape(plot.caption)} <span>{links}</span></figcaption></figure>\n"
    )


_COLUMNS = ("where", "statement", "paper", "ours", "verdict", "remark")


def _cells(claim: PaperClaim) -> tuple[str, ...]:
    return tuple(getattr(claim, column) for column in _COLUMNS)


def page(report: Report, pictures: Sequence[str], points: int) -> str:
    folder = files("dpselect.research")
    return Template(folder.joinpath("page.html").read_text("utf-8")).substitute(
        style=folder.joinpath("page.css").read_text("utf-8"),
        version=escape(__version__),
        points=f"{points:,}",
        tally=_tally(report),
        missing=_missing(report),
        claims="".join(_row(claim) for claim in report.claims),
        figures="".join(pictures),
    )


_STYLES = {True: "pass", False: "fail", None: "soft"}  # of claims, by whether they hold


def _tally(report: Report) -> str:
    cells = []
    for holds, words in {True: "claims pass", False: "fail", None: "not checked"}.items():
        number = report.count(holds)
        if number or holds is not None:
            cells.append(f'<div><b class="{_STYLES[holds if number else None]}">{number}</b>{words}</div>')
    return f'<div class="tally">{"".join(cells)}</div>'


def _missing(report: Report) -> str:
    if not report.missing:
        return ""
    names = ", ".join(escape(plot.number) for plot in report.missing)
    files = ", ".join(f"<code>{escape(file_name(name))}</code>" for name in SUMS)
    return f"""<h2>What is missing</h2>
<p>The DPBench data are not here: {escape(report.why_missing)}. So these figures and claims were left out: {names}.</p>
<p>To get them, download {files} from <a href="{PAGE}">the public dpcomp_core repository</a> into a folder; name it by
<code>dpselect paper --data FOLDER</code> or by the environment variable <code>{VARIABLE}</code>.</p>
"""


def _row(claim: PaperClaim) -> str:
    verdict = f'<td class="verdict {_STYLES[claim.holds]}">{_text(claim.verdict)}'
    return (
        f'<tr><td class="where">{_text(claim.where)}<td class="statement">{_text(claim.statement)}'
        f'<td>{_text(claim.paper)}<td class="ours">{_text(claim.ours)}'
        f'{verdict}<td class="remark">{_text(claim.remark)}</tr>\n'
    )


def _text(text: str) -> str:
    # Escaped text whose equations do not break across lines.
    return escape(text).replace(" = ", "&nbsp;=&nbsp;")
