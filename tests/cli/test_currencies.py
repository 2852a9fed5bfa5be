"""Budgets and prices in every currency, on the command line."""

import json

from dpselect import Ledger


def test_the_command_line_speaks_every_currency(run, tmp_path):
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
    for price in ((), ("--rho", "1", "--epsilon", "1")):
        refused = run(*mode, *price)
        assert (refused.code, refused.out) == (2, "")
        assert "give exactly one of epsilon and rho" in refused.err
    refused = run(*mode, "--rho", "1", "--ledger", tmp_path / "new.ledger", "--budget", "zcdp:much")
    assert (refused.code, refused.out) == (2, "")
    assert "rho must be a number" in refused.err
