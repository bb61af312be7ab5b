"""Signing in and out in a real browser, over TLS as docs/console.md advises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from barnabas.clients.secure_testing import SecureBrokerProcess
from barnabas.clients.testing import secure_broker
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import ENTER, Browser
from tests.support.console import client_file, running_console
from tests.support.tls import pem_bundle


@pytest.fixture(scope="module")
def secured(browser: Browser) -> Iterator[SecureBrokerProcess]:
    """A broker with TLS, the super user `admin`, and the topic `orders`."""
    with secure_broker() as running:
        running.create_topic("orders")
        yield running


@pytest.fixture(scope="module")
def signing_in(secured: SecureBrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a console with TLS that people sign in to."""
    directory: Path = tmp_path_factory.mktemp("console")
    certificate = directory / "console.pem"
    certificate.write_text(pem_bundle(trustme.CA().issue_cert("127.0.0.1")))
    options = ["--command-config", str(client_file(directory, secured.client_properties))]
    options += ["--sign-in", "SCRAM-SHA-512", "--tls-certificate", str(certificate), "--tls-key", str(certificate)]
    with running_console(secured.bootstrap, *options, log=directory / "stderr") as client:
        yield f"https://{client.host}"


def test_the_sign_in_is_accessible_on_every_screen(browser: Browser, signing_in: str) -> None:
    for scheme, width in (("light", 1280), ("dark", 320)):
        browser.prefer(scheme)
        browser.resize(width)
        browser.open(f"{signing_in}/")
        assert findings(browser) == [], f"{scheme}, {width} pixels"
        assert browser.run("return document.scrollingElement.scrollWidth") == width


def test_one_signs_in_by_keyboard_to_the_page_one_asked_for_and_out_again(
    browser: Browser, secured: SecureBrokerProcess, signing_in: str
) -> None:
    browser.open(f"{signing_in}/topics?search=ord")
    assert browser.path.startswith("/sign-in")
    assert browser.run("return document.activeElement.name") == "user"
    browser.fill("User", "admin")
    browser.fill("Password", "wrong")
    with browser.next_page():
        browser.type(ENTER)
    assert "refused this user or password" in browser.text
    browser.fill("Password", secured.password)
    with browser.next_page():
        browser.type(ENTER)
    assert browser.path == "/topics?search=ord"
    assert "orders" in browser.text
    assert secured.password not in browser.driver.page_source
    cookie = browser.driver.get_cookies()[0]
    assert cookie["httpOnly"]
    assert cookie["secure"]
    browser.press("Sign out")
    assert browser.path == "/sign-in"
    browser.open(f"{signing_in}/topics")
    assert browser.path.startswith("/sign-in")
