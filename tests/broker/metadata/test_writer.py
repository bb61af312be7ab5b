"""The metadata writer: order of durability and visibility, failures, and concurrency."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.broker.metadata.errors import ReplayError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.batches import decode_batches
from barnabas.broker.metadata.log.writer import MetadataWriter
from barnabas.broker.metadata.plan import Plan
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from barnabas.protocol.records import iter_batches

if TYPE_CHECKING:
    from tests.broker.metadata.conftest import FakeClock

RECORD = ConfigRecord(4, "", "log.retention.ms", "1000")


class FakeLog:
    """A log in memory that records the order of calls, and fails on request."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.end_offset = 0
        self.calls: list[str] = []
        self.append_error: OSError | None = None
        self.sync_error: OSError | None = None
        self.leaves_a_part = False

    def append(self, batches: bytes, leader_epoch: int) -> None:
        self.calls.append("append")
        if self.append_error is not None:
            self.end_offset += self.leaves_a_part
            raise self.append_error
        for batch in iter_batches(batches):
            assert (batch.base_offset, batch.partition_leader_epoch) == (self.end_offset, leader_epoch)
            self.end_offset = batch.next_offset
        self.data += batches

    def sync(self) -> None:
        self.calls.append("sync")
        if self.sync_error is not None:
            raise self.sync_error


@pytest.fixture
def log() -> FakeLog:
    """Return an empty log in memory."""
    return FakeLog()


@pytest.fixture
def writer(log: FakeLog, clock: FakeClock) -> MetadataWriter:
    """Return a writer in epoch 3 on `log`."""
    return MetadataWriter(log, MetadataImage(features={METADATA_VERSION: 19}), leader_epoch=3, clock=clock)


def test_a_change_is_synced_before_the_image_and_the_listeners_see_it(log: FakeLog, writer: MetadataWriter) -> None:
    seen: list[tuple[list[str], int, int]] = []
    writer.add_listener(lambda before, after: seen.append((list(log.calls), before.end_offset, after.end_offset)))
    before = writer.image
    after = writer.commit([RECORD])
    assert seen == [(["append", "sync"], 0, 1)]
    assert writer.image is after
    assert before.configs == {}
    assert after.default_broker_configs() == {"log.retention.ms": "1000"}
    assert list(decode_batches(bytes(log.data))) == [RECORD]


def test_an_empty_change_writes_nothing(log: FakeLog, writer: MetadataWriter) -> None:
    assert writer.commit([]) is writer.image
    assert log.calls == []


def test_a_full_disk_leaves_the_image_and_a_later_change_succeeds(log: FakeLog, writer: MetadataWriter) -> None:
    log.append_error = OSError(errno.ENOSPC, "No space left on device")
    before = writer.image
    with pytest.raises(BrokerError, match="No space left") as caught:
        writer.commit([RECORD])
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (writer.image, writer.failure) == (before, None)
    log.append_error = None
    assert writer.commit([RECORD]).end_offset == 1


def test_a_full_disk_is_one_line_of_the_log_however_often_a_change_is_tried(
    log: FakeLog, writer: MetadataWriter, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        log.append_error = OSError(errno.ENOSPC, "No space left on device")
        for _ in range(3):
            with pytest.raises(BrokerError):
                writer.commit([RECORD])
        log.append_error = None
        writer.commit([RECORD])
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 2


def test_after_a_failed_sync_nothing_is_ever_written_again(log: FakeLog, writer: MetadataWriter) -> None:
    log.sync_error = OSError(errno.EIO, "Input/output error")
    before = writer.image
    for _ in range(2):
        with pytest.raises(BrokerError, match="could not be synced") as caught:
            writer.commit([RECORD])
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert writer.image is before
    assert log.calls == ["append", "sync"]
    assert writer.failure is not None


def test_an_append_that_leaves_a_part_behind_stops_the_writer(log: FakeLog, writer: MetadataWriter) -> None:
    log.append_error, log.leaves_a_part = OSError(errno.EIO, "Input/output error"), True
    with pytest.raises(BrokerError):
        writer.commit([RECORD])
    assert writer.failure is not None


def test_a_record_that_contradicts_the_image_never_reaches_the_log(log: FakeLog, writer: MetadataWriter) -> None:
    with pytest.raises(ReplayError):
        writer.commit([RECORD, RemoveTopicRecord(bytes(16))])
    assert log.calls == []
    assert writer.image.configs == {}


def test_plans_of_many_threads_see_each_other_and_none_is_lost(log: FakeLog, writer: MetadataWriter) -> None:
    def add_one(image: MetadataImage) -> Plan[int]:
        number = len(image.topics)
        return Plan([number], [TopicRecord(f"t{number}", number.to_bytes(16, "big"))])

    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.extend(writer.change(add_one))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == list(range(20))
    assert [record.name for record in decode_batches(bytes(log.data)) if isinstance(record, TopicRecord)] == [
        f"t{number}" for number in range(20)
    ]
    assert writer.image.end_offset == log.end_offset == 20


def test_an_image_never_changes(writer: MetadataWriter, image_of: Callable[..., MetadataImage]) -> None:
    first = writer.commit([TopicRecord("a", bytes(16)), ConfigRecord(2, "a", "x", "1")])
    second = writer.commit([ConfigRecord(2, "a", "x", "2")])
    third = writer.commit([RemoveTopicRecord(bytes(16))])
    assert [dict(image.topic_configs("a")) for image in (first, second, third)] == [{"x": "1"}, {"x": "2"}, {}]
    assert [list(image.topics) for image in (first, second, third)] == [["a"], ["a"], []]
