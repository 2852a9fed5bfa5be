"""Whether the kernel can be compiled here; found without the hook, so that a broken hook fails and is not skipped."""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest


def missing():
    """What is missing, in words, or nothing."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "CPython with its lock"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python's headers"
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "no-compiler"
    return "" if shutil.which(shlex.split(command)[0]) else "a C compiler that Python names"


needs_compiler = pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}")
