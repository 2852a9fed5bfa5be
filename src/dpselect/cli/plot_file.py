"""The file of a plot: refused before anything is computed, if it cannot be written."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dpselect.errors import DPSelectError, InvalidValue

if TYPE_CHECKING:
    from dpselect.analysis import Comparison

_ENDINGS = (".png", ".svg", ".pdf")


def check_plot(path: str) -> None:
    """Refuse a wrong ending, a missing folder and a missing matplotlib."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"--plot must end in {', '.join(_ENDINGS)}: got {path!r}")
    if not Path(path).parent.is_dir():
        raise InvalidValue(f"--plot {path!r}: there is no such folder: make it first")
    try:
        import_module("matplotlib")
    except ImportError:
        raise DPSelectError("--plot needs matplotlib: pip install 'dpselect[plot]'") from None


def save_plot(comparison: "Comparison", path: str) -> None:
    """Draw the comparison into the file."""
    try:
        comparison.plot(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--plot {path!r}: the file cannot be written ({reason})") from None
