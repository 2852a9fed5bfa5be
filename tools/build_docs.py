"""Build the documentation into site/, warnings as errors, and check what the generator does not.

    python tools/build_docs.py [FOLDER]

The generator finds broken links between pages and names that do not exist in the code. In addition, every page of docs/
must be in the navigation, every picture, page and anchor that the site names must be there, and nothing may be fetched
from elsewhere: the site opens without a network. The version of the package is written into each page.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, unlike a link that somebody clicks.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Where the version goes. Nobody types it into a page.
VERSION = '<span class="version"></span>'


class Names(HTMLParser):
    """What a page fetches, where it links to, and which anchors it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down one element."""
        values = {name: value for name, value in attrs if value is not None}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in FETCHED and FETCHED[tag] in values:
            self.fetched.append(values[FETCHED[tag]])
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


def pages_of(nav: Iterable[Any]) -> Iterator[str]:
    """The pages of a navigation, in order."""
    for entry in nav:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from pages_of(target)


def astray(folder: Path) -> list[str]:
    """Pages that the navigation lacks, and pages that it names and that are not there."""
    nav = set(pages_of(tomllib.loads((folder / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]))
    pages = {path.relative_to(folder / "docs").as_posix() for path in (folder / "docs").rglob("*.md")}
    missing = [f"docs/{page} is not in the nav of zensical.toml: add a line" for page in sorted(pages - nav)]
    return missing + [f"the nav of zensical.toml names docs/{page}, which is not there" for page in sorted(nav - pages)]


def broken(site: Path) -> list[str]:
    """What the pages fetch from elsewhere, and what they name that is not there."""
    names = {page: Names(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}
    found = []
    for page, told in names.items():
        shown = page.relative_to(site).as_posix()
        found += [f"{shown} fetches {url}" for url in told.fetched if urlsplit(url).netloc]
        for url in told.fetched + told.links:
            split = urlsplit(url)
            if split.scheme or split.netloc:
                continue
            target = (page.parent / unquote(split.path)).resolve() if split.path else page
            if not target.exists():
                found.append(f"{shown} names {url}, which is not there")
            elif split.fragment and target in names and unquote(split.fragment) not in names[target].anchors:
                found.append(f"{shown} names {url}, an anchor that is not there")
    return found


def stamp(folder: Path) -> list[str]:
    """Write the version of the package into the pages; what is wrong if the home page has no place for it."""
    source = (folder / "src" / "dpselect" / "_version.py").read_text(encoding="utf-8")
    [version] = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    for page in sorted((folder / "site").rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(VERSION, VERSION.replace("><", f">{version}<")), encoding="utf-8")
    home = (folder / "docs" / "index.md").read_text(encoding="utf-8")
    return [] if VERSION in home else [f"docs/index.md has no {VERSION} for the version"]


def build(folder: Path) -> list[str]:
    """Build the site of a folder that holds zensical.toml and docs/; what is wrong with it."""
    if wrong := astray(folder):
        return wrong
    shutil.rmtree(folder / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(folder / "zensical.toml")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return [done.stdout + done.stderr]
    return stamp(folder) + broken(folder / "site")


def main() -> None:
    """Build the site of this repository, or of a folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    if wrong := build(folder):
        sys.exit("\n".join(wrong))
    print(f"open {folder / 'site' / 'index.html'}")


if __name__ == "__main__":
    main()
