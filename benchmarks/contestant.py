"""Who takes part in a row: ours and the peers, each a name and the call that it makes on given scores."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.scores import Scores
from benchmarks.stopwatch import Call
from dpselect import Mechanism
from dpselect.selection import kernel

_REMEDY = "say make bench, or python -m pip install -e '.[bench]' in the clone"
_OPENDP_TYPES = {"float64": "f64", "int64": "i64"}


class NotAvailable(Exception):
    """A peer cannot be imported; the message says what to do."""


@dataclass(frozen=True)
class Contestant:
    """A name, and how to prepare the call that is timed. What a user does once, ahead of all scores, is not timed."""

    name: str
    prepared: Callable[[Scores], Call]
    epsilon: str = "1"


def ours(mechanism: Mechanism) -> Contestant:
    """A selection of dpselect."""
    epsilon = f"{float(mechanism.epsilon):g}"
    return Contestant(type(mechanism).__name__, lambda scores: partial(mechanism.select, scores), epsilon)


def by_numpy(call: Call) -> Call:
    """The call as where nothing was compiled."""

    def result() -> object:
        compiled, kernel.compiled = kernel.compiled, None
        try:
            return call()
        finally:
            kernel.compiled = compiled

    return result


def _naive_noisy_max(scores: Scores) -> Call:
    """Report noisy max at epsilon = 1 as it is often written: floating-point noise on all scores at once."""
    generator = np.random.default_rng()
    return lambda: np.argmax(scores + generator.laplace(scale=2, size=scores.size))


def _naive_permute_and_flip(scores: Scores) -> Call:
    """Permute-and-flip at epsilon = 1 in floats: exponential noise on all scores at once, for each row of a matrix."""
    generator, axis = np.random.default_rng(), scores.ndim - 1
    return lambda: np.argmax(scores + generator.exponential(2, scores.shape), axis=axis)


def _softmax(scores: Scores) -> Call:
    """The probabilities of the exponential mechanism at epsilon = 1, as they are often written."""

    def probabilities() -> Scores:
        weights = np.exp((scores - scores.max()) * 0.5)
        normalized: Scores = weights / weights.sum()
        return normalized

    return probabilities


def _opendp_noisy_max(scores: Scores) -> Call:
    """Permute-and-flip at epsilon = 1, which is noisy max with exponential noise of scale 2."""
    dp = opendp_prelude()
    number = _OPENDP_TYPES[scores.dtype.name]
    atoms = dp.atom_domain(T=number, nan=False) if scores.dtype.kind == "f" else dp.atom_domain(T=number)
    noisy_max = dp.m.make_noisy_max(
        input_domain=dp.vector_domain(atoms),
        input_metric=dp.linf_distance(T=number),
        output_measure=dp.max_divergence(),
        scale=2.0,
        negate=False,
    )
    return partial(noisy_max, scores)


def _diffprivlib_permute_and_flip(scores: Scores) -> Call:
    """Permute-and-flip at epsilon = 1; its construction is timed, because it takes the scores."""
    mechanism = _module("diffprivlib.mechanisms").PermuteAndFlip
    utility = scores.tolist()
    return lambda: mechanism(epsilon=1.0, sensitivity=1.0, utility=utility).randomise()


def opendp_prelude() -> Any:
    """OpenDP, with all of its measurements."""
    dp = _module("opendp.prelude")
    dp.enable_features("contrib")
    return dp


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise NotAvailable(f"not installed: {_REMEDY}") from None
    except ImportError:
        raise NotAvailable(f"versions that do not work together: {_REMEDY}") from None


ARGMAX = Contestant("argmax", lambda scores: partial(np.argmax, scores))
ARGMAX_OF_ROWS = Contestant("argmax(axis=1)", lambda scores: partial(np.argmax, scores, axis=1))
NAIVE_NOISY_MAX = Contestant("argmax(q + laplace)", _naive_noisy_max)
NAIVE_PERMUTE_AND_FLIP = Contestant("argmax(q + exponential)", _naive_permute_and_flip)
SOFTMAX = Contestant("softmax", _softmax)
OPENDP = Contestant("OpenDP noisy max", _opendp_noisy_max)
DIFFPRIVLIB = Contestant("diffprivlib P&F", _diffprivlib_permute_and_flip)
