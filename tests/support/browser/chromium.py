"""A headless Chromium (Debian: `chromium`, `chromium-driver`) that uses pages as a person does.

with running_browser(directory) as browser:
    browser.open("http://127.0.0.1:8080/topics")
    browser.fill("Search", "orders")
    browser.press("Show")
    assert browser.errors() == []
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from tests.support.interop import need_commands

TAB, ENTER = str(Keys.TAB), str(Keys.ENTER)

_WAIT_S = 60
_POLL_S = 0.05
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-search-engine-choice-screen",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--lang=en",
)
_FOCUSABLE = """
const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]";
return [...document.querySelectorAll(kinds)]
    .filter((each) => each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true}))
"""
_NAMED = """
const nameOf = (each) => {
    const name = each.getAttribute("aria-label") || each.name || each.labels?.[0]?.textContent || each.textContent;
    return `${each.tagName.toLowerCase()} ${name.trim().replace(/\\s+/g, " ").slice(0, 80)}`;
};
"""


class Browser:
    """One tab. Every wait has a timeout."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Load a page, and forget what earlier ones have logged."""
        self._logged()
        self.driver.get(url)

    def errors(self) -> list[str]:
        """Return what the console has logged since the page was opened: failures of scripts, requests and policies."""
        return [
            entry["message"] for entry in self._logged() if entry["level"] == "SEVERE" or entry["source"] == "security"
        ]

    def _logged(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return entries

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the page in pixels; a window could not be as narrow as 320."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Prefer the colour scheme `light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what the body of a function returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        WebDriverWait(self.driver, _WAIT_S, _POLL_S).until(
            lambda driver: driver.execute_script(f"return {condition}"), condition
        )

    @property
    def path(self) -> str:
        """Path and query of the page."""
        return str(self.run("return location.pathname + location.search"))

    @property
    def text(self) -> str:
        """What the page shows."""
        return str(self.run("return document.body.innerText"))

    def control(self, label: str) -> WebElement:
        """Return the control whose label begins so."""
        kinds = "self::input or self::select or self::textarea"
        return self.driver.find_element(By.XPATH, f'//label[starts-with(normalize-space(.), "{label}")]//*[{kinds}]')

    def fill(self, label: str, value: str) -> None:
        """Type a value, in place of what is there, or choose what is shown so."""
        control = self.control(label)
        if control.tag_name == "select":
            Select(control).select_by_visible_text(value)
            return
        control.send_keys(Keys.CONTROL, "a")
        control.send_keys(Keys.DELETE, value)

    def press(self, name: str, *, begins: bool = False) -> None:
        """Press the button of this name, or the first whose name begins so; wait for the page that it leads to."""
        shown = f'normalize-space(.)="{name}" or @aria-label="{name}"'
        beginning = f'starts-with(normalize-space(.), "{name}") or starts-with(@aria-label, "{name}")'
        with self.next_page():
            self.driver.find_element(By.XPATH, f"//button[{beginning if begins else shown}]").click()

    def follow(self, text: str, navigation: str = "") -> None:
        """Follow the link of this text, in the navigation of this name if there is one; wait for its page."""
        within = f'//nav[@aria-label="{navigation}"]' if navigation else ""
        with self.next_page():
            self.driver.find_element(By.XPATH, f'{within}//a[normalize-space(.)="{text}"]').click()

    @contextmanager
    def next_page(self) -> Iterator[None]:
        """Wait at the end of the block until another page has loaded, even one of the same address."""
        self.run("window.isLeft = true")
        yield
        self.wait("!window.isLeft && document.readyState === 'complete'")

    def type(self, *keys: str) -> None:
        """Press keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def focusable(self) -> list[str]:
        """Return what the keyboard should reach, in the order of the document: kind and name of each element."""
        found: list[str] = self.run(f"{_NAMED}{_FOCUSABLE}.map(nameOf)")
        return found

    def tab_stops(self, count: int) -> list[tuple[str, bool]]:
        """Press Tab so often from the beginning of the page; return where the focus was, and whether one saw it."""
        self.run(
            f"""
            {_NAMED}
            window.stops = [];
            document.addEventListener("focusin", ({{target}}) => {{
                const {{outlineStyle, outlineWidth}} = getComputedStyle(target);
                window.stops.push([nameOf(target), outlineStyle !== "none" && parseFloat(outlineWidth) >= 1]);
            }});
            """
        )
        self.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB * count)
        return [(name, seen) for name, seen in self.run("return window.stops")]

    def screenshot(self) -> bytes:
        """Return the visible part of the page as a PNG."""
        return base64.b64decode(self.driver.get_screenshot_as_base64())


@contextmanager
def running_browser(directory: Path) -> Iterator[Browser]:
    """Run Chromium with an empty profile in `directory` until the block ends; skips the test if it is missing."""
    need_commands("chromium", "chromedriver")
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for option in (*_OPTIONS, f"--user-data-dir={directory / 'profile'}"):
        options.add_argument(option)
    options.accept_insecure_certs = True
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # The path of the driver is named: without it, Selenium would look for one on the network.
    service = ChromeService(str(shutil.which("chromedriver")), log_output=str(directory / "chromedriver.log"))
    driver = Chrome(options=options, service=service)
    try:
        driver.set_page_load_timeout(_WAIT_S)
        driver.set_script_timeout(_WAIT_S)
        yield Browser(driver)
    finally:
        driver.quit()
