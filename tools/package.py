"""Build what an index takes into dist/, check it as the index would, and try the wheel in an environment of its own.

`make package` runs this. It also writes a bill of materials (SBOM) in the format CycloneDX, which lists dpselect and
the locked versions of what it needs without extras: dist/dpselect-VERSION.cdx.json.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from install import LOCK, ROOT, chosen

DIST = ROOT / "dist"
QUESTION = "mode visits.csv --column diagnosis --candidates I10,E11,M54,J06 --person patient --epsilon 1"


def run(*words: str | Path, folder: Path = ROOT) -> str:
    """Run a command, and return what it prints. If it fails, show that and end."""
    # Nothing of this clone may be imported in place of what is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build() -> str:
    """Build the source distribution, and the wheel from it. Return the version."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    [wheel], [source] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel)
    return wheel.name.split("-")[1]


def try_wheel(folder: Path, version: str) -> Path:
    """Install the wheel with the locked versions, and use it far from the clone. Return its Python."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    requirements = folder / "requirements.txt"
    requirements.write_text(chosen(LOCK.read_text("utf-8"), set(), always=frozenset({"base"})), "utf-8")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(*pip, "--require-hashes", "-r", requirements)
    run(*pip, "--no-index", "--find-links", DIST, f"dpselect=={version}")
    run(python, "-m", "pip", "check")
    dpselect = programs / "dpselect"
    said = run(dpselect, "--version", folder=folder)
    if version not in said:
        sys.exit(f"dpselect --version of the wheel prints {said.strip()}, not {version}")
    run(dpselect, "demo", folder=folder)
    run(dpselect, "demo", "--save", "visits.csv", folder=folder)
    run(dpselect, *QUESTION.split(), folder=folder)
    return python


def main() -> None:
    """Build and check."""
    version = build()
    with tempfile.TemporaryDirectory() as folder:
        python = try_wheel(Path(folder), version)
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")  # tools, not materials
        bill = DIST / f"dpselect-{version}.cdx.json"
        words = ["environment", "--output-reproducible", "--pyproject", ROOT / "pyproject.toml", "--output-file", bill]
        run(Path(sys.executable).with_name("cyclonedx-py"), *words, python)
    # It reads the version from pyproject.toml, which leaves it to the source.
    materials = json.loads(bill.read_text("utf-8"))
    materials["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/dpselect@{version}"}
    bill.write_text(json.dumps(materials, indent=2) + "\n", "utf-8")
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(ROOT).as_posix()}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
