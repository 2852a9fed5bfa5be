"""One server for the tests of its answers."""

import pytest

from tests.explore.serving import served


@pytest.fixture(scope="session")
def explorer():
    with served() as running:
        yield running


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(explorer, downloads, tmp_path_factory):
    """One Chromium for all tests that look at the page."""
    browsing = pytest.importorskip("tests.explore.browsing", reason="selenium is not installed", exc_type=ImportError)
    try:
        driver = browsing.start_browser(tmp_path_factory.mktemp("profile"), downloads)
    except browsing.NoBrowser as missing:
        pytest.skip(str(missing))
    yield browsing.Page(driver, explorer.address)
    driver.quit()
