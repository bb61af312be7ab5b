"""Fuzzed bytes, records and handshakes on TlsTransport without sockets: a defined end, no escaped exception, bounds."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.transport import engine
from barnabas.transport.contexts import server_context
from barnabas.transport.engine import TlsEngine
from barnabas.transport.records import (
    EMPTY_RECORDS_MAX,
    HANDSHAKE_BYTES_MAX,
    HANDSHAKE_RECORDS_MAX,
    HEADER_BYTES,
    READ_BYTES,
    BadRecordError,
    HandshakeRecords,
)
from barnabas.transport.settings import MappingProperties, TlsSettings
from barnabas.transport.tls_transport import TURN_RECORDS, TlsParts, TlsTransport, new_scratch
from tests.support.key_updates import key_updates, log_keys
from tests.support.tls import inline_properties, trusting

AUTHORITY = trustme.CA()
CONTEXT = server_context(
    TlsSettings.of_server(MappingProperties(inline_properties(AUTHORITY.issue_cert("127.0.0.1"))))
).context
CLIENT = trusting(AUTHORITY)
LIMIT = HANDSHAKE_BYTES_MAX + READ_BYTES


class Wire:
    """The loop's transport below the one under test: records what is written and whether it was closed."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closed = False
        self.reading = True

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def set_write_buffer_limits(self, high: int | None, low: int | None) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class Sink(asyncio.BufferedProtocol):
    """The protocol above: collects what was decrypted."""

    def __init__(self) -> None:
        self.made = 0
        self.lost = 0
        self.ended = 0
        self.received = bytearray()
        self._buffer = memoryview(bytearray(1000))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost += 1

    def eof_received(self) -> bool:
        self.ended += 1
        return True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]


class InlineHandshakes:
    """Runs the steps of a handshake in the caller's thread."""

    def run(self, step: Callable[[], bool], done: Callable[[bool | Exception], None]) -> None:
        try:
            outcome: bool | Exception = step()
        except (ssl.SSLError, BadRecordError) as error:
            outcome = error
        done(outcome)


class Server:
    """A TlsTransport between a Wire and a Sink."""

    def __init__(self) -> None:
        self.wire, self.sink = Wire(), Sink()
        self.failures: list[Exception] = []
        parts = TlsParts(
            context=lambda: CONTEXT, handshakes=InlineHandshakes(), scratch=new_scratch(), handshake_seconds=10.0
        )
        timer = SimpleNamespace(cancel=lambda: None)
        self.later: list[Callable[[], None]] = []
        calls = SimpleNamespace(call_later=lambda *arguments: timer, call_soon=self.later.append)
        loop = cast("asyncio.AbstractEventLoop", calls)
        self.transport = TlsTransport(loop, self.sink, parts, self.failures.append)
        self.transport.connection_made(cast("asyncio.BaseTransport", self.wire))

    @property
    def fed(self) -> int:
        """Number of records that OpenSSL has got."""
        engine = self.transport._engine
        assert engine is not None
        return engine.fed

    def receive(self, data: bytes) -> bytes:
        """Take one read of the socket; return what is left of `data`."""
        room = self.transport.get_buffer(-1)
        size = min(len(room), len(data))
        room[:size] = data[:size]
        self.transport.buffer_updated(size)
        room[:size] = bytes(size)  # as another connection's bytes
        return data[size:]

    def turn(self) -> None:
        """Run what was put off to the next turn of the loop."""
        calls = self.later[:]
        self.later.clear()
        for call in calls:
            call()

    def feed(self, data: bytes) -> None:
        while not self.wire.closed and (self.later or (data and self.wire.reading)):
            if data and self.wire.reading:
                data = self.receive(data)
            self.turn()

    def end(self) -> None:
        self.transport.connection_lost(None)
        assert (self.sink.made, self.sink.lost) in ((0, 0), (1, 1))
        assert len(self.failures) == 1 - self.sink.made


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


class Client:
    """Python's own TLS against a Server, in memory."""

    def __init__(self, context: ssl.SSLContext = CLIENT) -> None:
        self.engine = TlsEngine(context, server_side=False, server_hostname="127.0.0.1")
        self.server = Server()

    def connect(self, mutate: Callable[[int, bytes], bytes] = lambda flight, data: data) -> bool:
        """Return whether the handshake is complete on both sides; `mutate` may change each of the client's flights."""
        for flight in range(4):
            try:
                done = self.engine.handshake()
            except ssl.SSLError:
                return False
            self.server.feed(mutate(flight, self.engine.outgoing()))
            self.engine.receive(bytes(self.server.wire.written))
            self.server.wire.written.clear()
            if done:
                return self.server.sink.made == 1
        return False


@settings(max_examples=150)
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_any_bytes_have_a_defined_end(data: bytes, cuts: list[int]) -> None:
    server = Server()
    for piece in pieces(data, cuts):
        server.feed(piece)
    server.end()


_record = st.builds(
    lambda kind, version, payload: bytes([kind, 3, version]) + len(payload).to_bytes(2, "big") + payload,
    st.sampled_from([20, 21, 22, 22, 22, 23, 24]),
    st.integers(0, 4),
    st.binary(max_size=200),
)


@settings(max_examples=150)
@given(st.lists(_record, min_size=1, max_size=6))
def test_any_records_have_a_defined_end(records: list[bytes]) -> None:
    server = Server()
    server.feed(b"".join(records))
    server.end()


@settings(max_examples=60)
@given(st.integers(0, 1), st.integers(0, 4000), st.integers(1, 255))
def test_a_flipped_byte_in_a_handshake_never_leaves_it_half_done(flight: int, position: int, flip: int) -> None:
    client = Client()

    def mutate(number: int, data: bytes) -> bytes:
        if number != flight or not data:
            return data
        changed = bytearray(data)
        changed[position % len(data)] ^= flip
        return bytes(changed)

    client.connect(mutate)
    client.server.end()


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=3000), st.integers(0, 5000), st.integers(1, 255), st.lists(st.integers(0, 5000)))
def test_a_flipped_byte_in_application_data_ends_the_connection_before_it_is_delivered(
    data: bytes, position: int, flip: int, cuts: list[int]
) -> None:
    client = Client()
    assert client.connect()
    client.engine.encrypt(data)
    changed = bytearray(client.engine.outgoing())
    changed[position % len(changed)] ^= flip
    for piece in pieces(bytes(changed), cuts):
        client.server.feed(piece)
    assert bytes(client.server.sink.received) == b""
    client.server.end()


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=40_000), st.lists(st.integers(0, 60_000), max_size=6))
def test_data_in_any_pieces_arrives_even_with_the_end_of_the_handshake(data: bytes, cuts: list[int]) -> None:
    """The client's last flight and its first request may come in one read."""
    client = Client()
    hello = None
    while not client.engine.handshake():
        hello = client.engine.outgoing()
        client.server.feed(hello)
        client.engine.receive(bytes(client.server.wire.written))
    assert hello is not None
    client.engine.encrypt(data)
    for piece in pieces(client.engine.outgoing(), cuts):
        client.server.feed(piece)
    assert bytes(client.server.sink.received) == data
    client.server.end()


@pytest.mark.parametrize("piece", [1, 7, 5000])
def test_bytes_before_the_end_of_the_handshake_are_bounded(piece: int) -> None:
    records = HandshakeRecords()
    record = b"\x16\3\1\x40\0" + bytes(0x4000)

    def flood() -> None:
        for start in range(0, 3 * LIMIT, piece):
            records.take(memoryview(bytes(record[(start + index) % len(record)] for index in range(piece))))

    with pytest.raises(BadRecordError, match="more than 65536 bytes"):
        flood()
    assert records.received <= LIMIT


def test_key_updates_that_are_not_read_end_the_connection() -> None:
    """TLS answers each; the answers must not pile up for a peer that does not read."""
    client = Client()
    assert client.connect()
    transport = client.server.transport
    transport.pause_writing()
    written = len(client.server.wire.written)
    for _ in range(5000):
        if client.server.wire.closed:
            break
        # What a peer's TLS sends for renegotiation and updates ends up as protocol messages; the bound is on all.
        transport._engine._outgoing.write(bytes(64))  # type: ignore[union-attr]
        client.engine.encrypt(b"x")
        client.server.feed(client.engine.outgoing())
    assert client.server.wire.closed
    assert len(client.server.wire.written) == written
    client.server.end()


@pytest.fixture
def keys(tmp_path: Path) -> tuple[ssl.SSLContext, Path]:
    """A client's context, and the file with the keys of its connections."""
    context = trusting(AUTHORITY)
    return context, log_keys(context, tmp_path)


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("with_finished", [False, True])
def test_a_flood_of_key_updates_ends_the_connection_after_a_few(
    keys: tuple[ssl.SSLContext, Path], answered: bool, with_finished: bool
) -> None:
    context, path = keys
    client = Client(context)
    if with_finished:  # in the read that ends the handshake
        client.connect(lambda flight, data: data + key_updates(path, 500, answered=answered) if flight else data)
    else:
        assert client.connect()
        client.server.feed(key_updates(path, 500, answered=answered))
    assert client.server.wire.closed
    assert client.server.fed <= EMPTY_RECORDS_MAX + 10
    assert client.server.sink.received == b""
    client.server.end()


def test_a_few_key_updates_change_nothing_for_the_data_after_them(keys: tuple[ssl.SSLContext, Path]) -> None:
    context, path = keys
    client = Client(context)
    assert client.connect()
    client.server.feed(key_updates(path, EMPTY_RECORDS_MAX, b"data", answered=True))
    assert client.server.sink.received == b"data"
    client.server.end()


def test_key_updates_between_much_data_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a Java client with a low jdk.tls.keyLimits."""
    monkeypatch.setattr(engine, "EMPTY_RECORD_BYTES", 10)
    client = Client()
    assert client.connect()
    receiver = client.server.transport._engine
    assert receiver is not None
    for _ in range(3 * EMPTY_RECORDS_MAX):
        client.engine.encrypt(bytes(10))
        client.server.feed(client.engine.outgoing())
        receiver._count_empty()
    for _ in range(EMPTY_RECORDS_MAX - 1):
        receiver._count_empty()
    with pytest.raises(ssl.SSLError, match="more than 16 records without data"):
        receiver._count_empty()
    client.server.end()


def test_nothing_is_collected_after_the_end_of_the_stream() -> None:
    """The connection may stay open for the answers to what came before."""
    client = Client()
    assert client.connect()
    server = client.server
    client.engine.encrypt(b"request")
    client.engine.close_notify()
    server.feed(client.engine.outgoing())
    assert server.sink.received == b"request"
    assert server.sink.ended == 1
    assert not server.wire.closed
    server.transport.pause_reading()
    server.transport.resume_reading()  # as a protocol does whose buffer was full
    server.turn()
    assert not server.wire.reading
    assert server.sink.ended == 1
    server.end()


def test_a_turn_of_the_loop_decrypts_a_bounded_number_of_records() -> None:
    client = Client()
    assert client.connect()
    server = client.server
    records = 3 * TURN_RECORDS + 1
    for number in range(records):
        client.engine.encrypt(bytes([number % 251]))
    before = server.fed
    assert server.receive(client.engine.outgoing()) == b""
    for turn in range(1, 4):
        assert server.fed - before == turn * TURN_RECORDS
        assert not server.wire.reading
        server.turn()
    assert server.wire.reading
    assert server.sink.received == bytes(number % 251 for number in range(records))
    server.end()


@pytest.mark.parametrize("fragment", [1, 16])
def test_a_handshake_in_too_many_records_is_refused(fragment: int) -> None:
    client = Client()
    connected = client.connect(lambda flight, data: data if flight else fragmented(data, fragment))
    assert connected is (fragment == 16)
    assert client.server.fed <= HANDSHAKE_RECORDS_MAX + 1
    client.server.end()


def fragmented(record: bytes, size: int) -> bytes:
    """Return the message of one handshake record in records of `size` bytes."""
    message = record[HEADER_BYTES:]
    cut = (message[start : start + size] for start in range(0, len(message), size))
    return b"".join(record[:3] + len(piece).to_bytes(2, "big") + piece for piece in cut)
