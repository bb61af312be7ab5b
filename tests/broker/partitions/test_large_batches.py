"""Batches that decompress to more than the event loop may spend time on: threads check them, the loop appends them."""

from __future__ import annotations

import asyncio
import gc
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.handlers.data import large_batches
from barnabas.broker.handlers.data.large_batches import CHECKS_AT_ONCE, LargeBatch, LargeBatches
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.log.append import INLINE_DECOMPRESSED_BYTES
from barnabas.protocol.compression import compress
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records import Codec, Record
from barnabas.protocol.records.layout import HEADER_SIZE
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.kafka.produce_broker import Broker
from tests.support.kafka.produce_traffic import Sent, SentTopic
from tests.support.manual_loop import ManualExecutor, ManualLoop
from tests.support.storage.records import TIMESTAMP, build, plain, reseal

pytest.importorskip("barnabas.broker.handlers.data.kernels._produce")
ABOVE = INLINE_DECOMPRESSED_BYTES + 1
BELOW = INLINE_DECOMPRESSED_BYTES - 1000
CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


@pytest.fixture(params=[True, False], ids=["compiled", "python"])
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    if request.param and os.environ.get("BARNABAS_KERNEL") == "python":
        pytest.skip("the kernels are turned off")
    loop = ManualLoop()
    made = Broker(tmp_path / "data", loop, is_compiled=request.param)
    yield made
    loop.settle()
    made.real.close()
    loop.close()


def zeros(size: int, codec: Codec = Codec.ZSTD, **header: int) -> bytes:
    return bytes(build([Record(0, TIMESTAMP, b"k", bytes(size))], codec, **header))


def sent(*batches: tuple[int, bytes], topic: str = "a", acks: int = 1, transactional_id: str | None = None) -> Sent:
    return Sent(9, 7, "one", [SentTopic(topic, list(batches))], acks=acks, transactional_id=transactional_id)


def end(broker: Broker, topic: str, number: int) -> int:
    return cast("Partition", broker.partitions.get(topic, number)).log.log_end_offset


def settle(broker: Broker) -> bytes:
    """Run the checks, and return what is answered then."""
    while broker.threads.waiting:
        broker.threads.run_all()
        broker.loop.settle()
    broker.loop.settle()
    while broker.coordinator.answer_late():
        broker.loop.settle()
    pipe = broker.harness.pipe
    written, pipe.written = pipe.written, b""
    return written


def codes(answer: bytes) -> list[int]:
    """Return the error codes of an answer to Produce 9 with one topic `a`."""
    position, found = 4 + 4 + 1 + 1 + 2 + 1, []
    for _ in range(answer[position - 1] - 1):
        found.append(struct.unpack_from(">h", answer, position + 4)[0])
        position += 4 + 2 + 8 + 8 + 8
        position += 1  # no record errors
        position += answer[position] or 1
        position += 1
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_only_a_batch_above_the_limit_waits_for_a_thread(broker: Broker, codec: Codec) -> None:
    assert codes(broker.answers([sent((0, zeros(BELOW, codec)))])) == [0]
    assert broker.answers([sent((0, zeros(ABOVE, codec)))]) == b""
    assert len(broker.threads.waiting) == 1
    assert end(broker, "a", 0) == 1
    assert codes(settle(broker)) == [0]
    assert end(broker, "a", 0) == 2


def test_other_partitions_of_the_request_are_appended_and_the_answer_keeps_their_order(broker: Broker) -> None:
    request = sent((0, bytes(plain(2))), (1, zeros(ABOVE)), (2, b"?"), (1, bytes(plain(1))))
    assert broker.answers([request, sent((0, bytes(plain(1))))]) == b""
    assert end(broker, "a", 0) == 2
    first, second = split(settle(broker))
    assert codes(first) == [0, 0, ErrorCode.INVALID_RECORD, 0]
    assert codes(second) == [0]
    assert (end(broker, "a", 0), end(broker, "a", 1)) == (3, 2)


def split(answers: bytes) -> list[bytes]:
    found = []
    while answers:
        size = 4 + struct.unpack_from(">i", answers)[0]
        found.append(answers[:size])
        answers = answers[size:]
    return found


def test_records_that_the_thread_refuses_are_refused(broker: Broker) -> None:
    broken = bytearray(zeros(ABOVE, Codec.NONE))
    broken[70] ^= 0xFF  # within the first record's head
    header = broken[:HEADER_SIZE]
    header[22] |= Codec.ZSTD
    hostile = bytes(reseal(header + compress(Codec.ZSTD, bytes(broken[HEADER_SIZE:]))))
    assert broker.answers([sent((0, hostile))]) == b""
    assert codes(settle(broker)) == [ErrorCode.INVALID_RECORD]
    assert end(broker, "a", 0) == 0
    assert broker.answers([sent((0, hostile), acks=0)]) == b""
    assert not broker.harness.pipe.closing
    assert settle(broker) == b""
    assert broker.harness.pipe.closing


def test_acks_0_is_appended_without_an_answer(broker: Broker) -> None:
    assert broker.answers([sent((0, zeros(ABOVE)), acks=0), sent((0, bytes(plain(1))))]) == b""
    assert codes(settle(broker)) == [0]
    assert end(broker, "a", 0) == 2


def test_a_topic_deleted_meanwhile_gets_nothing(broker: Broker) -> None:
    broker.answers([sent((0, zeros(ABOVE)))])
    broker.partitions.remove(TopicPartition("a", 0))
    assert codes(settle(broker)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_frozen_meanwhile_gets_nothing(broker: Broker) -> None:
    broker.answers([sent((0, zeros(ABOVE)))])
    cast("Partition", broker.partitions.get("a", 0)).freeze()
    assert codes(settle(broker)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert end(broker, "a", 0) == 0


def test_a_transaction_is_asked_again_before_the_append(broker: Broker) -> None:
    records = zeros(ABOVE, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    admitted: list[Any] = []

    def admit(*call: Any, adds: bool) -> dict[tuple[str, int], ErrorCode]:
        admitted.append(call)
        return {} if len(admitted) == 1 else {("a", 0): ErrorCode.PRODUCER_FENCED}

    broker.coordinator.admit = admit  # type: ignore[method-assign, assignment]
    assert broker.answers([sent((0, records), transactional_id="t")]) == b""
    assert len(admitted) == 1
    assert codes(settle(broker)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert len(admitted) == 2
    assert end(broker, "a", 0) == 0


def test_the_batches_of_a_request_are_checked_one_after_the_other(broker: Broker) -> None:
    broker.answers([sent(*[(number, zeros(ABOVE)) for number in range(3)])])
    for number in range(3):
        assert len(broker.threads.waiting) == 1
        assert end(broker, "a", number) == 0
        broker.threads.run_all()
        broker.loop.settle()
    assert codes(settle(broker)) == [0, 0, 0]


async def test_requests_take_turns_and_few_checks_run_at_a_time() -> None:
    loop, threads = asyncio.get_running_loop(), ManualExecutor()
    checks = LargeBatches(loop, threads)
    order: list[str] = []

    class Log:
        def __init__(self, name: str) -> None:
            self.name = name

        def check_client_batch(self, records: memoryview, *, in_transaction: bool) -> Any:
            order.append(self.name)
            raise BrokerError(ErrorCode.INVALID_RECORD, self.name)

    def batches(name: str, count: int) -> list[LargeBatch]:
        logs = [cast("Partition", Log(name)) for _ in range(count)]
        return [checks.batch(log, memoryview(b"records"), in_transaction=False) for log in logs]

    checked: list[str] = []
    for name, count in (("a", 3), ("b", 1), ("c", 2)):
        checks.check(batches(name, count)).then(lambda _, name=name: checked.append(name))  # type: ignore[misc]
    while threads.waiting:
        assert len(threads.waiting) <= CHECKS_AT_ONCE
        threads.run_all()
        for _ in range(3):
            await asyncio.sleep(0)
    assert order == ["a", "b", "c", "a", "a", "c"] or order == ["a", "b", "c", "a", "c", "a"]
    assert sorted(checked) == ["a", "b", "c"]


def test_batches_are_refused_while_too_many_bytes_wait(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    records = zeros(ABOVE)
    monkeypatch.setattr(large_batches, "WAITING_BYTES_MAX", 2 * len(records))
    broker.answers([sent(*[(number, records) for number in range(3)])])
    found = b""
    while broker.threads.waiting:
        found += settle(broker)
    assert codes(found) == [0, 0, ErrorCode.REQUEST_TIMED_OUT]
    broker.answers([sent((0, records))])
    assert codes(settle(broker)) == [0]


def test_a_refused_batch_keeps_no_decompressed_records(broker: Broker) -> None:
    partition = cast("Partition", broker.partitions.get("a", 0))
    batch = LargeBatch(partition, memoryview(zeros(130 << 20)), in_transaction=False)
    gc.disable()
    try:
        before = mapped_kib()
        batch.check()
        assert mapped_kib() - before < 16 << 10
    finally:
        gc.enable()
    with pytest.raises(BrokerError, match="hold more than 134217728 bytes") as raised:
        batch.found()
    assert raised.value.__cause__ is None


def mapped_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def test_the_log_append_time_is_that_of_the_append(broker: Broker) -> None:
    log: Any = cast("Partition", broker.partitions.get("a", 0)).writable_log
    log.update_config(replace(log.core.config, timestamp_type="LogAppendTime"))
    broker.answers([sent((0, zeros(ABOVE)))])
    broker.threads.run_all()
    log.core.wall_ms = lambda: 123_456_789
    assert codes(settle(broker)) == [0]
    assert log.core.active.largest_timestamp() == 123_456_789
