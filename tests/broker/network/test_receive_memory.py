"""The bound of the memory of receive buffers: who gets memory, who waits, and who is cut off."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import struct
import time
from pathlib import Path
from typing import Any, cast

from barnabas.broker.network.receive_buffer import RECEIVE_BUFFER_BYTES
from barnabas.broker.network.receive_memory import CHECK_SECONDS, GROWTHS_PER_TURN, ReceiveMemory, default_limit
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.probes import ConnectionProbe
from barnabas.broker.repeated_warnings import RepeatedWarnings
from tests.support.daemon import start_daemon
from tests.support.piped_connection import Clock, Harness, framed

MIB = 1 << 20


class Clients:
    """Connections that share one memory."""

    def __init__(self, limit_bytes: int) -> None:
        self.clock = Clock()
        self.probe = ConnectionProbe()
        loop = cast("asyncio.AbstractEventLoop", self.clock)
        self.memory = ReceiveMemory(limit_bytes, loop, self.probe, RepeatedWarnings(loop))
        self.served: list[int] = []

    def connect(self, host: str, *, turns: bool = True) -> Harness:
        def serve(session: Any, frame: memoryview) -> ResponseFrame:
            self.served.append(len(frame))
            return ResponseFrame(b"answer")

        return Harness(serve, memory=self.memory, clock=self.clock, host=host, turns=turns)

    def disconnect(self, client: Harness) -> None:
        client.pipe.closing = True
        client.connection.connection_lost(None)
        self.clock.turn()


def test_the_default_bound_is_a_part_of_the_memory_and_at_most_512_mib() -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < default_limit() <= min(total // 4, 512 * MIB)


def test_an_announced_size_takes_no_memory() -> None:
    clients = Clients(2 * MIB)
    for number in range(10):
        client = clients.connect(str(number))
        assert client.feed(struct.pack(">i", 60 * MIB) + bytes(200_000)) == b""
        assert client.reads()
    assert clients.probe.receive_memory == 0


def test_frames_that_are_all_half_received_are_finished_one_after_the_other() -> None:
    clients = Clients(4 * MIB)
    frame = framed(bytes(6 * MIB))
    left = {clients.connect(str(number)): frame for number in range(6)}
    highest = 0
    for _ in range(200):
        for client, rest in list(left.items()):
            left[client] = client.feed(rest[: 300 * 1024]) + rest[300 * 1024 :]
            highest = max(highest, clients.probe.receive_memory)
        clients.clock.turn()
    assert clients.served == [6 * MIB] * 6
    assert highest <= 4 * MIB + len(frame), "the bound and one frame"
    assert clients.probe.receive_memory == 0
    assert clients.probe.waiting_for_memory == 0


def test_few_buffers_begin_to_grow_in_one_turn_of_the_loop() -> None:
    clients = Clients(512 * MIB)
    count = 3 * GROWTHS_PER_TURN
    frame = framed(bytes(MIB))
    left = {clients.connect(str(number), turns=False): frame for number in range(count)}
    for turn in range(1, 5):
        for peer, rest in left.items():
            left[peer] = peer.feed(rest)
        assert len(clients.served) <= turn * GROWTHS_PER_TURN
        clients.clock.turn()
    assert len(clients.served) == count


def test_a_buffer_grows_though_those_before_it_do_not_grow_any_more() -> None:
    clients = Clients(512 * MIB)
    frame = framed(bytes(MIB))
    for number in range(GROWTHS_PER_TURN):
        clients.connect(str(number), turns=False).feed(frame)
    for number in range(2 * GROWTHS_PER_TURN):
        client = clients.connect(f"stalled {number}", turns=False)
        client.feed(frame)
        client.connection._busy = True  # as while it does not read the response to an earlier request
    honest = clients.connect("honest", turns=False)
    rest = honest.feed(frame)
    for _ in range(4):
        clients.clock.turn()
        rest = honest.feed(rest)
    assert rest == b""


def test_one_host_takes_at_most_half_and_leaves_the_rest_to_others() -> None:
    clients = Clients(8 * MIB)
    greedy = [clients.connect("greedy") for _ in range(10)]
    for client in greedy:
        client.feed(framed(bytes(3 * MIB))[:-1])
    assert clients.probe.waiting_for_memory > 0
    held = clients.probe.receive_memory
    other = clients.connect("other")
    assert other.feed(framed(bytes(2 * MIB))) == b""
    assert clients.served == [2 * MIB]
    assert held <= 4 * MIB + 3 * MIB + 4, "half of the bound, and the one frame that may always finish"


def test_slow_senders_are_cut_off_while_others_wait_and_only_then() -> None:
    clients = Clients(4 * MIB)
    slow = clients.connect("slow")
    frame = framed(bytes(60 * MIB))
    slow.feed(frame[: 5 * MIB])
    for _ in range(10):
        clients.clock.pass_to(clients.clock.now + CHECK_SECONDS)
        assert not slow.is_closed()
    waiting = clients.connect("honest")
    rest = waiting.feed(framed(bytes(3 * MIB)))
    assert rest
    for _ in range(3):
        clients.clock.pass_to(clients.clock.now + CHECK_SECONDS)
        clients.clock.turn()
    assert slow.is_closed()
    assert slow.connection.close_reason == "slow_request"
    clients.disconnect(slow)
    assert waiting.reads()
    assert waiting.feed(rest) == b""
    assert clients.served == [3 * MIB]


def test_a_fast_sender_is_not_cut_off_while_others_wait() -> None:
    clients = Clients(4 * MIB)
    fast = clients.connect("fast")
    rest = framed(bytes(60 * MIB))
    rest = fast.feed(rest[: 5 * MIB]) + rest[5 * MIB :]
    waiting = clients.connect("honest")
    assert waiting.feed(framed(bytes(3 * MIB)))
    while rest:
        clients.clock.pass_to(clients.clock.now + CHECK_SECONDS)
        clients.clock.turn()
        assert not fast.is_closed()
        rest = fast.feed(rest[: 5 * MIB]) + rest[5 * MIB :]
    assert clients.served == [60 * MIB]


def test_a_sender_of_one_megabit_a_second_finishes_while_others_wait() -> None:
    clients = Clients(4 * MIB)
    modest = clients.connect("modest")
    rest = modest.feed(framed(bytes(5 * MIB))[: 2 * MIB])
    rest += framed(bytes(5 * MIB))[2 * MIB :]
    taker = clients.connect("taker")
    taker.feed(framed(bytes(60 * MIB))[: 3 * MIB])
    while rest:
        clients.clock.pass_to(clients.clock.now + CHECK_SECONDS)
        clients.clock.turn()
        assert not modest.is_closed()
        rest = modest.feed(rest[:625_000]) + rest[625_000:]
    assert clients.served == [5 * MIB]


def test_a_connection_that_had_to_wait_for_memory_is_not_taken_for_a_slow_one() -> None:
    clients = Clients(4 * MIB)
    clients.connect("finisher").feed(framed(bytes(20 * MIB))[:-1])
    neighbour, client = clients.connect("a"), clients.connect("a")
    small, large = framed(bytes(MIB)), framed(bytes(3 * MIB))
    assert neighbour.feed(small[:-1]) == b""
    assert client.feed(large[:900_000]) == b""
    assert clients.connect("b").feed(framed(bytes(9 * MIB)))
    clients.clock.pass_to(clients.clock.now + CHECK_SECONDS)
    assert client.feed(large[900_000 : MIB + 1]), "the host has half of the memory"
    assert not client.reads()
    neighbour.feed(small[-1:])
    assert client.feed(large[MIB : MIB + 1000]) == b""
    clients.clock.pass_to(clients.clock.now + CHECK_SECONDS)
    assert not client.is_closed()


def test_a_connection_that_waits_for_memory_and_disconnects_leaves_nothing() -> None:
    clients = Clients(MIB)
    first, second = clients.connect("a"), clients.connect("b")
    first.feed(framed(bytes(4 * MIB))[:-1])
    assert second.feed(framed(bytes(4 * MIB)))
    assert clients.probe.waiting_for_memory == 1
    clients.disconnect(second)
    assert clients.probe.waiting_for_memory == 0
    clients.disconnect(first)
    assert clients.probe.receive_memory == 0


def test_a_stream_of_large_requests_gives_its_turn_to_others_after_each_request() -> None:
    clients = Clients(MIB)
    stream, other = clients.connect("a"), clients.connect("b")
    frame = framed(bytes(3 * MIB))
    stream.feed(frame[: 2 * MIB])
    rest = other.feed(frame)
    assert rest
    stream.feed(frame[2 * MIB :] + frame[: MIB // 2])  # never empty: the next request has begun
    clients.clock.turn()
    assert other.feed(rest) == b""
    assert clients.served == [3 * MIB] * 2


def test_an_idle_connection_gives_the_pages_of_its_buffer_back() -> None:
    clients = Clients(64 * MIB)
    client = clients.connect("a")
    client.clock.pass_to(1.0)
    for size in (200_000, 2 * MIB):
        client.feed(framed(b"x" * size))
        client.connection.trim(client.clock.now)
        assert client.connection._buffer.mapping[:RECEIVE_BUFFER_BYTES].count(b"x") > 0, "bytes just came"
        client.connection.trim(client.clock.now + 1)
        assert client.connection._buffer.mapping[:].count(b"x") == 0
        assert clients.probe.receive_memory == 0
        client.clock.pass_to(client.clock.now + 10)


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _ask_versions(client: socket.socket, number: int) -> None:
    """Send ApiVersions, version 0, and read its answer."""
    client.sendall(struct.pack(">ihhih", 10, 18, 0, number, -1))
    (size,) = struct.unpack(">i", _read_exactly(client, 4))
    assert struct.unpack(">i", _read_exactly(client, size)[:4]) == (number,)


def _read_exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part, "the broker closed the connection"
        data += part
    return data


def test_half_received_requests_leave_a_daemon_below_the_bound_and_others_served(tmp_path: Path) -> None:
    """Twelve peers send 20 of 30 MiB, four send a byte at a time, and a modest client asks all the while."""
    settings = [f"queued.max.request.bytes={32 * MIB}", f"socket.request.max.bytes={32 * MIB}"]
    with start_daemon(tmp_path, *settings) as daemon:
        before = _resident_bytes(daemon.pid)
        address = (daemon.host, daemon.port)
        modest = socket.create_connection(address, timeout=20)
        peers = [socket.create_connection(address) for _ in range(12)]
        tricklers = [socket.create_connection(address) for _ in range(4)]
        try:
            chunk = bytes(MIB)
            for peer in (*peers, *tricklers):
                peer.setblocking(False)
                peer.send(struct.pack(">i", 30 * MIB))
            sent = dict.fromkeys(peers, 0)
            served = 0
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline and min(sent.values()) < 20 * MIB:
                for peer in peers:
                    if sent[peer] < 20 * MIB:
                        try:
                            sent[peer] += peer.send(chunk)
                        except BlockingIOError:
                            pass
                for trickler in tricklers:
                    trickler.send(b"x")
                _ask_versions(modest, served)
                served += 1
            grown = _resident_bytes(daemon.pid) - before
            assert grown < (32 + 32 + 16) * MIB, "without the bound: 240 MiB"
            assert served > 0
        finally:
            for peer in (*peers, *tricklers):
                peer.close()
        _ask_versions(modest, served)
        deadline = time.monotonic() + 20
        while (left := _resident_bytes(daemon.pid) - before) > 12 * MIB and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left < 12 * MIB, "what the peers took is given back"
        modest.close()


def test_a_daemon_returns_the_memory_of_a_peer_that_disconnects(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        before = _resident_bytes(daemon.pid)
        peer = socket.create_connection((daemon.host, daemon.port))
        peer.sendall(struct.pack(">i", 90 * MIB) + bytes(60 * MIB))
        deadline = time.monotonic() + 20
        while _resident_bytes(daemon.pid) - before < 40 * MIB and time.monotonic() < deadline:
            time.sleep(0.01)
        assert _resident_bytes(daemon.pid) - before > 40 * MIB
        peer.close()
        while _resident_bytes(daemon.pid) - before > 8 * MIB and time.monotonic() < deadline:
            time.sleep(0.01)
        assert _resident_bytes(daemon.pid) - before < 8 * MIB
