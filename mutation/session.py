"""What cosmic-ray's session knows: the mutants, what became of them, and a table of that."""

import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from mutation.equivalents import reason_of

SESSION = Path("build/mutants.sqlite")
_MUTANTS = """
    SELECT job_id, module_path, operator_name, occurrence, start_pos_row, start_pos_col,
        CASE worker_outcome WHEN 'SKIPPED' THEN 'idle' ELSE lower(test_outcome) END, diff
    FROM mutation_specs LEFT JOIN work_results USING (job_id)
"""
_KINDS = ("idle", "killed", "equivalent", "survived", "not tried")


@dataclass(frozen=True)
class Mutant:
    """One change of one place, and what became of it: idle, killed, survived, or None if it was not tried."""

    job: str
    file: str
    operator: str
    occurrence: int
    start: tuple[int, int]
    outcome: str | None
    lines: str | None  # the number of the line, the line, and what it became

    @property
    def place(self) -> tuple[str, tuple[int, int], str, int]:
        """Return what orders mutants, the same in every session."""
        return self.file, self.start, self.operator, self.occurrence

    @property
    def kind(self) -> str:
        """Return the outcome, with survivors that are known to be equivalent told from others."""
        is_excused = self.outcome == "survived" and self.lines and reason_of(self.file, *self.lines.split("\n")[1:])
        return "equivalent" if is_excused else self.outcome or "not tried"


def mutants() -> list[Mutant]:
    """All mutants of the session."""
    with sqlite3.connect(SESSION) as connection:
        rows = connection.execute(_MUTANTS).fetchall()
    return [
        Mutant(job, "/".join(Path(path).parts[-2:]), operator, occurrence, (row, column), outcome, lines)
        for job, path, operator, occurrence, row, column, outcome, lines in rows
    ]


def table() -> str:
    """How many mutants of each file are what."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants():
        counts[mutant.file][mutant.kind] += 1
        counts["together"][mutant.kind] += 1
    lines = [f"| file | {' | '.join(_KINDS)} |", f"|---|{'--:|' * len(_KINDS)}"]
    for file in sorted(counts, key=lambda file: (file == "together", file)):
        lines.append(f"| {file} | {' | '.join(str(counts[file][kind]) for kind in _KINDS)} |")
    return "\n".join(lines)
