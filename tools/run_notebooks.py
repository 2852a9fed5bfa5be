"""Run the notebooks of docs/ from beginning to end, each in an empty folder.

    python tools/run_notebooks.py            run them, and save what they show
    python tools/run_notebooks.py --check    run them, and compare with what is saved

What a cell shows must be the saved text, unless the cell has the tag `random`: private answers differ from run to run,
and pictures from version to version of matplotlib. No output may be an error, or name a folder of this machine.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
RANDOM = "random"
# Paths of files, as they would tell of a machine: the tags of HTML and fractions are none.
MACHINE = re.compile(r"(?<![\w<./])/(?:home|root|tmp|usr|var|work|private|Users|opt|mnt)/|[A-Z]:\\\\|\.venv")
SECONDS = 120


def executed(notebook: Any) -> Any:
    """The notebook with fresh outputs. Names of files are relative to the folder in which it ran."""
    fresh = nbformat.from_dict(notebook)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            fresh, timeout=SECONDS, kernel_name="python3", record_timing=False, resources={"metadata": {"path": folder}}
        )
        client.execute()
        for _, data in outputs(fresh):
            for kind, content in data.items():
                if kind.startswith("text/"):
                    data[kind] = content.replace(f"{Path(folder).resolve()}/", "").replace(f"{folder}/", "")
    fresh.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return fresh


def outputs(notebook: Any) -> list[tuple[Any, dict[str, str]]]:
    """Each cell of code with the content of each of its outputs, by type. Streams and errors have types of ours."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                found.append((cell, {f"stream/{output.name}": output.text}))
            elif output.output_type == "error":
                found.append((cell, {"error": f"{output.ename}: {output.evalue}"}))
            else:
                found.append((cell, output.data))
    return found


def faults(notebook: Any) -> list[str]:
    """What a saved notebook must not have: errors, warnings, paths of a machine, code that never ran."""
    found = [f"cell {cell.id} has not run" for cell in notebook.cells if is_code(cell) and not cell.execution_count]
    for cell, data in outputs(notebook):
        for kind, content in data.items():
            if kind in {"error", "stream/stderr"}:
                found.append(f"cell {cell.id} shows an error or a warning: {content[:200]}")
            if not kind.startswith("image/") and (path := MACHINE.search(content)):
                found.append(f"cell {cell.id} names a folder of the machine: {content[path.start() :][:60]}")
    return found


def is_code(cell: Any) -> bool:
    """Whether the cell is code, and not text."""
    return bool(cell.cell_type == "code")


def differences(saved: Any, fresh: Any) -> list[str]:
    """Where the saved outputs are not those of a fresh run: their texts, or their types if they are random."""
    before, after = (_by_cell(notebook) for notebook in (saved, fresh))
    return [f"cell {name} shows something else now" for name in before if before[name] != after.get(name)]


def _by_cell(notebook: Any) -> dict[str, list[Any]]:
    shown: dict[str, list[Any]] = {cell.id: [] for cell in notebook.cells if is_code(cell)}
    for cell, data in outputs(notebook):
        is_random = RANDOM in cell.metadata.get("tags", [])
        shown[cell.id].append(sorted(data) if is_random else dict(data))
    return shown


def main(arguments: list[str]) -> None:
    """Run all notebooks, and save or compare."""
    wrong = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        saved = nbformat.read(path, as_version=4)
        fresh = executed(saved)
        wrong += [f"{path.name}: {fault}" for fault in faults(fresh)]
        if arguments == ["--check"]:
            wrong += [f"{path.name}: {fault}" for fault in [*faults(saved), *differences(saved, fresh)]]
        else:
            nbformat.write(fresh, path)
    if wrong:
        sys.exit("\n".join([*wrong, "make notebooks saves what they show now"]))


if __name__ == "__main__":
    main(sys.argv[1:])
