"""With `--dist loadgroup`, the tests of a group run in one process: see tests/conftest.py."""

import pytest


@pytest.mark.xdist_group("alone")
def test_the_scheduler_knows_the_group(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("needs --dist loadgroup")
    assert request.node.nodeid.endswith("::test_the_scheduler_knows_the_group@alone")
