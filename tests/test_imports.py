"""What importing dpselect imports, and that no two modules import each other."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dpselect

ALLOWED = {"dpselect", "numpy", "scipy", "cython_runtime"}  # the last is a part of NumPy
PROGRAM = """
import sys
before = set(sys.modules)
import dpselect
print("numpy" in sys.modules, dir(dpselect) == sorted(dpselect.__all__))
kind = dpselect.PermuteAndFlip
print(kind is dpselect.mechanisms.PermuteAndFlip, "PermuteAndFlip" in vars(dpselect))
assert kind(1).select([0, 0, 10**5]) == 2
names = {name.split(".")[0] for name in set(sys.modules) - before}
print(" ".join(sorted(names - set(sys.stdlib_module_names))))
before = "dpselect.tables" in sys.modules
dpselect.open_table
print(before, "dpselect.tables" in sys.modules, "duckdb" in sys.modules)
"""


def test_nothing_is_imported_before_it_is_used():
    """Names are there for completion, and looked up once; the core needs NumPy only, an engine comes with a table."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    empty, looked_up, core, tables = done.stdout.splitlines()
    assert (empty, looked_up, tables) == ("False True", "True True", "False True False")
    loaded = {name for name in core.split() if not name.startswith("_")}
    assert "numpy" in loaded
    assert loaded <= ALLOWED


def test_names_that_are_listed_exist_and_others_are_an_attribute_error():
    assert all(hasattr(dpselect, name) for name in dpselect.__all__)
    with pytest.raises(AttributeError, match="module 'dpselect' has no attribute 'PermuteAndFlop'"):
        dpselect.PermuteAndFlop()


def modules(folder):
    """The source of each module, by its name."""
    paths = {path.relative_to(folder.parent).with_suffix(""): path for path in folder.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path.read_text("utf-8") for name, path in paths.items()}


def imported(source, known):
    """The modules that a source imports, inside functions and for type checkers too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in known else node.module for name in names)


# The way out knows all mechanisms, and `mechanism.release` takes it.
OUT = ("dpselect.mechanisms.base", {"dpselect.release", "dpselect.accounting.charge"})


def in_order(sources):
    """The modules, each after those that it imports. The package itself knows its rooms by name."""
    known = sources.keys() - {"dpselect"}
    graph = {name: set(imported(sources[name], known)) & known - {name} for name in known}
    graph.get(OUT[0], set()).difference_update(OUT[1])
    return list(TopologicalSorter(graph).static_order())


def test_no_modules_import_each_other_not_even_late():
    """The contract of import-linter orders rooms; this orders all modules, also where an import is in a function."""
    sources = modules(Path(dpselect.__file__).parent)
    assert len(in_order(sources)) == len(sources) - 1


def test_a_cycle_that_a_late_import_hides_is_found():
    sources = {
        "dpselect": "",
        "dpselect.one": "def f():\n    from dpselect.two import g\n",
        "dpselect.two": "from dpselect import one\n",
    }
    with pytest.raises(CycleError):
        in_order(sources)
