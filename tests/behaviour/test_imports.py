"""Behavioural tests survive a redesign: they see dpselect through its public names and through `tests.seam` only."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

import dpselect

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.py"))
OWN = {"tests": {"reference", "seam"}, "tests.seam": None, "tests.reference": None, "tests.broken": None}
LIBRARIES = {"duckdb", "flint", "hypothesis", "numpy", "pyarrow", "pytest"}
# The public modules; of each, only the names in its `__all__`, and the errors.
MODULES = {
    f"dpselect.{name}" for name in ("accounting", "analysis", "audit", "cli", "errors", "ledger", "tables", "tuning")
}


def imported(tree):
    """Each module that is imported, with the name that is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield from ((node.module, alias.name) for alias in node.names)


def is_allowed(module, name):
    """Whether a behavioural test may import this."""
    room = module.split(".")[0]
    if room == "tests":
        own = module == "tests.behaviour" or module.startswith("tests.behaviour.")
        return own or (module in OWN and (OWN[module] is None or name in OWN[module]))
    if room == "dpselect":
        if name is None:
            return module == "dpselect"
        public = importlib.import_module(module)
        return (module == "dpselect" and name in dpselect.__all__) or (
            module in MODULES and name in getattr(public, "__all__", vars(public)) and not name.startswith("_")
        )
    return room in LIBRARIES or room in sys.stdlib_module_names


def underscored(tree):
    """Attributes of other objects whose names begin with one underscore."""
    return [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_public_names_are_used(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [found for found in imported(tree) if not is_allowed(*found)] == []
    assert underscored(tree) == []


def test_internals_would_be_noticed():
    for text in (
        "from dpselect.selection.draws import Draws",
        "import dpselect.tables.table",
        "from dpselect.tables import checks",
        "from dpselect import mechanisms",
        "from tests.tables.looking import counts",
        "from tests import spark",
    ):
        assert not all(is_allowed(*found) for found in imported(ast.parse(text)))
    assert underscored(ast.parse("table._engine.counts()")) == ["_engine"]
