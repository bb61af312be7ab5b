"""Requests that a client has sent before it closed its end of the connection are served, as acks=0 producers expect."""

from __future__ import annotations

import socket

from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire, answer_of, fetch_request, produce_request, request_frame
from tests.support.metrics import wait_for_metric
from tests.support.wire import WireClient


def test_requests_after_a_long_poll_are_served_when_the_client_sends_nothing_more(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("after-a-poll")
    with KafkaWire(daemon.host, daemon.port) as kafka:
        poll = request_frame(fetch_request(11, "after-a-poll", 0, max_wait_ms=200, min_bytes=1 << 20), 1)
        produce = request_frame(produce_request(9, "after-a-poll", batch(), acks=0), 2)
        kafka.socket.sendall(poll + 3 * produce + produce[:-1])
        kafka.socket.shutdown(socket.SHUT_WR)
        assert answer_of("fetch", 11, kafka.receive_frame())[0] == 1
        assert kafka.socket.recv(1) == b""
    assert wire.end_offset("after-a-poll") == 3


def test_a_producer_that_closes_its_connection_immediately_loses_no_record(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    count = 10_000  # more than a buffer, and many turns of the loop
    wire.create_topic("closed-immediately")
    frame = request_frame(produce_request(9, "closed-immediately", batch(), acks=0), 1)
    with socket.create_connection((daemon.host, daemon.port)) as producer:
        producer.sendall(frame * count)
    eventually(
        lambda: wire.end_offset("closed-immediately") == count or None,
        what=f"all {count} records are in the log",
        timeout_s=20,
    )


def test_a_long_poll_ends_with_its_client(daemon: Daemon, wire: WireClient) -> None:
    wire.create_topic("left")
    with KafkaWire(daemon.host, daemon.port) as kafka:
        poll = request_frame(fetch_request(11, "left", 0, max_wait_ms=2**31 - 1), 1)
        kafka.socket.sendall(poll + poll[:-1])
        wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
    wait_for_metric(daemon, "barnabas_fetches_waiting", 0)
