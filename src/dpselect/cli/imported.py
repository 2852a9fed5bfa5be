"""Objects of the user's own modules, by name."""

import importlib
import os
import sys
from functools import reduce
from typing import Any

from dpselect.errors import InvalidValue, withheld


def imported(text: str, option: str) -> Any:
    """The object that MODULE:NAME names; modules in the working directory are found first, as `python -m` does.

    >>> imported("math:inf", "--callable")
    inf
    """
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise InvalidValue(f"{option} must be MODULE:NAME, got {text[:40]!r}: give for instance mymodule:choose")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    shown, found, reason = f"{option}: the module {module[:40]!r}", None, ""
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever the user's module raises
        reason = type(error).__name__
    if reason:
        raise InvalidValue(f"{shown} cannot be imported ({reason}): check its name and that it runs")
    missing = InvalidValue(f"{shown} has no {name[:40]!r}: check the name")
    return withheld(lambda: reduce(getattr, name.split("."), found), missing, AttributeError)
