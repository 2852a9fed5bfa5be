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

WIDTH, HEIGHT = 1200, 1430


def screenshot():
    """The page as it starts, once the curve is whole, as a PNG file."""
    with served() as running, tempfile.TemporaryDirectory() as folder:
        driver = start_browser(folder, folder)
        try:
            page = Page(driver, running.address).open(WIDTH, HEIGHT, question=None)
            page.run("document.querySelector('#curve summary').click()")
            told = "return document.querySelector('#curve table')?.textContent ?? '\N{EN DASH}'"
            page.until(lambda: "\N{EN DASH}" not in page.run(told))
            page.run("document.querySelector('#curve summary').click()")
            return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"])
        finally:
            driver.quit()


if __name__ == "__main__":
    picture = Image.open(io.BytesIO(screenshot())).convert("RGB")
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE)  # a third of the size, and no eye sees it
    few.save(Path(sys.argv[1]), optimize=True)
