"""Importing dpselect imports NumPy (and may import SciPy), and nothing else from outside the standard library."""

import subprocess
import sys

import dpselect

ALLOWED = {"dpselect", "numpy", "scipy", "cython_runtime"}  # the last is a part of NumPy
PROGRAM = """
import sys
before = set(sys.modules)
import dpselect
assert dpselect.PermuteAndFlip(1).select([0, 0, 10**5]) == 2
names = {name.split(".")[0] for name in set(sys.modules) - before}
print(" ".join(sorted(names - set(sys.stdlib_module_names))))
"""


def test_the_core_needs_numpy_only():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("_")}
    assert "numpy" in loaded
    assert loaded <= ALLOWED


LATE = """
import sys
import dpselect
early = {"duckdb", "pyarrow", "pandas", "polars", "matplotlib", "typer", "rich", "dpselect.tables"} & set(sys.modules)
dpselect.open_table
print(" ".join(sorted(early)), "|", "dpselect.tables" in sys.modules, "duckdb" in sys.modules)
"""


def test_engines_are_imported_when_a_table_is_opened():
    """Neither by the package nor by the names of tables: an engine is imported by the first table that needs it."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "| True False"


def test_public_names_are_all_there():
    assert all(hasattr(dpselect, name) for name in dpselect.__all__)
