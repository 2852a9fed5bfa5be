"""What the table was measured on."""

import os
import platform
from importlib import metadata
from pathlib import Path

from dpselect.selection import kernel

_PACKAGES = ("dpselect", "numpy", "duckdb", "pyspark", "opendp", "diffprivlib", "scikit-learn")


def machine() -> str:
    """The processor and how busy it was, and the versions, in one line each."""
    versions = [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _PACKAGES)]
    compiled = "with the compiled kernel" if kernel.compiled else "without the compiled kernel"
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}{_load()}.\n{', '.join(versions)}, {compiled}."


def _load() -> str:
    """How many processes ran or waited in the last minute, on average, where the system tells."""
    return f", load {os.getloadavg()[0]:.1f} before the run" if hasattr(os, "getloadavg") else ""


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
