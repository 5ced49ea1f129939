"""Headless Chromium for the tests of pages: where it is found, how a page is opened, which texts overlap."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"""Commands that start one, as its packagers name it; ``CHROME`` and ``CHROMEDRIVER`` name others."""

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

OVERLAPS = """
const boxes = [...document.querySelectorAll(arguments[0])]
  .filter((e) => e.textContent.trim() || e.matches('.modebar-btn'))
  .map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0 && b.height > 0);
const found = [];
for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
  const [a, b] = [boxes[i][1], boxes[j][1]];
  const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  if (across > 1 && down > 3) found.push([boxes[i][0], boxes[j][0]]);
}
return found;
"""
"""Pairs of texts whose boxes lie over each other by more than rounding and the space between lines."""

PATIENCE = 60
"""Longest that a page may take to load on a machine with other work [s]."""

WHOLE = "return document.URL === arguments[0] && document.readyState === 'complete'"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, headless; where ``BROWSER_TESTS`` is ``required``, none is a failure instead of a skip."""
    chromium = os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    if not chromium or not driver:
        lacking = pytest.fail if os.environ.get("BROWSER_TESTS") == "required" else pytest.skip
        lacking("install chromium and chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[[str, int], Any]]:
    """Open the text of a page at a width; afterwards the console must hold nothing severe."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(html: str, width: int) -> Any:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        browser.set_window_size(width, 1000)
        browser.get(path.as_uri())
        WebDriverWait(browser, PATIENCE).until(lambda b: b.execute_script(WHOLE, path.as_uri()))
        return browser

    yield open_page
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture
def sized(browser: Any) -> Iterator[Callable[[int, int], None]]:
    """Give the browser a screen, a phone's too, which is narrower than any window; afterwards it has its window's."""

    def resize(width: int, height: int) -> None:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    yield resize
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
