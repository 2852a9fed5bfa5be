"""The mutants of a file: the file with one small change each, of the kinds that lose privacy or accuracy.

An operator, a comparison, a number, a condition or the side of a rounding is changed. Each place gets one mutant of a
kind: what notices `-` for `+` mostly notices `/` too.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation.places import idle_places, is_inside_function, reason_at

PACKAGE = Path("src/dpselect")

_OPERATORS = {
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")},
    **{ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*")},
    **{ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<")},
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is")},
    **{ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and")},
}
# A float that is rounded to the nearest is on the wrong side half of the time.
_NAMES = {
    **{"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"},
    **{"float_above": "float", "float_below": "float"},
}
# Larger numbers are mostly limits and precisions of searches, where one more or less makes no difference.
_LARGEST = 2


@dataclass(frozen=True)
class Mutant:
    """A file with one change."""

    file: str
    number: int
    old: str  # the line, and what it became
    new: str
    source: str
    is_inside: bool  # of a function

    @property
    def order(self) -> bytes:
        """Return what orders mutants at random, the same each time, whatever changes in other lines."""
        return hashlib.sha256("\n".join((self.file, self.old, self.new)).encode()).digest()


def mutants(file: str) -> list[Mutant]:
    """All mutants of a file of the package, but those of idle places. Equal changes of equal lines are one."""
    source = (PACKAGE / file).read_text("utf-8")
    text, starts = source.encode(), _starts(source.encode())
    idle, found = list(idle_places(source)), {}
    for place, end, new in _changes(ast.parse(source), text, starts):
        line = next(number for number in range(len(starts), 0, -1) if starts[number - 1] <= place)
        column = place - starts[line - 1]
        if reason_at((line, column), idle) is None:
            changed = (text[:place] + new.encode() + text[end:]).decode()
            old, became = (lines.splitlines()[line - 1].strip() for lines in (source, changed))
            inside = is_inside_function((line, column), source)
            found.setdefault((old, became), Mutant(file, line, old, became, changed, inside))
    return list(found.values())


def _starts(text: bytes) -> list[int]:
    """Where each line begins."""
    return [0, *(match.end() for match in re.finditer(rb"\n", text))]


def _changes(tree: ast.AST, text: bytes, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    """Where a change begins and ends, and what is put there."""

    def begin(node: ast.expr) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.expr) -> int:
        return starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[tuple[int, int, str]]:
        if type(operator) in _OPERATORS:
            old, new = _OPERATORS[type(operator)]
            place = text.find(old.encode(), end(left), begin(right))
            yield place, place + len(old), new

    # strict=True of zip: only a mistake elsewhere would make a difference.
    strict = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "strict"}
    for node in ast.walk(tree):
        match node:
            case ast.BinOp():
                yield from between(node.left, node.op, node.right)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from between(left, node.op, right)
            case ast.Compare():
                for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    yield from between(left, op, right)
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield begin(node), begin(node.operand), ""
            case ast.Constant(value=bool()) if id(node) not in strict:
                yield begin(node), end(node), str(not node.value)
            case ast.Constant(value=(int() | float()) as number) if (
                id(node) not in strict and number <= _LARGEST and 2 * number == int(2 * number)
            ):
                yield begin(node), end(node), repr(number + 1)
            case ast.Name() | ast.Attribute():
                name = node.id if isinstance(node, ast.Name) else node.attr
                if name in _NAMES:
                    yield end(node) - len(name), end(node), _NAMES[name]
            case (
                ast.If(test=ast.Name() | ast.Attribute() | ast.Call())
                | ast.IfExp(test=ast.Name() | ast.Attribute() | ast.Call())
            ):
                yield begin(node.test), begin(node.test), "not "
