"""Run the kernel under AddressSanitizer and UndefinedBehaviorSanitizer: `python -m fuzz.sanitize [SECONDS] [SEED]`.

The kernel is compiled into build/sanitized. Its tests and `fuzz.kernel` run with it, in processes of their own, which a
report of a sanitizer ends. Nothing is written to src.
"""

import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dpselect" / "selection" / "_kernel.c"
TESTS = "tests/selection/test_kernel.py"
_COMPILER = "gcc"
# float-cast-overflow is not part of `undefined`. The two options before it are those of tools/build_kernel.py.
_OPTIONS = (
    *("-shared", "-fPIC", "-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", "-fno-strict-aliasing"),
    *("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-DPy_LIMITED_API=0x030B0000"),
)


def missing() -> str:
    """What is missing to run the kernel under sanitizers, in words; nothing if it can be done."""
    if sys.platform != "linux":
        return "Linux: elsewhere, Python does not start with AddressSanitizer"
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "CPython with its lock"
    if shutil.which(_COMPILER) is None:
        return "gcc: install it, on Debian with apt install gcc"
    absent = [name for name in ("libasan.so", "libubsan.so") if not Path(_library(name)).is_absolute()]
    if absent:
        return f"{' and '.join(absent)}: they come with gcc; on Fedora, install libasan and libubsan"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python's headers: install them, on Debian with apt install python3-dev"
    return ""


def _library(name: str) -> str:
    """The path of a library of the compiler; the bare name if it does not have it."""
    command = [_COMPILER, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def built(source: Path, folder: Path) -> Path:
    """Compile a kernel with sanitizers into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "_kernel.abi3.so"
    include = sysconfig.get_path("include")
    subprocess.run([_COMPILER, *_OPTIONS, f"-I{include}", str(source), "-o", str(module), "-lm"], check=True)
    return module


def run(module: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run Python with this kernel in the place of dpselect's own, until it ends or a sanitizer ends it.

    Python itself is not compiled with the sanitizer, so the library is loaded first. Python's own pools of memory would
    hide what is read outside an object.
    """
    settings = {
        "DPSELECT_SANITIZED": str(module),
        "LD_PRELOAD": _library("libasan.so"),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python does not free everything when it ends
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    environment = {name: value for name, value in os.environ.items() if name != "DPSELECT_KERNEL"} | settings
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=False, **options)


def fuzzed(module: Path, seconds: float, seed: int, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run `fuzz.kernel` with this kernel."""
    code = "import fuzz.sanitized; from fuzz.kernel import main; main()"
    return run(module, "-c", code, str(seconds), str(seed), **options)


def main() -> None:
    """Compile, run the tests, and fuzz. The exit code is 1 if something was found."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbits(32)
    lacking = missing()
    if lacking:
        sys.exit(f"make sanitize needs {lacking}")
    module = built(SOURCE, ROOT / "build" / "sanitized")
    tests = run(module, "-m", "pytest", "-q", "-p", "fuzz.sanitized", "-p", "no:cacheprovider", "-m", "not slow", TESTS)
    if tests.returncode:
        sys.exit("the kernel's tests failed under the sanitizers")
    if fuzzed(module, seconds, seed).returncode:
        sys.exit(f"python -m fuzz.sanitize {seconds:g} {seed} repeats this")


if __name__ == "__main__":
    main()
