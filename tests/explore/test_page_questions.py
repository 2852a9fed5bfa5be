"""Every question of the page in a real Chromium: its fields, its numbers, and how it looks on a screen and a phone."""

import re

import pytest

from dpselect import zcdp
from dpselect.accounting.budget import largest_belief
from dpselect.analysis import plan, top_k_error
from dpselect.explore.answers import asked_of
from dpselect.explore.scores import made
from tests.explore.shown import CLOSE_RACE
from tests.explore.test_answers import REAL

browsing = pytest.importorskip("tests.explore.browsing", exc_type=ImportError)
Keys = browsing.Keys

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

QUESTIONS = ["mode", "top_k", "quantiles", "select"]

# Pairs of texts of a chart that are painted over one another.
OVERPRINTED = """
const found = [];
for (const svg of document.querySelectorAll('.chart svg')) {
  const texts = [...svg.querySelectorAll('text')].filter(one => one.textContent.trim() && !one.closest('.name'))
    .filter(one => !(one.getAttribute('transform') ?? '').includes('-42'));  // slanted boxes are larger than their text
  const boxes = texts.map(one => one.getBoundingClientRect());
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && tall > 3) found.push([texts[i].textContent, texts[i + 1 + j].textContent]);
  }));
}
return found;
"""


@pytest.fixture
def page(browser):
    return browser.open(question=None)


def cells(page, name):
    """A column of the table, by the rows."""
    return page.run(
        "const name = arguments[0], value = row => Number(row.querySelector(`td[data-name=${name}]`).dataset.value);"
        "return Object.fromEntries([...document.querySelectorAll('#figures tbody tr')]"
        ".map(row => [row.querySelector('th').textContent, value(row)]))",
        name,
    )


def amount(page):
    return page.find("#amount").get_attribute("value")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("width", [1320, 390])
def test_every_question_begins_with_something_to_see(browser, question, width):
    page = browser.open(width=width, question=question, amount=None)
    page.until(lambda: page.all("#curve circle.dot") and page.all("#probabilities svg") and page.all("#tail svg"))
    assert page.run(OVERPRINTED) == []
    assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    dots = page.run(
        "const box = document.querySelector('#curve svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#curve circle.dot')].map(one => one.getBoundingClientRect())"
        ".map(dot => (dot.left - box.left) / box.width)"
    )
    assert dots
    assert all(0.3 < dot < 0.9 for dot in dots), "in the middle of the curve"
    slider = page.find("#slider")
    low, here, high = (float(slider.get_attribute(name)) for name in ("min", "value", "max"))
    assert low + 30 < here < high - 30
    assert page.text("settings-error") == page.text("amount-error") == ""
    if width == 390:  # on a phone, the slider is on the first screen, before all that it changes
        slider, *others = (
            page.run("return document.querySelector(arguments[0]).getBoundingClientRect().bottom + window.scrollY", css)
            for css in ("#slider", "#sentence", "#settings", "#currency", "#probabilities")
        )
        assert slider < min(500, *others)
        fields = [one for one in page.all("#settings input, #settings select") if one.is_displayed()]
        assert slider < min(one.rect["y"] for one in fields)


def test_only_the_fields_of_a_question_are_shown(page):
    for question, shown, hidden in (
        ("mode", {"shape", "groups", "neighbours"}, {"k", "levels", "sensitivity"}),
        ("top_k", {"shape", "groups", "k", "max_values", "ordered"}, {"levels", "monotonic"}),
        ("quantiles", {"levels", "lower", "people", "groups"}, {"shape", "k", "unit"}),
        ("select", {"shape", "sensitivity", "monotonic"}, {"groups", "neighbours", "k", "levels"}),
    ):
        page.ask(question)
        assert {name for name in shown | hidden if any(one.is_displayed() for one in page.all(f"#{name}"))} == shown


def test_the_top_k_compares_its_methods(page):
    page.ask("top_k", "0.3")
    truth = {
        title: top_k_error(CLOSE_RACE, 3, epsilon="0.3", method=name, max_values=1, runs=200, seed=1).mean
        for name, title in (("set", "Set"), ("margin", "Margin"), ("one-shot", "One shot"), ("peel", "Peel"))
    }
    found = cells(page, "mean")
    assert {title: found[title] for title in truth} == pytest.approx(truth, rel=1e-9)
    assert page.find("#figures tr.chosen th").text == "Set"
    page.find("input[name=choice][value=margin]").send_keys(Keys.SPACE)
    page.until(lambda: page.find("#figures tr.chosen th").text == "Margin")
    page.write("max_values", Keys.BACKSPACE)
    page.until(lambda: set(cells(page, "mean")) == {"Margin", "One shot", "Peel"})
    page.write("k", "30")
    page.until(lambda: page.text("settings-error") == "k must be a whole number from 1 to 29")
    assert page.find("#k").get_attribute("aria-invalid") == "true"
    page.press("[data-draws='1']")


def test_the_median_is_that_of_the_made_up_people(page):
    page.ask("quantiles", "0.05")
    asked = asked_of({"question": "quantiles", "amount": "0.05"})
    assert cells(page, "mean")["Permute-and-flip"] == pytest.approx(asked.mean("permute-and-flip"), rel=1e-12)
    page.write("people", "300")
    fewer = asked_of({"question": "quantiles", "amount": "0.05", "people": "300"})
    page.until(lambda: cells(page, "mean")["Permute-and-flip"] == pytest.approx(fewer.mean("permute-and-flip")))
    page.write("levels", "quartiles")
    page.until(lambda: "quartiles" in page.text("sentence"))
    assert re.fullmatch(r"By \d+ simulated answers\.", page.text("simulated"))
    page.press("[data-draws='1']")
    page.until(lambda: re.fullmatch(r"gave \d+, \d+, \d+\.", page.text("drawn")))
    assert not page.find("[data-draws='10000']").is_displayed()


def test_other_made_up_people_move_the_slider_until_the_reader_does(page):
    page.ask("quantiles")
    first = amount(page)
    page.write("people", "200")
    page.until(lambda: amount(page) != first and f"= {amount(page)} " in page.text("sentence"))
    page.find("#slider").send_keys(Keys.ARROW_RIGHT)
    mine = amount(page)
    page.write("people", "20000")
    page.until(lambda: "20,000 people" in page.text("sentence"))
    assert amount(page) == mine


def test_a_budget_of_each_currency(page):
    assert not page.find("#delta").is_displayed()
    page.choose("currency", "zcdp")
    page.until(lambda: page.text("sentence").startswith("With \N{GREEK SMALL LETTER RHO} = "))
    assert page.text("symbol") == "\N{GREEK SMALL LETTER RHO}"
    assert page.find("#figures tr.chosen th").text == "Exponential mechanism"
    page.write("questions", "20")
    page.write("amount", "0.5")
    page.until(lambda: "= 0.5 for 20 questions each answer is" in page.text("sentence"))
    planned = plan(30, question="mode", budget=zcdp("0.5"), questions=20)
    assert cells(page, "each")["Exponential mechanism"] == float(planned.promises["exponential"].mechanism.epsilon)
    assert cells(page, "any_data")["Exponential mechanism"] == planned.accuracy["exponential"].average
    assert "A budget of rho 0.5 pays for 20 such questions." in page.text("words")
    page.choose("currency", "approximate")
    page.until(lambda: "and δ = 10⁻⁶ for 20 questions" in page.text("sentence"))
    page.write("delta", "2")
    page.until(lambda: page.text("settings-error").startswith("delta must be at most 0.001"))


def test_groups_share_the_budget(page):
    page.write("amount", "0.2")
    page.write("groups", "12")
    page.write("max_groups", "4")
    page.until(lambda: cells(page, "each")["Permute-and-flip"] == 0.05)
    assert "One person can influence 4 selections" in page.text("words")
    page.write("groups", Keys.BACKSPACE)
    page.until(lambda: "max_groups needs groups" in page.text("settings-error"))


def test_what_the_budget_means_for_a_person(page):
    page.write("amount", "0.5")
    page.until(lambda: page.text("person-title") == "What ε = 0.5 means for a person")
    rows = [row.text.replace(" %", "").split() for row in page.all("#beliefs tbody tr")]
    assert [before for before, _ in rows] == ["1", "10", "50"]
    for before, after in rows:
        exact = 100 * largest_belief(float(before) / 100, "0.5")
        assert exact <= float(after) < exact * 1.01


def test_real_counts(page, tmp_path):
    path = tmp_path / "destinations.csv"
    path.write_text("".join(f"D{place},{count}\n" for place, count in enumerate(REAL)))
    page.load(path)
    page.until(lambda: page.text("scores-summary") == "destinations.csv: 105 candidates")
    # The drawing before may have as many names: the budget follows when the new scores have been drawn.
    page.until(lambda: 0.01 < float(amount(page)) < 0.05)
    page.until(lambda: len(page.all("#probabilities text.name")) == 10 and page.all("#curve circle.dot"))
    assert 0.7 < cells(page, "best")["Permute-and-flip"] < 0.95
    page.write("amount", "1")
    page.until(lambda: "with probability above 0.9999 " in page.text("sentence"))
    texts = {one.text for one in page.all("#figures td[data-name=best]")}
    assert texts == {"above 0.9999"}
    page.find("#probabilities summary").click()
    page.until(lambda: page.all("#probabilities table"))
    told = page.find("#probabilities table").text
    assert "above 0.9999" in told
    assert not re.search(r"\de-|\d e-|\s1(\s|$)", told), "no exponents of programs, and no certainty"
    assert "\N{MULTIPLICATION SIGN} 10⁻" in told


def test_the_questions_are_chosen_by_the_keyboard(page):
    page.find("input[name=question][value=mode]").send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: "top 3" in page.text("sentence"))
    assert page.find("input[name=question][value=top_k]").is_selected()


def test_no_question_has_errors(page):
    page.driver.get_log("browser")
    for question in QUESTIONS:
        page.ask(question)
        page.press("#needed > button")
        page.until(lambda: page.all("#needed-outcome table"))
        page.press("[data-draws='100']")
        page.until(lambda: page.find("#drawn-legend").is_displayed())
    assert page.driver.get_log("browser") == []


def test_the_shapes_keep_their_question(page):
    page.ask("top_k")
    page.choose("shape", "long-tail")
    page.until(lambda: page.text("scores-summary") == "A long tail: 30 candidates")
    asked = {"question": "top_k", "max_values": "1", "monotonic": True}
    page.until(
        lambda: (
            cells(page, "mean").get("Set")
            == asked_of({**asked, "amount": amount(page)}, made("long-tail", 30)).mean("set")
        )
    )
