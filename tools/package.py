"""Build what an index takes into dist/, check it as the index would, and try the wheel in an environment of its own.

`make package` runs this. The wheel in dist/ is the pure one, which works everywhere. If the kernel can be compiled, the
wheel with the kernel is tried too, but not kept: an index takes compiled wheels of cibuildwheel, not of any Linux. This
also writes a bill of materials (SBOM) in the format CycloneDX, which lists dpselect and the locked versions of what it
needs without extras: dist/dpselect-VERSION.cdx.json.
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


def run(*words: str | Path, folder: Path = ROOT, **variables: str) -> str:
    """Run a command with some variables in its environment. Return what it prints; if it fails, show that and end."""
    # Nothing of this clone may be imported in place of what is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build() -> str:
    """Build the source distribution, and the pure wheel from it. Return the version."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, DPSELECT_KERNEL="no")
    [wheel], [source] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel)
    if not wheel.name.endswith("-py3-none-any.whl"):
        sys.exit(f"{wheel.name} is not a pure wheel")
    return wheel.name.split("-")[1]


def try_kernel(folder: Path, version: str) -> None:
    """Build the wheel with the kernel from the source distribution, and try it; without a compiler, say so."""
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(*pip, "--no-build-isolation", "--wheel-dir", wheels, *DIST.glob("*.tar.gz"))
    [wheel] = wheels.glob("*.whl")
    if wheel.name.endswith("-any.whl"):
        print("the kernel was not compiled, so only the pure wheel was tried")
        return
    python = try_wheel(folder, version, wheels)
    run(python, "-c", "import dpselect.selection._kernel", folder=folder)
    print(f"{wheel.name} was tried, and is not kept")


def try_wheel(folder: Path, version: str, wheels: Path = DIST) -> Path:
    """Install the wheel with the locked versions, and use it far from the clone. Return its Python."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    requirements = folder / "requirements.txt"
    requirements.write_text(chosen(LOCK.read_text("utf-8"), set(), always=frozenset({"base"})), "utf-8")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(*pip, "--require-hashes", "-r", requirements)
    run(*pip, "--no-index", "--find-links", wheels, f"dpselect=={version}")
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
    with tempfile.TemporaryDirectory() as folder:
        try_kernel(Path(folder), version)
    # It reads the version from pyproject.toml, which leaves it to the source.
    materials = json.loads(bill.read_text("utf-8"))
    materials["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/dpselect@{version}"}
    bill.write_text(json.dumps(materials, indent=2) + "\n", "utf-8")
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(ROOT).as_posix()}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
