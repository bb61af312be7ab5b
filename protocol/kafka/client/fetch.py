"""Fetch (1), versions 4-17, as a consumer or a replica: batches as they are stored.

Version 7 has fetch sessions (KIP-227), 9 the leader epoch that the client knows, 12 the epoch of its last batch, which
the broker compares, 13 topic ids instead of names, 16 the addresses of leaders that have changed.
The records of an answer are views of the received frame. Snapshot ids, which only followers of a metadata log need, are
not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    INT8,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Constant,
    Message,
    Records,
    Struct,
    Tagged,
    Versions,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import NO_SESSION, READ_UNCOMMITTED
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.uuids import ZERO_UUID

SESSIONS_FROM: Final = 7
"""The first version with fetch sessions."""

TOPIC_IDS_FROM: Final = 13
"""The first version that names topics by id."""

NO_REPLICA: Final = -1
"""The replica id of a consumer."""

REPLICA_IDS_UNTIL: Final = 14
"""The last version with the replica id as a plain field."""


class PartitionToFetch(NamedTuple):
    """`last_fetched_epoch`: leader epoch of the batch before `offset`, -1 for no comparison.

    `current_leader_epoch`: the epoch that the client knows, -1 for no check.
    """

    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


class TopicToFetch(NamedTuple):
    """Partitions of one topic. `name` is sent in versions up to 12, `topic_id` in later ones."""

    name: str
    topic_id: bytes
    partitions: Sequence[PartitionToFetch]


class ForgottenTopic(NamedTuple):
    """Partitions to remove from a fetch session."""

    name: str
    topic_id: bytes
    partitions: Sequence[int]


class FetchQuery(NamedTuple):
    """A request. With a session, `topics` has only what is new or changed; see Kafka's KIP-227.

    `replica_id` is sent in versions up to REPLICA_IDS_UNTIL.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    topics: Sequence[TopicToFetch]
    session_id: int = 0
    session_epoch: int = NO_SESSION
    forgotten: Sequence[ForgottenTopic] = ()
    isolation: int = READ_UNCOMMITTED
    replica_id: int = NO_REPLICA


class EpochEnd(NamedTuple):
    """A leader epoch and the offset at which it ends."""

    epoch: int
    end_offset: int


class LeaderAndEpoch(NamedTuple):
    """The node that leads a partition, -1 if the broker does not know it, and its epoch."""

    node_id: int
    epoch: int


class AbortedTransaction(NamedTuple):
    """A transaction with records among those of the answer to a read_committed fetch."""

    producer_id: int
    first_offset: int


class FetchedPartition(NamedTuple):
    """Offsets are -1 where the version, or an error, has none.

    `diverging`: the largest epoch up to the client's that the broker knows, and its end, if the client's log is not a
    prefix of the broker's. `leader`: with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH.
    """

    partition: int
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    records: memoryview
    log_start_offset: int = -1
    diverging: EpochEnd | None = None
    leader: LeaderAndEpoch | None = None
    aborted: Sequence[AbortedTransaction] | None = None


class FetchedTopic(NamedTuple):
    """Partitions of one topic, named as in the request; the other name is empty or zeros."""

    partitions: Sequence[FetchedPartition]
    name: str = ""
    topic_id: bytes = ZERO_UUID


class FetchAnswer(NamedTuple):
    """`error` is that of the whole request, for example of its session. `endpoints`: the new leaders' addresses."""

    throttle_ms: int
    topics: Sequence[FetchedTopic]
    error: ErrorCode = ErrorCode.NONE
    session_id: int = 0
    endpoints: Sequence[BrokerAddress] = ()


_PARTITION: Final = Struct(
    FetchedPartition,
    partition=INT32,
    error=ERROR,
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=since(5, INT64),
    diverging=since(12, Tagged(Struct(EpochEnd, epoch=INT32, end_offset=INT64), tag=0, default=None)),
    leader=since(12, Tagged(Struct(LeaderAndEpoch, node_id=INT32, epoch=INT32), tag=1, default=None)),
    aborted=Array(Struct(AbortedTransaction, producer_id=INT64, first_offset=INT64), nullable_from=4),
    _preferred_read_replica=since(11, INT32),
    records=Records(),
)
FETCH: Final = ClientApi(
    ApiKey.FETCH,
    4,
    17,
    Message(
        12,
        replica_id=Versions(INT32, until=REPLICA_IDS_UNTIL),
        max_wait_ms=INT32,
        min_bytes=INT32,
        max_bytes=INT32,
        isolation=INT8,
        session_id=since(7, INT32),
        session_epoch=since(7, INT32),
        topics=rows(
            name=until(12, STRING),
            topic_id=since(13, UUID),
            partitions=rows(
                partition=INT32,
                current_leader_epoch=since(9, INT32),
                offset=INT64,
                last_fetched_epoch=since(12, INT32),
                _log_start_offset=since(5, Constant(INT64, -1)),
                max_bytes=INT32,
            ),
        ),
        forgotten=since(7, rows(name=until(12, STRING), topic_id=since(13, UUID), partitions=Array(INT32))),
        _rack=since(11, Constant(STRING, "")),
    ),
    Message(
        12,
        FetchAnswer,
        throttle_ms=INT32,
        error=since(7, ERROR),
        session_id=since(7, INT32),
        topics=rows(FetchedTopic, name=until(12, STRING), topic_id=since(13, UUID), partitions=Array(_PARTITION)),
        endpoints=since(
            16,
            Tagged(
                rows(BrokerAddress, node_id=INT32, host=STRING, port=INT32, _rack=NULLABLE_STRING), tag=0, default=()
            ),
        ),
    ),
)
