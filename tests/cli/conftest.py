import io
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

# A program that imports all commands, and prints which of some modules it imported with them.
ALL_COMMANDS = """
import sys, typer
from dpselect.cli.app import app
dict(typer.main.get_command(app).commands)
print([module for module in sys.modules if module.startswith({prefixes!r})])
"""


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
