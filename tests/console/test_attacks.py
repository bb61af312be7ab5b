"""What somebody without rights sends to a console: large bodies, and addresses that lead elsewhere."""

from __future__ import annotations

import asyncio
import html
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
import trustme

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.secure_testing import SecureBrokerProcess
from barnabas.clients.testing import secure_broker
from barnabas.commands.console import _warnings
from barnabas.console import server as server_module
from barnabas.console.security.body_limit import FORM_MAX_BYTES
from barnabas.console.server import ConsoleServer
from barnabas.console.settings import ConsoleSettings
from tests.support.console import ConsoleClient, client_file, running_console
from tests.support.key_updates import key_updates, log_keys

REGISTRY = "registry-password"
STATIC = Path(server_module.__file__).parent / "static"
PAGE = re.compile(r'(?:href|action)="(/[^"#]*)"')


@pytest.fixture(scope="module")
def secured() -> Iterator[SecureBrokerProcess]:
    """A broker with TLS and the super user `admin`."""
    with secure_broker() as running:
        running.create_topic("orders")
        yield running


@pytest.fixture(scope="module")
def port(secured: SecureBrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a console that people sign in to, and that may change things."""
    directory = tmp_path_factory.mktemp("console")
    options = ["--command-config", str(client_file(directory, secured.client_properties))]
    options += [
        "--sign-in",
        "SCRAM-SHA-512",
        "--allow-changes",
        "--schema-registry",
        f"http://u:{REGISTRY}@127.0.0.1:9",
    ]
    with running_console(secured.bootstrap, *options, log=directory / "stderr") as client:
        yield client.port


def status_after(port: int, head: str, body: bytes) -> int:
    """Send a request as bytes, and return the status of the answer."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode())
        try:
            connection.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the console has answered, and does not read on
        answer = b""
        while b"\r\n" not in answer:
            read = connection.recv(4096)
            if not read:
                break
            answer += read
    return int(answer.split()[1])


def test_a_body_that_is_too_large_is_refused_with_its_length_or_without(port: int) -> None:
    too_much = FORM_MAX_BYTES + 1
    head = f"POST /sign-in HTTP/1.1\nHost: 127.0.0.1:{port}\nOrigin: http://127.0.0.1:{port}\n"
    head += "Content-Type: application/x-www-form-urlencoded\n"
    assert status_after(port, f"{head}Content-Length: {too_much}\n\n", b"") == 413
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (too_much, b"a" * too_much)
    assert status_after(port, f"{head}Transfer-Encoding: chunked\n\n", chunk) == 413


def test_without_a_session_no_form_with_a_record_is_read(port: int) -> None:
    client = ConsoleClient(port)
    client.get("/sign-in")
    page = client.post("/topics/orders/produce", {"value": "x" * 1_000_000})
    assert (page.status, page.headers["location"][:8]) == (303, "/sign-in")


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/\t/evil.example/",
        "/\n/evil.example",
        "javascript:alert(1)",
        "/topics\r\nSet-Cookie: barnabas_console=chosen",
    ],
)
def test_a_sign_in_leads_to_a_page_of_the_console_only(secured: SecureBrokerProcess, port: int, target: str) -> None:
    client = ConsoleClient(port)
    client.get("/sign-in")
    page = client.post("/sign-in", {"user": "admin", "password": secured.password, "next": target})
    assert page.status == 303
    location = page.headers["location"]
    assert re.fullmatch(r"/(?!/)[^\\\t\r\n]*", location), location
    assert "chosen" not in client.cookies.get("barnabas_console", "")


def test_a_sign_in_begins_a_session_of_a_new_name_and_ends_the_one_before(
    secured: SecureBrokerProcess, port: int
) -> None:
    chosen = ConsoleClient(port)
    chosen.cookies["barnabas_console"] = "chosen-by-somebody-else"
    form = {"user": "admin", "password": secured.password}
    chosen.get("/sign-in")
    chosen.post("/sign-in", form)
    first = chosen.cookies["barnabas_console"]
    assert first != "chosen-by-somebody-else"
    chosen.get("/topics")
    chosen.get("/sign-in")
    assert chosen.post("/sign-in", form).status == 303
    other = ConsoleClient(port)
    other.cookies["barnabas_console"] = first
    assert other.get("/topics").status == 303


def test_what_a_form_of_one_session_has_is_of_no_use_to_another(secured: SecureBrokerProcess, port: int) -> None:
    mine, yours = ConsoleClient(port), ConsoleClient(port)
    for each in (mine, yours):
        each.get("/sign-in")
        each.post("/sign-in", {"user": "admin", "password": secured.password})
        each.get("/new-topic")
    assert mine.token != yours.token
    assert yours.post("/new-topic", {"csrf_token": mine.token, "name": "forged"}).status == 403
    without = {"Origin": "null"}
    assert yours.post("/new-topic", {"name": "forged"}, **without).status == 403


def test_no_page_has_a_secret(secured: SecureBrokerProcess, port: int) -> None:
    client = ConsoleClient(port)
    client.get("/sign-in")
    client.post("/sign-in", {"user": "admin", "password": secured.password})
    secrets = [secured.password, REGISTRY, client.cookies["barnabas_console"], "-----BEGIN"]
    secrets += [value for name, value in secured.client_properties.items() if "password" in name and value]
    left, seen = ["/"], set()
    while left:
        path = html.unescape(left.pop())
        if path in seen or path.startswith(("/static/", "/settings/", "/topics/orders/settings/", "/sign-out")):
            continue
        seen.add(path)
        page = client.get(path)
        assert [each for each in secrets if each in page.text] == [], path
        assert not any(each in str(page.headers) for each in secrets), path
        left += PAGE.findall(page.text)
    assert {"/", "/topics", "/topics/orders/settings", "/groups", "/users", "/acls", "/quotas", "/settings"} <= seen
    assert "sasl.jaas.config" in client.get("/settings?search=jaas").text


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/vendor/../../templates/layout.html",
        "/topics/orders/records/0/../../../static/%00",
    ],
)
def test_no_path_leads_out_of_the_static_files(port: int, path: str) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status in (303, 404)
    assert b"root:" not in answer.read()
    connection.close()


@pytest.mark.parametrize(
    ("host", "settings", "has_tls", "told"),
    [
        ("127.0.0.1", {}, False, None),
        ("::1", {"allows_changes": True}, False, None),
        ("0.0.0.0", {}, False, "can see what the user of this console may see, because nobody signs in"),
        ("0.0.0.0", {}, True, "because nobody signs in"),
        ("10.0.0.1", {"allows_changes": True}, True, "can see and change what the user of this console may,"),
        ("0.0.0.0", {"sign_in_mechanism": "PLAIN"}, False, "passwords travel to 0.0.0.0:8080 as they are typed"),
        ("0.0.0.0", {"sign_in_mechanism": "PLAIN"}, True, None),
    ],
)
def test_a_console_that_others_reach_says_what_they_can_do(
    host: str, settings: dict[str, str | bool], has_tls: bool, told: str | None
) -> None:
    client = ClientConfig(bootstrap="127.0.0.1:9092")
    found = list(_warnings(ConsoleSettings(client=client, address=Address(host, 8080), **settings), has_tls=has_tls))  # type: ignore[arg-type]
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


def test_a_flood_of_tls_key_updates_ends_the_connection_and_the_console_serves_by_tls(tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("127.0.0.1")
    pem, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    pem.write_bytes(b"".join(each.bytes() for each in certificate.cert_chain_pems))
    key.write_bytes(certificate.private_key_pem.bytes())
    server = ConsoleServer(
        ConsoleSettings(client=ClientConfig(), address=Address("127.0.0.1", 0)), certificate=pem, key=key
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    keys = log_keys(context, tmp_path)

    def attack() -> bytes:
        with socket.create_connection(server.address) as plain:
            connection = context.wrap_socket(plain, do_handshake_on_connect=True)
            with socket.socket(fileno=connection.detach()) as raw:
                raw.settimeout(30)
                try:
                    raw.sendall(key_updates(keys, 500, b"GET /static/console.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
                    received = b""
                    while data := raw.recv(65536):
                        received += data
                except ConnectionError:
                    pass
                return received

    def page() -> bytes:
        with closing(HTTPSConnection(*server.address, context=context, timeout=30)) as connection:
            connection.request("GET", "/static/console.css")
            return connection.getresponse().read()

    async def run() -> tuple[bytes, bytes]:
        serving = asyncio.create_task(server._server.serve([server._socket]))
        received = await asyncio.to_thread(attack)
        styles = await asyncio.to_thread(page)
        server._server.should_exit = True
        await serving
        return received, styles

    received, styles = asyncio.run(run())
    assert styles == (STATIC / "console.css").read_bytes()
    assert len(received) < len(styles), "tickets and an alert, not what was asked for after the flood"
