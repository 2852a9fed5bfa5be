"""What a notebook shows of our objects: tables with every text escaped, and nothing that is secret."""

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpselect
from dpselect import _show, analysis
from dpselect.audit import audit, audit_pmf
from dpselect.release import About, Answer

EVIL = "<script>alert('x')</script>&\"$E=mc^2$"
SECRET = 731_001  # a score or a count that nothing may show
ALLOWED = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
ATTRIBUTES = {"class", "style", "scope", "colspan"}


class Tables(HTMLParser):
    """The rows of all tables as texts. Tags that we never write, or that are not closed, are an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= ATTRIBUTES
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open[-1] in {"td", "th"}:
            self.rows[-1][-1] += data


def rows_of(thing: Any) -> list[list[str]]:
    html = thing._repr_html_()
    assert html.startswith('<div class="tex2jax_ignore mathjax_ignore">')
    return Tables(html).rows


def visits(**options: Any) -> Any:
    rows = pa.table({"ward": ["a"] * 500 + ["b"] * 500, "sex": ["f"] * 500 + ["m"] * 500, "cost": list(range(1000))})
    return dpselect.open_table(rows, **options)


def made(value: Any, **fields: Any) -> Answer:
    answer = dpselect.PermuteAndFlip("0.1").release([0, 1])
    return Answer(value, answer.mechanism, answer.guarantee, answer.epsilon, **fields)


# Escaping.


@pytest.mark.parametrize(
    "value", [EVIL, [EVIL, "b"], {EVIL: "a"}, {"a": EVIL}, {"a": [EVIL]}, {(EVIL, 1): None}], ids=str
)
def test_values_are_data_and_are_escaped(value: Any) -> None:
    html = made(value, about=About(EVIL))._repr_html_()
    assert "<script" not in html
    assert EVIL in " ".join(Tables(html).texts)


def test_every_entrance_escapes_and_an_unescaped_value_would_be_noticed() -> None:
    """The power check: the parser refuses a tag that is not ours, and one that is not closed."""
    pieces = {
        _show.table([EVIL], [[EVIL]], caption=EVIL, spans=[(EVIL, 1)]): 4,
        _show.facts({EVIL: EVIL}, caption=EVIL): 3,
        _show.paragraph(EVIL): 1,
    }
    for piece, number in pieces.items():
        assert "<script" not in piece
        assert "".join(Tables(piece).texts).count(EVIL) == number
    with pytest.raises(AssertionError):
        Tables(_show.page(_show.paragraph("a").replace("a", EVIL)))
    with pytest.raises(AssertionError):
        Tables("<table><tr>")


@pytest.mark.parametrize("text", ["", " a", "a\u202eb", "a\nb", "\ud800", "\x1b[2J"], ids=ascii)
def test_text_that_nobody_could_see_is_quoted(text: str) -> None:
    """Directions, line breaks, control characters; lone surrogates, which no notebook could be saved with."""
    shown = _show.cell_text(text)
    assert shown == repr(text)
    assert shown.isprintable()
    shown.encode("utf-8")


def test_long_tables_and_cells_are_cut() -> None:
    answer = made({str(i): "x" * 10_000 for i in range(1_000)})
    html = answer._repr_html_()
    assert "and 800 more rows" in html
    assert len(html) < 200 * 500
    assert "more rows" not in made({str(i): "x" for i in range(200)})._repr_html_()


# Answers.


def test_an_answer_has_a_row_for_its_value_and_what_it_cost(tmp_path: Path) -> None:
    table = visits(ledger=tmp_path / "l", budget=dpselect.zcdp("0.5"))
    answer = table.mode("sex", candidates=["f"], other="not f", rho="0.1")
    assert rows_of(answer) == [
        ["answer", answer.value],
        ["estimates", "the value that most rows have"],
        ["accuracy", str(answer.accuracy)],
        ["mechanism", "exponential"],
        ["guarantee", answer.guarantee.of_whom("one row")],
        ["cost", "ledger entry 1 (charged rho 0.1)"],
        ["notes", "; ".join(answer.notes)],
    ]
    assert "not checked" in answer.notes[-1]


LEVELS = [
    ("deciles", [f"{n} %" for n in range(10, 100, 10)]),
    (["0.9", "1/3", "0.125"], ["90 %", "1/3", "12.5 %"]),
    (["0.9"], ["90 %"]),
    ([f"{i}/20" for i in range(1, 20)], None),
]


@pytest.mark.parametrize(("levels", "names"), LEVELS)
def test_quantiles_have_a_row_for_each_level(levels: Any, names: list[str] | None) -> None:
    """Many levels without a name have rows without one."""
    answer = visits().quantiles("cost", levels, lower=0, upper=1000, epsilon=1)
    values = list(map(str, answer.value))
    expected = [["answer"], *([value] for value in values)]
    if names is not None:
        expected = [["level", "answer"], *map(list, zip(names, values, strict=True))]
    assert rows_of(answer)[: len(expected)] == expected


def test_groups_have_a_row_each() -> None:
    grouped = visits().group_by("ward", groups=["a", "b"])
    modes = rows_of(grouped.mode("sex", candidates=["f", "m"], epsilon=5))
    assert modes[:3] == [["group", "answer"], ["a", "f"], ["b", "m"]]
    quantiles = grouped.quantiles("cost", "quartiles", lower=0, upper=1000, epsilon=1)
    expected = [[group, *map(str, own)] for group, own in quantiles.value.items()]
    assert rows_of(quantiles)[:3] == [["group", "25 %", "50 %", "75 %"], *expected]
    value = {("a", 1): Decimal("2.50"), ("b", 2): datetime.date(2026, 1, 31)}
    assert rows_of(made(value))[1:3] == [["a, 1", "2.50"], ["b, 2", "2026-01-31"]]


def test_nothing_was_common_enough() -> None:
    """That is an answer, unlike the label None."""
    few = dpselect.open_table(pa.table({"x": ["a", "b"]}))
    for ask in (few.mode, few.values):
        assert rows_of(ask("x", epsilon="0.1", delta="1e-9"))[0] == ["answer", "nothing was common enough"]
    assert rows_of(made(None))[0] == ["answer", "None"]
    assert rows_of(made("a"))[-1] == ["cost", "not recorded: there is no ledger"]


# Numbers of plans, comparisons and audits.


def test_a_comparison_shows_its_numbers() -> None:
    """Records that lack a line at one epsilon get a dash there."""
    compared = analysis.compare([10, 8, 0], ["0.5", 1])
    rows = rows_of(compared)
    assert rows[0] == ["", "permute-and-flip", "exponential", "noisy-max"]
    assert rows[1][:4] == ["epsilon", "average", "95 of 100 within", "average"]
    assert [row[0] for row in rows[2:]] == ["0.5", "1"]
    assert rows[3][1:4] == ["0.3967", "2", "0.5843"]
    assert {len(row) for row in rows[1:]} == {9}
    assert rows_of(type(compared)(compared.records[:-1]))[3][-3:] == ["-", "-", "-"]


def test_a_comparison_of_methods_shows_its_numbers() -> None:
    """A simulated error has its interval."""
    compared = analysis.compare_top_k([500, 480, 470, 20, 10], 2, ["0.1"], max_values=1, methods=["set", "peel"])
    rows = rows_of(compared)
    assert rows[0] == ["", "set", "peel"]
    errors = [f"{record.expected_error:.4g}" for record in compared.records]
    assert [rows[2][i] for i in (0, 1, 3)] == ["0.1", *errors]
    compared = analysis.compare_top_k(list(range(0, 3000, 3)), 5, [1], methods=["peel"], runs=20, seed=1)
    [record] = compared.records
    assert not record.exact
    low, high = (float(end) for end in rows_of(compared)[2][2].split(" to "))
    assert low <= record.expected_error <= high


def test_a_plan_shows_what_the_command_line_prints() -> None:
    planned = analysis.plan(30, question="mode", budget="zcdp:0.5", questions=20)
    rows = rows_of(planned)
    assert rows[0][:3] == ["mechanism", "epsilon of a draw", "average at most"]
    assert rows[2] == ["exponential", "0.447835", "3.99", "14.29", "17.88", "rho 0.025", "rho 0.5", "20"]
    assert all(sentence in planned._repr_html_() for sentence in planned.sentences)
    rows = rows_of(analysis.plan_found("values", epsilon=1, delta="1e-6"))
    assert rows[0][1:] == ["probability 1/2", "95 of 100", "always"]
    assert rows[1][1:] == ["14", "16", "28"]


def test_audits_show_the_verdict_and_each_pair() -> None:
    broken = audit(lambda scores: EVIL + str(scores[0]), epsilon=1, pairs=[([1, 0], [0, 1])], runs=1000)
    html = broken._repr_html_()
    assert broken.violates
    assert "violates epsilon = 1" in html
    assert "<script" not in html
    assert rows_of(broken)[1][2:] == ["500", "0", "500", "0"]
    kept = audit(lambda scores: 0, epsilon=1, runs=200)
    assert "This does not prove privacy" in kept._repr_html_()
    assert len(rows_of(kept)) == 1 + len(kept.findings)
    exact = audit_pmf(dpselect.PermuteAndFlip(1), scores={EVIL: [3, 0]})
    assert rows_of(exact)[1][0] == EVIL


# Budgets and ledgers.


def test_a_ledger_shows_what_is_spent_and_left(tmp_path: Path) -> None:
    ledger = dpselect.Ledger(tmp_path / "office.ledger", budget="1", dataset=EVIL)
    ledger.spend("0.1", "ages")
    ledger.spend("1/3", "sizes")
    html = ledger._repr_html_()
    assert rows_of(ledger) == [
        ["budget", "epsilon 1"],
        ["spent", "epsilon 0.433334"],
        ["left", "epsilon 0.566666"],
        ["entries", "2"],
        ["guaranteed", "0.433334-DP (pure)"],
        ["data set", EVIL],
    ]
    assert "Ledger office.ledger" in html
    assert str(tmp_path) not in html
    visits(person="cost", ledger=tmp_path / "l", budget=1).mode("sex", candidates=["f", "m"], epsilon=1)
    assert ["protects", str(dpselect.PrivacyUnit("cost"))] in rows_of(dpselect.Ledger(tmp_path / "l"))


def test_a_damaged_ledger_is_shown_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = dpselect.Ledger(path, budget=1)
    path.write_bytes(b"nonsense" * 1_000)
    assert rows_of(ledger)[:2] == [["budget", "epsilon 1"], ["spent", rows_of(ledger)[1][1]]]
    assert "verify() says why" in rows_of(ledger)[1][1]


@pytest.mark.parametrize(
    ("budget", "rows"),
    [
        (dpselect.pure("1", cap="0.1"), [["currency", "pure"], ["epsilon", "1"], ["cap", "0.1"]]),
        (dpselect.zcdp("0.5", delta="1e-9"), [["currency", "zcdp"], ["rho", "0.5"], ["delta", "1e-9"]]),
        (
            dpselect.approximate("1", "1e-6"),
            [["currency", "approximate"], ["epsilon", "1"], ["delta", "0.000001"], ["share", "0.5"]],
        ),
    ],
)
def test_budgets(budget: Any, rows: list[list[str]]) -> None:
    shown = rows_of(budget)
    assert shown[: len(rows)] == rows
    assert shown[-1] == ["best mechanism", budget.mechanism]
    if budget.currency == "approximate":
        [name, rho] = shown[-2]
        assert name == "rho that follows"
        assert Fraction(rho) <= budget.rho < Fraction(rho) * Fraction("1.00001")


# Secrets.


def secretive() -> list[Any]:
    """Objects that were made from secrets, none of which they may show."""
    summary = dpselect.PermuteAndFlip(1).summary()
    summary.update([SECRET, 1, 2], labels=[f"label {SECRET}", "b", "c"])
    rows = pa.table({"x": ["a"] * 1731 + ["b"] * 3, "n": [SECRET] * 1734})
    table = dpselect.open_table(rows)
    return [
        summary,
        table.mode("x", candidates=["a", "b"], epsilon=1),
        table.mode("x", epsilon=1, delta="1e-9"),
        dpselect.PermuteAndFlip(1).release([SECRET, 0], labels=["a", "b"]),
        analysis.plan(2, epsilon=1, scores=[SECRET, SECRET - 900.125]),
    ]


def test_nothing_secret_is_shown() -> None:
    """A summary shows the same whatever it saw."""
    for thing in secretive():
        html = thing._repr_html_()
        for secret in (SECRET, 1731, 1734, "900", "label"):
            assert str(secret) not in re.sub(r"[,.]", "", html)
    assert secretive()[0]._repr_html_() == dpselect.PermuteAndFlip(1).summary()._repr_html_()


# Pictures.


def test_figures_are_pictures_without_a_magic_command() -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    figure = analysis.compare([10, 8, 0], [0.1, 1]).plot()
    picture = figure._repr_png_()
    assert picture.startswith(b"\x89PNG\r\n")
    assert 2_000 < len(picture) < 100_000
    quantiles = visits().quantiles("cost", "quartiles", lower=0, upper=1000, epsilon=1)
    assert dpselect.tables.plot_quantiles(quantiles, "quartiles")._repr_png_().startswith(b"\x89PNG\r\n")
