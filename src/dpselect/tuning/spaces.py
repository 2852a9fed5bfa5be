"""Random candidates from public lists and distributions of parameters, as in scikit-learn's random search."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpselect.errors import InvalidType, InvalidValue
from dpselect.sampling.draws import Draws

# Parameters by name. Values are lists, or distributions with a method `rvs`, such as those of scipy.stats.
Space = list[dict[str, Any]]


def checked_space(distributions: Any) -> Space:
    """One or several mappings of parameter names to lists or distributions, with every list as a list."""
    spaces = [distributions] if isinstance(distributions, Mapping) else distributions
    if isinstance(spaces, (str, bytes)) or not isinstance(spaces, Sequence) or not spaces:
        raise InvalidType("param_distributions must be a dict of parameters, or a list of such dicts")
    return [_checked(space) for space in spaces]


def _checked(space: Any) -> dict[str, Any]:
    if not isinstance(space, Mapping) or not all(isinstance(name, str) for name in space):
        raise InvalidType("param_distributions must be a dict with the names of parameters, or a list of such dicts")
    return {name: _values(name, values) for name, values in space.items()}


def _values(name: str, values: Any) -> Any:
    if callable(getattr(values, "rvs", None)):
        return values
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidType(f"{name} must have a list of values or a distribution with rvs, got {type(values).__name__}")
    if not len(values):
        raise InvalidValue(f"{name} must have at least one value")
    return list(values)


def drawn_parameters(space: Space, draws: Draws) -> dict[str, Any]:
    """Draw a mapping, then a value for each of its parameters. Lists are drawn from uniformly."""
    names = space[draws.index(len(space))]
    return {name: _drawn(values, draws) for name, values in names.items()}


def _drawn(values: Any, draws: Draws) -> Any:
    if isinstance(values, list):
        return values[draws.index(len(values))]
    return values.rvs(random_state=np.random.RandomState(draws.source.bits(32)))
