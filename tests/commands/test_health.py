"""`barnabas health` against a broker's metrics port: its sentence, its exit code, and what it does not depend on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from click.testing import CliRunner, Result

from barnabas.broker.metrics.server import MetricsServer, start_metrics_server
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.main import main
from barnabas.transport.contexts import server_context
from barnabas.transport.settings import MappingProperties, TlsSettings
from tests.support.tls import inline_properties, pem_bundle, write_private

STATE = BrokerState()


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    STATE.serve()
    running = start_metrics_server("127.0.0.1", 0, probes=BrokerProbes(), state=STATE)
    yield running
    running.close()


def health(*settings: str, **environ: str) -> Result:
    arguments = [part for setting in settings for part in ("--set", setting)]
    return CliRunner().invoke(main, ["health", *arguments], env=environ)


def test_it_prints_what_healthz_says(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STATE, "partitions", SimpleNamespace(without_log_count=3))
    result = health(f"metrics.listener=127.0.0.1:{server.port}")
    assert (result.exit_code, result.stdout) == (0, "serving, but 3 partitions have no log\n")


def test_it_follows_metrics_listener_and_no_proxy(server: MetricsServer) -> None:
    listener = f"0.0.0.0:{server.port}"
    proxy = "http://127.0.0.1:1"
    assert health(f"metrics.listener={listener}", http_proxy=proxy, HTTP_PROXY=proxy).exit_code == 0
    assert health(BARNABAS_METRICS_LISTENER=listener).exit_code == 0


def test_a_broker_that_does_not_serve_is_named_with_its_phase(server: MetricsServer) -> None:
    STATE.drain()
    result = health(f"metrics.listener=127.0.0.1:{server.port}")
    assert result.exit_code == ExitCode.FAILED
    assert "not serving: draining" in result.stderr


def test_no_answer_is_a_sentence(server: MetricsServer) -> None:
    server.close()
    result = health(f"metrics.listener=127.0.0.1:{server.port}")
    assert result.exit_code == ExitCode.NO_CONNECTION
    assert f"the broker does not answer at metrics.listener=PLAINTEXT://127.0.0.1:{server.port}: " in result.stderr
    result = health("metrics.listener=127.0.0.1:0")
    assert result.exit_code == ExitCode.USAGE
    assert "takes a free port" in result.stderr


@pytest.mark.parametrize("listener", ["nowhere", "127.0.0.1:99999"])
def test_an_invalid_configuration_is_no_bug(listener: str) -> None:
    result = health(f"metrics.listener={listener}")
    assert result.exit_code == ExitCode.USAGE
    assert f"metrics.listener={listener} in --set" in result.stderr


def test_without_a_metrics_port_that_answers_it_a_client_listener_has_to_accept(tmp_path: Path) -> None:
    key = write_private(tmp_path / "metrics.pem", pem_bundle(trustme.CA().issue_cert("127.0.0.1")))
    secured = (
        "metrics.listener=SSL://127.0.0.1:1",
        "listener.name.metrics.ssl.keystore.type=PEM",
        f"listener.name.metrics.ssl.keystore.location={key}",
        "listener.name.metrics.ssl.truststore.type=PEM",
        f"listener.name.metrics.ssl.truststore.location={key}",
        "listener.name.metrics.ssl.client.auth=required",
    )
    for metrics in (("metrics.listener=",), secured):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listeners = f"listeners=127.0.0.1:{listener.getsockname()[1]}"
            assert health(listeners, *metrics).exit_code == 0
        assert health(listeners, *metrics).exit_code == ExitCode.NO_CONNECTION


def test_https_needs_no_certificate_for_the_loopback_address(tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("broker.example.org")
    context = server_context(TlsSettings.of_server(MappingProperties(inline_properties(certificate)))).context
    STATE.serve()
    server = start_metrics_server("127.0.0.1", 0, probes=BrokerProbes(), state=STATE, tls=lambda: context)
    key = write_private(tmp_path / "metrics.pem", pem_bundle(certificate))
    result = health(
        f"metrics.listener=SSL://127.0.0.1:{server.port}",
        "listener.name.metrics.ssl.keystore.type=PEM",
        f"listener.name.metrics.ssl.keystore.location={key}",
    )
    server.close()
    assert result.exit_code == 0, result.output
