"""Documented modules that have moved. Their old names still work, with a DeprecationWarning."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_NEW_HOMES = {
    "dpselect.explore.shapes": "dpselect.explore.score_set",
    "dpselect.mechanisms.guarantee": "dpselect.mechanisms.privacy",
    "dpselect.mechanisms.record": "dpselect.mechanisms.parameters",
    "dpselect.mechanisms.summary": "dpselect.streaming.summary",
    "dpselect.paper": "dpselect.research.paper",
    "dpselect.paper.reproduce": "dpselect.research.paper.reproduce",
    "dpselect.studies": "dpselect.research.studies",
    "dpselect.studies.study": "dpselect.research.studies.study",
}


class _OldHomes:
    """Finds and fills a module, with the names of the module at its new place.

    It has what `importlib.abc` asks of a finder and a loader, and does not import that: it takes 10 ms.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - part of the protocol
        target: ModuleType | None = None,  # noqa: ARG002 - part of the protocol
    ) -> ModuleSpec | None:
        """Return a loader spec for a module that has moved; None for any other module."""
        if fullname not in _NEW_HOMES:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in _NEW_HOMES)
        return ModuleSpec(fullname, self, is_package=is_package)  # type: ignore[arg-type]  # it has their methods

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Copy the names from the new module, and warn."""
        home = _NEW_HOMES[module.__name__]
        warnings.warn(f"{module.__name__} is now {home}", DeprecationWarning, stacklevel=2)
        names = vars(import_module(home))
        vars(module).update({name: value for name, value in names.items() if not name.startswith("__")})


def install() -> None:
    """Let Python find the old names. Calling it again changes nothing."""
    if not any(isinstance(finder, _OldHomes) for finder in sys.meta_path):
        sys.meta_path.append(_OldHomes())
