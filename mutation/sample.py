"""Keep a random sample of the mutants of a cosmic-ray session: `python sample.py SESSION COUNT`."""

import random
import sqlite3
import sys


def main() -> None:
    """Forget all mutants but COUNT; the choice is the same for the same mutants."""
    session, count = sys.argv[1], int(sys.argv[2])
    with sqlite3.connect(session) as connection:
        jobs = [job for (job,) in connection.execute("SELECT job_id FROM mutation_specs")]
        places = (
            "SELECT module_path, start_pos_row, start_pos_col, operator_name, occurrence, job_id FROM mutation_specs"
        )
        ordered = [row[-1] for row in sorted(connection.execute(places))]
        kept = set(random.Random(1).sample(ordered, min(count, len(ordered))))
        for job in jobs:
            if job not in kept:
                connection.execute("DELETE FROM mutation_specs WHERE job_id = ?", (job,))
                connection.execute("DELETE FROM work_items WHERE job_id = ?", (job,))


if __name__ == "__main__":
    main()
