"""Fetch over the wire: long polls, limits, order, backpressure."""

from __future__ import annotations

import threading
import time
import urllib.request

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import FetchPartitionResult
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.records import iter_batches, read_records
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.wire import WireClient, fetch_request, fetch_requests, produce_request

LONG_POLL_MS = 100_000
"""Longer than a client of these tests waits for an answer: who is not woken fails the test."""


def values(result: FetchPartitionResult) -> list[bytes | None]:
    return [record.value for each in iter_batches(result.data) for record in read_records(each)]


def test_an_append_wakes_a_waiting_fetch(daemon: Daemon, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("poll")
    with WireClient(daemon.host, daemon.port) as reader:
        reader.send(fetch_request("poll", 0, max_wait_ms=LONG_POLL_MS))
        wire.produce("poll", batch(b"news"))
        answer = reader.receive()
    assert values(answer.topics[0].partitions[0]) == [b"news"]


def test_a_fetch_waits_for_min_bytes_over_several_appends(daemon: Daemon, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("minimum")
    one = batch(b"x" * 100)
    with WireClient(daemon.host, daemon.port) as reader:
        request = fetch_request("minimum", 0, max_wait_ms=LONG_POLL_MS, min_bytes=3 * len(one))
        reader.send(request)
        for _ in range(3):
            wire.produce("minimum", one)
        answer = reader.receive()
    assert len(values(answer.topics[0].partitions[0])) == 3


def test_records_of_an_older_segment_are_answered_without_waiting_for_min_bytes(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("segments", segment_bytes="2000", retention_ms="-1")
    one = batch(b"x" * 500)
    for _ in range(10):
        wire.produce("segments", one)
    request = fetch_request("segments", 0, max_wait_ms=LONG_POLL_MS, min_bytes=5 * len(one))
    assert len(values(wire.call(request).topics[0].partitions[0])) == 3


def test_min_bytes_above_max_bytes_does_not_make_a_fetch_wait(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("bounds")
    wire.produce("bounds", batch(b"x" * 500))
    request = fetch_request("bounds", 0, max_bytes=300, min_bytes=100_000, max_wait_ms=LONG_POLL_MS)
    assert len(values(wire.call(request).topics[0].partitions[0])) == 1


def test_bytes_that_were_found_before_waiting_count_once_as_sent(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("counted")
    one = batch(b"x" * 500)
    wire.produce("counted", one)
    wire.call(fetch_request("counted", 0, max_wait_ms=50, min_bytes=10 * len(one)))
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    assert f'barnabas_topic_sent_bytes_total{{topic="counted"}} {len(one)}.0' in lines


def test_a_client_that_goes_while_its_fetch_waits_leaves_nothing_behind(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("left")
    for _ in range(50):
        with WireClient(daemon.host, daemon.port) as reader:
            reader.send(fetch_request("left", 0, max_wait_ms=LONG_POLL_MS))
    deadline = time.monotonic() + 30
    waiting = ""
    while waiting != "0.0":
        assert time.monotonic() < deadline, f"{waiting} fetches wait for nobody"
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        waiting = next(line.split()[1] for line in lines if line.startswith("barnabas_fetches_waiting "))
    assert wire.produce("left", batch()).error == ErrorCode.NONE


def test_one_append_wakes_every_waiting_fetch(daemon: Daemon, wire: WireClient, batch: Batch) -> None:
    wire.create_topic("crowd")
    readers = [WireClient(daemon.host, daemon.port) for _ in range(20)]
    for reader in readers:
        reader.send(fetch_request("crowd", 0, max_wait_ms=LONG_POLL_MS))
        reader.send(fetch_request("crowd", 1, max_wait_ms=0))
    wire.produce("crowd", batch(b"news"))
    for reader in readers:
        assert values(reader.receive().topics[0].partitions[0]) == [b"news"]
        assert values(reader.receive().topics[0].partitions[0]) == []
        reader.socket.close()


def test_a_fetch_that_waits_for_a_deleted_topic_does_not_get_the_new_ones_records(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("again")
    wire.produce("again", batch(b"old"))
    with WireClient(daemon.host, daemon.port) as reader:
        reader.send(fetch_request("again", 1, max_wait_ms=LONG_POLL_MS))
        reader.send(fetch_request("again", 0, max_wait_ms=0))
        wire.delete_topic("again")
        wire.create_topic("again")
        wire.produce("again", batch(b"new"))
        for _ in range(2):
            answer = reader.receive().topics[0].partitions[0]
            assert answer.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert values(reader.fetch("again", 0)) == [b"new"]


def test_a_fetch_that_finds_nothing_answers_after_max_wait(wire: WireClient) -> None:
    wire.create_topic("silence")
    started = time.monotonic()
    result = wire.fetch("silence", 0, max_wait_ms=100)
    assert time.monotonic() - started >= 0.09  # the loop's clock has millisecond resolution
    assert (result.error, len(result.data), result.high_watermark) == (ErrorCode.NONE, 0, 0)


def test_deleting_the_topic_ends_a_waiting_fetch(daemon: Daemon, wire: WireClient) -> None:
    wire.create_topic("doomed")
    with WireClient(daemon.host, daemon.port) as reader:
        reader.send(fetch_request("doomed", 0, max_wait_ms=LONG_POLL_MS))
        wire.delete_topic("doomed")
        answer = reader.receive()
    assert answer.topics[0].partitions[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_answers_come_in_the_order_of_requests_long_polls_included(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("order")
    with WireClient(daemon.host, daemon.port) as reader:
        reader.send(fetch_request("order", 0, max_wait_ms=LONG_POLL_MS))
        reader.send(MetadataRequest.of_names([]))
        wire.produce("order", batch(b"go"))
        assert values(reader.receive().topics[0].partitions[0]) == [b"go"]
        assert reader.receive() == wire.call(MetadataRequest.of_names([]))


def test_a_first_batch_larger_than_every_limit_comes_whole_and_only_once(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("large", partitions=2)
    for partition in (0, 1):
        wire.produce("large", batch(b"x" * 5000), partition)
    request = fetch_requests("large", [(0, 0, 10), (1, 0, 10)], max_bytes=10)
    first, second = wire.call(request).topics[0].partitions
    assert values(first) == [b"x" * 5000]
    assert len(second.data) <= 10


def test_a_large_answer_reaches_a_slow_reader_whole_while_others_are_served(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("bulk")
    one = batch(*[bytes([n % 251]) * 1000 for n in range(900)])
    for _ in range(20):
        assert wire.produce("bulk", one).error == ErrorCode.NONE
    with WireClient(daemon.host, daemon.port) as slow:
        for _ in range(3):
            slow.send(fetch_request("bulk", 0, max_bytes=20 * len(one)))
        assert wire.end_offset("bulk") == 20 * 900
        for _ in range(3):
            answer = slow.receive()
            got = values(answer.topics[0].partitions[0])
            assert len(got) == 20 * 900
            assert got[1234] == bytes([1234 % 900 % 251]) * 1000


def test_many_requests_in_one_write_are_answered_one_by_one(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("pipeline")
    frames = [wire.frame(produce_request("pipeline", batch(b"%d" % n))) for n in range(2000)]
    sender = threading.Thread(target=wire.socket.sendall, args=(b"".join(frames),))
    sender.start()
    offsets = [wire.receive().topics[0].partitions[0].base_offset for _ in range(len(frames))]
    sender.join(30)
    assert offsets == list(range(2000))


def test_a_frame_larger_than_the_buffer_is_taken(wire: WireClient, batch: Batch) -> None:
    wire.create_topic("big", max_message_bytes="30000000")
    assert wire.produce("big", batch(b"y" * 20_000_000)).error == ErrorCode.NONE
    result = wire.fetch("big", 0, max_bytes=1)
    assert values(result) == [b"y" * 20_000_000]
