"""How to install what is missing, for messages of errors."""

import shlex
import sys


def install_command(*packages: str) -> str:
    """The command that installs packages for the Python that runs.

    It names the packages themselves, and never dpselect: a package index may have something else under that name. It
    names the interpreter, because the `pip` of a shell may belong to another one.

    >>> install_command("starlette", "uvicorn").endswith(" -m pip install starlette uvicorn")
    True
    """
    return shlex.join([sys.executable or "python", "-m", "pip", "install", *packages])
