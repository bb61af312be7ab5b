"""Every page in a real browser: without errors, by keyboard, on a narrow screen, in both schemes, checked by axe."""

from __future__ import annotations

import pytest

from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import ENTER, TAB, Browser

PAGES = (
    "/",
    "/topics",
    "/topics?search=nothing+matches",
    "/new-topic",
    "/topics/orders",
    "/topics/orders/records",
    "/topics/orders/records/0/3",
    "/topics/orders/records?partition=all",
    "/topics/orders/search?text=order&key=k6",
    "/topics/orders/tail",
    "/topics/orders/produce",
    "/topics/hostile/records",
    "/topics/hostile/records/0/0",
    "/topics/orders/settings",
    "/topics/orders/settings/retention.ms?to=3600000",
    "/topics/orders/groups",
    "/topics/orders/changes",
    "/groups",
    "/groups/billing",
    "/reset-group/billing?target=earliest",
    "/transactions",
    "/users",
    "/acls",
    "/quotas",
    "/client-metrics",
    "/settings",
    "/settings/log.retention.ms?to=3600000",
)
"""Add each new page here, with a query that makes it show all that it has."""

NARROW = 320
WIDE = 1280


@pytest.fixture(autouse=True)
def wide_and_light(browser: Browser) -> None:
    """Start each test alike."""
    browser.resize(WIDE)
    browser.prefer("light")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_without_an_error_of_a_script_or_a_policy(browser: Browser, address: str, path: str) -> None:
    browser.open(address + path)
    browser.wait("[...document.querySelectorAll('.chart .latest')].every((each) => each.textContent)")
    assert browser.errors() == []
    assert browser.run("return document.querySelectorAll('h1').length") == 1
    assert browser.run("return document.title").endswith("Barnabas")


@pytest.mark.parametrize("path", PAGES)
def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(
    browser: Browser, address: str, path: str
) -> None:
    browser.open(address + path)
    # A search that is over disables its button, which then is no stop.
    browser.wait("[...document.querySelectorAll('[data-stop]:not([data-resume])')].every((each) => each.disabled)")
    expected = browser.focusable()
    stops = browser.tab_stops(len(expected))
    assert [name for name, _ in stops] == expected
    assert [name for name, is_seen in stops if not is_seen] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_narrow_screen_needs_no_scrolling_to_the_side(browser: Browser, address: str, path: str) -> None:
    browser.resize(NARROW)
    browser.open(address + path)
    assert browser.run("return document.scrollingElement.scrollWidth") == NARROW


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(browser: Browser, address: str, path: str) -> None:
    for scheme, width in (("light", WIDE), ("dark", WIDE), ("light", NARROW)):
        browser.prefer(scheme)
        browser.resize(width)
        browser.open(address + path)
        assert findings(browser) == [], f"{scheme}, {width} pixels"


def test_the_skip_link_leads_past_the_navigation(browser: Browser, address: str) -> None:
    browser.open(address + "/topics")
    browser.type(TAB)
    assert browser.run("return document.activeElement.textContent") == "Skip to the content"
    browser.type(ENTER)
    assert browser.run("return document.activeElement.id") == "content"
    browser.type(TAB)
    assert browser.run("return document.activeElement.closest('main') !== null")


def test_the_dark_scheme_is_dark(browser: Browser, address: str) -> None:
    brightness = "return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)[0]"
    browser.open(address + "/")
    assert browser.run(brightness) > 200
    browser.prefer("dark")
    assert browser.run(brightness) < 60
