"""What every engine must do for a top-k: keep some values of a person, answer by every method, charge for it."""

import pytest

from dpselect import Ledger, approximate, pure, zcdp
from tests import spark
from tests.tables.looking import opened

CLEAR = {
    "set": {"method": "set", "max_values": 1},
    "margin": {"method": "margin"},
    "interval": {"k": (1, 3), "method": "margin"},
    "one-shot": {"method": "one-shot"},
    "peel": {"method": "peel"},
    "noisy-counts": {"method": "noisy-counts", "max_values": 1},
    "auto": {},
    "auto with a limit": {"max_values": 1},
    "auto in order": {"ordered": True},
    "by the exponential mechanism": {"mechanism": "exponential"},
    "set by the exponential mechanism": {"method": "set", "max_values": 2, "mechanism": "exponential"},
    "margin by the exponential mechanism": {"method": "margin", "mechanism": "exponential"},
    "peeled by the exponential mechanism": {"method": "peel", "mechanism": "exponential"},
}
ORDERED = ("one-shot", "peel", "noisy-counts", "auto in order", "peeled by the exponential mechanism")
QUICK_ON_SPARK = ("set", "noisy-counts")
CASES = [
    *(("duckdb", name) for name in CLEAR),
    *(
        pytest.param("spark", name, marks=[*spark.MARKS, *([] if name in QUICK_ON_SPARK else [pytest.mark.slow])])
        for name in CLEAR
    ),
]


def clear_rows():
    """Two groups in which the two best are far ahead, in another order."""
    p, q = [5] * 300 + [1] * 200 + [9] * 2, [9] * 300 + [5] * 200 + [1] * 2
    return {"who": range(len(p + q)), "g": ["p"] * len(p) + ["q"] * len(q), "x": p + q}


@pytest.mark.parametrize(("engine", "name"), CASES, indirect=["engine"])
def test_clear_questions_have_clear_answers(engine, name):
    """For all people, in groups, and with candidates of a frame, which are listed in ascending order."""
    asked = {"k": 2, "epsilon": 30, **CLEAR[name]}
    table = opened(clear_rows(), engine, person="who")
    groups = table.group_by("g", groups=["q", "p"])
    lists = [[1, 2, 9, 5, 3]]
    if engine == "spark":
        lists.append(spark.session().createDataFrame([(x,) for x in (9, 3, 2, 1, 5)], "x bigint"))
    for candidates in lists:
        listed = candidates if isinstance(candidates, list) else [1, 2, 3, 5, 9]
        best = {"q": [9, 5], "p": [5, 1]}
        if name not in ORDERED:
            best = {group: sorted(own, key=listed.index) for group, own in best.items()}
        answer = groups.top_k("x", candidates=candidates, **asked)
        assert answer.value == best
        assert list(answer.value) == ["q", "p"]
        assert answer.epsilon == 30
    together = table.top_k("x", candidates=lists[-1], **asked).value
    if name in ORDERED:
        assert together == [5, 9]
    else:  # 500, 302 and 202 people: the cut is clearest after three
        assert set(together) == ({1, 5, 9} if name == "interval" else {5, 9})


FREE = [{}, {"method": "set", "max_values": 1}, {"method": "margin"}, {"max_values": 2}, {"mechanism": "exponential"}]


@pytest.mark.parametrize("choices", FREE, ids=str)
def test_all_candidates_are_free(engine, choices, tmp_path, monkeypatch):
    """In all three currencies nothing is charged, and nothing is read."""
    opened({"x": [1]}, engine)  # what a first table checks
    for number, budget in enumerate([pure("0.001"), zcdp("1e-9"), approximate("0.001", "1e-9")]):
        ledger = Ledger(tmp_path / f"{number}.ledger", budget=budget)
        table = opened({"who": [1], "g": ["p"], "x": [1]}, engine, person="who", ledger=ledger)
        with monkeypatch.context() as context:
            for name in ("counts", "scores", "content", "chosen"):
                context.setattr(type(table._engine), name, None, raising=False)
            answer = table.top_k("x", 3, candidates=[3, 1, 2], epsilon=1, request_id="r", **choices)
            groups = table.group_by("g", groups=["p", "q"]).top_k("x", 3, candidates=[3, 1, 2], rho=1, **choices)
        assert answer.value == [3, 1, 2]
        assert groups.value == {"p": [3, 1, 2], "q": [3, 1, 2]}
        assert groups.value["p"] is not groups.value["q"]
        assert (answer.epsilon, answer.guarantee.epsilon, answer.guarantee.zcdp) == (0, 0, 0)
        assert (answer.mechanism, answer.ledger_id, answer.receipt, answer.charged) == ("none", None, None, None)
        assert ledger.entries() == []


@pytest.mark.parametrize("choices", [{"ordered": True}, {"method": "one-shot"}, {"method": "peel"}], ids=str)
def test_an_order_of_all_candidates_is_charged(choices, tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=1)
    table = opened({"x": [1] * 60 + [2] * 30}, ledger=ledger)
    answer = table.top_k("x", 3, candidates=[3, 1, 2], epsilon=1, **choices)
    assert sorted(answer.value) == [1, 2, 3]
    assert answer.epsilon == ledger.spent == 1


BUDGETS = {"pure": pure(1), "zcdp": zcdp(1), "approximate": approximate(1, "1e-6", share=0)}


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
@pytest.mark.parametrize("ordered", [False, True])
def test_auto_takes_a_method_that_the_mechanism_has(mechanism, budget, ordered, tmp_path):
    """Whatever the limit; Laplace noise would be another mechanism."""
    table = opened(
        {"who": [1, 1, 2, 3, 4], "x": [1, 2, 1, 3, 1]}, person="who", ledger=tmp_path / "ledger", budget=budget
    )
    price = {"epsilon": "0.01"} if budget.rho is None else {"rho": "0.001"}
    for max_values in (None, 1, 2, 6):
        answer = table.top_k(
            "x", 4, candidates=range(9), mechanism=mechanism, ordered=ordered, max_values=max_values, **price
        )
        assert answer.mechanism == mechanism or (mechanism, answer.mechanism) == ("permute-and-flip", "one-shot")
