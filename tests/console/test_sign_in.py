"""Signing in with the broker's users: their rights, their sessions, and forged requests."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.clients.secure_testing import SecureBrokerProcess
from barnabas.clients.testing import secure_broker
from tests.support.console import ConsoleClient, client_file, running_console
from tests.support.daemon import start_daemon


@pytest.fixture(scope="module")
def broker() -> Iterator[SecureBrokerProcess]:
    """A broker with TLS, the super user `admin`, and `reader`, who has no rights."""
    with secure_broker({"allow.everyone.if.no.acl.found": "false"}) as running:
        running.add_user("reader", "reader-secret")
        running.create_topic("orders")
        yield running


@pytest.fixture(scope="module")
def port(broker: SecureBrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a console that people sign in to."""
    directory = tmp_path_factory.mktemp("console")
    options = ("--command-config", str(client_file(directory, broker.client_properties)), "--sign-in", "SCRAM-SHA-512")
    with running_console(broker.bootstrap, *options, log=directory / "stderr") as client:
        yield client.port


def sign_in(port: int, user: str, password: str) -> ConsoleClient:
    """Sign in as a browser does; the caller looks at the cookies."""
    client = ConsoleClient(port)
    client.get("/sign-in")
    client.post("/sign-in", {"user": user, "password": password, "next": "/topics"})
    return client


def test_without_a_session_every_page_leads_to_the_sign_in(port: int) -> None:
    client = ConsoleClient(port)
    for path in ("/", "/topics/orders/records?offset=1", "/groups", "/series/bytes", "/live/overview"):
        page = client.get(path)
        assert page.status == 303
        assert page.headers["location"].startswith("/sign-in?next=/")
    assert client.get("/static/console.css").status == 200


def test_people_sign_in_where_the_broker_asks_for_a_login_and_the_console_has_none(
    broker: SecureBrokerProcess, tmp_path: Path
) -> None:
    trust = ("--command-config", str(client_file(tmp_path, broker.client_properties)))
    with running_console(broker.bootstrap, *trust, "--allow-changes", log=tmp_path / "stderr") as client:
        page = client.get("/topics")
        assert (page.status, page.headers["location"]) == (303, "/sign-in?next=/topics")
        assert client.post("/sign-in", {"user": "admin", "password": "wrong", "next": "/"}).status == 403, "no token"
        assert "/topics/orders" in sign_in(client.port, "admin", broker.password).get("/topics").text
        client.get("/sign-in")
        assert client.post("/new-topic", {"name": "forbidden"}).status == 303, (
            "a form without a session leads there, too"
        )


class Gate(socketserver.ThreadingTCPServer):
    """The address of a broker that may not run yet: without a `target`, connections end at once."""

    daemon_threads = True
    target: tuple[str, int] | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarding)

    @property
    def bootstrap(self) -> str:
        return "{}:{}".format(*self.server_address)


class _Forwarding(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Gate)
        if self.server.target is None:
            return
        with socket.create_connection(self.server.target) as broker, suppress(OSError):
            back = threading.Thread(target=_forward, args=(broker, self.request), daemon=True)
            back.start()
            _forward(self.request, broker)
            back.join()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def gate() -> Iterator[Gate]:
    with Gate() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_console_that_was_started_before_its_broker_asks_for_a_login_once_that_runs(
    gate: Gate, tmp_path: Path
) -> None:
    name = "listener.name.sasl_plaintext."
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = ("listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=PLAIN")
    with running_console(gate.bootstrap, log=tmp_path / "stderr") as client:
        assert client.get("/topics").status == 502
        jaas = f'{name}plain.sasl.jaas.config={module} user_admin="secret";'
        with start_daemon(tmp_path, *settings, jaas) as daemon:
            gate.target = (daemon.host, daemon.port)
            assert client.get("/topics").headers["location"] == "/sign-in?next=/topics"
            assert sign_in(client.port, "admin", "secret").get("/topics").status == 200


def test_a_login_that_is_not_by_a_password_is_named(tmp_path: Path) -> None:
    name = "listener.name.sasl_plaintext.oauthbearer."
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    settings = (
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=OAUTHBEARER",
        f"{name}sasl.server.callback.handler.class="
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{name}sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}",
    )
    with (
        start_daemon(tmp_path, *settings) as daemon,
        running_console(daemon.bootstrap, log=tmp_path / "stderr") as client,
    ):
        page = client.get("/topics")
    assert page.status == 502
    assert "needs a login by OAUTHBEARER: start the console with --command-config" in page.text


def test_each_user_sees_what_the_user_may_see(broker: SecureBrokerProcess, port: int) -> None:
    admin = sign_in(port, "admin", broker.password)
    reader = sign_in(port, "reader", "reader-secret")
    assert "/topics/orders" in admin.get("/topics").text
    seen = reader.get("/topics")
    assert seen.status == 200
    assert "/topics/orders" not in seen.text
    assert reader.get("/topics/orders").status == 404
    assert "reader-secret" not in seen.text


def test_a_wrong_password_is_refused_and_not_repeated(port: int) -> None:
    client = ConsoleClient(port)
    client.get("/sign-in")
    page = client.post("/sign-in", {"user": "admin", "password": "wrong<1>", "next": "/"})
    assert page.status == 401
    assert "refused this user or password" in page.text
    assert "wrong" not in page.text
    assert client.cookies == {}


def test_the_cookie_cannot_be_read_by_scripts_or_sent_by_other_sites(broker: SecureBrokerProcess, port: int) -> None:
    client = ConsoleClient(port)
    client.get("/sign-in")
    page = client.post("/sign-in", {"user": "admin", "password": broker.password, "next": "//evil.example/"})
    assert page.headers["location"] == "/", "never to another site"
    flags = page.headers["set-cookie"]
    assert "HttpOnly" in flags
    assert re.search("samesite=strict", flags, re.IGNORECASE)


def test_a_session_ends_when_the_user_signs_out(broker: SecureBrokerProcess, port: int) -> None:
    client = sign_in(port, "admin", broker.password)
    assert client.get("/topics").status == 200
    assert client.post("/sign-out", {}).status == 303
    assert client.get("/topics").status == 303


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"csrf_token": "guessed"}, {}),
        ({"csrf_token": ""}, {}),
        ({}, {"Origin": "https://evil.example"}),
    ],
)
def test_a_forged_request_is_refused(
    broker: SecureBrokerProcess, port: int, form: dict[str, str], headers: dict[str, str]
) -> None:
    client = sign_in(port, "admin", broker.password)
    client.get("/topics")
    assert client.post("/sign-out", form, **headers).status == 403
    assert client.get("/topics").status == 200
