"""The page for everybody: names, keyboard, contrast, narrow screens, light and dark, and less motion."""

import itertools

import pytest

browsing = pytest.importorskip("tests.explore.browsing", exc_type=ImportError)
Keys = browsing.Keys

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

# The roles that a screen reader's user moves between, each of which must have a name.
NAMED = {"button", "checkbox", "combobox", "image", "img", "link", "radio", "region", "slider", "spinbutton"}
NAMED |= {"table", "textbox", "RadioGroup", "group", "note", "DisclosureTriangle", "form"}

# The contrast of every visible text with what is painted behind it (WCAG 2.2: at least 4.5, large text 3).
CONTRAST = """
const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data]; };
const part = (v) => v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
function ground(element) {
  const layers = [];
  for (let one = element; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
  const over = (under, layer) => under.map((v, i) => v + (layer[i] - v) * layer[3] / 255);
  return layers.reverse().reduce(over, [255, 255, 255]);
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement, style = getComputedStyle(element);
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  if (element.closest('.hidden, .skip, option')) continue;
  const color = element.closest('svg') ? style.fill : style.color;
  const [a, b] = [light(rgba(color)), light(ground(element))].sort((x, y) => y - x);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
  found.push([(a + 0.05) / (b + 0.05), large ? 3 : 4.5, walker.currentNode.data.trim().slice(0, 30)]);
}
return found;
"""

# The contrast of the marks of the charts with their card (WCAG 2.2: at least 3).
MARKS = """
const probe = document.createElement('span'); document.querySelector('.card').append(probe);
const seen = ['--style-0', '--style-1', '--style-2', '--style-3', '--style-4', '--ball', '--card'].map(name => {
  probe.style.color = `var(${name})`; return getComputedStyle(probe).color; });
probe.remove();
return seen.map(color => color.match(/\\d+/g).slice(0, 3).map(Number));
"""


@pytest.fixture(
    scope="module",
    params=[(1320, False, "select"), (1320, True, "top_k"), (390, False, "quantiles"), (390, True, "mode")],
    ids=["light", "dark", "phone", "dark-phone"],
)
def page(browser, request):
    width, dark, question = request.param
    browser.open(width=width, dark=dark, question=question, amount=None)
    browser.press("#needed > button")
    browser.until(lambda: browser.all("#needed-outcome table"))
    for summary in browser.all("summary"):
        if summary.is_displayed():
            summary.send_keys(Keys.ENTER)
    browser.until(lambda: len(browser.all(".tools table")) == 3)
    return browser


def test_everything_that_can_be_reached_has_a_name(page):
    """By the tree that Chromium gives to screen readers."""
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    shown = [node for node in nodes if not node["ignored"]]
    roles = {node["role"]["value"] for node in shown}
    assert {"slider", "radio", "image", "button", "note", "main", "heading", "table"} <= roles | {"img"}
    nameless = [
        node["role"]["value"]
        for node in shown
        if node["role"]["value"] in NAMED - {"table", "group", "form"}
        and not node.get("name", {}).get("value", "").strip()
    ]
    assert nameless == []


def test_every_field_has_a_label(page):
    fields = "return [...document.querySelectorAll('input, select, textarea')]"
    assert page.run(f"{fields}.length") >= 19
    assert page.run(f"{fields}.filter(one => !one.labels.length && !one.ariaLabel).map(one => one.id)") == []


def test_texts_have_contrast(page):
    found = page.run(CONTRAST)
    assert len(found) > 80
    assert [one for one in found if one[0] < one[1]] == []


def test_marks_have_contrast(page):
    def lightness(color):
        linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in color]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    *marks, card = map(lightness, page.run(MARKS))
    for mark in marks:
        low, high = sorted((mark, card))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_nothing_is_wider_than_the_screen(page):
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.run(wide) == 0


def test_buttons_are_large_enough_to_touch(page):
    """WCAG 2.2, Target Size (Minimum): 24 pixels."""
    small = "return [...document.querySelectorAll('button, select, input:not([type=radio], [type=checkbox])')]"
    assert page.run(f"{small}.filter(one => one.checkVisibility() && one.getBoundingClientRect().height < 24)") == []


def test_the_structure_is_sound(page):
    ids = page.run("return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    levels = page.run("return [...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert page.run("return document.documentElement.lang") == "en"
    assert page.run("return [...document.querySelectorAll('table')].every(one => one.querySelector('th[scope=col]'))")


def test_the_notice_stays(page):
    page.run("window.scrollTo(0, document.body.scrollHeight)")
    box = page.run(
        "const box = document.querySelector('.notice').getBoundingClientRect(); return [box.top, box.height]"
    )
    assert box[0] == 0
    assert box[1] > 20
    page.run("window.scrollTo(0, 0)")


def test_the_tab_key_reaches_everything_and_is_seen(browser):
    browser.open()
    browser.until(lambda: not browser.all(".tools button:disabled"))  # they are, while the curve is on its way
    wanted = browser.run(
        "return [...document.querySelectorAll('button, select, textarea, summary, svg[tabindex], pre, input')]"
        ".filter(one => one.checkVisibility() && !one.disabled && (one.type !== 'radio' || one.checked)).length"
    )
    browser.run("document.activeElement.blur()")
    seen = "const one = document.activeElement; if (one !== document.body && !one.seen) { one.seen = true;"
    seen += (
        " window.reached = (window.reached ?? 0) + one.matches('button, select, textarea, summary, svg, pre, input');"
    )
    seen += (
        " const style = getComputedStyle(one); if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2)"
    )
    seen += " (window.unseen ??= []).push(one.id || one.tagName); }"
    for _ in range(wanted + 15):
        browsing.ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        browser.run(seen)
    assert browser.run("return window.reached") == wanted
    assert browser.run("return window.unseen ?? []") == []


def test_a_screen_reader_hears_the_sentence_once_the_slider_rests(browser):
    browser.open()
    browser.find("#slider").send_keys(Keys.ARROW_RIGHT * 5)
    epsilon = browser.find("#amount").get_attribute("value")
    spoken = "return document.getElementById('spoken').textContent"
    browser.until(lambda: f"ε = {epsilon} " in browser.run(spoken))
    assert browser.find("#spoken").get_attribute("aria-live") == "polite"
    assert browser.find("#sentence").get_attribute("aria-live") is None


def test_less_motion(browser):
    browser.open()
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.press("[data-draws='1']")
    browser.until(lambda: browser.all("#probabilities .ball"))
    name = "return getComputedStyle(document.querySelector('#probabilities .ball')).animationName"
    assert browser.run(name) == "none"


def test_the_narrowest_phone(browser):
    browser.open(width=320)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.run(wide) == 0
