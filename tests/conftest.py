"""Hypothesis without deadlines, because speed is measured in `make bench`; and which tests share a process."""

import re
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("dpselect", deadline=None)
settings.load_profile("dpselect")

# What is expensive to start, by the names of the tests that share it. (pytest-xdist 3.8 does not see its own
# `xdist_group` marks with pytest 9.2.)
SHARED = {
    "spark": re.compile(r"tests/tables/test_spark|\[spark|docs/scale\.md"),
    "browser": re.compile(r"tests/explore/test_(page|accessibility)"),
    "site": re.compile(r"tests/test_site"),
}


def shared(name: str) -> str | None:
    """What a test shares with others."""
    return next((what for what, names in SHARED.items() if names.search(name)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something run one after another: they come first, beside all others."""
    items.sort(key=lambda item: shared(item.nodeid) is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share something run in one process; all others where there is room."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - where it is installed

    class Sharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared(nodeid) or nodeid

    return Sharing(config, log) if config.getvalue("dist") == "loadgroup" else None
