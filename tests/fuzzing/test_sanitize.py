"""`make sanitize` calls every function of the kernel, and finds faults of memory and arithmetic."""

import itertools
import sys
from collections import Counter

import pytest

from dpselect.selection import kernel
from fuzz import sanitize
from fuzz.kernel import CALLS, calls
from tests.kernels import needs_kernel

needs_sanitizers = pytest.mark.skipif(bool(sanitize.missing()), reason=f"needs {sanitize.missing()}")


@needs_kernel
def test_every_function_is_called_with_arguments_that_it_takes_and_that_it_refuses():
    assert set(CALLS) == {name for name in vars(kernel.compiled) if not name.startswith("_")} - {"VERSION"}
    seen = Counter(itertools.islice(calls(kernel.compiled, seed=5), 3_000))
    for name in CALLS:
        assert seen[name, True] > 50
        assert seen[name, False] > 10


@needs_kernel
def test_a_seed_makes_the_same_calls():
    first, second = (list(itertools.islice(calls(kernel.compiled, seed=6), 500)) for _ in range(2))
    assert first == second
    assert first != list(itertools.islice(calls(kernel.compiled, seed=7), 500))


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, as make sanitize does")
@pytest.mark.parametrize(
    ("script", "words"), [(None, "needs gcc"), ("echo ${1#*=}", "needs libasan.so and libubsan.so")]
)
def test_what_is_missing_is_said(script, words, tmp_path, monkeypatch):
    if script:
        (tmp_path / "gcc").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["fuzz.sanitize"])
    with pytest.raises(SystemExit, match=f"make sanitize {words}"):
        sanitize.main()


# A fault, and what a sanitizer calls it.
FAULTS = {
    "one number is read after the end": (
        "for (Py_ssize_t i = start; i < stop; i++) {\n            int64_t one",
        "for (Py_ssize_t i = start; i <= stop; i++) {\n            int64_t one",
        "heap-buffer-overflow",
    ),
    "one number is written after the end": (
        "if (found + LANES > most)",
        "if (found + LANES > most + 1)",
        "heap-buffer",
    ),
    "a position is not checked": ("positions[i] < some->count", "positions[i] <= some->count", "heap-buffer-overflow"),
    "trials may be negative": (" || last < -1 || trials < 0)", ")", "signed integer overflow"),
    "parts may be longer than all": ("width = width < count ? width : count;", "", "signed integer overflow"),
    "a skip in doubt is cast": ("? (int64_t)low : -1", "? (int64_t)low : (int64_t)low", "outside the range"),
    "buffers need not be aligned": ("(uintptr_t)view->buf % (uintptr_t)size", "0", "misaligned address"),
}


@pytest.mark.slow
@needs_sanitizers
@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_fault_is_found(fault, tmp_path):
    text, expected = sanitize.SOURCE.read_text("utf-8"), None
    if fault is not None:
        before, after, expected = FAULTS[fault]
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "_kernel.c").write_text(text, "utf-8")
    done = sanitize.fuzzed(
        sanitize.built(tmp_path / "_kernel.c", tmp_path), 3 if fault is None else 30, 1, capture_output=True, text=True
    )
    if expected is None:
        assert (done.returncode, done.stderr) == (0, "")
        assert "and no report" in done.stdout
    else:
        assert done.returncode
        assert expected in done.stderr
        assert "seed 1" in done.stdout
