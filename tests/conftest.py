"""Hypothesis without deadlines: speed is measured in `make bench`, never in a test."""

import pytest
from hypothesis import settings

settings.register_profile("dpselect", deadline=None)
settings.load_profile("dpselect")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a browser or a Spark session run one after another: they come first, beside all others."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
