"""TlsTransport on real sockets, on uvloop and on asyncio, with Python's own TLS sockets as peers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable

import pytest
import trustme

from barnabas.transport.records import HANDSHAKE_BYTES_MAX, BadRecordError
from tests.support.tls import trusting
from tests.transport.echo import LOOPS, TIMEOUT_S, connected, echo_server, eventually, exchange, read_exactly

Play = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Play:
    """Run a scenario on one of the event loops."""

    def run(scenario: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            await asyncio.wait_for(scenario(), TIMEOUT_S)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(limited())

    return run


@pytest.fixture
def client_context(authority: trustme.CA) -> ssl.SSLContext:
    return trusting(authority)


PATTERN = bytes(range(251))


def content(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_echo_of_many_sizes(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    client_context.minimum_version = client_context.maximum_version = version
    sizes = [1, 5, 16_384, 16_385, 262_144, 262_145, 3_000_000]

    def talk(port: int) -> None:
        with connected(port, client_context) as client:
            assert client.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]
            for size in sizes:
                assert exchange(client, content(size)) == content(size)

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            await asyncio.to_thread(talk, server.port)
            await eventually(lambda: server.opened[0].lost == [None])
            assert server.failures == []

    play(scenario)


def test_pipelined_writes_are_answered_in_order(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    def talk(port: int) -> None:
        with connected(port, client_context) as client:
            for number in range(500):
                client.sendall(number.to_bytes(4, "big"))
            assert read_exactly(client, 2000) == b"".join(number.to_bytes(4, "big") for number in range(500))

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            await asyncio.to_thread(talk, server.port)

    play(scenario)


def test_a_client_that_does_not_read_stops_the_server_from_encrypting(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    size = 8_000_000

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            client = await asyncio.to_thread(connected, server.port, client_context)
            await eventually(lambda: bool(server.opened))
            transport = server.transports[0]
            transport.write(content(size))
            await eventually(lambda: not server.opened[0].writable)
            inner = transport._inner.get_write_buffer_size()
            assert inner <= 2 * 300_000, "more than a piece was encrypted for a full socket"
            assert transport.get_write_buffer_size() > size // 4
            with client:
                assert await asyncio.to_thread(read_exactly, client, size) == content(size)
            await eventually(lambda: server.opened[0].writable)

    play(scenario)


def test_a_paused_protocol_gets_everything_after_it_resumes(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    size = 2_000_000

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            server.buffer_bytes = 4096
            client = await asyncio.to_thread(connected, server.port, client_context)
            with client:
                await eventually(lambda: bool(server.opened))
                server.holding = True
                exchanged = asyncio.create_task(asyncio.to_thread(exchange, client, content(size)))
                echo = server.opened[0]
                await eventually(lambda: echo.paused)
                assert echo.filled == 4096
                server.holding = False
                echo.release()
                assert await exchanged == content(size)

    play(scenario)


def test_a_half_closed_client_gets_its_answers(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    """A client that sent close_notify, or shut its socket down, still reads what it was sent."""

    def half_close(port: int, with_notify: bool) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = client_context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as raw:
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65536))
            tls.write(content(100_000))
            if with_notify:
                with pytest.raises(ssl.SSLWantReadError):
                    tls.unwrap()
            raw.sendall(outgoing.read())
            raw.shutdown(socket.SHUT_WR)
            while data := raw.recv(65536):
                incoming.write(data)
        answer = bytearray()
        while len(answer) < 100_000:
            answer += tls.read(65536)
        assert bytes(answer) == content(100_000)

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            for with_notify in (False, True):
                await asyncio.to_thread(half_close, server.port, with_notify)
            await eventually(lambda: all(echo.lost == [None] and echo.eof for echo in server.opened))
            assert len(server.opened) == 2

    play(scenario)


def test_close_sends_what_was_written_and_a_close_notify(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    size = 5_000_000
    client_context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            client = await asyncio.to_thread(connected, server.port, client_context)
            await eventually(lambda: bool(server.opened))
            transport = server.transports[0]
            transport.write(content(size))
            transport.close()
            assert transport.is_closing()
            with client:
                assert await asyncio.to_thread(read_exactly, client, size) == content(size)
                # Without close_notify this would raise SSLEOFError.
                assert await asyncio.to_thread(client.recv, 1) == b""
            await eventually(lambda: server.opened[0].lost == [None])

    play(scenario)


@pytest.mark.parametrize("first", [b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\x14\0\x12\0\3\0\0\0\1", b"\x17\3\3\0\1x"])
def test_bytes_that_are_not_tls_are_refused_at_the_first(
    play: Play, server_certificate: trustme.LeafCert, first: bytes
) -> None:
    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as client:
                client.sendall(first)
                assert await asyncio.to_thread(client.recv, 1) == b""
            await eventually(lambda: bool(server.failures))
            assert isinstance(server.failures[0], BadRecordError)
            assert "PLAINTEXT" in str(server.failures[0])
            assert server.opened == []
            assert server.transports[0]._engine is None, "OpenSSL's 40 KiB were allocated for it"

    play(scenario)


def test_a_peer_cannot_send_without_end_before_the_handshake_ends(
    play: Play, server_certificate: trustme.LeafCert
) -> None:
    # One handshake message of 1 MiB, in records of 16 bytes.
    record = b"\x16\3\1\0\x10" + bytes(16)
    beginning = b"\x16\3\1\0\x10\1\x10\0\0" + b"\3\3" + bytes(10)

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as client:

                def flood() -> int:
                    sent = 0
                    try:
                        client.sendall(beginning)
                        for _ in range(10_000):
                            client.sendall(record * 100)
                            sent += len(record) * 100
                    except OSError:
                        return sent
                    return sent

                await asyncio.to_thread(flood)
            await eventually(lambda: bool(server.failures))
            records = server.transports[0]._records
            assert records is not None
            assert records.received <= HANDSHAKE_BYTES_MAX + 16 * 1024

    play(scenario)


def test_a_handshake_that_does_not_end_is_cut_off(play: Play, server_certificate: trustme.LeafCert) -> None:
    async def scenario() -> None:
        async with echo_server(server_certificate, handshake_seconds=0.05) as server:
            with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as client:
                assert await asyncio.to_thread(client.recv, 1) == b""
            assert isinstance(server.failures[0], TimeoutError)
            assert "0.05 s" in str(server.failures[0])

    play(scenario)


def test_client_certificates(
    play: Play, authority: trustme.CA, server_certificate: trustme.LeafCert, client_certificate: trustme.LeafCert
) -> None:
    stranger = trustme.CA().issue_cert("mallory@example.org")

    def talk(port: int, certificate: trustme.LeafCert | None) -> bytes:
        with connected(port, trusting(authority, certificate)) as client:
            client.sendall(b"hello")
            return client.recv(5)

    async def scenario() -> None:
        async with echo_server(server_certificate, authority, ssl_client_auth="required") as server:
            assert await asyncio.to_thread(talk, server.port, client_certificate) == b"hello"
            der = server.transports[0].get_extra_info("peercert_der")
            assert der == ssl.PEM_cert_to_DER_cert(client_certificate.cert_chain_pems[0].bytes().decode())
            for certificate, text in ((None, "peer did not return a certificate"), (stranger, "verify failed")):
                server.failures.clear()
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await asyncio.to_thread(talk, server.port, certificate)
                await eventually(lambda: bool(server.failures))
                assert text in str(server.failures[0])
            assert len(server.opened) == 1
        async with echo_server(server_certificate, authority, ssl_client_auth="requested") as server:
            assert await asyncio.to_thread(talk, server.port, None) == b"hello"
            assert server.transports[0].get_extra_info("peercert_der") is None
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.to_thread(talk, server.port, stranger)

    play(scenario)


def test_connections_that_share_a_receive_buffer_do_not_mix(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    def talk(port: int, own: int) -> None:
        with connected(port, client_context) as client:
            data = bytes([own]) * 50_000
            for _ in range(10):
                client.sendall(data)
                assert read_exactly(client, len(data)) == data

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            await asyncio.gather(*(asyncio.to_thread(talk, server.port, own) for own in range(8)))
            assert len(server.opened) == 8

    play(scenario)


def test_a_broken_record_ends_the_connection_only(
    play: Play, server_certificate: trustme.LeafCert, client_context: ssl.SSLContext
) -> None:
    def break_it(port: int) -> None:
        raw = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        client = client_context.wrap_socket(raw, server_hostname="127.0.0.1", do_handshake_on_connect=True)
        with client:
            client.sendall(b"fine")
            assert read_exactly(client, 4) == b"fine"
            with socket.socket(fileno=client.detach()) as plain:
                plain.settimeout(TIMEOUT_S)
                plain.sendall(b"\x17\3\3\0\x20" + bytes(32))
                while plain.recv(4096):
                    pass

    async def scenario() -> None:
        async with echo_server(server_certificate) as server:
            try:
                await asyncio.to_thread(break_it, server.port)
            except ConnectionResetError:
                pass
            await eventually(lambda: len(server.opened[0].lost) == 1)

    play(scenario)
