"""Warnings are errors in our own tests only: the package leaves the filters of whoever imports it alone."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "dpselect"
CHANGES = {"filterwarnings", "resetwarnings", "showwarning", "simplefilter"}


def changes_for_everybody(code: str) -> list[int]:
    """The lines that change how warnings are treated, outside of a block that restores it."""
    found: list[int] = []

    def look(node: ast.AST, restored: bool) -> None:
        if isinstance(node, ast.With):
            restored = restored or any("catch_warnings" in ast.unparse(item.context_expr) for item in node.items)
        named = getattr(node, "attr", getattr(node, "id", None))
        if not restored and named in CHANGES:
            found.append(node.lineno)
        for inner in ast.iter_child_nodes(node):
            look(inner, restored)

    look(ast.parse(code), False)
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import warnings\nwarnings.simplefilter('error')\n",
        "from warnings import filterwarnings\nfilterwarnings('ignore')\n",
        "import warnings\nwarnings.showwarning = print\n",
        "import numpy as np\nwith np.errstate(): np.warnings.resetwarnings()\n",
    ],
)
def test_a_change_for_everybody_is_found(code: str) -> None:
    """The power check."""
    assert changes_for_everybody(code) == [2]


def test_filters_are_changed_in_blocks_that_restore_them() -> None:
    files = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    assert sum("catch_warnings" in code for code in files.values()) >= 2
    assert {path.name: lines for path, code in files.items() if (lines := changes_for_everybody(code))} == {}
