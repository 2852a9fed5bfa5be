"""Everything that a user types has a docstring with Args, Raises and an example.

Parameters that several methods share are described once: the others say "See `Table.quantile`". Errors that all methods
of a class share are listed in the class. The first line may say what is returned. The rule covers the names in
`dpselect.__all__` and in the `__all__` of its public rooms, and the public methods of their classes. The examples run
as doctests.
"""

import ast
import enum
import inspect
import textwrap
from types import FunctionType, ModuleType

import pytest

import dpselect


def public_objects():
    """The public classes and functions, by qualified name."""
    found = {}
    modules = [dpselect, *(getattr(dpselect, name) for name in dpselect.__all__)]
    for module in modules:
        if isinstance(module, ModuleType):
            for name in getattr(module, "__all__", ()):
                thing = getattr(module, name)
                if inspect.isclass(thing) or inspect.isfunction(thing):
                    found[thing.__qualname__] = thing
    return found


def documented_parts():
    """Each public function, class and method, by qualified name, with the docstrings of the classes that have it.

    Errors have a docstring and nothing else. The methods of a protocol are documented by the classes that implement it.
    """
    parts = {}
    for name, thing in public_objects().items():
        if inspect.isfunction(thing):
            parts[name] = (thing, "")
        elif not issubclass(thing, BaseException) and not is_protocol(thing):
            parts[name] = (thing, "")
            for method in methods(thing):
                _, texts = parts.get(method.__qualname__, (method, ""))
                parts[method.__qualname__] = (method, f"{texts}\n{thing.__doc__ or ''}")
    return parts


def methods(kind):
    """The public methods of a class that the package defines, also in its bases; without properties."""
    for base in kind.__mro__:
        if base.__module__.startswith("dpselect"):
            for name, value in vars(base).items():
                function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
                is_ours = isinstance(function, FunctionType) and function.__module__.startswith("dpselect")
                if is_ours and not name.startswith("_") and getattr(kind, name, None) is not None:
                    yield function


def missing_parts(thing, texts):
    """What the docstring of a function, method or class lacks."""
    text = thing.__doc__ or ""
    missing = [] if text else ["a docstring"]
    if inspect.isclass(thing):
        text += thing.__init__.__doc__ or ""
        if takes_arguments(thing.__init__) and not issubclass(thing, enum.Enum):
            missing += [] if "Args:" in text or "Attributes:" in text else ["Args or Attributes"]
    else:
        if takes_arguments(thing):
            missing += [] if "Args:" in text or "See `" in text else ["Args"]
        if refuses_something(thing):
            missing += [] if "Raises:" in text + texts or "See `" in text else ["Raises"]
    return missing + ([] if ">>>" in text + texts else ["an example"])


def takes_arguments(function):
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return bool(names) and isinstance(function, FunctionType)


def is_protocol(kind):
    return getattr(kind, "_is_protocol", False)


def refuses_something(function):
    """Whether the function itself raises an error, or calls one of the package's checks."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    checks = any(isinstance(call, ast.Attribute) and ast.unparse(call.value) == "_validate" for call in calls)
    return checks or any(isinstance(node, ast.Raise) for node in ast.walk(tree))


PARTS = documented_parts()
LACKING = {name: missing for name, part in PARTS.items() if (missing := missing_parts(*part))}


@pytest.mark.parametrize("name", sorted(PARTS))
def test_what_users_type_is_documented(name):
    assert not LACKING.get(name), f"the docstring of {name} has no {', no '.join(LACKING[name])}"


def test_the_rule_sees_what_is_missing():
    def bare(argument: int) -> int:
        """Return it."""
        if argument < 0:
            raise ValueError
        return argument

    assert missing_parts(bare, "") == ["Args", "Raises", "an example"]
    bare.__doc__ = (
        "Return it.\n\nArgs:\n    argument: a number.\n\nRaises:\n    ValueError: it is negative.\n\n>>> 1\n1\n"
    )
    assert missing_parts(bare, "") == []
