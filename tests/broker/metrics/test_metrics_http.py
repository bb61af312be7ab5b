"""The metrics port over real sockets: responses, rejections, and clients that try to block it."""

from __future__ import annotations

import gzip
import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics import application, http_server
from barnabas.broker.metrics.server import MetricsServer, start_metrics_server
from barnabas.broker.metrics.state import BrokerState, Phase
from barnabas.broker.probes import BrokerProbes

HOST = "127.0.0.1"
WAIT_S = 30


class Port:
    """A running metrics port with its counters and state."""

    def __init__(self) -> None:
        self.probes = BrokerProbes()
        self.state = BrokerState()
        self.server: MetricsServer = start_metrics_server(HOST, 0, probes=self.probes, state=self.state)

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(HOST, self.server.port, timeout=WAIT_S)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def connect(self, host: str = HOST) -> socket.socket:
        """Connect from an address of this machine."""
        return socket.create_connection((HOST, self.server.port), timeout=WAIT_S, source_address=(host, 0))


@pytest.fixture
def port() -> Iterator[Port]:
    live = Port()
    yield live
    live.server.close()


def test_healthz_answers_503_with_the_phase_until_the_broker_serves(port: Port) -> None:
    port.state.phase = Phase.LOADING
    response, body = port.ask("/healthz")
    assert (response.status, body) == (503, b"not serving: loading logs\n")

    port.state.serve()
    response, body = port.ask("/healthz")
    assert (response.status, body) == (200, b"serving\n")


def test_healthz_answers_503_while_draining(port: Port) -> None:
    port.state.serve()
    port.state.drain()
    response, body = port.ask("/healthz")
    assert (response.status, body) == (503, b"not serving: draining\n")


def test_healthz_answers_503_when_the_event_loop_is_stuck(port: Port) -> None:
    port.state.serve()
    port.probes.loop_lag.last_beat = time.monotonic() - 3 * application.LOOP_STUCK_SECONDS
    response, body = port.ask("/healthz")
    assert response.status == 503
    assert b"event loop has not run for 30 s" in body


def test_metrics_are_served_before_any_log_is_loaded(port: Port) -> None:
    response, body = port.ask("/metrics")
    samples = {s.name: s.value for family in text_string_to_metric_families(body.decode()) for s in family.samples}
    assert response.status == 200
    assert samples["barnabas_ready"] == 0
    assert samples["process_resident_memory_bytes"] > 1_000_000


def test_a_scrape_shows_what_was_counted_since_the_last(port: Port) -> None:
    topic = port.probes.topic("orders")
    port.ask("/metrics")
    topic.bytes_in += 4096
    _, body = port.ask("/metrics")
    assert b'barnabas_topic_received_bytes_total{topic="orders"} 4096.0\n' in body


def test_the_scraper_chooses_gzip_and_openmetrics(port: Port) -> None:
    response, body = port.ask(
        "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
    )
    assert response.getheader("Content-Type", "").startswith("application/openmetrics-text")
    assert gzip.decompress(body).endswith(b"# EOF\n")


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/metrics/", "/healthz/live", "/../etc/passwd"])
def test_other_paths_answer_404_with_a_hint(port: Port, path: str) -> None:
    response, body = port.ask(path)
    assert response.status == 404
    assert b"/metrics and /healthz" in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_answer_405(port: Port, method: str) -> None:
    response, _ = port.ask("/metrics", method)
    assert (response.status, response.getheader("Allow")) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/metrics", "/healthz"])
def test_head_answers_without_a_body(port: Port, path: str) -> None:
    port.state.serve()
    answer = b""
    with port.connect() as connection:
        connection.sendall(f"HEAD {path} HTTP/1.0\r\n\r\n".encode())
        while part := connection.recv(4096):
            answer += part
    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200 OK\r\n")
    assert body == b""


def test_scrapes_one_after_the_other_never_run_out_of_connections(port: Port) -> None:
    assert {port.ask("/healthz")[0].status for _ in range(3 * http_server.CONNECTIONS_MAX)} == {503}


def test_a_port_in_use_is_one_sentence_with_its_address(port: Port) -> None:
    sentence = f"^cannot listen on {HOST}:{port.server.port}: Address already in use$"
    with pytest.raises(OSError, match=sentence):
        start_metrics_server(HOST, port.server.port, probes=port.probes, state=port.state)


def test_a_host_that_does_not_exist_is_one_sentence_with_its_address(port: Port) -> None:
    with pytest.raises(OSError, match=r"^cannot listen on no\.such\.host\.invalid:9404: "):
        start_metrics_server("no.such.host.invalid", 9404, probes=port.probes, state=port.state)


def test_after_close_the_port_is_free_and_the_thread_gone(port: Port) -> None:
    port.ask("/healthz")
    port.server.close()
    port.server.close()
    assert "barnabas-metrics" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ConnectionRefusedError):
        port.connect()
    start_metrics_server(HOST, port.server.port, probes=port.probes, state=port.state).close()


@pytest.mark.parametrize("beginning", [b"", b"GET /healthz HTTP/1.0\r\nHost"])
def test_clients_without_a_request_do_not_keep_others_from_scraping(port: Port, beginning: bytes) -> None:
    with ExitStack() as silent:
        for _ in range(3):
            for _ in range(http_server.CONNECTIONS_MAX):
                silent.enter_context(port.connect()).sendall(beginning)
            assert port.ask("/metrics")[0].status == 200


def test_the_oldest_silent_connection_of_the_host_with_most_of_them_is_cut_off(port: Port) -> None:
    with ExitStack() as open_ones:
        probe = open_ones.enter_context(port.connect("127.0.0.2"))
        silent = [open_ones.enter_context(port.connect("127.0.0.3")) for _ in range(3 * http_server.CONNECTIONS_MAX)]
        assert all(each.recv(1) == b"" for each in silent[: 2 * http_server.CONNECTIONS_MAX + 1])
        for each in (probe, silent[-1]):
            each.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert each.recv(12) == b"HTTP/1.0 503"


@pytest.fixture
def held(port: Port, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Counts the requests for /held that are being answered; they are answered after the test."""
    count, release = threading.Semaphore(0), threading.Event()

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/held":
            count.release()
            assert release.wait(WAIT_S)
        start_response("200 OK", [])
        return [b"x"]

    monkeypatch.setattr(http_server, "make_application", lambda *_: application)
    yield count
    release.set()


def hold(port: Port, held: threading.Semaphore, hosts: list[str], open_ones: ExitStack) -> list[socket.socket]:
    """Occupy the places with requests of these hosts; return the connections."""
    connections = []
    for number in range(http_server.CONNECTIONS_MAX):
        connections.append(open_ones.enter_context(port.connect(hosts[number % len(hosts)])))
        connections[-1].sendall(b"GET /held HTTP/1.0\r\n\r\n")
        if number < http_server.HOST_REQUESTS_MAX * len(hosts):
            assert held.acquire(timeout=WAIT_S)
    return connections


@pytest.mark.parametrize("others", [["127.0.0.3"], ["127.0.0.3", "127.0.0.4"]])
@pytest.mark.parametrize("probe", ["127.0.0.2", HOST])
def test_hosts_that_read_no_answers_leave_room_for_others(
    port: Port, held: threading.Semaphore, others: list[str], probe: str
) -> None:
    with ExitStack() as open_ones:
        hold(port, held, others, open_ones)
        with port.connect(probe) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"
        assert not held.acquire(blocking=False)


def test_requests_of_many_hosts_are_not_cut_off_and_leave_room_for_this_machine(
    port: Port, held: threading.Semaphore
) -> None:
    with ExitStack() as open_ones:
        hosts = [f"127.0.0.{number + 10}" for number in range(http_server.CONNECTIONS_MAX)]
        answered = hold(port, held, hosts, open_ones)
        with port.connect("127.0.0.2") as refused:
            assert refused.recv(1) == b""
        with port.connect() as probe:
            probe.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert probe.recv(12) == b"HTTP/1.0 200"
        answered[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            answered[0].recv(1)


def test_a_host_with_too_many_requests_is_told_so(port: Port, held: threading.Semaphore) -> None:
    with ExitStack() as open_ones:
        refused = hold(port, held, ["127.0.0.3"], open_ones)[-1]
        answer = refused.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.0 503 ")
        assert answer.endswith(b"\r\n\r\n4 requests of this host are being answered already\n")


@pytest.mark.parametrize("limit", ["REQUEST_SECONDS_MAX", "CONNECTION_SECONDS_MAX"])
def test_each_step_of_a_connection_has_a_time(port: Port, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    release = threading.Event()

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        assert release.wait(WAIT_S)
        return []

    monkeypatch.setattr(http_server, "make_application", lambda *_: application)
    monkeypatch.setattr(http_server, limit, 0.0)
    with port.connect() as slow:
        slow.sendall(b"GET /metr" if limit == "REQUEST_SECONDS_MAX" else b"GET / HTTP/1.0\r\n\r\n")
        assert slow.recv(1) == b""
    release.set()


def test_garbage_is_refused_and_the_next_scrape_works(port: Port) -> None:
    with port.connect() as rude:
        rude.sendall(b"\x00\x00\x00\x17\xb7\xff\xfe garbage\r\n\r\n")
        rude.shutdown(socket.SHUT_WR)
        while rude.recv(4096):
            pass
    response, _ = port.ask("/metrics")
    assert response.status == 200


def test_a_collectors_bug_is_a_500_and_the_port_lives(
    port: Port, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    port.ask("/metrics")
    monkeypatch.setattr(port.probes, "topics", None)
    response, body = port.ask("/metrics")
    assert (response.status, body) == (500, b"cannot render, see the broker's log\n")
    assert "cannot render the metrics" in caplog.text
    assert port.ask("/healthz")[0].status == 503


def test_two_brokers_of_one_process_have_their_own_figures(port: Port) -> None:
    other = Port()
    try:
        other.probes.topic("only-here").records_in += 1
        assert b"only-here" in other.ask("/metrics")[1]
        assert b"only-here" not in port.ask("/metrics")[1]
    finally:
        other.server.close()


def test_a_broker_that_nobody_asks_does_not_import_prometheus_nor_an_http_server() -> None:
    code = """
import sys
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.metrics.server import start_metrics_server
from barnabas.broker.metrics.state import BrokerState
server = start_metrics_server("127.0.0.1", 0, probes=BrokerProbes(), state=BrokerState())
server.close()
loaded = {"prometheus_client", "http.server", "wsgiref", "email"} & set(sys.modules)
sys.exit(f"loaded: {loaded}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
