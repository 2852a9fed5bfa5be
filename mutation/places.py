"""Places in a source: inside functions, and idle ones, which cannot change what the code does."""

import ast
from collections.abc import Iterator
from functools import cache

Span = tuple[tuple[int, int], tuple[int, int]]

_CACHES = {"cache"}


def idle_places(source: str) -> Iterator[tuple[Span, str]]:
    """The idle places, each with the reason: types, which nothing evaluates, and caches."""
    for node in ast.walk(ast.parse(source)):
        for annotation in _annotations(node):
            yield _span(annotation), "a type annotation"
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and "npt." in ast.unparse(node.value):
            yield _span(node.value), "the name of a type"
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield _span(node), "imports for the type checker"
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator) in _CACHES:
                    (line, column), end = _span(decorator)
                    yield ((line, column - 1), end), "a cache of a function without side effects"  # from the @ on


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.FunctionDef) and node.returns is not None:
        yield node.returns
    if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
        yield node.annotation


def _span(node: ast.expr | ast.stmt) -> Span:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def is_inside_function(start: tuple[int, int], source: str) -> bool:
    """Whether a place is in the body of a function, not in its signature, its decorators or a class."""
    return any(first <= start < last for first, last in _bodies(source))


@cache
def _bodies(source: str) -> list[Span]:
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return [(_span(node.body[0])[0], _span(node)[1]) for node in functions]


def reason_at(start: tuple[int, int], found: list[tuple[Span, str]]) -> str | None:
    """Why a mutant that starts there changes nothing; None if it may change something."""
    return next((why for (first, last), why in found if first <= start < last), None)
