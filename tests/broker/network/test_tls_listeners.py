"""Listeners with TLS of a real daemon: records, principals, wrong protocols, stalled handshakes, new certificates."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, DaemonError, start_daemon
from tests.support.eventually import eventually
from tests.support.frame_connection import TIMEOUT_S
from tests.support.metrics import wait_for_metric
from tests.support.tls import authority_pem, pem_bundle, trusting, write_private
from tests.support.wire import WireClient, fetch_request, produce_request

UNFINISHED = 1_000
UNFINISHED_WITH_HELLO = 200


class TlsClient(WireClient):
    """A WireClient over TLS."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, port)
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")

    def __enter__(self) -> TlsClient:
        return self

    def server_certificate(self) -> bytes:
        assert isinstance(self.socket, ssl.SSLSocket)
        found = self.socket.getpeercert(binary_form=True)
        assert found is not None
        return found


def tls_settings(directory: Path, certificate: trustme.LeafCert, authority: trustme.CA, *more: str) -> tuple[str, ...]:
    key = write_private(directory / "broker.pem", pem_bundle(certificate))
    trust = write_private(directory / "ca.pem", authority_pem(authority))
    return (
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={key}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={trust}",
        *more,
    )


@pytest.fixture(scope="module")
def tls_daemon(
    tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA, server_certificate: trustme.LeafCert
) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("tls")
    settings = tls_settings(directory, server_certificate, authority, "listeners=SSL://127.0.0.1:0")
    with start_daemon(directory, *settings) as running:
        yield running


@pytest.fixture(scope="module")
def measured_daemon(
    tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA, server_certificate: trustme.LeafCert
) -> Iterator[Daemon]:
    """A daemon without asyncio's debug mode, whose timers keep tracebacks and so twice the memory of a peer."""
    directory = tmp_path_factory.mktemp("tls")
    settings = tls_settings(directory, server_certificate, authority, "listeners=SSL://127.0.0.1:0")
    with start_daemon(directory, *settings, environ={"PYTHONASYNCIODEBUG": ""}) as running:
        yield running


def resident_bytes(daemon: Daemon) -> int:
    pages = int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def fetched(client: WireClient, topic: str, offset: int, max_bytes: int) -> bytes:
    """Return the bytes of one fetch."""
    return bytes(client.fetch(topic, offset, max_bytes=max_bytes).data)


def logged(daemon: Daemon, text: str) -> None:
    """Wait for a text in the daemon's log."""
    eventually(lambda: text in daemon.log or None, what=text)


def test_records_of_all_sizes_cross_tls_unchanged(tls_daemon: Daemon, authority: trustme.CA, batch: Batch) -> None:
    sizes = [1, 10_000, 20_000, 400_000, 900_000]
    with TlsClient(tls_daemon.host, tls_daemon.port, trusting(authority)) as client:
        client.create_topic("sizes")
        stored = [bytes(batch(os.urandom(size))) for size in sizes]
        for number, each in enumerate(stored):
            assert client.produce("sizes", each).base_offset == number
        # The same bytes, but for offset and leader epoch, in one answer of 1.3 MB and from each offset.
        everything = fetched(client, "sizes", 0, 10 << 20)
        assert len(everything) == sum(map(len, stored))
        for number, each in enumerate(stored):
            found = fetched(client, "sizes", number, len(each))
            assert found[16:] == each[16:]


def test_cold_segments_cross_tls_unchanged(
    tmp_path: Path, authority: trustme.CA, server_certificate: trustme.LeafCert, batch: Batch
) -> None:
    settings = tls_settings(tmp_path, server_certificate, authority, "listeners=SSL://127.0.0.1:0")
    with start_daemon(tmp_path, *settings) as daemon:
        with TlsClient(daemon.host, daemon.port, trusting(authority)) as client:
            client.create_topic("cold")
            stored = bytes(batch(os.urandom(900_000)))
            client.produce("cold", stored)
            segment = next((tmp_path / "data" / "cold-0").glob("*.log"))
            with segment.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert fetched(client, "cold", 0, 2 << 20)[16:] == stored[16:]
        assert daemon.stop() == 0


def test_pipelined_requests_are_answered_in_order(tls_daemon: Daemon, authority: trustme.CA, batch: Batch) -> None:
    with TlsClient(tls_daemon.host, tls_daemon.port, trusting(authority)) as client:
        client.create_topic("pipelined")
        frames = [client.frame(produce_request("pipelined", batch(b"%d" % n))) for n in range(300)]
        frames += [client.frame(fetch_request("pipelined", n)) for n in range(300)]
        client.socket.sendall(b"".join(frames))
        answers = [client.receive() for _ in frames]
        assert [answer.topics[0].partitions[0].base_offset for answer in answers[:300]] == list(range(300))
        assert all(answer.topics[0].partitions[0].error == ErrorCode.NONE for answer in answers[300:])


def test_a_plaintext_client_gets_a_close_and_the_log_a_hint(tls_daemon: Daemon) -> None:
    with WireClient(tls_daemon.host, tls_daemon.port) as client:
        client.send(ApiVersionsRequest(client="test", client_version="1"))
        assert client.is_closed_by_broker()
    logged(tls_daemon, "the first bytes are not TLS; does the client use PLAINTEXT")


def test_a_tls_client_of_a_plaintext_listener_is_a_hint_in_the_log(daemon: Daemon, authority: trustme.CA) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TlsClient(daemon.host, daemon.port, trusting(authority))
    logged(daemon, "the bytes look like TLS; does the client use SSL")


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("count", "share", "bytes_per_peer"),
    [(UNFINISHED, 0.5, 12 * 1024), (UNFINISHED_WITH_HELLO, 1.0, 160 * 1024)],
    ids=["half a hello", "a whole hello"],
)
def test_peers_that_never_finish_a_handshake_stop_nobody_else(
    measured_daemon: Daemon, authority: trustme.CA, count: int, share: float, bytes_per_peer: int
) -> None:
    hello = client_hello()
    part = hello[: int(len(hello) * share)]
    with (
        ExitStack() as crowd,
        TlsClient(measured_daemon.host, measured_daemon.port, trusting(authority)) as before,
    ):
        assert before.call(MetadataRequest.of_names(None)).topics is not None  # imports what requests need
        before_bytes = resident_bytes(measured_daemon)
        address = (measured_daemon.host, measured_daemon.port)
        peers = []
        for number in range(count):
            peers.append(crowd.enter_context(socket.create_connection(address, timeout=TIMEOUT_S)))
            peers[-1].sendall(part)
            if number % 40 == 0:  # fewer than socket.listen.backlog.size, above which the kernel drops connections
                assert before.call(MetadataRequest.of_names(None)).topics is not None
        # An old connection and new ones are served while all of them wait.
        assert before.call(MetadataRequest.of_names(None)).topics is not None
        for _ in range(5):
            with TlsClient(measured_daemon.host, measured_daemon.port, trusting(authority)) as client:
                assert client.call(MetadataRequest.of_names(None)).topics is not None
        for peer in peers:
            peer.setblocking(False)
        if share < 1:
            with pytest.raises(BlockingIOError):
                peers[-1].recv(1)  # still open: it was not the limit that helped
        assert resident_bytes(measured_daemon) - before_bytes < count * bytes_per_peer


def test_unfinished_handshakes_end_at_the_timeout_and_are_counted(
    tmp_path: Path, authority: trustme.CA, server_certificate: trustme.LeafCert
) -> None:
    settings = tls_settings(
        tmp_path,
        server_certificate,
        authority,
        "listeners=SSL://127.0.0.1:0",
        "ssl.handshake.timeout.ms=200",
        "max.connections.per.ip=3",
    )
    with start_daemon(tmp_path, *settings) as daemon:
        peers = [socket.create_connection((daemon.host, daemon.port), timeout=TIMEOUT_S) for _ in range(3)]
        for peer in peers:
            with peer:
                assert peer.recv(1) == b""
        assert "TLS handshake failed, host=127.0.0.1 listener=SSL: not complete after 0.2 s" in daemon.log
        # Their places are free again: three at a time, twice.
        for _ in range(2):
            with ExitStack() as clients:
                for _ in range(3):
                    client = clients.enter_context(TlsClient(daemon.host, daemon.port, trusting(authority)))
                    client.call(MetadataRequest.of_names(None))
                with socket.create_connection((daemon.host, daemon.port), timeout=TIMEOUT_S) as fourth:
                    assert fourth.recv(1) == b""
            wait_for_metric(daemon, "barnabas_connections_open", 0)
        assert "3 are open from 127.0.0.1 (max.connections.per.ip)" in daemon.log
        assert daemon.stop() == 0


def test_a_certificate_is_replaced_under_load_without_a_dropped_connection(
    tmp_path: Path, authority: trustme.CA, server_certificate: trustme.LeafCert, batch: Batch
) -> None:
    settings = tls_settings(tmp_path, server_certificate, authority, "listeners=SSL://127.0.0.1:0")
    with start_daemon(tmp_path, *settings) as daemon:
        with TlsClient(daemon.host, daemon.port, trusting(authority)) as living:
            living.create_topic("t")
            old = living.server_certificate()
            newer = authority.issue_cert("127.0.0.1", "localhost", common_name="broker", organization_unit_name="tests")
            following = write_private(tmp_path / "next.pem", pem_bundle(newer))
            write_private(tmp_path / "wrong.pem", "not a key").rename(tmp_path / "broker.pem")
            produced = 0

            def new_connection() -> bytes:
                nonlocal produced
                assert living.produce("t", batch(b"x")).base_offset == produced
                produced += 1
                with TlsClient(daemon.host, daemon.port, trusting(authority)) as client:
                    return client.server_certificate()

            # A faulty file changes nothing.
            kept = "keeping the TLS certificate of the listener SSL"
            eventually(lambda: (new_connection() == old and kept in daemon.log) or None, what=kept)
            following.rename(tmp_path / "broker.pem")
            eventually(lambda: new_connection() != old or None, what="a new certificate")
            assert "replaced the TLS certificate of the listener SSL" in daemon.log
            assert living.produce("t", batch(b"last")).base_offset == produced
        assert daemon.stop() == 0


def test_a_listener_without_a_usable_key_is_refused_at_the_start(tmp_path: Path) -> None:
    jks = write_private(tmp_path / "old.jks", b"\xfe\xed\xfe\xed\0\0\0\2")
    settings = ("listeners=SSL://127.0.0.1:0", f"ssl.keystore.location={jks}", "ssl.keystore.password=x")
    with pytest.raises(DaemonError, match="before it was ready") as refused:
        start_daemon(tmp_path, *settings)
    assert "the listener SSL cannot serve TLS" in str(refused.value)
    assert "keytool -importkeystore -srckeystore" in str(refused.value)
