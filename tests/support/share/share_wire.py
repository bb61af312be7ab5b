"""A member of a share group that speaks ShareFetch and ShareAcknowledge frame by frame."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from tests.support.kafka.kafka_wire import KafkaWire, message_type, schema

ALL = 0x7FFF_FFFF


def states(wire: KafkaWire, api: str, version: int, group: str, topic_id: bytes, *partitions: dict[str, Any]) -> Any:
    """Send a request of the states' APIs about one topic; return the results of its partitions."""
    kio = schema(api, version, "request")
    topic = {
        "initialize_share_group_state": "InitializeStateData",
        "read_share_group_state": "ReadStateData",
        "write_share_group_state": "WriteStateData",
        "delete_share_group_state": "DeleteStateData",
        "read_share_group_state_summary": "ReadStateSummaryData",
    }[api]
    data = tuple(kio.PartitionData(**each) for each in partitions)
    topics = (getattr(kio, topic)(topic_id=uuid.UUID(bytes=topic_id), partitions=data),)
    answer = wire.call(api, version, group_id=group, topics=topics)
    return answer.results[0].partitions if answer.results else ()


class ShareMember:
    """One member at one broker. `version`: of both APIs."""

    def __init__(self, wire: KafkaWire, group: str, member: str, topic_id: bytes, *, version: int = 2) -> None:
        self.wire = wire
        self.group = group
        self.member = member
        self.topic_id = uuid.UUID(bytes=topic_id)
        self.version = version
        self.epoch = 0

    def fetch(self, *partitions: int, **settings: Any) -> Any:
        """Send ShareFetch with the session's next epoch; return the whole answer."""
        self.begin_fetch(*partitions, **settings)
        return self.receive_fetch()

    def receive_fetch(self) -> Any:
        """Return the answer of `begin_fetch`."""
        answer = self.wire.receive("share_fetch", self.version)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def begin_fetch(
        self,
        *partitions: int,
        acks: dict[int, list[tuple[int, int, list[int]]]] | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = ALL,
        max_records: int = 500,
        batch_size: int = 500,
        mode: int = 0,
        renew: bool = False,
    ) -> None:
        """Send ShareFetch."""
        kio = schema("share_fetch", self.version, "request")
        given = acks or {}
        rows = tuple(
            kio.FetchPartition(
                partition_index=number,
                acknowledgement_batches=tuple(
                    kio.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
                    for first, last, types in given.get(number, [])
                ),
            )
            for number in (*partitions, *(each for each in given if each not in partitions))
        )
        newer = {"share_acquire_mode": mode, "is_renew_ack": renew} if self.version >= 2 else {}
        request = message_type("share_fetch", self.version, "request")(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch,
            max_wait=timedelta(milliseconds=max_wait_ms),
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=batch_size,
            topics=(kio.FetchTopic(topic_id=self.topic_id, partitions=rows),) if rows else (),
            forgotten_topics_data=(),
            **newer,
        )
        self.wire.send(request)

    def acknowledge(self, acks: dict[int, list[tuple[int, int, list[int]]]], *, renew: bool = False) -> Any:
        """Send ShareAcknowledge with the session's next epoch; return the whole answer."""
        kio = schema("share_acknowledge", self.version, "request")
        rows = tuple(
            kio.AcknowledgePartition(
                partition_index=number,
                acknowledgement_batches=tuple(
                    kio.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
                    for first, last, types in batches
                ),
            )
            for number, batches in acks.items()
        )
        answer = self.wire.call(
            "share_acknowledge",
            self.version,
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch,
            topics=(kio.AcknowledgeTopic(topic_id=self.topic_id, partitions=rows),) if rows else (),
            **({"is_renew_ack": renew} if self.version >= 2 else {}),
        )
        if answer.error_code == 0:
            self.epoch += 1
        return answer


def acquired(answer: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    """Return first offset, last offset and delivery count of what a fetch acquired."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for row in topic.partitions
        if row.partition_index == partition
        for each in row.acquired_records
    ]


def values(answer: Any, partition: int = 0) -> list[bytes | None]:
    """Return the values of the records that a fetch acquired."""
    found: list[bytes | None] = []
    for topic in answer.responses:
        for row in topic.partitions:
            if row.partition_index != partition or not row.records:
                continue
            ours = [range(each.first_offset, each.last_offset + 1) for each in row.acquired_records]
            for batch in iter_batches(row.records):
                if batch.is_control:
                    continue
                found += [each.value for each in read_records(batch) if any(each.offset in known for known in ours)]
    return found
