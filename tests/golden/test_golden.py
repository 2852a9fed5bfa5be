"""Charges and SQL are what they were. `python -m tests.golden` writes them again; the commit says why they changed."""

import difflib

import pytest

from tests.golden.files import GOLDEN, text_of


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_nothing_has_changed(path):
    before, now = path.read_text("utf-8").splitlines(), text_of(GOLDEN[path]).splitlines()
    changed = list(difflib.unified_diff(before, now, path.name, "now", lineterm="", n=0))
    assert not changed, "\n".join(changed[:40])
