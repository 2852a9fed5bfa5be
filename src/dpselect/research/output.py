"""What `reproduce` and `study` share: writing files, and reporting progress."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidValue
from dpselect.research.plotting import image

Watch = Callable[[list[Any], str], Iterable[Any]]  # gets the items of a stage and its name, and yields the items


def make_folder(out: str | Path) -> Path:
    """Create the folder if it does not exist."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValue(f"out: the folder {str(out)!r} cannot be created ({_reason(error)})") from None
    return folder


def write_file(path: Path, content: str | bytes) -> Path:
    """Write text or bytes to a file."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InvalidValue(f"out: {str(path)!r} cannot be written ({_reason(error)})") from None
    return path


def write_figure(folder: Path, name: str, figure: Any) -> None:
    """Write a figure as PNG and PDF."""
    for ending in ("png", "pdf"):
        write_file(folder / f"{name}.{ending}", image(figure, ending))


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
