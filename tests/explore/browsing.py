"""A real Chromium without a window, driven by Selenium."""

import json
import shutil
import time

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

# What works without a screen and as root, and asks nobody outside for anything.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1320,900",
)
PATIENCE = 30


class NoBrowser(Exception):
    """There is no Chromium, or no driver of it."""


def found_browser():
    """The paths of a Chromium and of its driver."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise NoBrowser("no Chromium and chromedriver here: tools/install-system-packages installs them on Debian")
    return chromium, driver


def start_browser(profile, downloads):
    chromium, driver = found_browser()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


class Page:
    """The explorer's page as a reader uses it."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, width=1320, height=900, dark=False, question="select", amount="0.2"):
        """Open the page with a question at a budget; with neither, as it begins."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.driver.get(self.address)
        self.until(lambda: self.text("sentence") and self.driver.find_elements(By.CSS_SELECTOR, "#curve svg"))
        if question:
            self.ask(question, amount)
        return self

    def ask(self, question, amount=None):
        """Choose a question and, if given, a budget, and wait for its answer."""
        choice = f"input[name=question][value={question}]"
        if not self.find(choice).is_selected():
            self.run("window.begun = document.getElementById('sentence').textContent")
            self.find(choice).send_keys(Keys.SPACE)
            self.until(lambda: self.text("sentence") != self.run("return window.begun"))
        if amount is not None:
            self.write("amount", amount)
            self.until(lambda: f" = {amount} " in self.text("sentence"))
        self.until(lambda: self.all("#curve svg"))
        return self

    def find(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, name):
        return self.find(f"#{name}").text

    def until(self, holds):
        return WebDriverWait(self.driver, PATIENCE, 0.02, [StaleElementReferenceException]).until(lambda _: holds())

    def write(self, name, value):
        field = self.find(f"#{name}")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(value)

    def choose(self, name, value):
        Select(self.find(f"#{name}")).select_by_value(value)

    def choose_candidates(self, count):
        self.write("count", f"{count}{Keys.TAB}")
        self.until(lambda: f"{count:,} candidates" in self.text("scores-summary"))

    def press(self, css):
        """Press by the keyboard: focus and Enter."""
        self.find(css).send_keys(Keys.ENTER)

    def type_into(self, css, *keys):
        """Type into what takes keys without being a field, as a chart does."""
        self.run("document.querySelector(arguments[0]).focus()", css)
        ActionChains(self.driver).send_keys(*keys).perform()

    def load(self, path):
        self.find("#file").send_keys(str(path))
        self.until(lambda: path.name in self.text("scores-summary") or self.text("scores-error"))

    def figures(self):
        """The figures of the table, as the numbers that they show."""
        rows = self.run(
            "return [...document.querySelectorAll('#figures tbody tr')].map(row => ['best', 'mean', 'error_95']"
            ".map(name => Number(row.querySelector(`td[data-name=${name}]`).dataset.value)))"
        )
        return dict(zip(("permute-and-flip", "exponential", "noisy-max"), rows, strict=True))

    def requested(self):
        """Every address that the browser asked for, by its own network log."""
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [entry["params"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent]


def file_in(folder, name):
    """The file of this name, once it is whole."""
    deadline = time.monotonic() + PATIENCE
    while not (folder / name).exists() or not (folder / name).stat().st_size:
        assert time.monotonic() < deadline, f"{name} was not saved"
        time.sleep(0.02)
    return folder / name
