"""The notebooks of docs/ run, and what they show is what is saved."""

import copy
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TOOL = ROOT / "tools" / "run_notebooks.py"

needs_kernel = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("nbclient", "nbformat", "ipykernel")),
    reason="nothing here runs notebooks: python -m pip install nbclient nbformat ipykernel",
)


@pytest.mark.slow
@needs_kernel
def test_they_run_and_show_what_is_saved() -> None:
    """In processes of their own, whose warnings are not ours."""
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("run_notebooks", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(path: Path) -> Any:
    import nbformat  # noqa: PLC0415 - an extra

    return nbformat.read(path, as_version=4)


@needs_kernel
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_saved_has_no_fault(path: Path) -> None:
    assert tool().faults(loaded(path)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_kind_of_object_is_shown_as_a_table(path: Path) -> None:
    outputs = [output for cell in read(path)["cells"] for output in cell.get("outputs", [])]
    tables = [output for output in outputs if "text/html" in output.get("data", {})]
    assert len(tables) >= 8
    texts = "".join("".join(output["data"]["text/plain"]) for output in tables)
    assert {"Answer", "Ledger", "Plan"} <= set(re.findall(r"\b[A-Z]\w+(?=\()", texts))


@needs_kernel
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("/home/ann/visits.ledger", "names a folder"),
        ("Ledger('/tmp/x/visits.ledger')", "names a folder"),
        ("C:\\\\Users\\\\ann", "names a folder"),
    ],
)
def test_a_path_of_the_machine_would_be_noticed(text: str, fault: str) -> None:
    notebook = loaded(NOTEBOOKS[0])
    next(cell for cell in notebook.cells if cell.id == "budget").outputs[0].data["text/plain"] = text
    [found] = tool().faults(notebook)
    assert fault in found


@needs_kernel
def test_errors_warnings_and_cells_that_never_ran_would_be_noticed() -> None:
    ours, notebook = tool(), loaded(NOTEBOOKS[0])
    cells = {cell.id: cell for cell in notebook.cells}
    cells["mode"].outputs = [
        SimpleNamespace(output_type="error", ename="ValueError", evalue="no"),
        SimpleNamespace(output_type="stream", name="stderr", text="deprecated"),
    ]
    cells["plan"].execution_count = None
    assert [fault.partition(":")[0] for fault in ours.faults(notebook)] == [
        "cell plan has not run",
        "cell mode shows an error or a warning",
        "cell mode shows an error or a warning",
    ]


@needs_kernel
def test_a_stale_output_would_be_noticed() -> None:
    ours, saved = tool(), loaded(NOTEBOOKS[0])
    assert ours.differences(saved, copy.deepcopy(saved)) == []
    for name, kind, noticed in (("plan", "text/html", True), ("mode", "text/html", False), ("plan", "new/type", True)):
        fresh = copy.deepcopy(saved)
        next(cell for cell in fresh.cells if cell.id == name).outputs[0].data[kind] = "other"
        assert ours.differences(saved, fresh) == ([f"cell {name} shows something else now"] if noticed else [])
    fresh = copy.deepcopy(saved)
    next(cell for cell in fresh.cells if cell.id == "mode").outputs = []
    assert ours.differences(saved, fresh) == ["cell mode shows something else now"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_random_answers_are_marked_and_the_rest_is_not(path: Path) -> None:
    """Not all cells are excused: plans, budgets and ledgers are compared."""
    code = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    marks = [cell["metadata"].get("tags", []) for cell in code]
    assert {tuple(tags) for tags in marks} == {(), ("random",)}
    assert sum(not tags for tags in marks) >= 5
