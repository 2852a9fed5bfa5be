"""Hypothesis without deadlines: speed is measured in `make bench`, never in a test. Groups of tests stay together.

Tests of exactness run with each kernel.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from dpselect.selection import kernel
from tests.kernels import needs_kernel

settings.register_profile("dpselect", deadline=None)
settings.load_profile("dpselect")


# Where there is a compiled kernel, `make test` tests that one, and `make test-slow` both.
_PLAIN = pytest.param("plain", marks=[pytest.mark.slow] if kernel.compiled else [])


@pytest.fixture(scope="module", params=[_PLAIN, pytest.param("compiled", marks=needs_kernel)])
def each_kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways through the passes over many numbers: NumPy, and the compiled kernel where there is one."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            patch.setattr(kernel, "compiled", None)
        yield request.param


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse names with an address in memory, which differ between the processes of pytest-xdist."""
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(f"the name of {item.nodeid} has an address in memory: give the parameters other ids")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell the scheduler of pytest-xdist the group of each test, so that one Java machine and one database are enough.

    pytest-xdist 3.8 adds the group to `_nodeid`, which pytest 9.2 does not read any more, and so loses it silently:
    https://github.com/pytest-dev/pytest-xdist/issues/1386. With any other versions this does nothing.
    """
    for item in items:
        if getattr(item, "_nodeid", item.nodeid) != item.nodeid:
            item._id = type(item.id).parse(item._nodeid)
