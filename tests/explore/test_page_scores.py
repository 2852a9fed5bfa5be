"""Scores on the page in a real Chromium: files, pasted lines and shapes, and the labels of their candidates."""

import pytest

from dpselect.explore.scores import made
from tests.explore.shown import CLOSE_RACE, shows

pytest.importorskip("tests.explore.browsing", exc_type=ImportError)

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


@pytest.fixture
def page(browser):
    return browser.open()


def test_a_file_is_shown(page, tmp_path):
    scores = [index * index % 1009 for index in range(1024)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(f"row {index},{score}" for index, score in enumerate(scores)))
    page.load(path)
    page.until(lambda: page.text("scores-summary") == "mine.csv: 1,024 candidates")
    page.until(lambda: shows(page, scores))
    page.choose("shown", "all")
    page.until(lambda: len(page.all("#probabilities path.curve")) == 3)


def test_a_file_keeps_the_unit_and_has_its_own_number_of_candidates(page, tmp_path):
    page.choose_candidates(12)
    path = tmp_path / "four.csv"
    path.write_text("a,1\nb,2\nc,3\nd,4\n")
    page.load(path)
    page.until(lambda: shows(page, [1, 2, 3, 4]))
    assert " people on average" in page.text("sentence")
    count = page.find("#count")
    assert (count.get_attribute("value"), count.is_enabled()) == ("4", False)
    page.write("unit", "votes")
    page.load(path)
    page.until(lambda: " votes on average" in page.text("sentence"))
    page.choose("shape", "long-tail")
    page.until(lambda: shows(page, made("long-tail", 12).exact))
    assert (count.get_attribute("value"), count.is_enabled()) == ("12", True)
    assert page.find("#file").get_attribute("value") == ""


LONG = ["Fever and headache for days", "A broken arm or leg", "Cough", "A cut that needed three stitches"]


def test_labels_have_the_room_that_there_is(page, tmp_path):
    """Whole at the width of four, cut at the width of sixteen; and never over the edge or over one another."""
    path = tmp_path / "long.csv"
    for copies, whole in ((1, True), (4, False)):
        page.open()
        path.write_text("\n".join(f"{label},{score}" for score, label in enumerate(LONG * copies)))
        page.choose("shown", "20")
        page.load(path)
        page.until(lambda copies=copies: len(page.all("#probabilities text.name")) == 4 * copies)
        shown = [one.text for one in page.all("#probabilities text.name")]
        assert (sorted(shown) == sorted(LONG)) is whole
        assert {text.rstrip("…") for text in shown} >= {"Cough"}
    page.open(width=390)
    page.load(path)
    page.until(lambda: page.all("#probabilities text.name"))
    boxes = page.run(
        "const svg = document.querySelector('#probabilities svg').getBoundingClientRect();"
        "return [...document.querySelectorAll('#probabilities text.name')].map(one => one.getBoundingClientRect())"
        ".map(box => [box.left - svg.left, svg.bottom - box.bottom])"
    )
    assert min(map(min, boxes)) >= -8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,1\nb,hidden77\n", "the score on line 2 is not a number"),
        (b"1\n" * 2**20, "the file is larger than 1 MB: this page takes scores"),
    ],
)
def test_a_bad_file_gets_a_clear_message(page, tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    page.load(path)
    page.until(lambda: message in page.text("scores-error"))
    assert page.text("scores-error").startswith("bad.csv: ")
    assert "hidden77" not in page.text("scores-error")
    assert page.find("#file").get_attribute("value") == ""  # the box names no file that is not shown
    assert page.text("scores-summary") == "A close race: 30 candidates"
    assert shows(page, CLOSE_RACE, "0.2")


def test_pasted_scores_and_labels_are_text_not_markup(page):
    page.find("#paste-part summary").click()
    page.find("#paste").send_keys('"<img src=x onerror=window.broken=1>",5\n<b>b</b>,3\n')
    page.press("#paste-load")
    page.until(lambda: page.text("scores-summary") == "Pasted scores: 2 candidates")
    page.until(lambda: shows(page, [5, 3]))
    page.find("#probabilities details summary").click()
    page.until(lambda: "<b>b</b>" in page.find("#probabilities table").text)
    assert page.run("return window.broken === undefined && document.querySelector('main img, main b') === null")


def test_shapes_are_shown(page):
    page.choose("shape", "median")
    page.until(lambda: shows(page, made("median", 30).exact, monotonic=False))
    page.choose_candidates(64)
    page.until(lambda: shows(page, made("median", 64).exact, monotonic=False))
    page.choose("shape", "clear-winner")
    page.until(lambda: shows(page, made("clear-winner", 64).exact))
