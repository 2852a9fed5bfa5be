"""Compile src/dpselect/selection/_kernel.c: hatchling calls this when it builds a wheel, also for an editable install.

The kernel is optional: dpselect does the same without it, only more slowly. So if it cannot be compiled, because there
is no C compiler or no Python.h, the wheel is a pure one, and a line says so. With DPSELECT_KERNEL=no in the environment
nothing is compiled; with DPSELECT_KERNEL=yes it is an error if that fails. The module uses the stable ABI, so one file
fits every CPython from 3.11 on.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "dpselect.selection._kernel"
# The first Python whose stable ABI the kernel uses: as a tag of wheels, and as Python.h wants it.
PYTHON, LIMITED_API = "cp311", "0x030B0000"
# Every operation on floats rounds, on every processor (no contraction), floats may be read as the integers that have
# their bits (no strict aliasing), and no path of this machine is kept (-g0). No option asks for instructions that
# another machine may not have. The compiler of Windows does all this by itself.
OPTIONS = [] if os.name == "nt" else ["-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-g0"]
COMPILED = ("_kernel*.so", "_kernel*.pyd")


def obstacle() -> str:
    """Why the Python that runs this could not use a kernel, or nothing if it could."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} does not have the stable ABI of CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a free-threaded Python does not have the stable ABI"
    return ""


def compiled(source: Path, folder: Path) -> Path:
    """Compile the kernel into a folder. Any exception means that it cannot be done here."""
    from setuptools import Distribution, Extension  # noqa: PLC0415 -- a wheel without the kernel does not need it
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    extension = Extension(
        MODULE,
        [str(source)],
        define_macros=[("Py_LIMITED_API", LIMITED_API)],
        py_limited_api=True,
        extra_compile_args=OPTIONS,
    )
    command = build_ext(Distribution({"name": "dpselect", "ext_modules": [extension]}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
    command.ensure_finalized()
    command.run()
    [output] = command.get_outputs()
    return Path(output)


def reason(error: Exception) -> str:
    """An error in a few words: without the options of the compiler, whose own words stand above."""
    cause = error.__context__
    if isinstance(cause, subprocess.CalledProcessError):
        return f"{cause.cmd[0]} failed with code {cause.returncode}"
    return str(error) or type(error).__name__


class KernelHook(BuildHookInterface[Any]):
    """Adds the compiled kernel to a wheel, or puts it beside its source if the install is editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, before the wheel is written."""
        source = Path(self.root, "src", *MODULE.split(".")).with_suffix(".c")
        self.folder = tempfile.TemporaryDirectory()
        file = self.attempt(source)
        if version == "editable":
            place(file, source.parent)
        elif file:
            platform = self.build_config.builder.get_best_matching_tag().rsplit("-", 1)[1]
            build_data |= {"pure_python": False, "tag": f"{PYTHON}-abi3-{platform}"}
            build_data["force_include"][str(file)] = "/".join([*MODULE.split(".")[:-1], file.name])

    def attempt(self, source: Path) -> Path | None:
        """The compiled kernel, or None and a line that says why not."""
        wanted = os.environ.get("DPSELECT_KERNEL", "")
        if wanted not in {"", "no", "yes"}:
            self.app.abort(f"dpselect: DPSELECT_KERNEL is {wanted!r}; use yes or no, or leave it out")
        why = "DPSELECT_KERNEL=no" if wanted == "no" else obstacle()
        if not why:
            try:
                return compiled(source, Path(self.folder.name))
            except Exception as error:  # whatever it is, dpselect works without the kernel
                why = reason(error)
        if wanted == "yes":
            self.app.abort(
                f"dpselect: the kernel cannot be compiled: {why}. DPSELECT_KERNEL=yes makes this an error: leave it out"
                " to install without the kernel."
            )
        self.app.display_warning(f"dpselect: the kernel was not compiled: {why}. Only speed is lost.")
        return None

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what the compiler left."""
        self.folder.cleanup()


def place(file: Path | None, folder: Path) -> None:
    """Put the compiled kernel into a folder, in place of any older one; with None, only remove the older one."""
    older = {path for pattern in COMPILED for path in folder.glob(pattern)}
    if file:
        # A process may have the older one in its memory, which must not change: so no byte of it is overwritten.
        fresh = Path(shutil.copy(file, folder / f"{file.name}.new"))
        older.discard(fresh.replace(folder / file.name))
    for path in older:
        path.unlink()
