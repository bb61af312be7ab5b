"""The metrics port by HTTPS: with client certificates on request, and not blocked by peers that never finish."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from barnabas.broker.metrics.server import MetricsServer, start_metrics_server
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes
from barnabas.transport.contexts import server_context
from barnabas.transport.settings import MappingProperties, TlsSettings
from tests.support.daemon import start_daemon
from tests.support.tls import authority_pem, inline_properties, pem_bundle, trusting, write_private

WAIT_S = 30


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("127.0.0.1")


@pytest.fixture(params=["none", "required"])
def client_auth(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(authority: trustme.CA, certificate: trustme.LeafCert, client_auth: str) -> Iterator[MetricsServer]:
    values = inline_properties(certificate, authority, ssl_client_auth=client_auth)
    context = server_context(TlsSettings.of_server(MappingProperties(values))).context
    state = BrokerState()
    state.serve()
    running = start_metrics_server("127.0.0.1", 0, probes=BrokerProbes(), state=state, tls=lambda: context)
    yield running
    running.close()


def scrape(port: int, context: ssl.SSLContext) -> str:
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context, timeout=WAIT_S) as answer:
        text: str = answer.read().decode()
    return text


def test_only_clients_with_a_certificate_where_it_is_required(
    server: MetricsServer, authority: trustme.CA, client_auth: str
) -> None:
    with_certificate = trusting(authority, authority.issue_cert("p@example.org", common_name="prometheus"))
    assert "barnabas_tls_handshakes_total" in scrape(server.port, with_certificate)
    if client_auth == "none":
        assert "barnabas_tls_handshakes_total" in scrape(server.port, trusting(authority))
    else:
        with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
            scrape(server.port, trusting(authority))


def test_peers_without_tls_are_closed_and_those_that_stall_block_nobody(
    server: MetricsServer, authority: trustme.CA
) -> None:
    client = trusting(authority, authority.issue_cert("p@example.org", common_name="prometheus"))
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as plain:
        plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        received = plain.recv(65536)
        assert b"barnabas" not in received
    stalled = [socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) for _ in range(12)]
    assert "barnabas_" in scrape(server.port, client)
    for each in stalled:
        each.close()


def test_a_daemon_serves_its_metrics_and_its_certificate_by_https(
    tmp_path: Path, authority: trustme.CA, certificate: trustme.LeafCert
) -> None:
    key = write_private(tmp_path / "metrics.pem", pem_bundle(certificate))
    trust = write_private(tmp_path / "ca.pem", authority_pem(authority))
    settings = (
        "metrics.listener=SSL://127.0.0.1:0",
        "listener.name.metrics.ssl.keystore.type=PEM",
        f"listener.name.metrics.ssl.keystore.location={key}",
        "listener.name.metrics.ssl.truststore.type=PEM",
        f"listener.name.metrics.ssl.truststore.location={trust}",
    )
    with start_daemon(tmp_path, *settings) as daemon:
        assert daemon.metrics_port is not None
        text = scrape(daemon.metrics_port, trusting(authority))
        assert 'barnabas_tls_certificate_expiry_seconds{listener="METRICS"}' in text
        assert daemon.stop() == 0
