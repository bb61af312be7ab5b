"""Fetch (key 1): stored batches from given offsets on, waiting for at least `min_bytes` of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, cast

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.nodes import BrokerAddress, LeaderAndEpoch
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import LATEST, since, tagged, until
from barnabas.protocol.wire.pieces import NO_RECORDS
from barnabas.protocol.wire.structures import Request, StoredAnswer, Struct
from barnabas.protocol.wire.types import (
    Error,
    Int8,
    Int32,
    Int64,
    Nullable,
    NullableStoredRecords,
    NullableString,
    String,
    Uuid,
)

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

DEFAULT_MAX_BYTES: Final = 52_428_800
"""fetch.max.bytes of Kafka's consumer, for requests that do not name a limit."""

NEW_SESSION: Final = 0
"""Session epoch of a full request that opens a new fetch session."""

NO_SESSION: Final = -1
"""Session epoch of a full request without a fetch session."""

SESSIONS_FROM: Final = 7
"""The first version with fetch sessions (KIP-227)."""

TOPIC_IDS_FROM: Final = 13
"""The first version that names topics by id."""

REPLICA_IDS_UNTIL: Final = 14
"""The last version with the replica id as a plain field."""

LEADERS_FROM: Final = 16
"""The first version in whose answers Kafka names the leader to a client that has another one (KIP-951)."""

NO_REPLICA: Final = -1
"""The replica id of a consumer."""

STANDBY_REPLICA_ID: Final = (1 << 31) - 2
"""The replica id of a standby's fetches. It is no node id: a standby has the node id of its active broker."""

COMPARING_REPLICA_ID: Final = STANDBY_REPLICA_ID - 1
"""The replica id of fetches by which a standby compares batches: their offsets do not say what it has."""

STANDBY_REPLICA_IDS: Final = frozenset({STANDBY_REPLICA_ID, COMPARING_REPLICA_ID})

UNREAD_ERRORS: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
"""Errors of partitions that the broker does not try to read."""

TopicKey = bytes | str
"""A topic's id or, in versions without ids, its name."""

PartitionKey = tuple[TopicKey, int]
"""A partition of a fetch session: its topic and its number."""


def topic_key(name: str, topic_id: bytes) -> TopicKey:
    """Return what names a topic in one fetch session."""
    return name if topic_id == ZERO_UUID else topic_id


class AbortedTransaction(Struct):
    """A read_committed consumer skips the data of `producer_id` from `first_offset` to its abort marker."""

    producer_id: Int64
    first_offset: Int64


class EpochEnd(Struct):
    """A leader epoch and the offset at which it ends."""

    epoch: Int32 = since(12, default=-1)
    end_offset: Int64 = since(12, default=-1)


class SnapshotId(Struct):
    """A snapshot of a metadata log, which only its followers need."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class FetchPartitionResult(Struct):
    """Offsets are -1 for an unknown partition, and in Kafka's protocol with any error.

    `diverging`: the largest leader epoch up to the client's `last_fetched_epoch`, and its end offset, if the client's
    log is no prefix of this one; then there are no records. `current_leader`: for a client that sent another epoch.
    `aborted` None: of a read that does not ask, or that failed.
    """

    partition: Int32
    error: Error = ErrorCode.NONE
    high_watermark: Int64 = -1
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = since(5, default=-1)
    diverging: EpochEnd | None = tagged(0, since=12, default=None)
    current_leader: LeaderAndEpoch | None = tagged(1, since=12, default=None)
    snapshot: SnapshotId | None = tagged(2, since=12, default=None)
    aborted: Annotated[Sequence[AbortedTransaction] | None, Nullable()] = None
    preferred_read_replica: Int32 = since(11, default=-1)
    records: NullableStoredRecords = NO_RECORDS

    @property
    def data(self) -> memoryview:
        """The records of an answer that was read: whole batches, but for the last."""
        return memoryview(cast(bytes | None, self.records) or b"")

    def fail(self, code: ErrorCode) -> None:
        """Turn into the result of a failed read."""
        self.error = code
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.aborted = None
        self.records = NO_RECORDS


class FetchTopicResult(Struct):
    """One topic's results in the order of the request. The broker knows both names, but for an unknown topic id."""

    name: String = until(12, default="")
    topic_id: Uuid = since(13, default=ZERO_UUID)
    partitions: Sequence[FetchPartitionResult]

    @property
    def key(self) -> TopicKey:
        """What names the topic in its fetch session."""
        return topic_key(self.name, self.topic_id)


class FetchResponse(StoredAnswer, flexible=12):
    """Results in the order of the request.

    An incremental fetch is answered with the partitions that have records, an error or other offsets than before.
    `session_id` is the fetch session that the client continues, 0 for none. `error` refuses a request because of its
    session. `endpoints`: the addresses of new leaders.
    """

    throttle_ms: Int32 = 0
    error: Error = since(7, default=ErrorCode.NONE)
    session_id: Int32 = since(7, default=0)
    topics: Sequence[FetchTopicResult]
    endpoints: Sequence[BrokerAddress] = tagged(0, since=16, default=())


class FetchPartition(Struct):
    """`offset`: where to start; `max_bytes`: the most to return of this partition (except a first, larger batch).

    `current_leader_epoch`: the leader epoch that the client knows, -1 for no check. `last_fetched_epoch`: the leader
    epoch of the client's last batch, to be compared with the log, -1 for no comparison; consumers send none.
    Compiled kernels create it and read its slots.
    """

    partition: Int32
    current_leader_epoch: Int32 = since(9, default=-1)
    offset: Int64
    last_fetched_epoch: Int32 = since(12, default=-1)
    log_start_offset: Int64 = since(5, default=-1)
    max_bytes: Int32
    replica_directory_id: Uuid = tagged(0, since=17, default=ZERO_UUID)
    high_watermark: Int64 = tagged(1, since=18, default=(1 << 63) - 1)


class FetchTopic(Struct):
    """One topic's partitions. A topic named by its `topic_id` has an empty `name`, except in a fetch session."""

    name: String = until(12, default="")
    topic_id: Uuid = since(13, default=ZERO_UUID)
    partitions: Sequence[FetchPartition]

    @property
    def key(self) -> TopicKey:
        """What names the topic in its fetch session."""
        return topic_key(self.name, self.topic_id)


class ForgottenTopic(Struct):
    """Partitions to remove from the fetch session."""

    name: String = until(12, default="")
    topic_id: Uuid = since(13, default=ZERO_UUID)
    partitions: Sequence[Int32]


class ReplicaState(Struct):
    """A follower."""

    replica_id: Int32 = since(15, default=-1)
    replica_epoch: Int64 = since(15, default=-1)


class FetchRequest(Request[FetchResponse], api=ApiKey.FETCH, flexible=12):
    """`isolation`: 0 read_uncommitted, 1 read_committed. Limits and epochs below 0 count as 0 and as none.

    `session_id` and `session_epoch` belong to Kafka's fetch sessions (KIP-227): epoch 0 requests a new session, -1 no
    session, any other continues one. An incremental request has only the partitions that are new or changed;
    `forgotten` are those to remove from the session.
    """

    cluster_id: NullableString = tagged(0, since=12, default=None)
    replica_id: Int32 = until(REPLICA_IDS_UNTIL, default=NO_REPLICA)
    replica_state: ReplicaState | None = tagged(1, since=15, default=None)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32
    isolation: Int8 = READ_UNCOMMITTED
    session_id: Int32 = since(7, default=0)
    session_epoch: Int32 = since(7, default=NO_SESSION)
    topics: Sequence[FetchTopic]
    forgotten: Sequence[ForgottenTopic] = since(7, default=())
    rack: String = since(11, default="")

    @property
    def follower_id(self) -> int:
        """The node of a follower, negative for a consumer."""
        return self.replica_id if self.replica_state is None else self.replica_state.replica_id

    @property
    def uses_topic_ids(self) -> bool:
        """Whether the version names topics by id."""
        return TOPIC_IDS_FROM <= self.version < LATEST

    @property
    def knows_leaders(self) -> bool:
        """Whether the answer names the leader to a client that has another one."""
        return self.version >= LEADERS_FROM

    @property
    def wants_offsets_of_errors(self) -> bool:
        """Whether an error has the log's offsets beside it: in the native dialect, not in Kafka's protocol."""
        return self.version == LATEST

    def forgotten_keys(self) -> Iterator[PartitionKey]:
        """Iterate over the partitions to remove from the fetch session."""
        for topic in self.forgotten:
            key = topic_key(topic.name, topic.topic_id)
            for number in topic.partitions:
                yield key, number

    def refused(self, code: ErrorCode, message: str) -> FetchResponse:
        """The code for the whole and, in versions without topic ids, for every partition; the request's session."""
        topics = []
        for topic in () if self.uses_topic_ids else self.topics:
            results = [FetchPartitionResult(partition=p.partition, error=code, aborted=()) for p in topic.partitions]
            topics.append(FetchTopicResult(name=topic.name, partitions=results))
        return FetchResponse(topics=topics, session_id=self.session_id, error=code)
