"""Write every figure and number of the paper to a folder, with a report: one HTML page, which works offline.

The data are optional. Without them, the figures and claims that need data are left out.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from dpselect import _validate
from dpselect._show import tracked
from dpselect._version import __version__
from dpselect.errors import DataNotAvailable, InvalidValue
from dpselect.research import plotting
from dpselect.research.claims import CLAIMS
from dpselect.research.datasets import PAGE, SUMS, VARIABLE, file_name, histograms
from dpselect.research.experiment import Experiments, Material, PaperClaim, Plot
from dpselect.research.figures import FIGURES, LATTICES, ratio_curve
from dpselect.research.plotting import NumberTable, Watch, make_folder, write_figure, write_file

_FEWEST_POINTS = 2
_WIDE = 7.0  # inches


@dataclass(frozen=True)
class Drawn:
    plot: Plot
    svg: bytes


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


def reproduce(out: str | Path, data: str | Path | None = None, *, points: int = 250, watch: Watch = tracked) -> Report:
    """Write every figure (PNG, PDF, CSV) and `report.html`, which checks the claims; `watch` gets a stage's items."""
    # `data` is the folder of the DPBench files. By default they are taken from the folder in DPSELECT_DPBENCH, or
    # downloaded. `points` is the number of epsilons on each curve of the linear programs.
    if _validate.count(points=points) < _FEWEST_POINTS:
        raise InvalidValue(f"points must be >= {_FEWEST_POINTS}: a curve needs two ends")
    with plotting.settings():  # raises an error if matplotlib is missing, before anything is computed
        experiments, why_missing = _experiments(data)
        folder = make_folder(out)
        material = Material(points, experiments)
        for n, k in watch(list(LATTICES), "Linear programs"):
            ratio_curve(n, k, material.epsilons)
        made = tuple(plot for plot in FIGURES if experiments or not plot.needs_data)
        drawn = [_drawn(plot, material, folder) for plot in watch(list(made), "Figures")]
    claims = tuple(claim.against(material) for claim in watch(list(CLAIMS), "Claims"))
    missing = tuple(plot for plot in FIGURES if plot not in made)
    write_file(folder / "claims.csv", _claim_table(claims).to_csv())
    html = write_file(folder / "report.html", page(drawn, missing, why_missing, claims, points))
    return Report(folder, html, made, missing, why_missing, claims)


def _experiments(data: str | Path | None) -> tuple[Experiments, str]:
    # The data, or the reason why there are none. Wrong data, or a folder without them, raise an error.
    try:
        return Experiments(histograms(data)), ""
    except DataNotAvailable as error:
        return Experiments(), str(error)


def _drawn(plot: Plot, material: Material, folder: Path) -> Drawn:
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


def page(
    drawn: Sequence[Drawn], missing: Sequence[Plot], why_missing: str, claims: Sequence[PaperClaim], points: int
) -> str:
    title = "Permute-and-flip, reproduced"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{files("dpselect.research").joinpath("page.css").read_text("utf-8")}</style>
</head>
<body>
<h1>{title}</h1>
<p>Every figure and number of McKenna &amp; Sheldon, <em>Permute-and-Flip: A new mechanism for differentially private
selection</em> (NeurIPS 2020), computed by dpselect {escape(__version__)} and shown next to those in the paper.
Only the paper's column is typed in. All other numbers come from this run, with {points:,} values of ε on each curve
of the linear programs.</p>
{_tally(claims)}
{_missing(missing, why_missing)}
<h2>The claims</h2>
<p class="soft">A printed number passes if ours rounds to it. Words such as “close” or “near” have no sharp meaning: the
remark says how they were counted. The values of ε in Section 6 are rounded, so its numbers are given at the printed
ε and at the ε that gives the paper's error. Scores of the mode are twice the number of people: this is how the paper
uses that counts only grow when a person is added.</p>
{_claims(claims)}
<h2>The figures</h2>
<div class="figures">
{"".join(_figure(one) for one in drawn)}
</div>
</body>
</html>
"""


def _tally(claims: Sequence[PaperClaim]) -> str:
    names = {True: ("pass", "claims pass"), False: ("fail", "fail"), None: ("soft", "not checked")}
    cells = []
    for holds, (style, words) in names.items():
        number = sum(claim.holds is holds for claim in claims)
        if number or holds is not None:
            cells.append(f'<div><b class="{style if number else "soft"}">{number}</b>{words}</div>')
    return f'<div class="tally">{"".join(cells)}</div>'


def _missing(missing: Sequence[Plot], why: str) -> str:
    if not missing:
        return ""
    names = ", ".join(escape(plot.number) for plot in missing)
    files = ", ".join(f"<code>{escape(file_name(name))}</code>" for name in SUMS)
    return f"""<h2>What is missing</h2>
<p>The DPBench data are not here: {escape(why)}. So these figures and claims were left out: {names}.</p>
<p>To get them, download {files} from <a href="{PAGE}">the public dpcomp_core repository</a> into a folder; name it by
<code>dpselect paper --data FOLDER</code> or by the environment variable <code>{VARIABLE}</code>.</p>
"""


def _claims(claims: Sequence[PaperClaim]) -> str:
    rows = "".join(_row(claim) for claim in claims)
    head = "<tr><th>where<th>claim<th>paper<th>ours<th>verdict<th>remark</tr>"
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _row(claim: PaperClaim) -> str:
    style = {True: "pass", False: "fail", None: "soft"}[claim.holds]
    return (
        f'<tr><td class="where">{_text(claim.where)}<td class="statement">{_text(claim.statement)}'
        f'<td>{_text(claim.paper)}<td class="ours">{_text(claim.ours)}'
        f'<td class="verdict {style}">{_text(claim.verdict)}<td class="remark">{_text(claim.remark)}</tr>\n'
    )


def _text(text: str) -> str:
    # Escaped text whose equations do not break across lines.
    return escape(text).replace(" = ", "&nbsp;=&nbsp;")


def _figure(drawn: Drawn) -> str:
    plot = drawn.plot
    picture = base64.b64encode(drawn.svg).decode()
    links = ", ".join(f'<a href="{plot.name}.{ending}">{ending.upper()}</a>' for ending in ("png", "pdf", "csv"))
    wide = ' class="wide"' if plot.size[0] >= _WIDE else ""
    return (
        f'<figure{wide}><img alt="{escape(plot.caption)}" src="data:image/svg+xml;base64,{picture}">'
        f"<figcaption><b>{escape(plot.number)}.</b> {escape(plot.caption)} <span>{links}</span></figcaption></figure>\n"
    )
