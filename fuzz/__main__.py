"""Fuzz one target with atheris: `python -m fuzz TARGET -max_total_time=60`, with any options of libFuzzer."""

import sys

import atheris

with atheris.instrument_imports(include=["dpselect"]):
    from fuzz.targets import TARGETS

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"give a target: {', '.join(TARGETS)}")
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
