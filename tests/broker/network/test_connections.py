"""Connections: their number, lifetime and cost."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_DELETE,
    OP_SET,
    AlterConfigOp,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.records import iter_batches
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon, start_fresh_daemon
from tests.support.wire import WireClient, fetch_request, produce_request

MIB = 1 << 20


class DaemonWithFewDescriptors(Daemon):
    """A daemon limited to 128 open files."""

    def command(self) -> list[str]:
        return ["/bin/sh", "-c", 'ulimit -n 128 && exec "$@"', "sh", *super().command()]


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_more_connections_than_descriptors_leave_enough_for_the_logs(tmp_path: Path, batch: Batch) -> None:
    daemon = DaemonWithFewDescriptors(tmp_path)
    daemon.start()
    crowd: list[socket.socket] = []
    with daemon, WireClient(daemon.host, daemon.port) as client:
        client.create_topic("t", segment_bytes="2000", retention_ms="-1")
        try:
            for _ in range(200):
                crowd.append(socket.create_connection((daemon.host, daemon.port), timeout=30))
            # Segment rolls create files, and reads open old ones.
            for n in range(60):
                assert client.produce("t", batch(b"x" * 300)).base_offset == n
            assert all(client.fetch("t", offset).error == ErrorCode.NONE for offset in range(0, 60, 5))
        finally:
            for each in crowd:
                each.close()
        assert "as many as the limit of 128 open files allows" in daemon.log
        assert daemon.stop() == 0


def test_topics_that_a_client_has_created_by_naming_them_leave_enough_descriptors_for_the_logs(
    tmp_path: Path, batch: Batch
) -> None:
    daemon = DaemonWithFewDescriptors(tmp_path)
    daemon.start()
    with daemon, WireClient(daemon.host, daemon.port) as client:
        client.create_topic("t")
        asked = MetadataRequest.of_names([f"named-{n}" for n in range(60)], allow_auto_creation=True)
        found = [topic.error for topic in client.call(asked).topics]
        assert set(found) == {ErrorCode.NONE, ErrorCode.POLICY_VIOLATION}
        assert found.count(ErrorCode.NONE) == 128 // 6 - 1
        assert client.produce("t", batch(b"x")).error == ErrorCode.NONE
        assert "offline" not in daemon.log
        assert daemon.stop() == 0


def test_max_connections_can_be_changed_at_run_time(tmp_path: Path) -> None:
    def alter(client: WireClient, operation: AlterConfigOp) -> None:
        resource = AlterConfigsResource(type=BROKER_RESOURCE, name="", operations=[operation])
        answer = client.call(IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.results[0].error == ErrorCode.NONE, answer.results[0].message

    with start_daemon(tmp_path) as daemon, WireClient(daemon.host, daemon.port) as client:
        alter(client, AlterConfigOp(name="max.connections", operation=OP_SET, value="1"))
        with WireClient(daemon.host, daemon.port) as second:
            assert second.is_closed_by_broker()
        alter(client, AlterConfigOp(name="max.connections", operation=OP_DELETE))
        with WireClient(daemon.host, daemon.port) as second:
            second.call(MetadataRequest.of_names([]))


def test_a_slow_reader_that_still_reads_is_not_idle(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path, "connections.max.idle.ms=2000") as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t", max_message_bytes="40000000")
            client.produce("t", batch(bytes(30 * MIB)))
        with WireClient(daemon.host, daemon.port) as slow:
            slow.send(fetch_request("t", 0))
            size = int.from_bytes(slow.read(4), "big")
            assert size > 30 * MIB
            started, got = time.monotonic(), 0
            while got < size:
                got += len(slow.read(min(MIB, size - got)))
                # A client of limited speed, which needs twice the idle limit for the whole response.
                time.sleep(max(0.0, started + 4.0 * got / size - time.monotonic()))
            slow.send(MetadataRequest.of_names([]))
            assert slow.receive_frame()


def test_a_slow_writer_that_still_writes_is_not_idle(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path, "connections.max.idle.ms=2000") as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t")
        with WireClient(daemon.host, daemon.port) as slow:
            frame = slow.frame(produce_request("t", batch(b"x" * 100_000)))
            for start in range(0, len(frame), 5000):
                slow.socket.sendall(frame[start : start + 5000])
                time.sleep(0.16)  # 3.4 s in total, longer than the idle limit
            assert slow.receive().topics[0].partitions[0].error == 0


def test_a_client_that_never_reads_is_cut_off_as_idle_and_costs_no_memory(tmp_path: Path, batch: Batch) -> None:
    with start_fresh_daemon(tmp_path, "connections.max.idle.ms=1500") as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t")
            for _ in range(20):
                client.produce("t", batch(bytes(900_000)))
        before = resident_bytes(daemon.pid)
        with WireClient(daemon.host, daemon.port) as deaf:
            frame = deaf.frame(fetch_request("t", 0, max_bytes=20 * MIB))
            deaf.socket.settimeout(20)
            try:
                for _ in range(100):  # until the broker stops reading, and then closes
                    deaf.socket.sendall(frame * 1000)
                closed = False
            except ConnectionError:
                closed = True
            assert closed
        assert resident_bytes(daemon.pid) - before < 20 * MIB
        with WireClient(daemon.host, daemon.port) as client:
            client.call(MetadataRequest.of_names([]))


def test_thousands_of_pipelined_fetches_are_answered_in_order_in_bounded_memory(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("pipelined")
    for n in range(10):
        wire.produce("pipelined", batch(b"%d" % n * 20_000))
    before = resident_bytes(daemon.pid)
    with WireClient(daemon.host, daemon.port) as client:
        frames = b"".join(client.frame(fetch_request("pipelined", n % 10)) for n in range(3000))
        sender = threading.Thread(target=client.socket.sendall, args=(frames,))
        sender.start()
        for number in range(3000):
            (fetched,) = client.receive().topics[0].partitions
            assert next(iter_batches(fetched.data)).base_offset == number % 10
        sender.join(30)
    assert resident_bytes(daemon.pid) - before < 30 * MIB


def test_a_frame_that_is_announced_but_not_sent_costs_no_memory(daemon: Daemon, wire: WireClient) -> None:
    before = resident_bytes(daemon.pid)
    liars = [WireClient(daemon.host, daemon.port) for _ in range(50)]
    for liar in liars:
        liar.socket.sendall(struct.pack(">ihh", 100 * MIB, 0, 9))
    wire.call(MetadataRequest.of_names([]))
    assert resident_bytes(daemon.pid) - before < 20 * MIB
    for liar in liars:
        liar.socket.close()


def test_frames_of_every_size_around_the_buffers_end_are_taken(daemon: Daemon, wire: WireClient, batch: Batch) -> None:
    """The buffer of a new connection has 256 KiB; the frames end at its end, before it, after it, and across it."""
    wire.create_topic("edges", max_message_bytes="10000000")
    with WireClient(daemon.host, daemon.port) as other:
        overhead = len(other.frame(produce_request("edges", batch(b""))))
    expected = 0
    for size in (256 * 1024, 512 * 1024):
        for delta in range(-10, 11):
            first = wire.frame(produce_request("edges", batch(bytes(size + delta - overhead))))
            second = wire.frame(produce_request("edges", batch(b"second")))
            wire.socket.sendall(first + second)
            for _ in range(2):
                result = wire.receive().topics[0].partitions[0]
                assert result.base_offset == expected
                expected += 1
