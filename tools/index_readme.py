"""The README as an index shows it: hatchling calls this when it writes the metadata of a distribution.

An index page has no folder, so links to files of this repository would lead nowhere. If pyproject.toml names the
repository ([project.urls], Repository), they become links to the tag of this version there. Until it does, they become
plain text, and pictures are left out.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# [words](path#part) or ![words](path), with a path in this repository: no scheme.
LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?!\w+:)(?P<path>[^)\s]+)\)")


def shown_on_an_index(readme: str, repository: str | None, version: str) -> str:
    """The text of the README without relative links."""

    def replaced(link: re.Match[str]) -> str:
        picture, words, path = link.group("picture", "words", "path")
        if repository is None:
            return "" if picture else words
        return f"{picture}[{words}]({repository.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return LINK.sub(replaced, readme)


class IndexReadme(MetadataHookInterface):
    """Sets the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata."""
        root = Path(self.root)
        [version] = re.findall(r'^__version__ = "(.+)"$', (root / "src/dpselect/_version.py").read_text("utf-8"), re.M)
        text = (root / "README.md").read_text("utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": shown_on_an_index(text, repository, version),
        }
