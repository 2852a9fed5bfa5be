"""Run tests against mutants, fast: nothing is written to disk, and little is imported or collected again.

A mutant inside a function takes the place of that function in a fork of a process that has collected the tests. Any
other mutant (a constant, a default, a decorator) is imported, from memory, in a fork of a process that has imported
everything but dpselect.
"""

import functools
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import flint  # noqa: F401 - imported once, before the forks, as all that is not used here
import hypothesis.extra.numpy
import numpy as np  # noqa: F401 - the same
import pytest
import scipy.integrate
import scipy.special
import scipy.stats  # noqa: F401 - the same

# Nothing that grows without bound may take the machine with it.
_MEMORY = 6 * 2**30
# A mutant need not be killed by the least example, and not always by another one.
_FEW = hypothesis.settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.register_profile("mutants", _FEW)

_OPTIONS = (
    *("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="),
    *("-m", "not slow", "--hypothesis-profile=mutants", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-W", "ignore::pytest.PytestUnknownMarkWarning"),  # that of pytest-xdist
)

Outcome = tuple[str, float]  # the test that failed, "" if none did; CPU seconds
Run = Callable[[str, int], Outcome]


class Tests:
    """The tests of one file of the package, collected once."""

    def __init__(self, path: Path, tests: Sequence[str], left_out: Sequence[str]) -> None:
        self._path = path
        self._tests = [*tests, *(f"--deselect={test}" for test in left_out)]

    def imported(self, source: str, seconds: int) -> Outcome:
        """Import a mutant and run the tests until one fails."""

        def work() -> str:
            sys.meta_path.insert(0, _Mutated(self._path, source))
            return self._main(first_failure)

        return _forked(work, seconds)

    def swapped(self, attempt: Callable[[Run], str]) -> str:
        """Collect the tests, and return what `attempt` returns as JSON.

        It is given a function that puts a mutant in place and runs the tests until one fails.
        """

        def loop(session: pytest.Session) -> str:
            def outcome(source: str, seconds: int) -> Outcome:
                failed, used = _forked(lambda: _swap(self._path, source) or first_failure(session), seconds)
                # What killed one mutant is likely to kill the next one.
                session.items.sort(key=lambda item: item.nodeid != failed)
                return failed, used

            return attempt(outcome)

        answer, _ = _forked(lambda: self._main(loop))
        if not answer.startswith("{"):
            sys.exit(f"{answer} failed, before any mutant of {self._path}")
        return answer

    def _main(self, loop: Callable[[pytest.Session], str]) -> str:
        plugin = _Loop(loop)
        pytest.main([*self._tests, *_OPTIONS], plugins=[plugin])
        return plugin.failure


class _Loop:
    """A plugin that replaces the loop over the tests; if it is never reached, that is a failure."""

    def __init__(self, loop: Callable[[pytest.Session], str]) -> None:
        self._loop, self.failure = loop, "the collection"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the loop instead of pytest's own."""
        if not session.testsfailed:
            self.failure = self._loop(session)
        return True


def first_failure(session: pytest.Session) -> str:
    """The first test that fails; "" if none does."""
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return ""


def _forked(work: Callable[[], str], seconds: int | None = None) -> Outcome:
    """What `work` returns in a process of its own, or how it died; silent and with bounds if it may take `seconds`."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if not child:
            _leave(work, seconds, answer.fileno())
        _, status, usage = os.wait4(child, 0)
        answer.seek(0)
        text = answer.read().decode()
    if not os.WIFEXITED(status):
        text = f"signal {os.WTERMSIG(status)}"
    return text, usage.ru_utime + usage.ru_stime


def _leave(work: Callable[[], str], seconds: int | None, answer: int) -> None:
    text = "an exception outside of the tests"
    try:
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            signal.alarm(30 * seconds)  # one that sleeps
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        text = work()
    finally:
        os.write(answer, text.encode())
        os._exit(0)


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads one module from a text."""

    def __init__(self, path: Path, source: str) -> None:
        self._path, self._source = path, source

    def find_spec(self, fullname: str, path: object, target: object = None) -> object:  # noqa: ARG002
        """Return how to load the module, if it is the one."""
        if fullname != _module(self._path):
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self._path))

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        """Return the text."""
        return self._source


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[path.parts.index("dpselect") :])


def _swap(path: Path, source: str) -> str:
    """Give the functions of an imported module the code of a mutant."""
    module = importlib.import_module(_module(path))
    codes = {code.co_qualname: code for code in _codes(compile(source, str(path), "exec"))}
    for function in _functions(module):
        if function.__code__.co_qualname in codes:  # not so what Python itself adds to an Enum
            function.__code__ = codes[function.__code__.co_qualname]
    for name, loaded in sys.modules.items():
        if name.startswith("dpselect"):
            for value in vars(loaded).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
    return ""


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """The functions and methods that are defined in a module."""
    owned = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    kinds = [value for value in owned if isinstance(value, type)]
    for member in [*owned, *(member for kind in kinds for member in vars(kind).values())]:
        for attribute in ("fget", "func", "__wrapped__", "__func__"):  # property, cached_property, cache, classmethod
            member = getattr(member, attribute, None) or member  # noqa: PLW2901
        if isinstance(member, types.FunctionType) and member.__code__.co_filename == module.__file__:
            yield member
