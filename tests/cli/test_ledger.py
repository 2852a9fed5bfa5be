import csv
import io
import json
import sqlite3
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, PrivacyUnit
from dpselect.accounting.totals import total
from dpselect.ledger import Charge, Receipt
from tests.cli.conftest import Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hospital.ledger"
    ledger = Ledger(path, budget="1")
    mode = {"question": "mode", "column": "diagnosis", "candidates": "icd.csv"}
    entry = ledger.charge(Charge.of(PermuteAndFlip("0.1", monotonic=True), mode), request_id="r-1")
    ledger.store_answer(entry.id, "the stored answer")
    ledger.charge(Charge.of(ExponentialMechanism("1/30"), {"question": "top_k", "k": 3}, count=3))
    ledger.spend(0.1, "in [red]plain[/red] words \x1b[31m")
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def test_show_tells_the_budget_the_entries_and_the_total(run: Run, file: Path) -> None:
    result = run("ledger", "show", file)
    assert (result.code, result.err) == (0, "")
    text = words(result.out)
    # The float 0.1 is above 1/10. What is spent is rounded up, and what is left is rounded down.
    assert "budget epsilon 1, spent epsilon 0.300001, left epsilon 0.699999" in text
    assert "mode column=diagnosis candidates=icd.csv monotonic=true sensitivity=1 permute-and-flip epsilon 0.1" in text
    assert "top_k k=3 monotonic=false sensitivity=1 exponential epsilon 0.1 3" in text
    assert "in [red]plain[/red] words" in text
    assert "pure epsilon 0.100001 1" in text
    assert "\x1b" not in result.out
    known = total(Ledger(file))
    assert "Guaranteed: 0.300001-DP (pure), even if questions, their costs or their number depended on earlier" in text
    assert f"If these questions, their costs and their number were fixed in advance: {known.if_fixed}" in text
    assert f"verified, 3 entries, head {Ledger(file).receipt().head}" in text
    assert "the stored answer" not in result.out


def test_show_as_json_has_exact_numbers(run: Run, file: Path) -> None:
    result = run("ledger", "show", file, "--json", "--delta", "1e-6")
    assert (result.code, result.err) == (0, "")
    content = json.loads(result.out)
    ledger = Ledger(file)
    assert content["budget"] == {"currency": "pure", "epsilon": "1"}
    amounts = [Fraction(content[name]["epsilon"]) for name in ("budget", "spent", "remaining")]
    assert amounts == [1, ledger.spent, ledger.remaining]
    assert content["entries"] == [entry.to_dict() for entry in ledger.entries()]
    assert sum(Fraction(entry["epsilon"]) for entry in content["entries"]) == ledger.spent
    known = total(ledger, 1e-6)
    assert known.approximate is not None
    assert content["total"]["zcdp"] == known.zcdp
    assert content["total"]["approximate"] == vars(known.approximate)
    assert content["total"]["only_if_fixed_beforehand"] == ["zcdp", "approximate"]
    assert Receipt.from_json(json.dumps(content["receipt"])) == ledger.receipt()
    assert json.loads(run("ledger", "show", file, "--json").out)["total"]["approximate"] is None


def test_show_with_delta_and_without_entries(run: Run, file: Path, tmp_path: Path) -> None:
    text = words(run("ledger", "show", file, "--delta", "1e-6").out)
    known = total(Ledger(file), 1e-6)
    assert known.approximate is not None
    assert f"were fixed in advance: {known.if_fixed}" in text
    assert f"is computed by: {known.approximate.method}." in text
    Ledger(tmp_path / "new.ledger", budget="0.5")
    text = words(run("ledger", "show", tmp_path / "new.ledger", "--delta", "0.01").out)
    assert "budget epsilon 0.5, spent epsilon 0, left epsilon 0.5" in text
    assert "were fixed in advance: 0-zCDP, (0, 0.01)-DP" in text


def test_verify_and_receipts(run: Run, file: Path, tmp_path: Path) -> None:
    result = run("ledger", "verify", file)
    assert result.code == 0
    assert "3 entries, none changed, removed, inserted or reordered" in words(result.out)
    assert "Only --receipt can detect entries cut off" in words(result.out)
    receipt = tmp_path / "receipt.json"
    receipt.write_text(run("ledger", "receipt", file).out)
    assert Receipt.from_json(receipt.read_text()) == Ledger(file).receipt()
    Ledger(file).spend("0.1", "later")
    result = run("ledger", "verify", file, "--receipt", receipt)
    assert result.code == 0
    assert "all entries up to entry 3, the one of the receipt, are there" in words(result.out)
    content = json.loads(run("ledger", "verify", file, "--receipt", receipt, "--json").out)
    assert content["entries"] == 4
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


def test_exports(run: Run, file: Path) -> None:
    entries, lines = Ledger(file).entries(), run("ledger", "export", file).out
    assert [json.loads(line) for line in lines.splitlines()] == [entry.to_dict() for entry in entries]
    assert "the stored answer" not in lines
    result = run("ledger", "export", file, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.out, newline="")))
    assert [json.loads(row["what"]) for row in rows] == [entry.what for entry in entries]
    assert [Fraction(row["epsilon"]) for row in rows] == [entry.epsilon for entry in entries]
    assert [row["request_id"] for row in rows] == ["r-1", "", ""]
    assert [row["head"] for row in rows] == [entry.head for entry in entries]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", " =", "'=", '"='])
def test_a_csv_export_has_no_formulas(run: Run, tmp_path: Path, sign: str) -> None:
    """In any column that somebody can choose the text of; JSON has the texts as they are."""
    file, formula = tmp_path / "a.ledger", f"{sign}1+1|cmd"
    ledger = Ledger(file, budget=1)
    ledger.charge(Charge(formula, "0.1"), request_id=formula)
    ledger.charge(Charge({formula: formula}, "0.1"))
    rows = list(csv.reader(io.StringIO(run("ledger", "export", file, "--format", "csv").out, newline="")))
    for row in rows:
        for cell in row:
            assert cell.startswith("'") or not cell.strip("'\" ").startswith(("=", "+", "-", "@"))
    request = rows[0].index("request_id")
    assert [row[request] for row in rows[1:]] == [f"'{formula}", ""]
    lines = [json.loads(line) for line in run("ledger", "export", file).out.splitlines()]
    assert [line["request_id"] for line in lines] == [formula, None]
    assert [line["what"] for line in lines] == [formula, {formula: formula}]


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


def test_show_says_what_the_budget_protects(run: Run, tmp_path: Path) -> None:
    named, unnamed = tmp_path / "named.ledger", tmp_path / "unnamed.ledger"
    Ledger(named, budget=1, unit=PrivacyUnit("patient", "replace"), dataset="visits [red]2024")
    shown = words(run("ledger", "show", named).out)
    assert "Data set: visits [red]2024 Protects: one person (person='patient', neighbours='replace')" in shown
    content = json.loads(run("ledger", "show", named, "--json").out)
    assert content["dataset"] == "visits [red]2024"
    assert content["unit"] == {"person": "patient", "neighbours": "replace"}
    Ledger(unnamed, budget=1)
    shown = words(run("ledger", "show", unnamed).out)
    assert "Protects: not stated yet" in shown
    assert "Data set" not in shown
    content = json.loads(run("ledger", "show", unnamed, "--json").out)
    assert (content["dataset"], content["unit"]) == (None, None)


def test_every_budget_type_is_charged_and_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("person,code\n1,a\n2,b\n3,a\n")
    mode = ("mode", file, "--column", "code", "--candidates", "a,b", "--person", "person", "--json")
    for budget, price, mechanism in (
        ("zcdp:0.5", ("--rho", "0.1"), "exponential"),
        ("1,1e-6", ("--rho", "0.01"), "exponential"),
        ("2", ("--epsilon", "1"), "permute-and-flip"),
        ("2,cap:1", ("--epsilon", "1", "--mechanism", "exponential"), "exponential"),
    ):
        ledger = tmp_path / f"{budget.replace(':', '-')}.ledger"
        content = json.loads(run(*mode, *price, "--ledger", ledger, "--budget", budget).out)
        assert content["mechanism"] == mechanism
        assert Ledger(ledger).spent.to_dict() == content["charged"]
        shown = run("ledger", "show", ledger).out
        assert Ledger(ledger).budget.words.split()[0] in shown
        assert json.loads(run("ledger", "show", ledger, "--json").out)["budget"] == Ledger(ledger).budget.to_dict()
