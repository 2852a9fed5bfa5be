"""What tests of tables share: the engines, and a ledger."""

import pytest

from dpselect import Ledger
from tests import spark


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=[*spark.MARKS, pytest.mark.slow])])
def engine(request):
    """The name of an engine. Spark is for `make test-slow`; a test that needs it always has marks of its own."""
    if request.param == "spark":
        spark.session()
    return request.param


@pytest.fixture
def ledger(tmp_path):
    """A new ledger whose budget suffices."""
    return Ledger(tmp_path / "ledger", budget=100)
