import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect._shown import DOWN, NEAREST, shown
from dpselect.analysis import epsilon_for, error_bounds, error_quantile, expected_error, worst_case_error
from dpselect.analysis.plan import EqualCost, epsilon_promising, equal_cost, promise
from dpselect.errors import InvalidValue
from dpselect.ledger import Charge
from dpselect.ledger.accounting import total
from dpselect.mechanisms.record import SelectionRecord
from tests.cli.conftest import Run

PRIVATE = "48151623"
MECHANISMS: dict[str, type[SelectionRecord]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
    "noisy-max": ReportNoisyMax,
}
SCORES = [310, 250, 120.5, 120, 7]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "public.csv"
    path.write_text("name,visits\n" + "".join(f"label{i},{score}\n" for i, score in enumerate(SCORES)))
    return path


def words(text: str) -> str:
    return " ".join(text.split())


def tables(text: str) -> list[dict[str, list[str]]]:
    """The cells of each table by the mechanism's name."""
    found: list[dict[str, list[str]]] = []
    for line in text.splitlines():
        cells = line.replace("*", "").split()
        if cells and cells[0] in MECHANISMS and line.startswith(" "):
            if cells[0] == "permute-and-flip":
                found.append({})
            found[-1][cells[0]] = cells[1:]
    return found


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def guaranteed(mechanism: SelectionRecord, n: int) -> float:
    """The smallest expected error that the analysis proves for all scores."""
    if isinstance(mechanism, ReportNoisyMax):
        return error_bounds(mechanism, n).upper
    return worst_case_error(mechanism, n).error


def is_rounded_up(cell: str, exact: float) -> bool:
    return exact * (1 - 1e-10) <= number(cell) <= exact * 1.0011


def plan(run: Run, *options: object) -> dict[str, Any]:
    result = run("plan", *options, "--json")
    assert (result.code, result.err) == (0, "")
    content: dict[str, Any] = json.loads(result.out)
    return content


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert [row["mechanism"] for row in rows] == list(MECHANISMS)
    return {row["mechanism"]: row for row in rows}


@pytest.mark.parametrize(
    ("n", "epsilon", "sensitivity", "monotonic"),
    [(1000, "0.5", "1", False), (2, "3", "7.5", True), ("1e6", "1/300", "1/3", False)],
)
def test_an_epsilon_gives_the_guaranteed_errors(
    run: Run, n: int | str, epsilon: str, sensitivity: str, monotonic: bool
) -> None:
    options = ("--candidates", n, "--epsilon", epsilon, "--sensitivity", sensitivity, *["--monotonic"] * monotonic)
    result = run("plan", *options)
    assert (result.code, result.err) == (0, "")
    [table] = tables(result.out)
    assert list(table) == list(MECHANISMS)
    size = int(float(n))
    for name, (shown_epsilon, average, within_95, within_99) in table.items():
        mechanism = MECHANISMS[name](epsilon, sensitivity, monotonic)
        assert number(shown_epsilon) == pytest.approx(float(mechanism.epsilon), rel=1e-5)
        assert is_rounded_up(average, guaranteed(mechanism, size))
        tail = error_bounds(mechanism, size).tail
        assert tail(number(within_95)) <= 0.05 < tail(number(within_95) * 0.9985)
        assert tail(number(within_99)) <= 0.01 < tail(number(within_99) * 0.9985)


def test_the_plan_says_what_its_numbers_mean(run: Run) -> None:
    text = words(run("plan", "--candidates", "1000", "--epsilon", "0.5").out)
    average = shown(worst_case_error(PermuteAndFlip("0.5"), 1000).error)
    assert average == "17.07"
    assert "with epsilon 0.5 and 1,000 candidates" in text
    assert f"on average at most {average} below the best, whatever the data" in text
    assert "95 of 100 choices are less than 39.62 below it, 99 of 100 less than 46.06" in text
    assert "For one selection permute-and-flip is the better mechanism" in text
    assert "never worse than the exponential mechanism" in text
    attained = shown(worst_case_error(ReportNoisyMax("0.5"), 1000).error, DOWN)
    assert f"the exact worst case of noisy-max is not known. On some data its average is {attained}." in text
    assert "figures computed from private scores are themselves private" in text
    assert "public or synthetic" in text
    assert "zCDP" not in text


def test_sensitivity_and_monotonicity_are_named(run: Run) -> None:
    options = ("--candidates", "10", "--epsilon", "1", "--sensitivity", "1/3")
    assert "sensitivity 1/3:" in words(run("plan", *options).out)
    assert "sensitivity 1/3, monotonic:" in words(run("plan", *options, "--monotonic").out)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("n", "error", "sensitivity"), [(1000, "20", "1"), (3, "0.01", "5")])
def test_an_error_gives_the_epsilon_that_guarantees_it(
    run: Run, n: int, error: str, sensitivity: str, monotonic: bool
) -> None:
    options = ("--candidates", n, "--error", error, "--sensitivity", sensitivity, *["--monotonic"] * monotonic)
    result = run("plan", *options)
    [table] = tables(result.out)
    for name, (epsilon, average, within_95, _) in table.items():
        mechanism = MECHANISMS[name](epsilon.replace(",", ""), sensitivity, monotonic)
        assert guaranteed(mechanism, n) <= float(error) < guaranteed(mechanism, n) * 1.0011
        assert is_rounded_up(average, guaranteed(mechanism, n))
        assert error_bounds(mechanism, n).tail(number(within_95)) <= 0.05
    best = table["permute-and-flip"][0]
    assert f"epsilon {best} guarantees that the one of {n:,} candidates" in words(result.out)
    assert f"on average at most {error} below the best, whatever the data" in words(result.out)


def test_the_epsilon_scales_as_one_over_the_error() -> None:
    """The formula of the command's contract: the worst case at epsilon one, divided by the error."""
    for kind in MECHANISMS.values():
        needed = float(epsilon_promising(kind, 50, error="0.3"))
        assert needed == pytest.approx(guaranteed(kind(1), 50) / 0.3, rel=1.1e-3)
        assert needed >= guaranteed(kind(1), 50) / 0.3


def test_json_has_the_figures_unrounded(run: Run) -> None:
    content = plan(run, "--candidates", "1000", "--epsilon", "1/3", "--sensitivity", "0.5", "--selections", "4")
    assert (content["candidates"], content["selections"]) == (1000, 4)
    assert (content["epsilon"], content["error"], content["sensitivity"]) == ("1/3", None, "1/2")
    assert (content["monotonic"], content["better_for_one"]) == (False, "permute-and-flip")
    assert content["proxy"] is None
    for name, row in by_name(content["mechanisms"]).items():
        mechanism = MECHANISMS[name]("1/3", "0.5")
        assert row["epsilon"] == pytest.approx(1 / 3, rel=1e-15)
        assert row["expected_error_at_most"] == pytest.approx(guaranteed(mechanism, 1000), rel=1e-9)
        assert row["expected_error_attained"] == pytest.approx(worst_case_error(mechanism, 1000).error, rel=1e-9)
        tail = error_bounds(mechanism, 1000).tail
        assert [tail(row["error_95"]), tail(row["error_99"])] == pytest.approx([0.05, 0.01], rel=1e-9)
        assert row["total_epsilon"] == pytest.approx(4 / 3, rel=1e-15)
        assert row["total_zcdp"] == pytest.approx(4 * mechanism.guarantee.zcdp, rel=1e-15)


def test_json_of_an_error(run: Run) -> None:
    content = plan(run, "--candidates", "30", "--error", "2.5", "--monotonic")
    assert (content["epsilon"], content["error"], content["monotonic"]) == (None, "5/2", True)
    assert content["better_for_many"] is None
    for name, row in by_name(content["mechanisms"]).items():
        average = guaranteed(MECHANISMS[name](row["epsilon"], monotonic=True), 30)
        assert 2.5 / 1.0011 < average <= 2.5


def test_text_and_json_tell_the_same(run: Run) -> None:
    options = ("--candidates", "200", "--error", "3", "--selections", "20")
    [table] = tables(run("plan", *options).out)
    for name, row in by_name(plan(run, *options)["mechanisms"]).items():
        keys = ("epsilon", "expected_error_at_most", "error_95", "error_99", "total_epsilon", "total_zcdp")
        assert len(table[name]) == len(keys)
        for cell, key in zip(table[name], keys, strict=True):
            assert is_rounded_up(cell, row[key])


def costs_the_same(epsilon: float, rho: float) -> bool:
    return PermuteAndFlip(epsilon).guarantee.zcdp <= rho < PermuteAndFlip(epsilon * (1 + 1e-6)).guarantee.zcdp


@pytest.mark.parametrize(
    ("epsilon", "n", "better"),
    [("0.5", 1000, "exponential"), ("0.001", 2, "exponential"), ("9", 10, "permute-and-flip")],
)
def test_many_selections_are_compared_at_the_same_zcdp(run: Run, epsilon: str, n: int, better: str) -> None:
    options = ("--candidates", n, "--epsilon", epsilon, "--selections", "20")
    many = plan(run, *options)["better_for_many"]
    rho = ExponentialMechanism(epsilon).guarantee.zcdp
    assert (many["pure"], many["zcdp"]) == ("permute-and-flip", better)
    assert many["at_total_zcdp"] == pytest.approx(20 * rho, rel=1e-12)
    own, other = many["exponential"], many["permute-and-flip"]
    assert own["epsilon"] == float(epsilon)
    assert costs_the_same(other["epsilon"], rho)
    errors = [own["expected_error_at_most"], other["expected_error_at_most"]]
    mechanisms = (ExponentialMechanism(epsilon), PermuteAndFlip(other["epsilon"]))
    assert errors == pytest.approx([worst_case_error(m, n).error for m in mechanisms], rel=1e-9)
    assert (errors[0] < errors[1]) == (better == "exponential")
    text = words(run("plan", *options).out)
    assert "share a budget of pure epsilon permute-and-flip is always the better one" in text
    assert f"share a budget of zCDP the better one is {better}:" in text
    assert f"20 exponential selections at epsilon {epsilon} cost rho {shown(20 * rho)}" in text
    assert f"on average at most {shown(errors[0])} below the best. For the same rho" in text
    assert f"has epsilon {shown(other['epsilon'], DOWN)} each, and is on average at most {shown(errors[1])}" in text


def test_at_small_epsilon_permute_and_flip_has_half_of_it() -> None:
    equal = equal_cost(ExponentialMechanism("1e-4", "2", monotonic=True), 100)
    mechanism = equal.permute_and_flip.mechanism
    assert float(mechanism.epsilon) == pytest.approx(0.5e-4, rel=1e-4)
    assert (mechanism.sensitivity, mechanism.monotonic) == (2, True)


def test_selections_of_a_wanted_error_are_compared_from_the_epsilon_that_it_needs(run: Run) -> None:
    content = plan(run, "--candidates", "1000", "--error", "20", "--selections", "20")
    own = content["better_for_many"]["exponential"]
    assert own["epsilon"] == by_name(content["mechanisms"])["exponential"]["epsilon"]
    assert own["expected_error_at_most"] <= 20


def test_the_better_one_changes_once_with_epsilon() -> None:
    """Under zCDP the exponential mechanism is better for small epsilons and permute-and-flip for large ones."""

    def is_exponential(equal: EqualCost) -> bool:
        return equal.better is equal.exponential

    choices = [is_exponential(equal_cost(ExponentialMechanism(e / 4), 100)) for e in range(1, 41)]
    assert choices[0]
    assert not choices[-1]
    assert sum(a != b for a, b in pairwise(choices)) == 1


@pytest.mark.parametrize(
    ("epsilon", "times", "delta", "better"),
    [("0.1", 50, "1e-6", "exponential"), ("1", 1, "1e-6", "permute-and-flip"), ("2", 3, "1e-9", "permute-and-flip")],
)
def test_delta_compares_at_equal_error_and_at_equal_budget(
    run: Run, epsilon: str, times: int, delta: str, better: str
) -> None:
    options = ("--candidates", "1000", "--epsilon", epsilon, "--selections", times, "--delta", delta, "--monotonic")
    many = plan(run, *options)["approximate"]
    assert (many["delta"], many["better"]) == (float(delta), better)
    rows = {
        "exponential": many["exponential"],
        "error": many["permute-and-flip at equal error"],
        "budget": many["permute-and-flip at equal budget"],
    }
    for name, row in rows.items():
        mechanism = (ExponentialMechanism if name == "exponential" else PermuteAndFlip)(row["epsilon"], monotonic=True)
        assert row["expected_error_at_most"] == pytest.approx(worst_case_error(mechanism, 1000).error, rel=1e-9)
        spent = total([Charge.of(mechanism, {}, count=times)], delta).approximate
        assert spent is not None
        assert row["total_epsilon"] == pytest.approx(spent.epsilon, rel=1e-9)
    assert rows["exponential"]["epsilon"] == float(epsilon)
    assert rows["error"]["expected_error_at_most"] == pytest.approx(rows["exponential"]["expected_error_at_most"])
    assert rows["budget"]["total_epsilon"] <= rows["exponential"]["total_epsilon"]
    more = total([Charge("a", rows["budget"]["epsilon"] * 1.001, "permute-and-flip", times)], delta).approximate
    assert more is not None
    assert more.epsilon > rows["exponential"]["total_epsilon"]
    is_exponential = rows["exponential"]["expected_error_at_most"] < rows["budget"]["expected_error_at_most"]
    assert is_exponential == (better == "exponential")
    assert is_exponential == (rows["exponential"]["total_epsilon"] < rows["error"]["total_epsilon"])


def test_delta_in_words(run: Run) -> None:
    options = ("--candidates", "1000", "--epsilon", "0.1", "--selections", "50", "--delta", "1e-6")
    text, many = words(run("plan", *options).out), plan(run, *options)["approximate"]
    error, budget = many["permute-and-flip at equal error"], many["permute-and-flip at equal budget"]
    assert "50 selections together as (epsilon, 1e-06)-DP" in text
    assert "For a budget of (epsilon, 1e-06) the better one is exponential" in text
    costs = (shown(error["total_epsilon"]), shown(many["exponential"]["total_epsilon"]))
    assert "permute-and-flip costs {} instead of {}".format(*costs) in text
    errors = (shown(budget["expected_error_at_most"]), shown(many["exponential"]["expected_error_at_most"]))
    assert "on average at most {} below the best instead of {}.".format(*errors) in text
    assert "One selection as (epsilon, 0.001)-DP" in words(run("plan", *options[:4], "--delta", "0.001").out)


def test_delta_with_a_wanted_error_starts_from_the_epsilon_that_it_needs(run: Run) -> None:
    content = plan(run, "--candidates", "100", "--error", "20", "--selections", "5", "--delta", "1e-6")
    own = content["approximate"]["exponential"]
    assert own["epsilon"] == by_name(content["mechanisms"])["exponential"]["epsilon"]
    assert own["expected_error_at_most"] <= 20
    assert plan(run, "--candidates", "100", "--error", "20")["approximate"] is None


def test_without_dp_accounting_delta_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    result = run("plan", "--candidates", "10", "--epsilon", "1", "--delta", "1e-6")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: (epsilon, delta) needs dp-accounting: pip install 'dpselect[accounting]'\n"


@pytest.mark.parametrize("options", [(), ("--monotonic", "--sensitivity", "3")])
def test_public_scores_give_exact_figures(run: Run, file: Path, options: tuple[str, ...]) -> None:
    parameters = {"sensitivity": 3, "monotonic": True} if options else {}
    result = run("plan", "--scores", file, "--epsilon", "0.01", *options)
    guaranteed_table, exact = tables(result.out)
    assert f"Choosing one of {len(SCORES)} candidates" in words(result.out)
    assert f"Exactly, on the {len(SCORES)} scores of {file}" in result.out
    for name, (average, within) in exact.items():
        mechanism = MECHANISMS[name]("0.01", **parameters)  # type: ignore[arg-type]
        assert is_rounded_up(average, expected_error(mechanism, SCORES))
        assert number(within) == error_quantile(mechanism, SCORES, 0.95)
        assert number(average) <= number(guaranteed_table[name][1])
    rows = by_name(plan(run, "--scores", file, "--epsilon", "0.01", *options)["proxy"]["mechanisms"])
    for name, row in rows.items():
        mechanism = MECHANISMS[name]("0.01", **parameters)  # type: ignore[arg-type]
        assert row["expected_error"] == pytest.approx(expected_error(mechanism, SCORES), rel=1e-12)
        assert row["error_95"] == error_quantile(mechanism, SCORES, 0.95)


@pytest.mark.parametrize("monotonic", [False, True])
def test_public_scores_give_the_epsilon_that_they_need(run: Run, file: Path, monotonic: bool) -> None:
    options = ("--scores", file, "--error", "20", "--sensitivity", "2", *["--monotonic"] * monotonic)
    rows = by_name(plan(run, *options)["proxy"]["mechanisms"])
    table = tables(run("plan", *options).out)[1]
    for name, kind in MECHANISMS.items():
        needed = epsilon_for(kind, SCORES, expected_error=20, sensitivity=2, monotonic=monotonic)
        assert rows[name] == {"mechanism": name, "epsilon": pytest.approx(needed, rel=1e-9)}
        assert is_rounded_up(table[name][0], needed)


def test_where_a_uniform_choice_is_good_enough_every_epsilon_is(run: Run, file: Path) -> None:
    mean = max(SCORES) - sum(SCORES) / len(SCORES)
    options = ("--scores", file, "--error", mean + 0.01)
    assert list(tables(run("plan", *options).out)[1].values()) == [["any"]] * 3
    assert [row["epsilon"] for row in plan(run, *options)["proxy"]["mechanisms"]] == [None] * 3
    lower = ("--scores", file, "--error", mean - 0.01)
    assert all(row["epsilon"] > 0 for row in plan(run, *lower)["proxy"]["mechanisms"])


def test_the_number_of_candidates_may_differ_from_the_public_scores(run: Run, file: Path) -> None:
    content = plan(run, "--scores", file, "--epsilon", "1", "--candidates", "700")
    assert content["candidates"] == 700
    row = by_name(content["mechanisms"])["exponential"]
    expected = worst_case_error(ExponentialMechanism(1), 700).error
    assert row["expected_error_at_most"] == pytest.approx(expected, rel=1e-9)
    exact = by_name(content["proxy"]["mechanisms"])["exponential"]["expected_error"]
    assert exact == pytest.approx(expected_error(ExponentialMechanism(1), SCORES), rel=1e-12)
    assert plan(run, "--scores", file, "--epsilon", "1")["candidates"] == len(SCORES)


def test_columns_of_the_public_scores(run: Run, tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("name,year,visits\na,1999,5\nb,2000,8\nc,2001,9\n")
    content = plan(run, "--scores", wide, "--column", "visits", "--label", "name", "--epsilon", "1")
    exact = by_name(content["proxy"]["mechanisms"])["permute-and-flip"]["expected_error"]
    assert exact == pytest.approx(expected_error(PermuteAndFlip(1), [5, 8, 9]), rel=1e-12)


def test_public_scores_from_standard_input(run: Run) -> None:
    result = run("plan", "--scores", "-", "--epsilon", "1", stdin=b"5\n8\n9\n")
    assert result.code == 0
    assert "on the 3 scores of standard input" in words(result.out)


N = ("--candidates", "10")
BAD_OPTIONS = {
    "both": (("--epsilon", "1", "--error", "1", *N), "give either --epsilon, to learn the error, or --error"),
    "neither": (N, "give either --epsilon, to learn the error, or --error"),
    "no candidates": (("--epsilon", "1"), "give --candidates, how many there are to choose from, or --scores"),
    "one candidate": (("--epsilon", "1", "--candidates", "1"), "candidates must be a whole number from 2 to"),
    "half a candidate": (("--epsilon", "1", "--candidates", "2.5"), "candidates must be a whole number from 2 to"),
    "too many candidates": (("--epsilon", "1", "--candidates", "1e16"), "candidates must be a whole number from 2 to"),
    "no number of candidates": (("--epsilon", "1", "--candidates", "few"), "candidates must be a number"),
    "negative epsilon": (("--epsilon", "-1", *N), "epsilon must be > 0"),
    "text as epsilon": (("--epsilon", "x", *N), "epsilon must be a number"),
    "tiny epsilon": (("--epsilon", "1e-4000", *N), "epsilon must be between 1e-50 and 1e50"),
    "zero error": (("--error", "0", *N), "error must be > 0"),
    "infinite error": (("--error", "inf", *N), "error must be finite"),
    "huge error": (("--error", "1e51", *N), "error must be between 1e-50 and 1e50"),
    "zero sensitivity": (("--epsilon", "1", "--sensitivity", "0", *N), "sensitivity must be > 0"),
    "huge sensitivity": (("--epsilon", "1", "--sensitivity", "1e400", *N), "sensitivity must be between"),
    "zero selections": (("--epsilon", "1", "--selections", "0", *N), "selections must be > 0"),
    "half a selection": (("--epsilon", "1", "--selections", "1/2", *N), "selections must be a whole number from 1 to"),
    "zero delta": (("--epsilon", "1", "--delta", "0", *N), "delta must be > 0"),
    "delta of one": (("--epsilon", "1", "--delta", "1", *N), "delta must be between 0 and 1"),
    "column without scores": (("--epsilon", "1", "--column", "a", *N), "--column and --label name columns of a file"),
    "label without scores": (("--epsilon", "1", "--label", "a", *N), "--column and --label name columns of a file"),
    "no such file": (("--epsilon", "1", "--scores", "/no/such.csv"), "/no/such.csv: there is no such file: check"),
}


@pytest.mark.parametrize("extra", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_one_line_and_code_two(
    run: Run, options: tuple[str, ...], message: str, extra: tuple[str, ...]
) -> None:
    result = run("plan", *options, *extra)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")
    assert len(result.err.splitlines()) == 1


BAD_FILES = {
    "not a number": (f"a,1\nb,{PRIVATE}x\n", "score on line 2 is not a number"),
    "missing": (f"a,{PRIVATE}\nb,\n", "score on line 2 is missing"),
    "one candidate": (f"{PRIVATE}\n", "candidates must be a whole number from 2"),
    "beyond floats": (f"1\n{PRIVATE}e400\n", "the scores differ by more than a float can hold"),
    "wide": (f"a,b,{PRIVATE}\n", "name the score column of the header with --column"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_without_its_content(run: Run, tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(content)
    result = run("plan", "--epsilon", "1", "--scores", file)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert PRIVATE not in result.err


def test_bad_options_are_refused_before_the_file_is_read(run: Run) -> None:
    result = run("plan", "--epsilon", "0", "--scores", "/no/such.csv")
    assert result.err.startswith("error: epsilon must be > 0")


def test_the_extremes_of_the_options_have_finite_figures(run: Run) -> None:
    options = ("--candidates", "1e15", "--sensitivity", "1e50", "--selections", "1e9")
    for target in (("--epsilon", "1e-50"), ("--epsilon", "1e50"), ("--error", "1e-50"), ("--error", "1e50")):
        for row in plan(run, *options, *target)["mechanisms"]:
            assert all(0 < value < float("inf") for key, value in row.items() if key != "mechanism")


def test_help_has_examples(run: Run) -> None:
    result = run("plan", "--help")
    assert result.code == 0
    assert len(re.findall(r"Example: dpselect plan --(?:candidates|scores)", words(result.out))) == 4
    assert "themselves private" in words(result.out)


def test_other_commands_do_not_wait_for_scipy() -> None:
    code = "import sys, dpselect.cli; print([m for m in sys.modules if m.startswith(('scipy', 'dpselect.analysis'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() == [b"[]"]


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_one_candidate_has_no_error(kind: type[SelectionRecord]) -> None:
    promised = promise(kind(1), 1)
    assert (promised.average, promised.attained, promised.within_95, promised.within_99) == (0, 0, 0, 0)
    with pytest.raises(InvalidValue, match="every epsilon meets the target"):
        epsilon_promising(kind, 1, error=1)


@pytest.mark.parametrize("kind", MECHANISMS.values())
@pytest.mark.parametrize("n", [2, 3, 30, 10**9])
def test_a_promise_is_consistent(kind: type[SelectionRecord], n: int) -> None:
    promised = promise(kind("0.3", 2), n)
    assert 0 < promised.attained <= promised.average <= error_bounds(kind("0.3", 2), n).upper
    assert promised.average < promised.within_95 < promised.within_99
    assert (promised.attained == promised.average) == (kind is not ReportNoisyMax)


@pytest.mark.parametrize(
    ("value", "rounding", "text"),
    [
        (27.6310211, None, "27.64"),
        (27.6310211, DOWN, "27.63"),
        (27.6351, NEAREST, "27.64"),
        (0.1, None, "0.1"),
        (0.1 + 0.2, None, "0.3"),
        (99999.0, None, "100,000"),
        (1234567.0, None, "1,235,000"),
        (0.0012341, None, "0.001235"),
        (0.00012341, None, "1.235e-4"),
        (3e200, None, "3e+200"),
        (0.0, None, "0"),
        (2.0, None, "2"),
        (float("nan"), None, "-"),
        (None, None, "-"),
    ],
)
def test_numbers_are_shown_with_four_digits(value: float | None, rounding: str | None, text: str) -> None:
    assert (shown(value) if rounding is None else shown(value, rounding)) == text
