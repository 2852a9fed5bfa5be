"""The files that a path, a folder or a pattern names, and whether they are CSV or Parquet."""

import glob
from enum import Enum
from pathlib import Path

from dpselect.errors import InvalidValue
from dpselect.tables.lines import ENDINGS

_PARQUET_ENDINGS = (".parquet", ".pq")
_PARQUET_MAGIC = b"PAR1"


class Format(Enum):
    """How the rows are written."""

    CSV = "CSV"
    PARQUET = "Parquet"


def files_of(source: str) -> tuple[Format, list[Path]]:
    """The files that are meant, all of one format."""
    paths = _paths(source)
    formats = {path: _format(path) for path in paths}
    if len(set(formats.values())) > 1:
        raise InvalidValue(f"{source}: some files are CSV and some are Parquet: give files of one format")
    return formats[paths[0]], paths


def _paths(source: str) -> list[Path]:
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        named = sorted(
            p for p in path.rglob("*") if p.is_file() and p.name.lower().endswith((*_PARQUET_ENDINGS, *ENDINGS))
        )
        # Files whose name starts with a dot or an underscore are what tools leave beside the data.
        found = [p for p in named if not any(part.startswith((".", "_")) for part in p.relative_to(path).parts)]
        if not found:
            raise InvalidValue(f"{source}: this folder has no CSV or Parquet file: check the path")
        return found
    found = [p for p in map(Path, sorted(glob.glob(source, recursive=True))) if p.is_file()]
    if not found:
        raise InvalidValue(f"{source}: there is no such file: check the path")
    return found


def _format(path: Path) -> Format:
    """By the file's first bytes, then by its ending; bytes do not lie."""
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_PARQUET_MAGIC))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"{path}: the file cannot be read ({reason}): check its permissions") from None
    if beginning == _PARQUET_MAGIC:
        return Format.PARQUET
    if path.name.lower().endswith(ENDINGS):
        return Format.CSV
    wrong = (
        "this is not a Parquet file, whatever its name says"
        if path.name.lower().endswith(_PARQUET_ENDINGS)
        else ("this is neither Parquet nor named as CSV (.csv, .tsv, .txt, with or without .gz)")
    )
    raise InvalidValue(f"{path}: {wrong}: give a CSV or Parquet file")
