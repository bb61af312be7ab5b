"""Clients that never stop sending do not keep the broker from serving the others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.frame_connection import TIMEOUT_S
from tests.support.kafka.kafka_wire import KafkaWire, framed, metadata_request, request_frame
from tests.support.metrics import metric
from tests.support.wire import WireClient
from tests.torture.hostile.wide_requests import wide_requests

GREEDY_CLIENTS = 3
ROUND_TRIPS = 10

SERVED_BETWEEN_MAX = 3_000
"""Greedy requests per modest one: a few turns of a millisecond each. It is about 30,000 where a turn has no end."""

SERVED = 'barnabas_request_duration_seconds_count{api="metadata"}'


@contextmanager
def greedy_clients(daemon: Daemon) -> Iterator[None]:
    """Pipeline small requests on several connections without a pause, and read the answers."""
    frames = request_frame(metadata_request(4, "t"), 1, "greedy") * 5000
    sockets = [socket.create_connection((daemon.host, daemon.port), timeout=TIMEOUT_S) for _ in range(GREEDY_CLIENTS)]

    def send(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(frames)
        except OSError:
            return  # the test is over

    def receive(connection: socket.socket) -> None:
        buffer = bytearray(1 << 20)
        try:
            while connection.recv_into(buffer):
                pass
        except OSError:
            return

    threads = [threading.Thread(target=work, args=(each,)) for each in sockets for work in (send, receive)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for each in sockets:
            each.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for each in sockets:
            each.close()


def test_a_modest_client_has_its_turn_between_those_of_greedy_ones(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path) as daemon, WireClient(daemon.host, daemon.port) as modest:
        modest.create_topic("t")
        with greedy_clients(daemon):
            while not metric(daemon, SERVED):
                modest.produce("t", batch(b"while the others begin"))
            before = metric(daemon, SERVED) or 0
            for _ in range(ROUND_TRIPS):
                modest.produce("t", batch(b"modest"))
            served = (metric(daemon, SERVED) or 0) - before
        assert 0 < served < SERVED_BETWEEN_MAX * ROUND_TRIPS


def test_a_modest_client_is_served_while_a_large_request_is_decoded(tmp_path: Path, batch: Batch) -> None:
    large = next(each for each in wide_requests() if (each.api, each.path) == ("list_offsets", "topics"))
    broken = framed(large.frame[4:-10])  # only the decoder sees it, and the connection is closed
    with start_daemon(tmp_path) as daemon, WireClient(daemon.host, daemon.port) as modest:
        modest.create_topic("t")
        with KafkaWire(daemon.host, daemon.port) as greedy:
            greedy.socket.sendall(broken)
            greedy.socket.setblocking(False)
            served = 0
            while is_open(greedy.socket):
                modest.produce("t", batch(b"modest"))
                served += 1
        # In the event loop, the decoder would let at most the first of them pass; beside it, dozens are served.
        assert served >= ROUND_TRIPS // 2


def is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
