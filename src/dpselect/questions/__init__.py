"""What can be asked: one frozen record for each kind of question, for plans, answers, commands and the explorer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.questions.most import Mode, TopK, UnlistedMode, UnlistedTopK, Values
    from dpselect.questions.quantiles import Quantile, Quantiles
    from dpselect.questions.question import Question, Select

__all__ = [
    "Mode",
    "Quantile",
    "Quantiles",
    "Question",
    "Select",
    "TopK",
    "UnlistedMode",
    "UnlistedTopK",
    "Values",
]
_HOMES = {
    **dict.fromkeys(("Mode", "TopK", "UnlistedMode", "UnlistedTopK", "Values"), "most"),
    **dict.fromkeys(("Quantile", "Quantiles"), "quantiles"),
    **dict.fromkeys(("Question", "Select"), "question"),
}


def __getattr__(name: str) -> Any:
    """Import a record when it is first used: a plan needs fewer of them than there are."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpselect.questions' has no attribute {name!r}")
    return getattr(import_module(f"dpselect.questions.{_HOMES[name]}"), name)
