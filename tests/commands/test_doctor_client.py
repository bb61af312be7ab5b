"""`barnabas doctor client` against real brokers whose advertised addresses are right, wrong, and another service's."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.main import main
from barnabas.protocol.kafka import codec
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionRange, ApiVersionsResponse
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.topics.metadata import MetadataResponse
from barnabas.protocol.wire.structures import Struct
from tests.support.daemon import Daemon, start_daemon
from tests.support.free_ports import free_port


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("sound")) as daemon:
        yield daemon


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "client", *arguments])


def problems_of(bootstrap: str, *, exit_code: ExitCode = ExitCode.FAILED) -> str:
    """The one problem of the report."""
    result = run(bootstrap, "--json", "--timeout", "3")
    assert result.exit_code == exit_code, result.output
    (problem,) = json.loads(result.stdout)["problems"]
    return str(problem)


@contextmanager
def listening(serve_client: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that serves one client after the other and closes the connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    serve_client(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(30)


@contextmanager
def answering(reply: bytes, received: list[bytes] | None = None) -> Iterator[int]:
    """A server that sends every client the same bytes. `received` gets what clients sent first."""

    def serve_client(connection: socket.socket) -> None:
        data = connection.recv(1 << 16)
        if received is not None:
            received.append(data)
        connection.sendall(reply)

    with listening(serve_client) as port:
        yield port


@contextmanager
def old_broker(asked: list[tuple[ApiKey, int]]) -> Iterator[int]:
    """A broker of Kafka 1.0's age, without topics. `asked` gets the API and the version of each request."""
    ranges = {ApiKey.PRODUCE: 5, ApiKey.FETCH: 6, ApiKey.LIST_OFFSETS: 2, ApiKey.METADATA: 5, ApiKey.DESCRIBE_GROUPS: 1}
    apis = [ApiVersionRange(api=api, min_version=0, max_version=highest) for api, highest in ranges.items()]

    def serve_client(connection: socket.socket) -> None:
        while size := connection.recv(4):
            header = codec.read_request(memoryview(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)))
            asked.append((ApiKey(header.api), header.version))
            answer: Struct = MetadataResponse(
                cluster_id="old", brokers=[BrokerAddress(node_id=1, host="127.0.0.1", port=connection.getsockname()[1])]
            )
            if header.api == ApiKey.API_VERSIONS:
                answer = ApiVersionsResponse(apis=apis)
            connection.sendall(codec.encode_response(header, answer)[0])

    with listening(serve_client) as port:
        yield port


def other_address() -> str:
    """An address of this machine that is not loopback; skips the test without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only picks the interface
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address = str(probe.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return address


def test_a_broker_without_problems_is_reported_as_usable(sound: Daemon) -> None:
    result = run(sound.bootstrap)

    assert result.exit_code == ExitCode.OK, result.output
    lines = result.stdout.splitlines()
    assert f"{sound.bootstrap}: speaks Kafka's protocol" in result.stdout
    assert f"broker 1: {sound.bootstrap} can be reached and belongs to the cluster" in lines
    assert lines[-1] == "no problem: clients on this machine can use the broker"


def test_the_json_has_cluster_and_brokers(sound: Daemon) -> None:
    report: dict[str, Any] = json.loads(run(sound.bootstrap, "--json").stdout)

    cluster_id = next(
        line.partition("=")[2]
        for line in (sound.data_directory / "meta.properties").read_text().splitlines()
        if line.startswith("cluster.id=")
    )
    assert (report["cluster_id"], report["problems"]) == (cluster_id, [])
    (broker,) = report["brokers"]
    assert (broker["node_id"], broker["reachable"], broker["port"]) == (1, True, sound.port)


def test_an_advertised_loopback_address_is_a_problem_for_other_machines(tmp_path: Path) -> None:
    address = other_address()
    port = free_port()
    settings = (f"listeners=0.0.0.0:{port}", f"advertised.listeners=127.0.0.1:{port}")
    with start_daemon(tmp_path, *settings):
        problem = problems_of(f"{address}:{port}")

    assert f"127.0.0.1:{port} to clients, which is each client's own machine" in problem


def test_an_advertised_address_without_a_listener_is_reported(tmp_path: Path) -> None:
    port = free_port()
    with start_daemon(tmp_path, f"advertised.listeners=127.0.0.1:{port}") as daemon:
        problem = problems_of(daemon.bootstrap)

    assert f"broker 1 advertises 127.0.0.1:{port} to clients, but nothing listens there" in problem
    assert "advertised.listeners" in problem


def test_an_advertised_container_name_is_reported(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "advertised.listeners=no-such-container:29092") as daemon:
        problem = problems_of(daemon.bootstrap)

    assert "no-such-container:29092 to clients, but the name no-such-container cannot be resolved here" in problem
    assert "looks like the name of a container" in problem


def test_an_advertised_address_of_another_cluster_is_reported(tmp_path: Path, sound: Daemon) -> None:
    with start_daemon(tmp_path, f"advertised.listeners={sound.bootstrap}") as daemon:
        problem = problems_of(daemon.bootstrap)

    assert f"{sound.bootstrap} to clients, but the broker there belongs to cluster" in problem


def test_an_advertised_address_of_another_service_is_reported(tmp_path: Path) -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        with start_daemon(tmp_path, f"advertised.listeners=127.0.0.1:{port}") as daemon:
            problem = problems_of(daemon.bootstrap)

    assert (
        f"127.0.0.1:{port} to clients, but the server there does not speak Kafka's protocol "
        "(its answer starts with b'HTTP')" in problem
    )


def test_an_unreachable_bootstrap_address_has_its_own_exit_code() -> None:
    problem = problems_of(f"127.0.0.1:{free_port()}", exit_code=ExitCode.NO_CONNECTION)

    assert problem.startswith("a client begins at 127.0.0.1:")
    assert "nothing listens there (connection refused)" in problem


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x0a", "it speaks TLS"),
        (b"", "closes the connection after a request of Kafka's protocol"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x63", "its answer cannot be read: the answer has correlation id 99"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x01\x00", "its answer cannot be read"),
    ],
    ids=["tls", "silence", "a stranger's answer", "half an answer"],
)
def test_other_services_are_reported_by_their_behaviour(reply: bytes, words: str) -> None:
    with answering(reply) as port:
        problem = problems_of(f"127.0.0.1:{port}")

    assert words in problem


def test_a_server_is_asked_by_kafkas_protocol_alone() -> None:
    received: list[bytes] = []
    with answering(b"", received) as port:
        problems_of(f"127.0.0.1:{port}")

    api_versions, tls = received  # the second one: whether the listener speaks TLS
    assert api_versions[4:8] == bytes((0, 18, 0, 0))
    assert tls[:2] == b"\x16\x03"


def test_an_old_broker_is_asked_in_its_versions() -> None:
    asked: list[tuple[ApiKey, int]] = []
    with old_broker(asked) as port:
        report = json.loads(run(f"127.0.0.1:{port}", "--json", "--topic", "any", "--group", "any").stdout)

    assert (report["problems"], report["operations"]) == ([], {})  # which it is too old to tell
    assert set(asked) == {(ApiKey.API_VERSIONS, 0), (ApiKey.METADATA, 5)}


def test_a_silent_listener_is_given_up_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = run(f"127.0.0.1:{listener.getsockname()[1]}", "--timeout", "0.2")

    assert result.exit_code == ExitCode.FAILED
    assert "does not answer within 0.2 s" in result.stdout


@pytest.mark.parametrize("address", ["localhost", "localhost:notaport", ":9092"])
def test_a_wrong_address_is_a_usage_error(address: str) -> None:
    assert run(address).exit_code == ExitCode.USAGE
