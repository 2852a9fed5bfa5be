"""The picture of docs/explore.md.

python -m tests.explore.screenshot docs/pictures/explorer.png
"""

import base64
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.explore.browsing import Page, start_browser
from tests.explore.serving import served

WIDTH, HEIGHT = 1200, 1800


def screenshot():
    """The page as it starts, down to the first chart, as a PNG file."""
    with served() as running, tempfile.TemporaryDirectory() as folder:
        driver = start_browser(folder, folder)
        try:
            page = Page(driver, running.address).open(WIDTH, HEIGHT, question=None)
            page.until(lambda: page.text("compared") and page.all("#probabilities svg"))
            bottom = page.run("return document.getElementById('probabilities').getBoundingClientRect().bottom")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": bottom + 16, "scale": 1}
            return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})["data"])
        finally:
            driver.quit()


if __name__ == "__main__":
    picture = Image.open(io.BytesIO(screenshot())).convert("RGB")
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE)  # a third of the size, and no eye sees it
    few.save(Path(sys.argv[1]), optimize=True)
