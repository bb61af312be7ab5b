"""Produce (key 0): one record batch for each of several partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.nodes import BrokerAddress, LeaderAndEpoch
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since, tagged, until
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int16, Int32, Int64, Message, NullableString, Records, String, Uuid

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1

_ZSTD_FROM: Final = 7
_ABORTABLE_FROM: Final = 11
_ADDS_PARTITIONS_FROM: Final = 12
TOPIC_IDS_FROM: Final = 13

_NO_RECORDS: Final = memoryview(b"")


class RecordError(Struct):
    """A record that caused the refusal of its batch, by its index in it."""

    batch_index: Int32
    message: Message = None


class ProducePartitionResult(Struct, kw_only=False):
    """`base_offset` -1 on an error; `log_append_time_ms` -1 under CreateTime; `message` None without an error.

    `current_leader` None: as the client has it; this node leads all its partitions.
    """

    partition: Int32
    error: Error = ErrorCode.NONE
    base_offset: Int64 = -1
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = since(5, default=-1)
    record_errors: Sequence[RecordError] = since(8, default=())
    message: Message = since(8, default=None)
    current_leader: LeaderAndEpoch | None = tagged(0, since=10, default=None)


class ProduceTopicResult(Struct):
    """One topic's results in the order of the request, with its `topic_id` if the request had that."""

    name: String = until(12, default="")
    topic_id: Uuid = since(13, default=ZERO_UUID)
    partitions: Sequence[ProducePartitionResult]


class ProduceResponse(Struct, flexible=9):
    """Results in the order of the request."""

    topics: Sequence[ProduceTopicResult]
    throttle_ms: Int32 = 0
    endpoints: Sequence[BrokerAddress] = tagged(0, since=10, default=())


class ProducePartition(Struct, kw_only=False):
    """The batch for one partition. `records` is a writable view of the receive buffer, valid only in the handler."""

    partition: Int32
    records: Records

    @property
    def batch(self) -> memoryview:
        """The records; empty for null."""
        return self.records or _NO_RECORDS


class ProduceTopic(Struct):
    """One topic's partitions. A topic named by its `topic_id` (16 bytes) has an empty `name`."""

    name: String = until(12, default="")
    topic_id: Uuid = since(13, default=ZERO_UUID)
    partitions: Sequence[ProducePartition]


class ProduceRequest(Request[ProduceResponse], api=ApiKey.PRODUCE, flexible=9):
    """`acks`: 0 no answer, 1 the leader has written the batch, -1 all in-sync replicas have."""

    transactional_id: NullableString = None
    acks: Int16
    timeout_ms: Int32
    topics: Sequence[ProduceTopic]

    @property
    def takes_zstd(self) -> bool:
        """Whether the client may write zstd."""
        return self.version >= _ZSTD_FROM

    @property
    def knows_abortable(self) -> bool:
        """Whether the client knows TRANSACTION_ABORTABLE."""
        return self.version >= _ABORTABLE_FROM

    @property
    def adds_partitions(self) -> bool:
        """Whether the request adds its partitions to the transaction; otherwise they must be part of it."""
        return self.version >= _ADDS_PARTITIONS_FROM

    def copy_of_records(self) -> ProduceRequest:
        """Return the request with copies of its records, which outlive the handler's call."""
        topics = [
            topic.replaced(
                partitions=[
                    ProducePartition(each.partition, memoryview(bytearray(each.batch))) for each in topic.partitions
                ]
            )
            for topic in self.topics
        ]
        return self.replaced(topics=topics)

    def forget_records(self) -> None:
        """Release the views of the receive buffer."""
        for topic in self.topics:
            for partition in topic.partitions:
                partition.records = None

    def refused(self, code: ErrorCode, message: str) -> ProduceResponse:
        """The code for every partition. Raises FrameError for acks=0, which has no response."""
        if self.acks == ACKS_NONE:
            raise FrameError(f"a produce with acks=0 failed: {code.name}: {message}")
        topics = [
            ProduceTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[ProducePartitionResult(p.partition, code, message=message) for p in topic.partitions],
            )
            for topic in self.topics
        ]
        return ProduceResponse(topics=topics)
