"""What a run of the benchmarks found. It is kept in a file, so that a page can be written without measuring again."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.bars import Figures
from benchmarks.case import Case, Row

_Figures = tuple[float, float | None]


@dataclass
class Run:
    """The figures of each row by its label, or why there are none; and the reports by their titles."""

    method: str  # when, on what and how it was measured
    figures: dict[str, _Figures | str] = field(default_factory=dict)
    reports: dict[str, str] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Keep the result of a row."""
        figures = row.figures
        self.figures[row.case.label] = row.note if figures is None else (figures.ours, figures.reference)

    def rows(self, cases: Iterable[Case]) -> list[Row]:
        """Those of the cases that were measured, judged by the bars that they have now."""
        return [_row(case, self.figures[case.label]) for case in cases if case.label in self.figures]

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def loaded(path: Path) -> Run:
    """An earlier run."""
    return Run(**json.loads(path.read_text(encoding="utf-8")))


def _row(case: Case, found: _Figures | str) -> Row:
    return Row(case, None, found) if isinstance(found, str) else Row(case, Figures(*found))
