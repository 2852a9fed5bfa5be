"""What `make mutants` leaves out: idle places are told from those that matter."""

import ast
from pathlib import Path

import pytest

from mutation.equivalents import reason_of
from mutation.places import idle_places, is_inside_function, reason_at
from mutation.tests import LEFT_OUT, TESTS

ROOT = Path(__file__).parents[1]
SOURCE = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import this
Number = npt.NDArray | int
LIMIT = 4 + 5

@cache
def twice(value: int | None = 6 + 7) -> str | None:
    wide: int | None = value * 2
    return wide

@dataclass(frozen=True)
class Record:
    size: int | None = 8 * 9
"""


def place(text):
    row = next(number for number, line in enumerate(SOURCE.splitlines(), 1) if text in line)
    return row, SOURCE.splitlines()[row - 1].index(text)


@pytest.mark.parametrize(
    "text", ["TYPE_CHECKING:", "import this", "| int", "cache", "| None = 6", "| None:", "| None = 8"]
)
def test_idle_places_are_left_out(text):
    assert reason_at(place(text), list(idle_places(SOURCE))) is not None


@pytest.mark.parametrize("text", ["4 + 5", "6 + 7", "value * 2", "frozen", "8 * 9", "return wide"])
def test_other_places_are_tried(text):
    assert reason_at(place(text), list(idle_places(SOURCE))) is None


def test_only_bodies_of_functions_are_inside():
    assert is_inside_function(place("value * 2"), SOURCE)
    assert not any(is_inside_function(place(text), SOURCE) for text in ("4 + 5", "6 + 7", "frozen", "8 * 9"))


def test_the_listed_tests_exist():
    for name in [test for tests in TESTS.values() for test in tests] + list(LEFT_OUT):
        path, _, function = name.partition("::")
        defined = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if hasattr(node, "name")}
        assert not function or function.partition("[")[0] in defined


def test_only_listed_survivors_are_excused():
    line = "heads[index] = coin(exponents.exact(index), source, word, depth + _FRESH_BITS)"
    assert reason_of("sampling/coin.py", f"    {line}", line.replace("+", "|", 1)) is not None
    assert reason_of("sampling/coin.py", f"    {line}", line.replace("+", "-", 1)) is None
    assert reason_of("sampling/noise.py", f"    {line}", line.replace("+", "|", 1)) is None
