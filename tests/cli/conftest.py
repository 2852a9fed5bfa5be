import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from dpselect.cli import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]

MAIN = "from dpselect.cli import main; main()"


def process(*arguments: str, program: str = MAIN, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line, or another program, as a process of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, timeout=120, env={**os.environ, **environment}, check=False)


def on_terminal(*arguments: str) -> tuple[int, str, str]:
    """The exit code, what goes to standard output, and what a terminal shows of standard error. Bars never wait."""
    pty = pytest.importorskip("pty", reason="needs a terminal that a program can make")
    reader, writer = pty.openpty()
    at_once = "from dpselect import _show; _show._SILENT_SECONDS = _show._STEP_SECONDS = 0"
    command = [sys.executable, "-c", f"{at_once}; {MAIN}", *arguments]
    environment, seen = {**os.environ, "TERM": "xterm"}, b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, env=environment) as child:
        os.close(writer)
        while True:  # its buffer is small: read while they write
            try:
                part = os.read(reader, 4096)
            except OSError:  # how Linux says that nobody is left to write
                break
            if not part:
                break
            seen += part
        shown, _ = child.communicate(timeout=120)
    os.close(reader)
    return child.returncode, shown.decode(), seen.decode()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `dpselect` with these arguments, by its entry point."""

    def run_with(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["dpselect", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as exit_info:
            main()
        code = exit_info.value.code
        return Result(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run_with
