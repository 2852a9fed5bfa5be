"""The best of many private runs, such as a model trained with each of many settings, as one private release.

Reporting the epsilon of the one run that is kept would be wrong: the choice depends on the results of all runs.
With a random and secret number of runs, the whole procedure costs less than two or three times that epsilon.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpselect.accounting.repeats import NegativeBinomial, Poisson, Repeated, Repeats, geometric, logarithmic
from dpselect.accounting.totals import best_event
from dpselect.tuning.best import Tuned, tune

if TYPE_CHECKING:
    from dpselect.tuning.search_cv import PrivateSearchCV as PrivateSearchCV

# `PrivateSearchCV` is not in the list: `import *` must work without scikit-learn.
__all__ = [
    "NegativeBinomial",
    "Poisson",
    "Repeated",
    "Repeats",
    "Tuned",
    "best_event",
    "geometric",
    "logarithmic",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "PrivateSearchCV":
        return import_module("dpselect.tuning.search_cv").PrivateSearchCV
    raise AttributeError(f"module 'dpselect.tuning' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "PrivateSearchCV"])
