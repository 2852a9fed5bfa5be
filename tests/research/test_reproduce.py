import csv
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpselect.errors import InvalidValue
from dpselect.research.datasets import PAGE, file_name
from dpselect.research.figures import FIGURES
from dpselect.research.reproduce import Report, reproduce
from tests.dpbench import FOLDER, needs_data

POINTS = 3


class Page(HTMLParser):
    """What a browser would have to load, and the text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.attributes if name in names]


def check_files(report: Report) -> None:
    expected = {"report.html", "claims.csv"}
    expected |= {f"{plot.name}.{ending}" for plot in report.figures for ending in ("png", "pdf", "csv")}
    assert {path.name for path in report.folder.iterdir()} == expected
    magic = {".png": b"\x89PNG", ".pdf": b"%PDF", ".csv": b"", ".html": b"<!doctype html>"}
    assert all(path.read_bytes().startswith(magic[path.suffix]) for path in report.folder.iterdir())


def check_page(report: Report) -> Page:
    """The page is self-contained: pictures are in it, and nothing is loaded from elsewhere."""
    content = report.html.read_text(encoding="utf-8")
    page = Page(content)
    sources, links = page.values("src", "srcset", "data", "poster"), page.values("href")
    assert len(sources) == len(report.figures)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not {"script", "link", "iframe", "object", "embed"} & set(page.tags)
    assert "url(" not in content
    assert "@import" not in content
    assert {link for link in links if ":" in link} <= {PAGE}
    assert all((report.folder / link).is_file() for link in links if ":" not in link)
    assert "prefers-color-scheme: dark" in content
    for claim in report.claims:
        assert " ".join(claim.statement.split()) in page.text.replace("\N{NO-BREAK SPACE}", " ")
    return page


@pytest.mark.usefixtures("offline")
def test_without_data_the_rest_is_made_and_the_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three figures only: tests/cli/test_app.py makes all that need no data."""
    monkeypatch.setattr("dpselect.research.reproduce.FIGURES", FIGURES[5:8])
    report = reproduce(tmp_path / "new" / "folder", points=POINTS)
    check_files(report)
    page = check_page(report)
    assert [plot.number for plot in report.figures] == ["Figure 2 (c)"]
    assert [plot.number for plot in report.missing] == ["Figure 3 (a)", "Figure 3 (b)"]
    assert report.count(None) == 10
    assert "could not be downloaded" in page.text
    assert "dpselect paper --data FOLDER" in page.text
    assert file_name("SEARCHLOGS") in page.text
    assert PAGE in page.values("href")


@pytest.mark.slow
@needs_data
def test_with_data_everything_is_made(tmp_path: Path) -> None:
    report = reproduce(tmp_path, FOLDER, points=POINTS)
    check_files(report)
    page = check_page(report)
    assert report.figures == FIGURES
    assert report.missing == ()
    assert "What is missing" not in page.text
    assert report.count(None) == 0
    assert "5.4 is 2.7 people" in page.text
    assert (len(report.figures), len(report.claims)) == (13, 32)
    with (tmp_path / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == [claim.verdict for claim in report.claims]
    with (tmp_path / "figure-2b-optimality-by-k.csv").open(encoding="utf-8", newline="") as file:
        curve = list(csv.DictReader(file))
    assert len(curve) == 4 * POINTS
    assert [float(row["epsilon"]) for row in curve[:POINTS]] == pytest.approx([0.01, 0.31622776, 10])


def test_a_curve_needs_two_ends(tmp_path: Path) -> None:
    """What else is refused is in tests/cli/test_research.py."""
    with pytest.raises(InvalidValue, match="points must be >= 2"):
        reproduce(tmp_path / "out", points=1)
    assert not (tmp_path / "out").exists()
