"""The golden files, and what writes each of them."""

from collections.abc import Callable, Iterable
from pathlib import Path

from tests.golden import charges, sql

_FOLDER = Path(__file__).parent
GOLDEN: dict[Path, Callable[[], Iterable[str]]] = {
    _FOLDER / "charges.txt": charges.lines,
    _FOLDER / "sql.txt": sql.lines,
}


def text_of(lines: Callable[[], Iterable[str]]) -> str:
    """The content of a golden file."""
    return "".join(f"{line}\n" for line in lines())
