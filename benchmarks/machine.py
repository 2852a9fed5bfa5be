"""What the table was measured on."""

import os
import platform
from importlib import metadata
from pathlib import Path

_PACKAGES = ("dpselect", "numpy", "opendp", "diffprivlib", "scikit-learn")


def machine() -> str:
    """The processor and the versions, in one line each."""
    versions = [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _PACKAGES)]
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}\n{', '.join(versions)}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
