"""The page in a real Chromium: what is shown is what the analysis says, by mouse and by keyboard."""

import csv
import io
import re
import struct
import zlib
from xml.etree import ElementTree

import pytest

from dpselect.analysis import epsilon_for, error_tail, expected_error
from dpselect.mechanisms import MECHANISMS
from tests.explore.shown import CLOSE_RACE, shows

browsing = pytest.importorskip("tests.explore.browsing", exc_type=ImportError)
Keys = browsing.Keys

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


@pytest.fixture
def page(browser):
    return browser.open()


def test_the_page_begins_with_figures(page):
    assert shows(page, CLOSE_RACE, "0.2")
    assert page.text("sentence").startswith("With ε = 0.2 you get the best candidate with probability 0.92 and lose ")
    pattern = r"Exponential mechanism: the same average error needs 1\.\d+ times the budget \(ε = 0\.2\d+\)\."
    page.until(lambda: re.fullmatch(pattern, page.text("compared")))
    assert "Anyone who sees this screen sees these scores" in page.find(".notice").text


def test_the_slider_changes_the_numbers_by_keyboard(page):
    slider = page.find("#slider")
    for keys, epsilon in ((Keys.ARROW_RIGHT, "0.204"), (Keys.ARROW_LEFT * 2, "0.195"), (Keys.HOME, "0.00148")):
        slider.send_keys(keys)
        assert page.find("#amount").get_attribute("value") == epsilon
        page.until(lambda epsilon=epsilon: shows(page, CLOSE_RACE, epsilon))
        assert f"ε = {epsilon} " in page.text("sentence")
        assert slider.get_attribute("aria-valuetext") == f"ε = {epsilon}"


def test_the_slider_follows_the_mouse_and_the_last_position_wins(page):
    """Dragged over many places at once: requests are joined, and the page ends with the last place's figures."""
    page.run(  # the requests from here on: how many came before depends on how fast the page was opened
        "const send = window.fetch; window.looks = [];"
        "window.fetch = (path, options) => {"
        "  if (path === 'look') window.looks.push(JSON.parse(options.body).amount); return send(path, options); };"
        "const slider = document.getElementById('slider');"
        "for (let place = -283; place <= -100; place++) {"
        "  slider.value = place; slider.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    page.until(lambda: shows(page, CLOSE_RACE, "0.1"))
    spoken = "return document.getElementById('spoken').textContent"
    page.until(lambda: "ε = 0.1 " in page.run(spoken))  # which waits until no answer comes any more
    asked = page.run("return window.looks")
    assert asked in (["0.00148", "0.1"], ["0.1"])  # the first place is asked for unless a request is under way


def test_every_setting_changes_the_numbers(page):
    page.write("amount", "1/3")
    page.until(lambda: shows(page, CLOSE_RACE, "1/3"))
    page.write("sensitivity", "2.5")
    page.until(lambda: shows(page, CLOSE_RACE, "1/3", "2.5"))
    page.find("#monotonic").send_keys(Keys.SPACE)
    page.until(lambda: shows(page, CLOSE_RACE, "1/3", "2.5", monotonic=False))
    page.find("input[value=permute-and-flip]").send_keys(Keys.SPACE, Keys.ARROW_DOWN)
    page.until(lambda: page.find("#figures tr.chosen th").text == "Exponential mechanism")
    page.write("unit", "votes")
    page.until(lambda: " votes on average" in page.text("sentence"))


def greyed(page):
    """How many parts of the page are marked as older than the settings, once all are painted alike."""
    parts = page.run(
        "return [...document.querySelectorAll('.follows')].map(one => [one.ariaBusy, getComputedStyle(one).opacity])"
    )
    assert len(parts) == 7
    assert len(set(map(tuple, parts))) == 1
    return parts[0][0] == "true" and float(parts[0][1]) < 0.6


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ("0", "epsilon must be > 0, got '0': give a positive finite number"),
        ("1000", "epsilon must be between 1e-6 and 100 here"),
    ],
)
def test_a_bad_epsilon_is_named_beside_its_box_and_the_figures_are_greyed(page, epsilon, message):
    assert not greyed(page)
    page.write("amount", epsilon)
    page.until(lambda: page.text("amount-error") == message)
    box = page.find("#amount")
    assert box.get_attribute("aria-invalid") == "true"
    assert box.get_attribute("aria-describedby") == "amount-error"
    assert 0 <= page.find("#amount-error").rect["y"] - box.rect["y"] < 150
    assert page.text("settings-error") == ""
    assert greyed(page)
    page.write("amount", "0.5")
    page.until(lambda: shows(page, CLOSE_RACE, "0.5"))
    assert page.text("amount-error") == ""
    assert not greyed(page)


def test_a_bad_sensitivity_is_named_and_the_page_goes_on(page):
    page.write("sensitivity", "-1")
    page.until(
        lambda: page.text("settings-error") == "sensitivity must be > 0, got '-1': give a positive finite number"
    )
    assert page.find("#sensitivity").get_attribute("aria-invalid") == "true"
    assert page.text("amount-error") == ""
    assert greyed(page)
    page.write("sensitivity", "2")
    page.until(lambda: shows(page, CLOSE_RACE, "0.2", "2"))
    assert not greyed(page)


def test_draws_land_on_the_candidates(page):
    for draws in (1, 100):
        page.press(f"[data-draws='{draws}']")
        page.until(lambda draws=draws: len(page.all("#probabilities .ball")) >= min(draws, 60))
        assert "landed" in page.text("drawn")
    page.press("[data-draws='10000']")
    page.until(lambda: "of 10,000 times" in page.text("drawn"))
    often = int(re.search(r"landed ([\d,]+) of", page.text("drawn"))[1].replace(",", ""))
    chance = max(MECHANISMS["permute-and-flip"]("0.2", monotonic=True).pmf(CLOSE_RACE))
    assert often == pytest.approx(10_000 * chance, abs=6 * 50)  # six standard deviations, at most 50 each
    page.find("#slider").send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: not page.all("#probabilities .landed"))  # other settings, other draws


@pytest.mark.parametrize(
    ("mechanism", "colour"), [("permute-and-flip", "style-0"), ("exponential", "style-1"), ("noisy-max", "style-2")]
)
def test_draws_stand_on_the_bar_of_their_mechanism_and_in_the_legend(page, mechanism, colour):
    assert not page.find("#drawn-legend").is_displayed()
    page.find(f"input[value={mechanism}]").click()
    page.until(lambda: page.all(f"#probabilities .bar.chosen.{colour}"))
    page.press("[data-draws='100']")
    page.until(lambda: page.all("#probabilities .ball"))
    assert page.find("#drawn-legend").text == "drawn"
    beside = page.run(
        "const bars = [...document.querySelectorAll(`#probabilities .bar.${arguments[0]}`)]"
        ".map(bar => [bar.x, bar.width].map(side => side.baseVal.value));"
        "return [...document.querySelectorAll('#probabilities .ball')].map(ball => ball.cx.baseVal.value)"
        ".filter(x => !bars.some(([left, width]) => left <= x && x <= left + width)).length",
        colour,
    )
    assert beside == 0


def test_an_error_leads_back_to_an_epsilon(page):
    page.write("error", "3")
    page.press("#needed button")
    page.until(lambda: "Ask for ε = " in page.text("needed-outcome"))
    needed = page.all("#needed-outcome tbody tr")[1].text.split()[-2]
    exact = epsilon_for(MECHANISMS["exponential"], CLOSE_RACE, expected_error=3, monotonic=True)
    assert exact <= float(needed) <= exact * 1.001
    page.press("#needed-outcome tbody tr:nth-child(2) button")
    page.until(lambda: shows(page, CLOSE_RACE, needed))
    assert page.find("#figures tr.chosen th").text == "Exponential mechanism"
    page.find("input[name=counted][value=times]").send_keys(Keys.SPACE)
    page.press("#needed > button")
    page.until(lambda: page.all("#needed-outcome tbody tr") and needed not in page.text("needed-outcome"))
    strict = page.all("#needed-outcome tbody tr")[0].text.split()[1]
    assert error_tail(MECHANISMS["permute-and-flip"](strict, monotonic=True), CLOSE_RACE, 3.0) <= 0.05


def test_the_code_is_copied(page):
    permission = {"origin": page.address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    page.driver.execute_cdp_cmd("Browser.grantPermissions", permission)
    page.write("amount", "0.7")
    page.until(lambda: "PermuteAndFlip('0.7'" in page.text("python"))
    assert "dpselect compare scores.csv --epsilon 0.7 --sensitivity 1 --monotonic" in page.find("#command").text
    page.press("[data-copy=python]")
    page.until(lambda: page.text("copied") == "Copied.")
    copied = page.driver.execute_async_script("const done = arguments[0]; navigator.clipboard.readText().then(done)")
    assert copied == page.run("return document.getElementById('python').textContent")


def saved(page, downloads, chart, kind):
    name = f"{chart}.{kind.lower()}"
    (downloads / name).unlink(missing_ok=True)
    [button] = [one for one in page.all(f"#{chart} .tools button") if one.text == f"Save {kind}"]
    page.until(button.is_enabled)  # the curve comes after the other results
    button.send_keys(Keys.ENTER)
    return browsing.file_in(downloads, name)


def test_figures_are_saved_as_csv(page, downloads):
    rows = list(csv.DictReader(io.StringIO(saved(page, downloads, "probabilities", "CSV").read_text())))
    assert len(rows) == 30
    assert [int(row["score"]) for row in rows] == sorted(CLOSE_RACE, reverse=True)
    for name, kind in MECHANISMS.items():
        exact = dict(enumerate(kind("0.2", monotonic=True).pmf(CLOSE_RACE)))
        for row in rows:
            assert float(row[name]) == pytest.approx(exact[int(row["candidate"].split()[1])], rel=1e-12)
    tail = list(csv.DictReader(io.StringIO(saved(page, downloads, "tail", "CSV").read_text())))
    for row in tail:
        exact = error_tail(MECHANISMS["noisy-max"]("0.2", monotonic=True), CLOSE_RACE, float(row["error"]))
        assert float(row["noisy-max"]) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("chart", ["probabilities", "curve", "tail"])
def test_charts_are_saved_as_pictures(page, downloads, chart):
    svg = saved(page, downloads, chart, "SVG").read_text()
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own file
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in svg
    assert "class=" not in svg
    assert not re.findall(r"""(?:href|src)=|url\(""", svg)
    width, height, pixels = decoded(saved(page, downloads, chart, "PNG").read_bytes())
    assert [width / 2, height / 2] == [float(side) for side in root.get("viewBox").split()[2:]]
    assert len(set(zip(*[iter(pixels)] * 4, strict=False))) > 20  # colours: not an empty picture


CURVE = """
const tools = [...document.querySelectorAll('#curve .tools button')].map(one => one.disabled);
return [document.querySelectorAll('#curve svg').length, ...tools];
"""

SENSITIVITY = """
const box = document.getElementById('sensitivity');
box.value = arguments[0];
box.dispatchEvent(new Event('input', {bubbles: true}));
"""


def curve_is_of(page, downloads, sensitivity):
    """Check the points of the curve that are there, as they are saved."""
    rows = list(csv.DictReader(io.StringIO(saved(page, downloads, "curve", "CSV").read_text())))
    for name in ("permute-and-flip", "exponential"):
        known = [(float(row["budget"]), float(row[name])) for row in rows if row[name]]  # it is computed in pieces
        assert len(known) >= 5
        for budget, error in known:
            exact = expected_error(MECHANISMS[name](budget, sensitivity, monotonic=True), CLOSE_RACE)
            assert error == pytest.approx(exact, rel=1e-9)


def test_another_question_takes_the_curve_away_until_it_has_its_own(page, downloads):
    """The curve comes last. The old one must not stand beside new results, with buttons that do nothing."""
    page.until(lambda: page.run(CURVE) == [1, False, False, False])
    page.find("#curve summary").click()
    page.until(lambda: page.all("#curve table"))
    chosen = "document.querySelector('input[name=question][value=top_k]').click();"
    assert page.run(chosen + CURVE) == [0, True, True, True]
    assert not page.all("#curve table")
    page.until(lambda: page.run(CURVE) == [1, False, False, False])
    heads = page.run("return document.querySelector('#curve thead').textContent")  # at once: each piece refills it
    assert "Margin" in heads
    assert saved(page, downloads, "curve", "CSV").read_text().startswith("budget,set,margin,")


def test_a_curve_is_saved_only_at_the_settings_in_the_fields(page, downloads):
    """The old curve stays until the new one comes, beside points of the new settings: that is not saved."""
    curve_is_of(page, downloads, 1)
    assert page.run(SENSITIVITY + CURVE, "2") == [1, True, True, True]
    curve_is_of(page, downloads, 2)


def test_a_curve_returns_with_its_settings(page, downloads):
    """Settings are changed and changed back while the curve between them is still computed in pieces."""
    page.find("#curve summary").click()
    page.until(lambda: page.all("#curve tbody tr") and "\N{EN DASH}" not in page.find("#curve tbody").text)
    page.run(
        "const send = window.fetch;"
        "window.fetch = async (path, options) => { const answer = await send(path, options);"
        "  if (path !== 'curve' || JSON.parse(options.body).sensitivity !== '2') return answer;"
        "  return Response.json({...await answer.json(), complete: false}); };"
    )
    for sensitivity in ("2", "1"):
        page.run(SENSITIVITY, sensitivity)
        curve_is_of(page, downloads, sensitivity)


def decoded(png):
    """Width, height and the bytes of the rows of a PNG file, each after its filter."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    data, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += length + 12
    return width, height, zlib.decompress(data)


def test_the_curve_and_its_point_can_be_read_and_taken(page):
    page.until(lambda: len(page.all("#curve path.curve")) == 3 and len(page.all("#curve circle.dot")) == 3)
    page.type_into("#curve svg", Keys.ARROW_RIGHT * 3)
    told = page.find("#curve .readout").text
    assert told.startswith("ε = 0.00")
    page.type_into("#curve svg", Keys.ENTER)
    page.until(lambda: page.find("#amount").get_attribute("value") == re.search(r"ε = ([\d.]+)", told)[1])


def test_nothing_is_asked_from_outside(page):
    """By the browser's own log of requests, over everything that the page does."""
    page.requested()
    page.open()
    page.press("[data-draws='100']")
    page.press("#needed button")
    page.until(lambda: "Ask for" in page.text("needed-outcome"))
    asked = page.requested()
    assert len(asked) > 15
    assert {address for address in asked if not address.startswith((page.address, "data:", "blob:"))} == set()
    failing = "fetch('https://example.com/').then(() => 'sent', () => 'refused').then(arguments[0])"
    assert page.driver.execute_async_script(failing) == "refused"  # by the policy of the page itself


def test_the_page_has_no_errors(page):
    # No budget is typed here: 0 is the first key of 0.2, and the page asks for it if the next key comes late. That
    # request is refused, which is right, and Chromium logs it as an error.
    page.open(amount=None)  # what an earlier test left on its way is answered before the log is emptied
    page.driver.get_log("browser")
    page.open(amount=None)
    page.choose("shown", "100")
    page.find("#slider").send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: shows(page, CLOSE_RACE))
    assert page.driver.get_log("browser") == []
