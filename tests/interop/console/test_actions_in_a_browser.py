"""What people do on the pages, in a real browser: forms are filled and sent as the pages have them."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig
from tests.support.browser.chromium import ENTER, Browser
from tests.support.daemon import Daemon

WIDEST_LABEL = """
return [...document.querySelectorAll('.chart')].flatMap((each) => {
    const axis = each.plot.axes[1];
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = axis.font[0].replace(/[\\d.]+px/, '12px');
    return (axis._values ?? []).filter((label) => pen.measureText(label).width + 10 > axis._size);
})
"""
"""The labels beside the charts that are wider than the room for them."""

FIGURE = "[...document.querySelectorAll('.figures > div')].find((each) => each.firstChild.textContent === '{}')"


@pytest.fixture(autouse=True)
def wide_and_light(browser: Browser) -> None:
    """Start each test alike."""
    browser.resize(1280)
    browser.prefer("light")


def test_topics_are_searched_by_keyboard(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics")
    browser.fill("Search", "pay")
    with browser.next_page():
        browser.type(ENTER)
    assert browser.path == "/topics?search=pay"
    assert "payments" in browser.text
    assert "orders" not in browser.text


def test_a_topic_is_created_changed_and_deleted(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics")
    browser.follow("New topic")
    browser.fill("Name", "made")
    browser.fill("Partitions", "2")
    browser.fill("Settings", "retention.ms=60000")
    browser.press("Create the topic")
    assert browser.path == "/topics/made"

    browser.follow("Settings", "Topic")
    browser.follow("retention.ms")
    browser.fill("New value", "70000")
    browser.press("Show the effect")
    browser.press("Set retention.ms to 70000")
    assert "70000" in browser.text
    browser.press("Remove the topic's value")
    assert "70000" not in browser.text

    browser.open(f"{address}/topics/made")
    browser.follow("Changes")
    browser.fill("Partitions in all", "3")
    browser.press("Add partitions")
    assert "3 partitions" in browser.text
    assert browser.errors() == []
    browser.fill("The topic's name", "mad")
    browser.press("Delete the topic")
    assert browser.path == "/topics/made/changes"
    browser.fill("The topic's name", "made")
    browser.press("Delete the topic")
    assert browser.path == "/topics"
    assert "made" not in browser.text


def test_records_before_an_offset_are_deleted(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics/orders/changes")
    browser.fill("Partition", "1: 0 to 30")
    browser.fill("First offset to keep", "5")
    browser.fill("The offset again", "5")
    browser.press("Delete records")
    assert "starts at offset 5" in browser.text


def test_a_segment_of_the_picture_leads_to_what_explains_it(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics/orders")
    browser.run("document.querySelector('.segments a').focus()")
    browser.type(ENTER)
    browser.wait("document.querySelector('#partition-0 details').open")
    assert browser.run("return document.querySelector(location.hash).checkVisibility()")


def test_records_are_found_by_offset_and_shown_one_by_one(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics/orders/records")
    browser.fill("From offset", "20")
    browser.fill("Show as", "hex")
    browser.press("Show")
    assert "7b 22 6f" in browser.text
    browser.follow("22")
    assert browser.path.startswith("/topics/orders/records/0/22")
    assert "content-type" in browser.text


def test_what_records_contain_is_not_run(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics/hostile/records")
    assert "<img src=x onerror=" in browser.text
    browser.follow("0")
    assert "<img src=x onerror=" in browser.text
    browser.follow("Records", "Topic")
    browser.follow("Search")
    browser.fill("Text", "onerror")
    browser.press("Search")
    browser.wait("document.body.innerText.includes('Done.')")
    assert browser.run("return document.querySelector('[data-rows]').innerText").count("<img src=x onerror=") == 2
    assert browser.run("return document.querySelectorAll('main img').length") == 0
    assert browser.run("return typeof window.injected") == "undefined"
    assert browser.errors() == []


def test_a_record_that_is_produced_appears_on_a_page_that_follows_the_end(browser: Browser, address: str) -> None:
    browser.open(f"{address}/topics/payments/tail")
    browser.wait("document.body.innerText.includes('Following')")
    following = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    try:
        browser.open(f"{address}/topics/payments/records")
        browser.follow("Produce a record")
        browser.fill("Key", "k9")
        browser.fill("Value", "produced in a browser")
        browser.press("Produce")
        assert "produced in a browser" in browser.text
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(following)
    browser.wait("document.querySelector('[data-rows]').innerText.includes('produced in a browser')")
    browser.run("document.querySelector('[data-stop]').click()")
    assert "Stopped." in browser.text


def test_the_overview_changes_while_it_is_open_and_keeps_the_focus(
    browser: Browser, address: str, broker: Daemon
) -> None:
    browser.open(f"{address}/")
    before = browser.run(f"return {FIGURE.format('Topics')}.lastChild.textContent")
    browser.run("document.querySelector('[aria-label=Disks]').focus()")

    async def create() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic("appeared")

    asyncio.run(create())
    browser.wait(f"{FIGURE.format('Topics')}.lastChild.textContent === '{int(before) + 1}'")
    assert browser.run("return document.activeElement.getAttribute('aria-label')") == "Disks"


def test_offsets_are_reset_after_a_dry_run_and_the_group_is_deleted(browser: Browser, address: str) -> None:
    browser.open(f"{address}/groups/billing")
    browser.follow("Reset offsets, or delete the group")
    browser.fill("Go on at", "the committed offset, shifted by")
    browser.fill("Time, offset or shift", "-3")
    browser.press("Show what would change")
    assert "-3" in browser.text
    browser.press("Commit these offsets")
    assert browser.path == "/groups/billing"
    row = browser.run("return document.querySelector('[aria-label=\"Committed offsets\"] tbody').innerText")
    assert row.split() == ["orders", "0", "7", "30", "23"]
    browser.follow("Reset offsets, or delete the group")
    browser.fill("The group's name", "billing")
    browser.press("Delete the group")
    assert browser.path == "/groups"
    assert "billing" not in browser.text


def test_an_open_transaction_is_aborted(browser: Browser, address: str) -> None:
    browser.open(f"{address}/transactions")
    assert "Ongoing" in browser.text
    browser.press("Abort the transaction of stuck")
    assert browser.path == "/transactions"
    browser.wait("location.reload() || !document.body.innerText.includes('Ongoing')")


def test_a_user_a_rule_and_a_quota_are_added_and_removed(browser: Browser, address: str) -> None:
    browser.open(f"{address}/users")
    browser.fill("User", "bob")
    browser.fill("Password", "bob-secret")
    browser.press("Set the password")
    browser.press("Delete the SCRAM-SHA-512 password of bob")
    assert "bob" not in browser.text

    browser.open(f"{address}/acls")
    browser.fill("Principal", "User:bob")
    browser.fill("Permission", "DENY")
    browser.fill("Resource (", "secret")
    browser.press("Add the rule")
    assert "User:bob" in browser.text
    browser.press("Delete the rule", begins=True)
    browser.press("Delete the rule", begins=True)
    assert "No rule matches" in browser.text

    browser.open(f"{address}/quotas")
    browser.fill("User", "bob")
    browser.fill("Value", "1000")
    browser.press("Set the limit")
    assert "bob" in browser.text
    browser.press("Remove producer_byte_rate of user bob")
    assert "bob" not in browser.text
    assert browser.errors() == []


def test_a_brokers_property_is_set_and_removed(browser: Browser, address: str) -> None:
    browser.open(f"{address}/settings?search=log.retention.ms")
    browser.follow("log.retention.ms")
    browser.fill("New value", "7200000")
    browser.press("Set log.retention.ms")
    assert "7200000" in browser.text
    browser.press("Remove the value", begins=True)
    assert "7200000" not in browser.text
    assert browser.errors() == []


def test_charts_are_drawn(browser: Browser, address: str) -> None:
    # The last test of the file, because the second sample is taken half a minute after the console has started.
    browser.open(f"{address}/topics/orders")
    browser.wait("document.querySelector('.chart canvas') !== null")
    assert "in the time shown" in browser.text
    assert browser.run("return document.querySelector('.chart tbody tr').cells[1].textContent.endsWith('/s')")
    assert browser.errors() == []
    browser.resize(320)
    browser.open(f"{address}/")
    browser.wait("document.querySelectorAll('.chart canvas').length === 2")
    assert browser.run(WIDEST_LABEL) == []


def test_a_picture_on_a_narrow_screen_begins_with_the_newest_segments(browser: Browser, address: str) -> None:
    browser.resize(320)
    browser.open(f"{address}/topics/orders")
    place = "document.querySelector('.segments')"
    assert browser.run(f"return {place}.scrollWidth - {place}.clientWidth") > 0
    browser.wait(f"{place}.scrollLeft + {place}.clientWidth >= {place}.scrollWidth - 1")


def test_the_colours_of_the_legend_are_those_of_the_segments_in_both_schemes(browser: Browser, address: str) -> None:
    colours = """
    const colour = (each, kind) => getComputedStyle(document.querySelector(each))[kind];
    return [colour('.swatch.active', 'backgroundColor'), colour('.segment.active', 'fill')]
    """
    found = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(f"{address}/topics/orders")
        legend, segment = browser.run(colours)
        assert legend == segment
        found.add(legend)
    assert len(found) == 2
