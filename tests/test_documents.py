"""Every example of the README and the docs runs: Python blocks in order, and commands by the entry point."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dpselect.cli.hospital import make_visits
from tests import spark

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path, language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(document.read_text(encoding="utf-8")) if name == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    subprocess.run([sys.executable, "-m", "dpselect", "demo", "--save", "visits.csv"], cwd=folder, check=True)
    pq.write_table(make_visits().table(), folder / "visits.parquet")
    return folder


ON_SPARK = "scale.md"
MARKED = [pytest.param(path, marks=spark.GROUP) if path.name == ON_SPARK else path for path in DOCUMENTS]


@pytest.mark.parametrize("document", MARKED, ids=lambda path: path.name)
def test_python_blocks_run(document: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order and in one namespace, as a reader would type them."""
    if document.name == ON_SPARK:
        spark.started()
    monkeypatch.chdir(folder)
    namespace: dict[str, object] = {}
    for block in blocks(document, "python"):
        exec(compile(block, document.name, "exec"), namespace)  # noqa: S102 - our own examples


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_run(document: Path, folder: Path) -> None:
    """Lines that start with a dollar sign, in order."""
    for block in blocks(document, ""):
        for command in re.findall(r"^\$ (.*)$", block.replace("\\\n", " "), re.MULTILINE):
            ours = re.sub(r"^(\.venv/bin/)?dpselect", f"{shlex.quote(sys.executable)} -m dpselect", command)
            done = subprocess.run(ours, shell=True, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S602
            assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_the_patterns_find_the_examples() -> None:
    """The power check: the README has examples of both kinds."""
    assert len(blocks(ROOT / "README.md", "python")) >= 3
    assert len(re.findall(r"^\$ ", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)) >= 5
