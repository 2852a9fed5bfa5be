import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip
from dpselect.ledger import Charge, Receipt
from tests.cli.conftest import Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hospital.ledger"
    ledger = Ledger(path, budget="1", dataset="visits [red]2024")
    mode = {"question": "mode", "column": "diagnosis", "candidates": "icd.csv"}
    entry = ledger.charge(Charge.of(PermuteAndFlip("0.1", monotonic=True), mode), request_id="r-1")
    ledger.store_answer(entry.id, "the stored answer")
    ledger.charge(Charge.of(ExponentialMechanism("1/30"), {"question": "top_k", "k": 3}, count=3))
    ledger.spend(0.1, "in [red]plain[/red] words \x1b[31m")
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def test_show_prints_texts_as_they_are_and_rounds_what_was_spent_up(run: Run, file: Path) -> None:
    """The float 0.1 is above 1/10."""
    shown = run("ledger", "show", file).out
    assert "budget epsilon 1, spent epsilon 0.300001, left epsilon 0.699999" in words(shown)
    assert "Data set: visits [red]2024" in words(shown)
    assert f"verified, 3 entries, head {Ledger(file).receipt().head}" in words(shown)
    assert "in [red]plain[/red] words" in shown
    assert "\x1b" not in shown
    assert "the stored answer" not in shown + run("ledger", "export", file).out


def test_verify_and_receipts(run: Run, file: Path, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    receipt.write_text(run("ledger", "receipt", file).out)
    assert Receipt.from_json(receipt.read_text()) == Ledger(file).receipt()
    Ledger(file).spend("0.1", "later")
    result = run("ledger", "verify", file, "--receipt", receipt)
    assert result.code == 0
    assert "all entries up to entry 3, the one of the receipt, are there" in words(result.out)
    for command in (("verify", file, "--receipt", receipt), ("show", file)):
        content = json.loads(run("ledger", *command, "--json").out)
        assert Receipt.from_json(json.dumps(content["receipt"])) == Ledger(file).receipt()


def tampered(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("command", ["show", "verify", "export", "receipt"])
def test_a_changed_ledger_is_one_line_and_code_four(run: Run, file: Path, command: str) -> None:
    tampered(file, "UPDATE entries SET each = '1/100' WHERE id = 2")
    result = run("ledger", command, file)
    assert (result.code, result.out) == (4, "")
    assert "entry 2 was changed, inserted or moved" in result.err
    assert len(result.err.splitlines()) == 1


def test_a_cut_tail_is_found_with_the_receipt(run: Run, file: Path, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    receipt.write_text(Ledger(file).receipt().to_json())
    tampered(file, "DELETE FROM entries WHERE id = 3")
    assert run("ledger", "verify", file).code == 0
    result = run("ledger", "verify", file, "--receipt", receipt)
    assert (result.code, result.out) == (4, "")
    assert "its end was cut off, or it is an old copy" in result.err


def test_without_dp_accounting_only_delta_fails(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    assert run("ledger", "show", file).code == 0
    result = run("ledger", "show", file, "--delta", "1e-6")
    assert result.code == 5
    assert " -m pip install dp-accounting\n" in result.err


def test_show_says_whom_the_entries_protect(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mixed.ledger"
    ledger = Ledger(file, budget="1")
    mode = {"question": "mode", "column": "diagnosis", "candidates": 6, "candidates_sha256": "4baff15b" * 8}
    ledger.charge(Charge.of(PermuteAndFlip("0.1"), {"question": "by hand"}))  # states no unit
    ledger.charge(Charge.of(PermuteAndFlip("0.1"), {**mode, "person": "patient"}))
    shown = words(run("ledger", "show", file).out)
    assert "mode column=diagnosis person=patient candidates=6" in shown
    assert "4baff15b" not in shown
    assert "The entries protect different units" not in shown
    ledger.charge(Charge.of(PermuteAndFlip("0.1"), {**mode, "person": None}))
    told = words(run("ledger", "show", file).out)
    assert "The entries protect different units: people (patient), single rows." in told
    ledger.charge(Charge.of(PermuteAndFlip("0.1"), {**mode, "person": "patient", "neighbours": "replace"}))
    told = words(run("ledger", "show", file).out)
    assert "people (patient), single rows, people (patient) by replacement. The sum" in told
