"""The walks of CONTRIBUTING.md are those of a trace."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import walks

ROOT = Path(__file__).resolve().parents[2]


def test_the_walks_are_those_of_a_trace() -> None:
    run = subprocess.run([sys.executable, "tools/walks.py", "--check"], cwd=ROOT, check=False)
    assert run.returncode == 0, "run `python tools/walks.py` and commit CONTRIBUTING.md"


def test_a_page_without_a_walk_is_refused() -> None:
    with pytest.raises(LookupError, match="0 places for the walk 'plan'"):
        walks.rewritten("a page\n<!-- walk select -->\n<!-- end -->\n", {"plan": "1. a file"})
