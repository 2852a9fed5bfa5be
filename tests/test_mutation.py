"""What `make mutants` changes, what it leaves out, and which survivors it takes."""

import ast
from pathlib import Path

import pytest

from mutation import survivors
from mutation.mutants import PACKAGE, Mutant, mutants
from mutation.places import idle_places, is_inside_function, reason_at
from mutation.tests import ARITHMETIC, LEFT_OUT, TESTS, listed_tests

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


IDLE = ["TYPE_CHECKING:", "import this", "| int", "cache", "| None = 6", "| None:", "| None = 8"]
BUSY = ["4 + 5", "6 + 7", "value * 2", "frozen", "8 * 9", "return wide"]


def test_idle_places_are_left_out_and_only_bodies_of_functions_are_inside():
    assert {text for text in IDLE + BUSY if reason_at(place(text), list(idle_places(SOURCE)))} == set(IDLE)
    assert {text for text in BUSY if is_inside_function(place(text), SOURCE)} == {"value * 2", "return wide"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of one file."""
    monkeypatch.setattr("mutation.mutants.PACKAGE", tmp_path)
    monkeypatch.setattr("mutation.survivors.PACKAGE", tmp_path)
    return tmp_path / "file.py"


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("return a + b", {"return a - b"}),
        ("return a ** (b) // c", {"return a * (b) // c", "return a ** (b) * c"}),
        ("return a < b <= c", {"return a <= b <= c", "return a < b < c"}),
        ("return a is None or b not in c", {"return a is not None or b not in c", "return a is None and b not in c",
                                            "return a is None or b in c"}),
        ("return not a", {"return a"}),
        ("return -a", {"return a"}),
        ("return 2, 3, True, 'äöü', 0.5", {"return 3, 3, True, 'äöü', 0.5", "return 2, 3, False, 'äöü', 0.5",
                                           "return 2, 3, True, 'äöü', 1.5"}),
        ("return math.ceil(min(a))", {"return math.floor(min(a))", "return math.ceil(max(a))"}),
        ("return float_above(a)", {"return float(a)"}),
        ("return a if b else c", {"return a if not b else c"}),
        ("return zip(a, b, strict=True)", set()),
        ("return 'ä' and a + b  # + < 1", {"return 'ä' or a + b  # + < 1", "return 'ä' and a - b  # + < 1"}),
    ],
)  # fmt: skip
def test_mutants_of_a_line(package, line, changed):
    package.write_text(f"def f(a, b, c):\n    {line}\n", "utf-8")
    found = mutants("file.py")
    assert {mutant.new for mutant in found} == changed
    assert all((mutant.old, mutant.number, mutant.is_inside) == (line, 2, True) for mutant in found)
    assert all(mutant.source == f"def f(a, b, c):\n    {mutant.new}\n" for mutant in found)


@pytest.mark.parametrize("file", ARITHMETIC)
def test_mutants_of_the_privacy_arithmetic_can_be_compiled_and_differ(file):
    source = ast.dump(ast.parse((PACKAGE / file).read_text("utf-8")))
    found = mutants(file)
    assert len(found) > 10
    for mutant in found[::10]:
        assert ast.dump(ast.parse(mutant.source)) != source


def test_the_listed_tests_exist():
    for name in [test for tests in [*TESTS.values(), *ARITHMETIC.values()] for test in tests] + list(LEFT_OUT):
        path, _, function = name.partition("::")
        defined = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if hasattr(node, "name")}
        assert not function or function.partition("[")[0] in defined
    assert listed_tests("audit/events.py") == ("tests/audit",)


def test_no_entry_of_the_list_is_stale():
    assert survivors.stale() == []
    assert all(reason for reason in survivors.reasons().values())


def test_only_listed_survivors_are_excused_and_stale_ones_are_named(package, monkeypatch, tmp_path):
    package.write_text("def f(a, b):\n    return a + b\n")
    listed = tmp_path / "survivors.toml"
    listed.write_text(
        '[[survivor]]\nfile = "file.py"\nold = "return a + b"\nnew = ["return a - b"]\nreason = "b is zero"\n'
    )
    monkeypatch.setattr(survivors, "LIST", listed)
    survivors.reasons.cache_clear()
    try:
        assert [survivors.reason_of(mutant) for mutant in mutants("file.py")] == ["b is zero"]
        assert survivors.reason_of(Mutant("file.py", 2, "return a + b", "return a / b", "", True)) is None
        assert survivors.stale() == []
        package.write_text("def f(a, c):\n    return a + c\n")
        [words] = survivors.stale()
        assert "is not there any more. Remove it, or write its line as it is now" in words
        assert words.endswith("file.py\n- return a + b\n+ return a - b")
        package.unlink()
        assert len(survivors.stale()) == 1
    finally:
        survivors.reasons.cache_clear()
