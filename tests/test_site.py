"""The documentation site: it builds without a warning, opens without a network, and its faults are noticed."""

import importlib.util
import inspect
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import dpselect

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"

needs_generator = pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None or importlib.util.find_spec("mkdocstrings_handlers") is None,
    reason="the generator is not installed: pip install '.[docs]'",
)


def tool(name):
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / f"{name}.py")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of what the site is made from: building leaves no trace in the repository."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    for name in ("src", "tools"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "zensical.toml", folder)
    return folder


@pytest.fixture(scope="module")
def site(folder):
    """The site, built by the command of `make docs`."""
    command = [sys.executable, str(ROOT / "tools" / "build_docs.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@needs_generator
def test_every_public_name_is_in_the_reference(site):
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    anchors = {anchor.rpartition(".")[2] for anchor in re.findall(r'id="(dpselect\.[\w.]+)"', reference)}
    rooms = [getattr(dpselect, name) for name in dpselect.__all__ if inspect.ismodule(getattr(dpselect, name))]
    public = {name for room in [dpselect, *rooms] for name in getattr(room, "__all__", ())}
    public -= {name for room in [dpselect, *rooms] for name in public if inspect.ismodule(getattr(room, name, None))}
    assert not public - anchors, "add a line `::: dpselect...` for each to a page of docs/reference"
    assert len(public) > 40
    assert '<span class="gp">&gt;&gt;&gt; </span>' in reference  # doctests are shown as code


@needs_generator
def test_the_search_needs_no_network(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "assets/iframe-worker.js" in page
    assert (site / "search.js").is_file()
    assert not re.findall(r"(?:src|href)=\"https?://[^\"]*\.(?:js|css|woff2?)", page)


@needs_generator
def test_the_home_page_has_a_start_and_the_version(site, folder):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<div class="start">\s*<p><a href="tutorial.html">Get started</a>', page)
    assert f'dpselect <span class="version">{dpselect.__version__}</span>' in page
    assert dpselect.__version__ not in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    check = tool("build_docs")
    assert check.stamp(folder) == []
    (folder / "docs" / "index.md").write_text("# Home\n")
    assert "has no" in check.stamp(folder)[0]
    shutil.copy(ROOT / "docs" / "index.md", folder / "docs")


# The blocks of code whose lines are wider than they are.
CUT = """
return Array.from(document.querySelectorAll("pre > code"))
  .filter(code => [code, code.parentElement].some(box => box.scrollWidth > box.clientWidth))
  .map(code => code.textContent.split("\\n").reduce((a, b) => a.length >= b.length ? a : b));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium whose window is 1,280 pixels wide."""
    browsing = pytest.importorskip("tests.explore.browsing", reason="selenium is not installed", exc_type=ImportError)
    try:
        driver = browsing.start_browser(tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("downloads"))
    except browsing.NoBrowser as missing:
        pytest.skip(str(missing))
    window = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    yield driver
    driver.quit()


@needs_generator
def test_no_code_is_cut_at_1280_pixels(site, browser):
    """Shorten the line, or write its comment above it. tests/test_documents.py counts the characters."""
    cut, blocks = {}, 0
    for page in sorted(site.rglob("*.html")):
        browser.get(page.as_uri())
        blocks += browser.execute_script("return document.querySelectorAll('pre > code').length")
        if found := browser.execute_script(CUT):
            cut[page.relative_to(site).as_posix()] = found
    assert cut == {}
    assert blocks > 300


@needs_generator
def test_a_wide_line_is_seen_to_be_cut(site, browser):
    """The power check: a line of one hundred characters of code."""
    text = (site / "index.html").read_text(encoding="utf-8")
    page = site / "wide.html"
    page.write_text(re.sub(r"(<pre>.*?<code>)", rf"\1{'x' * 100}", text, count=1), encoding="utf-8")
    browser.get(page.as_uri())
    page.unlink()
    assert browser.execute_script(CUT)


@needs_generator
def test_a_broken_site_is_noticed(site, folder):
    """The power check: faults that the generator passes over, and a warning of its own."""
    check = tool("build_docs")
    assert not check.broken(site)
    page = site / "broken.html"
    page.write_text('<img src="none.png"><script src="https://example.org/a.js"></script><a href="index.html#no">x</a>')
    found = "\n".join(check.broken(site))
    page.unlink()
    assert all(word in found for word in ("none.png, which is not there", "fetches https://example.org", "an anchor"))
    (folder / "docs" / "lost.md").write_text("# Lost\n")
    assert check.astray(folder) == ["docs/lost.md is not in the nav of zensical.toml: add a line"]
    (folder / "docs" / "lost.md").unlink()
    (folder / "docs" / "index.md").write_text("# Home\n\n[nowhere](tutorial.md#nowhere)\n")
    [told] = check.build(folder)
    assert "anchor does not exist" in told
    shutil.copy(ROOT / "docs" / "index.md", folder / "docs")


def test_pictures_are_what_the_tool_draws(tmp_path):
    """Those that need no matplotlib, byte by byte; its own output changes with its version. None is large."""
    assert all(picture.stat().st_size <= 100_000 for picture in PICTURES.iterdir())
    drawn = tool("draw_pictures").PICTURES
    assert {f"{name}.svg" for name in drawn} == {path.name for path in PICTURES.glob("*.svg")}
    for name in set(drawn) - {"choice"}:
        assert drawn[name]() == (PICTURES / f"{name}.svg").read_bytes(), f"{name}: run `make pictures`"
    assert b"permute-and-flip" in drawn["choice"]()
