"""Fuzz one target with atheris: `python -m fuzz TARGET -max_total_time=60`, with any options of libFuzzer.

`python -m fuzz TARGET FILE` tries the bytes of a file.
"""

import os
import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["dpselect", "fuzz"]):
    from fuzz.batches import Batched
    from fuzz.targets import TARGETS

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"give a target: {', '.join(TARGETS)}")
    name, options = sys.argv[1], sys.argv[2:]
    is_search = all(option.startswith("-") for option in options)
    target = Batched(250) if name == "table_lines" and is_search else TARGETS[name]
    # libFuzzer ends its process without asking Python, so another one removes the files.
    with tempfile.TemporaryDirectory(prefix="dpselect-fuzz-") as tempfile.tempdir:
        child = os.fork()
        if not child:
            atheris.Setup([sys.argv[0], *options], target)
            atheris.Fuzz()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(abs(code))
