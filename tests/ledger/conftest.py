from pathlib import Path

import pytest

from dpselect import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hospital.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path, budget="1")
