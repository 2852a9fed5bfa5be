"""For the API reference: the examples of docstrings are code, and not text with three angle brackets."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FenceDoctests(Extension):
    """Put a fence around every doctest, which ends at an empty line."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the text that the pages show; the code is left alone."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its doctests in fences."""
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", text)
