"""Fetches of an identity provider's documents from a real HTTPS server that misbehaves."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trustme

from barnabas.broker.security.oauth.https_fetch import FetchError, fetch_https

MAX_BYTES = 1000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


@pytest.fixture(name="authority", scope="module")
def create_authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def _trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def provider(authority: trustme.CA, answer: Callable[[socket.socket, str], None]) -> Iterator[str]:
    """Serve each connection by `answer(connection, url)` until the block ends; gives the URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"https://localhost:{listening.getsockname()[1]}/keys"

    def serve() -> None:
        while True:
            try:
                accepted, _ = listening.accept()
            except OSError:
                return
            with suppress(OSError), context.wrap_socket(accepted, server_side=True) as connection:
                connection.recv(65536)
                answer(connection, url)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield url
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(30)
        assert not thread.is_alive()


def drip(connection: socket.socket, text: bytes) -> None:
    """Send a byte at a time, each well before a timeout of one wait, until the client leaves."""
    left = threading.Event()
    for at in range(len(text)):
        connection.sendall(text[at : at + 1])
        left.wait(0.05)


def test_a_body_is_returned(authority: trustme.CA) -> None:
    with provider(authority, lambda connection, _: connection.sendall(HEAD + b"keys")) as url:
        assert fetch_https(url, max_bytes=MAX_BYTES, timeout_seconds=10) == b"keys"


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 400,
        b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n" + b"x" * 400,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100,
    ],
    ids=["head", "body", "chunks"],
)
def test_a_provider_that_drips_bytes_is_left_at_the_deadline(authority: trustme.CA, text: bytes) -> None:
    with (
        provider(authority, lambda connection, _: drip(connection, text)) as url,
        pytest.raises(FetchError, match=r"cannot be fetched: no complete response within 0\.5 s"),
    ):
        fetch_https(url, max_bytes=MAX_BYTES, timeout_seconds=0.5)


def test_redirections_share_the_deadline(authority: trustme.CA) -> None:
    def redirect(connection: socket.socket, url: str) -> None:
        threading.Event().wait(0.3)
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: %s?%d\r\n\r\n" % (url.encode(), connection.fileno()))

    with provider(authority, redirect) as url, pytest.raises(FetchError, match=r"no complete response within 0\.5 s"):
        fetch_https(url, max_bytes=MAX_BYTES, timeout_seconds=0.5)


def test_a_redirection_away_from_https_is_not_followed(authority: trustme.CA) -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/keys\r\n\r\n"
    with (
        provider(authority, lambda connection, _: connection.sendall(answer)) as url,
        pytest.raises(FetchError, match=r"redirects to http://127\.0\.0\.1:1/keys, which is not https"),
    ):
        fetch_https(url, max_bytes=MAX_BYTES, timeout_seconds=10)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"no HTTP at all\r\n\r\n", "cannot be fetched"),
        (b"", "cannot be fetched"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nke", "cannot be fetched"),
        (b"HTTP/1.1 503 No\r\n\r\n", "answered 503"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_BYTES + 1), "has more than 1000 bytes"),
    ],
    ids=["status", "nothing", "chunk", "error", "size"],
)
def test_a_broken_response_is_an_error_of_the_fetch(authority: trustme.CA, answer: bytes, reason: str) -> None:
    with (
        provider(authority, lambda connection, _: connection.sendall(answer)) as url,
        pytest.raises(FetchError, match=reason),
    ):
        fetch_https(url, max_bytes=MAX_BYTES, timeout_seconds=10)
